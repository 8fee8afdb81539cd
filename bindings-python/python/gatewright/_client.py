"""The two clients: options in, resources out. The behaviour is in the core."""

from __future__ import annotations

import sys

from gatewright._asyncio import finish, running_loop
from gatewright._engine import EngineClient, takes_files
from gatewright._options import without_secrets
from gatewright._resources import AsyncResources, Resources
from gatewright.generated.options import ClientArguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from types import TracebackType
    from typing import Any, TypeVar

    from typing_extensions import Self, Unpack

    from gatewright._engine import _Parameters
    from gatewright._streams import AsyncStream, Stream
    from gatewright.generated.options import CallOptions
    from gatewright.middleware import After, Before

    _Streaming = TypeVar("_Streaming", bound=Stream[Any])
    _AsyncStreaming = TypeVar("_AsyncStreaming", bound=AsyncStream[Any])


class _Callbacks:
    """Callbacks of the caller. Clients own them; the engine only refers to them."""

    def __init__(
        self, key: Callable[..., str | Awaitable[str]] | None, middleware: list[Before | After]
    ) -> None:
        self.key = key
        self.middleware = middleware


class _Configured(ClientArguments):
    """The base of both clients: settings, and the engine's client created from them."""

    _engine: EngineClient

    if not TYPE_CHECKING:

        def __init__(self, *positional, **arguments):
            # Python's own message would name a class that callers do not know.
            known = ClientArguments.__init__.__code__.co_varnames
            known = known[1 : known.index("pickle_key") + 1]
            for name in arguments:
                if name not in known:
                    from gatewright._mistakes import refused

                    raise refused(type(self).__name__, name, known)
            super().__init__(*positional, **arguments)

        __init__.__wrapped__ = ClientArguments.__init__

        def __getattr__(self, name):
            from gatewright._missing import missing

            raise missing(self, "client", name)

    def _configure(
        self,
        settings: dict[str, Any],
        *,
        api_key: str | Callable[..., str | Awaitable[str]] | None,
        middleware: Sequence[Before | After],
        pickle_key: bool,
    ) -> None:
        if not isinstance(settings.get("timeout"), (int, float, type(None))):
            from gatewright._mistakes import is_timeout, with_timeouts

            if is_timeout(settings["timeout"]):
                settings = with_timeouts(settings, of_call=False)
        self._settings = settings
        self._pickle_key = pickle_key
        # A key as text stays out of what can be looked at and pickled; a callable is no secret.
        key = api_key if isinstance(api_key, str) else None
        self._callbacks = _Callbacks(None if isinstance(api_key, str) else api_key, list(middleware))
        self._engine = self._make(key)

    def _make(self, key: str | None) -> EngineClient:
        settings = {**self._settings, "user_agent": _user_agent()}
        return EngineClient(settings, key, self._callbacks, keep_key=self._pickle_key)

    def _mended(
        self, error: TypeError, parameters: _Parameters, body: dict[str, Any] | None, options: dict[str, Any]
    ) -> dict[str, Any]:
        """Corrected options for a call that was rejected. Raises the error, or a more helpful one, if there
        are none."""
        from gatewright._mistakes import mended

        return mended(error, self, parameters, body, options)

    @property
    def base_url(self) -> str:
        """The base URL of the gateway, without a path."""
        return self._engine.base_url

    def with_options(self, **options: Unpack[CallOptions]) -> Self:
        """A client with other default options for its calls, which shares this client's connections.

        Omitted options keep their values; headers, query parameters and body members are added to the
        existing ones. Closing either client closes both.

        >>> import gatewright
        >>> client = gatewright.Client()
        >>> patient = client.with_options(timeout=1800, max_retries=5)
        >>> answer = patient.models.list()
        """
        twin = self.__copy__()
        given: dict[str, Any] = dict(options)
        try:
            twin._engine = self._engine.with_options(given)
        except TypeError as error:
            from gatewright._mistakes import CALL_OPTIONS, mended, refused

            for name in given:
                if name not in CALL_OPTIONS:
                    raise refused("with_options", name, CALL_OPTIONS) from None
            twin._engine = self._engine.with_options(mended(error, self, (), None, given))
        return twin

    def __copy__(self) -> Self:
        """A client over the same connections."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Like a shallow copy: connections and callbacks are shared, never copied."""
        return self.__copy__()

    def __getstate__(self) -> dict[str, Any]:
        """The configuration; includes secrets only if the client was created with `pickle_key=True`."""
        state = {name: value for name, value in self.__dict__.items() if name != "_engine"}
        state["_options"] = self._engine.options(secrets=self._pickle_key)
        if self._pickle_key:
            state["_key"] = self._engine.key
        else:
            state["_settings"] = without_secrets(self._settings)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        key, options = state.pop("_key", None), state.pop("_options")
        self.__dict__.update(state)
        self._engine = self._make(key).with_options(options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_url!r})"


