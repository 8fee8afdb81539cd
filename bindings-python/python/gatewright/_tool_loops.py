"""Tool loops: the conversation in which a model calls functions."""

from __future__ import annotations

import json

from gatewright._drive import drive, drive_async
from gatewright._engine import Record, key_of_round
from gatewright._streams import AsyncStream
from gatewright._structured import cut_off_code, type_adapter
from gatewright._tools import Tool, ToolRun
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

MAX_TOOL_ERROR = 1000
"""Maximum number of characters of an error for a model."""


class Output:
    """The result of a call, for the model."""

    def __init__(self, text: str, *, is_error: bool = False) -> None:
        self.text = text
        self.is_error = is_error


class Call:
    """A tool call that a model requests."""

    def __init__(self, id: str, name: str, arguments: str, tool: Tool | None) -> None:
        self.id = id
        self.name = name
        self.arguments = arguments
        self.tool = tool


class Loop(Generic[_Answer]):
    """The conversation with a model that calls tools, without I/O: send the arguments that `request` returns,
    `take` the answer, run the calls and `put` their results, until there are no calls."""

    method = ""
    operation = ""
    # The arguments of the call that hold the conversation, and whether the model may call tools.
    conversation = ""
    choice = "tool_choice"

    def __init__(
        self, tools: Iterable[Any], max_rounds: int, raise_errors: bool, arguments: dict[str, Any]
    ) -> None:
        if arguments.pop("stream", None):
            raise TypeError(f"{self.method}() does not stream")
        if isinstance(max_rounds, bool) or not isinstance(max_rounds, int) or max_rounds < 1:
            raise ValueError(f"max_rounds must be a whole number from 1, not {max_rounds!r}")
        self.tools: dict[str, Tool] = {}
        for tool in map(_tool, tools):
            if tool.name in self.tools:
                raise ValueError(f"two tools are called {tool.name}")
            self.tools[tool.name] = tool
        self.max_rounds = max_rounds
        self.raise_errors = raise_errors
        self.rounds = 0
        self._arguments = arguments
        self.messages: list[Any] = self._begin(arguments.pop(self.conversation))
        self._reported = len(self.messages)
        self._completion: Any = None
        self.is_paused = False
        """Whether the model continues if it gets the conversation back unchanged."""

    def request(self) -> Any:
        """Arguments of the next call."""
        choice = self._arguments.get(self.choice)
        if self.rounds and choice:
            # What forces a call would force one in each round.
            self._arguments[self.choice] = self._unforced(choice)
        tools = {"tools": self._described(list(self.tools.values()))} if self.tools else {}
        key = self._arguments.get("idempotency_key")
        # The body of each round differs.
        again = {"idempotency_key": key_of_round(key, self.rounds)} if self.rounds and key else {}
        return {**self._arguments, **again, **tools, self.conversation: list(self.messages)}

    def take(self, completion: Any) -> list[Call]:
        """Takes an answer; returns its calls. Without calls, the loop ends, unless `is_paused`.

        Raises:
            ToolLoopError: The answer was cut off, or there were too many rounds.
        """
        self._completion = completion
        self.is_paused = False
        calls = self._answered(completion)
        if not calls and not self.is_paused:
            return []
        if self.rounds == self.max_rounds:
            raise self._error(
                "max_rounds",
                f"the model has not answered after {self.rounds} rounds; raise max_rounds, or look at what "
                "the tools answer: the error has the messages",
            )
        self.rounds += 1
        return calls

    def put(self, call: Call, output: Output) -> None:
        """Adds the result of a call."""
        self.messages.append(self._result(call, output))

    def end_round(self) -> None:
        """Ends a round after all of its results were put."""

    def new_messages(self) -> list[Any]:
        """The messages added since the last call."""
        new = self.messages[self._reported :]
        self._reported = len(self.messages)
        return new

    def done(self) -> ToolRun[Any]:
        """The end of the loop."""
        return ToolRun(self.messages, self._completion, self._text(self._completion), self.rounds)

    def unknown(self, call: Call) -> Output:
        """The result for a model that calls an unknown tool."""
        return _failed_output(f"there is no tool {call.name!r}; there are: {', '.join(self.tools) or 'none'}")

    def failed(self, error: Exception) -> Output:
        """The result for a call that raised an exception; raises it if the caller requested that."""
        if self.raise_errors:
            raise error
        return _failed_output(str(error) or type(error).__name__)

    def _error(self, code: str, message: str) -> ToolLoopError:
        metadata = self._completion._response
        error = ToolLoopError(
            message,
            code=code,
            operation=self.operation,
            request_id=metadata and metadata.request_id,
            attempts=metadata.attempts if metadata else 0,
            response=metadata,
            answer=self._completion,
            messages=self.messages,
        )
        error._method = self.method
        return error

    def _cut_off(self, code: str, reason: str) -> ToolLoopError:
        return self._error(code, f"the answer was cut off within its calls of tools (reason: {reason})")

    def _call(self, id: str, name: str, arguments: str) -> Call:
        return Call(id, name, arguments, self.tools.get(name))

    # What the protocols differ in.

    def _begin(self, given: Any) -> list[Any]:
        raise NotImplementedError

    def _described(self, tools: list[Tool]) -> list[dict[str, Any]]:
        raise NotImplementedError

    def _unforced(self, choice: Any) -> Any:
        """The tool choice that lets the model decide, instead of one that forces a call."""
        return choice if choice == "none" else "auto"

    def _answered(self, completion: Any) -> list[Call]:
        """Adds an answer to the conversation; returns its calls."""
        raise NotImplementedError

    def _result(self, call: Call, output: Output) -> dict[str, Any]:
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

    def _described(self, tools: list[Tool]) -> list[dict[str, Any]]:
        return [{"type": "function", "function": _function(tool)} for tool in tools]

    def _answered(self, completion: Any) -> list[Call]:
        if not completion.choices:
            raise self._error("no_choices", "the answer has no choices")
        choice = completion.choices[0]
        self.messages.append(choice.message)
        calls = []
        for call in choice.message.tool_calls or []:
            made = call.get("function") or call.get("custom") or {}
            text = made.get("arguments") or made.get("input") or ""
            calls.append(self._call(call.id, made.get("name") or "", text))
        if calls and (code := cut_off_code(choice.finish_reason)):
            raise self._cut_off(code, choice.finish_reason)
        return calls

    def _result(self, call: Call, output: Output) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": call.id, "content": output.text}

    def _text(self, completion: Any) -> str:
        return completion.choices[0].message.content or ""

    def events(self, stream: Any) -> Any:
        from gatewright._chat_events import AsyncChatCompletionEvents, ChatCompletionEvents

        kind = AsyncChatCompletionEvents if isinstance(stream, AsyncStream) else ChatCompletionEvents
        return kind(stream, None)


