"""The two clients: options in, resources out. What they do is in the core."""

from __future__ import annotations

import sys

from gatewright._native import NativeClient
from gatewright._streams import AsyncStream, Stream
from gatewright._videos import AsyncVideosWithWaiting, VideosWithWaiting
from gatewright.generated.resources import AsyncResources, Resources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable
    from types import TracebackType
    from typing import Any

    from typing_extensions import Self

    from gatewright._native import Pending, _Options, _Parameters


class Client(Resources):
    """A client of one gateway: `client.chat.completions.create(…)`.

    Holds a pool of connections: make one and share it, between threads too. After a fork it goes on working
    in parent and child. Ctrl-C ends a call that blocks.

    Args:
        base_url: The gateway's bare host; a trailing `/v1` or `/v1beta` is dropped. Default:
            `GATEWRIGHT_BASE_URL`, else `http://127.0.0.1:8080`.
        api_key: Sent as a bearer token. Default: `GATEWRIGHT_API_KEY`.
        timeout: Seconds for a call as a whole, all attempts and pauses together; of a stream, until it
            begins. Default 600; `math.inf` for no limit.
        connect_timeout: Seconds to connect, per attempt. Default 5.
        idle_timeout: Seconds without a byte of an answer that has begun. Default 120.
        event_timeout: Seconds without an event of a stream; keep-alive comments do not count. Default 600.
        max_retries: Attempts after the first. Default 2.
        validate: Whether requests for models of the catalog are checked against their limits before they
            are sent: raises InvalidRequestError with every violation. Default no.

    Raises:
        ConfigurationError: The key is missing, or an option is malformed.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float | None = None,
        connect_timeout: float | None = None,
        idle_timeout: float | None = None,
        event_timeout: float | None = None,
        max_retries: int | None = None,
        validate: bool = False,
    ) -> None:
        self._native = NativeClient(
            base_url=base_url,
            api_key=api_key,
            timeout=timeout,
            connect_timeout=connect_timeout,
            idle_timeout=idle_timeout,
            event_timeout=event_timeout,
            max_retries=max_retries,
            validate=validate,
            user_agent=_user_agent(),
        )

    @property
    def base_url(self) -> str:
        """The bare host that requests go to."""
        return self._native.base_url

    @property
    def videos(self) -> VideosWithWaiting:
        """client.videos."""
        return VideosWithWaiting(self)

    def close(self) -> None:
        """Closes idle connections; calls under way go on, new ones are refused."""
        self._native.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_url!r})"

    def _call(
        self, operation: str, parameters: _Parameters, body: dict[str, Any] | None, options: _Options
    ) -> Any:
        return self._native.call(operation, parameters, body, options)

    def _open(
        self, operation: str, parameters: _Parameters, body: dict[str, Any] | None, options: _Options
    ) -> Stream[Any]:
        return Stream(self._native.open(operation, parameters, body, options))


class AsyncClient(AsyncResources):
    """A client of one gateway for asyncio: `await client.chat.completions.create(…)`.

    Works on any number of event loops at once. Cancelling a task that awaits a call ends the request.
    Options and errors: as `Client`.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float | None = None,
        connect_timeout: float | None = None,
        idle_timeout: float | None = None,
        event_timeout: float | None = None,
        max_retries: int | None = None,
        validate: bool = False,
    ) -> None:
        self._native = NativeClient(
            base_url=base_url,
            api_key=api_key,
            timeout=timeout,
            connect_timeout=connect_timeout,
            idle_timeout=idle_timeout,
            event_timeout=event_timeout,
            max_retries=max_retries,
            validate=validate,
            user_agent=_user_agent(),
        )

    @property
    def base_url(self) -> str:
        """The bare host that requests go to."""
        return self._native.base_url

    @property
    def videos(self) -> AsyncVideosWithWaiting:
        """client.videos."""
        return AsyncVideosWithWaiting(self)

    async def close(self) -> None:
        """Closes idle connections; calls under way go on, new ones are refused."""
        self._native.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_url!r})"

    def _call(
        self, operation: str, parameters: _Parameters, body: dict[str, Any] | None, options: _Options
    ) -> Awaitable[Any]:
        return _finish(self._native.call_async(operation, parameters, body, options, _running_loop()))

    async def _open(
        self, operation: str, parameters: _Parameters, body: dict[str, Any] | None, options: _Options
    ) -> AsyncStream[Any]:
        opening = self._native.open_async(operation, parameters, body, options, _running_loop())
        return AsyncStream(await _finish(opening))

    async def _wait_for_video(self, task_id: str, interval: float, timeout: float) -> Any:
        waiting = self._native.wait_for_video_async(task_id, interval, timeout, _running_loop())
        return await _finish(waiting)


async def _finish(pending: Pending) -> Any:
    """The outcome of work under way; leaving early, by cancellation, ends the work."""
    try:
        return await pending.future
    finally:
        pending.cancel()


def _running_loop() -> Any:
    # Imported by whoever runs a loop already; a program without asyncio does not pay for it.
    import asyncio

    return asyncio.get_running_loop()


def _user_agent() -> str:
    return f"gatewright-python python/{sys.version_info.major}.{sys.version_info.minor}"
