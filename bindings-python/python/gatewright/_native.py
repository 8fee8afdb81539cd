"""client.native: values of a type, tool loops, and lists that continue, in addition to the generated
methods."""

from __future__ import annotations

from functools import partial

from gatewright.generated import resources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar, overload

    from typing_extensions import Unpack

    from gatewright import types
    from gatewright._parsed import AsyncNativeModelList, ParsedContent
    from gatewright._structured import Format
    from gatewright._tools import Tool, ToolRun
    from gatewright.generated.arguments import (
        NativeModelsListArguments,
        NativeParseArguments,
        NativeRunToolsArguments,
    )

    _Value = TypeVar("_Value")


# The call that lists models, for errors.
_LIST = ("list_native_models", "native.models.list")


class NativeModels(resources.NativeModels):
    """client.native.models."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def list(self, **parameters):
            from gatewright._pages import Page

            return Page(super().list(**parameters), _following(self.list, parameters), _LIST)

        list.__wrapped__ = resources.NativeModels.list  # noqa: A003


class AsyncNativeModels(resources.AsyncNativeModels):
    """client.native.models."""

    __slots__ = ()

    if TYPE_CHECKING:

        async def list(self, **parameters: Unpack[NativeModelsListArguments]) -> AsyncNativeModelList: ...

    else:

        async def list(self, **parameters):
            from gatewright._pages import AsyncPage

            return AsyncPage(await super().list(**parameters), _following(self.list, parameters), _LIST)

        list.__wrapped__ = resources.AsyncNativeModels.list  # noqa: A003


class Native(resources.Native):
    """client.native."""

    __slots__ = ()

    @property
    def models(self) -> NativeModels:
        """client.native.models."""
        return NativeModels(self._client)

    if TYPE_CHECKING:

        @overload
        def parse(
            self, model: str, *, response_schema: type[_Value], **arguments: Unpack[NativeParseArguments]
        ) -> ParsedContent[_Value]: ...
        @overload
        def parse(
            self, model: str, *, response_schema: Mapping[str, Any], **arguments: Unpack[NativeParseArguments]
        ) -> ParsedContent[Any]: ...

    def parse(self, model: str, *, response_schema: Any, **arguments: Any) -> Any:
        """Generates content that is a value of a type: `parsed`.

        The type's JSON Schema is sent in its strict form as `responseJsonSchema`: every property is required,
        and no other is allowed. `parsed` is the value of the first candidate; it is None if the model called
        functions instead.

        Args:
            model: The model's id.
            response_schema: A pydantic model, a dataclass, a TypedDict or another type that pydantic 2
                supports; or a JSON Schema as a dict, which yields plain dicts and lists.
            arguments: The arguments of `generate_content`. `generationConfig` may have members other than
                those of the format.

        >>> import gatewright
        >>> from dataclasses import dataclass
        >>> @dataclass
        ... class City:
        ...     name: str
        ...     population: int
        >>> client = gatewright.Client()
        >>> answer = client.native.parse(
        ...     "model-terra", contents=[{"parts": [{"text": "A city of Norway."}]}], response_schema=City
        ... )
        >>> type(answer.parsed).__name__
        'City'

        Raises:
            StructuredOutputError: The answer was cut off or blocked, or is not a value of the type. The error
                holds it.
            ConfigurationError: pydantic is missing, or cannot describe the type.
        """
        from gatewright._structured import format_of, parsed_content

        wanted = format_of(response_schema)
        return parsed_content(self.generate_content(model, **_asking(wanted, arguments)), wanted)

    def run_tools(
        self,
        model: str,
        *,
        tools: Sequence[Callable[..., Any] | Tool],
        max_rounds: int = 10,
        raise_errors: bool = False,
        on_message: Callable[[Any], object] | None = None,
        on_event: Callable[[types.GenerateContentResponse], object] | None = None,
        **arguments: Unpack[NativeRunToolsArguments],
    ) -> ToolRun[types.GenerateContentResponse]:
        """Calls a model repeatedly, and the functions that it requests, until it answers without a call.

        A function's name, docstring and type hints become its name, description and schema (this needs
        pydantic 2); a `gatewright.Tool` overrides them. The model gets what a function returns as text or as
        JSON, and an exception, or arguments that don't fit, as `error: …`. The calls of a round run one after
        the other, in the calling thread; their results form one user content.

        Args:
            model: The model's id.
            tools: The functions, or `gatewright.Tool`s.
            max_rounds: Maximum number of rounds in which the model calls tools, one or more at a time.
            raise_errors: Whether an exception in a function, or arguments that don't fit, end the loop.
            on_message: Called with each content that is added: the model's, and the results.
            on_event: If given, each answer is streamed, and this is called with its events.
            arguments: The arguments of `generate_content`. A `functionCallingConfig` that forces a call
                applies to the first round only.

        >>> import gatewright
        >>> def weather(place: str) -> str:
        ...     '''The weather of a place.'''
        ...     return f"sunny in {place}"
        >>> client = gatewright.Client()
        >>> run = client.native.run_tools(
        ...     "model-terra",
        ...     contents=[{"parts": [{"text": "How is the weather in Oslo?"}]}],
        ...     tools=[weather],
        ...     toolConfig={"functionCallingConfig": {"mode": "ANY"}},
        ... )
        >>> run.rounds, len(run.messages)
        (1, 4)

        Raises:
            ToolLoopError: There were more than `max_rounds` rounds, or an answer was cut off in its calls.
                The error has the `messages`.
            ConfigurationError: A function has arguments without a JSON Schema, or pydantic is missing.
        """
        from gatewright._tool_loops import ContentLoop, run

        loop: ContentLoop[types.GenerateContentResponse]
        loop = ContentLoop(tools, max_rounds, raise_errors, {**arguments})
        create = partial(self.generate_content, model)
        open_stream = partial(self.stream_generate_content, model)
        return run(loop, create, on_message, on_event, open_stream)  # type: ignore[no-any-return]


class AsyncNative(resources.AsyncNative):
    """client.native."""

    __slots__ = ()

    @property
    def models(self) -> AsyncNativeModels:
        """client.native.models."""
        return AsyncNativeModels(self._client)

    if TYPE_CHECKING:

        @overload
        async def parse(
            self, model: str, *, response_schema: type[_Value], **arguments: Unpack[NativeParseArguments]
        ) -> ParsedContent[_Value]: ...
        @overload
        async def parse(
            self, model: str, *, response_schema: Mapping[str, Any], **arguments: Unpack[NativeParseArguments]
        ) -> ParsedContent[Any]: ...

    async def parse(self, model: str, *, response_schema: Any, **arguments: Any) -> Any:
        """Generates content that is a value of a type; see `Native.parse`.

        >>> import asyncio, gatewright
        >>> from dataclasses import make_dataclass
        >>> City = make_dataclass("City", [("name", str)])
        >>> async def ask() -> object:
        ...     question = [{"parts": [{"text": "A city of Norway."}]}]
        ...     async with gatewright.AsyncClient() as client:
        ...         answer = await client.native.parse("model-terra", contents=question, response_schema=City)
        ...     return answer.parsed
        >>> isinstance(asyncio.run(ask()), City)
        True
        """
        from gatewright._structured import format_of, parsed_content

        wanted = format_of(response_schema)
        return parsed_content(await self.generate_content(model, **_asking(wanted, arguments)), wanted)

    async def run_tools(
        self,
        model: str,
        *,
        tools: Sequence[Callable[..., Any] | Tool],
        max_rounds: int = 10,
        raise_errors: bool = False,
        on_message: Callable[[Any], object] | None = None,
        on_event: Callable[[types.GenerateContentResponse], object] | None = None,
        **arguments: Unpack[NativeRunToolsArguments],
    ) -> ToolRun[types.GenerateContentResponse]:
        """Calls a model repeatedly, and the functions that it requests, until it answers without a call.

        As `Native.run_tools`, but the calls of a round run at the same time: coroutine functions as
        tasks, plain functions in threads. Cancelling the caller cancels them. `on_message` and
        `on_event` may be coroutine functions.

        >>> import asyncio, gatewright
        >>> async def weather(place: str) -> str:
        ...     return f"sunny in {place}"
        >>> async def ask() -> int:
        ...     async with gatewright.AsyncClient() as client:
        ...         run = await client.native.run_tools(
        ...             "model-terra",
        ...             contents=[{"parts": [{"text": "How is the weather in Oslo?"}]}],
        ...             tools=[weather],
        ...             toolConfig={"functionCallingConfig": {"mode": "ANY"}},
        ...         )
        ...     return run.rounds
        >>> asyncio.run(ask())
        1
        """
        from gatewright._tool_loops import ContentLoop, run_async

        loop: ContentLoop[types.GenerateContentResponse]
        loop = ContentLoop(tools, max_rounds, raise_errors, {**arguments})
        create = partial(self.generate_content, model)
        open_stream = partial(self.stream_generate_content, model)
        return await run_async(loop, create, on_message, on_event, open_stream)  # type: ignore[no-any-return]


def _following(method: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    """Fetches the page of a token."""
    return lambda token: method(**{**parameters, "pageToken": token})


def _asking(wanted: Format, arguments: dict[str, Any]) -> Any:
    """Arguments of a call with the format of its text."""
    # NOT_GIVEN is false, too.
    config = arguments.get("generationConfig") or {}
    return {**arguments, "generationConfig": {**config, **wanted.for_native()}}
