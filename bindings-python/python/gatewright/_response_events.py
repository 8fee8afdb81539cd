"""The events of a streamed response, with the texts so far."""

from __future__ import annotations

from gatewright._drive import drive, drive_async
from gatewright._events import AsyncReader, SyncReader, _Reader
from gatewright._growing import GrowingText, TextSoFar
from gatewright._structured import parsed_response
from gatewright._view import LazyView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from typing import Any, Generic, TypeVar

    from gatewright._drive import Steps
    from gatewright._parsed import ParsedResponse, ResponseEvent
    from gatewright._structured import Format

    _Value = TypeVar("_Value")
else:
    from gatewright._streams import Generic

    _Value = None


class _ResponseTexts:
    """Adds the texts so far to the events of a response."""

    def __init__(self, wanted: Format | None) -> None:
        self._wanted = wanted
        # By kind of the event, and the indices of the item and of its part.
        self._texts: dict[tuple[Any, ...], GrowingText] = {}

    def of(self, event: Any) -> Any:
        kind = event.get("type")
        if kind == "response.output_text.delta":
            so_far = self._push(event, kind, is_json=self._wanted is not None)
            return LazyView(event, snapshot=lambda: so_far.text, parsed=lambda: so_far.value)
        if kind == "response.function_call_arguments.delta":
            so_far = self._push(event, kind, is_json=False)
            return LazyView(event, snapshot=lambda: so_far.text)
        return event

    def _push(self, event: Any, kind: str, *, is_json: bool) -> TextSoFar:
        place = (kind, event.get("output_index"), event.get("content_index"))
        text = self._texts.get(place)
        if text is None:
            text = self._texts[place] = GrowingText(is_json=is_json)
        return text.push(event.delta or "")


class _ResponseReader(_Reader):
    """A reader of a response."""

    _operation, _method = "create_response", "responses.create"

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

    Events of new text and of new arguments have a `snapshot`, the text so far; those of text also have
    `parsed`, the JSON so far, if the request has a format.
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
