"""The functions that a model may call, and the result of a tool loop; `_tool_loops` runs it."""

from __future__ import annotations

import inspect
import json

from gatewright._structured import format_name, type_adapter, unfit
from gatewright.generated.errors import ConfigurationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Generic, TypeVar

    _Answer = TypeVar("_Answer")
else:
    from gatewright._streams import Generic

    _Answer = None

_SECTIONS = (
    "Args:",
    "Arguments:",
    "Returns:",
    "Return:",
    "Raises:",
    "Yields:",
    "Example:",
    "Examples:",
    "Note:",
)


class ToolRun(Generic[_Answer]):
    """The result of a tool loop, which `run_tools` returns.

    >>> import gatewright
    >>> def weather(place: str) -> str:
    ...     return f"sunny in {place}"
    >>> client = gatewright.Client()
    >>> run = client.chat.completions.run_tools(
    ...     model="model-sol", messages=[{"role": "user", "content": "Hello!"}], tools=[weather]
    ... )
    >>> run.messages[0]["content"], run.messages[-1] == run.completion.choices[0].message
    ('Hello!', True)
    """

    def __init__(self, messages: list[Any], completion: _Answer, text: str, rounds: int) -> None:
        self.messages = messages
        """The whole conversation, including the last answer, to append to and continue: items for responses,
        turns for messages, contents for native."""
        self.completion = completion
        """The last answer: a `ChatCompletion`, a `Response`, a `Message` or a `GenerateContentResponse`."""
        self.text = text
        """The text of the last answer."""
        self.rounds = rounds
        """Number of rounds in which the model called tools, one or more at a time, or paused."""

    @property
    def response(self) -> _Answer:
        """The same as `completion`."""
        return self.completion


class Tool:
    """A function that a model may call.

    A plain function is a tool, too; use this class to override its name, description or schema.

    >>> import gatewright
    >>> from typing import Annotated
    >>> def weather(place: Annotated[str, "A city."], days: int = 1) -> str:
    ...     '''The weather of a place.
    ...
    ...     Args:
    ...         days: How many days from today on.
    ...     '''
    ...     return f"sunny in {place}"
    >>> tool = gatewright.Tool(weather, name="forecast")
    >>> tool.name, tool.description, list(tool.parameters["properties"])
    ('forecast', 'The weather of a place.', ['place', 'days'])
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        """Describes a function for a model.

        Args:
            function: A function or coroutine function whose arguments can be passed by name. The model gets
                its return value as text or as JSON.
            name: Default: the function's name.
            description: Default: the function's docstring, up to its sections.
            parameters: JSON Schema of the arguments, which are then not checked. Default: derived from the
                function's type hints, with descriptions from `Annotated[…, "text"]` or the docstring's
                `Args:`; this needs pydantic 2.

        Raises:
            ConfigurationError: The function has arguments that can't be passed by name or have no JSON
                Schema, or pydantic is missing.
        """
        if not callable(function):
            raise TypeError(f"a tool must be a function, not {type(function).__name__}")
        self.function = function
        """The function."""
        self.name = format_name(name or getattr(function, "__name__", "") or type(function).__name__)
        """Its name for the model."""
        about, of_arguments = _docstring(function)
        self.description = about if description is None else description
        """Its description for the model."""
        self._adapter = None
        if parameters is None:
            self._adapter = _adapter(function, self.name, of_arguments)
            parameters = _schema(self._adapter, self.name)
        self.parameters: Mapping[str, Any] = parameters
        """JSON Schema of its arguments."""

    @property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function."""
        call = getattr(self.function, "__call__", None)  # noqa: B004
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(call)

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"

    def _call(self, arguments: str) -> Any:
        """The return value of the function, perhaps an awaitable. Raises ValueError if the arguments don't
        fit."""
        return self.function(**self._read(arguments))

    def _read(self, arguments: str) -> dict[str, Any]:
        # Models leave the text empty where there are no arguments.
        text = arguments.strip() or "{}"
        if self._adapter is not None:
            from pydantic import ValidationError

            try:
                values = self._adapter.validate_json(text)
            except ValidationError as error:
                raise ValueError(f"the arguments do not fit: {unfit(error)}") from None
            return dict(values)
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"the arguments do not fit: $: Invalid JSON: {error}") from None
        if not isinstance(values, dict):
            raise ValueError("the arguments do not fit: $: they must be an object")
        return values


def _docstring(function: Any) -> tuple[str, dict[str, str]]:
    """The text of a docstring before its sections, and the description of each argument in its section."""
    if inspect.getdoc(type(function)) == inspect.getdoc(function) and not inspect.isroutine(function):
        # A callable without a docstring of its own, such as a partial.
        function = getattr(function, "func", None)
    lines = (inspect.getdoc(function) or "").splitlines()
    starts = [at for at, line in enumerate(lines) if line.strip() in _SECTIONS]
    about = lines[: starts[0]] if starts else lines
    arguments: dict[str, str] = {}
    for start in starts:
        if lines[start].strip() not in ("Args:", "Arguments:"):
            continue
        indent, name = None, None
        for line in lines[start + 1 :]:
            if not line.strip():
                continue
            depth = len(line) - len(line.lstrip())
            if depth == 0:
                break
            indent = depth if indent is None else indent
            if depth <= indent and ":" in line:
                head, _, text = line.strip().partition(":")
                # `name (type): text`.
                name = head.split("(")[0].strip().lstrip("*")
                arguments[name] = text.strip()
            elif name is not None:
                arguments[name] = f"{arguments[name]} {line.strip()}".strip()
    return "\n".join(about).strip(), arguments


def _adapter(function: Any, name: str, of_arguments: dict[str, str]) -> Any:
    """pydantic's adapter for the arguments of a function."""
    from typing import Annotated

    try:
        from pydantic import ConfigDict, Field
        from typing_extensions import NotRequired, TypedDict, get_type_hints
    except ImportError as error:
        raise ConfigurationError(
            f"the type hints of {name}() need pydantic 2: pip install pydantic; without it, use "
            "gatewright.Tool(function, parameters=…)"
        ) from error
    hinted = function if inspect.isroutine(function) else getattr(function, "func", function.__call__)
    try:
        hints = get_type_hints(hinted, include_extras=True)
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError, NameError) as error:
        raise ConfigurationError(f"the arguments of {name}() cannot be read: {error}") from error
    members: dict[str, Any] = {}
    for parameter in parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ConfigurationError(f"{name}({parameter}): a model gives arguments by name")
        hint = hints.get(parameter.name, object)
        texts = [one for one in getattr(hint, "__metadata__", ()) if isinstance(one, str)]
        described = texts[0] if texts else of_arguments.get(parameter.name)
        if described:
            hint = Annotated[hint, Field(description=described)]
        members[parameter.name] = hint if parameter.default is parameter.empty else NotRequired[hint]
    make: Any = TypedDict
    arguments = make(name, members)
    arguments.__pydantic_config__ = ConfigDict(extra="forbid")
    return type_adapter(arguments)


def _schema(adapter: Any, name: str) -> dict[str, Any]:
    try:
        schema: dict[str, Any] = adapter.json_schema()
    except Exception as error:
        # pydantic has several classes for this, and no common one.
        raise ConfigurationError(f"the arguments of {name}() have no JSON Schema: {error}") from error
    schema.pop("title", None)
    return schema
