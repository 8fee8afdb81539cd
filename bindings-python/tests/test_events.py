"""The streams of `stream()`: events that tell the answer so far, and the whole answer at the end."""

from __future__ import annotations

import json
import pickle
import random
import re
import tracemalloc
import types
from collections.abc import Callable
from typing import Any

import gatewright
import pytest
from conftest import VECTORS, Connection, Gateway
from gatewright import AsyncClient, Client
from gatewright._chat_events import ChatEvents
from gatewright._growing import GrowingText
from gatewright._json_prefix import (
    MAX_PREFIX,
    MAX_PREFIX_DEPTH,
    MAX_PREFIX_VALUES,
    MAX_PREFIX_WORD,
    JsonPrefix,
    value_of,
)
from test_structured import QUESTION, City

Serve = Callable[[Callable[[Connection], None]], str]


def cases(name: str) -> list[Any]:
    document = json.loads((VECTORS / "structured" / f"{name}.json").read_text())
    return [pytest.param(case, id=case["name"]) for case in document["cases"]]


# The beginning of a JSON document.


@pytest.mark.parametrize("case", cases("prefixes"))
@pytest.mark.parametrize("size", [1, 2, 1000])
def test_the_beginning_of_a_document_has_a_value(case: Any, size: int) -> None:
    prefix = JsonPrefix()
    for at in range(0, len(case["text"]), size):
        prefix.feed(case["text"][at : at + size])
    assert value_of(case["text"], *prefix.cut()) == case["value"]


def test_every_beginning_of_a_document_has_a_value_that_only_grows() -> None:
    value = {"a": ['x\n"\\ 😀é', -1.5e3, True, None, {}], "b": {"c": [[], [1]], "d": ""}}
    text = json.dumps(value)
    for seed in range(20):
        dice, prefix, at, before = random.Random(seed), JsonPrefix(), 0, -1
        while at < len(text):
            size = dice.randint(1, 5)
            prefix.feed(text[at : at + size])
            at += size
            size_now = len(json.dumps(value_of(text[:at], *prefix.cut()), ensure_ascii=False).encode())
            assert size_now >= before
            before = size_now
        assert value_of(text, *prefix.cut()) == value


@pytest.mark.parametrize(
    ("within", "beyond"),
    [
        ('"' + "x" * (MAX_PREFIX - 1), "x"),
        # In bytes, not in characters.
        ('"' + "é" * (MAX_PREFIX // 2 - 1), "é"),
        ("[" * MAX_PREFIX_DEPTH, "["),
        # The list is a value, too, and a number is one once it is complete.
        ("[" + "0," * (MAX_PREFIX_VALUES - 1) + "0", ","),
        ("[" + '"",' * (MAX_PREFIX_VALUES - 1), '"'),
        ("[" + "{}," * (MAX_PREFIX_VALUES - 1), "{"),
        ('{"a":' + "1" * MAX_PREFIX_WORD, "1"),
    ],
    ids=["length", "bytes", "depth", "numbers", "texts", "objects", "word"],
)
def test_the_beginning_of_a_document_has_a_value_within_the_bounds_of_the_core(
    within: str, beyond: str
) -> None:
    prefix = JsonPrefix()
    prefix.feed(within)
    assert value_of(within, *prefix.cut()) is not None
    prefix.feed(beyond)
    assert prefix.cut() == (0, "")
    prefix.feed(" ")
    assert prefix.cut() == (0, "")


def test_the_bounds_of_the_beginning_of_a_document_are_those_of_the_core() -> None:
    # MAX_TEXT_BYTES, MAX_DEPTH, MAX_VALUES and MAX_WORD_BYTES in core/src/stream/json_prefix.rs.
    bounds = (MAX_PREFIX, MAX_PREFIX_DEPTH, MAX_PREFIX_VALUES, MAX_PREFIX_WORD)
    assert bounds == (8 * 1024 * 1024, 128, 100_000, 1024)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'["\ud83d\ude00", "\\ud83d"', ["😀", r"\ud83d"]),
        (r'["\ud83dx\ude00", "\ud83d\ud83d\ude00"', ["\ufffdx\ufffd", "\ufffd😀"]),
        ('["a", -Infinity, ', None),
        ('["a", 1e999, ', None),
    ],
)
def test_the_beginning_of_a_document_has_no_value_that_json_cannot_represent(text: str, value: Any) -> None:
    prefix = JsonPrefix()
    prefix.feed(text)
    assert value_of(text, *prefix.cut()) == value


