"""client.responses: values of a type, tool loops and events, in addition to the generated methods."""

from __future__ import annotations

from gatewright._engine import NOT_GIVEN
from gatewright.generated import resources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar, overload

    from typing_extensions import Unpack

    from gatewright import types
    from gatewright._drive import Steps
    from gatewright._engine import NotGiven
    from gatewright._events import AsyncStreamManager, StreamManager
    from gatewright._parsed import AsyncResponseItemList, ParsedResponse, ResponseEvent
    from gatewright._response_events import AsyncResponseEvents, ResponseEvents
    from gatewright._structured import Format
    from gatewright._tools import Tool, ToolRun
    from gatewright.generated.arguments import (
        ResponsesInputItemsListArguments,
        ResponsesParseArguments,
        ResponsesRunToolsArguments,
        ResponsesStreamArguments,
    )

    _Value = TypeVar("_Value")


# The call that lists items, for errors.
_LIST = ("list_response_input_items", "responses.input_items.list")


class ResponsesInputItems(resources.ResponsesInputItems):
    """client.responses.input_items."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def list(self, response_id, **parameters):
            from gatewright._pages import Page

            page = super().list(response_id, **parameters)
            return Page(page, _following(self.list, response_id, parameters), _LIST)

        list.__wrapped__ = resources.ResponsesInputItems.list  # noqa: A003


class AsyncResponsesInputItems(resources.AsyncResponsesInputItems):
    """client.responses.input_items."""

    __slots__ = ()

    if TYPE_CHECKING:

        async def list(
            self, response_id: str, **parameters: Unpack[ResponsesInputItemsListArguments]
        ) -> AsyncResponseItemList: ...

    else:

        async def list(self, response_id, **parameters):
            from gatewright._pages import AsyncPage

            page = await super().list(response_id, **parameters)
            return AsyncPage(page, _following(self.list, response_id, parameters), _LIST)

        list.__wrapped__ = resources.AsyncResponsesInputItems.list  # noqa: A003


class Responses(resources.Responses):
    """client.responses."""

    __slots__ = ()

    @property
    def input_items(self) -> ResponsesInputItems:
        """client.responses.input_items."""
        return ResponsesInputItems(self._client)

    if not TYPE_CHECKING:

        def create(self, *, text=NOT_GIVEN, **members):
            return super().create(text=_sent(text), **members)

        create.__wrapped__ = resources.Responses.create

    if TYPE_CHECKING:

        @overload
        def parse(
            self, *, text_format: type[_Value], **arguments: Unpack[ResponsesParseArguments]
        ) -> ParsedResponse[_Value]: ...
        @overload
        def parse(
            self, *, text_format: Mapping[str, Any], **arguments: Unpack[ResponsesParseArguments]
        ) -> ParsedResponse[Any]: ...

    def parse(self, *, text_format: Any, **arguments: Any) -> Any:
        """Creates a response whose text is a value of a type: `output_parsed`.

        The type's JSON Schema is sent with `strict`: every property is required, no other is allowed.
        `output_parsed` is None if the model refused (`refusal` has the reason) or called tools instead.

        Args:
            text_format: A pydantic model, a dataclass, a TypedDict or another type that pydantic 2 supports;
                or a JSON Schema as a dict, which yields plain dicts and lists.
            arguments: The arguments of `create`, without `stream`. `text` may have members other than
                `format`.

        >>> import gatewright
        >>> from dataclasses import dataclass
        >>> @dataclass
        ... class City:
        ...     name: str
        ...     population: int
        >>> client = gatewright.Client()
        >>> response = client.responses.parse(
        ...     model="model-sol", input="A city of Norway, and how many live there.", text_format=City
        ... )
        >>> type(response.output_parsed).__name__
        'City'

        Raises:
            StructuredOutputError: The answer failed, was cut off, or is not a value of the type. The error
                holds it.
            ConfigurationError: pydantic is missing, or cannot describe the type.
        """
        from gatewright._structured import format_of, parsed_response

        wanted = format_of(text_format)
        return parsed_response(super().create(**_asking(wanted, arguments)), wanted)

    def run_tools(
        self,
        *,
        tools: Sequence[Callable[..., Any] | Tool],
        max_rounds: int = 10,
        raise_errors: bool = False,
        on_message: Callable[[Any], object] | None = None,
        on_event: Callable[[ResponseEvent], object] | None = None,
        **arguments: Unpack[ResponsesRunToolsArguments],
    ) -> ToolRun[types.Response]:
        """Calls a model repeatedly, and the functions that it requests, until it answers without a call.

        A function's name, docstring and type hints become its name, description and schema (this needs
        pydantic 2); a `gatewright.Tool` overrides them. The model gets what a function returns as text or as
        JSON, and an exception, or arguments that don't fit, as `error: …`. The calls of a round run one after
        the other, in the calling thread.

        Args:
            tools: The functions, or `gatewright.Tool`s.
            max_rounds: Maximum number of rounds in which the model calls tools, one or more at a time.
            raise_errors: Whether an exception in a function, or arguments that don't fit, end the loop.
            on_message: Called with each item that is added: the model's, and the results.
            on_event: If given, each answer is streamed, and this is called with its events; see `stream`.
            arguments: The arguments of `create`, without `stream`. A `tool_choice` that forces a call applies
                to the first round only.

        >>> import gatewright
        >>> def weather(place: str) -> str:
        ...     '''The weather of a place.'''
        ...     return f"sunny in {place}"
        >>> client = gatewright.Client()
        >>> run = client.responses.run_tools(
        ...     model="model-sol", input="And in Oslo?", tools=[weather], tool_choice="required"
        ... )
        >>> run.rounds, run.text == run.response.output_text
        (1, True)

        Raises:
            ToolLoopError: There were more than `max_rounds` rounds, or an answer was cut off in its calls.
                The error has the `messages`.
            ConfigurationError: A function has arguments without a JSON Schema, or pydantic is missing.
        """
        from gatewright._tool_loops import ResponseLoop, run

        loop: ResponseLoop[types.Response] = ResponseLoop(tools, max_rounds, raise_errors, {**arguments})
        return run(loop, self.create, on_message, on_event)  # type: ignore[no-any-return]

    if TYPE_CHECKING:

        @overload
        def stream(
            self, *, text_format: type[_Value], **arguments: Unpack[ResponsesStreamArguments]
        ) -> StreamManager[ResponseEvents[_Value]]: ...
        @overload
        def stream(
            self,
            *,
            text_format: Mapping[str, Any] | NotGiven | None = ...,
            **arguments: Unpack[ResponsesStreamArguments],
        ) -> StreamManager[ResponseEvents[Any]]: ...

    def stream(self, *, text_format: Any = NOT_GIVEN, **arguments: Any) -> Any:
        """Opens a stream for a `with` block: the events of the protocol, and `get_final_response()`.

        Events of new text (`response.output_text.delta`) also have `snapshot`, the text so far, and `parsed`,
        the JSON so far as plain dicts and lists, if the request has a format. Those of new call arguments
        (`response.function_call_arguments.delta`) have `snapshot`, too. `get_final_response()` reads to the
        end, and returns the same as `parse`.

        Args:
            text_format: As in `parse`; optional.
            arguments: The arguments of `create`.

        >>> import gatewright
        >>> client = gatewright.Client()
        >>> with client.responses.stream(model="model-sol", input="Reply with exactly: one two") as stream:
        ...     for event in stream:
        ...         if event.type == "response.output_text.delta":
        ...             text = event.snapshot
        ...     response = stream.get_final_response()
        >>> text, response.output_text
        ('one two', 'one two')

        Raises:
            StructuredOutputError: The answer failed, was cut off, or is not a value of the type; raised by
                `get_final_response()`.
        """
        from gatewright._events import StreamManager
        from gatewright._response_events import ResponseEvents

        given, wanted = _streamed(text_format, arguments)

        # Named as callers know it: errors about an argument name this function.
        def stream() -> Steps[Any]:
            return ResponseEvents((yield self.create(**given)), wanted)

        return StreamManager(stream)


class AsyncResponses(resources.AsyncResponses):
    """client.responses."""

    __slots__ = ()

    @property
    def input_items(self) -> AsyncResponsesInputItems:
        """client.responses.input_items."""
        return AsyncResponsesInputItems(self._client)

    if not TYPE_CHECKING:

        async def create(self, *, text=NOT_GIVEN, **members):
            return await super().create(text=_sent(text), **members)

        create.__wrapped__ = resources.AsyncResponses.create

    if TYPE_CHECKING:

        @overload
        async def parse(
            self, *, text_format: type[_Value], **arguments: Unpack[ResponsesParseArguments]
        ) -> ParsedResponse[_Value]: ...
        @overload
        async def parse(
            self, *, text_format: Mapping[str, Any], **arguments: Unpack[ResponsesParseArguments]
        ) -> ParsedResponse[Any]: ...

    async def parse(self, *, text_format: Any, **arguments: Any) -> Any:
        """Creates a response whose text is a value of a type; see `Responses.parse`.

        >>> import asyncio, gatewright
        >>> from dataclasses import make_dataclass
        >>> City = make_dataclass("City", [("name", str)])
        >>> async def ask() -> object:
        ...     async with gatewright.AsyncClient() as client:
        ...         response = await client.responses.parse(
        ...             model="model-sol", input="A city of Norway.", text_format=City
        ...         )
        ...     return response.output_parsed
        >>> isinstance(asyncio.run(ask()), City)
        True
        """
        from gatewright._structured import format_of, parsed_response

        wanted = format_of(text_format)
        return parsed_response(await super().create(**_asking(wanted, arguments)), wanted)

    async def run_tools(
        self,
        *,
        tools: Sequence[Callable[..., Any] | Tool],
        max_rounds: int = 10,
        raise_errors: bool = False,
        on_message: Callable[[Any], object] | None = None,
        on_event: Callable[[ResponseEvent], object] | None = None,
        **arguments: Unpack[ResponsesRunToolsArguments],
    ) -> ToolRun[types.Response]:
        """Calls a model repeatedly, and the functions that it requests, until it answers without a call.

        As `Responses.run_tools`, but the calls of a round run at the same time: coroutine functions as tasks,
        plain functions in threads. Cancelling the caller cancels them. `on_message` and
        `on_event` may be coroutine functions.

        >>> import asyncio, gatewright
        >>> async def weather(place: str) -> str:
        ...     return f"sunny in {place}"
        >>> async def ask() -> int:
        ...     async with gatewright.AsyncClient() as client:
        ...         run = await client.responses.run_tools(
        ...             model="model-sol", input="Hi!", tools=[weather], tool_choice="required"
        ...         )
        ...     return run.rounds
        >>> asyncio.run(ask())
        1
        """
        from gatewright._tool_loops import ResponseLoop, run_async

        loop: ResponseLoop[types.Response] = ResponseLoop(tools, max_rounds, raise_errors, {**arguments})
        return await run_async(loop, self.create, on_message, on_event)  # type: ignore[no-any-return]

    if TYPE_CHECKING:

        @overload
        def stream(
            self, *, text_format: type[_Value], **arguments: Unpack[ResponsesStreamArguments]
        ) -> AsyncStreamManager[AsyncResponseEvents[_Value]]: ...
        @overload
        def stream(
            self,
            *,
            text_format: Mapping[str, Any] | NotGiven | None = ...,
            **arguments: Unpack[ResponsesStreamArguments],
        ) -> AsyncStreamManager[AsyncResponseEvents[Any]]: ...

    def stream(self, *, text_format: Any = NOT_GIVEN, **arguments: Any) -> Any:
        """Opens a stream for an `async with` block; see `Responses.stream`.

        >>> import asyncio, gatewright
        >>> async def ask() -> str:
        ...     async with gatewright.AsyncClient() as client:
        ...         async with client.responses.stream(model="model-sol", input="Say hello.") as stream:
        ...             await stream.until_done()
        ...             return (await stream.get_final_response()).status
        >>> asyncio.run(ask())
        'completed'
        """
        from gatewright._events import AsyncStreamManager
        from gatewright._response_events import AsyncResponseEvents

        given, wanted = _streamed(text_format, arguments)

        # Named as callers know it: errors about an argument name this function.
        def stream() -> Steps[Any]:
            return AsyncResponseEvents((yield self.create(**given)), wanted)

        return AsyncStreamManager(stream)


def _following(method: Callable[..., Any], response_id: str, parameters: dict[str, Any]) -> Any:
    """Fetches the page after an item. A page in the other direction has no next page."""
    if parameters.get("before"):
        return None
    return lambda last_id: method(response_id, **{**parameters, "after": last_id})


def _sent(text: Any) -> Any:
    """Options of the text, with a type as the format that is sent; anything else as it is."""
    wanted = text.get("format") if isinstance(text, dict) else None
    if isinstance(wanted, type) or hasattr(wanted, "__origin__"):
        from gatewright._structured import format_of

        return {**text, "format": format_of(wanted).for_responses()}
    return text


def _streamed(text_format: Any, arguments: dict[str, Any]) -> tuple[dict[str, Any], Format | None]:
    """Arguments of a call that is streamed, and the format that its answer is read by, if any."""
    if text_format is None or text_format is NOT_GIVEN:
        return {**arguments, "stream": True}, None
    from gatewright._structured import format_of

    wanted = format_of(text_format)
    return {**_asking(wanted, arguments), "stream": True}, wanted


def _asking(wanted: Format, arguments: dict[str, Any]) -> Any:
    """Arguments of a call that is not streamed, with the format of its text."""
    if arguments.pop("stream", None):
        raise TypeError("responses.parse() does not stream; use responses.stream()")
    # NOT_GIVEN is false, too.
    text = arguments.get("text") or {}
    arguments["text"] = {**text, "format": wanted.for_responses()}
    return arguments
