"""Streams whose connection is watched by their reader, a loop or a thread (decision 0053)."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gatewright
import pytest
import trustme
import uvloop
from conftest import Connection, Gateway
from gatewright import AsyncClient, Client

Serve = Callable[[Callable[[Connection], None]], str]
Stream = gatewright.Stream[gatewright.types.ChatCompletionChunk]
AsyncStream = gatewright.AsyncStream[gatewright.types.ChatCompletionChunk]

QUESTION: Any = [{"role": "user", "content": "x"}]
DONE = b"data: [DONE]\n\n"


def chunk(text: str, finish: str = "null") -> bytes:
    choice = f'{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":{finish}}}'
    return f'data: {{"id":"c","object":"chat.completion.chunk","choices":[{choice}]}}\n\n'.encode()


def open_stream(base_url: str, **options: Any) -> Stream:
    client = Client(base_url, "key", max_retries=0, **options)
    return client.chat.completions.create(model="m", messages=QUESTION, stream=True)


async def open_async(base_url: str, **options: Any) -> AsyncStream:
    client = AsyncClient(base_url, "key", max_retries=0, **options)
    return await client.chat.completions.create(model="m", messages=QUESTION, stream=True)


async def texts_of(stream: AsyncStream) -> list[str]:
    return [one.choices[0].delta.content or "" async for one in stream]


class PacketByPacket:
    """Sends each chunk when signaled, and signals when the client has disconnected."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.go_on = threading.Semaphore(1)
        self.closed = threading.Event()

    def __call__(self, connection: Connection) -> None:
        connection.stream_head()
        for number in range(self.count):
            assert self.go_on.acquire(timeout=10)
            connection.send(chunk(str(number)))
        connection.send(chunk("", '"stop"') + DONE)
        if connection.wait_until_closed(10):
            self.closed.set()

    @property
    def texts(self) -> list[str]:
        return [*map(str, range(self.count)), ""]


class Hanging:
    """Starts a stream and falls silent; signals when the client has disconnected."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def __call__(self, connection: Connection) -> None:
        connection.stream_head()
        connection.send(chunk("0"))
        if connection.wait_until_closed(10):
            self.closed.set()


class Noting(asyncio.SelectorEventLoop):
    """An event loop that records which connections it watches."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[int] = []
        self.ended: list[int] = []
        self.rests = asyncio.Event()

    def add_reader(self, fd: Any, callback: Any, *args: Any) -> Any:
        self.started.append(fd)
        return super().add_reader(fd, callback, *args)

    def remove_reader(self, fd: Any) -> bool:
        self.ended.append(fd)
        self.rests.set()
        return super().remove_reader(fd)


def run_on(loop: asyncio.AbstractEventLoop, main: Any) -> Any:
    with contextlib.closing(loop):
        return loop.run_until_complete(main)


def test_an_event_loop_starts_and_stops_watching_a_stream_once(serve: Serve) -> None:
    server = PacketByPacket(20)
    loop = Noting()

    async def main() -> list[str]:
        texts = []
        async for one in await open_async(base_url):
            texts.append(one.choices[0].delta.content or "")
            server.go_on.release()
        return texts

    base_url = serve(server)
    assert run_on(loop, main()) == server.texts
    assert len(loop.started) == 1
    assert loop.started == loop.ended


def test_packets_one_by_one_on_uvloop(serve: Serve) -> None:
    server = PacketByPacket(20)

    async def main() -> list[str]:
        texts = []
        async for one in await open_async(base_url):
            texts.append(one.choices[0].delta.content or "")
            server.go_on.release()
        return texts

    base_url = serve(server)
    assert uvloop.run(main()) == server.texts


def test_a_loop_that_cannot_watch_connections_still_reads(serve: Serve) -> None:
    class Blind(asyncio.SelectorEventLoop):
        def add_reader(self, fd: Any, callback: Any, *args: Any) -> Any:
            raise NotImplementedError

    server = PacketByPacket(5)
    for _ in range(5):
        server.go_on.release()

    async def main() -> list[str]:
        return await texts_of(await open_async(base_url))

    base_url = serve(server)
    assert run_on(Blind(), main()) == server.texts


