"""The two clients: options in, resources out. What they do is in the core."""

from __future__ import annotations

import sys

from gatewright._asyncio import finish, running_loop
from gatewright._native import NativeClient
from gatewright._options import over, without_secrets
from gatewright._resources import AsyncResources, Resources

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Any, Literal, TypeVar

    from typing_extensions import Self, Unpack

    from gatewright._native import _Parameters
    from gatewright._options import CallOptions
    from gatewright._streams import AsyncStream, Stream
    from gatewright.middleware import After, Before

    _Streaming = TypeVar("_Streaming", bound=Stream[Any])
    _AsyncStreaming = TypeVar("_AsyncStreaming", bound=AsyncStream[Any])


class _Callbacks:
    """A caller's code within calls. Clients own it, the native half only refers to it."""

    def __init__(
        self, key: Callable[..., str | Awaitable[str]] | None, middleware: list[Before | After]
    ) -> None:
        self.key = key
        self.middleware = middleware


class _Configured:
    """What both clients are: settings, and a native client made of them."""

    _native: NativeClient

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | Callable[..., str | Awaitable[str]] | None = None,
        *,
        timeout: float | None = None,
        connect_timeout: float | None = None,
        first_byte_timeout: float | None = None,
        idle_timeout: float | None = None,
        event_timeout: float | None = None,
        max_retries: int | None = None,
        max_body_bytes: int | None = None,
        max_connections: int | None = None,
        pool_timeout: float | None = None,
        max_idle_connections: int | None = None,
        idle_connection_timeout: float | None = None,
        proxy: str | Literal[False] | None = None,
        ca_bundle: str | os.PathLike[str] | None = None,
        client_certificate: str | os.PathLike[str] | None = None,
        default_headers: Mapping[str, str] | None = None,
        default_query: Mapping[str, object] | None = None,
        middleware: Sequence[Before | After] = (),
        validate: bool = False,
        pickle_key: bool = False,
    ) -> None:
        self._settings = {
            "base_url": base_url,
            "timeout": timeout,
            "connect_timeout": connect_timeout,
            "first_byte_timeout": first_byte_timeout,
            "idle_timeout": idle_timeout,
            "event_timeout": event_timeout,
            "max_retries": max_retries,
            "max_body_bytes": max_body_bytes,
            "max_connections": max_connections,
            "pool_timeout": pool_timeout,
            "max_idle_connections": max_idle_connections,
            "idle_connection_timeout": idle_connection_timeout,
            "proxy": proxy,
            "ca_bundle": ca_bundle,
            "client_certificate": client_certificate,
            "default_headers": default_headers,
            "default_query": default_query,
            "validate": validate,
        }
        self._options: dict[str, Any] = {}
        self._pickle_key = pickle_key
        # A key as text stays out of what can be looked at and pickled; a callable is no secret.
        key = api_key if isinstance(api_key, str) else None
        self._callbacks = _Callbacks(None if isinstance(api_key, str) else api_key, list(middleware))
        self._native = self._make(key)

    def _make(self, key: str | None) -> NativeClient:
        settings = {**self._settings, "user_agent": _user_agent()}
        native = NativeClient(settings, key, self._callbacks, keep_key=self._pickle_key)
        return native.with_options(self._options) if self._options else native

    @property
    def base_url(self) -> str:
        """The bare host that requests go to."""
        return self._native.base_url

    def with_options(self, **options: Unpack[CallOptions]) -> Self:
        """This client with other options for the calls made through it; it shares the connections.

        What is left out stays as it is; headers, query parameters and members of the body add up. Closing
        either client closes both.

        >>> import gatewright
        >>> client = gatewright.Client()
        >>> patient = client.with_options(timeout=1800, max_retries=5)
        >>> answer = patient.models.list()
        """
        twin = self.__copy__()
        twin._options = over(dict(options), self._options)
        twin._native = self._native.with_options(twin._options)
        return twin

    def __copy__(self) -> Self:
        """A client over the same connections."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """As a shallow copy: connections and callbacks are shared, never copied."""
        return self.__copy__()

    def __getstate__(self) -> dict[str, Any]:
        """The configuration; secrets are in it only where the client was made with `pickle_key=True`."""
        state = {name: value for name, value in self.__dict__.items() if name != "_native"}
        if self._pickle_key:
            state["_key"] = self._native.key
        else:
            state["_settings"] = without_secrets(self._settings)
            state["_options"] = without_secrets(self._options)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        key = state.pop("_key", None)
        self.__dict__.update(state)
        self._native = self._make(key)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_url!r})"


class Client(_Configured, Resources):
    """A client of one gateway: `client.chat.completions.create(…)`.

    Holds a pool of connections: make one and share it, between threads too. After a fork it goes on working
    in parent and child; streams stay with the process that opened them. Ctrl-C ends a call that blocks. All
    clients of a process share at most 4 threads, which do not hold up its end.

    It pickles as its configuration without its secrets: where it is unpickled, the key comes from
    `GATEWRIGHT_API_KEY`, or ConfigurationError is raised. Left out are also headers and query parameters that
    are secret by their name (`authorization`, `x-api-key`, `cookie`, …) and a proxy's user and password. With
    `pickle_key=True` all of them go along.

    Args:
        base_url: The gateway's bare host; a trailing `/v1` or `/v1beta` is dropped. Default:
            `GATEWRIGHT_BASE_URL`, else `http://127.0.0.1:8080`.
        api_key: Sent as a bearer token: text, or a callable that gives it. A callable is asked for each call,
            and once more after the gateway has refused its key (401), with `refresh=True` if it takes that.
            Default: `GATEWRIGHT_API_KEY`.
        timeout: Seconds for a call as a whole, all attempts and pauses together; of a stream, until it
            begins, and from then on the longest silence, unless `idle_timeout` is given. Default 600;
            `math.inf`, as for every time, for no limit.
        connect_timeout: Seconds to connect, per attempt. Default 5.
        first_byte_timeout: Seconds until an answer begins, per attempt. Default: none but `timeout`.
        idle_timeout: Seconds without a byte of an answer that has begun. Default 120, or `timeout` if that is
            shorter.
        event_timeout: Seconds without an event of a stream; keep-alive comments do not count. Default 600.
        max_retries: Attempts after the first. Default 2.
        max_body_bytes: Largest answer that is read; a larger one raises DecodeError. Default 256 MiB.
        max_connections: Requests and streams under way at once; more wait. Default 1000.
        pool_timeout: Seconds to wait for a place among those: then PoolTimeoutError. Default 60.
        max_idle_connections: Connections kept open for later, per host. Default 100.
        idle_connection_timeout: Seconds they are kept. Default 90.
        proxy: Address of a proxy, with user and password if it wants them; False for none. Default: the
            environment's `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`.
        ca_bundle: PEM file of authorities to trust beside the system's. Default: `GATEWRIGHT_CA_BUNDLE`.
        client_certificate: PEM file of a certificate chain and its key, for gateways that ask for one.
        default_headers: Headers of every request.
        default_query: Query parameters of every request.
        middleware: Objects with `before(attempt)` and `after(attempt, outcome)`; see `gatewright.middleware`.
        validate: Whether a request for a model of the catalog is checked before it is sent: against the rules
            of the specification, the limits of the model and the endpoint that serves it; then
            InvalidRequestError tells all violations at once, at most 100. Never checked: requests for other
            models, members the specification does not describe, and what only the gateway knows, such as
            whether a response that is named exists. An answer is checked for what 2.7 and 2.11 promise; then
            DecodeError tells them. Default no.
        pickle_key: Whether a pickle of the client holds the key and the other secrets. Default no.

    Raises:
        ConfigurationError: The key is missing, or an option is malformed.

    >>> import gatewright
    >>> with gatewright.Client() as client:
    ...     ids = [model.id for model in client.models.list()]
    >>> "model-sol" in ids
    True
    """

    def close(self) -> None:
        """Closes idle connections; calls under way go on, new ones are refused."""
        self._native.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(
        self, operation: str, parameters: _Parameters, body: dict[str, Any] | None, options: dict[str, Any]
    ) -> Any:
        return self._native.call(operation, parameters, body, options)

    def _open(
        self,
        operation: str,
        parameters: _Parameters,
        body: dict[str, Any] | None,
        options: dict[str, Any],
        stream: type[_Streaming],
    ) -> _Streaming:
        return stream(self._native.open(operation, parameters, body, options))


class AsyncClient(_Configured, AsyncResources):
    """A client of one gateway for asyncio: `await client.chat.completions.create(…)`.

    Works on any number of event loops at once, uvloop's included, and under anyio on its asyncio backend.
    Cancelling a task that awaits a call ends the request. Not under trio: use `Client` in a thread there.
    Options and errors: as `Client`; `api_key` and the methods of middleware may be coroutine functions, which
    run on the event loop of the call.

    >>> import asyncio, gatewright
    >>> async def ask() -> str:
    ...     async with gatewright.AsyncClient() as client:
    ...         completion = await client.chat.completions.create(
    ...             model="model-sol", messages=[{"role": "user", "content": "Reply with exactly: hello"}]
    ...         )
    ...     return completion.choices[0].message.content
    >>> asyncio.run(ask())
    'hello'
    """

    async def close(self) -> None:
        """Closes idle connections; calls under way go on, new ones are refused."""
        self._native.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _call(
        self, operation: str, parameters: _Parameters, body: dict[str, Any] | None, options: dict[str, Any]
    ) -> Awaitable[Any]:
        return finish(self._native.call_async(operation, parameters, body, options, running_loop()))

    async def _open(
        self,
        operation: str,
        parameters: _Parameters,
        body: dict[str, Any] | None,
        options: dict[str, Any],
        stream: type[_AsyncStreaming],
    ) -> _AsyncStreaming:
        opening = self._native.open_async(operation, parameters, body, options, running_loop())
        return stream(await finish(opening))


def _user_agent() -> str:
    return f"gatewright-python python/{sys.version_info.major}.{sys.version_info.minor}"
