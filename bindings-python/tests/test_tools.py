"""Tool loops: how functions are described to a model, and the conversation in which it calls them."""

from __future__ import annotations

import asyncio
import datetime
import functools
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import gatewright
import pydantic
import pytest
from conftest import VECTORS, Connection, Gateway
from gatewright import AsyncClient, Client, Tool

Serve = Callable[[Callable[[Connection], None]], str]


def weather(place: str, days: int = 1) -> str:
    return f"sunny in {place} for {days} days"


def add(a: int, b: int) -> int:
    return a + b


def report() -> Any:
    return {"oslo": ["sunny", 21], "ø": None}


def fail(reason: str) -> None:
    raise LookupError(reason)


TOOLS = [weather, add, report, fail]


def cases(name: str) -> list[Any]:
    document = json.loads((VECTORS / "tool_loops" / f"{name}.json").read_text())
    return [
        pytest.param({"protocol": name, **case}, id=f"{name}: {case['name']}") for case in document["cases"]
    ]


class Script:
    """Answers each request with the next stream or document, and keeps the bodies of the requests."""

    def __init__(self, answers: list[Any], streams: list[list[Any]] | None = None) -> None:
        self.bodies: list[Any] = []
        self._answers = iter(answers)
        self._streams = iter(streams or [])

    def __call__(self, connection: Connection) -> None:
        self.bodies.append(json.loads(connection.body))
        if (events := next(self._streams, None)) is None:
            connection.answer(json.dumps(next(self._answers)).encode())
            return
        connection.stream_head()
        for event in events:
            connection.send(f"data: {json.dumps(event)}\n\n".encode())


def fits(found: Any, expected: Any) -> bool:
    if isinstance(found, str) and isinstance(expected, dict):
        return bool(found.startswith(expected["starts"]) and expected.get("shows", "") in found)
    if isinstance(expected, Mapping):
        return set(found) == set(expected) and all(fits(found[name], expected[name]) for name in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(fits, found, expected))
    return bool(found == expected)


def check(case: Any, script: Script, run: Callable[[], Any]) -> None:
    if "error" in case:
        with pytest.raises(gatewright.ToolLoopError) as caught:
            run()
        assert case["error"] in str(caught.value)
        assert caught.value.code == case["code"]
        assert caught.value.answer == case["answers"][-1]
        messages = caught.value.messages
    else:
        ended = run()
        assert (ended.rounds, ended.text) == (case["rounds"], case["text"])
        assert ended.completion == ended.response
        assert "streams" in case or ended.completion == case["answers"][-1]
        messages = ended.messages
    assert messages is not None
    assert fits(messages, case["conversation"])
    assert len(script.bodies) == len(case.get("answers") or case["streams"])
    for body in script.bodies:
        sent = body.get("messages") or body.get("input") or body["contents"]
        assert fits(sent, case["conversation"][: len(sent)])
    if "tool_choices" in case:
        choices = [body.get("tool_choice") or body.get("toolConfig") for body in script.bodies]
        assert choices == case["tool_choices"]


PROTOCOLS = ["chat", "responses", "messages", "native"]


def run_case(client: Any, case: Any, **more: Any) -> Any:
    """What `run_tools` of the case's protocol returns, which is awaitable if the client is."""
    given = {name: case[name] for name in ("max_rounds", "messages", "input", "contents") if name in case}
    given |= {"tools": TOOLS, **more}
    choice = case.get("tool_choice", gatewright.NOT_GIVEN)
    if "contents" in case:
        return client.native.run_tools("m", toolConfig=choice, **given)
    if "input" in case:
        return client.responses.run_tools(model="m", tool_choice=choice, **given)
    if case["protocol"] == "messages":
        return client.messages.run_tools(model="m", max_tokens=9, tool_choice=choice, **given)
    return client.chat.completions.run_tools(model="m", tool_choice=choice, **given)


ALL_CASES = [case for protocol in PROTOCOLS for case in cases(protocol)]


@pytest.mark.parametrize("case", ALL_CASES)
def test_loops(serve: Serve, case: Any) -> None:
    script = Script(case["answers"])
    with Client(serve(script), "key", max_retries=0) as client:
        added: list[Any] = []
        check(case, script, lambda: run_case(client, case, on_message=added.append))
    assert fits(added, case["conversation"][len(case["conversation"]) - len(added) :])
    initial = case.get("messages") or case.get("input") or case["contents"]
    assert len(added) == len(case["conversation"]) - (1 if isinstance(initial, str) else len(initial))


@pytest.mark.parametrize("case", ALL_CASES)
def test_loops_async(serve: Serve, case: Any) -> None:
    script = Script(case["answers"])
    base_url = serve(script)

    async def run() -> Any:
        async with AsyncClient(base_url, "key", max_retries=0) as client:
            return await run_case(client, case)

    check(case, script, lambda: asyncio.run(run()))


