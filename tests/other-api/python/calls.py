"""Calls every operation of the harbor through its generated client, and compares the results.

`cargo xtask test other-api` generates the package `harbour`, checks the types of this file, and runs it.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gatewright
import pytest
from gatewright import _engine
from harbour import resources, types


class Harbour(resources.Resources, gatewright.Client):
    """The harbor's operations on a client."""


class AsyncHarbour(resources.AsyncResources, gatewright.AsyncClient):
    """The same for asyncio."""


def plain(value: Any) -> Any:
    """The received data as plain dicts and lists."""
    if isinstance(value, list):
        return [plain(element) for element in value]
    return value.to_dict()


def status(method: Callable[..., Any], *arguments: Any, **members: Any) -> tuple[Any, int]:
    """A call's result, and the status of its response."""
    result, response = gatewright.with_response(method, *arguments, **members)
    return result, response.status_code


def call(client: Harbour, answers: dict[str, Any]) -> None:
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


async def call_async() -> None:
    async with AsyncHarbour() as client:
        berths, chart, log = await asyncio.gather(
            client.berths.list("osl"),
            client.charts.import_("depth", "large"),
            client.log.lambda_(from_="monday"),
        )
        assert (berths, type(chart), type(log)) == ([], bytes, str)
        assert await client.berths.del_("nyc", 7) is None  # type: ignore[func-returns-value]
        nothing, response = await gatewright.with_response(client.berths.del_, "nyc", 7)
        assert (nothing, response.status_code) == (None, 204)


def main() -> None:
    exchanges = json.loads(Path(os.environ["EXCHANGES"]).read_text())
    # Only in debug builds, so no stub has it.
    engine: Any = _engine
    engine.register_operations(Path(os.environ["OPERATIONS"]).read_text())
    with Harbour() as client:
        call(client, {name: exchange["answer"] for name, exchange in exchanges.items()})
    asyncio.run(call_async())


if __name__ == "__main__":
    main()
