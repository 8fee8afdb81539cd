"""The run-time substitutes for the types of requests and responses: there is no class per schema."""

from __future__ import annotations

from gatewright._engine import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet


def stand_ins(
    module: str, records: AbstractSet[str], dicts: AbstractSet[str], aliases: AbstractSet[str]
) -> Callable[[str], object]:
    """The `__getattr__` of a module of types: `Record` for responses, `dict` for requests."""

    def stand_in(name: str) -> object:
        if name in records:
            return Record
        if name in dicts:
            return dict
        if name in aliases:
            from typing import Any

            return Any
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return stand_in
