"""Event loops: uvloop, anyio on asyncio, several at once; rejecting trio; cancellation as servers see it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
import trio
import uvloop
from conftest import Connection, Gateway
from gatewright import AsyncClient, Client

Serve = Callable[[Callable[[Connection], None]], str]

QUESTION: Any = [{"role": "user", "content": "Reply with exactly: one two three"}]


class Hanging:
    """Sends nothing, or starts a stream and falls silent; signals when the client has disconnected."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.closed = threading.Event()

    def __call__(self, connection: Connection) -> None:
        if b'"stream":true' in connection.body:
            connection.stream_head()
            connection.send(b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n')
        self.started.set()
        if connection.wait_until_closed(10):
            self.closed.set()


async def converse(client: AsyncClient) -> str:
    """A call, then a stream; returns the stream's text."""
    assert (await client.models.list()).data
    stream = await client.chat.completions.create(model="model-sol", messages=QUESTION, stream=True)
    return "".join([choice.delta.content or "" async for event in stream for choice in event.choices])


def test_uvloop(gateway: Gateway) -> None:
    assert uvloop.run(converse(AsyncClient(gateway.base_url, gateway.key))) == "one two three"


@pytest.mark.parametrize("use_uvloop", [False, True])
def test_anyio_on_asyncio(gateway: Gateway, use_uvloop: bool) -> None:
    texts: list[str] = []

    async def ask(client: AsyncClient) -> None:
        texts.append(await converse(client))

    async def main() -> None:
        async with AsyncClient(gateway.base_url, gateway.key) as client, anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(ask, client)

    anyio.run(main, backend="asyncio", backend_options={"use_uvloop": use_uvloop})
    assert texts == ["one two three"] * 5


async def hanging_call(client: AsyncClient) -> None:
    await client.models.list()


async def hanging_stream(client: AsyncClient) -> None:
    stream = await client.chat.completions.create(model="m", messages=QUESTION, stream=True)
    async for _ in stream:
        pass


async def hanging_document(client: AsyncClient) -> None:
    stream = await client.chat.completions.create(model="m", messages=QUESTION, stream=True)
    async with stream:
        await stream.get_final_completion()


HANGING = [hanging_call, hanging_stream, hanging_document]


@pytest.mark.parametrize("hang", HANGING)
def test_canceling_an_asyncio_task_closes_its_connection(
    serve: Serve, hang: Callable[[AsyncClient], Awaitable[None]]
) -> None:
    server = Hanging()

    async def main() -> None:
        task = asyncio.ensure_future(hang(AsyncClient(base_url, "key", max_retries=0)))
        assert await asyncio.to_thread(server.started.wait, 5)
        await asyncio.sleep(0.1)
        assert not server.closed.is_set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.closed.wait, 2)

    base_url = serve(server)
    asyncio.run(main())


@pytest.mark.parametrize("hang", HANGING)
def test_a_cancel_scope_of_anyio_closes_the_connection(
    serve: Serve, hang: Callable[[AsyncClient], Awaitable[None]]
) -> None:
    server = Hanging()

    async def main() -> None:
        with anyio.move_on_after(0.3) as scope:
            await hang(AsyncClient(base_url, "key", max_retries=0))
        assert scope.cancelled_caught
        assert await anyio.to_thread.run_sync(server.closed.wait, 2)

    base_url = serve(server)
    anyio.run(main)


def test_trio_is_rejected_with_advice(gateway: Gateway) -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match=r"under trio use Client in a thread.*to_thread\.run_sync"):
            await AsyncClient(gateway.base_url, gateway.key).models.list()

    trio.run(main)


def test_the_advice_for_trio_works(gateway: Gateway) -> None:
    async def main() -> int:
        client = Client(gateway.base_url, gateway.key)
        return len((await trio.to_thread.run_sync(client.models.list)).data)

    assert trio.run(main) > 0


def test_a_missing_loop_is_rejected_too(gateway: Gateway) -> None:
    call = AsyncClient(gateway.base_url, gateway.key).models.list()
    with pytest.raises(RuntimeError, match="no asyncio event loop running"):
        call.send(None)


def test_streams_of_one_client_run_on_several_loops_and_threads_at_once(gateway: Gateway) -> None:
    shared, shared_async = (
        Client(gateway.base_url, gateway.key),
        AsyncClient(gateway.base_url, gateway.key),
    )
    texts: list[str] = []

    def read() -> None:
        stream = shared.chat.completions.create(model="model-sol", messages=QUESTION, stream=True)
        texts.append("".join(stream.text()))

    async def several() -> list[str]:
        return list(await asyncio.gather(*(converse(shared_async) for _ in range(5))))

    def read_async() -> None:
        texts.extend(asyncio.run(several()))

    threads = [threading.Thread(target=target) for target in (read, read_async) * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert texts == ["one two three"] * 24


def test_several_threads_read_a_stream_and_get_each_event_once(serve: Serve) -> None:
    total = 3000

    def answer(connection: Connection) -> None:
        connection.stream_head()
        for number in range(total):
            choice = f'{{"index":0,"delta":{{"content":"{number}"}},"finish_reason":null}}'
            connection.send(f'data: {{"choices":[{choice}]}}\n\n'.encode())
        connection.send(b"data: [DONE]\n\n")

    client = Client(serve(answer), "key", max_retries=0)
    stream = client.chat.completions.create(model="m", messages=QUESTION, stream=True)
    seen: list[int] = []

    def read() -> None:
        while (event := next(stream, None)) is not None:
            seen.append(int(event.choices[0].delta.content or ""))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(seen) == list(range(total))
