"""Stored responses and custom tools (ours) against the real gateway."""

from __future__ import annotations

import gatewright
import pytest
from conftest import Gateway
from gatewright import Client


def test_a_stored_response_is_retrieved_listed_and_deleted(client: Client) -> None:
    first = client.responses.create(model="model-terra", input="Say apples")
    second = client.responses.create(model="model-terra", input="Say pears", previous_response_id=first.id)
    assert client.responses.retrieve(second.id) == second
    page = client.responses.input_items.list(second.id, order="asc", limit=2)
    assert [item.content[0].text for item in page.data if item.type == "message"] == ["Say apples", "apples"]
    assert page.has_more
    rest = client.responses.input_items.list(second.id, order="asc", after=page.last_id)
    assert [item.role for item in rest if item.type == "message"] == ["user"]
    assert not rest.has_more
    assert client.responses.delete(second.id).to_dict() == {
        "id": second.id,
        "object": "response",
        "deleted": True,
    }
    with pytest.raises(gatewright.NotFoundError) as gone:
        client.responses.retrieve(second.id)
    assert gone.value.param == "response_id"
    with pytest.raises(gatewright.BadRequestError) as unknown:
        client.responses.create(model="model-terra", input="x", previous_response_id=second.id)
    assert unknown.value.code == "previous_response_not_found"


def test_query_parameter_bounds_apply_here_and_at_the_gateway(client: Client) -> None:
    made = client.responses.create(model="model-terra", input="Say apples")
    with pytest.raises(gatewright.BadRequestError) as refused:
        client.responses.input_items.list(made.id, limit=101)
    assert refused.value.param == "limit"
    with pytest.raises(gatewright.InvalidRequestError, match="the maximum is 100"):
        client.responses.input_items.list(made.id, limit=101, validate=True)


def test_a_custom_tool_is_called_with_text(client: Client) -> None:
    prompt = "Call run_code with 'print(42)'."
    completion = client.chat.completions.create(
        model="model-sol",
        messages=[{"role": "user", "content": prompt}],
        tools=[{"type": "custom", "custom": {"name": "run_code"}}],
        tool_choice={"type": "custom", "custom": {"name": "run_code"}},
    )
    calls = completion.choices[0].message.tool_calls
    assert calls is not None
    assert calls[0].type == "custom"
    assert calls[0].custom.to_dict() == {"name": "run_code", "input": "print(42)"}
    with client.responses.create(
        model="model-sol",
        input=prompt,
        tools=[{"type": "custom", "name": "run_code"}],
        tool_choice={
            "type": "allowed_tools",
            "mode": "required",
            "tools": [{"type": "custom", "name": "run_code"}],
        },
        stream=True,
    ) as events:
        pieces = [event.delta for event in events if event.type == "response.custom_tool_call_input.delta"]
        item = events.get_final_response().output[0]
    assert item.type == "custom_tool_call"
    assert "".join(pieces) == item.input == "print(42)"


def test_a_result_without_its_call_is_rejected_before_sending(client: Client) -> None:
    with pytest.raises(gatewright.InvalidRequestError) as refused:
        client.chat.completions.create(
            model="model-sol",
            messages=[{"role": "tool", "tool_call_id": "call_1", "content": "12 degrees"}],
            validate=True,
        )
    assert [violation["pointer"] for violation in refused.value.violations] == ["/messages/0/tool_call_id"]


def test_a_wrong_key_is_reported_as_clients_expect_without_repeating_it(gateway: Gateway) -> None:
    with (
        Client(gateway.base_url, "sk-canary-1") as wrong,
        pytest.raises(gatewright.AuthenticationError, match="Incorrect API key provided") as refused,
    ):
        wrong.models.list()
    assert "canary" not in str(refused.value)
