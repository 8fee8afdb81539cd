"""Tool loops: functions that a model may call, and the conversation in which it does."""

from __future__ import annotations

import inspect
import json

from gatewright._drive import drive, drive_async
from gatewright._engine import Record
from gatewright._streams import AsyncStream
from gatewright._structured import first_problem, format_name, type_adapter
from gatewright._view import View
from gatewright.generated.errors import ConfigurationError, ToolLoopError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, Generic, TypeVar

    from gatewright._drive import Steps

    _Answer = TypeVar("_Answer")
else:
    from gatewright._streams import Generic

    _Answer = None

MAX_ROUNDS = 10
"""Rounds of tool calls, unless a caller says otherwise."""
MAX_TOOL_ERROR = 1000
"""Characters of an error that a model is told."""

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
    """The end of a tool loop: what `run_tools` returns.

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
        """The whole conversation, the last answer included: append to it and go on. Of responses: items."""
        self.completion = completion
        """The last answer: a `ChatCompletion` or a `Response`."""
        self.text = text
        """The text of the last answer."""
        self.rounds = rounds
        """How often tools were called: rounds, each of one or more calls."""

    @property
    def response(self) -> _Answer:
        """The same as `completion`."""
        return self.completion


class Tool:
    """A function that a model may call.

    Any function is a tool by itself; this says what its signature and docstring don't.

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
            function: A function or coroutine function with arguments that can be given by name. What it
                returns goes to the model as text, or as JSON.
            name: Default: the function's name.
            description: Default: the function's docstring, up to its sections.
            parameters: JSON Schema of the arguments, which are then not checked. Default: made of the
                function's type hints, with the descriptions of `Annotated[…, "text"]` or of the docstring's
                `Args:`; this needs pydantic 2.

        Raises:
            ConfigurationError: The function has arguments that can't be given by name or have no JSON Schema,
                or pydantic is missing.
        """
        if not callable(function):
            raise TypeError(f"a tool must be a function, not {type(function).__name__}")
        self.function = function
        """The function."""
        self.name = format_name(name or getattr(function, "__name__", "") or type(function).__name__)
        """Its name for the model."""
        about, of_arguments = _docstring(function)
        self.description = about if description is None else description
        """What the model is told about it."""
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
        """What the function returns, perhaps an awaitable. Raises ValueError if the arguments don't fit."""
        return self.function(**self._read(arguments))

    def _read(self, arguments: str) -> dict[str, Any]:
        # Models leave the text empty where there are no arguments.
        text = arguments.strip() or "{}"
        if self._adapter is not None:
            from pydantic import ValidationError

            try:
                values = self._adapter.validate_json(text)
            except ValidationError as error:
                raise ValueError(f"the arguments do not fit: {first_problem(error)}") from None
            return dict(values)
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"the arguments do not fit: $: Invalid JSON: {error}") from None
        if not isinstance(values, dict):
            raise ValueError("the arguments do not fit: $: they must be an object")
        return values


def _docstring(function: Any) -> tuple[str, dict[str, str]]:
    """The text of a docstring before its sections, and what its section of arguments says about each."""
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


class Call:
    """A call of a tool that a model asks for."""

    def __init__(self, id: str, name: str, arguments: str, tool: Tool | None) -> None:
        self.id = id
        self.name = name
        self.arguments = arguments
        self.tool = tool


