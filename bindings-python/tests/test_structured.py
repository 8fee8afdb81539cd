"""Structured output: what is sent for a type, and what becomes of the answer."""

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gatewright
import pydantic
import pytest
from conftest import VECTORS, Connection, Gateway
from gatewright import AsyncClient, Client, _structured
from typing_extensions import TypedDict

Serve = Callable[[Callable[[Connection], None]], str]

QUESTION: Any = [{"role": "user", "content": "A city of Norway, and how many live there."}]


class District(pydantic.BaseModel):
    name: str


class City(pydantic.BaseModel):
    name: str
    population: int
    districts: list[District]


@dataclass
class Place:
    name: str
    population: int


class Named(TypedDict):
    name: str


def cases(name: str) -> list[Any]:
    document = json.loads((VECTORS / "structured" / f"{name}.json").read_text())
    return [pytest.param(case, id=case["name"]) for case in document["cases"]]


class Answering:
    """Answers every request with one document, and keeps the bodies of the requests."""

    def __init__(self, document: Any) -> None:
        self.bodies: list[Any] = []
        self._answer = json.dumps(document).encode()

    def __call__(self, connection: Connection) -> None:
        self.bodies.append(json.loads(connection.body))
        connection.answer(self._answer)


@pytest.mark.parametrize("case", cases("schemas"))
def test_schemas_become_strict(case: Any) -> None:
    before = json.dumps(case["schema"])
    if case.get("refused"):
        with pytest.raises(ValueError, match="schema"):
            _structured.strict_schema(case["schema"])
    else:
        assert _structured.strict_schema(case["schema"]) == case["strict"]
    assert json.dumps(case["schema"]) == before


@pytest.mark.parametrize("case", cases("names"))
def test_formats_are_named_after_their_type(case: Any) -> None:
    assert _structured.format_name(case["type"] or "") == case["format"]


def test_a_schema_that_grows_with_each_reference_is_refused() -> None:
    levels = {
        f"L{n}": {
            "type": "object",
            "properties": {
                side: {"$ref": f"#/$defs/L{n + 1}", "description": side} for side in ("left", "right")
            },
        }
        for n in range(40)
    }
    levels["L40"] = {"type": "object", "properties": {}}
    with pytest.raises(ValueError, match="10000 parts"):
        _structured.strict_schema({"$ref": "#/$defs/L0", "$defs": levels})


# Of each operation: its method, and where the answer has its value.
PARSING: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "create_chat_completion": ("chat.completions", lambda answer: answer.choices[0].message.parsed),
    "create_response": ("responses", lambda answer: answer.output_parsed),
    "create_message": ("messages", lambda answer: answer.parsed_output),
    "generate_content": ("native", lambda answer: answer.parsed),
}


def parse(client: Any, operation: str) -> Any:
    """What the `parse` of either client returns."""
    if operation == "create_chat_completion":
        return client.chat.completions.parse(model="m", messages=QUESTION, response_format=City)
    if operation == "create_response":
        return client.responses.parse(model="m", input="x", text_format=City)
    if operation == "create_message":
        return client.messages.parse(model="m", max_tokens=9, messages=QUESTION, output_format=City)
    return client.native.parse("m", contents=[{"parts": [{"text": "x"}]}], response_schema=City)


def check(case: Any, ask: Callable[[], Any]) -> None:
    place, value = PARSING[case["operation"]]
    if "error" not in case:
        answer = ask()
        parsed = value(answer)
        assert (parsed and parsed.model_dump()) == case["parsed"]
        assert parsed is None or isinstance(parsed, City)
        if "refusal" in case:
            refused = answer.choices[0].message if place == "chat.completions" else answer
            assert refused.refusal == case["refusal"]
        assert answer == case["answer"]
        return
    with pytest.raises(gatewright.StructuredOutputError) as caught:
        ask()
    error, expected = caught.value, case["error"]
    assert isinstance(error, gatewright.GatewrightError)
    assert error.answer == error.completion == case["answer"]
    assert str(error).startswith(f"{place}.parse: ")
    assert error.code == expected["code"]
    # A language may find the place within the value.
    assert (error.param is None) == ("path" not in expected)
    assert (error.param or "").startswith(expected.get("path", ""))
    if "path" in expected:
        assert f": {expected['path']}" in error.message
    if "reason" in expected:
        assert f"(reason: {expected['reason']})" in error.message
    assert expected.get("shows", "") in error.message
    assert "hides" not in expected or expected["hides"] not in error.message
    assert error.response is not None
    assert error.response.status_code == 200
    assert pickle.loads(pickle.dumps(error)).answer == case["answer"]


