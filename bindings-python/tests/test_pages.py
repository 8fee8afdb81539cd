"""Pages of lists: iterating over one goes on with the next ones."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import gatewright
import pytest
from conftest import Connection, Gateway
from gatewright import AsyncClient, Client

Serve = Callable[[Callable[[Connection], None]], str]

ITEMS = [{"id": f"item_{n}", "type": "message", "role": "user", "content": []} for n in range(5)]


class Paged:
    """Serves the items in pages of two, and keeps the request lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, connection: Connection) -> None:
        line = connection.head.split("\r\n")[0]
        self.lines.append(line)
        start = int(line.split("after=item_")[1][0]) + 1 if "after=" in line else 0
        data = ITEMS[start : start + 2]
        page = {
            "object": "list",
            "data": data,
            "first_id": data[0]["id"],
            "last_id": data[-1]["id"],
            "has_more": start + 2 < len(ITEMS),
        }
        connection.answer(json.dumps(page).encode())


def test_a_page_goes_on_with_the_next_ones(serve: Serve) -> None:
    paged = Paged()
    with Client(serve(paged), "key") as client:
        page = client.responses.input_items.list("resp_1", limit=2)
        assert len(page.data) == 2
        assert len(paged.lines) == 1
        assert [item["id"] for item in page] == [item["id"] for item in ITEMS]
    assert len(paged.lines) == 3
    assert all("limit=2" in line for line in paged.lines)


def test_only_the_pages_that_are_needed_are_fetched(serve: Serve) -> None:
    paged = Paged()
    with Client(serve(paged), "key") as client:
        for item in client.responses.input_items.list("resp_1", limit=2):
            if item["id"] == "item_2":
                break
    assert len(paged.lines) == 2


def test_a_page_before_an_item_is_not_gone_on_with(serve: Serve) -> None:
    paged = Paged()
    with Client(serve(paged), "key") as client:
        assert len(list(client.responses.input_items.list("resp_1", before="item_4"))) == 2
    assert len(paged.lines) == 1


def test_a_page_is_a_record_otherwise(serve: Serve) -> None:
    with Client(serve(Paged()), "key") as client:
        page, response = gatewright.with_response(client.responses.input_items.list, "resp_1")
    assert response.status_code == 200
    assert gatewright.response_of(page) is not None
    assert list(page.keys()) == ["object", "data", "first_id", "last_id", "has_more"]
    assert dict(page.items())["object"] == page["object"] == "list"
    assert "data" in page
    assert pickle.loads(pickle.dumps(page)) == page
    assert json.loads(page.to_json()) == page.to_dict() == page


@pytest.mark.parametrize("length", [1, 2, 3])
async def test_a_list_that_leads_back_to_an_earlier_page_is_an_error(serve: Serve, length: int) -> None:
    pages = 0

    def answer(connection: Connection) -> None:
        nonlocal pages
        item = ITEMS[pages % length]
        pages += 1
        page = {
            "object": "list",
            "data": [item],
            "first_id": item["id"],
            "last_id": item["id"],
            "has_more": True,
        }
        connection.answer(json.dumps(page).encode(), headers="x-request-id: req_page")

    base_url = serve(answer)
    with (
        Client(base_url, "key") as client,
        pytest.raises(
            gatewright.DecodeError, match=r": the list leads back to an earlier page: 'item_\d'"
        ) as one,
    ):
        list(client.responses.input_items.list("resp_1"))
    assert pages <= 4 * length + 1
    check_cycle(one.value, "list_response_input_items", "responses.input_items.list")
    async with AsyncClient(base_url, "key") as other:
        listed: Any = await other.responses.input_items.list("resp_1")
        with pytest.raises(gatewright.DecodeError) as two:
            [item async for item in listed]
    check_cycle(two.value, "list_response_input_items", "responses.input_items.list")


def check_cycle(error: gatewright.DecodeError, operation: str, method: str) -> None:
    assert (error.operation, error.status_code, error.request_id) == (operation, 200, "req_page")
    assert error.attempts == 1
    assert error.headers is not None
    assert error.headers["x-request-id"] == "req_page"
    assert str(error).startswith(f"{method}: status 200: the list leads back to an earlier page: ")
    assert str(error).endswith(" (request req_page)")


async def test_an_async_page_goes_on_with_the_next_ones(serve: Serve, gateway: Gateway) -> None:
    paged = Paged()
    async with AsyncClient(serve(paged), "key") as client:
        page: Any = await client.responses.input_items.list("resp_1", limit=2)
        assert [item["id"] for item in page] == ["item_0", "item_1"]
        assert [item["id"] async for item in page] == [item["id"] for item in ITEMS]
    assert len(paged.lines) == 3
    async with AsyncClient(gateway.base_url, gateway.key) as client:
        response = await client.responses.create(model="model-terra", input="Say apples")
        items = await client.responses.input_items.list(response.id)
        assert [item.type async for item in items] == ["message"]


def test_the_native_models_go_on_with_the_next_pages(client: Client, serve: Serve) -> None:
    names = [model.name for model in client.native.models.list(pageSize=100).models]
    page = client.native.models.list(pageSize=2)
    assert len(page.models) == 2
    assert "nextPageToken" in page
    assert [model.name for model in page] == names
    assert [model.name for model in client.native.models.list()] == names

    repeated = json.dumps({"models": [], "nextPageToken": "again"}).encode()
    base_url = serve(lambda connection: connection.answer(repeated, headers="x-request-id: req_page"))
    with Client(base_url, "key") as own, pytest.raises(gatewright.DecodeError, match="again") as caught:
        list(own.native.models.list())
    check_cycle(caught.value, "list_native_models", "native.models.list")


async def test_the_native_models_go_on_with_the_next_pages_async(gateway: Gateway) -> None:
    async with AsyncClient(gateway.base_url, gateway.key) as client:
        page = await client.native.models.list(pageSize=2)
        names = [model.name async for model in page]
        assert len(names) > 2
        assert [model.name for model in page] == names[:2]
