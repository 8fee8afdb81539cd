"""Calls every operation of the harbor and the library through their generated clients.

`cargo xtask test other-api` generates the packages `harbour` and `library`, checks the types of
this file, and runs it.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gatewright
import harbour
import library
import pytest
from harbour import types


def plain(value: Any) -> Any:
    """The received data as plain dicts and lists."""
    if isinstance(value, list):
        return [plain(element) for element in value]
    return value.to_dict()


def status(method: Callable[..., Any], *arguments: Any, **members: Any) -> tuple[Any, int]:
    """A call's result, and the status of its response."""
    result, response = gatewright.with_response(method, *arguments, **members)
    return result, response.status_code


def call(client: harbour.Client, answers: dict[str, Any], written_page: Path) -> None:
    listed: list[types.Berth] = client.berths.list("nyc", pageSize=5, state="free", in_="east", X_Pilot="ada")
    assert plain(listed) == answers["an array"]["json"]
    ship = listed[0].ship
    assert ship is not None
    assert (ship.name, ship["from"], listed[0].note) == ("Ada", "Oslo", None)
    engine = ship.engine
    assert engine is not None
    assert engine.kind == "sail"
    assert engine.masts == 3
    assert client.berths.list("osl") == []
    with pytest.raises(gatewright.NotFoundError, match="no such harbour"):
        client.berths.list("none")

    opened = client.berths.yield_(
        "nyc", pageSize=True, state=2, X_Pilot="ada", length_m=120.5, cargo={"kind": "grain", "tonnes": 12.5}
    )
    assert plain(opened) == answers["a body, and parameters that another method has too"]["json"]
    assert opened["state"] is None
    cargo = gatewright.Record({"kind": "livestock", "heads": 3})
    opened = client.berths.yield_("osl", length_m=30.5, cargo=cargo)
    assert opened.cargo is not None
    assert opened.cargo["heads"] == 3

    berth = client.berths.retrieve("nyc", 7)
    assert plain(berth) == answers["a number in the path"]["json"]
    record: types.Record = client.berths.move("nyc", 7, from_="6", class_="cargo", async_=True, fn="repair")
    assert record.type == "move"
    assert record.lines == [["from", "6"], []]
    assert record["self"].type == "stay"

    nothing: None = client.berths.del_("nyc", 7)  # type: ignore[func-returns-value]
    assert nothing is None
    client.berths.signals.raise_("nyc")
    assert status(client.berths.list, "osl") == ([], 200)
    assert status(client.berths.del_, "nyc", 7) == (None, 204)
    assert status(client.berths.signals.raise_, "nyc") == (None, 202)
    _, response = gatewright.with_response(client.charts.import_, "depth", "large")
    assert response.headers["content-type"] == "image/png"
    assert status(client.log.lambda_, from_="monday") == (answers["text"]["text"], 200)

    chart: bytes = client.charts.import_("depth", "large")
    assert chart == bytes.fromhex(answers["bytes"]["bytes"])
    log: str = client.log.lambda_(from_="monday")
    assert log == answers["text"]["text"]

    written: types.Any = client.log.write(
        parameters="p", body="b", call="c", record={"type": "note", "lines": [["x"]]}
    )
    assert plain(written) == answers["arguments with the names of what methods keep"]["json"]
    streams = client.waters.streams.match()
    assert [stream.name for stream in streams["east"]] == ["Bille", "Alster"]

    manifest = client.manifests.submit(
        "nyc",
        ship='Ada "of\r\nOslo" ü',
        level="calm",
        tonnes=12.5,
        urgent=True,
        marks=["dry", "heavy"],
        berths=[7],
        seal=None,
        file=('größe "a"\r\n.csv', io.BytesIO(b"\0\r\n--\xff"), "text/csv"),
        pages=[written_page, ("2.txt", b"")],
    )
    assert manifest.any == "taken"
    for wrong in ("manifest.csv", 7, ("a", "text"), io.StringIO("text")):
        with pytest.raises(TypeError, match=r"^file: "):
            client.manifests.submit("nyc", ship="Ada", file=wrong)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        client.manifests.submit("nyc", ship="Ada", file=written_page.with_name("absent"))

    forecast: types.Forecast = client.forecasts.make(days=2, layout="table")
    assert forecast.wind == [4, 7]
    letter: str = client.forecasts.make(days=2, layout="letter")
    assert letter == answers["a text that a word of the request asks for"]["text"]
    with client.forecasts.make(days=2, pace="daily") as days:
        winds = [day.wind for day in days if day.type == "forecast.day"]
    assert winds == [4, 7]
    with pytest.raises(gatewright.StreamTruncatedError, match="before"):
        list(client.forecasts.make(days=3, pace="daily"))

    notices: list[types.Notice] = client.notices.hoist(
        level="error",
        channels={"constructor": {"number": 7}, "east": {"number": 16}},
        until=1767323045,
        größe="large",
        tiefe_="deep",
        _secret="s",
        builtins="b",
        str="t",
        urgent=True,
    )
    assert plain(notices) == answers["idioms of OpenAPI 3.0, and names that are hard to spell"]["json"]
    heard = notices[0]
    assert heard.kind == "heard"
    assert heard.ship == "Ada"


def call_library(client: library.Client, answers: dict[str, Any]) -> None:
    page = client.items.list(
        cursor="a", ids=[3, 4], kind=["book", "film"], limit=2, sort="-title", X_Request_Id="r-1"
    )
    assert plain(page) == answers["lists in a query, and a header"]["json"]
    book, film = page.data
    assert book.kind == "book"
    assert (book.pages, book.barcode, book["lent"]) == (352, 42, False)
    assert film.kind == "film"
    assert (film.minutes, film.shelf) == (124.5, "cellar")
    assert client.items.list(cursor=page.next_cursor or "").next_cursor is None

    added = client.items.add(title="Walden", kind="book", pages=352, shelf="cellar", X_Request_Id="r-2")
    assert plain(added) == answers["a body that inherits"]["json"]
    assert client.items.get_by_id("77a0").kind == "film"
    assert client.items.update("5f4d", id="6a01", shelf=3).shelf == 3
    client.items.scan("5f4d", scan=b"\x89PNG")
    events: list[library.types.LoanEvent] = list(client.loans.watch("l1"))
    assert [event.state for event in events] == ["lent", "returned"]
    assert events[1]["note"] == "wet"


async def call_async() -> None:
    async with library.AsyncClient() as client:
        assert (await client.items.list(cursor="b")).data == []
        watched = await client.loans.watch("l1")
        assert [event.state async for event in watched] == ["lent", "returned"]
    async with harbour.AsyncClient() as client:
        berths, chart, log = await asyncio.gather(
            client.berths.list("osl"),
            client.charts.import_("depth", "large"),
            client.log.lambda_(from_="monday"),
        )
        assert (berths, type(chart), type(log)) == ([], bytes, str)
        async with library.AsyncClient() as other:
            await other.items.scan("5f4d", scan=bytearray(b"\x89PNG"))
        assert await client.berths.del_("nyc", 7) is None  # type: ignore[func-returns-value]
        nothing, response = await gatewright.with_response(client.berths.del_, "nyc", 7)
        assert (nothing, response.status_code) == (None, 204)


def main() -> None:
    exchanges = json.loads(Path(os.environ["EXCHANGES"]).read_text())
    answers = {name: exchange["answer"] for name, exchange in exchanges.items()}
    with harbour.Client() as client, tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "1.txt")
        page.write_bytes(b"1")
        call(client, answers, page)
    with library.Client() as client:
        call_library(client, answers)
    asyncio.run(call_async())


if __name__ == "__main__":
    main()
