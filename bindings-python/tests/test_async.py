"""The async client: coroutines, cancellation, several loops."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
import time
import weakref
from collections.abc import Callable

import gatewright
import pytest
from conftest import Connection, Gateway
from gatewright import AsyncClient


async def test_calls_run_at_once(gateway: Gateway) -> None:
    async with AsyncClient(gateway.base_url, gateway.key) as client:
        calls = [
            asyncio.create_task(
                client.chat.completions.create(
                    model="model-sol", messages=[{"role": "user", "content": f"Reply with exactly: {number}"}]
                )
            )
            for number in range(20)
        ]
        answers = [answer.choices[0].message.content for answer in await asyncio.gather(*calls)]
    assert answers == [str(number) for number in range(20)]


def test_methods_are_coroutine_functions() -> None:
    client = AsyncClient("http://127.0.0.1:9", "key")
    assert inspect.iscoroutinefunction(client.chat.completions.create)
    assert inspect.iscoroutinefunction(client.videos.generations.wait)


async def test_errors_are_raised_at_the_await(gateway: Gateway) -> None:
    client = AsyncClient(gateway.base_url, gateway.key)
    with pytest.raises(gatewright.NotFoundError) as caught:
        await client.chat.completions.create(model="nope", messages=[{"role": "user", "content": "x"}])
    assert caught.value.code == "model_not_found"
    with pytest.raises(ValueError, match="JSON cannot represent NaN"):
        await client.models.list(extra_body={"x": float("nan")})


async def test_wait_returns_completed_videos(gateway: Gateway) -> None:
    async with AsyncClient(gateway.base_url, gateway.key) as client:
        task = await client.videos.generations.create_and_wait(
            model="video_model_1", prompt="waves", duration=3, interval=0.05
        )
    assert task.status == "completed"


async def test_canceling_a_task_ends_the_request(
    serve: Callable[[Callable[[Connection], None]], str],
) -> None:
    started, closed = threading.Event(), threading.Event()

    def hang(connection: Connection) -> None:
        started.set()
        if connection.wait_until_closed(10):
            closed.set()

    client = AsyncClient(serve(hang), "key", max_retries=0)
    call = asyncio.create_task(client.models.list())
    assert await asyncio.to_thread(started.wait, 5)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await asyncio.to_thread(closed.wait, 2)


async def test_concurrent_calls_get_responses_and_errors_while_some_are_canceled(gateway: Gateway) -> None:
    async def ask(number: int) -> str:
        model = "nope" if number % 7 == 3 else "model-sol"
        messages = [{"role": "user", "content": f"Reply with exactly: {number}"}]
        answer = await client.chat.completions.create(model=model, messages=messages)
        if number % 11 == 0:
            raise LookupError(str(number))
        return str(answer.choices[0].message.content)

    async with AsyncClient(gateway.base_url, gateway.key) as client:
        for _ in range(5):
            calls = [asyncio.create_task(ask(number)) for number in range(100)]
            await asyncio.sleep(0.005)
            left = {number for number, task in enumerate(calls) if number % 5 == 1 and task.cancel()}
            outcomes = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 30)
            for number, outcome in enumerate(outcomes):
                if number in left:
                    assert isinstance(outcome, asyncio.CancelledError)
                elif number % 7 == 3:
                    assert isinstance(outcome, gatewright.NotFoundError)
                elif number % 11 == 0:
                    assert isinstance(outcome, LookupError)
                else:
                    assert outcome == str(number)


def test_one_client_serves_several_loops_one_after_another_and_at_once(gateway: Gateway) -> None:
    client = AsyncClient(gateway.base_url, gateway.key)

    async def ask() -> int:
        return len((await client.models.list()).data)

    counts = [asyncio.run(ask()), asyncio.run(ask())]
    threads = [threading.Thread(target=lambda: counts.append(asyncio.run(ask()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(counts) == 6
    assert len(set(counts)) == 1


def test_closing_a_loop_during_a_call_leaves_the_client_usable(
    serve: Callable[[Callable[[Connection], None]], str],
) -> None:
    release = threading.Event()

    def slow(connection: Connection) -> None:
        release.wait(5)
        connection.answer(b"{}")

    client = AsyncClient(serve(slow), "key")

    async def abandon() -> None:
        abandoned = asyncio.create_task(client.models.list())
        await asyncio.sleep(0.1)
        assert not abandoned.done()

    asyncio.run(abandon())
    release.set()

    async def ask() -> gatewright.Record:
        return await client.models.list()

    assert asyncio.run(ask()) == {}


def test_a_loop_closed_before_its_response_is_freed(
    serve: Callable[[Callable[[Connection], None]], str],
) -> None:
    def answer(connection: Connection) -> None:
        connection.answer(b"{}")

    client = AsyncClient(serve(answer), "key")

    async def begin() -> None:
        nothing = (None, None, None)
        running = asyncio.get_running_loop()
        ended.append(client._engine.call_async("list_models", nothing, None, {}, running))

    ended: list[object] = []
    event_loop = asyncio.new_event_loop()
    event_loop.run_until_complete(begin())
    # The response arrives while the loop is not running.
    time.sleep(0.5)
    event_loop.close()
    alive = weakref.ref(event_loop)
    ended.clear()
    del event_loop
    gc.collect()
    assert alive() is None


async def test_a_loop_that_times_out_closes_its_connection_while_the_exception_lives(
    serve: Callable[[Callable[[Connection], None]], str],
) -> None:
    closed = threading.Event()

    def answer(connection: Connection) -> None:
        connection.stream_head()
        connection.send(b'data: {"choices": [{"index": 0, "delta": {"content": "x"}}]}\n\n')
        if connection.wait_until_closed(10):
            closed.set()

    async with AsyncClient(serve(answer), "key", max_retries=0) as client:
        stream = await client.chat.completions.create(model="m", messages=[], stream=True)

        async def read() -> None:
            async for _ in stream:
                pass

        try:
            await asyncio.wait_for(read(), 0.3)
        except asyncio.TimeoutError:
            assert await asyncio.to_thread(closed.wait, 5)
        else:
            raise AssertionError("it ended")