def check_events(case: Any, events: list[Any]) -> None:
    found = [event for event in events if type(event).__name__ != "ChunkEvent"]
    assert len(found) == len(case["events"])
    for event, expected in zip(found, case["events"], strict=True):
        assert {name: getattr(event, name) for name in expected} == expected


@pytest.mark.parametrize("case", cases("streams"))
def test_streamed_loops_tell_the_events_of_every_answer(serve: Serve, case: Any) -> None:
    script = Script([], case["streams"])
    events: list[Any] = []
    with Client(serve(script), "key", max_retries=0) as client:
        check(case, script, lambda: run_case(client, case, on_event=events.append))
    check_events(case, events)


@pytest.mark.parametrize("case", cases("streams"))
def test_streamed_loops_tell_the_events_of_every_answer_async(serve: Serve, case: Any) -> None:
    script = Script([], case["streams"])
    events: list[Any] = []
    base_url = serve(script)

    async def run() -> Any:
        async with AsyncClient(base_url, "key", max_retries=0) as client:
            return await run_case(client, case, on_event=events.append)

    check(case, script, lambda: asyncio.run(run()))
    check_events(case, events)


def test_a_gateway_answers_with_tools(client: Client) -> None:
    seen: list[Any] = []
    run = client.chat.completions.run_tools(
        model="model-sol",
        messages=[{"role": "user", "content": "How is the weather in Oslo?"}],
        tools=[weather],
        tool_choice="required",
        on_message=seen.append,
    )
    assert [message["role"] for message in run.messages] == ["user", "assistant", "tool", "assistant"]
    assert seen == run.messages[1:]
    again = client.chat.completions.create(
        model="model-sol", messages=[*run.messages, {"role": "user", "content": "Thanks!"}]
    )
    assert again.choices[0].message.content


def test_a_gateway_answers_with_tools_in_messages_and_native(client: Client) -> None:
    seen: list[Any] = []
    run = client.messages.run_tools(
        model="model-breeze",
        max_tokens=256,
        messages=[{"role": "user", "content": "How is the weather in Oslo?"}],
        tools=[weather],
        tool_choice={"type": "any"},
        on_event=seen.append,
    )
    assert [turn["role"] for turn in run.messages] == ["user", "assistant", "user", "assistant"]
    assert [event.type for event in seen].count("message_stop") == 2
    again: Any = [*run.messages, {"role": "user", "content": "Thanks!"}]
    assert client.messages.create(model="model-breeze", max_tokens=256, messages=again).content
    content = client.native.run_tools(
        "model-terra",
        contents=[{"parts": [{"text": "How is the weather in Oslo?"}]}],
        tools=[weather],
        toolConfig={"functionCallingConfig": {"mode": "ANY"}},
        on_event=seen.append,
    )
    assert (content.rounds, len(content.messages)) == (1, 4)
    assert content.text
    assert seen[-1].candidates


def test_events_of_each_answer_are_passed_on(client: Client) -> None:
    events: list[Any] = []
    run = client.chat.completions.run_tools(
        model="model-sol",
        messages=[{"role": "user", "content": "How is the weather in Oslo?"}],
        tools=[weather],
        tool_choice="required",
        on_event=events.append,
    )
    kinds = [event.type for event in events if event.type.endswith(".done")]
    assert kinds == ["tool_calls.function.arguments.done", "content.done"]
    assert [event.content for event in events if event.type == "content.done"] == [run.text]
    events_seen: list[Any] = []
    response = client.responses.run_tools(
        model="model-sol", input="Oslo?", tools=[weather], tool_choice="required", on_event=events_seen.append
    )
    assert response.rounds == 1
    assert [event.type for event in events_seen].count("response.completed") == 2


async def test_events_of_each_answer_are_passed_on_async(gateway: Gateway) -> None:
    events: list[Any] = []

    async def note(event: Any) -> None:
        events.append(event.type)

    async with AsyncClient(gateway.base_url, gateway.key) as client:
        await client.chat.completions.run_tools(
            model="model-sol",
            messages=[{"role": "user", "content": "How is the weather in Oslo?"}],
            tools=[weather],
            tool_choice="required",
            on_event=note,
        )
        assert events.count("content.done") == 1
        run = await client.responses.run_tools(
            model="model-sol", input="Oslo?", tools=[weather], tool_choice="required", on_event=note
        )
    assert run.rounds == 1
    assert events.count("response.completed") == 2


# What is sent to a model.


class Unit(pydantic.BaseModel):
    name: Literal["celsius", "fahrenheit"]


