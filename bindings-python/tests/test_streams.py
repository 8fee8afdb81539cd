"""Streams, sync and async: complete, closed when abandoned, errors after the events that came before."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Iterator

import gatewright
import pytest
from conftest import Connection, Gateway
from gatewright import AsyncClient, Client

Serve = Callable[[Callable[[Connection], None]], str]


def chunk(text: str, finish: str = "null") -> bytes:
    choice = f'{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":{finish}}}'
    return f'data: {{"id":"c","object":"chat.completion.chunk","choices":[{choice}]}}\n\n'.encode()


class Endless:
    """An endless stream, and whether its reader has disconnected."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def __call__(self, connection: Connection) -> None:
        connection.stream_head()
        connection.send(chunk("first") + chunk("second"))
        if connection.wait_until_closed(10):
            self.closed.set()


def open_stream(base_url: str) -> gatewright.Stream[gatewright.types.ChatCompletionChunk]:
    client = Client(base_url, "key", max_retries=0)
    return client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}], stream=True)


def test_chat_stream(client: Client) -> None:
    stream = client.chat.completions.create(
        model="model-sol", messages=[{"role": "user", "content": "Tell me about rivers."}], stream=True
    )
    with stream:
        chunks = list(stream)
    assert len(chunks) > 5
    assert "rivers" in "".join(choice.delta.content or "" for one in chunks for choice in one.choices)
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert stream.response.status_code == 200
    assert stream.response.request_id is not None
    assert next(stream, None) is None


def test_responses_and_native_streams(client: Client) -> None:
    names = [event.type for event in client.responses.create(model="model-sol", input="hello", stream=True)]
    assert (names[0], names[-1]) == ("response.created", "response.completed")
    events = client.native.stream_generate_content("model-sol", contents=[{"parts": [{"text": "hello"}]}])
    assert "".join(
        part.text or ""
        for event in events
        for c in event.candidates or []
        if c.content
        for part in c.content.parts
    )


def test_events_arrive_as_they_are_sent(serve: Serve) -> None:
    more = threading.Event()

    def answer(connection: Connection) -> None:
        connection.stream_head()
        connection.send(chunk("one"))
        assert more.wait(5)
        connection.send(chunk("two", '"stop"') + b"data: [DONE]\n\n")

    stream = open_stream(serve(answer))
    assert next(stream).choices[0].delta.content == "one"
    more.set()
    assert [one.choices[0].delta.content for one in stream] == ["two"]


def leave_by_break(stream: gatewright.Stream[gatewright.types.ChatCompletionChunk]) -> None:
    for _ in stream:
        break


def leave_by_exception(stream: gatewright.Stream[gatewright.types.ChatCompletionChunk]) -> None:
    try:
        for _ in stream:
            raise LookupError
    except LookupError:
        pass


def leave_by_with(stream: gatewright.Stream[gatewright.types.ChatCompletionChunk]) -> None:
    with stream:
        next(stream)


def leave_by_close(stream: gatewright.Stream[gatewright.types.ChatCompletionChunk]) -> None:
    next(stream)
    stream.close()
    assert next(stream, None) is None


@pytest.mark.parametrize("leave", [leave_by_break, leave_by_exception, leave_by_with, leave_by_close])
def test_leaving_a_stream_closes_the_connection(
    serve: Serve, leave: Callable[[gatewright.Stream[gatewright.types.ChatCompletionChunk]], None]
) -> None:
    endless = Endless()
    stream = open_stream(serve(endless))
    leave(stream)
    # The stream itself is still referenced: leaving the loop closes it.
    assert endless.closed.wait(2)
    with pytest.raises(gatewright.ConfigurationError, match="closed"):
        list(stream)


def test_dropping_a_stream_closes_the_connection(serve: Serve) -> None:
    endless = Endless()
    stream = open_stream(serve(endless))
    next(stream)
    del stream
    gc.collect()
    assert endless.closed.wait(2)


def test_closing_from_another_thread_ends_a_waiting_loop(serve: Serve) -> None:
    stream = open_stream(serve(Endless()))
    threading.Timer(0.2, stream.close).start()
    started = time.monotonic()
    assert len(list(stream)) == 2
    assert time.monotonic() - started < 2


