"""client.messages: values of a type, tool loops and streams as context managers, in addition to the generated
methods."""

from __future__ import annotations

from gatewright.generated import resources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar, overload

    from typing_extensions import Unpack

    from gatewright import types
    from gatewright._drive import Steps
    from gatewright._events import AsyncStreamManager, StreamManager
    from gatewright._message_events import AsyncMessageEvents, MessageEvents
    from gatewright._parsed import ParsedAnswer
    from gatewright._structured import Format
    from gatewright._tools import Tool, ToolRun
    from gatewright.generated.arguments import (
        MessagesParseArguments,
        MessagesRunToolsArguments,
        MessagesStreamArguments,
    )

    _Value = TypeVar("_Value")


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
        """Opens a stream of events for a `with` block; each event includes the message so far.

        The events are those of the protocol, and after a piece of a block, by `type`: `text` (`text`,
        `snapshot`), `thinking` (`thinking`, `snapshot`), `input_json` (`partial_json`, `snapshot`: the input
        so far as plain dicts and lists), `citation` (`citation`, `snapshot`) or `signature` (`signature`).
        `content_block_stop` has the whole `content_block`, `message_stop` the whole `message`.
        In place of the events, `text_stream` yields the new text. `current_message_snapshot` is the message
        so far; `get_final_message()` and `get_final_text()` read to the end.

        Args:
            arguments: The arguments of `create`, without `stream`.

        >>> import gatewright
        >>> client = gatewright.Client()
        >>> with client.messages.stream(
        ...     model="model-breeze",
        ...     max_tokens=64,
        ...     messages=[{"role": "user", "content": "Reply with exactly: one two"}],
        ... ) as stream:
        ...     for event in stream:
        ...         if event.type == "text":
        ...             text = event.snapshot
        >>> text, event.type, event.message.role, stream.get_final_text()
        ('one two', 'message_stop', 'assistant', 'one two')
        """
        from gatewright._events import StreamManager
        from gatewright._message_events import MessageEvents

        given: Any = {**arguments, "stream": True}

        # Named as callers know it: errors about an argument name this function.
        def stream() -> Steps[MessageEvents]:
            return MessageEvents((yield self.create(**given)))

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
        from gatewright._message_events import AsyncMessageEvents

        given: Any = {**arguments, "stream": True}

        def stream() -> Steps[AsyncMessageEvents]:
            return AsyncMessageEvents((yield self.create(**given)))

        return AsyncStreamManager(stream)


def _asking(wanted: Format, arguments: dict[str, Any]) -> Any:
    """Arguments of a call that is not streamed, with the format of its text."""
    if arguments.pop("stream", None):
        raise TypeError("messages.parse() does not stream; use messages.stream()")
    # NOT_GIVEN is false, too.
    config = arguments.get("output_config") or {}
    return {**arguments, "output_config": {**config, "format": wanted.for_messages()}}