# Events of chat.


def stream_of(chunks: list[Any]) -> Callable[[Connection], None]:
    def answer(connection: Connection) -> None:
        connection.stream_head()
        for chunk in chunks:
            connection.send(f"data: {json.dumps(chunk)}\n\n".encode())
        connection.send(b"data: [DONE]\n\n")

    return answer


def check(case: Any, events: list[Any], error: gatewright.StructuredOutputError | None) -> None:
    assert sum(event.type == "chunk" for event in events) >= len(case["chunks"]) - ("error" in case)
    emitted = [event for event in events if event.type != "chunk"]
    assert [event.type for event in emitted] == [expected["type"] for expected in case["events"]]
    for event, expected in zip(emitted, case["events"], strict=True):
        for name, value in expected.items():
            found = getattr(event, name)
            assert (found.model_dump() if isinstance(found, City) else found) == value
    if "error" in case:
        assert error is not None
        assert case["error"] in error.message
        assert error.answer.object == "chat.completion"
    else:
        assert error is None


@pytest.mark.parametrize("case", cases("events"))
def test_events_of_chat(serve: Serve, case: Any) -> None:
    arguments: Any = {"response_format": City} if case["format"] else {}
    events: list[Any] = []
    error = None
    with Client(serve(stream_of(case["chunks"])), "key", max_retries=0) as client:
        manager = client.chat.completions.stream(model="m", messages=QUESTION, **arguments)
        with manager as stream:
            try:
                events.extend(iter_all(stream, events))
            except gatewright.StructuredOutputError as caught:
                error = caught
        check(case, events, error)
        if error is not None:
            with pytest.raises(gatewright.StructuredOutputError, match=re.escape(error.message)):
                next(stream)
            with pytest.raises(gatewright.StructuredOutputError, match=re.escape(error.message)):
                stream.get_final_completion()


def iter_all(stream: Any, events: list[Any]) -> list[Any]:
    for event in stream:
        events.append(event)
    return []


@pytest.mark.parametrize("case", cases("events"))
async def test_events_of_chat_async(serve: Serve, case: Any) -> None:
    arguments: Any = {"response_format": City} if case["format"] else {}
    events: list[Any] = []
    error = None
    async with (
        AsyncClient(serve(stream_of(case["chunks"])), "key", max_retries=0) as client,
        client.chat.completions.stream(model="m", messages=QUESTION, **arguments) as stream,
    ):
        try:
            async for event in stream:
                events.append(event)
        except gatewright.StructuredOutputError as caught:
            error = caught
    check(case, events, error)


def test_choices_are_kept_apart(serve: Serve) -> None:
    def chunk(index: int, content: str | None, finish: str | None = None) -> Any:
        return {
            "id": "c",
            "choices": [{"index": index, "delta": {"content": content}, "finish_reason": finish}],
        }

    chunks = [chunk(0, "a"), chunk(1, "x"), chunk(0, "b"), chunk(1, None, "stop"), chunk(0, None, "stop")]
    with (
        Client(serve(stream_of(chunks)), "key", max_retries=0) as client,
        client.chat.completions.stream(model="m", messages=QUESTION) as stream,
    ):
        done = [(event.index, event.content) for event in stream if event.type == "content.done"]
    assert done == [(1, "x"), (0, "ab")]


def test_choices_without_an_index_have_that_of_their_position(serve: Serve) -> None:
    choices = [{"delta": {"content": text}, "finish_reason": "stop"} for text in ("a", "x")]
    with (
        Client(serve(stream_of([{"id": "c", "choices": choices}])), "key", max_retries=0) as client,
        client.chat.completions.stream(model="m", messages=QUESTION) as stream,
    ):
        done = [(event.index, event.content) for event in stream if event.type == "content.done"]
        final = stream.get_final_completion()
    assert done == [(0, "a"), (1, "x")]
    assert [(choice.index, choice.message.content) for choice in final.choices] == done


