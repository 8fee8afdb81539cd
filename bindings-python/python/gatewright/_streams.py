"""Streams: iterators of events and context managers. The core handles the connection."""

from __future__ import annotations

from _thread import get_ident

from gatewright._asyncio import current_task, finish, running_loop
from gatewright._engine import EngineStream
from gatewright.generated.errors import ConfigurationError, GatewrightError, StreamError

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

# Why there is nothing to read any more.
_COMPLETE = "it has been read to its end"
_FAILED = "it ended with an error, which was raised"
_CLOSED = "it has been closed"
_LEFT = "the loop over it was left early, which closed it; next(stream) reads one event and goes on later"
_CLOSED_ELSEWHERE = "another thread or task has closed it before its end"
_DOCUMENT = "its rest was read as the whole document, by get_final_…()"

# Errors that the reader itself causes. Other code must not take this for a complete stream.
_ENDS = (_COMPLETE, _FAILED, _CLOSED)


class _Reading(Generic[_Event]):
    """The part of a stream that was read, and why it ended."""

    def __init__(self, engine: EngineStream) -> None:
        self._engine = engine
        # What is next stands last. One operation puts events in and one takes one out, so that threads may
        # share a stream and each event is given once.
        self._ready: list[_Event] = []
        # The same for a read at another level than the events.
        self._pieces: list[Any] = []
        self._final: Any = None
        self._level: str | None = None
        self._end: str | None = None
        # The thread or task that closed it.
        self._closer: object = None

    @property
    def response(self) -> ResponseInfo:
        """Status, headers, request id and attempts."""
        return self._engine.response

    def _begin(self) -> None:
        """Raises if a loop begins on a stream that is over: without events, it would look complete."""
        if self._end is not None:
            raise self._refusal()

    def _choose(self, level: str) -> None:
        """The first read chooses the level; a read at another level raises."""
        if self._level is not None:
            raise ConfigurationError(f"the stream is being read by {self._level}(), no longer by {level}()")
        self._level = level

    def _refusal(self, reason: str | None = None) -> ConfigurationError:
        return ConfigurationError(f"the stream cannot be read here: {reason or self._end}")

    def _user(self) -> object:
        """The thread or task that is using the stream."""
        raise NotImplementedError

    def _refuse_closed_elsewhere(self) -> None:
        """Raises if another thread or task has closed the stream: the reader does not know that something is
        missing."""
        if self._end is _CLOSED and self._closer != self._user():
            raise self._refusal(_CLOSED_ELSEWHERE)

    def _is_over(self) -> bool:
        """Records that there are no more events; raises if the reader may have missed some."""
        if self._end is None:
            self._end = _COMPLETE
        if self._end not in _ENDS:
            raise self._refusal()
        return True

    def _failed(self, error: GatewrightError) -> None:
        # A wrong use does not end the stream.
        if self._end is None and not isinstance(error, ConfigurationError):
            self._end = _FAILED

    def _shut(self, reason: str) -> None:
        if self._end is None:
            if reason is _CLOSED:
                self._closer = self._user()
            self._end = reason
        self._ready.clear()
        self._pieces.clear()
        self._engine.close()

    def _may_have_failed(self) -> bool:
        """Whether a complete stream may be that of a failed answer, which only its status shows."""
        return self._end is _COMPLETE and hasattr(self, "get_final_response")

    def _judge(self, final: Any) -> None:
        """Raises if the answer failed: its text alone does not show that."""
        if final.get("status") != "failed":
            return
        self._end = _FAILED
        error = final.error
        message = (error and error.message) or "the answer failed; the gateway does not say why"
        code = error and error.code
        raise StreamError(message, code=code, partial=final, request_id=self.response.request_id)


