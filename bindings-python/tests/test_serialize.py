"""Request bodies: Python values to JSON, and errors with the path to the invalid value."""

from __future__ import annotations

import enum
import json
import math
from collections import OrderedDict, deque
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import gatewright
import pytest
from conftest import Connection
from gatewright import NOT_GIVEN, Record


@pytest.fixture
def sent(serve: Callable[[Callable[[Connection], None]], str]) -> Callable[..., Any]:
    """Calls create with these arguments and returns the body that arrived."""
    bodies: list[bytes] = []

    def answer(connection: Connection) -> None:
        bodies.append(connection.body)
        connection.answer(b"{}")

    base_url = serve(answer)

    def send(**arguments: Any) -> Any:
        with gatewright.Client(base_url, "key", max_retries=0) as client:
            client.chat.completions.create(**{"model": "m", "messages": [], **arguments})
        return json.loads(bodies.pop())

    return send


class Colour(enum.IntEnum):
    RED = 7


class Thing:
    def __repr__(self) -> str:
        # Without an address: the name of a test is the same in each process that runs some of them.
        return "Thing()"


class Word(str, enum.Enum):
    HELLO = "hello"


@pytest.mark.parametrize(
    ("value", "arrives"),
    [
        ("", ""),
        ('é\u2028"\\\n\x00😀', 'é\u2028"\\\n\x00😀'),
        (0, 0),
        (-(2**63), -(2**63)),
        (2**64, 2**64),
        (10**40, 10**40),
        (1.5, 1.5),
        (-0.0, 0),
        (1e300, 1e300),
        (True, True),
        (None, None),
        ([], []),
        ({}, {}),
        ((1, [2, (3,)]), [1, [2, [3]]]),
        (deque([1, 2]), [1, 2]),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (Record({"a": [1, {"b": None}]}), {"a": [1, {"b": None}]}),
        ([Record({"a": 1})], [{"a": 1}]),
        (Colour.RED, 7),
        (Word.HELLO, "hello"),
    ],
    ids=repr,
)
def test_values_arrive_unchanged(sent: Callable[..., Any], value: Any, arrives: Any) -> None:
    assert sent(metadata=value)["metadata"] == arrives


def test_omitted_arguments_are_not_sent_and_none_is_null(sent: Callable[..., Any]) -> None:
    assert sent(temperature=None, stop=NOT_GIVEN) == {"model": "m", "messages": [], "temperature": None}


def test_extra_body_adds_and_overrides(sent: Callable[..., Any]) -> None:
    body = sent(temperature=1, extra_body={"temperature": 0, "unknown": [1]})
    assert body == {"model": "m", "messages": [], "temperature": 0, "unknown": [1]}


def test_integers_beside_a_replaced_member_keep_their_digits(sent: Callable[..., Any]) -> None:
    body = sent(temperature=1, metadata={"n": 2**70}, extra_body={"temperature": 0})
    assert (body["temperature"], repr(body["metadata"]["n"])) == (0, repr(2**70))


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 2**70])
def test_extra_body_refuses_integers_that_would_become_floats(sent: Callable[..., Any], number: int) -> None:
    with pytest.raises(ValueError, match=rf"extra_body cannot be sent: seed has the integer {number},"):
        sent(extra_body={"seed": [number]})


@pytest.mark.parametrize("number", [2**64 - 1, -(2**63), 1e30])
def test_extra_body_sends_other_numbers_exactly(sent: Callable[..., Any], number: float) -> None:
    assert repr(sent(extra_body={"seed": number})["seed"]) == repr(number)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (math.nan, ValueError, r"messages\[0\]\.content: JSON cannot represent NaN"),
        (-math.inf, ValueError, r"messages\[0\]\.content: JSON cannot represent -inf"),
        (b"x", TypeError, r"messages\[0\]\.content: bytes has no JSON form; encode it as text"),
        (
            {1: 2},
            TypeError,
            r"messages\[0\]\.content: the names of a JSON object must be of type str, not int",
        ),
        ([1, {2}], TypeError, r"messages\[0\]\.content\[1\]: set has no JSON form"),
        (Thing(), TypeError, r"messages\[0\]\.content: Thing has no JSON form"),
        ("a\ud800", ValueError, r"messages\[0\]\.content: the text contains a lone surrogate"),
        (NOT_GIVEN, TypeError, r"messages\[0\]\.content: NOT_GIVEN can only replace a whole argument"),
    ],
    ids=repr,
)
def test_values_json_cannot_represent_are_rejected_with_their_path(
    sent: Callable[..., Any], value: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        sent(messages=[{"role": "user", "content": value}])


def test_a_list_containing_itself_is_rejected(sent: Callable[..., Any]) -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="nested deeper than 200 levels"):
        sent(messages=loop)
