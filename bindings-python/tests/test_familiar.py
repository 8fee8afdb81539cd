"""What users of other clients try: their options, their names, and what a mistake is answered with."""

from __future__ import annotations

import copy
import functools
import inspect
import json
import math
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import gatewright
import pydantic
import pytest
from conftest import VECTORS, Connection, Gateway
from gatewright import AsyncClient, Client, _files, _missing, _mistakes
from test_options import described

Serve = Callable[[Callable[[Connection], None]], str]

QUESTION: Any = [{"role": "user", "content": "Say hello."}]


# Misspelled arguments.


def test_a_misspelled_argument_names_the_method_and_a_suggestion(client: Client) -> None:
    calls: dict[str, Callable[[], object]] = {
        r"chat\.completions\.create\(\) has no argument 'temprature'; did you mean 'temperature'\?": (
            lambda: client.chat.completions.create(model="m", messages=QUESTION, temprature=1)  # type: ignore[call-overload]
        ),
        r"chat\.completions\.parse\(\) has no argument 'max_token'; did you mean 'max_tokens'\?": (
            lambda: client.chat.completions.parse(  # type: ignore[call-overload]
                model="m", messages=QUESTION, response_format={}, max_token=1
            )
        ),
        r"responses\.create\(\) has no argument 'instuctions'; did you mean 'instructions'\?": (
            lambda: client.responses.create(model="m", input="x", stream=True, instuctions="x")  # type: ignore[call-overload]
        ),
        r"chat\.completions\.stream\(\) has no argument 'temprature'; did you mean 'temperature'\?": (
            lambda: client.chat.completions.stream(model="m", messages=QUESTION, temprature=1).__enter__()  # type: ignore[call-overload]
        ),
        r"messages\.stream\(\) has no argument 'systm'; did you mean 'system'\?": (
            lambda: client.messages.stream(model="m", max_tokens=1, messages=[], systm="x").__enter__()  # type: ignore[call-arg]
        ),
        r"models\.list\(\) has no argument 'zzz'$": lambda: client.models.list(zzz=1),  # type: ignore[call-arg]
        r"images\.save\(\) has no argument 'overwite'; did you mean 'overwrite'\?": (
            lambda: client.images.save({}, "x", overwite=True)  # type: ignore[call-arg]
        ),
        r"videos\.generations\.wait\(\) has no argument 'intervall'; did you mean 'interval'\?": (
            lambda: client.videos.generations.wait("x", intervall=1)  # type: ignore[call-arg]
        ),
        r"^Client\(\) has no argument 'timout'; did you mean 'timeout'\?": (
            lambda: Client(timout=1)  # type: ignore[call-arg]
        ),
    }
    for message, call in calls.items():
        with pytest.raises(TypeError, match=message):
            call()


async def test_a_misspelled_argument_of_an_async_call_is_named(gateway: Gateway) -> None:
    async with AsyncClient(gateway.base_url, gateway.key) as client:
        with pytest.raises(TypeError, match=r"chat\.completions\.create\(\) has no argument 'sed'"):
            await client.chat.completions.create(model="m", messages=QUESTION, sed=1)  # type: ignore[call-overload]


def test_other_type_errors_stay_what_they_are(client: Client) -> None:
    with pytest.raises(TypeError, match=r"messages\[0\]: object has no JSON form"):
        client.chat.completions.create(model="m", messages=[object()])  # type: ignore[list-item]

    def key() -> str:
        raise TypeError("mine")

    with Client(client.base_url, key) as own, pytest.raises(TypeError, match=r"^mine$"):
        own.models.list()


def test_the_options_of_calls_are_known() -> None:
    assert list(_mistakes.CALL_OPTIONS) == list(described("call"))
    assert list(_files.SAVE_OPTIONS) == list(described("save"))


# What there is not.


def _is_missing(client: object, path: str, sentence: str) -> None:
    """Checks that reading a path fails with this sentence, as an attribute that isn't there."""
    *owners, name = path.split(".")[1:]
    owner = functools.reduce(getattr, owners, client)
    assert not hasattr(owner, name)
    assert getattr(owner, name, None) is None
    with pytest.raises(gatewright.GatewrightError) as raised:
        getattr(owner, name)
    assert isinstance(raised.value, AttributeError)
    assert str(raised.value) == f"{path}: {sentence}"


def test_what_other_clients_have_is_answered_with_the_sentence_of_the_vectors() -> None:
    cases = json.loads((VECTORS / "surface" / "missing.json").read_text())["cases"]
    clients = [Client("http://127.0.0.1:9", "key"), AsyncClient("http://127.0.0.1:9", "key")]
    for case in cases:
        message = case["message"]
        sentence = message if isinstance(message, str) else message["python"]
        for client in clients:
            _is_missing(client, case["python"], sentence)
    listed = {case["python"] for case in cases}
    for table in (_missing.MISSING, _missing.ELSEWHERE):
        assert {f"{place}.{name}" for place, names in table.items() for name in names} <= listed


