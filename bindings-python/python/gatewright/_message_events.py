"""The events of a streamed message: those of the protocol, and what they add up to."""

from __future__ import annotations

from gatewright._drive import drive, drive_async
from gatewright._engine import Record
from gatewright._events import AsyncReader, Event, SyncReader, _Reader
from gatewright._message_so_far import Block, MessageSoFar
from gatewright._view import LazyView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from typing import Any, Literal

    from gatewright import types
    from gatewright._drive import Steps
    from gatewright._growing import ListSoFar, TextSoFar
    from gatewright._parsed import MessageEvent


class TextEvent(Event):
    """New text of a block of text."""

    type: Literal["text"] = "text"

    def __init__(self, text: str, so_far: TextSoFar | None) -> None:
        self.text = text
        """The new text."""
        self._so_far = so_far

    @property
    def snapshot(self) -> str:
        """The text of the block so far. It is joined when this is read."""
        return self.text if self._so_far is None else self._so_far.text


class InputJsonEvent(Event):
    """New JSON of the input of a tool call."""

    type: Literal["input_json"] = "input_json"

    def __init__(self, partial_json: str, so_far: TextSoFar) -> None:
        self.partial_json = partial_json
        """The new text."""
        self._so_far = so_far

    @property
    def snapshot(self) -> Any:
        """The input so far, as plain dicts and lists; `{}` before it begins. The text is parsed when this is
        first read. Beyond 8 MiB of text, 128 levels or 100,000 values, it is `{}`, too: the whole input is in
        the event `content_block_stop`."""
        value = self._so_far.value
        return {} if value is None else value


class ThinkingEvent(Event):
    """New text of the model's thinking."""

    type: Literal["thinking"] = "thinking"

    def __init__(self, thinking: str, so_far: TextSoFar | None) -> None:
        self.thinking = thinking
        """The new text."""
        self._so_far = so_far

    @property
    def snapshot(self) -> str:
        """The text of the block so far. It is joined when this is read."""
        return self.thinking if self._so_far is None else self._so_far.text


class SignatureEvent(Event):
    """The signature of a block of thinking."""

    type: Literal["signature"] = "signature"

    def __init__(self, signature: str) -> None:
        self.signature = signature
        """The whole signature."""


class CitationEvent(Event):
    """A citation of a block of text."""

    type: Literal["citation"] = "citation"

    def __init__(self, citation: Any, so_far: ListSoFar) -> None:
        self.citation = citation
        """The new citation."""
        self._so_far = so_far

    @property
    def snapshot(self) -> list[Any]:
        """The citations of the block so far."""
        return [Record(one) if isinstance(one, dict) else one for one in self._so_far.elements]


class _MessageReader(_Reader):
    """A reader of a message."""

    _operation, _method = "create_message", "messages.create"

    def __init__(self, stream: Any) -> None:
        super().__init__(stream, None)
        self._message = MessageSoFar()
        self._has_begun = False

    @property
    def current_message_snapshot(self) -> types.Message | None:
        """The message so far; None before its first event. It is built when this is read."""
        if self._stream._final is not None:
            return self._stream._final  # type: ignore[no-any-return]
        return Record(self._message.document()) if self._has_begun else None  # type: ignore[return-value]

    def _make(self, event: Any, made: list[Any]) -> None:
        if event is None:
            return
        members, message = event.to_dict(), self._message
        self._has_begun = True
        kind = members.get("type")
        if kind == "content_block_delta":
            made.append(event)
            if isinstance(members.get("delta"), dict):
                _add_piece(made, message.block(members), event.delta, members["delta"])
        elif kind == "message_start":
            made.append(event)
            # The text of a message that arrived whole is new text, too.
            texts = [block.text for block in message.begin(members.get("message"))]
            made.extend(TextEvent(text, None) for text in texts if text)
        elif kind == "content_block_start":
            made.append(event)
            message.begin_block(members)
        elif kind == "content_block_stop":
            block = message.end_block(members)
            made.append(LazyView(event, content_block=lambda: Record(block.document())))
        elif kind == "message_delta":
            made.append(event)
            message.settle(members)
        elif kind == "message_stop":
            message.end()
            made.append(LazyView(event, message=lambda: Record(message.document())))
        else:
            made.append(event)

    def _final(self) -> Steps[Any]:
        return (yield self._stream._get_final())


def _add_piece(made: list[Any], block: Block, delta: Any, members: dict[str, Any]) -> None:
    """Adds a piece to its block, and the event of the piece."""
    kind = members.get("type")
    so_far: Any = block.add(members)
    if kind == "text_delta":
        made.append(TextEvent(_text_in(members, "text"), so_far))
    elif kind == "input_json_delta":
        made.append(InputJsonEvent(_text_in(members, "partial_json"), so_far))
    elif kind == "thinking_delta":
        made.append(ThinkingEvent(_text_in(members, "thinking"), so_far))
    elif kind == "signature_delta":
        made.append(SignatureEvent(_text_in(members, "signature")))
    elif kind == "citations_delta":
        made.append(CitationEvent(delta.citation, so_far))


def _text_in(members: dict[str, Any], name: str) -> str:
    text = members.get(name)
    return text if isinstance(text, str) else ""


class MessageEvents(_MessageReader, SyncReader):
    """The events of a message: `for event in stream`, or `stream.text_stream`, once."""

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[MessageEvent]: ...
        def __next__(self) -> MessageEvent: ...

    @property
    def text_stream(self) -> Iterator[str]:
        """The new text of all text blocks, instead of the events; never an empty piece."""
        return self._texts()

    def _texts(self) -> Iterator[str]:
        for event in self:
            # A server's own event may have the same type.
            if isinstance(event, TextEvent) and event.text:
                yield event.text

    def get_final_message(self) -> types.Message:
        """Reads to the end; returns the whole message."""
        message: types.Message = drive(self._final())
        return message

    def get_final_text(self) -> str:
        """Reads to the end; returns the text of all text blocks."""
        return _text(self.get_final_message())


class AsyncMessageEvents(_MessageReader, AsyncReader):
    """The events of a message: `async for event in stream`, or `stream.text_stream`, once."""

    if TYPE_CHECKING:

        def __aiter__(self) -> AsyncIterator[MessageEvent]: ...
        async def __anext__(self) -> MessageEvent: ...

    @property
    def text_stream(self) -> AsyncIterator[str]:
        """The new text of all text blocks, instead of the events; never an empty piece."""
        return self._texts()

    async def _texts(self) -> AsyncIterator[str]:
        async for event in self:
            # A server's own event may have the same type.
            if isinstance(event, TextEvent) and event.text:
                yield event.text

    async def get_final_message(self) -> types.Message:
        """Reads to the end; returns the whole message."""
        return await drive_async(self._final())

    async def get_final_text(self) -> str:
        """Reads to the end; returns the text of all text blocks."""
        return _text(await self.get_final_message())


def _text(message: Any) -> str:
    return "".join(block.text or "" for block in message.content if block.get("type") == "text")