def test_a_loop_continues_without_its_reader_and_loses_nothing(serve: Serve) -> None:
    total = 20_000
    loop = Noting()

    def answer(connection: Connection) -> None:
        connection.stream_head()
        for number in range(total):
            connection.send(chunk(str(number)))
        connection.send(chunk("", '"stop"') + DONE)

    async def main() -> list[str]:
        stream = await open_async(base_url)
        first = (await anext(stream)).choices[0].delta.content or ""
        # Meanwhile, the stream is read ahead until there is no more room.
        await loop.rests.wait()
        return [first, *await texts_of(stream)]

    base_url = serve(answer)
    assert run_on(loop, main()) == [*map(str, range(total)), ""]
    assert loop.started == loop.ended


def test_a_stream_continues_in_another_loop(serve: Serve) -> None:
    server = PacketByPacket(2)
    first, second = Noting(), Noting()

    async def begin() -> tuple[AsyncStream, str]:
        stream = await open_async(base_url)
        return stream, (await anext(stream)).choices[0].delta.content or ""

    base_url = serve(server)
    stream, text = run_on(first, begin())
    server.go_on.release()
    assert [text, *run_on(second, texts_of(stream))] == server.texts


def test_a_stream_dropped_after_its_loop_closed_closes_its_connection(serve: Serve) -> None:
    server = Hanging()

    async def begin() -> AsyncStream:
        stream = await open_async(base_url)
        await anext(stream)
        return stream

    base_url = serve(server)
    streams = [asyncio.run(begin())]
    streams.clear()
    gc.collect()
    assert server.closed.wait(5)


async def test_a_document_request_takes_over_from_a_watching_loop(serve: Serve) -> None:
    server = PacketByPacket(3)
    stream: Any = await open_async(serve(server))
    waits = asyncio.ensure_future(texts_of(stream))
    await asyncio.sleep(0.1)
    document = asyncio.ensure_future(stream.get_final_completion())
    with pytest.raises(gatewright.ConfigurationError):
        await asyncio.wait_for(waits, 10)
    for _ in range(3):
        server.go_on.release()
    assert (await document).choices[0].message.content == "012"


async def test_closing_from_another_thread_ends_the_wait_of_a_loop(serve: Serve) -> None:
    server = Hanging()
    stream = await open_async(serve(server))
    await anext(stream)
    threading.Timer(0.1, stream._shut, ["it has been closed"]).start()
    with pytest.raises(StopAsyncIteration):
        await asyncio.wait_for(anext(stream), 10)
    assert await asyncio.to_thread(server.closed.wait, 5)


async def test_a_timeout_ends_the_wait_of_a_loop(serve: Serve) -> None:
    server = Hanging()
    stream = await open_async(serve(server), event_timeout=0.3)
    await anext(stream)
    with pytest.raises(gatewright.APITimeoutError, match="event_timeout"):
        await asyncio.wait_for(anext(stream), 10)


def test_a_timeout_ends_the_wait_of_a_thread(serve: Serve) -> None:
    server = Hanging()
    stream = open_stream(serve(server), event_timeout=0.3)
    next(stream)
    with pytest.raises(gatewright.APITimeoutError, match="event_timeout"):
        next(stream)


def test_a_stream_is_read_ahead_without_its_thread_and_continues_with_it(serve: Serve) -> None:
    sent, again = threading.Event(), threading.Semaphore(0)
    # More than the system buffers for a connection.
    long = "x" * 64 * 1024

    def answer(connection: Connection) -> None:
        connection.stream_head()
        connection.send(chunk("first"))
        for _ in range(200):
            connection.send(chunk(long))
        sent.set()
        for _ in range(50):
            assert again.acquire(timeout=10)
            connection.send(chunk("again"))
        connection.send(chunk("", '"stop"') + DONE)

    stream = open_stream(serve(answer))
    assert next(stream).choices[0].delta.content == "first"
    assert sent.wait(20)
    assert [len(next(stream).choices[0].delta.content or "") for _ in range(200)] == [len(long)] * 200
    for _ in range(50):
        again.release()
        assert next(stream).choices[0].delta.content == "again"
    assert [one.choices[0].finish_reason for one in stream] == ["stop"]


def after_a_call(go_on: Callable[[socket.socket], None]) -> Callable[[Connection], None]:
    """Answers a call, and passes the connection and the next request on it to `go_on`."""

    def handle(connection: Connection) -> None:
        body = b'{"id": "1", "choices": []}'
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        connection.send(head.encode() + body)
        go_on(connection._socket)

    return handle


def open_second(base_url: str, text: str = "x", **options: Any) -> Stream:
    """A stream over the connection of an earlier call."""
    client = Client(base_url, "key", max_retries=0, **options)
    client.chat.completions.create(model="m", messages=QUESTION)
    # Nothing drives the connections any more.
    time.sleep(0.1)
    message: Any = {"role": "user", "content": text}
    return client.chat.completions.create(model="m", messages=[message], stream=True)


