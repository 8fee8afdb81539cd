"""client.chat: values of a type, tool loops and events, in addition to the generated methods."""

from __future__ import annotations

from gatewright._engine import NOT_GIVEN
from gatewright.generated import resources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar, overload

    from typing_extensions import Unpack

    from gatewright import types
    from gatewright._chat_events import AsyncChatCompletionEvents, ChatCompletionEvents, ChatEvent
    from gatewright._drive import Steps
    from gatewright._engine import NotGiven
    from gatewright._events import AsyncStreamManager, StreamManager
    from gatewright._parsed import ParsedChatCompletion
    from gatewright._structured import Format
    from gatewright._tools import Tool, ToolRun
    from gatewright.generated.arguments import (
        ChatCompletionsParseArguments,
        ChatCompletionsRunToolsArguments,
        ChatCompletionsStreamArguments,
    )

    _Value = TypeVar("_Value")


class ChatCompletions(resources.ChatCompletions):
    """client.chat.completions."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def create(self, *, response_format=NOT_GIVEN, **members):
            return super().create(response_format=_sent(response_format), **members)

        create.__wrapped__ = resources.ChatCompletions.create

    if TYPE_CHECKING:

        @overload
        def parse(
            self, *, response_format: type[_Value], **arguments: Unpack[ChatCompletionsParseArguments]
        ) -> ParsedChatCompletion[_Value]: ...
        @overload
        def parse(
            self, *, response_format: Mapping[str, Any], **arguments: Unpack[ChatCompletionsParseArguments]
        ) -> ParsedChatCompletion[Any]: ...

    def parse(self, *, response_format: Any, **arguments: Any) -> Any:
        """Creates a chat completion whose text is a value of a type: `choices[0].message.parsed`.

        The type's JSON Schema is sent with `strict`: every property is required, and no other is allowed.
        `parsed` is None if the model refused (`message.refusal` has the reason) or called tools instead.

        Args:
            response_format: A pydantic model, a dataclass, a TypedDict or another type that pydantic 2
                supports; or a JSON Schema as a dict, which yields plain dicts and lists.
            arguments: The arguments of `create`, without `stream`.

        >>> import gatewright
        >>> from dataclasses import dataclass
        >>> @dataclass
        ... class City:
        ...     name: str
        ...     population: int
        >>> client = gatewright.Client()
        >>> completion = client.chat.completions.parse(
        ...     model="model-sol",
        ...     messages=[{"role": "user", "content": "A city of Norway, and how many live there."}],
        ...     response_format=City,
        ... )
        >>> type(completion.choices[0].message.parsed).__name__
        'City'

        Raises:
            StructuredOutputError: The answer was cut off, or is not a value of the type. The error holds it.
            ConfigurationError: pydantic is missing, or cannot describe the type.
        """
        from gatewright._structured import format_of, parsed_completion

        wanted = format_of(response_format)
        completion = super().create(**_asking(wanted, arguments))
        return parsed_completion(completion, wanted)

    def run_tools(
        self,
        *,
        tools: Sequence[Callable[..., Any] | Tool],
        max_rounds: int = 10,
        raise_errors: bool = False,
        on_message: Callable[[Any], object] | None = None,
        on_event: Callable[[ChatEvent[None]], object] | None = None,
        **arguments: Unpack[ChatCompletionsRunToolsArguments],
    ) -> ToolRun[types.ChatCompletion]:
        """Calls a model repeatedly, and the functions that it requests, until it answers without a call.

        A function's name, docstring and type hints become its name, description and schema (this needs
        pydantic 2); a `gatewright.Tool` overrides them. The model gets what a function returns as text or as
        JSON, and an exception, or arguments that don't fit, as `error: …`. The calls of a round run one after
        the other, in the calling thread.

        Args:
            tools: The functions, or `gatewright.Tool`s.
            max_rounds: Maximum number of rounds in which the model calls tools, one or more at a time.
            raise_errors: Whether an exception in a function, or arguments that don't fit, end the loop.
            on_message: Called with each message that is added: the model's, and the results.
            on_event: If given, each answer is streamed, and this is called with its events; see `stream`.
            arguments: The arguments of `create`, without `stream`. A `tool_choice` that forces a call applies
                to the first round only.

        >>> import gatewright
        >>> def weather(place: str) -> str:
        ...     '''The weather of a place.'''
        ...     return f"sunny in {place}"
        >>> client = gatewright.Client()
        >>> run = client.chat.completions.run_tools(
        ...     model="model-sol",
        ...     messages=[{"role": "user", "content": "How is the weather in Oslo?"}],
        ...     tools=[weather],
        ...     tool_choice="required",
        ... )
        >>> [message["role"] for message in run.messages]
        ['user', 'assistant', 'tool', 'assistant']

        Raises:
            ToolLoopError: There were more than `max_rounds` rounds, or an answer was cut off in its calls.
                The error has the `messages`.
            ConfigurationError: A function has arguments without a JSON Schema, or pydantic is missing.
        """
        from gatewright._tool_loops import ChatLoop, run

        loop: ChatLoop[types.ChatCompletion] = ChatLoop(tools, max_rounds, raise_errors, {**arguments})
        return run(loop, self.create, on_message, on_event)  # type: ignore[no-any-return]

    if TYPE_CHECKING:

        @overload
        def stream(
            self, *, response_format: type[_Value], **arguments: Unpack[ChatCompletionsStreamArguments]
        ) -> StreamManager[ChatCompletionEvents[_Value]]: ...
        @overload
        def stream(
            self,
            *,
            response_format: Mapping[str, Any] | NotGiven | None = ...,
            **arguments: Unpack[ChatCompletionsStreamArguments],
        ) -> StreamManager[ChatCompletionEvents[Any]]: ...

    def stream(self, *, response_format: Any = NOT_GIVEN, **arguments: Any) -> Any:
        """Opens a stream of events for a `with` block; each event includes the answer so far.

        The events, by `type`: `chunk` (as it arrived: `chunk`), `content.delta` (`delta`, `snapshot`,
        `parsed`), `content.done` (`content`, `parsed`), `refusal.delta`, `refusal.done`,
        `logprobs.content.delta` (`content`, `snapshot`), `logprobs.content.done`, `logprobs.refusal.delta`,
        `logprobs.refusal.done`, `tool_calls.function.arguments.delta` (`index`, `name`, `arguments_delta`,
        `arguments`, `parsed_arguments`) and `tool_calls.function.arguments.done`. `parsed` of a delta is the
        JSON so far, as plain dicts and lists; `parsed` of `content.done` is a value of the type.
        `get_final_completion()` reads to the end, and returns the same as `parse`.

        Args:
            response_format: As in `parse`; optional.
            arguments: The arguments of `create`.

        >>> import gatewright
        >>> client = gatewright.Client()
        >>> with client.chat.completions.stream(
        ...     model="model-sol", messages=[{"role": "user", "content": "Reply with exactly: one two"}]
        ... ) as stream:
        ...     for event in stream:
        ...         if event.type == "content.delta":
        ...             text = event.snapshot
        ...     completion = stream.get_final_completion()
        >>> text, completion.choices[0].finish_reason
        ('one two', 'stop')

        Raises:
            StructuredOutputError: The answer was cut off, or is not a value of the type; raised by the loop,
                and by `get_final_completion()`.
        """
        from gatewright._chat_events import ChatCompletionEvents
        from gatewright._events import StreamManager

        given, wanted = _streamed(response_format, arguments)

        # Named as callers know it: errors about an argument name this function.
        def stream() -> Steps[Any]:
            return ChatCompletionEvents((yield self.create(**given)), wanted)

        return StreamManager(stream)


class AsyncChatCompletions(resources.AsyncChatCompletions):
    """client.chat.completions."""

    __slots__ = ()

    if not TYPE_CHECKING:

        async def create(self, *, response_format=NOT_GIVEN, **members):
            return await super().create(response_format=_sent(response_format), **members)

        create.__wrapped__ = resources.AsyncChatCompletions.create

    if TYPE_CHECKING:

        @overload
        async def parse(
            self, *, response_format: type[_Value], **arguments: Unpack[ChatCompletionsParseArguments]
        ) -> ParsedChatCompletion[_Value]: ...
        @overload
        async def parse(
            self, *, response_format: Mapping[str, Any], **arguments: Unpack[ChatCompletionsParseArguments]
        ) -> ParsedChatCompletion[Any]: ...

    async def parse(self, *, response_format: Any, **arguments: Any) -> Any:
        """Creates a chat completion whose text is a value of a type; see `ChatCompletions.parse`.

        >>> import asyncio, gatewright
        >>> from dataclasses import make_dataclass
        >>> City = make_dataclass("City", [("name", str)])
        >>> async def ask() -> object:
        ...     async with gatewright.AsyncClient() as client:
        ...         completion = await client.chat.completions.parse(
        ...             model="model-sol",
        ...             messages=[{"role": "user", "content": "A city of Norway."}],
        ...             response_format=City,
        ...         )
        ...     return completion.choices[0].message.parsed
        >>> isinstance(asyncio.run(ask()), City)
        True
        """
        from gatewright._structured import format_of, parsed_completion

        wanted = format_of(response_format)
        completion = await super().create(**_asking(wanted, arguments))
        return parsed_completion(completion, wanted)

    async def run_tools(
        self,
        *,
        tools: Sequence[Callable[..., Any] | Tool],
        max_rounds: int = 10,
        raise_errors: bool = False,
        on_message: Callable[[Any], object] | None = None,
        on_event: Callable[[ChatEvent[None]], object] | None = None,
        **arguments: Unpack[ChatCompletionsRunToolsArguments],
    ) -> ToolRun[types.ChatCompletion]:
        """Calls a model repeatedly, and the functions that it requests, until it answers without a call.

        As `ChatCompletions.run_tools`, but the calls of a round run at the same time: coroutine functions as
        tasks, plain functions in threads. Cancelling the caller cancels them. `on_message` and
        `on_event` may be coroutine functions.

        >>> import asyncio, gatewright
        >>> async def weather(place: str) -> str:
        ...     return f"sunny in {place}"
        >>> async def ask() -> int:
        ...     async with gatewright.AsyncClient() as client:
        ...         run = await client.chat.completions.run_tools(
        ...             model="model-sol",
        ...             messages=[{"role": "user", "content": "How is the weather in Oslo?"}],
        ...             tools=[weather],
        ...             tool_choice="required",
        ...         )
        ...     return run.rounds
        >>> asyncio.run(ask())
        1
        """
        from gatewright._tool_loops import ChatLoop, run_async

        loop: ChatLoop[types.ChatCompletion] = ChatLoop(tools, max_rounds, raise_errors, {**arguments})
        return await run_async(loop, self.create, on_message, on_event)  # type: ignore[no-any-return]

    if TYPE_CHECKING:

        @overload
        def stream(
            self, *, response_format: type[_Value], **arguments: Unpack[ChatCompletionsStreamArguments]
        ) -> AsyncStreamManager[AsyncChatCompletionEvents[_Value]]: ...
        @overload
        def stream(
            self,
            *,
            response_format: Mapping[str, Any] | NotGiven | None = ...,
            **arguments: Unpack[ChatCompletionsStreamArguments],
        ) -> AsyncStreamManager[AsyncChatCompletionEvents[Any]]: ...

    def stream(self, *, response_format: Any = NOT_GIVEN, **arguments: Any) -> Any:
        """Opens a stream for an `async with` block; see `ChatCompletions.stream`.

        >>> import asyncio, gatewright
        >>> async def ask() -> object:
        ...     question = [{"role": "user", "content": "A city of Norway."}]
        ...     schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        ...     async with gatewright.AsyncClient() as client:
        ...         async with client.chat.completions.stream(
        ...             model="model-sol", messages=question, response_format=schema
        ...         ) as stream:
        ...             return [event.parsed async for event in stream if event.type == "content.delta"][-1]
        >>> list(asyncio.run(ask()))
        ['name']
        """
        from gatewright._chat_events import AsyncChatCompletionEvents
        from gatewright._events import AsyncStreamManager

        given, wanted = _streamed(response_format, arguments)

        # Named as callers know it: errors about an argument name this function.
        def stream() -> Steps[Any]:
            return AsyncChatCompletionEvents((yield self.create(**given)), wanted)

        return AsyncStreamManager(stream)


class Chat(resources.Chat):
    """client.chat."""

    __slots__ = ()

    @property
    def completions(self) -> ChatCompletions:
        """client.chat.completions."""
        return ChatCompletions(self._client)


class AsyncChat(resources.AsyncChat):
    """client.chat."""

    __slots__ = ()

    @property
    def completions(self) -> AsyncChatCompletions:
        """client.chat.completions."""
        return AsyncChatCompletions(self._client)


def _sent(response_format: Any) -> Any:
    """A type as the format that is sent; anything else as it is."""
    if isinstance(response_format, type) or hasattr(response_format, "__origin__"):
        from gatewright._structured import format_of

        return format_of(response_format).for_chat()
    return response_format


def _streamed(response_format: Any, arguments: dict[str, Any]) -> tuple[dict[str, Any], Format | None]:
    """Arguments of a call that is streamed, and the format that its answer is read by, if any."""
    if response_format is None or response_format is NOT_GIVEN:
        return {**arguments, "response_format": response_format, "stream": True}, None
    from gatewright._structured import format_of

    wanted = format_of(response_format)
    return {**arguments, "response_format": wanted.for_chat(), "stream": True}, wanted


def _asking(wanted: Format, arguments: dict[str, Any]) -> Any:
    """Arguments of a call that is not streamed, with the format of its text."""
    if arguments.pop("stream", None):
        raise TypeError("chat.completions.parse() does not stream; use chat.completions.stream()")
    return {**arguments, "response_format": wanted.for_chat()}
