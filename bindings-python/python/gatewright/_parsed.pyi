"""Answers with the values of their texts."""

from collections.abc import AsyncIterator
from typing import Any, Generic, TypeAlias, TypeVar

from gatewright import types
from gatewright._message_events import CitationEvent, InputJsonEvent, SignatureEvent, TextEvent, ThinkingEvent
from gatewright.generated.arguments import MessagesStreamOtherEvent, ResponsesStreamOtherEvent

_Value = TypeVar("_Value")

class ParsedMessage(types.ChatCompletionMessage, Generic[_Value]):
    """The assistant's message, with the value of its text."""

    @property
    def parsed(self) -> _Value | None:
        """The value; None if the model refused or called tools."""

class ParsedChoice(types.ChatChoice, Generic[_Value]):
    """One choice, whose message has a value."""

    @property
    def message(self) -> ParsedMessage[_Value]:
        """The assistant's message."""

class ParsedChatCompletion(types.ChatCompletion, Generic[_Value]):
    """A `ChatCompletion` whose `choices[i].message.parsed` is a value of the requested type.

    Returned by `client.chat.completions.parse`. As a mapping, and in JSON, it is the plain completion.

    >>> import gatewright
    >>> client = gatewright.Client()
    >>> question = [{"role": "user", "content": "A city of Norway."}]
    >>> schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    >>> completion = client.chat.completions.parse(
    ...     model="model-sol", messages=question, response_format=schema
    ... )
    >>> list(completion.choices[0].message.parsed)
    ['name']
    """

    @property
    def choices(self) -> list[ParsedChoice[_Value]]:  # type: ignore[override]
        """The choices, one per n."""

class ParsedResponse(types.Response, Generic[_Value]):
    """A `Response` whose `output_parsed` is a value of the requested type.

    Returned by `client.responses.parse`. As a mapping, and in JSON, it is the plain response.

    >>> import gatewright
    >>> client = gatewright.Client()
    >>> schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    >>> response = client.responses.parse(model="model-sol", input="A city of Norway.", text_format=schema)
    >>> list(response.output_parsed)
    ['name']
    """

    @property
    def output_parsed(self) -> _Value | None:
        """The value of the last message; None if the model refused, or called tools instead."""
    @property
    def refusal(self) -> str | None:
        """Why the model declined."""

class ParsedAnswer(types.Message, Generic[_Value]):
    """A `Message` whose `parsed_output` is a value of the requested type.

    Returned by `client.messages.parse`. As a mapping, and in JSON, it is the plain message.

    >>> import gatewright
    >>> client = gatewright.Client()
    >>> question = [{"role": "user", "content": "A city of Norway."}]
    >>> schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    >>> message = client.messages.parse(
    ...     model="model-breeze", max_tokens=256, messages=question, output_format=schema
    ... )
    >>> list(message.parsed_output)
    ['name']
    """

    @property
    def parsed_output(self) -> _Value | None:
        """The value; None if the model refused, or called tools instead."""

class ParsedContent(types.GenerateContentResponse, Generic[_Value]):
    """A `GenerateContentResponse` whose `parsed` is a value of the requested type.

    Returned by `client.native.parse`. As a mapping, and in JSON, it is the plain response.

    >>> import gatewright
    >>> client = gatewright.Client()
    >>> schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    >>> answer = client.native.parse(
    ...     "model-terra", contents=[{"parts": [{"text": "A city of Norway."}]}], response_schema=schema
    ... )
    >>> list(answer.parsed)
    ['name']
    """

    @property
    def parsed(self) -> _Value | None:
        """The value of the first candidate; None if the model called functions instead."""

class TextDeltaEvent(types.ResponseTextDeltaEvent):
    """New text of a response."""

    @property
    def snapshot(self) -> str:
        """The text so far."""
    @property
    def parsed(self) -> Any:
        """The JSON so far, as plain dicts and lists; None if the request has no format or no value has
        begun."""

class ArgumentsDeltaEvent(types.ResponseFunctionCallArgumentsDeltaEvent):
    """New text of the arguments of a call."""

    @property
    def snapshot(self) -> str:
        """The text so far."""

ResponseEvent: TypeAlias = TextDeltaEvent | ArgumentsDeltaEvent | ResponsesStreamOtherEvent
"""An event of a response."""

class BlockStopEvent(types.MessageBlockStopEvent):
    """A block of a message is complete."""

    @property
    def content_block(self) -> types.MessageBlock:
        """The whole block."""

class StopEvent(types.MessageStopEvent):
    """The message is complete."""

    @property
    def message(self) -> types.Message:
        """The whole message."""

MessageEvent: TypeAlias = (
    TextEvent
    | ThinkingEvent
    | SignatureEvent
    | InputJsonEvent
    | CitationEvent
    | BlockStopEvent
    | StopEvent
    | MessagesStreamOtherEvent
)
"""An event of a message."""

class AsyncResponseItemList(types.ResponseItemList):
    """A page of the items that a response was generated from."""

    def __aiter__(self) -> AsyncIterator[types.ResponseItem]:
        """The items of this page and of the next ones, which are fetched when they are needed."""

class AsyncNativeModelList(types.NativeModelList):
    """A page of the native model list."""

    def __aiter__(self) -> AsyncIterator[types.NativeModel]:
        """The models of this page and of the next ones, which are fetched when they are needed."""