def test_a_compressed_stream_over_a_reused_connection_is_decoded(serve: Serve) -> None:
    go_on = threading.Semaphore(0)

    def answer(accepted: socket.socket) -> None:
        connection = Connection(accepted)
        encoding = b"content-encoding: gzip\r\n"
        connection.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n" + encoding + b"\r\n")
        packer = zlib.compressobj(wbits=31)
        for event in (chunk("0"), chunk("1"), chunk("", '"stop"') + DONE):
            assert go_on.acquire(timeout=10)
            connection.send(packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH))
        connection.send(packer.flush())
        accepted.close()

    stream = open_second(serve(after_a_call(answer)), event_timeout=10.0)
    texts = []
    for _ in range(3):
        go_on.release()
        texts.append(next(stream).choices[0].delta.content)
    assert texts == ["0", "1", ""]
    assert list(stream) == []


def test_a_request_answered_early_is_sent_completely(serve: Serve) -> None:
    def answer(accepted: socket.socket) -> None:
        received = b""
        while b"\r\n\r\n" not in received:
            received += accepted.recv(65536)
        accepted.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        length = len(received.split(b"\r\n\r\n", 1)[1])
        while length < 20_000_000:
            length += len(accepted.recv(1_000_000))
        accepted.sendall(chunk("all") + chunk("", '"stop"') + DONE)
        accepted.close()

    stream = open_second(serve(after_a_call(answer)), "x" * 20_000_000, event_timeout=20.0)
    assert [one.choices[0].delta.content for one in stream] == ["all", ""]


def test_a_thread_whose_stream_another_takes_over_sleeps_until_notified(serve: Serve) -> None:
    server = PacketByPacket(2)
    stream: Any = open_stream(serve(server))
    errors: list[Exception] = []

    def read() -> None:
        try:
            list(stream)
        except gatewright.ConfigurationError as error:
            errors.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    time.sleep(0.2)
    documents: list[Any] = []
    whole = threading.Thread(target=lambda: documents.append(stream.get_final_completion()))
    whole.start()
    time.sleep(0.2)
    started = time.process_time()
    time.sleep(1)
    assert time.process_time() - started < 0.5, "somebody spins"
    server.go_on.release()
    whole.join(10)
    reader.join(10)
    assert documents[0].choices[0].message.content == "01"
    assert len(errors) == 1


def test_a_stream_over_a_reused_connection_is_read_ahead_without_its_thread(serve: Serve) -> None:
    sent = threading.Event()
    # More than the system buffers for a connection.
    long = "x" * 64 * 1024

    def answer(accepted: socket.socket) -> None:
        connection = Connection(accepted)
        connection.stream_head()
        connection.send(chunk("first"))
        for _ in range(200):
            connection.send(chunk(long))
        sent.set()
        connection.send(chunk("", '"stop"') + DONE)

    stream = open_second(serve(after_a_call(answer)))
    assert next(stream).choices[0].delta.content == "first"
    assert sent.wait(20)
    assert len(list(stream)) == 201


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[tuple[Callable[[Callable[[ssl.SSLSocket], None]], str], Path]]:
    """Starts a TLS server for one connection; returns its authority, too."""
    authority = trustme.CA()
    bundle = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(bundle))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    listener = socket.create_server(("127.0.0.1", 0))

    def start(handle: Callable[[ssl.SSLSocket], None]) -> str:
        def serve() -> None:
            accepted, _ = listener.accept()
            with context.wrap_socket(accepted, server_side=True) as connection:
                received = b""
                while b'"stream":true' not in received:
                    received += connection.recv(65536)
                handle(connection)

        threading.Thread(target=serve, daemon=True).start()
        return f"https://127.0.0.1:{listener.getsockname()[1]}"

    yield start, bundle
    listener.close()