def test_a_truncated_stream_raises_after_its_events(serve: Serve) -> None:
    def answer(connection: Connection) -> None:
        connection.stream_head()
        connection.send(chunk("one") + chunk("two"))

    received: list[str | None] = []
    stream = open_stream(serve(answer))
    with pytest.raises(gatewright.StreamTruncatedError) as caught:
        received.extend(one.choices[0].delta.content for one in iter_all(stream, received))
    assert received == ["one", "two"]
    assert caught.value.request_id == "req_stream"
    assert caught.value.operation == "create_chat_completion"
    with pytest.raises(StopIteration):
        next(stream)


def iter_all(
    stream: gatewright.Stream[gatewright.types.ChatCompletionChunk], received: list[str | None]
) -> Iterator[gatewright.types.ChatCompletionChunk]:
    """Records each text before the stream continues, so that it is known when the stream raises."""
    for one in stream:
        received.append(one.choices[0].delta.content)
    yield from ()


def test_an_error_event_in_the_stream_is_raised(serve: Serve) -> None:
    def answer(connection: Connection) -> None:
        connection.stream_head()
        connection.send(
            chunk("one") + b'data: {"error":{"message":"overloaded","code":"server_is_overloaded"}}\n\n'
        )

    stream = open_stream(serve(answer))
    assert next(stream).choices[0].delta.content == "one"
    with pytest.raises(gatewright.StreamError, match="overloaded") as caught:
        next(stream)
    assert caught.value.code == "server_is_overloaded"


def test_an_error_before_the_stream_raises_from_the_call(client: Client) -> None:
    with pytest.raises(gatewright.NotFoundError):
        client.chat.completions.create(model="nope", messages=[{"role": "user", "content": "x"}], stream=True)


def test_a_slow_reader_stops_the_sender_and_loses_nothing(serve: Serve) -> None:
    total = 20_000

    def answer(connection: Connection) -> None:
        connection.stream_head()
        for number in range(total):
            connection.send(chunk(str(number)))
        connection.send(chunk("", '"stop"') + b"data: [DONE]\n\n")

    stream = open_stream(serve(answer))
    first = next(stream)
    time.sleep(0.3)
    texts = [one.choices[0].delta.content for one in [first, *stream]]
    assert texts == [*map(str, range(total)), ""]


# The same, async.


async def open_async(base_url: str) -> gatewright.AsyncStream[gatewright.types.ChatCompletionChunk]:
    client = AsyncClient(base_url, "key", max_retries=0)
    return await client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "x"}], stream=True
    )


async def test_async_stream(gateway: Gateway) -> None:
    async with AsyncClient(gateway.base_url, gateway.key) as client:
        stream = await client.chat.completions.create(
            model="model-sol", messages=[{"role": "user", "content": "Tell me about rivers."}], stream=True
        )
        async with stream:
            texts = [choice.delta.content or "" async for one in stream for choice in one.choices]
        assert "rivers" in "".join(texts)
        native = await client.native.stream_generate_content(
            "model-sol", contents=[{"parts": [{"text": "hello"}]}]
        )
        assert [event async for event in native]


async def test_breaking_out_of_an_async_stream_closes_the_connection(serve: Serve) -> None:
    endless = Endless()
    stream = await open_async(serve(endless))
    async for _ in stream:
        break
    assert await asyncio.to_thread(endless.closed.wait, 2)
    with pytest.raises(gatewright.ConfigurationError, match="left early"):
        [one async for one in stream]


async def test_a_timed_out_wait_loses_no_event(serve: Serve) -> None:
    more = threading.Event()

    def answer(connection: Connection) -> None:
        connection.stream_head()
        connection.send(chunk("one"))
        assert more.wait(5)
        connection.send(chunk("two", '"stop"') + b"data: [DONE]\n\n")

    stream = await open_async(serve(answer))
    assert (await anext(stream)).choices[0].delta.content == "one"
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(anext(stream), 0.1)
    more.set()
    assert (await anext(stream)).choices[0].delta.content == "two"
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_a_truncated_async_stream_raises_after_its_events(serve: Serve) -> None:
    def answer(connection: Connection) -> None:
        connection.stream_head()
        connection.send(chunk("one"))

    stream = await open_async(serve(answer))
    assert (await anext(stream)).choices[0].delta.content == "one"
    with pytest.raises(gatewright.StreamTruncatedError):
        await anext(stream)


async def test_canceling_a_reader_and_closing_ends_the_connection(serve: Serve) -> None:
    endless = Endless()

    reading = asyncio.Event()

    async def read() -> None:
        async for _ in await open_async(base_url):
            reading.set()

    base_url = serve(endless)
    reader = asyncio.create_task(read())
    await asyncio.wait_for(reading.wait(), 10)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert await asyncio.to_thread(endless.closed.wait, 2)
