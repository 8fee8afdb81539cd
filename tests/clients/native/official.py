"""The official Python SDK of the native protocol, as its users write it, against a gateway (4, 2.5)."""

import json
import os
from collections.abc import Callable
from enum import Enum

from google import genai
from google.genai import errors, types
from pydantic import BaseModel

MODEL = "model-breeze"
PIXEL = b"\xff\xfe\xfd\x00"
"""Bytes whose base64 differs between the standard and the URL-safe alphabet: this SDK sends the latter."""


class Gem(Enum):
    RUBY = "ruby"
    EMERALD = "emerald"


class Trip(BaseModel):
    the_city: str
    days: list[int]


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"clear in {city}"


def client(version: str | None = None, key: str | None = None) -> genai.Client:
    options = types.HttpOptions(base_url=os.environ["GATEWRIGHT_BASE_URL"], api_version=version)
    return genai.Client(api_key=key or os.environ["GATEWRIGHT_API_KEY"], http_options=options)


def refused(call: Callable[[], object]) -> errors.APIError:
    try:
        call()
    except errors.APIError as error:
        return error
    raise AssertionError("it was not refused")


def parts_of_a_turn(models: genai.models.Models) -> None:
    picture = types.Part.from_bytes(data=PIXEL, mime_type="image/png")
    answer = models.generate_content(model=MODEL, contents=["Say hello", picture])
    assert answer.text == "hello", answer
    counted = models.count_tokens(model=MODEL, contents=["Say hello", picture])
    assert counted.total_tokens == answer.usage_metadata.prompt_token_count


def what_is_asked_of_the_answer(models: genai.models.Models) -> None:
    def ask(text: str, **config: object) -> types.GenerateContentResponse:
        return models.generate_content(
            model=MODEL, contents=text, config=types.GenerateContentConfig(**config)
        )

    short = ask("Count to 30", max_output_tokens=3)
    assert short.candidates[0].finish_reason is types.FinishReason.MAX_TOKENS
    assert "4" not in ask("Count to 5", stop_sequences=["4"]).text
    trip = ask("Paris", response_mime_type="application/json", response_schema=Trip)
    assert isinstance(trip.parsed, Trip), trip.text
    schema = Trip.model_json_schema()
    trip = ask("Paris", response_mime_type="application/json", response_json_schema=schema)
    assert set(json.loads(trip.text)) == {"the_city", "days"}
    gem = ask("I like emerald.", response_mime_type="text/x.enum", response_schema=Gem)
    assert gem.parsed in list(Gem), gem.text
    assert len(ask("Say hello", candidate_count=2).candidates) == 2


def functions(models: genai.models.Models) -> None:
    mode = types.FunctionCallingConfig(mode="ANY", allowed_function_names=["get_weather"])
    answer = models.generate_content(
        model=MODEL,
        contents="What is the weather in Paris?",
        config=types.GenerateContentConfig(
            tools=[get_weather],
            tool_config=types.ToolConfig(function_calling_config=mode),
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        ),
    )
    (call,) = answer.function_calls
    assert (call.name, call.args) == ("get_weather", {"city": "Paris"})
    result = types.Part.from_function_response(name=call.name, response={"sky": "clear"})
    contents = [
        types.Content(role="user", parts=[types.Part(text="What is the weather in Paris?")]),
        answer.candidates[0].content,
        types.Content(role="user", parts=[result]),
    ]
    assert "clear" in models.generate_content(model=MODEL, contents=contents).text


def streams(models: genai.models.Models) -> None:
    whole = models.generate_content(model=MODEL, contents="Tell me about rivers").text
    chunks = list(models.generate_content_stream(model=MODEL, contents="Tell me about rivers"))
    assert len(chunks) > 10
    assert "".join(chunk.text for chunk in chunks) == whole


def lists(models: genai.models.Models) -> None:
    names = [model.name for model in models.list(config={"page_size": 2})]
    assert f"models/{MODEL}" in names
    assert len(names) == len(set(names)) > 2
    for name in (MODEL, f"models/{MODEL}"):
        assert models.get(model=name).name == f"models/{MODEL}"
        assert models.generate_content(model=name, contents="Say hello").text == "hello"


def errors_in_the_native_form(models: genai.models.Models) -> None:
    missing = refused(lambda: models.get(model="nope"))
    assert (missing.code, missing.status) == (404, "NOT_FOUND")
    elsewhere = refused(lambda: models.generate_content(model="another/model", contents="x"))
    assert (elsewhere.code, elsewhere.status) == (404, "NOT_FOUND")
    unserved = refused(lambda: models.embed_content(model=MODEL, contents="x"))
    assert (unserved.code, unserved.status) == (404, "NOT_FOUND")
    config = types.GenerateContentConfig(stop_sequences=list("abcdef"))
    broken = refused(lambda: models.generate_content(model=MODEL, contents="x", config=config))
    assert (broken.code, broken.status) == (400, "INVALID_ARGUMENT")
    intruder = client(key="wrong")
    stranger = refused(intruder.models.list)
    assert (stranger.code, stranger.status) == (400, "INVALID_ARGUMENT")


for version in (None, "v1", "v1beta"):
    # Retained: it closes its connections when it is collected.
    sdk = client(version)
    for scene in (
        parts_of_a_turn,
        what_is_asked_of_the_answer,
        functions,
        streams,
        lists,
        errors_in_the_native_form,
    ):
        scene(sdk.models)
print("the official Python SDK is served")