class ResponseLoop(Loop[_Answer]):
    """A loop of responses."""

    method = "responses.run_tools"
    operation = "create_response"
    conversation = "input"

    def _begin(self, given: Any) -> list[Any]:
        return [{"role": "user", "content": given}] if isinstance(given, str) else list(given)

    def _described(self, tools: list[Tool]) -> list[dict[str, Any]]:
        return [{"type": "function", **_function(tool)} for tool in tools]

    def _answered(self, completion: Any) -> list[Call]:
        self.messages += completion.output or []
        calls = []
        for item in completion.output or []:
            if item.get("type") == "function_call":
                calls.append(self._call(item.call_id, item.name or "", item.arguments or ""))
        if completion.status == "failed":
            error = completion.error
            reason = (error and error.message) or "the gateway does not say why"
            raise self._error("failed", f"the answer failed: {reason}")
        if calls and completion.status == "incomplete":
            details = completion.incomplete_details
            reason = (details and details.reason) or "incomplete"
            raise self._cut_off(cut_off_code(reason) or "incomplete", reason)
        return calls

    def _result(self, call: Call, output: Output) -> dict[str, Any]:
        return {"type": "function_call_output", "call_id": call.id, "output": output.text}

    def _text(self, completion: Any) -> str:
        return completion.output_text or ""

    def events(self, stream: Any) -> Any:
        from gatewright._response_events import AsyncResponseEvents, ResponseEvents

        kind = AsyncResponseEvents if isinstance(stream, AsyncStream) else ResponseEvents
        return kind(stream, None)


