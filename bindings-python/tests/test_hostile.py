"""Numbers from callers and gateways that no clock can represent, and silence: each ends as an error of its
call (2.7, 3; the rest is ours)."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Callable
from typing import Any

import gatewright
import pytest
from conftest import Connection, Gateway
from gatewright import AsyncClient, Client

Serve = Callable[[Callable[[Connection], None]], str]

MESSAGES: list[gatewright.types.ChatMessageParam] = [{"role": "user", "content": "Hi"}]
CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'
TASK = {"id": "t1", "status": "processing", "created": 1, "model": "m"}


# Numbers.


@pytest.mark.parametrize(
    "retry_after", ["10000000000000000000", "18446744073709551615", "1e300", "NaN", "-1"]
)
def test_a_wait_survives_any_retry_after(serve: Serve, retry_after: str) -> None:
    def gateway() -> str:
        left = [json.dumps(TASK).encode()]

        def handle(connection: Connection) -> None:
            if left:
                connection.answer(left.pop())
            else:
                connection.answer(b"{}", "429 X", f"retry-after: {retry_after}")

        return serve(handle)

    async def wait() -> None:
        async with AsyncClient(gateway(), "key", max_retries=0) as client:
            await client.videos.generations.wait("t1", interval=0.01, timeout=0.3)

    with Client(gateway(), "key", max_retries=0) as client, pytest.raises(gatewright.APITimeoutError):
        client.videos.generations.wait("t1", interval=0.01, timeout=0.3)
    with pytest.raises(gatewright.APITimeoutError):
        asyncio.run(asyncio.wait_for(wait(), 10))


OPTIONS = [
    "timeout",
    "connect_timeout",
    "first_byte_timeout",
    "idle_timeout",
    "event_timeout",
    "pool_timeout",
    "idle_connection_timeout",
]


@pytest.mark.parametrize("name", OPTIONS)
def test_an_invalid_time_is_rejected_by_name(name: str) -> None:
    def make(value: object) -> Client:
        arguments: dict[str, Any] = {name: value}
        return Client("http://127.0.0.1:1", "key", **arguments)

    for wrong in (math.nan, -math.inf, -1, 0, -1e300, -(10**400)):
        with pytest.raises(ValueError, match=f"^{name} must be a number of seconds above 0, not "):
            make(wrong)
    with pytest.raises(ValueError, match=f"^{name} must be a number of seconds"):
        make(10**400)
    with pytest.raises(TypeError, match=f"^{name} must be a number of seconds, not str"):
        make("3")


@pytest.mark.parametrize("name", ["max_retries", "max_body_bytes", "max_connections", "max_idle_connections"])
def test_an_invalid_count_is_rejected_by_name(name: str) -> None:
    for wrong, kind in ((-1, ValueError), (2**70, ValueError), (1.5, TypeError), ("3", TypeError)):
        arguments: dict[str, Any] = {name: wrong}
        with pytest.raises(kind, match=f"^{name} must be a whole number from 0"):
            Client("http://127.0.0.1:1", "key", **arguments)


@pytest.mark.parametrize("long", [math.inf, 1e22, 1e308, 10**300])
def test_a_huge_time_means_no_limit(gateway: Gateway, serve: Serve, long: float) -> None:
    times: dict[str, Any] = dict.fromkeys(OPTIONS, long)
    with Client(gateway.base_url, gateway.key, **times) as client:
        assert client.models.list(timeout=long).data
        completion = client.chat.completions.create(
            model="model-sol", messages=MESSAGES, stream=True, timeout=long, idle_timeout=long
        )
        assert completion.get_final_completion().choices
    done = json.dumps({**TASK, "status": "completed"}).encode()
    with Client(serve(lambda connection: connection.answer(done)), "key") as client:
        assert client.videos.generations.wait("t1", interval=long, timeout=long).status == "completed"


def test_invalid_times_for_waiting_and_saving_are_rejected_by_name() -> None:
    client = Client("http://127.0.0.1:1", "key")
    for wrong in (math.nan, -1.0, 0.0):
        with pytest.raises(ValueError, match=r"^interval must be a number of seconds above 0"):
            client.videos.generations.wait("t1", interval=wrong)
        with pytest.raises(ValueError, match=r"^timeout must be a number of seconds above 0"):
            client.videos.generations.wait("t1", timeout=wrong)
        with pytest.raises(ValueError, match=r"^timeout must be a number of seconds above 0"):
            client.videos.generations.save(TASK, "x", timeout=wrong)


# Silence.


def hang_after_an_event(connection: Connection) -> None:
    connection.stream_head()
    connection.send(CHUNK)
    connection.wait_until_closed(30)


def test_the_timeout_bounds_the_silence_of_a_stream_unless_idle_timeout_is_given(serve: Serve) -> None:
    url = serve(hang_after_an_event)

    def silence(client: Client, **options: Any) -> float:
        stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True, **options)
        assert next(stream).choices[0].delta.content == "a"
        started = time.monotonic()
        with pytest.raises(gatewright.APITimeoutError) as caught:
            next(stream)
        assert caught.value.partial is not None
        errors.append(str(caught.value))
        return time.monotonic() - started

    errors: list[str] = []
    with Client(url, "key") as client:
        assert silence(client, timeout=0.4) < 10
        assert "(timeout)" in errors[-1]
        # The more specific option, for silence, wins, whether it is shorter or longer.
        assert silence(client, timeout=0.2, idle_timeout=1.2) > 1
        assert "(idle_timeout)" in errors[-1]
        assert silence(client.with_options(idle_timeout=0.3), timeout=60) < 10
    with Client(url, "key", timeout=0.4) as client:
        assert silence(client) < 10
    with Client(url, "key", timeout=0.2, idle_timeout=1.2) as client:
        assert silence(client) > 1
