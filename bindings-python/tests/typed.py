# pyright: reportUnnecessaryTypeIgnoreComment=true
"""What type checkers must accept and reject; checked by mypy and pyright, never run.

Lines with `type: ignore` must be rejected: both checkers report such a comment that hides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pydantic
from gatewright import AsyncClient, Client, ParsedChatCompletion, ParsedResponse, ToolRun, types
from typing_extensions import TypedDict, assert_type


class City(pydantic.BaseModel):
    """A model of pydantic."""

    name: str


@dataclass
class Town:
    """A dataclass."""

    name: str


class Place(TypedDict):
    """A dict with known members."""

    name: str


MESSAGES: list[types.ChatMessageParam] = [{"role": "user", "content": "A city of Norway."}]
TURNS: list[types.MessageTurnParam] = [{"role": "user", "content": "A city of Norway."}]


def formats_of_plain_calls(client: Client, schema: types.ChatResponseFormatParam) -> None:
    """`create` also takes a class as the format. Its result is plain."""
    create = client.chat.completions.create
    whole = create(model="m", messages=MESSAGES, response_format=City)
    assert_type(whole, types.ChatCompletion)
    create(model="m", messages=MESSAGES, response_format=Town)
    create(model="m", messages=MESSAGES, response_format=Place)
    create(model="m", messages=MESSAGES, response_format=list[City])
    create(model="m", messages=MESSAGES, response_format=schema)
    create(model="m", messages=MESSAGES, response_format={"type": "json_object"})
    create(model="m", messages=MESSAGES, response_format=None)
    for chunk in create(model="m", messages=MESSAGES, response_format=City, stream=True):
        assert_type(chunk, types.ChatCompletionChunk)
    create(model="m", messages=MESSAGES, response_format=3)  # type: ignore[call-overload]
    create(model="m", messages=MESSAGES, response_format="City")  # type: ignore[call-overload]
    create(model="m", messages=MESSAGES, response_format=City(name="Oslo"))  # type: ignore[call-overload]


def formats_of_plain_responses(client: Client) -> None:
    """So does `text.format`."""
    response = client.responses.create(model="m", input="x", text={"format": City, "verbosity": "low"})
    assert_type(response, types.Response)
    client.responses.create(model="m", input="x", text={"format": Place})
    client.responses.create(model="m", input="x", text={"format": {"type": "text"}})
    client.responses.create(model="m", input="x", text={"format": 3})  # type: ignore[call-overload]


async def formats_of_plain_calls_async(client: AsyncClient) -> None:
    """The same to await."""
    create = client.chat.completions.create
    whole = await create(model="m", messages=MESSAGES, response_format=City)
    assert_type(whole, types.ChatCompletion)
    await create(model="m", messages=MESSAGES, response_format=3)  # type: ignore[call-overload]
    await client.responses.create(model="m", input="x", text={"format": Town})


def values(client: Client) -> None:
    """A value has the requested type."""
    chat = client.chat.completions.parse(model="m", messages=MESSAGES, response_format=City, seed=1)
    assert_type(chat, ParsedChatCompletion[City])
    assert_type(chat.choices[0].message.parsed, City | None)
    response = client.responses.parse(model="m", input="x", text_format=Town, text={"verbosity": "low"})
    assert_type(response, ParsedResponse[Town])
    message = client.messages.parse(model="m", max_tokens=9, messages=TURNS, output_format=City)
    assert_type(message.parsed_output, City | None)
    content = client.native.parse("m", contents=[], response_schema=City, cachedContent=None)
    assert_type(content.parsed, City | None)
    client.chat.completions.parse(model="m", messages=MESSAGES, response_format=3)  # type: ignore[call-overload]
    client.chat.completions.parse(model="m", messages=MESSAGES, response_format=City, sead=1)  # type: ignore[call-overload]
    client.chat.completions.parse(model="m", messages=MESSAGES, response_format=City, stream=True)  # type: ignore[call-overload]
    client.chat.completions.parse(model="m", messages=MESSAGES, response_format=City, seed="1")  # type: ignore[call-overload]


def so_far(client: Client) -> None:
    """Events tell the answer so far; some kinds have additional members."""
    with client.chat.completions.stream(model="m", messages=MESSAGES, response_format=City) as chunks:
        assert_type(chunks.get_final_completion(), ParsedChatCompletion[City])
    with client.responses.stream(model="m", input="x", top_p=1) as events:
        for event in events:
            if event.type == "response.output_text.delta":
                assert_type(event.snapshot, str)
            elif event.type == "response.completed":
                assert_type(event, types.ResponseCompletedEvent)
                event.snapshot  # type: ignore[attr-defined]  # noqa: B018
            elif event.type == "response.function_call_arguments.delta":
                assert_type(event.snapshot, str)
    with client.messages.stream(model="m", max_tokens=1, messages=TURNS, top_k=1) as written:
        for piece in written:
            if piece.type == "text":
                assert_type(piece.snapshot, str)
            elif piece.type == "content_block_stop":
                assert_type(piece.content_block, types.MessageBlock)
            elif piece.type == "message_stop":
                assert_type(piece.message, types.Message)
            elif piece.type == "message_start":
                assert_type(piece, types.MessageStartEvent)
        assert_type(written.current_message_snapshot, types.Message | None)
    client.messages.stream(model="m", messages=TURNS)  # type: ignore[call-arg]


def tools(client: Client, weather: Callable[[str], str]) -> None:
    """Tools are functions; the other arguments are those of `create`."""
    run = client.chat.completions.run_tools(
        model="m", messages=MESSAGES, tools=[weather], response_format=City, seed=1
    )
    assert_type(run, ToolRun[types.ChatCompletion])
    client.responses.run_tools(model="m", input="x", tools=[weather], text={"format": City})
    client.responses.run_tools(model="m", input="x", tools=[{"type": "function"}])  # type: ignore[list-item]


async def pages(client: AsyncClient) -> None:
    """Pages go on with the next ones, and take the arguments of the operation."""
    items = await client.responses.input_items.list("r", limit=1, order="asc")
    async for item in items:
        assert_type(item, types.ResponseItem)
    async for model in await client.native.models.list(pageSize=1):
        assert_type(model, types.NativeModel)
    await client.responses.input_items.list("r", limits=1)  # type: ignore[call-arg]