class Loop(Generic[_Answer]):
    """The conversation with a model that calls tools, without its I/O: send what `request` gives, `take` the
    answer, run the calls, `put` their results; until there are no calls."""

    method = ""
    operation = ""
    # The argument of the call that holds the conversation.
    conversation = ""

    def __init__(
        self, tools: Iterable[Any], max_rounds: int, raise_errors: bool, arguments: dict[str, Any]
    ) -> None:
        if arguments.pop("stream", None):
            raise TypeError(f"{self.method}() does not stream")
        if isinstance(max_rounds, bool) or not isinstance(max_rounds, int) or max_rounds < 1:
            raise ValueError(f"max_rounds must be a whole number from 1, not {max_rounds!r}")
        self.tools = {tool.name: tool for tool in map(_tool, tools)}
        self.max_rounds = max_rounds
        self.raise_errors = raise_errors
        self.rounds = 0
        self._arguments = arguments
        self.messages: list[Any] = self._begin(arguments.pop(self.conversation))
        self._told = len(self.messages)
        self._completion: Any = None

    def request(self) -> Any:
        """Arguments of the next call."""
        choice = self._arguments.get("tool_choice")
        if self.rounds and choice and choice != "none":
            # What forces a call would force one in each round.
            self._arguments["tool_choice"] = "auto"
        tools = {"tools": [self._described(tool) for tool in self.tools.values()]} if self.tools else {}
        return {**self._arguments, **tools, self.conversation: list(self.messages)}

    def take(self, completion: Any) -> list[Call]:
        """Takes an answer; returns the calls that it asks for.

        Raises:
            ToolLoopError: It was cut off, or there have been too many rounds.
        """
        self._completion = completion
        calls = self._answered(completion)
        if not calls:
            return []
        if self.rounds == self.max_rounds:
            raise self._error(
                f"the model still calls tools after {self.rounds} rounds; raise max_rounds, or look at what "
                "the tools answer: the error has the messages"
            )
        self.rounds += 1
        return calls

    def put(self, call: Call, result: str) -> None:
        """Adds the result of a call."""
        self.messages.append(self._result(call, result))

    def new_messages(self) -> list[Any]:
        """What has been added since the last time."""
        new = self.messages[self._told :]
        self._told = len(self.messages)
        return new

    def done(self) -> ToolRun[Any]:
        """The end of the loop."""
        return ToolRun(self.messages, self._completion, self._text(self._completion), self.rounds)

    def unknown(self, call: Call) -> str:
        """What a model is told that calls a tool that isn't there."""
        return _told(f"there is no tool {call.name!r}; there are: {', '.join(self.tools) or 'none'}")

    def failed(self, error: Exception) -> str:
        """What a model is told about an exception of a tool; raises it if the caller wants that."""
        if self.raise_errors:
            raise error
        return _told(str(error) or type(error).__name__)

    def _error(self, message: str) -> ToolLoopError:
        metadata = self._completion._response
        error = ToolLoopError(
            message,
            operation=self.operation,
            request_id=metadata and metadata.request_id,
            attempts=metadata.attempts if metadata else 0,
            response=metadata,
            answer=self._completion,
            messages=self.messages,
        )
        error._method = self.method
        return error

    def _cut_off(self, reason: str) -> ToolLoopError:
        return self._error(f"the answer was cut off within its calls of tools (reason: {reason})")

    def _call(self, id: str, name: str, arguments: str) -> Call:
        return Call(id, name, arguments, self.tools.get(name))

    # What the protocols differ in.

    def _begin(self, given: Any) -> list[Any]:
        raise NotImplementedError

    def _described(self, tool: Tool) -> dict[str, Any]:
        raise NotImplementedError

    def _answered(self, completion: Any) -> list[Call]:
        """Adds an answer to the conversation; returns its calls."""
        raise NotImplementedError

    def _result(self, call: Call, result: str) -> dict[str, Any]:
        raise NotImplementedError

    def _text(self, completion: Any) -> str:
        raise NotImplementedError

    def events(self, stream: Any) -> Any:
        """The events of a streamed answer, for either client."""
        raise NotImplementedError


class ChatLoop(Loop[_Answer]):
    """A loop of chat completions."""

    method = "chat.completions.run_tools"
    operation = "create_chat_completion"
    conversation = "messages"

    def _begin(self, given: Any) -> list[Any]:
        return list(given)

    def _described(self, tool: Tool) -> dict[str, Any]:
        return {"type": "function", "function": _function(tool)}

    def _answered(self, completion: Any) -> list[Call]:
        if not completion.choices:
            raise self._error("the answer has no choices")
        choice = completion.choices[0]
        self.messages.append(choice.message)
        calls = []
        for call in choice.message.tool_calls or []:
            made = call.get("function") or call.get("custom") or {}
            text = made.get("arguments") or made.get("input") or ""
            calls.append(self._call(call.id, made.get("name") or "", text))
        if calls and choice.finish_reason in ("length", "content_filter"):
            raise self._cut_off(choice.finish_reason)
        return calls

    def _result(self, call: Call, result: str) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": call.id, "content": result}

    def _text(self, completion: Any) -> str:
        return completion.choices[0].message.content or ""

    def events(self, stream: Any) -> Any:
        from gatewright._events import AsyncChatCompletionEvents, ChatCompletionEvents

        kind = AsyncChatCompletionEvents if isinstance(stream, AsyncStream) else ChatCompletionEvents
        return kind(stream, None)