class Stream(_Reading[_Event]):
    """The events of one response, in order, once: `for event in stream`.

    Instead of the events, read `raw_events()` or `text()`; the first read decides. `get_final_completion()`
    (chat), `get_final_message()` (messages) or `get_final_response()` returns the whole document at any time.

    Leaving the loop early closes the connection, and so do `close()`, the end of a `with` block and dropping
    the last reference. To stop and continue later, use `next(stream)`.

    A loop yields all remaining events, or raises. A second loop raises ConfigurationError, and so does a loop
    whose events `get_final_…()` has read. Threads may share a loop: each event is delivered once.

    >>> import gatewright
    >>> client = gatewright.Client()
    >>> question = [{"role": "user", "content": "Reply with exactly: one two"}]
    >>> stream = client.chat.completions.create(model="model-sol", messages=question, stream=True)
    >>> "".join(stream.text())
    'one two'
    >>> stream.get_final_completion().choices[0].finish_reason
    'stop'
    """

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
        """Every event as it was framed, instead of the parsed ones, including `[DONE]`, heartbeats and
        errors."""
        return _Level(self, "raw_events")

    def text(self) -> Iterator[str]:
        """The new text of the first choice, instead of the events; never an empty piece."""
        return _Level(self, "text")

    def close(self) -> None:
        """Closes the connection; discards unread events. A loop in progress ends; one over the text raises
        ConfigurationError in another thread, where the text would look complete."""
        self._shut(_CLOSED)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _user(self) -> object:
        return get_ident()

    def _batch(self, level: str) -> list[Any]:
        """At least one event of a level, the last one first; StopIteration once there are no more."""
        if level != self._level:
            self._choose(level)
        try:
            events = self._engine.next(level)
        except GatewrightError as error:
            self._failed(error)
            raise
        if events is None and self._is_over():
            if level == "text":
                self._refuse_closed_elsewhere()
                if self._may_have_failed():
                    self._judge(self._get_final())
            raise StopIteration
        return events or []

    def _get_final(self) -> Any:
        if self._final is None:
            self._end = self._end or _DOCUMENT
            self._ready.clear()
            self._final = self._engine.finish()
        return self._final


class _Loop(Generic[_Event]):
    """One `for` loop over a stream; it is freed with the loop, however that is left."""

    _level = "events"
    _begins = True

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
            if self._begins:
                self._stream._begin()
                self._begins = False
            self._ready[:0] = self._stream._batch(self._level)

    def __del__(self) -> None:
        # Other threads may still read the events of a complete stream.
        if self._stream._end is not _COMPLETE:
            self._stream._shut(_LEFT)


class _Level(_Loop[Any]):
    """A stream at a level other than its events."""

    def __init__(self, stream: Stream[Any], level: str) -> None:
        super().__init__(stream)
        self._level = level
        self._ready = stream._pieces


class AsyncStream(_Reading[_Event]):
    """The events of one response, in order, once: `async for event in stream`.

    Levels, final document and closing work as in `Stream`. To stop and continue later, use `anext(stream)`.

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
        """Every event as it was framed, instead of the parsed ones, including `[DONE]`, heartbeats and
        errors."""
        return _AsyncLevel(self, "raw_events")

    def text(self) -> AsyncIterator[str]:
        """The new text of the first choice, instead of the events; never an empty piece."""
        return _AsyncLevel(self, "text")

    async def close(self) -> None:
        """Closes the connection; discards unread events. A loop in progress ends; one over the text raises
        ConfigurationError in another task, where the text would look complete."""
        self._shut(_CLOSED)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shut(_CLOSED)

    def _user(self) -> object:
        return current_task()

    def _more(self, ready: list[Any], level: str) -> Awaitable[None] | None:
        """Adds the ready events of a level, or returns an awaitable.

        StopAsyncIteration once there are no more.
        """
        if level != self._level:
            self._choose(level)
        # First without waiting: a hop over the event loop costs more than many events.
        try:
            events = self._engine.take(level)
        except GatewrightError as error:
            self._failed(error)
            raise
        if events is None and self._is_over():
            if level == "text":
                self._refuse_closed_elsewhere()
                if self._may_have_failed():
                    return self._judge_later()
            raise StopAsyncIteration
        if not events:
            return self._engine.readable(running_loop())
        ready[:0] = events
        return None

    async def _judge_later(self) -> None:
        self._judge(await self._get_final())
        raise StopAsyncIteration

    async def _get_final(self) -> Any:
        if self._final is None:
            self._end = self._end or _DOCUMENT
            self._ready.clear()
            self._final = await finish(self._engine.finish_async(running_loop()))
        return self._final


class _AsyncLoop(Generic[_Event]):
    """One `async for` loop over a stream; it is freed with the loop, however that is left."""

    _level = "events"
    _begins = True

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
            if self._begins:
                self._stream._begin()
                self._begins = False
            waiting = self._stream._more(self._ready, self._level)
            if waiting is not None:
                try:
                    await waiting
                except BaseException:
                    # The traceback must not keep the loop: leaving it closes the connection.
                    del self
                    raise

    def __del__(self) -> None:
        # Other threads may still read the events of a complete stream.
        if self._stream._end is not _COMPLETE:
            self._stream._shut(_LEFT)


class _AsyncLevel(_AsyncLoop[Any]):
    """A stream at a level other than its events."""

    def __init__(self, stream: AsyncStream[Any], level: str) -> None:
        super().__init__(stream)
        self._level = level
        self._ready = stream._pieces
