"""Streams: iterators of events and context managers. The core handles the connection."""

from __future__ import annotations

from gatewright._asyncio import finish, running_loop
from gatewright._engine import EngineStream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterator
    from types import TracebackType
    from typing import Any, Generic, TypeVar

    from typing_extensions import Self

    from gatewright._engine import RawEvent, ResponseInfo

    _Event = TypeVar("_Event")
else:
    # Importing typing takes as long as all else that `import gatewright` does.
    class Generic:
        """Replaces typing.Generic, where only type checkers use the argument."""

        def __class_getitem__(cls, _):
            return cls

    _Event = Any = None


class Stream(Generic[_Event]):
    """The events of one response, in order, once: `for event in stream`.

    Or, in place of the events, `raw_events()` or `text()`: the first read chooses. The whole document can be
    had at any time: by `get_final_completion()` of a chat stream, by `get_final_response()` of the others.

    Leaving the loop early closes the connection, as do `close()`, the end of a `with` block and the last
    reference going away. To stop and go on later, use `next(stream)`.

    >>> import gatewright
    >>> client = gatewright.Client()
    >>> question = [{"role": "user", "content": "Reply with exactly: one two"}]
    >>> stream = client.chat.completions.create(model="model-sol", messages=question, stream=True)
    >>> "".join(stream.text())
    'one two'
    >>> stream.get_final_completion().choices[0].finish_reason
    'stop'
    """

    def __init__(self, engine: EngineStream) -> None:
        self._engine = engine
        # What is next stands last. One operation puts events in and one takes one out, so that threads may
        # share a stream and each event is given once.
        self._ready: list[_Event] = []
        self._final: Any = None

    @property
    def response(self) -> ResponseInfo:
        """Status, headers, request id and attempts."""
        return self._engine.response

    def __iter__(self) -> Iterator[_Event]:
        return _Loop(self)

    def __next__(self) -> _Event:
        while True:
            if self._ready:
                try:
                    return self._ready.pop()
                except IndexError:  # Another thread was faster.
                    pass
            self._ready[:0] = self._batch("events")

    def raw_events(self) -> Iterator[RawEvent]:
        """Every event as it was framed, in place of the parsed ones, including `[DONE]`, heartbeats and
        errors."""
        return _Level(self, "raw_events")

    def text(self) -> Iterator[str]:
        """The new text of the first choice, in place of the events; never an empty piece."""
        return _Level(self, "text")

    def close(self) -> None:
        """Closes the connection; discards unread events."""
        self._ready.clear()
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _batch(self, level: str) -> list[Any]:
        """At least one event of a level, the last one first; StopIteration once there are no more."""
        events = self._engine.next(level)
        if events is None:
            raise StopIteration
        return events

    def _get_final(self) -> Any:
        if self._final is None:
            self._ready.clear()
            self._final = self._engine.finish()
        return self._final


class _Loop(Generic[_Event]):
    """One `for` loop over a stream; it is freed with the loop, however that is left."""

    _level = "events"

    def __init__(self, stream: Stream[_Event]) -> None:
        self._stream = stream
        self._ready = stream._ready

    def __iter__(self) -> Iterator[_Event]:
        return self

    def __next__(self) -> _Event:
        # As that of the stream, without a call more for each event.
        while True:
            if self._ready:
                try:
                    return self._ready.pop()
                except IndexError:  # Another thread was faster.
                    pass
            self._ready[:0] = self._stream._batch(self._level)

    def __del__(self) -> None:
        self._stream.close()


class _Level(_Loop[Any]):
    """A stream at a level other than its events."""

    def __init__(self, stream: Stream[Any], level: str) -> None:
        super().__init__(stream)
        self._level = level
        self._ready = []


class AsyncStream(Generic[_Event]):
    """The events of one response, in order, once: `async for event in stream`.

    Levels, final document and closing work as in `Stream`. To stop and go on later, use `anext(stream)`.

    >>> import asyncio, gatewright
    >>> async def ask() -> str:
    ...     question = [{"role": "user", "content": "Reply with exactly: one two"}]
    ...     async with gatewright.AsyncClient() as client:
    ...         stream = await client.chat.completions.create(
    ...             model="model-sol", messages=question, stream=True
    ...         )
    ...         pieces = [piece async for piece in stream.text()]
    ...     return "".join(pieces)
    >>> asyncio.run(ask())
    'one two'
    """

    def __init__(self, engine: EngineStream) -> None:
        self._engine = engine
        # What is next stands last. One operation puts events in and one takes one out, so that threads may
        # share a stream and each event is given once.
        self._ready: list[_Event] = []
        self._final: Any = None

    @property
    def response(self) -> ResponseInfo:
        """Status, headers, request id and attempts."""
        return self._engine.response

    def __aiter__(self) -> AsyncIterator[_Event]:
        return _AsyncLoop(self)

    async def __anext__(self) -> _Event:
        while True:
            if self._ready:
                try:
                    return self._ready.pop()
                except IndexError:  # Another thread was faster.
                    pass
            waiting = self._more(self._ready, "events")
            if waiting is not None:
                await waiting

    def raw_events(self) -> AsyncIterator[RawEvent]:
        """Every event as it was framed, in place of the parsed ones, including `[DONE]`, heartbeats and
        errors."""
        return _AsyncLevel(self, "raw_events")

    def text(self) -> AsyncIterator[str]:
        """The new text of the first choice, in place of the events; never an empty piece."""
        return _AsyncLevel(self, "text")

    async def close(self) -> None:
        """Closes the connection; discards unread events."""
        self._close()

    def _close(self) -> None:
        self._ready.clear()
        self._engine.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _more(self, ready: list[Any], level: str) -> Awaitable[None] | None:
        """Adds the events of a level that are ready, or returns what to await.

        StopAsyncIteration once there are no more.
        """
        # First without waiting: a hop over the event loop costs more than many events.
        events = self._engine.take(level)
        if events is None:
            raise StopAsyncIteration
        if not events:
            return self._engine.readable(running_loop())
        ready[:0] = events
        return None

    async def _get_final(self) -> Any:
        if self._final is None:
            self._ready.clear()
            self._final = await finish(self._engine.finish_async(running_loop()))
        return self._final


class _AsyncLoop(Generic[_Event]):
    """One `async for` loop over a stream; it is freed with the loop, however that is left."""

    _level = "events"

    def __init__(self, stream: AsyncStream[_Event]) -> None:
        self._stream = stream
        self._ready = stream._ready

    def __aiter__(self) -> AsyncIterator[_Event]:
        return self

    async def __anext__(self) -> _Event:
        # As that of the stream, without a coroutine more for each event.
        while True:
            if self._ready:
                try:
                    return self._ready.pop()
                except IndexError:  # Another thread was faster.
                    pass
            waiting = self._stream._more(self._ready, self._level)
            if waiting is not None:
                await waiting

    def __del__(self) -> None:
        self._stream._close()


class _AsyncLevel(_AsyncLoop[Any]):
    """A stream at a level other than its events."""

    def __init__(self, stream: AsyncStream[Any], level: str) -> None:
        super().__init__(stream)
        self._level = level
        self._ready = []
