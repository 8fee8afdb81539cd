"""The events of a streamed chat completion: texts so far, tool calls, values of a type."""

from __future__ import annotations

from gatewright._drive import drive, drive_async
from gatewright._engine import Record
from gatewright._events import AsyncReader, Event, SyncReader, _Reader
from gatewright._growing import GrowingText, ListSoFar, TextSoFar
from gatewright._structured import parsed_completion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from typing import Any, Generic, Literal, TypeAlias, TypeVar

    from gatewright import types
    from gatewright._drive import Steps
    from gatewright._parsed import ParsedChatCompletion
    from gatewright._structured import Format

    _Value = TypeVar("_Value")
else:
    from gatewright._streams import Generic

    _Value = None


class ChunkEvent(Event):
    """A chunk as it arrived. The events for its contents follow."""

    type: Literal["chunk"] = "chunk"

    def __init__(self, chunk: types.ChatCompletionChunk) -> None:
        self.chunk = chunk
        """The chunk."""


class ContentDeltaEvent(Event):
    """New text."""

    type: Literal["content.delta"] = "content.delta"

    def __init__(self, index: int, delta: str, so_far: TextSoFar) -> None:
        self.index = index
        """Index of the choice."""
        self.delta = delta
        """The new text."""
        self._so_far = so_far

    @property
    def snapshot(self) -> str:
        """The text so far. It is joined when this is read."""
        return self._so_far.text

    @property
    def parsed(self) -> Any:
        """The JSON so far, as plain dicts and lists; None if the request has no format or no value has begun.
        The text is parsed when this is first read. Beyond 8 MiB of text, 128 levels or 100,000 values, it is
        None."""
        return self._so_far.value


class ContentDoneEvent(Event, Generic[_Value]):
    """The text is complete."""

    type: Literal["content.done"] = "content.done"

    def __init__(self, index: int, content: str, parsed: _Value | None) -> None:
        self.index = index
        """Index of the choice."""
        self.content = content
        """The whole text."""
        self.parsed = parsed
        """The value; None if the request has no format."""


class RefusalDeltaEvent(Event):
    """New text of a refusal."""

    type: Literal["refusal.delta"] = "refusal.delta"

    def __init__(self, index: int, delta: str, so_far: TextSoFar) -> None:
        self.index = index
        """Index of the choice."""
        self.delta = delta
        """The new text."""
        self._so_far = so_far

    @property
    def snapshot(self) -> str:
        """The text so far. It is joined when this is read."""
        return self._so_far.text


class RefusalDoneEvent(Event):
    """The refusal is complete."""

    type: Literal["refusal.done"] = "refusal.done"

    def __init__(self, index: int, refusal: str) -> None:
        self.index = index
        """Index of the choice."""
        self.refusal = refusal
        """The whole text."""


class LogprobsContentDeltaEvent(Event):
    """Log probabilities of new tokens of the text."""

    type: Literal["logprobs.content.delta"] = "logprobs.content.delta"

    def __init__(self, index: int, content: list[types.TokenLogprob], so_far: ListSoFar) -> None:
        self.index = index
        """Index of the choice."""
        self.content = content
        """The new tokens."""
        self._so_far = so_far

    @property
    def snapshot(self) -> list[types.TokenLogprob]:
        """The tokens so far."""
        return self._so_far.elements


class LogprobsContentDoneEvent(Event):
    """The log probabilities of the text are complete."""

    type: Literal["logprobs.content.done"] = "logprobs.content.done"

    def __init__(self, index: int, content: list[types.TokenLogprob]) -> None:
        self.index = index
        """Index of the choice."""
        self.content = content
        """All tokens."""


class LogprobsRefusalDeltaEvent(Event):
    """Log probabilities of new tokens of a refusal."""

    type: Literal["logprobs.refusal.delta"] = "logprobs.refusal.delta"

    def __init__(self, index: int, refusal: list[types.TokenLogprob], so_far: ListSoFar) -> None:
        self.index = index
        """Index of the choice."""
        self.refusal = refusal
        """The new tokens."""
        self._so_far = so_far

    @property
    def snapshot(self) -> list[types.TokenLogprob]:
        """The tokens so far."""
        return self._so_far.elements


class LogprobsRefusalDoneEvent(Event):
    """The log probabilities of a refusal are complete."""

    type: Literal["logprobs.refusal.done"] = "logprobs.refusal.done"

    def __init__(self, index: int, refusal: list[types.TokenLogprob]) -> None:
        self.index = index
        """Index of the choice."""
        self.refusal = refusal
        """All tokens."""


class ToolArgumentsDeltaEvent(Event):
    """New text of the arguments of a tool call."""

    type: Literal["tool_calls.function.arguments.delta"] = "tool_calls.function.arguments.delta"

    def __init__(self, index: int, name: str, delta: str, so_far: TextSoFar) -> None:
        self.index = index
        """Index of the call."""
        self.name = name
        """Name of the tool."""
        self.arguments_delta = delta
        """The new text."""
        self._so_far = so_far

    @property
    def arguments(self) -> str:
        """The text so far. It is joined when this is read."""
        return self._so_far.text

    @property
    def parsed_arguments(self) -> Any:
        """The arguments so far, or None; see `ContentDeltaEvent.parsed`."""
        return self._so_far.value