def described(
    place: Annotated[str, "A city."],
    unit: Unit,
    *,
    days: int = 1,
    exact: bool = False,
) -> None:
    """The weather of a place.

    More about it.

    Args:
        place: Not this: the annotation has precedence.
        days (int): How many days
            from today on.
        exact: Whether it is: exact.

    Returns:
        Nothing: this is no argument.
    """


def test_a_function_is_described_by_its_signature_and_docstring() -> None:
    tool = Tool(described)
    assert (tool.name, tool.description) == ("described", "The weather of a place.\n\nMore about it.")
    properties = tool.parameters["properties"]
    assert properties["place"] == {"type": "string", "title": "Place", "description": "A city."}
    assert properties["days"]["description"] == "How many days from today on."
    assert properties["exact"]["description"] == "Whether it is: exact."
    assert tool.parameters["required"] == ["place", "unit"]
    assert tool.parameters["additionalProperties"] is False
    assert tool.parameters["$defs"]["Unit"]["properties"]["name"]["enum"] == ["celsius", "fahrenheit"]


class Methods:
    def plain(self, a: int) -> int:
        """A method."""
        return a

    def __call__(self, b: int) -> int:
        return b


def test_methods_partials_and_objects_are_tools() -> None:
    assert (Tool(Methods().plain).name, Tool(Methods().plain).description) == ("plain", "A method.")
    assert list(Tool(Methods().plain).parameters["properties"]) == ["a"]
    assert list(Tool(Methods()).parameters["properties"]) == ["b"]
    tool = Tool(functools.partial(add, b=1), name="increment")
    assert (tool.name, tool.parameters["required"]) == ("increment", ["a"])


def test_a_tool_may_bring_its_own_schema() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    tool = Tool(lambda **given: given, name="any thing", description="Anything.", parameters=schema)
    assert (tool.name, tool.description, tool.parameters) == ("any_thing", "Anything.", schema)
    assert tool._call('{"a": 1}') == {"a": 1}
    with pytest.raises(ValueError, match="must be an object"):
        tool._call("[1]")


@pytest.mark.parametrize(
    "function", [lambda *names: names, lambda **names: names, lambda a, /: a], ids=["*", "**", "/"]
)
def test_arguments_that_have_no_name_are_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(gatewright.ConfigurationError, match="by name"):
        Tool(function)


def test_what_is_no_function_is_refused(client: Client) -> None:
    with pytest.raises(TypeError, match="a tool must be a function, not dict"):
        client.chat.completions.run_tools(model="m", messages=[], tools=[{}])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="two tools are called add"):
        client.chat.completions.run_tools(model="m", messages=[], tools=[add, add])
    with pytest.raises(ValueError, match="max_rounds must be a whole number from 1, not 0"):
        client.chat.completions.run_tools(model="m", messages=[], tools=[add], max_rounds=0)


# What tools are given and return.


@dataclass
class Result:
    when: datetime.date


def call(name: str, arguments: str = "{}", id: str = "t1") -> Any:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def script_of(*calls: Any, rounds: int = 1) -> Script:
    def answer(**message: Any) -> Any:
        return {"id": "c", "choices": [{"index": 0, "message": {"role": "assistant", **message}}]}

    return Script([answer(content=None, tool_calls=list(calls))] * rounds + [answer(content="end")])


def results(run: Any) -> list[Any]:
    return [message["content"] for message in run.messages if message["role"] == "tool"]


def test_values_are_converted_in_both_directions(serve: Serve) -> None:
    def on(day: datetime.date, unit: Unit) -> Result:
        assert isinstance(unit, Unit)
        return Result(day)

    arguments = json.dumps({"day": "2026-03-01", "unit": {"name": "celsius"}})
    with Client(serve(script_of(call("on", arguments))), "key", max_retries=0) as client:
        run = client.chat.completions.run_tools(model="m", messages=[], tools=[on])
    assert results(run) == ['{"when":"2026-03-01"}']


def test_what_has_no_json_form_is_an_error_for_the_model(serve: Serve) -> None:
    def odd() -> Any:
        return object()

    with Client(serve(script_of(call("odd"))), "key", max_retries=0) as client:
        run = client.chat.completions.run_tools(model="m", messages=[], tools=[odd])
    assert results(run)[0].startswith("error: ")


def test_records_within_a_result_are_json(serve: Serve) -> None:
    def models() -> Any:
        return {"all": listed.data, "day": datetime.date(2026, 3, 1)}

    document = b'{"object": "list", "data": [{"id": "m"}]}'
    with Client(serve(lambda connection: connection.answer(document)), "key") as client:
        listed = client.models.list()
    with Client(serve(script_of(call("models"))), "key", max_retries=0) as client:
        run = client.chat.completions.run_tools(model="m", messages=[], tools=[models])
    assert json.loads(results(run)[0]) == {"all": [{"id": "m"}], "day": "2026-03-01"}