def test_arguments_that_are_an_object_are_their_text_as_for_the_core(serve: Serve) -> None:
    call = {"index": 0, "id": "i", "function": {"name": "n", "arguments": {"a": [1, "é"]}}}
    choice = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}
    with (
        Client(serve(stream_of([{"id": "c", "choices": [choice]}])), "key", max_retries=0) as client,
        client.chat.completions.stream(model="m", messages=QUESTION) as stream,
    ):
        done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
        final = stream.get_final_completion()
    assert [event.arguments for event in done] == ['{"a":[1,"é"]}']
    assert done[0].parsed_arguments == {"a": [1, "é"]}
    (made,) = final.choices[0].message.tool_calls or []
    assert made.function is not None
    assert made.function.arguments == done[0].arguments


def test_calls_that_are_taken_up_again_and_again_cost_as_much_as_their_own_text() -> None:
    # Each time, the arguments so far are those of a call that is complete. Parsing them takes milliseconds.
    events: list[Any] = []
    chat = ChatEvents(None)

    def push(index: int, arguments: str) -> None:
        function = types.SimpleNamespace(name="f", arguments=arguments)
        call = types.SimpleNamespace(index=index, function=function, custom=None)
        delta = types.SimpleNamespace(content=None, refusal=None, tool_calls=[call])
        choice = types.SimpleNamespace(index=0, delta=delta, logprobs=None, finish_reason=None)
        chat.of(types.SimpleNamespace(choices=[choice]), events)

    push(0, "[0" + ", 0" * 300_000)
    for _ in range(20_000):
        push(1, " ")
        push(0, ",0")
    push(1, "[]")
    done = [event for event in events if event.type == "tool_calls.function.arguments.done"]
    assert len(done) == 40_001
    assert done[-1].arguments.endswith(",0,0,0")
    assert done[-1].parsed_arguments is None
    push(0, "]")
    push(1, "")
    (last,) = [event for event in events if event.type == done[0].type and event.index == 0][-1:]
    assert last.parsed_arguments == [0] * 320_001
    assert last.parsed_arguments is last.parsed_arguments, "parsed once"


def test_a_gateway_streams_a_value(client: Client) -> None:
    with client.chat.completions.stream(model="model-sol", messages=QUESTION, response_format=City) as stream:
        events = list(stream)
        completion = stream.get_final_completion()
        assert stream.response.status_code == 200
    deltas = [event for event in events if event.type == "content.delta"]
    (done,) = [event for event in events if event.type == "content.done"]
    assert len(deltas) > 1
    assert isinstance(deltas[-1].parsed, dict)
    assert isinstance(done.parsed, City)
    assert completion.choices[0].message.parsed == done.parsed
    assert "delta=" in repr(deltas[0])


def test_the_whole_answer_may_come_instead_of_the_events_or_beside_them(client: Client) -> None:
    def ask() -> Any:
        return client.chat.completions.stream(model="model-sol", messages=QUESTION)

    with ask() as stream:
        assert stream.get_final_completion().choices[0].finish_reason == "stop"
    with ask() as stream:
        assert stream.until_done().get_final_completion().choices[0].finish_reason == "stop"
        with pytest.raises(gatewright.ConfigurationError, match="read to its end"):
            list(stream)
    with ask() as stream:
        next(stream)
        stream.get_final_completion()
        with pytest.raises(gatewright.ConfigurationError, match="read as the whole document"):
            list(stream)


