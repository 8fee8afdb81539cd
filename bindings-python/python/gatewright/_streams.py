"""Streams: iterators of events and context managers. What comes over the wire is the core's business."""

from __future__ import annotations

from gatewright._native import NativeStream, Record, ResponseInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Any, Generic, TypeVar

    _Event = TypeVar("_Event")
else:
    # Importing typing takes as long as all else that `import gatewright` does.
    class Generic:
        """Stands for typing.Generic, where only type checkers look at the argument."""

        def __class_getitem__(cls, _):
            return cls

    _Event = None


class Stream(Generic[_Event]):
    """The events of one answer, in order, once: `for event in stream`.

    Leaving the loop early closes the connection, as do `close()`, the end of a `with` block and the last
    reference going away. To stop and go on later, use `next(stream)`.
    """

    def __init__(self, native: NativeStream) -> None:
        self._native = native
        self._ready: Iterator[_Event] = iter(())

    @property
    def response(self) -> ResponseInfo:
        """Status, headers, request id and attempts."""
        return self._native.response

    def __iter__(self) -> Iterator[_Event]:
        return _Loop(self)

    def __next__(self) -> _Event:
        while True:
            for event in self._ready:
                return event
            events = self._native.take()
            if events is None:
                raise StopIteration
            self._ready = iter(events)
            if not events:
                self._native.wait()

    def close(self) -> None:
        """Closes the connection; what has not been read is dropped."""
        self._ready = iter(())
        self._native.close()

    def __enter__(self) -> Stream[_Event]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Loop(Generic[_Event]):
    """One `for` over a stream; it goes away with the loop, however that is left."""

    def __init__(self, stream: Stream[_Event]) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[_Event]:
        return self

    def __next__(self) -> _Event:
        return self._stream.__next__()

    def __del__(self) -> None:
        self._stream.close()


class AsyncStream(Generic[_Event]):
    """The events of one answer, in order, once: `async for event in stream`.

    Closes its connection as `Stream` does. To stop and go on later, use `anext(stream)`.
    """

    def __init__(self, native: NativeStream) -> None:
        self._native = native
        self._ready: Iterator[_Event] = iter(())

    @property
    def response(self) -> ResponseInfo:
        """Status, headers, request id and attempts."""
        return self._native.response

    def __aiter__(self) -> _AsyncLoop[_Event]:
        return _AsyncLoop(self)

    async def __anext__(self) -> _Event:
        while True:
            for event in self._ready:
                return event
            # First without waiting: a hop over the event loop costs more than many events.
            events = self._native.take()
            if events is None:
                raise StopAsyncIteration
            self._ready = iter(events)
            if not events:
                await self._readable()

    async def _readable(self) -> None:
        import asyncio

        await self._native.readable(asyncio.get_running_loop())

    async def close(self) -> None:
        """Closes the connection; what has not been read is dropped."""
        self._close()

    def _close(self) -> None:
        self._ready = iter(())
        self._native.close()

    async def __aenter__(self) -> AsyncStream[_Event]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()


class _AsyncLoop(Generic[_Event]):
    """One `async for` over a stream; it goes away with the loop, however that is left."""

    def __init__(self, stream: AsyncStream[_Event]) -> None:
        self._stream = stream

    def __aiter__(self) -> _AsyncLoop[_Event]:
        return self

    async def __anext__(self) -> _Event:
        return await self._stream.__anext__()

    def __del__(self) -> None:
        self._stream._close()


def response_of(result: Record | Stream[Any] | AsyncStream[Any]) -> ResponseInfo | None:
    """Status, headers, request id and attempts of a result or a stream.

    None for a record that is not a whole response: one inside another, an event, or one made by hand.
    """
    return result._response if isinstance(result, Record) else result.response
