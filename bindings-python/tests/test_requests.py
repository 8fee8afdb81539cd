"""The rules for requests, at the gateway and before sending."""

from __future__ import annotations

from typing import Any

import gatewright
import pytest
from conftest import Gateway
from gatewright import Client
from gatewright.types import ChatMessageParam

HELLO: list[ChatMessageParam] = [{"role": "user", "content": "hello", "name": None, "tool_calls": None}]


@pytest.mark.parametrize("validate", [False, True])
def test_null_for_an_optional_member_means_absent(gateway: Gateway, validate: bool) -> None:
    # 2.1, 2.4, 2.5, 2.8 and gaps.md.
    client = Client(gateway.base_url, gateway.key, validate=validate)
    completion = client.chat.completions.create(
        model="model-sol", messages=HELLO, tools=None, tool_choice=None, response_format=None, user=None
    )
    assert completion.choices[0].message.content
    response = client.responses.create(
        model="model-sol", input="hello", tools=None, tool_choice=None, text=None
    )
    assert response.output_text
    content = client.native.generate_content(
        model="model-sol",
        contents=[{"role": None, "parts": [{"text": "hello", "thought": None}]}],
        tools=None,
        generationConfig={"temperature": None, "stopSequences": None},
    )
    assert content.candidates[0].content.parts[0].text
    images = client.images.generate(
        model="image_model_2",
        prompt="a kite",
        size="256x256",
        n=None,
        quality=None,
        style=None,
        response_format=None,
    )
    assert images.data[0].url


def test_at_most_100_violations_are_listed(gateway: Gateway) -> None:
    # 7 rule 4: limiting the contents of a rejection is ours.
    wrong: dict[str, Any] = {"messages": [0] * 20_000}
    checked = Client(gateway.base_url, gateway.key, validate=True)
    with pytest.raises(gatewright.InvalidRequestError) as before:
        checked.chat.completions.create(model="model-sol", messages=HELLO, extra_body=wrong)
    assert len(before.value.violations) == 100
    client = Client(gateway.base_url, gateway.key)
    with pytest.raises(gatewright.BadRequestError) as after:
        client.chat.completions.create(model="model-sol", messages=HELLO, extra_body=wrong)
    assert len(after.value.body["error"]["violations"]) == 100
    for error in (before.value, after.value):
        assert "at least 101 rules are broken" in str(error)
        assert len(str(error)) < 4_000


def test_a_model_of_another_endpoint_is_rejected_before_sending_as_by_the_gateway(gateway: Gateway) -> None:
    # 4 rule 1.
    checked = Client(gateway.base_url, gateway.key, validate=True)
    with pytest.raises(gatewright.InvalidRequestError, match="use POST /v1/chat/completions") as before:
        checked.responses.create(model="model-breeze", input="hello")
    assert before.value.attempts == 0
    assert [(one["pointer"], one["rule"]) for one in before.value.violations] == [("/model", "unsupported")]
    with pytest.raises(gatewright.BadRequestError, match="use POST /v1/chat/completions") as after:
        Client(gateway.base_url, gateway.key).responses.create(model="model-breeze", input="hello")
    assert (after.value.code, after.value.param) == ("invalid_value", "model")


def test_an_internal_webhook_is_rejected_before_sending() -> None:
    # 2.6, 6.
    client = Client("https://gateway.example", "key", validate=True, max_retries=0)
    with pytest.raises(gatewright.InvalidRequestError, match="not public") as caught:
        client.videos.generations.create(model="video_model_1", prompt="x", webhook_url="https://10.0.0.1/")
    assert caught.value.violations[0]["section"] == "ours"