@pytest.mark.parametrize("case", cases("answers"))
def test_answers_become_values(serve: Serve, case: Any) -> None:
    with Client(serve(Answering(case["answer"])), "key", max_retries=0) as client:
        check(case, lambda: parse(client, case["operation"]))


@pytest.mark.parametrize("case", cases("answers"))
def test_answers_become_values_async(serve: Serve, case: Any) -> None:
    base_url = serve(Answering(case["answer"]))

    async def ask() -> Any:
        async with AsyncClient(base_url, "key", max_retries=0) as client:
            return await parse(client, case["operation"])

    check(case, lambda: asyncio.run(ask()))


def test_types_of_every_kind_are_answered_by_a_gateway(client: Client) -> None:
    chat = client.chat.completions

    def ask(kind: Any) -> Any:
        completion = chat.parse(model="model-sol", messages=QUESTION, response_format=kind)
        return completion.choices[0].message.parsed

    assert isinstance(ask(City), City)
    assert isinstance(ask(Place), Place)
    assert list(ask(Named)) == ["name"]
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    assert list(ask(schema)) == ["name"]
    wire = {"type": "json_schema", "json_schema": {"name": "city", "schema": schema}}
    assert isinstance(ask(wire), dict)
    response = client.responses.parse(model="model-sol", input="A city.", text_format=Place)
    assert isinstance(response.output_parsed, Place)


async def test_types_are_answered_by_a_gateway_async(gateway: Gateway) -> None:
    async with AsyncClient(gateway.base_url, gateway.key) as client:
        response = await client.responses.parse(model="model-sol", input="A city.", text_format=City)
        assert isinstance(response.output_parsed, City)


def test_a_class_may_be_the_format_of_a_plain_call(serve: Serve) -> None:
    document = json.loads((VECTORS / "structured" / "answers.json").read_text())["cases"][0]["answer"]
    answering = Answering(document)
    with Client(serve(answering), "key", max_retries=0) as client:
        plain = client.chat.completions.create(model="m", messages=QUESTION, response_format=Place)
        client.chat.completions.parse(model="m", messages=QUESTION, response_format=Place)
        client.responses.create(model="m", input="x", text={"format": Place, "verbosity": "low"})
        client.responses.parse(model="m", input="x", text_format=Place, text={"verbosity": "low"})
        client.chat.completions.create(model="m", messages=QUESTION, response_format=list[Place])
        client.responses.create(model="m", input="x", text={"format": list[Place]})
    assert json.loads(plain.choices[0].message.content or "")["name"] == "Oslo"
    first, second, third, fourth, fifth, sixth = answering.bodies
    assert first == second
    assert first["response_format"]["json_schema"]["name"] == "Place"
    assert first["response_format"]["json_schema"]["strict"] is True
    assert first["response_format"]["json_schema"]["schema"]["required"] == ["name", "population"]
    assert third["text"] == fourth["text"]
    assert third["text"]["format"] == {"type": "json_schema", **first["response_format"]["json_schema"]}
    assert fifth["response_format"]["json_schema"]["schema"]["type"] == "array"
    assert sixth["text"]["format"] == {"type": "json_schema", **fifth["response_format"]["json_schema"]}