def test_leaving_the_block_closes_the_connection(serve: Serve) -> None:
    closed = []

    def answer(connection: Connection) -> None:
        connection.stream_head()
        connection.send(b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n')
        closed.append(connection.wait_until_closed(10))

    with Client(serve(answer), "key", max_retries=0) as client:
        with client.chat.completions.stream(model="m", messages=QUESTION) as stream:
            next(stream)
        with pytest.raises(gatewright.ConfigurationError, match="closed"):
            stream.get_final_completion()
        with pytest.raises(gatewright.ConfigurationError, match="closed"):
            list(stream)


def test_a_growing_text_is_joined_when_it_is_read() -> None:
    text = GrowingText(is_json=True)
    states = [text.push(piece) for piece in ('{"a": "', "b", "", 'c"}')]
    assert [state.text for state in states[::-1]] == ['{"a": "bc"}', '{"a": "b', '{"a": "b', '{"a": "']
    assert [state.value for state in states] == [{"a": ""}, {"a": "b"}, {"a": "b"}, {"a": "bc"}]
    assert text.text() == states[-1].text
    assert states[-1].value is states[-1].value, "parsed once"


def test_events_that_are_not_looked_at_cost_as_much_as_their_own_text() -> None:
    count, size = 20_000, 50
    events: list[Any] = []
    chat = ChatEvents(None)
    delta = types.SimpleNamespace(content="x" * size, refusal=None, tool_calls=None)
    choice = types.SimpleNamespace(index=0, delta=delta, logprobs=None, finish_reason=None)
    chunk = types.SimpleNamespace(choices=[choice])
    tracemalloc.start()
    for _ in range(count):
        chat.of(chunk, events)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # All texts so far would be 10 GB.
    assert peak < 1000 * count
    assert events[-1].snapshot == "x" * size * count


# Responses and messages.


def served(events: list[Any]) -> Callable[[Connection], None]:
    def answer(connection: Connection) -> None:
        connection.stream_head()
        for event in events:
            connection.send(f"event: {event.get('type', 'message')}\ndata: {json.dumps(event)}\n\n".encode())

    return answer


def check_events(events: list[Any], expected: list[Any]) -> None:
    assert [event.type for event in events] == [one["type"] for one in expected]
    for event, members in zip(events, expected, strict=True):
        assert {name: getattr(event, name) for name in members} == members


@pytest.mark.parametrize("case", cases("response_events"))
async def test_events_of_responses(serve: Serve, case: Any) -> None:
    arguments: Any = {"text_format": City} if case["format"] else {}
    with (
        Client(serve(served(case["stream"])), "key", max_retries=0) as client,
        client.responses.stream(model="m", input="x", **arguments) as stream,
    ):
        check_events(list(stream), case["events"])
    async with (
        AsyncClient(serve(served(case["stream"])), "key", max_retries=0) as client,
        client.responses.stream(model="m", input="x", **arguments) as stream,
    ):
        check_events([event async for event in stream], case["events"])


@pytest.mark.parametrize("case", cases("message_events"))
async def test_events_of_messages(serve: Serve, case: Any) -> None:
    base_url = serve(served(case["stream"]))
    arguments: Any = {"model": "m", "max_tokens": 1, "messages": QUESTION}
    with Client(base_url, "key", max_retries=0) as client:
        with client.messages.stream(**arguments) as stream:
            assert stream.current_message_snapshot is None
            events: list[Any] = []
            for event in stream:
                events.append(event)
                assert stream.current_message_snapshot is not None
            check_events(events, case["events"])
            final = stream.get_final_message()
            assert events[-1].message == final == stream.current_message_snapshot
        with client.messages.stream(**arguments) as stream:
            assert "".join(stream.text_stream) == case["text"]
            assert stream.current_message_snapshot == final
            assert stream.get_final_text() == case["text"]
    async with AsyncClient(base_url, "key", max_retries=0) as client:
        async with client.messages.stream(**arguments) as stream:
            check_events([event async for event in stream], case["events"])
            assert stream.current_message_snapshot == await stream.get_final_message()
        async with client.messages.stream(**arguments) as stream:
            assert "".join([piece async for piece in stream.text_stream]) == case["text"]
            assert await stream.get_final_text() == case["text"]


def test_the_message_so_far_grows_with_its_events(serve: Serve) -> None:
    (case,) = [one.values[0] for one in cases("message_events") if "in between" in one.values[0]["name"]]
    arguments: Any = {"model": "m", "max_tokens": 1, "messages": QUESTION}
    with (
        Client(serve(served(case["stream"])), "key", max_retries=0) as client,
        client.messages.stream(**arguments) as stream,
    ):
        inputs = []
        for event in stream:
            if event.type == "input_json":
                message = stream.current_message_snapshot
                inputs.append([block.input for block in message.content if block.type == "tool_use"])
        assert inputs == [
            [{}, {}],
            [{"place": "Os"}, {}],
            [{"place": "Os"}, {}],
            [{"place": "Oslo"}, {}],
            [{"place": "Oslo"}, {"n": 12}],
        ]
        with pytest.raises(gatewright.ConfigurationError, match="read to its end"):
            list(stream)
        with pytest.raises(gatewright.ConfigurationError, match="read to its end"):
            list(stream.text_stream)


def test_members_of_an_unexpected_type_are_an_error_of_the_stream(serve: Serve) -> None:
    chunk = {"id": "c", "choices": [{"index": {}, "delta": {"content": "a"}}]}
    with (
        Client(serve(served([chunk])), "key", max_retries=0) as client,
        client.chat.completions.stream(model="m", messages=QUESTION) as stream,
        pytest.raises(gatewright.DecodeError, match="a member of an unexpected type") as caught,
    ):
        list(stream)
    error = caught.value
    assert (error.operation, error.status_code, error.attempts) == ("create_chat_completion", 200, 1)
    assert error.request_id == "req_stream"
    assert str(error).startswith("chat.completions.create: status 200: ")


def test_events_with_own_members_are_records_otherwise(serve: Serve) -> None:
    (case,) = [one.values[0] for one in cases("message_events") if one.values[0]["name"] == "text"]
    arguments: Any = {"model": "m", "max_tokens": 1, "messages": QUESTION}
    with (
        Client(serve(served(case["stream"])), "key", max_retries=0) as client,
        client.messages.stream(**arguments) as stream,
    ):
        events: list[Any] = list(stream)
    (stop,) = [event for event in events if event.type == "content_block_stop"]
    assert dict(stop) == {"type": "content_block_stop", "index": 0}
    assert json.loads(stop.to_json()) == dict(stop)
    assert "content_block" in dir(stop)
    assert "content_block" in repr(stop)
    copy = pickle.loads(pickle.dumps(stop))
    assert copy.content_block == stop.content_block == {"type": "text", "text": "one"}
    assert "snapshot='one'" in repr(events[5])
    assert not hasattr(stop, "nonsense")


@pytest.mark.parametrize("path", ["chat", "messages"])
def test_a_broken_stream_raises_after_its_events_and_keeps_the_answer_so_far(serve: Serve, path: str) -> None:
    (case,) = [one.values[0] for one in cases("message_events") if one.values[0]["name"] == "text"]
    arguments: Any = {"model": "m", "messages": QUESTION}

    def broken(connection: Connection) -> None:
        if path == "messages":
            served(case["stream"][:3])(connection)
        else:
            connection.stream_head()
            connection.send(b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"on"}}]}\n\n')

    with Client(serve(broken), "key", max_retries=0) as client:
        manager: Any = (
            client.messages.stream(max_tokens=1, **arguments)
            if path == "messages"
            else client.chat.completions.stream(**arguments)
        )
        with manager as stream:
            snapshots: list[Any] = []
            texts = (event for event in stream if event.type in ("text", "content.delta"))
            with pytest.raises(gatewright.StreamTruncatedError):
                snapshots.extend(event.snapshot for event in texts)
            assert snapshots == ["on"]
            if path == "messages":
                assert stream.current_message_snapshot.content == [{"type": "text", "text": "on"}]
            with pytest.raises(gatewright.GatewrightError):
                list(stream)