class ResponseLoop(Loop[_Answer]):
    """A loop of responses."""

    method = "responses.run_tools"
    operation = "create_response"
    conversation = "input"

    def _begin(self, given: Any) -> list[Any]:
        return [{"role": "user", "content": given}] if isinstance(given, str) else list(given)

    def _described(self, tool: Tool) -> dict[str, Any]:
        return {"type": "function", **_function(tool)}

    def _answered(self, completion: Any) -> list[Call]:
        self.messages += completion.output or []
        calls = []
        for item in completion.output or []:
            if item.get("type") == "function_call":
                calls.append(self._call(item.call_id, item.name or "", item.arguments or ""))
        if completion.status == "failed":
            error = completion.error
            raise self._error(
                f"the answer failed: {(error and error.message) or 'the gateway does not say why'}"
            )
        if calls and completion.status == "incomplete":
            details = completion.incomplete_details
            raise self._cut_off((details and details.reason) or "incomplete")
        return calls

    def _result(self, call: Call, result: str) -> dict[str, Any]:
        return {"type": "function_call_output", "call_id": call.id, "output": result}

    def _text(self, completion: Any) -> str:
        return completion.output_text or ""

    def events(self, stream: Any) -> Any:
        from gatewright._events import AsyncResponseEvents, ResponseEvents

        kind = AsyncResponseEvents if isinstance(stream, AsyncStream) else ResponseEvents
        return kind(stream, None)


def _function(tool: Tool) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **described, "parameters": tool.parameters}


def _tool(given: Any) -> Tool:
    return given if isinstance(given, Tool) else Tool(given)


def _told(error: str) -> str:
    return f"error: {error if len(error) <= MAX_TOOL_ERROR else error[:MAX_TOOL_ERROR] + '…'}"


def _result_text(value: Any) -> str:
    """What a tool returned as text for the model: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, (Record, View)):
        return value.to_json()
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError):
        # Models, dataclasses, times.
        text: bytes = type_adapter(object).dump_json(value)
        return text.decode()


def run(
    loop: Loop[Any],
    create: Callable[..., Any],
    on_message: Callable[[Any], object] | None,
    on_event: Callable[[Any], object] | None,
) -> Any:
    """Runs a loop; the calls of a round one after the other, in this thread."""
    for tool in loop.tools.values():
        if tool.is_async:
            raise ConfigurationError(f"{tool.name} is a coroutine function; AsyncClient runs it")
    return drive(_steps(loop, create, _in_order, on_message, on_event))


async def run_async(
    loop: Loop[Any],
    create: Callable[..., Any],
    on_message: Callable[[Any], object] | None,
    on_event: Callable[[Any], object] | None,
) -> Any:
    """Runs a loop; the calls of a round at the same time, plain functions in threads."""
    return await drive_async(_steps(loop, create, _together, on_message, on_event))


def _steps(
    loop: Loop[Any],
    create: Callable[..., Any],
    results_of: Callable[[Loop[Any], Sequence[Call]], Any],
    on_message: Callable[[Any], object] | None,
    on_event: Callable[[Any], object] | None,
) -> Steps[ToolRun[Any]]:
    def tell() -> Steps[None]:
        for message in loop.new_messages():
            if on_message is not None:
                yield on_message(message)

    while calls := loop.take((yield from _answer(loop, create, on_event))):
        yield from tell()
        for call, result in zip(calls, (yield results_of(loop, calls)), strict=True):
            loop.put(call, result)
            yield from tell()
    yield from tell()
    return loop.done()


def _answer(
    loop: Loop[Any], create: Callable[..., Any], on_event: Callable[[Any], object] | None
) -> Steps[Any]:
    """The next answer; streamed, if somebody wants its events."""
    if on_event is None:
        return (yield create(**loop.request()))
    events = loop.events((yield create(**loop.request(), stream=True)))
    events._begin()
    while (event := (yield from events._next())) is not None:
        yield on_event(event)
    return (yield from events._final())


def _in_order(loop: Loop[Any], calls: Sequence[Call]) -> Iterator[str]:
    """The result of each call, which is made when its result is asked for."""
    for call in calls:
        if call.tool is None:
            yield loop.unknown(call)
            continue
        try:
            result = _result_text(call.tool._call(call.arguments))
        except Exception as error:
            result = loop.failed(error)
        yield result


async def _together(loop: Loop[Any], calls: Sequence[Call]) -> list[str]:
    """The results of all; if one raises, or the caller is cancelled, the others are cancelled first."""
    import asyncio

    async def result(call: Call) -> str:
        if call.tool is None:
            return loop.unknown(call)
        try:
            if call.tool.is_async:
                return _result_text(await call.tool._call(call.arguments))
            return await asyncio.to_thread(lambda tool: _result_text(tool._call(call.arguments)), call.tool)
        except Exception as error:
            return loop.failed(error)

    tasks: list[asyncio.Future[str]] = [asyncio.ensure_future(result(call)) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