@pytest.mark.parametrize("case", cases("keys"))
def test_each_round_has_an_idempotency_key_of_its_own(case: Any, serve: Serve) -> None:
    first, *later = case["keys"]
    script = script_of(call("report"), rounds=len(later))
    keys: list[str] = []

    def answer(connection: Connection) -> None:
        lines = dict(line.lower().split(": ", 1) for line in connection.head.split("\r\n")[1:])
        keys.append(lines["idempotency-key"])
        script(connection)

    with Client(serve(answer), "key", max_retries=0) as client:
        client.chat.completions.run_tools(model="m", messages=[], tools=[report], idempotency_key=first)
    assert keys == case["keys"]


async def test_a_coroutine_of_a_plain_function_is_awaited_or_refused(serve: Serve) -> None:
    async def later() -> str:
        return "done"

    def wrapped() -> Any:
        return later()

    async with AsyncClient(serve(script_of(call("wrapped"))), "key", max_retries=0) as client:
        run = await client.chat.completions.run_tools(model="m", messages=[], tools=[wrapped])
    assert results(run) == ["done"]
    with Client(serve(script_of(call("wrapped"))), "key", max_retries=0) as plain:
        run = plain.chat.completions.run_tools(model="m", messages=[], tools=[wrapped])
    assert results(run) == ["error: wrapped returned a coroutine; AsyncClient awaits it"]

    async def note(message: Any) -> None:
        raise AssertionError(f"never awaited: {message}")

    with (
        Client(serve(script_of(call("report"))), "key", max_retries=0) as plain,
        pytest.raises(TypeError, match="AsyncClient takes coroutine functions"),
    ):
        plain.chat.completions.run_tools(model="m", messages=[], tools=[report], on_message=note)


def test_raise_errors_lets_exceptions_through(serve: Serve) -> None:
    with (
        Client(serve(script_of(call("fail", '{"reason": "no signal"}'))), "key", max_retries=0) as client,
        pytest.raises(LookupError, match="no signal"),
    ):
        client.chat.completions.run_tools(model="m", messages=[], tools=[fail], raise_errors=True)


def test_sync_calls_run_in_order_in_the_calling_thread(serve: Serve) -> None:
    seen: list[Any] = []

    def note(n: int) -> None:
        seen.append((n, threading.current_thread()))

    calls = [call("note", json.dumps({"n": n}), f"t{n}") for n in range(3)]
    with Client(serve(script_of(*calls)), "key", max_retries=0) as client:
        client.chat.completions.run_tools(model="m", messages=[], tools=[note])
    assert seen == [(n, threading.current_thread()) for n in range(3)]


def test_a_coroutine_function_needs_the_async_client(client: Client) -> None:
    async def later() -> None:
        pass

    with pytest.raises(gatewright.ConfigurationError, match="later is a coroutine function; AsyncClient"):
        client.chat.completions.run_tools(model="m", messages=[], tools=[later])


async def test_async_calls_run_at_the_same_time(serve: Serve) -> None:
    together = asyncio.Barrier(2) if hasattr(asyncio, "Barrier") else None
    threads = threading.Barrier(2)

    async def task(n: int) -> int:
        if together is not None:
            await together.wait()
        return n

    def thread(n: int) -> int:
        threads.wait(5)
        return n

    calls = [call(name, '{"n": 1}', f"{name}{n}") for name in ("task", "thread") for n in range(2)]
    async with AsyncClient(serve(script_of(*calls)), "key", max_retries=0) as client:
        seen: list[Any] = []

        async def note(message: Any) -> None:
            seen.append(message["role"])

        run = await asyncio.wait_for(
            client.chat.completions.run_tools(model="m", messages=[], tools=[task, thread], on_message=note),
            10,
        )
    assert results(run) == ["1"] * 4
    assert seen == ["assistant", "tool", "tool", "tool", "tool", "assistant"]


async def test_one_that_raises_cancels_the_others(serve: Serve) -> None:
    cancelled = asyncio.Event()

    async def slow() -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def broken() -> None:
        raise LookupError("broken")

    script = script_of(call("slow", id="t1"), call("broken", id="t2"))
    started = time.monotonic()
    async with AsyncClient(serve(script), "key", max_retries=0) as client:
        with pytest.raises(LookupError):
            await client.chat.completions.run_tools(
                model="m", messages=[], tools=[slow, broken], raise_errors=True
            )
    assert cancelled.is_set()
    assert time.monotonic() - started < 10


async def test_async_tools_of_a_gateway(gateway: Gateway) -> None:
    async with AsyncClient(gateway.base_url, gateway.key) as client:
        run = await client.responses.run_tools(
            model="model-sol", input="How is the weather in Oslo?", tools=[weather], tool_choice="required"
        )
    assert run.rounds == 1
    assert run.text == run.response.output_text