def test_events_of_a_response_tell_the_text_so_far(client: Client) -> None:
    with client.responses.stream(model="model-sol", input="A city of Norway.", text_format=City) as stream:
        events = list(stream)
        response = stream.get_final_response()
    deltas = [event for event in events if event.type == "response.output_text.delta"]
    assert "".join(event.delta for event in deltas) == deltas[-1].snapshot == response.output_text
    assert isinstance(deltas[-1].parsed, dict)
    assert isinstance(response.output_parsed, City)
    assert events[-1].type == "response.completed"


async def test_events_of_a_response_async(gateway: Gateway) -> None:
    async with AsyncClient(gateway.base_url, gateway.key) as client:
        async with client.responses.stream(model="model-sol", input="Say hello.") as stream:
            events = [event async for event in stream]
            response = await stream.get_final_response()
        assert events[-1].type == "response.completed"
        assert response.output_text
        async with client.messages.stream(
            model="model-breeze", max_tokens=64, messages=[{"role": "user", "content": "Say hello."}]
        ) as written:
            text = "".join([piece async for piece in written.text_stream])
            assert await written.get_final_text() == text
            await written.until_done()


def test_a_message_is_streamed_as_text_and_events(client: Client) -> None:
    def ask() -> Any:
        return client.messages.stream(
            model="model-breeze", max_tokens=64, messages=[{"role": "user", "content": "Say hello."}]
        )

    with ask() as stream:
        text = "".join(stream.text_stream)
        assert stream.until_done().get_final_text() == text
    with ask() as stream:
        assert [event.type for event in stream][-1] == "message_stop"
        assert stream.get_final_message().role == "assistant"
