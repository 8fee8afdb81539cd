"""A streamed answer as it grows, event by event: texts so far, tool calls, values of a type."""

from __future__ import annotations

from gatewright._drive import drive, drive_async
from gatewright._engine import Record
from gatewright._json_prefix import JsonPrefix, value_of
from gatewright._structured import parsed_completion, parsed_response
from gatewright._view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from types import TracebackType
    from typing import Any, Generic, Literal, TypeAlias, TypeVar

    from typing_extensions import Self

    from gatewright import types
    from gatewright._drive import Steps
    from gatewright._engine import ResponseInfo
    from gatewright._parsed import ParsedChatCompletion, ParsedResponse, ResponseEvent
    from gatewright._streams import AsyncStream, Stream
    from gatewright._structured import Format

    _Value = TypeVar("_Value")
    _Opened = TypeVar("_Opened", bound="Stream[Any] | SyncReader")
    _AsyncOpened = TypeVar("_AsyncOpened", bound="AsyncStream[Any] | AsyncReader")
else:
    from gatewright._streams import Generic

    _Value = _Opened = _AsyncOpened = None


class _Event:
    """An event of a stream. Its members are named as in the official clients."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if name[0] != "_")
        return f"{type(self).__name__}({shown})"


class ChunkEvent(_Event):
    """A chunk as it arrived. The events for its contents follow."""

    type: Literal["chunk"] = "chunk"

    def __init__(self, chunk: types.ChatCompletionChunk) -> None:
        self.chunk = chunk
        """The chunk."""


class _Growing(_Event):
    """An event of a growing JSON text."""

    def __init__(self, text: str, cut: tuple[int, str]) -> None:
        self._text = text
        self._cut: tuple[int, str] | None = cut
        self._read: Any = None

    def _value(self) -> Any:
        # Parsed on first access.
        if self._cut is not None:
            self._read = value_of(self._text, *self._cut)
            self._cut = None
        return self._read


class ContentDeltaEvent(_Growing):
    """New text."""

    type: Literal["content.delta"] = "content.delta"

    def __init__(self, index: int, delta: str, snapshot: str, cut: tuple[int, str]) -> None:
        super().__init__(snapshot, cut)
        self.index = index
        """Index of the choice."""
        self.delta = delta
        """The new text."""
        self.snapshot = snapshot
        """The text so far."""

    @property
    def parsed(self) -> Any:
        """The JSON so far, as plain dicts and lists; None if the request has no format or no value has begun.
        The text is parsed when this is first read. Beyond 1 MiB of text, it is None."""
        return self._value()


class ContentDoneEvent(_Event, Generic[_Value]):
    """The text is complete."""

    type: Literal["content.done"] = "content.done"

    def __init__(self, index: int, content: str, parsed: _Value | None) -> None:
        self.index = index
        """Index of the choice."""
        self.content = content
        """The whole text."""
        self.parsed = parsed
        """The value; None if the request has no format."""


class RefusalDeltaEvent(_Event):
    """New text of a refusal."""

    type: Literal["refusal.delta"] = "refusal.delta"

    def __init__(self, index: int, delta: str, snapshot: str) -> None:
        self.index = index
        """Index of the choice."""
        self.delta = delta
        """The new text."""
        self.snapshot = snapshot
        """The text so far."""


class RefusalDoneEvent(_Event):
    """The refusal is complete."""

    type: Literal["refusal.done"] = "refusal.done"

    def __init__(self, index: int, refusal: str) -> None:
        self.index = index
        """Index of the choice."""
        self.refusal = refusal
        """The whole text."""


class ToolArgumentsDeltaEvent(_Growing):
    """New text of the arguments of a tool call."""

    type: Literal["tool_calls.function.arguments.delta"] = "tool_calls.function.arguments.delta"

    def __init__(self, index: int, name: str, delta: str, arguments: str, cut: tuple[int, str]) -> None:
        super().__init__(arguments, cut)
        self.index = index
        """Index of the call."""
        self.name = name
        """Name of the tool."""
        self.arguments_delta = delta
        """The new text."""
        self.arguments = arguments
        """The text so far."""

    @property
    def parsed_arguments(self) -> Any:
        """The arguments so far, or None; see `ContentDeltaEvent.parsed`."""
        return self._value()


class ToolArgumentsDoneEvent(_Event):
    """The arguments of a tool call are complete."""

    type: Literal["tool_calls.function.arguments.done"] = "tool_calls.function.arguments.done"

    def __init__(self, index: int, name: str, arguments: str) -> None:
        self.index = index
        """Index of the call."""
        self.name = name
        """Name of the tool."""
        self.arguments = arguments
        """The whole text."""
        self.parsed_arguments = value_of(arguments, len(arguments), "")
        """The arguments; None if they are not JSON."""


if TYPE_CHECKING:
    ChatEvent: TypeAlias = (
        ChunkEvent
        | ContentDeltaEvent
        | ContentDoneEvent[_Value]
        | RefusalDeltaEvent
        | RefusalDoneEvent
        | ToolArgumentsDeltaEvent
        | ToolArgumentsDoneEvent
    )


class _ToolCall:
    def __init__(self) -> None:
        self.name = ""
        self.arguments = ""
        self.prefix = JsonPrefix()
        self.is_function = True


class _Choice:
    """The state of one choice."""

    def __init__(self) -> None:
        self.content = ""
        self.refusal = ""
        self.prefix = JsonPrefix()
        self.calls: dict[int, _ToolCall] = {}
        self.open_call: int | None = None
        self.is_text_done = False


class ChatEvents:
    """Turns chunks into events."""

    def __init__(self, wanted: Format | None) -> None:
        self._wanted = wanted
        self._choices: dict[int, _Choice] = {}

    def of(self, chunk: Any, events: list[Any]) -> None:
        """Adds the events of a chunk. Raises ValueError if a text is not the requested value."""
        events.append(ChunkEvent(chunk))
        for choice in chunk.choices or []:
            index = choice.index or 0
            state = self._choices.setdefault(index, _Choice())
            self._add(events, index, state, choice.delta)
            if choice.finish_reason:
                if self._wanted is not None and choice.finish_reason in ("length", "content_filter"):
                    raise ValueError(choice.finish_reason)
                self._finish(events, index, state)

    def end(self, events: list[Any]) -> None:
        """Adds the remaining events of a stream without finish reasons."""
        for index, state in self._choices.items():
            self._finish(events, index, state)

    def _add(self, events: list[Any], index: int, state: _Choice, delta: Any) -> None:
        if delta is None:
            return
        if delta.content:
            state.content += delta.content
            if self._wanted is not None:
                state.prefix.feed(delta.content)
            cut = state.prefix.cut()
            events.append(ContentDeltaEvent(index, delta.content, state.content, cut))
        if delta.refusal:
            state.refusal += delta.refusal
            events.append(RefusalDeltaEvent(index, delta.refusal, state.refusal))
        for position, call in enumerate(delta.tool_calls or []):
            at = position if call.index is None else call.index
            if at != state.open_call:
                self._finish(events, index, state, reads=False)
                state.open_call = at
            known = state.calls.setdefault(at, _ToolCall())
            made = call.function
            if made is None:
                known.is_function = known.is_function and call.custom is None
                continue
            known.name = known.name or made.name or ""
            new = made.arguments or ""
            known.arguments += new
            known.prefix.feed(new)
            events.append(ToolArgumentsDeltaEvent(at, known.name, new, known.arguments, known.prefix.cut()))

    def _finish(self, events: list[Any], index: int, state: _Choice, *, reads: bool = True) -> None:
        """Completes what is open: the text before tool calls, which is not a value; a call before the next
        one."""
        if not state.is_text_done:
            state.is_text_done = True
            if state.content:
                wanted = self._wanted if reads and not state.refusal else None
                parsed = None if wanted is None else wanted.read(state.content)
                events.append(ContentDoneEvent(index, state.content, parsed))
            if state.refusal:
                events.append(RefusalDoneEvent(index, state.refusal))
        if state.open_call is not None:
            call = state.calls[state.open_call]
            if call.is_function:
                events.append(ToolArgumentsDoneEvent(state.open_call, call.name, call.arguments))
            state.open_call = None


class _Reader:
    """Reads a stream and turns each event into one or more events of its own.

    `_make` and `_final` depend on the protocol, the other methods on the client.
    """

    _stream: Any
    _events: Any

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
                raise self._unfit
            if self._is_over:
                return None
            event = yield self._of_stream()
            self._is_over = event is None
            made: list[Any] = []
            try:
                self._make(event, made)
            except ValueError as unfit:
                self._unfit = unfit
            self._ready = made[::-1]
        return self._ready.pop()

    def _of_stream(self) -> Any:
        """The next event of the stream, or an awaitable for it; None after the last."""
        raise NotImplementedError

    def _rest(self) -> Steps[None]:
        while (yield from self._next()) is not None:
            pass

    def _over(self) -> Any:
        self._ready.clear()
        self._is_over = True
        return self._stream


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
        self._over().close()


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
        await self._over().close()


class _ChatReader(_Reader):
    """A reader of a chat completion."""

    def __init__(self, stream: Any, wanted: Format | None) -> None:
        super().__init__(stream, wanted)
        self._chat = ChatEvents(wanted)

    def _make(self, event: Any, made: list[Any]) -> None:
        if event is None:
            self._chat.end(made)
        else:
            self._chat.of(event, made)

    def _final(self) -> Steps[Any]:
        final = yield self._stream._get_final()
        return final if self._wanted is None else parsed_completion(final, self._wanted)


class ChatCompletionEvents(_ChatReader, SyncReader, Generic[_Value]):
    """The events of a chat completion: `for event in stream`, once."""

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[ChatEvent[_Value]]: ...
        def __next__(self) -> ChatEvent[_Value]: ...

    def get_final_completion(self) -> ParsedChatCompletion[_Value]:
        """Reads to the end; returns the whole answer, with `parsed` in its messages if the request has a
        format.

        Raises:
            StructuredOutputError: A choice was cut off, or its text is not a value of the type.
        """
        return drive(self._final())


class AsyncChatCompletionEvents(_ChatReader, AsyncReader, Generic[_Value]):
    """The events of a chat completion: `async for event in stream`, once."""

    if TYPE_CHECKING:

        def __aiter__(self) -> AsyncIterator[ChatEvent[_Value]]: ...
        async def __anext__(self) -> ChatEvent[_Value]: ...

    async def get_final_completion(self) -> ParsedChatCompletion[_Value]:
        """Like `ChatCompletionEvents.get_final_completion`."""
        return await drive_async(self._final())


class _TextDelta(View):
    """New text of a response, with the text so far."""

    __slots__ = ("_growing",)

    def __init__(self, record: Record, snapshot: str, cut: tuple[int, str]) -> None:
        super().__init__(record, snapshot=snapshot)
        self._growing = _Growing(snapshot, cut)

    @property
    def parsed(self) -> Any:
        """The JSON so far; None if the request has no format or no value has begun."""
        return self._growing._value()


class _ResponseTexts:
    """Adds the texts so far to the events of a response."""

    def __init__(self, wanted: Format | None) -> None:
        self._wanted = wanted
        self._texts: dict[tuple[Any, Any], tuple[str, JsonPrefix]] = {}

    def of(self, event: Any) -> Any:
        if event.get("type") != "response.output_text.delta":
            return event
        place = (event.output_index, event.content_index)
        text, prefix = self._texts.get(place) or ("", JsonPrefix())
        delta = event.delta or ""
        text += delta
        self._texts[place] = (text, prefix)
        if self._wanted is not None:
            prefix.feed(delta)
        return _TextDelta(event, text, prefix.cut())


class _ResponseReader(_Reader):
    """A reader of a response."""

    def __init__(self, stream: Any, wanted: Format | None) -> None:
        super().__init__(stream, wanted)
        self._texts = _ResponseTexts(wanted)

    def _make(self, event: Any, made: list[Any]) -> None:
        if event is not None:
            made.append(self._texts.of(event))

    def _final(self) -> Steps[Any]:
        final = yield self._stream._get_final()
        return final if self._wanted is None else parsed_response(final, self._wanted)


class ResponseEvents(_ResponseReader, SyncReader, Generic[_Value]):
    """The events of a response: `for event in stream`, once.

    Events of new text have a `snapshot`, the text so far; with a format, also `parsed`, the JSON so far.
    """

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[ResponseEvent]: ...
        def __next__(self) -> ResponseEvent: ...

    def get_final_response(self) -> ParsedResponse[_Value]:
        """Reads to the end; returns the whole answer, with `output_parsed` if the request has a format.

        Raises:
            StructuredOutputError: It failed or was cut off, or its text is not a value of the type.
        """
        return drive(self._final())


class AsyncResponseEvents(_ResponseReader, AsyncReader, Generic[_Value]):
    """The events of a response: `async for event in stream`, once. Like `ResponseEvents`."""

    if TYPE_CHECKING:

        def __aiter__(self) -> AsyncIterator[ResponseEvent]: ...
        async def __anext__(self) -> ResponseEvent: ...

    async def get_final_response(self) -> ParsedResponse[_Value]:
        """Like `ResponseEvents.get_final_response`."""
        return await drive_async(self._final())


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
