"""client.messages: values of a type, tool loops and streams as context managers, in addition to the generated
methods."""

from __future__ import annotations

from gatewright.generated import resources
from gatewright.generated.streams import AsyncMessageStream, MessageStream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
    from typing import Any, TypeVar, overload

    from typing_extensions import Unpack

    from gatewright import types
    from gatewright._drive import Steps
    from gatewright._events import AsyncStreamManager, StreamManager
    from gatewright._parsed import ParsedAnswer
    from gatewright._structured import Format
    from gatewright._tools import Tool, ToolRun
    from gatewright.generated.arguments import (
        MessagesParseArguments,
        MessagesRunToolsArguments,
        MessagesStreamArguments,
    )

    _Value = TypeVar("_Value")


class MessageEvents(MessageStream):
    """The events of a message: `for event in stream`, or `stream.text_stream`."""

    @property
    def text_stream(self) -> Iterator[str]:
        """The new text of all text blocks, instead of the events."""
        return self.text()

    def get_final_text(self) -> str:
        """Reads to the end; returns the text of all text blocks."""
        return _text(self.get_final_message())

    def until_done(self) -> MessageEvents:
        """Reads to the end; discards the events."""
        self.get_final_message()
        return self


class AsyncMessageEvents(AsyncMessageStream):
    """The events of a message: `async for event in stream`, or `stream.text_stream`."""

    @property
    def text_stream(self) -> AsyncIterator[str]:
        """The new text of all text blocks, instead of the events."""
        return self.text()

    async def get_final_text(self) -> str:
        """Reads to the end; returns the text of all text blocks."""
        return _text(await self.get_final_message())

    async def until_done(self) -> AsyncMessageEvents:
        """Reads to the end; discards the events."""
        await self.get_final_message()
        return self


class Messages(resources.Messages):
    """client.messages."""

    __slots__ = ()

    if TYPE_CHECKING:

        @overload
        def parse(
            self, *, output_format: type[_Value], **arguments: Unpack[MessagesParseArguments]
        ) -> ParsedAnswer[_Value]: ...
        @overload
        def parse(
            self, *, output_format: Mapping[str, Any], **arguments: Unpack[MessagesParseArguments]
        ) -> ParsedAnswer[Any]: ...

    def parse(self, *, output_format: Any, **arguments: Any) -> Any:
        """Creates a message whose text is a value of a type: `parsed_output`.

        The type's JSON Schema is sent in its strict form: every property is required, and no other is
        allowed. `parsed_output` is None if the model refused (`stop_reason` is `refusal`) or called tools
        instead.

        Args:
            output_format: A pydantic model, a dataclass, a TypedDict or another type that pydantic 2
                supports; or a JSON Schema as a dict, which yields plain dicts and lists.
            arguments: The arguments of `create`, without `stream`. `output_config` may have members other
                than `format`.

        >>> import gatewright
        >>> from dataclasses import dataclass
        >>> @dataclass
        ... class City:
        ...     name: str
        ...     population: int
        >>> client = gatewright.Client()
        >>> message = client.messages.parse(
        ...     model="model-breeze",
        ...     max_tokens=256,
        ...     messages=[{"role": "user", "content": "A city of Norway, and how many live there."}],
        ...     output_format=City,
        ... )
        >>> type(message.parsed_output).__name__
        'City'

        Raises:
            StructuredOutputError: The answer was cut off, or is not a value of the type. The error holds it.
            ConfigurationError: pydantic is missing, or cannot describe the type.
        """
        from gatewright._structured import format_of, parsed_answer

        wanted = format_of(output_format)
        return parsed_answer(self.create(**_asking(wanted, arguments)), wanted)

    def run_tools(
        self,
        *,
        tools: Sequence[Callable[..., Any] | Tool],
        max_rounds: int = 10,
        raise_errors: bool = False,
        on_message: Callable[[Any], object] | None = None,
        on_event: Callable[[types.MessageStreamEvent], object] | None = None,
        **arguments: Unpack[MessagesRunToolsArguments],
    ) -> ToolRun[types.Message]:
        """Calls a model repeatedly, and the functions that it requests, until it answers without a call.

        A function's name, docstring and type hints become its name, description and schema (this needs
        pydantic 2); a `gatewright.Tool` overrides them. The model gets what a function returns as text or as
        JSON, and an exception, or arguments that don't fit, as `error: …`. The calls of a round run one after
        the other, in the calling thread; their results form one user turn.

        Args:
            tools: The functions, or `gatewright.Tool`s.
            max_rounds: Maximum number of rounds in which the model calls tools, one or more at a time.
            raise_errors: Whether an exception in a function, or arguments that don't fit, end the loop.
            on_message: Called with each turn that is added: the model's, and the results.
            on_event: If given, each answer is streamed, and this is called with its events.
            arguments: The arguments of `create`, without `stream`. A `tool_choice` that forces a call applies
                to the first round only.

        >>> import gatewright
        >>> def weather(place: str) -> str:
        ...     '''The weather of a place.'''
        ...     return f"sunny in {place}"
        >>> client = gatewright.Client()
        >>> run = client.messages.run_tools(
        ...     model="model-breeze",
        ...     max_tokens=256,
        ...     messages=[{"role": "user", "content": "How is the weather in Oslo?"}],
        ...     tools=[weather],
        ...     tool_choice={"type": "any"},
        ... )
        >>> [turn["role"] for turn in run.messages], run.text == run.completion.text
        (['user', 'assistant', 'user', 'assistant'], True)

        Raises:
            ToolLoopError: There were more than `max_rounds` rounds, or an answer was cut off in its calls.
                The error has the `messages`.
            ConfigurationError: A function has arguments without a JSON Schema, or pydantic is missing.
        """
        from gatewright._tool_loops import MessageLoop, run

        loop: MessageLoop[types.Message] = MessageLoop(tools, max_rounds, raise_errors, {**arguments})
        return run(loop, self.create, on_message, on_event)  # type: ignore[no-any-return]

    def stream(self, **arguments: Unpack[MessagesStreamArguments]) -> StreamManager[MessageEvents]:
        """Opens a stream for a `with` block: its events, `text_stream`, `get_final_message()` and
        `get_final_text()`.

        Args:
            arguments: The arguments of `create`, without `stream`.

        >>> import gatewright
        >>> client = gatewright.Client()
        >>> with client.messages.stream(
        ...     model="model-breeze",
        ...     max_tokens=64,
        ...     messages=[{"role": "user", "content": "Reply with exactly: one two"}],
        ... ) as stream:
        ...     pieces = list(stream.text_stream)
        ...     message = stream.get_final_message()
        >>> "".join(pieces), message.role, stream.get_final_text()
        ('one two', 'assistant', 'one two')
        """
        from gatewright._events import StreamManager

        given: Any = {**arguments, "stream": True}

        # Named as callers know it: errors about an argument name this function.
        def stream() -> Steps[MessageEvents]:
            return MessageEvents((yield self.create(**given))._engine)

        return StreamManager(stream)