class _JointLoop(Loop[_Answer]):
    """A loop whose protocol takes the results of a round in one message, and has no events of its own."""

    # The member of a message that holds its parts.
    parts = ""

    def __init__(
        self, tools: Iterable[Any], max_rounds: int, raise_errors: bool, arguments: dict[str, Any]
    ) -> None:
        super().__init__(tools, max_rounds, raise_errors, arguments)
        self._results: list[dict[str, Any]] = []

    def _begin(self, given: Any) -> list[Any]:
        return list(given)

    def put(self, call: Call, output: Output) -> None:
        self._results.append(self._result(call, output))

    def end_round(self) -> None:
        if not self._results:
            return
        self.messages.append({"role": "user", self.parts: self._results})
        self._results = []

    def events(self, stream: Any) -> Any:
        from gatewright._events import AsyncPlainEvents, PlainEvents

        kind: Any = AsyncPlainEvents if isinstance(stream, AsyncStream) else PlainEvents
        return kind(stream, None)


class MessageLoop(_JointLoop[_Answer]):
    """A loop of messages."""

    method = "messages.run_tools"
    operation = "create_message"
    conversation = "messages"
    parts = "content"

    def _described(self, tools: list[Tool]) -> list[dict[str, Any]]:
        return [_function(tool, "input_schema") for tool in tools]

    def _unforced(self, choice: Any) -> Any:
        if choice.get("type") == "none":
            return choice
        return {**_without(choice, "name"), "type": "auto"}

    def _answered(self, completion: Any) -> list[Call]:
        blocks = list(completion.content or [])
        # A turn without content cannot be sent.
        if blocks:
            self.messages.append({"role": "assistant", "content": blocks})
        calls = []
        for block in blocks:
            if block.get("type") == "tool_use":
                calls.append(self._call(block.id or "", block.name or "", _arguments(block.get("input"))))
        reason = completion.stop_reason
        code = "content_filter" if reason == "refusal" else cut_off_code(reason)
        if calls and code:
            raise self._cut_off(code, reason)
        self.is_paused = reason == "pause_turn"
        return calls

    def _result(self, call: Call, output: Output) -> dict[str, Any]:
        failed = {"is_error": True} if output.is_error else {}
        return {"type": "tool_result", "tool_use_id": call.id, "content": output.text, **failed}

    def _text(self, completion: Any) -> str:
        return completion.text or ""


class ContentLoop(_JointLoop[_Answer]):
    """A loop of native generate-content."""

    method = "native.run_tools"
    operation = "generate_content"
    conversation = "contents"
    choice = "toolConfig"
    parts = "parts"

    def _described(self, tools: list[Tool]) -> list[dict[str, Any]]:
        return [{"functionDeclarations": [_function(tool, "parametersJsonSchema") for tool in tools]}]

    def _unforced(self, choice: Any) -> Any:
        unforced = {**choice}
        # The protocol has two spellings of each name.
        for name in ("functionCallingConfig", "function_calling_config"):
            calling = unforced.get(name)
            if calling and calling.get("mode") == "ANY":
                rest = _without(calling, "allowedFunctionNames", "allowed_function_names")
                unforced[name] = {**rest, "mode": "AUTO"}
        return unforced

    def _answered(self, completion: Any) -> list[Call]:
        if not completion.candidates:
            raise self._error("no_candidates", "the answer has no candidates")
        candidate = completion.candidates[0]
        content = candidate.content
        parts = (content and content.parts) or []
        if parts:
            self.messages.append(content if content.role else {**content, "role": "model"})
        calls = []
        for part in parts:
            made = part.functionCall
            if made is not None:
                # Many servers give calls no ids: results then follow their order.
                calls.append(self._call(made.id or "", made.name or "", _arguments(made.get("args"))))
        if calls and (code := cut_off_code(candidate.finishReason)):
            raise self._cut_off(code, candidate.finishReason)
        return calls

    def _result(self, call: Call, output: Output) -> dict[str, Any]:
        # Text alone, as a member: an object's numbers would change, and some names of members are refused.
        response = {"error" if output.is_error else "output": output.text}
        made = {"id": call.id} if call.id else {}
        return {"functionResponse": {**made, "name": call.name, "response": response}}

    def _text(self, completion: Any) -> str:
        content = completion.candidates[0].content
        parts = (content and content.parts) or []
        return "".join(part.text or "" for part in parts if not part.thought)


def _arguments(given: Any) -> str:
    """Arguments that are an object, as text."""
    return "" if given is None else _result_text(given)


def _without(members: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: members[name] for name in members if name not in names}


def _function(tool: Tool, parameters: str = "parameters") -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **described, parameters: tool.parameters}


def _tool(given: Any) -> Tool:
    return given if isinstance(given, Tool) else Tool(given)


def _failed_output(error: str) -> Output:
    message = error if len(error) <= MAX_TOOL_ERROR else error[:MAX_TOOL_ERROR] + "…"
    return Output(f"error: {message}", is_error=True)