class ToolArgumentsDoneEvent(Event):
    """The arguments of a tool call are complete."""

    type: Literal["tool_calls.function.arguments.done"] = "tool_calls.function.arguments.done"

    def __init__(self, index: int, name: str, so_far: TextSoFar) -> None:
        self.index = index
        """Index of the call."""
        self.name = name
        """Name of the tool."""
        # A server may alternate between calls, and each turn ends one: the text is joined and parsed only
        # when it is read.
        self._so_far = so_far

    @property
    def arguments(self) -> str:
        """The whole text."""
        return self._so_far.text

    @property
    def parsed_arguments(self) -> Any:
        """The arguments; None if they are not JSON. The text is parsed when this is first read."""
        return self._so_far.value


if TYPE_CHECKING:
    ChatEvent: TypeAlias = (
        ChunkEvent
        | ContentDeltaEvent
        | ContentDoneEvent[_Value]
        | RefusalDeltaEvent
        | RefusalDoneEvent
        | LogprobsContentDeltaEvent
        | LogprobsContentDoneEvent
        | LogprobsRefusalDeltaEvent
        | LogprobsRefusalDoneEvent
        | ToolArgumentsDeltaEvent
        | ToolArgumentsDoneEvent
    )


class _ToolCall:
    def __init__(self) -> None:
        self.name = ""
        self.arguments = GrowingText(is_json=True)
        self.is_function = True


class _Choice:
    """The state of one choice."""

    def __init__(self, *, is_json: bool) -> None:
        self.content = GrowingText(is_json=is_json)
        self.refusal = GrowingText()
        self.content_tokens: list[types.TokenLogprob] = []
        self.refusal_tokens: list[types.TokenLogprob] = []
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
        for position, choice in enumerate(chunk.choices or []):
            index = position if choice.index is None else choice.index
            state = self._choices.get(index)
            if state is None:
                state = self._choices[index] = _Choice(is_json=self._wanted is not None)
            self._add_text(events, index, state, choice.delta)
            self._add_tokens(events, index, state, choice.logprobs)
            self._add_calls(events, index, state, choice.delta)
            if choice.finish_reason:
                if self._wanted is not None and choice.finish_reason in ("length", "content_filter"):
                    raise ValueError(choice.finish_reason)
                self._finish(events, index, state)

    def end(self, events: list[Any]) -> None:
        """Adds the remaining events of a stream without finish reasons."""
        for index, state in self._choices.items():
            self._finish(events, index, state)

    def _add_text(self, events: list[Any], index: int, state: _Choice, delta: Any) -> None:
        if delta is None:
            return
        if delta.content:
            so_far = state.content.push(delta.content)
            events.append(ContentDeltaEvent(index, delta.content, so_far))
        if delta.refusal:
            so_far = state.refusal.push(delta.refusal)
            events.append(RefusalDeltaEvent(index, delta.refusal, so_far))

    def _add_tokens(self, events: list[Any], index: int, state: _Choice, logprobs: Any) -> None:
        if logprobs is None:
            return
        if content := logprobs.content:
            state.content_tokens.extend(content)
            events.append(LogprobsContentDeltaEvent(index, content, ListSoFar(state.content_tokens)))
        if refusal := logprobs.refusal:
            state.refusal_tokens.extend(refusal)
            events.append(LogprobsRefusalDeltaEvent(index, refusal, ListSoFar(state.refusal_tokens)))

    def _add_calls(self, events: list[Any], index: int, state: _Choice, delta: Any) -> None:
        for position, call in enumerate((delta and delta.tool_calls) or []):
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
            new = _text_of(made.arguments)
            events.append(ToolArgumentsDeltaEvent(at, known.name, new, known.arguments.push(new)))

    def _finish(self, events: list[Any], index: int, state: _Choice, *, reads: bool = True) -> None:
        """Completes what is open: the text before tool calls, which is not a value; a call before the next
        one."""
        if not state.is_text_done:
            state.is_text_done = True
            if state.content:
                content = state.content.text()
                wanted = self._wanted if reads and not state.refusal else None
                parsed = None if wanted is None else wanted.read(content)
                events.append(ContentDoneEvent(index, content, parsed))
            if state.refusal:
                events.append(RefusalDoneEvent(index, state.refusal.text()))
            if state.content_tokens:
                events.append(LogprobsContentDoneEvent(index, list(state.content_tokens)))
            if state.refusal_tokens:
                events.append(LogprobsRefusalDoneEvent(index, list(state.refusal_tokens)))
        if state.open_call is not None:
            call = state.calls[state.open_call]
            if call.is_function:
                events.append(ToolArgumentsDoneEvent(state.open_call, call.name, call.arguments.whole()))
            state.open_call = None


class _ChatReader(_Reader):
    """A reader of a chat completion."""

    _operation, _method = "create_chat_completion", "chat.completions.create"

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


def _text_of(arguments: Any) -> str:
    """The text of a call's arguments. Some servers send an object; the core takes its JSON text."""
    if isinstance(arguments, Record):
        return arguments.to_json()
    text: str = arguments or ""
    return text