def test_messages_and_native_take_the_format_beside_other_members(serve: Serve, client: Client) -> None:
    value = {"type": "object", "properties": {"name": {"type": "string"}}}
    strict = {**value, "required": ["name"], "additionalProperties": False}
    answers = [
        {"content": [{"type": "text", "text": '{"name": "a"}'}], "stop_reason": "end_turn"},
        {"candidates": [{"content": {"parts": [{"text": '{"name": "b"}'}]}}]},
    ]
    bodies = []
    for answer, ask in zip(
        answers,
        (
            lambda own: (
                own.messages.parse(
                    model="m", max_tokens=9, messages=[], output_format=value, output_config={"effort": "low"}
                ).parsed_output
            ),
            lambda own: (
                own.native.parse(
                    "m", contents=[], response_schema=value, generationConfig={"temperature": 1}
                ).parsed
            ),
        ),
        strict=True,
    ):
        answering = Answering(answer)
        with Client(serve(answering), "key", max_retries=0) as own:
            assert ask(own)["name"] in "ab"
        bodies += answering.bodies
    wanted = {"type": "json_schema", "schema": strict}
    assert bodies[0]["output_config"] == {"effort": "low", "format": wanted}
    assert bodies[1]["generationConfig"] == {
        "temperature": 1,
        "responseMimeType": "application/json",
        "responseJsonSchema": strict,
    }
    with pytest.raises(ValueError, match=r"native\.parse\(\) takes a type or a JSON Schema"):
        client.native.parse("m", contents=[], response_schema={"type": "json_object"})
    with pytest.raises(TypeError, match=r"messages\.parse\(\) has no argument 'max_token'; did you mean"):
        client.messages.parse(  # type: ignore[call-overload]
            model="m", max_tokens=1, messages=[], output_format=value, max_token=1
        )


def test_an_answer_goes_back_into_the_conversation(serve: Serve) -> None:
    document = json.loads((VECTORS / "structured" / "answers.json").read_text())["cases"][0]["answer"]
    answering = Answering(document)
    with Client(serve(answering), "key", max_retries=0) as client:
        completion = client.chat.completions.parse(model="m", messages=QUESTION, response_format=City)
        message = completion.choices[0].message
        client.chat.completions.create(model="m", messages=[*QUESTION, message])
    assert answering.bodies[1]["messages"][1] == document["choices"][0]["message"]
    assert message["content"] == message.content
    assert "parsed" not in message
    assert pickle.loads(pickle.dumps(message)).parsed == message.parsed
    assert gatewright.response_of(completion) is not None


def test_an_optional_member_is_required_and_may_be_null() -> None:
    class Town(pydantic.BaseModel):
        mayor: str | None = None

    schema = _structured.format_of(Town).schema
    assert schema is not None
    assert schema["required"] == ["mayor"]
    assert "default" not in schema["properties"]["mayor"]


def test_a_stream_is_not_parsed(client: Client) -> None:
    with pytest.raises(TypeError, match=r"use chat\.completions\.stream\(\)"):
        client.chat.completions.parse(  # type: ignore[call-overload]
            model="m", messages=QUESTION, response_format=City, stream=True
        )


def test_what_is_no_type_is_refused(client: Client) -> None:
    with pytest.raises(TypeError, match="no type and no JSON Schema"):
        client.chat.completions.parse(model="m", messages=QUESTION, response_format=["x"])  # type: ignore[call-overload]
    with pytest.raises(gatewright.ConfigurationError, match=r"Client has no JSON Schema|cannot read Client"):
        client.chat.completions.parse(model="m", messages=QUESTION, response_format=Client)


def test_without_pydantic_the_error_says_what_to_install() -> None:
    program = """
import sys
sys.modules["pydantic"] = None
import gatewright
client = gatewright.Client("http://127.0.0.1:9", "key")
try:
    client.chat.completions.parse(model="m", messages=[], response_format=gatewright.Client)
except gatewright.ConfigurationError as error:
    print(error)
"""
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert "Client needs pydantic 2: pip install pydantic" in output


def test_importing_the_package_imports_neither_pydantic_nor_the_helpers() -> None:
    program = (
        "import sys, gatewright; print([m for m in sys.modules if 'pydantic' in m or '_structured' in m])"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert output.strip() == "[]"
