"""A streamed answer as it grows: what the readers of all protocols share."""

from __future__ import annotations

from gatewright._drive import drive, drive_async

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, Generic, TypeVar

    from typing_extensions import Self

    from gatewright._drive import Steps
    from gatewright._engine import ResponseInfo
    from gatewright._streams import AsyncStream, Stream
    from gatewright._structured import Format

    _Opened = TypeVar("_Opened", bound="Stream[Any] | SyncReader")
    _AsyncOpened = TypeVar("_AsyncOpened", bound="AsyncStream[Any] | AsyncReader")
else:
    from gatewright._streams import Generic

    _Opened = _AsyncOpened = None


class Event:
    """An event of a stream. Its members are named as in the official clients."""

    def __repr__(self) -> str:
        # Computed members are shown, too.
        computed = [name for name, value in vars(type(self)).items() if isinstance(value, property)]
        names = [name for name in (*vars(self), *computed) if not name.startswith("_")]
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


class _Reader:
    """Reads a stream and turns each event into one or more events of its own.

    `_make` and `_final` depend on the protocol, the other methods on the client.
    """

    _stream: Any
    _events: Any
    # The call, for errors.
    _operation: str
    _method: str

    def __init__(self, stream: Any, wanted: Format | None) -> None:
        self._stream = stream
        self._wanted = wanted
        self._ready: list[Any] = []
        self._is_over = False
        self._unfit: ValueError | None = None

    @property
    def response(self) -> ResponseInfo:
        """Status, headers, request id and attempts."""
        return self._stream.response  # type: ignore[no-any-return]

    def _make(self, event: Any, made: list[Any]) -> None:
        """Adds the events of an event; for None, those at the end. If a text is not the requested value, adds
        the events before it and raises ValueError."""
        raise NotImplementedError

    def _final(self) -> Steps[Any]:
        """The whole answer."""
        raise NotImplementedError

    def _begin(self) -> None:
        if not self._ready:
            self._stream._begin()

    def _next(self) -> Steps[Any]:
        """The next event; None after the last."""
        while not self._ready:
            if self._unfit is not None:
                # The error of the whole answer says what is wrong with it.
                yield from self._final()
                raise self._malformed(self._unfit) from self._unfit
            event = None if self._is_over else (yield self._of_stream())
            if event is None:
                self._stream._refuse_closed_elsewhere()
                if self._is_over:
                    return None
                self._is_over = True
            made: list[Any] = []
            try:
                self._make(event, made)
            except ValueError as unfit:
                self._unfit = unfit
            except (AttributeError, LookupError, TypeError) as error:
                raise self._malformed(error) from error
            self._ready = made[::-1]
        return self._ready.pop()

    def _malformed(self, error: Exception) -> Exception:
        from gatewright.generated.errors import DecodeError

        malformed = DecodeError(f"an event of the stream has a member of an unexpected type: {error}")
        return malformed._in_call(self._operation, self._method, self.response)

    def _of_stream(self) -> Any:
        """The next event of the stream, or an awaitable for it; None after the last."""
        raise NotImplementedError

    def _rest(self) -> Steps[None]:
        # The whole answer may have been read already.
        while self._stream._final is None and (yield from self._next()) is not None:
            pass

    def _end(self) -> None:
        self._ready.clear()
        self._is_over = True


class SyncReader(_Reader):
    """A reader of a Client."""

    def __init__(self, stream: Stream[Any], wanted: Format | None) -> None:
        super().__init__(stream, wanted)
        self._events = iter(stream)

    def _of_stream(self) -> Any:
        return next(self._events, None)

    def __iter__(self) -> Any:
        self._begin()
        return self

    def __next__(self) -> Any:
        event = self._ready.pop() if self._ready else drive(self._next())
        if event is None:
            raise StopIteration
        return event

    def until_done(self) -> Self:
        """Reads to the end; discards the events."""
        drive(self._rest())
        return self

    def close(self) -> None:
        """Closes the connection; discards unread events."""
        self._stream.close()
        self._end()


class AsyncReader(_Reader):
    """A reader of an AsyncClient."""

    def __init__(self, stream: AsyncStream[Any], wanted: Format | None) -> None:
        super().__init__(stream, wanted)
        self._events = aiter(stream)

    def _of_stream(self) -> Any:
        return anext(self._events, None)

    def __aiter__(self) -> Any:
        self._begin()
        return self

    async def __anext__(self) -> Any:
        event = self._ready.pop() if self._ready else await drive_async(self._next())
        if event is None:
            raise StopAsyncIteration
        return event

    async def until_done(self) -> Self:
        """Reads to the end; discards the events."""
        await drive_async(self._rest())
        return self

    async def close(self) -> None:
        """Closes the connection; discards unread events."""
        await self._stream.close()
        self._end()


class _PlainReader(_Reader):
    """A reader of events as they arrive."""

    def _make(self, event: Any, made: list[Any]) -> None:
        if event is not None:
            made.append(event)

    def _final(self) -> Steps[Any]:
        return (yield self._stream._get_final())


class PlainEvents(_PlainReader, SyncReader):
    """The events of a message or of a native stream."""


class AsyncPlainEvents(_PlainReader, AsyncReader):
    """The events of a message or of a native stream."""


class StreamManager(Generic[_Opened]):
    """Opens a stream for a `with` block, and closes it at its end."""

    def __init__(self, open: Callable[[], Steps[_Opened]]) -> None:
        self._open = open
        self._stream: _Opened | None = None

    def __enter__(self) -> _Opened:
        self._stream = drive(self._open())
        return self._stream

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None:
            self._stream.close()


class AsyncStreamManager(Generic[_AsyncOpened]):
    """Opens a stream for an `async with` block, and closes it at its end."""

    def __init__(self, open: Callable[[], Steps[_AsyncOpened]]) -> None:
        self._open = open
        self._stream: _AsyncOpened | None = None

    async def __aenter__(self) -> _AsyncOpened:
        self._stream = await drive_async(self._open())
        return self._stream

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None:
            await self._stream.close()