class AsyncMessages(resources.AsyncMessages):
    """client.messages."""

    __slots__ = ()

    if TYPE_CHECKING:

        @overload
        async def parse(
            self, *, output_format: type[_Value], **arguments: Unpack[MessagesParseArguments]
        ) -> ParsedAnswer[_Value]: ...
        @overload
        async def parse(
            self, *, output_format: Mapping[str, Any], **arguments: Unpack[MessagesParseArguments]
        ) -> ParsedAnswer[Any]: ...

    async def parse(self, *, output_format: Any, **arguments: Any) -> Any:
        """Creates a message whose text is a value of a type; see `Messages.parse`.

        >>> import asyncio, gatewright
        >>> from dataclasses import make_dataclass
        >>> City = make_dataclass("City", [("name", str)])
        >>> async def ask() -> object:
        ...     async with gatewright.AsyncClient() as client:
        ...         message = await client.messages.parse(
        ...             model="model-breeze",
        ...             max_tokens=256,
        ...             messages=[{"role": "user", "content": "A city of Norway."}],
        ...             output_format=City,
        ...         )
        ...     return message.parsed_output
        >>> isinstance(asyncio.run(ask()), City)
        True
        """
        from gatewright._structured import format_of, parsed_answer

        wanted = format_of(output_format)
        return parsed_answer(await self.create(**_asking(wanted, arguments)), wanted)

    async def run_tools(
        self,
        *,
        tools: Sequence[Callable[..., Any] | Tool],
        max_rounds: int = 10,
        raise_errors: bool = False,
        on_message: Callable[[Any], object] | None = None,
        on_event: Callable[[types.MessageStreamEvent], object] | None = None,
        **arguments: Unpack[MessagesRunToolsArguments],
    ) -> ToolRun[types.Message]:
        """Calls a model repeatedly, and the functions that it requests, until it answers without a call.

        As `Messages.run_tools`, but the calls of a round run at the same time: coroutine functions as
        tasks, plain functions in threads. Cancelling the caller cancels them. `on_message` and
        `on_event` may be coroutine functions.

        >>> import asyncio, gatewright
        >>> async def weather(place: str) -> str:
        ...     return f"sunny in {place}"
        >>> async def ask() -> int:
        ...     async with gatewright.AsyncClient() as client:
        ...         run = await client.messages.run_tools(
        ...             model="model-breeze",
        ...             max_tokens=256,
        ...             messages=[{"role": "user", "content": "How is the weather in Oslo?"}],
        ...             tools=[weather],
        ...             tool_choice={"type": "any"},
        ...         )
        ...     return run.rounds
        >>> asyncio.run(ask())
        1
        """
        from gatewright._tool_loops import MessageLoop, run_async

        loop: MessageLoop[types.Message] = MessageLoop(tools, max_rounds, raise_errors, {**arguments})
        return await run_async(loop, self.create, on_message, on_event)  # type: ignore[no-any-return]

    def stream(self, **arguments: Unpack[MessagesStreamArguments]) -> AsyncStreamManager[AsyncMessageEvents]:
        """Opens a stream for an `async with` block; see `Messages.stream`.

        >>> import asyncio, gatewright
        >>> async def ask() -> str:
        ...     async with gatewright.AsyncClient() as client:
        ...         async with client.messages.stream(
        ...             model="model-breeze",
        ...             max_tokens=64,
        ...             messages=[{"role": "user", "content": "Reply with exactly: one two"}],
        ...         ) as stream:
        ...             return await stream.get_final_text()
        >>> asyncio.run(ask())
        'one two'
        """
        from gatewright._events import AsyncStreamManager

        given: Any = {**arguments, "stream": True}

        def stream() -> Steps[AsyncMessageEvents]:
            return AsyncMessageEvents((yield self.create(**given))._engine)

        return AsyncStreamManager(stream)


def _text(message: Any) -> str:
    return "".join(block.text or "" for block in message.content if block.get("type") == "text")


def _asking(wanted: Format, arguments: dict[str, Any]) -> Any:
    """Arguments of a call that is not streamed, with the format of its text."""
    if arguments.pop("stream", None):
        raise TypeError("messages.parse() does not stream; use messages.stream()")
    # NOT_GIVEN is false, too.
    config = arguments.get("output_config") or {}
    return {**arguments, "output_config": {**config, "format": wanted.for_messages()}}