@pytest.mark.parametrize("is_async", [False, True])
def test_watched_streams_behind_tls(
    secure: tuple[Callable[[Callable[[ssl.SSLSocket], None]], str], Path], is_async: bool
) -> None:
    start, bundle = secure
    go_on = threading.Semaphore(1)

    def answer(connection: ssl.SSLSocket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        for number in range(20):
            assert go_on.acquire(timeout=10)
            connection.sendall(chunk(str(number)))
        # More than fits into a record, and into a turn.
        connection.sendall(b"".join(chunk(str(number)) for number in range(20, 5000)))
        connection.sendall(chunk("", '"stop"') + DONE)

    base_url = start(answer)
    texts: list[str] = []
    if is_async:

        async def main() -> None:
            async for one in await open_async(base_url, ca_bundle=bundle):
                texts.append(one.choices[0].delta.content or "")
                go_on.release()

        asyncio.run(main())
    else:
        for one in open_stream(base_url, ca_bundle=bundle):
            texts.append(one.choices[0].delta.content or "")
            go_on.release()
    assert texts == [*map(str, range(5000)), ""]


class Lasting:
    """Answers each request of a connection with the length of its body, and counts connections."""

    def __init__(self, answers: int) -> None:
        self.answers = answers
        self.connections = 0

    def __call__(self, connection: Connection) -> None:
        self.connections += 1
        for _ in range(self.answers):
            body = f'{{"id": "{len(connection.body)}", "choices": []}}'.encode()
            head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            connection.send(head.encode() + body)
            connection = Connection(connection._socket)
        connection.wait_until_closed(10)


def test_long_and_short_requests_share_one_connection(serve: Serve) -> None:
    server = Lasting(6)
    client = Client(serve(server), "key", max_retries=0)
    for length in (1, 20_000_000, 1, 20_000_000, 1):
        message: Any = {"role": "user", "content": "x" * length}
        answer = client.chat.completions.create(model="m", messages=[message])
        assert int(answer.id) > length
    assert server.connections == 1


def test_a_timeout_applies_over_a_reused_connection(serve: Serve) -> None:
    server = Lasting(2)
    client = Client(serve(server), "key", max_retries=0)
    for _ in range(2):
        client.chat.completions.create(model="m", messages=QUESTION)
    with pytest.raises(gatewright.APITimeoutError):
        client.chat.completions.create(model="m", messages=QUESTION, timeout=0.3)
    assert server.connections == 1


def test_ctrl_c_ends_a_call_over_a_reused_connection(serve: Serve) -> None:
    server = Lasting(2)
    client = Client(serve(server), "key", max_retries=0)
    for _ in range(2):
        client.chat.completions.create(model="m", messages=QUESTION)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        client.chat.completions.create(model="m", messages=QUESTION, timeout=20)


def test_callbacks_may_make_calls_over_the_same_connections(serve: Serve) -> None:
    server = Lasting(100)
    inner = Client(serve(server), "key", max_retries=0)
    lengths: list[int] = []

    class Asking:
        def before(self, _attempt: Any) -> None:
            lengths.append(int(inner.chat.completions.create(model="m", messages=QUESTION).id))

        def after(self, _attempt: Any, _outcome: Any) -> None:
            lengths.append(int(inner.chat.completions.create(model="m", messages=QUESTION).id))

    outer = Client(inner.base_url, "key", max_retries=0, middleware=[Asking()])
    for _ in range(3):
        assert int(outer.chat.completions.create(model="m", messages=QUESTION).id) > 0
    assert len(lengths) == 6
    assert server.connections == 2


def test_many_threads_call_concurrently_over_reused_connections(gateway: Gateway) -> None:
    client = Client(gateway.base_url, gateway.key)
    answers: list[int] = []

    def ask() -> None:
        for _ in range(20):
            answers.append(len(client.models.list().data))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(answers) == 160


def test_the_call_that_opened_a_stream_does_not_keep_it_alive(serve: Serve) -> None:
    async def main() -> None:
        stream = await open_async(base_url)
        # The thread that opened it may still be finishing. The engine is not called meanwhile.
        await asyncio.sleep(0.1)
        assert not any(isinstance(one, asyncio.Future) for one in gc.get_referrers(stream._engine))
        await stream.close()

    base_url = serve(Hanging())
    asyncio.run(main())


def test_dropping_a_stream_during_an_exception_does_not_affect_it(serve: Serve) -> None:
    server = Hanging()

    async def main() -> None:
        stream = await open_async(base_url)
        await anext(stream)
        # The loop watches the connection from here on.
        waiting = stream._engine.readable(asyncio.get_running_loop())
        engines = [stream._engine]
        del stream._engine
        # The future that delivered the stream is freed at the end of its turn.
        await asyncio.sleep(0)
        with pytest.raises(ZeroDivisionError):
            # The interpreter frees the left operand while the exception is set.
            engines.pop() + 1 // 0  # type: ignore[operator]
        waiting.cancel()
        assert await asyncio.to_thread(server.closed.wait, 10)

    base_url = serve(server)
    asyncio.run(main())
