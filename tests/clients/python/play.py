"""Plays every scenario with every client of some modules against every target, one line of JSON for each.

Usage: play.py TARGETS SHARE PLAYER MODULE…; TARGETS is a JSON file, see `Target`. PLAYER is a name of this
program. SHARE is 1 to play everything. With a larger number, each client plays each scenario against one of
SHARE targets, and the next scenarios against the next target.
Each program and each client has its own failing models: a breaker that one client opens affects no other.
"""

import faulthandler
import gc
import importlib
import inspect
import json
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

from scenarios import NEEDS, SCENARIOS, Client, Target, plays

# Time limit of a scenario, in seconds. A client that hangs ends the program, which prints where it waits.
MAX_SCENARIO_S = 300


def clients(modules: list[str]) -> Iterator[type[Client]]:
    for module in map(importlib.import_module, modules):
        for _, member in inspect.getmembers(module, inspect.isclass):
            if member.__module__ == module.__name__ and hasattr(member, "protocol"):
                yield member


def outcome(kind: type[Client], player: str, target: Target, scenario, chosen: bool) -> dict:
    name = scenario.__name__
    needed = NEEDS.get(name, "models")
    models = getattr(target, needed)
    if reason := target.lacks.get(kind.name, {}).get(name) or target.lacks.get("*", {}).get(name):
        return {"skipped": reason}
    if models is None or kind.protocol not in models:
        return {"skipped": f"this upstream has no {needed} for {kind.protocol}"}
    if not chosen:
        return {"omitted": True}

    def new(needed: str = "models", model: str | None = None, key: str = target.key) -> Client:
        chosen = model or getattr(target, needed)[kind.protocol].format(player)
        return kind(Target(**{**vars(target), "key": key}), chosen)

    # Some clients abandon streams. If the garbage collector closed one while the client's HTTP library holds
    # the lock of its connections, the library would wait for itself. Garbage is collected between scenarios.
    gc.disable()
    faulthandler.dump_traceback_later(MAX_SCENARIO_S, exit=True)
    try:
        scenario(new)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if Path(frame.filename).parent == Path(__file__).parent]
        at = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
        return {"failed": f"{at}: {type(error).__name__}: {error}"[:2000]}
    finally:
        faulthandler.cancel_dump_traceback_later()
        gc.enable()
        gc.collect()
    return {}


def main(targets: str, share: str, player: str, *modules: str) -> None:
    found = [Target(**target) for target in json.loads(Path(targets).read_text())]
    for place, target in enumerate(found):
        for number, kind in enumerate(clients(list(modules))):
            for index, scenario in enumerate(each for each in SCENARIOS if plays(kind, each)):
                row = {"upstream": target.name, "client": kind.name, "scenario": scenario.__name__}
                started = time.monotonic()
                chosen = (place + number + index) % int(share) == 0
                row |= outcome(kind, f"{player}-{number}", target, scenario, chosen)
                row["seconds"] = round(time.monotonic() - started, 2)
                print(json.dumps(row), flush=True)


main(*sys.argv[1:])
