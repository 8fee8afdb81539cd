"""The message so far: whatever a server sends, it is the one that the core makes of the same events, and an
event costs as much as its own text."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from conftest import Connection
from gatewright import AsyncClient, Client
from gatewright._message_so_far import MessageSoFar
from test_events import served
from test_structured import QUESTION

Serve = Callable[[Callable[[Connection], None]], str]

ARGUMENTS: dict[str, Any] = {"model": "m", "max_tokens": 1, "messages": QUESTION}
START = {
    "type": "message_start",
    "message": {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 1},
    },
}
STOP = {"type": "message_stop"}


def begin(block: Any, **index: Any) -> dict[str, Any]:
    return {"type": "content_block_start", **index, "content_block": block}


def piece(delta: Any, **index: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", **index, "delta": delta}


def end(**index: Any) -> dict[str, Any]:
    return {"type": "content_block_stop", **index}


def text(new: Any, **index: Any) -> dict[str, Any]:
    return piece({"type": "text_delta", "text": new}, **index)


def json_piece(new: Any, **index: Any) -> dict[str, Any]:
    return piece({"type": "input_json_delta", "partial_json": new}, **index)


TEXT = {"type": "text", "text": ""}
CALL = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
FUTURE = {"type": "future"}

CASES: dict[str, tuple[list[dict[str, Any]], list[Any]]] = {
    "a negative index is none": (
        [begin(TEXT, index=0), begin(CALL, index=-1), text("a", index=0), json_piece('{"n": 1}', index=-3)],
        [{"type": "text", "text": "a"}, {**CALL, "input": {"n": 1}}],
    ),
    "an index of another type is none": (
        [begin(TEXT, index=[1]), text("a", index={}), begin(TEXT, index=True), text("b", index="x")],
        [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
    ),
    "blocks in descending order": (
        [begin(TEXT, index=9), begin(TEXT, index=4), text("a", index=4), text("b"), text("c", index=1)],
        [{"type": "text", "text": "c"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
    ),
    "the end of a block that is not known": (
        [end(index=5), begin(TEXT), end(index=7), end(index=-1)],
        [{"type": "text", "text": ""}],
    ),
    "no block, and no piece": (
        [begin(None), begin("abc", index=1), piece(None, index=2), piece("abc", index=3)],
        [],
    ),
    "a block without its event": (
        [
            json_piece('{"n"', index=2),
            json_piece(": 1}", index=2),
            piece({"type": "x_delta_delta", "a": 1}, index=1),
        ],
        [{"type": "x", "a": 1}, {"type": "tool_use", "input": {"n": 1}}],
    ),
    "members within members": (
        [
            begin({**FUTURE, "a": {"b": {"text": "x", "id": "1"}, "n": 1}, "c": "y"}),
            piece({"type": "future_delta", "a": {"b": {"text": "y", "id": "2", "more": "z"}, "n": None}}),
            piece({"type": "future_delta", "a": {"b": {"text": "z", "id": "", "more": "!"}, "n": 2}}),
            piece({"type": "future_delta", "a": {"b": {"text": ["no"], "more": {}}}, "c": {"d": 1}}),
        ],
        [{**FUTURE, "a": {"b": {"text": "xyz", "id": "2", "more": "z!"}, "n": 2}, "c": "y"}],
    ),
    "entries of a list with an index": (
        [
            begin({**FUTURE, "list": [{"index": 0, "text": "a"}, {"index": 1}]}),
            piece({"type": "future_delta", "list": [{"index": 1, "text": "b"}, {"index": 0, "text": "c"}]}),
            piece(
                {"type": "future_delta", "list": [{"index": 1, "text": "d"}, {"index": -1}, {"index": -1}, 5]}
            ),
        ],
        [
            {
                **FUTURE,
                "list": [
                    {"index": 0, "text": "ac"},
                    {"index": 1, "text": "bd"},
                    {"index": -1},
                    {"index": -1},
                    5,
                ],
            }
        ],
    ),
    "values that replace one another": (
        [
            begin({**FUTURE, "a": 1, "b": "x", "c": [], "d": None}),
            piece({"type": "future_delta", "a": "", "b": 2, "c": {}, "d": "y"}),
            piece({"type": "future_delta", "a": None, "b": True, "c": None, "d": "z"}),
        ],
        [{**FUTURE, "a": "", "b": True, "c": {}, "d": "yz"}],
    ),
    "citations": (
        [
            begin(TEXT),
            piece({"type": "citations_delta"}),
            piece({"type": "citations_delta", "citation": {"cited_text": "x"}}),
            piece({"type": "citations_delta", "citation": None}),
        ],
        [{"type": "text", "text": "", "citations": [{"cited_text": "x"}]}],
    ),
    "an input with what JSON cannot represent": (
        [begin(CALL), json_piece(r'{"a": "\ud800x\ud83d\ude00 \\ud800", "b": [NaN, -Infinity, 1e999]}')],
        [{**CALL, "input": {"a": "\ufffdx😀 \\ud800", "b": [None, None, None]}}],
    ),
    "an input of null": ([begin(CALL), json_piece(" null ")], [{"type": "tool_use", "id": "t", "name": "f"}]),
    "the deepest input": (
        [begin(CALL), json_piece("[" * 127 + "]" * 127)],
        [{**CALL, "input": json.loads("[" * 127 + "]" * 127)}],
    ),
    "an input that is too deep is a text": (
        [begin(CALL), json_piece("[" * 128 + "]" * 128)],
        [{**CALL, "input": "[" * 128 + "]" * 128}],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_the_message_so_far_is_that_of_the_core(serve: Serve, case: Any) -> None:
    events, content = case
    with (
        Client(serve(served([START, *events, STOP])), "key", max_retries=0) as client,
        client.messages.stream(**ARGUMENTS) as stream,
    ):
        made: list[Any] = []
        for event in stream:
            made.append(event)
            # Whatever has arrived, there is a message.
            assert stream.current_message_snapshot is not None
        assert made[-1].message.content == content
        assert made[-1].message == stream.get_final_message()


async def test_a_message_that_does_not_begin_has_its_content_too(serve: Serve) -> None:
    events = [text("a"), {"type": "message_delta", "usage": {"output_tokens": None}, "x": 1}, STOP]
    async with (
        AsyncClient(serve(served(events)), "key", max_retries=0) as client,
        client.messages.stream(**ARGUMENTS) as stream,
    ):
        made: list[Any] = [event async for event in stream]
        message = made[-1].message
        assert message == await stream.get_final_message()
    assert message.content == [{"type": "text", "text": "a"}]
    assert (message.role, message.usage.output_tokens, message["x"]) == ("assistant", 0, 1)


def test_the_end_of_an_unknown_block_has_a_block_without_members(serve: Serve) -> None:
    with (
        Client(serve(served([START, end(index=3), STOP])), "key", max_retries=0) as client,
        client.messages.stream(**ARGUMENTS) as stream,
    ):
        made: list[Any] = list(stream)
    assert (made[1].type, made[1].content_block.text) == ("content_block_stop", None)
    assert made[2].message.content == []


def any_value(dice: random.Random, depth: int = 0) -> Any:
    kinds = ["none", "flag", "number", "text", "text"] + (["object", "object", "list"] if depth < 3 else [])
    match dice.choice(kinds):
        case "flag":
            return dice.random() < 0.5
        case "number":
            return dice.randint(-2, 3)
        case "text":
            return dice.choice(["", "a", "bc"])
        case "object":
            names = ["a", "b", "name", "index", "id", "type"]
            return {name: any_value(dice, depth + 1) for name in dice.sample(names, dice.randint(0, 3))}
        case "list":
            return [any_value(dice, depth + 1) for _ in range(dice.randint(0, 3))]
    return None


def any_delta(dice: random.Random) -> Any:
    match dice.randint(0, 6):
        case 0:
            return {"type": "text_delta", "text": dice.choice(["a", "b", "", None])}
        case 1:
            return {"type": "thinking_delta", "thinking": dice.choice(["a", ""])}
        case 2:
            tokens = [
                '{"a":',
                "1",
                "}",
                '"x',
                r"\ud800",
                r"\ude00",
                '"',
                "[",
                "]",
                "NaN",
                ",",
                " ",
                "1e999",
                "{}",
            ]
            parts = [dice.choice(tokens) for _ in range(dice.randint(0, 4))]
            return {"type": "input_json_delta", "partial_json": "".join(parts)}
        case 3:
            return {
                "type": "signature_delta",
                "signature": dice.choice(["s", None, ""]),
                "z": any_value(dice),
            }
        case 4:
            return {"type": "citations_delta", "citation": dice.choice([None, {"a": 1}, {"index": 1}])}
        case 5:
            return dice.choice([None, {}, "abc", {"text": "q"}])
    names = ["a", "b", "object", "y", "z", "citations"]
    members = {name: any_value(dice) for name in dice.sample(names, dice.randint(0, 3))}
    return {"type": dice.choice(["future_delta", "_delta", "w"]), **members}


def any_event(dice: random.Random) -> dict[str, Any]:
    index = dice.choice(
        [{}, *({"index": value} for value in (0, 1, 2, -1, None, 7, [1], True, "1", 1.5, "x"))]
    )
    match dice.randint(0, 11):
        case 0 | 1 | 2:
            future = {"type": "future", "a": any_value(dice), "y": any_value(dice), "z": any_value(dice)}
            cited = {"type": "text", "citations": [{"index": 1}]}
            return begin(dice.choice([TEXT, CALL, future, cited, {}, None, "abc"]), **index)
        case 3 | 4:
            return end(**index)
        case 5:
            usage = dice.choice([None, {"output_tokens": 5}, {"output_tokens": None, "input_tokens": 3}])
            delta = dice.choice([None, {}, {"stop_reason": "end_turn"}, {"stop_reason": None}])
            return {"type": "message_delta", "delta": delta, "usage": usage, "x": any_value(dice)}
        case 6:
            whole = {"id": "m", "content": [{"type": "text", "text": "w"}, {"type": "tool_use", "id": "t"}]}
            starts = [{"type": "message_start"}, {"type": "message_start", "message": whole}]
            return dice.choice([{"type": "ping"}, {"type": "future_event", "a": 1}, *starts])
    return piece(any_delta(dice), **index)


def test_the_message_so_far_is_that_of_the_core_whatever_arrives(serve: Serve) -> None:
    def events_of(seed: int) -> list[dict[str, Any]]:
        dice = random.Random(seed)
        starts = [START, {"type": "message_start", "message": {"id": "m", "content": None, "usage": None}}]
        start = [dice.choice(starts)] if dice.random() < 0.8 else []
        return [*start, *(any_event(dice) for _ in range(dice.randint(1, 14))), STOP]

    def answer(connection: Connection) -> None:
        served(events_of(json.loads(connection.body)["max_tokens"]))(connection)

    with Client(serve(answer), "key", max_retries=0) as client:
        for seed in range(1, 301):
            with client.messages.stream(model="m", max_tokens=seed, messages=QUESTION) as stream:
                made: list[Any] = list(stream)
                assert made[-1].message == stream.get_final_message(), seed


# Sizes that would take many minutes if an event cost as much as those before it.

MANY = 200_000


def content_of(message: MessageSoFar) -> list[Any]:
    content = message.document()["content"]
    assert isinstance(content, list)
    return content


def test_many_blocks_cost_as_much_as_their_events() -> None:
    message = MessageSoFar()
    for number in range(MANY):
        message.begin_block({"content_block": {"type": "text", "text": str(number)}})
        message.block({}).add({"type": "text_delta", "text": "!"})
        message.end_block({"index": -1})
    for _ in range(MANY):
        message.end()
    assert [block["text"] for block in content_of(message)] == [f"{number}!" for number in range(MANY)]


def test_blocks_in_descending_order_cost_as_much_as_their_events() -> None:
    message = MessageSoFar()
    for index in range(MANY, 0, -1):
        message.begin_block({"index": index, "content_block": {"type": "text", "text": str(index)}})
        message.end_block({"index": index - 1})
    assert [block["text"] for block in content_of(message)] == [str(index) for index in range(1, MANY + 1)]


def test_what_grows_within_a_block_costs_as_much_as_its_pieces() -> None:
    message = MessageSoFar()
    message.begin_block(
        {"content_block": {"type": "future", "list": [], "known": {}, "in": {"text": "", "list": []}}}
    )
    for number in range(MANY):
        members = {"list": [number], "known": {str(number): 1}, "in": {"text": "x" * 50, "list": [number]}}
        message.block({}).add({"type": "future_delta", **members})
        message.block({}).add({"type": "citations_delta", "citation": {"index": number}})
    (block,) = content_of(message)
    assert block["list"] == block["in"]["list"] == list(range(MANY))
    assert len(block["known"]) == len(block["citations"]) == MANY
    assert block["in"]["text"] == "x" * 50 * MANY
