"""What drives the connections: the waiting thread, the keeper, or the thread of event loops (decision
0045)."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from typing import Any

import gatewright
import pytest
from conftest import Gateway
from gatewright import AsyncClient, Client

QUESTION: Any = [{"role": "user", "content": "Reply with exactly: one two three"}]


async def converse(client: AsyncClient) -> str:
    """A call, then a stream; returns the stream's text."""
    assert (await client.models.list()).data
    stream = await client.chat.completions.create(model="model-sol", messages=QUESTION, stream=True)
    return "".join([choice.delta.content or "" async for event in stream for choice in event.choices])


def test_short_lived_loops_share_connections(gateway: Gateway) -> None:
    client = AsyncClient(gateway.base_url, gateway.key)
    for _ in range(20):
        assert asyncio.run(converse(client)) == "one two three"


def test_consecutive_requests_of_a_loop_do_not_wait_for_the_keeper(gateway: Gateway) -> None:
    async def asynchronous() -> float:
        client = AsyncClient(gateway.base_url, gateway.key)
        await client.models.list()
        started = time.monotonic()
        for _ in range(200):
            await client.models.list()
        return time.monotonic() - started

    def synchronous() -> float:
        client = Client(gateway.base_url, gateway.key)
        client.models.list()
        started = time.monotonic()
        for _ in range(200):
            client.models.list()
        return time.monotonic() - started

    # If each call waited for the keeper's grace of 20 ms, the loop would take 4 s longer than a thread,
    # however busy the machine is.
    assert min(asyncio.run(asynchronous()) - 2 * synchronous() for _ in range(3)) < 2


def test_a_loop_works_alongside_waiting_threads_and_while_idle(gateway: Gateway) -> None:
    sync_client = Client(gateway.base_url, gateway.key)
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            sync_client.models.list()

    async def main() -> float:
        client = AsyncClient(gateway.base_url, gateway.key)
        started = time.monotonic()
        for _ in range(20):
            assert await converse(client) == "one two three"
            await asyncio.sleep(0.03)
        return time.monotonic() - started

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        assert asyncio.run(main()) < 15
    finally:
        stop.set()
        for thread in threads:
            thread.join(20)


async def test_timeouts_fire_while_a_loop_is_otherwise_idle() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        client = AsyncClient(f"http://127.0.0.1:{port}", "key", max_retries=0)
        started = time.monotonic()
        with pytest.raises(gatewright.APITimeoutError):
            await client.models.list(timeout=0.3)
        assert 0.29 < time.monotonic() - started < 3


def test_ctrl_c_reaches_a_blocked_call_without_affecting_a_concurrent_loop(gateway: Gateway) -> None:
    stop = threading.Event()
    answers = [0] * 8

    async def ask(client: AsyncClient, number: int) -> None:
        while not stop.is_set():
            await client.models.list()
            answers[number] += 1

    async def main() -> None:
        client = AsyncClient(gateway.base_url, gateway.key)
        await asyncio.gather(*(ask(client, number) for number in range(len(answers))))

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    try:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            client = Client(f"http://127.0.0.1:{silent.getsockname()[1]}", "key", max_retries=0)
            for _ in range(8):
                interrupt = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
                interrupt.start()
                with pytest.raises(KeyboardInterrupt):
                    client.models.list(timeout=10)
        before = list(answers)
        deadline = time.monotonic() + 10
        while not all(now > then for now, then in zip(answers, before, strict=True)):
            assert time.monotonic() < deadline, f"{before} answers, then {answers}: a task stands still"
            time.sleep(0.01)
    finally:
        stop.set()
        thread.join(20)
    assert not thread.is_alive()


def test_a_slow_callback_blocks_no_other_thread(gateway: Gateway) -> None:
    entered, leave = threading.Event(), threading.Event()

    class Slow:
        def before(self, _attempt: Any) -> None:
            entered.set()
            assert leave.wait(20)

    slow = Client(gateway.base_url, gateway.key, middleware=[Slow()])
    thread = threading.Thread(target=slow.models.list)
    thread.start()
    assert entered.wait(10)
    try:
        assert Client(gateway.base_url, gateway.key).models.list().data
    finally:
        leave.set()
        thread.join(20)
