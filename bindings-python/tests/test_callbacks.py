"""The caller's code during a call: middleware, and a callable instead of the key."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import json
import threading
import time
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import gatewright
import pytest
from conftest import Connection, Gateway
from gatewright import AsyncClient, Client, ConfigurationError
from gatewright.middleware import Attempt, Middleware, Outcome

Serve = Callable[[Callable[[Connection], None]], str]


def keys(heads: list[str]) -> list[str]:
    return [
        line.removeprefix("authorization: Bearer ")
        for head in heads
        for line in head.split("\r\n")
        if line.startswith("authorization")
    ]


class Locked:
    """A gateway that accepts only one key."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.heads: list[str] = []

    def __call__(self, connection: Connection) -> None:
        self.heads.append(connection.head)
        if keys([connection.head]) == [self.key]:
            connection.answer(b"{}")
        else:
            connection.answer(b'{"error":{"message":"no","code":"invalid_api_key"}}', "401 X")


# The key.


def test_a_key_callable_is_called_for_each_call(serve: Serve) -> None:
    numbers = iter("123")
    locked = Locked("key-2")
    client = Client(serve(locked), lambda: f"key-{next(numbers)}", max_retries=0)
    # The first key is rejected, and requested again once.
    client.models.list()
    with pytest.raises(StopIteration):
        client.models.list()
    assert keys(locked.heads) == ["key-1", "key-2", "key-3"]


def test_a_rejected_key_is_refreshed_once(serve: Serve) -> None:
    refreshes: list[bool] = []

    def provide(*, refresh: bool) -> str:
        refreshes.append(refresh)
        return "new" if refresh else "old"

    locked = Locked("new")
    client = Client(serve(locked), provide, max_retries=0)
    assert client.models.list() == {}
    assert refreshes == [False, True]
    locked.key = "another"
    with pytest.raises(gatewright.AuthenticationError):
        client.models.list()
    assert refreshes == [False, True] * 2
    assert keys(locked.heads) == ["old", "new"] * 2


async def test_an_async_client_takes_coroutine_functions_and_plain_ones(serve: Serve) -> None:
    async def provide(refresh: bool) -> str:
        await asyncio.sleep(0.01)
        return "new" if refresh else "old"

    client = AsyncClient(serve(Locked("new")), provide, max_retries=0)
    assert await client.models.list() == {}
    client = AsyncClient(serve(Locked("plain")), lambda: "plain", max_retries=0)
    assert await client.models.list() == {}


def test_a_sync_client_rejects_a_coroutine_function_as_key(serve: Serve) -> None:
    async def provide() -> str:
        return "key"

    with pytest.raises(TypeError, match="use AsyncClient for coroutine functions"):
        Client(serve(Locked("key")), provide).models.list()


@pytest.mark.parametrize("answer", [None, 5, b"bytes"])
def test_a_key_callable_must_return_text(serve: Serve, answer: Any) -> None:
    with pytest.raises(TypeError, match="api_key"):
        Client(serve(Locked("key")), lambda: answer).models.list()