def _result_text(value: Any) -> str:
    """A value as a text of the conversation: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, (Record, View)):
        return value.to_json()
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_jsonable)
    except (TypeError, ValueError):
        # Keys that are not text, numbers that JSON does not have.
        text: bytes = type_adapter(object).dump_json(value)
        return text.decode()


def _jsonable(value: Any) -> Any:
    """Records; models, dataclasses, times."""
    if isinstance(value, (Record, View)):
        return value.to_dict()
    return json.loads(type_adapter(object).dump_json(value))


def run(
    loop: Loop[Any],
    create: Callable[..., Any],
    on_message: Callable[[Any], object] | None,
    on_event: Callable[[Any], object] | None,
    open_stream: Callable[..., Any] | None = None,
) -> Any:
    """Runs a loop; the calls of a round run one after the other, in this thread. `open_stream` streams an
    answer, unless `create` does."""
    for tool in loop.tools.values():
        if tool.is_async:
            raise ConfigurationError(f"{tool.name} is a coroutine function; AsyncClient runs it")
    return drive(_steps(loop, _asking(create, open_stream, on_event), _in_order, on_message))


async def run_async(
    loop: Loop[Any],
    create: Callable[..., Any],
    on_message: Callable[[Any], object] | None,
    on_event: Callable[[Any], object] | None,
    open_stream: Callable[..., Any] | None = None,
) -> Any:
    """Like `run`, but the calls of a round run at the same time, plain functions in threads."""
    return await drive_async(_steps(loop, _asking(create, open_stream, on_event), _together, on_message))


def _steps(
    loop: Loop[Any],
    ask: Callable[[Loop[Any]], Steps[Any]],
    results_of: Callable[[Loop[Any], Sequence[Call]], Any],
    on_message: Callable[[Any], object] | None,
) -> Steps[ToolRun[Any]]:
    def report_messages() -> Steps[None]:
        for message in loop.new_messages():
            if on_message is not None:
                yield on_message(message)

    while True:
        answer = yield from ask(loop)
        try:
            calls = loop.take(answer)
        except ToolLoopError:
            yield from report_messages()
            raise
        yield from report_messages()
        if not calls and not loop.is_paused:
            return loop.done()
        for call, output in zip(calls, (yield results_of(loop, calls)), strict=True):
            loop.put(call, output)
            yield from report_messages()
        loop.end_round()
        yield from report_messages()


def _asking(
    create: Callable[..., Any],
    open_stream: Callable[..., Any] | None,
    on_event: Callable[[Any], object] | None,
) -> Callable[[Loop[Any]], Steps[Any]]:
    """The call for the next answer; it is streamed if its events are needed."""

    def ask(loop: Loop[Any]) -> Steps[Any]:
        if on_event is None:
            return (yield create(**loop.request()))
        if open_stream is None:
            stream = yield create(**loop.request(), stream=True)
        else:
            stream = yield open_stream(**loop.request())
        events = loop.events(stream)
        events._begin()
        while (event := (yield from events._next())) is not None:
            yield on_event(event)
        return (yield from events._final())

    return ask


def _in_order(loop: Loop[Any], calls: Sequence[Call]) -> Iterator[Output]:
    """The result of each call, which runs when its result is needed."""
    for call in calls:
        if call.tool is None:
            yield loop.unknown(call)
            continue
        try:
            value = call.tool._call(call.arguments)
            if hasattr(value, "__await__"):
                if hasattr(value, "close"):
                    value.close()
                raise ConfigurationError(f"{call.tool.name} returned a coroutine; AsyncClient awaits it")
            output = Output(_result_text(value))
        except Exception as error:
            output = loop.failed(error)
        yield output


async def _together(loop: Loop[Any], calls: Sequence[Call]) -> list[Output]:
    """The results of all calls. If one raises, or the caller is cancelled, the others are cancelled first."""
    import asyncio

    async def result(call: Call) -> Output:
        if call.tool is None:
            return loop.unknown(call)
        try:
            if call.tool.is_async:
                return Output(_result_text(await call.tool._call(call.arguments)))
            value = await asyncio.to_thread(call.tool._call, call.arguments)
            # A plain function around a coroutine function returns a coroutine.
            return Output(_result_text(await value if hasattr(value, "__await__") else value))
        except Exception as error:
            return loop.failed(error)

    tasks: list[asyncio.Future[Output]] = [asyncio.ensure_future(result(call)) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