class Client(_Configured, Resources):
    """A client of one gateway: `client.chat.completions.create(…)`.

    A client has a connection pool, so create one and share it, also between threads. After a fork it works in
    parent and child; a stream belongs to the process that opened it. Ctrl-C interrupts a blocking call. All
    clients of a process share background threads, which never keep the process alive.

    A pickle contains the configuration without its secrets: the key, headers and query parameters with a
    secret name (`authorization`, `x-api-key`, `cookie`, …), and a proxy's user and password. Unpickling takes
    the key from `GATEWRIGHT_API_KEY`, or raises ConfigurationError. With `pickle_key=True`, the pickle
    contains all secrets.

    >>> import gatewright
    >>> with gatewright.Client() as client:
    ...     ids = [model.id for model in client.models.list()]
    >>> "model-sol" in ids
    True
    """

    def close(self) -> None:
        """Closes idle connections. Calls in progress continue; new calls fail."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(
        self, operation: str, parameters: _Parameters, body: dict[str, Any] | None, options: dict[str, Any]
    ) -> Any:
        try:
            return self._engine.call(operation, parameters, body, options)
        except TypeError as error:
            return self._engine.call(
                operation, parameters, body, self._mended(error, parameters, body, options)
            )

    def _open(
        self,
        operation: str,
        parameters: _Parameters,
        body: dict[str, Any] | None,
        options: dict[str, Any],
        stream: type[_Streaming],
    ) -> _Streaming:
        try:
            return stream(self._engine.open(operation, parameters, body, options))
        except TypeError as error:
            options = self._mended(error, parameters, body, options)
            return stream(self._engine.open(operation, parameters, body, options))


class AsyncClient(_Configured, AsyncResources):
    """A client of one gateway for asyncio: `await client.chat.completions.create(…)`.

    Works on any number of event loops at once, including those of uvloop, and under anyio on its asyncio
    backend. Cancelling a task that awaits a call ends the request; a file object is then read no further,
    though a read in progress in a thread still completes. Under trio, use `Client` in a thread. Options and
    errors are those of `Client`; `api_key` and the methods of middleware may be coroutine functions, which
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
        """Closes idle connections. Calls in progress continue; new calls fail."""
        self._engine.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _call(
        self, operation: str, parameters: _Parameters, body: dict[str, Any] | None, options: dict[str, Any]
    ) -> Awaitable[Any]:
        if body is not None and takes_files(operation):
            return self._read_and_send(operation, parameters, body, options)
        return self._send(operation, parameters, body, options)

    async def _read_and_send(
        self, operation: str, parameters: _Parameters, body: dict[str, Any], options: dict[str, Any]
    ) -> Any:
        body, options = await self._read(operation, parameters, body, options)
        return await self._send(operation, parameters, body, options)

    async def _read(
        self, operation: str, parameters: _Parameters, body: dict[str, Any], options: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        from gatewright._file_reading import read_in_thread

        # A file object can be read only once, so wrong options are reported before it is read.
        try:
            self._engine.with_options(options)
        except TypeError as error:
            options = self._mended(error, parameters, body, options)
            self._engine.with_options(options)
        return await read_in_thread(operation, body), options

    def _send(
        self, operation: str, parameters: _Parameters, body: dict[str, Any] | None, options: dict[str, Any]
    ) -> Awaitable[Any]:
        loop = running_loop()
        try:
            return finish(self._engine.call_async(operation, parameters, body, options, loop))
        except TypeError as error:
            options = self._mended(error, parameters, body, options)
            return finish(self._engine.call_async(operation, parameters, body, options, loop))

    async def _open(
        self,
        operation: str,
        parameters: _Parameters,
        body: dict[str, Any] | None,
        options: dict[str, Any],
        stream: type[_AsyncStreaming],
    ) -> _AsyncStreaming:
        if body is not None and takes_files(operation):
            body, options = await self._read(operation, parameters, body, options)
        loop = running_loop()
        try:
            opening = self._engine.open_async(operation, parameters, body, options, loop)
        except TypeError as error:
            options = self._mended(error, parameters, body, options)
            opening = self._engine.open_async(operation, parameters, body, options, loop)
        return stream(await finish(opening))


def _user_agent() -> str:
    return f"gatewright-python python/{sys.version_info.major}.{sys.version_info.minor}"
