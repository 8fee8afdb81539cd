"""Records for `json.dumps`."""

from __future__ import annotations

from gatewright._engine import Record
from gatewright._view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def to_jsonable(value: Any) -> Any:
    """Converts a value of this package to plain dicts and lists, as the `default` of `json.dumps`.

    Takes records, answers of `parse`, pydantic models and dataclasses.

    >>> import gatewright, json
    >>> client = gatewright.Client()
    >>> models = client.models.list()
    >>> text = json.dumps({"first": models.data[0]}, default=gatewright.to_jsonable, indent=2)
    >>> json.loads(text)["first"]["object"]
    'model'

    Raises:
        TypeError: The value is none of these.
    """
    if isinstance(value, (Record, View)):
        return value.to_dict()
    dump = getattr(type(value), "model_dump", None)
    if dump is not None:
        return dump(value, mode="json")
    if hasattr(type(value), "__dataclass_fields__"):
        return {name: getattr(value, name) for name in type(value).__dataclass_fields__}
    raise TypeError(f"{type(value).__name__} has no JSON form")