def test_a_key_must_be_text_or_callable() -> None:
    with pytest.raises(TypeError, match="api_key must be a string or a callable, not int"):
        Client("http://127.0.0.1:9", 5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# Middleware.


class Notes(Middleware):
    """Records what it sees."""

    def __init__(self, name: str = "notes", log: list[Any] | None = None) -> None:
        self.name = name
        self.log: list[Any] = [] if log is None else log

    def before(self, attempt: Attempt) -> None:
        attempt.headers["x-attempt"] = f"{self.name}-{attempt.number}"
        self.log.append((self.name, "before", attempt.number))

    def after(self, attempt: Attempt, outcome: Outcome) -> None:
        self.log.append((self.name, "after", attempt.number, outcome.status_code))


def test_middleware_runs_around_each_attempt_outermost_first(serve: Serve) -> None:
    heads: list[str] = []

    def answer(connection: Connection) -> None:
        heads.append(connection.head)
        if len(heads) == 1:
            connection.answer(b"{}", "503 X", "retry-after-ms: 1")
        else:
            connection.answer(b"{}")

    log: list[Any] = []
    client = Client(serve(answer), "key", middleware=[Notes("outer", log), Notes("inner", log)])
    assert client.models.list() == {}
    assert log == [
        ("outer", "before", 1),
        ("inner", "before", 1),
        ("inner", "after", 1, 503),
        ("outer", "after", 1, 503),
        ("outer", "before", 2),
        ("inner", "before", 2),
        ("inner", "after", 2, 200),
        ("outer", "after", 2, 200),
    ]
    assert ["x-attempt: inner-1" in heads[0], "x-attempt: inner-2" in heads[1]] == [True, True]


class Inspecting(Middleware):
    """Stores the last attempt and outcome, and an attribute of its own on the attempt."""

    def before(self, attempt: Attempt) -> None:
        attempt.began = time.monotonic()
        del attempt.headers["user-agent"]
        self.attempt = attempt

    def after(self, attempt: Attempt, outcome: Outcome) -> None:
        assert attempt is self.attempt
        assert attempt.began <= time.monotonic()
        self.outcome = outcome


def test_an_attempt_and_its_outcome_describe_everything(serve: Serve) -> None:
    heads: list[str] = []

    def answer(connection: Connection) -> None:
        heads.append(connection.head)
        connection.answer(
            b'{"error":{"message":"no"}}', "400 X", "x-request-id: req_7\r\nx-part: a\r\nx-part: b"
        )

    seen = Inspecting()
    client = Client(serve(answer), "sk-canary", middleware=[seen], max_retries=3)
    with pytest.raises(gatewright.BadRequestError):
        client.images.generate(model="m", prompt="p", extra_query={"token": "canary"})
    attempt, outcome = seen.attempt, seen.outcome
    assert (attempt.operation, attempt.number, attempt.max_retries) == ("create_image", 1, 3)
    assert attempt.method == "POST"
    assert attempt.url.endswith("/v1/images/generations?token=canary")
    assert 0 < attempt.remaining <= 600
    assert json.loads(attempt.body or b"") == {"model": "m", "prompt": "p"}
    assert attempt.headers["authorization"] == "Bearer sk-canary"
    assert "canary" not in repr(attempt) + repr(outcome)
    assert "user-agent" not in heads[0].lower()
    assert (outcome.status_code, outcome.request_id) == (400, "req_7")
    assert outcome.headers is not None
    assert outcome.headers["x-part"] == "a, b"
    assert outcome.body == b'{"error":{"message":"no"}}'
    assert isinstance(outcome.error, gatewright.BadRequestError)
    assert 0 < outcome.elapsed < 10


def test_middleware_sees_connection_failures_and_stream_heads(gateway: Gateway) -> None:
    seen = Inspecting()
    with pytest.raises(gatewright.APIConnectionError):
        Client("http://127.0.0.1:9", "key", middleware=[seen], max_retries=0).models.list()
    assert seen.outcome.status_code is None
    assert isinstance(seen.outcome.error, gatewright.APIConnectionError)
    client = Client(gateway.base_url, gateway.key, middleware=[seen])
    question: Any = [{"role": "user", "content": "hi"}]
    with client.chat.completions.create(model="model-sol", messages=question, stream=True):
        assert seen.outcome.status_code == 200
        assert seen.outcome.body is None


class Raising:
    """Raises the given exception at the given point."""

    def __init__(self, where: str, error: BaseException) -> None:
        self.where = where
        self.error = error

    def before(self, attempt: Attempt) -> None:
        if self.where == "before":
            raise self.error

    def after(self, attempt: Attempt, outcome: Outcome) -> None:
        if self.where == "after":
            raise self.error


ERRORS = [LookupError("own"), StopIteration(3), gatewright.RateLimitError("own limit"), KeyboardInterrupt()]


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_middleware_exceptions_reach_the_caller_unchanged(
    gateway: Gateway, where: str, error: BaseException
) -> None:
    notes = Notes()
    client = Client(gateway.base_url, gateway.key, middleware=[notes, Raising(where, error)])
    with pytest.raises(type(error)) as caught:
        client.models.list()
    assert caught.value is error
    # One attempt, whatever was raised; the middleware that ran before is notified.
    assert [entry[1] for entry in notes.log] == ["before", "after"]


@pytest.mark.parametrize("where", ["before", "after"])
async def test_async_middleware_exceptions_reach_the_caller_unchanged(gateway: Gateway, where: str) -> None:
    own = LookupError("own")
    client = AsyncClient(gateway.base_url, gateway.key, middleware=[Raising(where, own)])
    with pytest.raises(LookupError) as caught:
        await client.models.list()
    assert caught.value is own
    # A future accepts no StopIteration; the call must end anyway.
    client = AsyncClient(gateway.base_url, gateway.key, middleware=[Raising(where, StopIteration(3))])
    with pytest.raises((TypeError, RuntimeError), match="StopIteration"):
        await client.models.list()


def test_a_callback_exception_retains_its_traceback(gateway: Gateway) -> None:
    client = Client(gateway.base_url, gateway.key, middleware=[Raising("before", LookupError())])
    with pytest.raises(LookupError) as caught:
        client.models.list()
    assert [entry.name for entry in caught.traceback][-1] == "before"


def test_middleware_without_either_method_is_rejected() -> None:
    with pytest.raises(TypeError, match="str has neither"):
        Client("http://127.0.0.1:9", "key", middleware=["x"])  # type: ignore[list-item]  # pyright: ignore


def test_an_invalid_header_is_rejected(gateway: Gateway) -> None:
    class Bad(Middleware):
        def before(self, attempt: Attempt) -> None:
            attempt.headers["x-a"] = "line\nbreak"

    with pytest.raises(ConfigurationError, match="x-a"):
        Client(gateway.base_url, gateway.key, middleware=[Bad()]).models.list()


def test_a_header_in_another_case_replaces_the_existing_one(gateway: Gateway) -> None:
    class Other(Middleware):
        def before(self, attempt: Attempt) -> None:
            attempt.headers["Authorization"] = "Bearer another-key"

    with pytest.raises(gatewright.AuthenticationError):
        Client(gateway.base_url, gateway.key, middleware=[Other()]).models.list()


# Where callbacks run.


def test_callbacks_of_a_sync_client_run_in_the_calling_thread_and_may_call(gateway: Gateway) -> None:
    inner = Client(gateway.base_url, gateway.key)
    threads: list[int] = []

    class Calling(Middleware):
        def before(self, attempt: Attempt) -> None:
            threads.append(threading.get_ident())
            assert inner.models.list().data

    def provide() -> str:
        threads.append(threading.get_ident())
        assert inner.models.list().data
        return gateway.key

    assert Client(gateway.base_url, provide, middleware=[Calling()]).models.list().data
    assert threads == [threading.get_ident()] * 2


async def test_callbacks_of_an_async_client_run_on_its_loop_in_the_context_of_the_task(
    gateway: Gateway,
) -> None:
    request = contextvars.ContextVar("request", default="none")
    loop = asyncio.get_running_loop()
    inner = AsyncClient(gateway.base_url, gateway.key)
    seen: list[tuple[str, str]] = []

    class Awaiting(Middleware):
        async def before(self, attempt: Attempt) -> None:
            assert asyncio.get_running_loop() is loop
            await asyncio.sleep(0.01)
            assert (await inner.models.list()).data
            seen.append(("before", request.get()))

        def after(self, attempt: Attempt, outcome: Outcome) -> None:
            assert asyncio.get_running_loop() is loop
            seen.append(("after", request.get()))

    client = AsyncClient(gateway.base_url, gateway.key, middleware=[Awaiting()])

    async def ask(name: str) -> None:
        request.set(name)
        assert (await client.models.list()).data

    await asyncio.gather(*(ask(str(number)) for number in range(10)))
    assert sorted(seen) == sorted(
        (where, str(number)) for where in ("before", "after") for number in range(10)
    )


def test_one_client_with_callbacks_serves_several_loops_at_once(gateway: Gateway) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def provide() -> str:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0.02)
        return gateway.key

    client = AsyncClient(gateway.base_url, provide)

    async def ask() -> Awaitable[Any] | Any:
        return await client.models.list()

    threads = [threading.Thread(target=lambda: asyncio.run(ask())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(loops) == len(set(map(id, loops))) == 4


async def test_canceling_a_call_cancels_its_callback() -> None:
    started = asyncio.Event()
    ended = asyncio.Event()

    async def provide() -> str:
        started.set()
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()
        return "key"

    call = asyncio.create_task(AsyncClient("http://127.0.0.1:9", provide).models.list())
    await started.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(ended.wait(), 2)


async def test_a_callback_counts_against_the_deadline() -> None:
    class Slow(Middleware):
        async def before(self, attempt: Attempt) -> None:
            await asyncio.sleep(30)

    client = AsyncClient("http://127.0.0.1:9", "key", middleware=[Slow()], timeout=0.2)
    with pytest.raises(gatewright.APITimeoutError):
        await client.models.list()


def test_a_client_referenced_by_its_middleware_is_collected() -> None:
    class Owning(Middleware):
        client: Client

        def __call__(self) -> str:
            return "key"

    owning = Owning()
    owning.client = Client("http://127.0.0.1:9", owning, middleware=[owning])
    gone = weakref.ref(owning.client)
    del owning
    gc.collect()
    assert gone() is None


def test_a_client_referenced_only_by_its_call_lives_as_long_as_the_call(gateway: Gateway) -> None:
    assert Client(gateway.base_url, lambda: gateway.key, middleware=[Notes()]).models.list().data

    async def ask() -> int:
        return len((await AsyncClient(gateway.base_url, lambda: gateway.key).models.list()).data)

    assert asyncio.run(ask()) > 0


async def test_a_callback_started_after_its_call_was_canceled_is_canceled() -> None:
    ended: list[str] = []

    async def provide() -> str:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return "key"

    call = asyncio.create_task(AsyncClient("http://127.0.0.1:9", provide).models.list())
    await asyncio.sleep(0)
    # The loop is busy while the client requests the key, and cancels before it gets to that.
    time.sleep(0.1)  # noqa: ASYNC251
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.sleep(0.1)
    assert ended in ([], ["cancelled"])
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