def test_a_path_of_another_client_names_the_one_here(client: Client) -> None:
    with pytest.raises(AttributeError, match=r"^client\.beta: .* is client\.chat\.completions\.parse"):
        client.beta.chat.completions.parse  # type: ignore[attr-defined]  # noqa: B018


def test_a_misspelled_attribute_gets_a_suggestion(client: Client) -> None:
    with pytest.raises(AttributeError, match=r"Client has no attribute 'respones'; did you mean 'responses'"):
        _ = client.respones  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"^client\.messages has no attribute 'creat'; did you mean 'cr"):
        _ = client.messages.creat  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"^client\.videos has no attribute 'zzz'$"):
        _ = client.videos.zzz  # type: ignore[attr-defined]


@pytest.mark.parametrize("owner", ["client", "client.chat", "client.images", "client.embeddings"])
def test_what_looks_at_a_client_or_a_resource_finds_what_it_found_without_the_sentences(
    client: Client, owner: str
) -> None:
    looked_at: Any = functools.reduce(getattr, owner.split(".")[1:], client)
    assert not hasattr(looked_at, "__anything__")
    assert not hasattr(looked_at, "_repr_html_")
    assert not {"evals", "edit", "with_raw_response"} & set(dir(looked_at))
    assert dict(inspect.getmembers(looked_at))["__class__"] is type(looked_at)
    assert type(copy.copy(looked_at)) is type(copy.deepcopy(looked_at)) is type(looked_at)
    # An object that was made without its client, as by pickle.
    blank = object.__new__(type(looked_at))
    assert getattr(blank, "_client", "none") == "none"
    if owner != "client":
        assert copy.copy(looked_at)._client is client
    copy.copy(client).models.list()
    pickle.dumps(client)


# Timeouts.


class Timeout(NamedTuple):
    """Like `httpx.Timeout`."""

    connect: float | None
    read: float | None
    write: float | None
    pool: float | None


def test_a_timeout_of_httpx_sets_the_limits_that_mean_the_same() -> None:
    limits = Timeout(connect=5, read=0.3, write=5, pool=None)
    assert _mistakes.with_timeouts({"timeout": limits}, of_call=False) == {
        "timeout": math.inf,
        "first_byte_timeout": 0.3,
        "idle_timeout": 0.3,
        "connect_timeout": 5,
        "pool_timeout": math.inf,
    }


@pytest.mark.parametrize("place", ["client", "call", "with_options"])
def test_a_timeout_of_httpx_is_accepted(serve: Serve, place: str) -> None:
    limits: Any = Timeout(connect=5, read=0.3, write=5, pool=5)
    base_url = serve(lambda _: time.sleep(3))
    client = Client(base_url, "key", max_retries=0, timeout=limits if place == "client" else None)
    if place == "with_options":
        client = client.with_options(timeout=limits)
    started = time.monotonic()
    with pytest.raises(gatewright.APITimeoutError, match="first_byte_timeout"):
        client.models.list(**({"timeout": limits} if place == "call" else {}))
    assert time.monotonic() - started < 2


# JSON.


class Model(pydantic.BaseModel):
    a: int


@dataclass
class Data:
    inner: Any


def test_records_become_json_by_a_default(client: Client) -> None:
    record = gatewright.Record({"a": [1, {"b": None}]})
    value = {"record": record, "data": Data(record), "model": Model(a=1)}
    text = json.dumps(value, default=gatewright.to_jsonable)
    assert json.loads(text) == {"record": record, "data": {"inner": record}, "model": {"a": 1}}
    completion = client.chat.completions.parse(
        model="model-sol", messages=QUESTION, response_format={"type": "object", "properties": {}}
    )
    assert json.loads(json.dumps(completion, default=gatewright.to_jsonable)) == completion
    with pytest.raises(TypeError, match="object has no JSON form"):
        json.dumps(object(), default=gatewright.to_jsonable)


def test_records_are_dumped_like_models() -> None:
    record = gatewright.Record({"a": None, "b": [{"c": None, "ø": 1}]})
    assert record.model_dump() == record.model_dump(mode="json", exclude_unset=True) == record.to_dict()
    assert record.model_dump(exclude_none=True) == {"b": [{"ø": 1}]}
    assert record.model_dump_json() == record.to_json()
    assert (
        record.model_dump_json(indent=2, exclude_none=True)
        == '{\n  "b": [\n    {\n      "ø": 1\n    }\n  ]\n}'
    )
    with pytest.raises(TypeError, match=r"model_dump\(\) has no argument 'include'"):
        record.model_dump(include={"a"})  # type: ignore[call-arg]
