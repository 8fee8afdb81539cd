"""client.native: values of a type, and pages that go on, in addition to the generated methods."""

from __future__ import annotations

from gatewright.generated import resources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar, overload

    from typing_extensions import Unpack

    from gatewright._parsed import AsyncNativeModelList, ParsedContent
    from gatewright._structured import Format
    from gatewright.generated.arguments import NativeModelsListArguments, NativeParseArguments

    _Value = TypeVar("_Value")


class NativeModels(resources.NativeModels):
    """client.native.models."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def list(self, **parameters):
            from gatewright._pages import Page

            return Page(super().list(**parameters), _following(self.list, parameters))

        list.__wrapped__ = resources.NativeModels.list  # noqa: A003


class AsyncNativeModels(resources.AsyncNativeModels):
    """client.native.models."""

    __slots__ = ()

    if TYPE_CHECKING:

        async def list(self, **parameters: Unpack[NativeModelsListArguments]) -> AsyncNativeModelList: ...

    else:

        async def list(self, **parameters):
            from gatewright._pages import AsyncPage

            return AsyncPage(await super().list(**parameters), _following(self.list, parameters))

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
            model: As of `generate_content`.
            response_schema: A pydantic model, a dataclass, a TypedDict or another type that pydantic 2 knows;
                or a JSON Schema as a dict, for plain dicts and lists.
            arguments: As of `generate_content`. `generationConfig` may have members other than those of the
                format.

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
            StructuredOutputError: The answer was cut off or blocked, or is no value of the type. The error
                holds it.
            ConfigurationError: pydantic is missing, or cannot describe the type.
        """
        from gatewright._structured import format_of, parsed_content

        wanted = format_of(response_schema)
        return parsed_content(self.generate_content(model, **_asking(wanted, arguments)), wanted)


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


def _following(method: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    """What fetches the page of a token."""
    return lambda token: method(**{**parameters, "pageToken": token})


def _asking(wanted: Format, arguments: dict[str, Any]) -> Any:
    """Arguments of a call with the format of its text."""
    # NOT_GIVEN is false, too.
    config = arguments.get("generationConfig") or {}
    return {**arguments, "generationConfig": {**config, **wanted.for_native()}}
