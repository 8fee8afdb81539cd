"""Records as plain values, with the options of pydantic models. Imported at the first use."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gatewright._engine import Record

_OPTIONS = ("mode", "exclude_none", "exclude_unset", "by_alias", "indent")


def model_dump(record: Record, **options: Any) -> dict[str, Any]:
    """A copy as plain dicts and lists. A record contains only the members that arrived, under their wire
    names, so `mode`, `exclude_unset` and `by_alias` have no effect."""
    _check("model_dump", options, _OPTIONS[:-1])
    value: dict[str, Any] = record.to_dict()
    return _without_none(value) if options.get("exclude_none") else value


def model_dump_json(record: Record, **options: Any) -> str:
    """The record as JSON text, with `indent` spaces per level if given."""
    _check("model_dump_json", options, _OPTIONS[1:])
    indent = options.pop("indent", None)
    separators = (",", ":") if indent is None else None
    return json.dumps(model_dump(record, **options), indent=indent, separators=separators, ensure_ascii=False)


def _check(method: str, options: dict[str, Any], known: tuple[str, ...]) -> None:
    for name in options:
        if name not in known:
            from gatewright._mistakes import refused

            raise refused(method, name, known)


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_none(member) for name, member in value.items() if member is not None}
    if isinstance(value, list):
        return [_without_none(element) for element in value]
    return value
