"""Suggestions for callers whose arguments are refused. Imported with the first such mistake."""

from __future__ import annotations

import difflib
import sys

from gatewright.generated.errors import ConfigurationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

MAX_COMPARED_NAME = 64
"""Characters of a name up to which similar names are looked for."""

CALL_OPTIONS = (
    "timeout",
    "first_byte_timeout",
    "idle_timeout",
    "event_timeout",
    "max_retries",
    "extra_headers",
    "extra_query",
    "extra_body",
    "idempotency_key",
    "validate",
)
"""Options of a call. A test compares them with the generated ones."""


def refused(method: str, name: str, known: Iterable[str]) -> TypeError:
    """The error about an argument that a method does not have."""
    return TypeError(f"{method}() has no argument {name!r}{_hint(name, known)}")


def _hint(name: str, known: Iterable[str]) -> str:
    if len(name) > MAX_COMPARED_NAME:
        return ""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def mended(
    error: TypeError,
    client: object,
    parameters: tuple[dict[str, Any] | None, ...],
    body: dict[str, Any] | None,
    options: dict[str, Any],
) -> dict[str, Any]:
    """The options of a call that was refused, in a form that is not. Raises the error, or a better one."""
    known = [*CALL_OPTIONS, *(name for part in (*parameters, body) for name in part or ())]
    for name in options:
        if name not in CALL_OPTIONS:
            method, own = _method_of(client)
            raise refused(method, name, [*own, *known]) from None
    if not is_timeout(options.get("timeout")):
        raise error
    return with_timeouts(options, of_call=True)


def _method_of(client: object) -> tuple[str, list[str]]:
    """The method of a resource that was called, as callers write it, and its arguments."""
    found: tuple[str, list[str]] = ("call", [])
    frame = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self")
        kind = type(owner)
        if kind.__module__.startswith("gatewright.") and getattr(owner, "_client", None) is client:
            # The docstring of a resource is its place: client.chat.completions.
            place = (kind.__doc__ or "").rstrip(".").removeprefix("client.")
            code = frame.f_code
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            found = (f"{place}.{code.co_name}", [name for name in names if name != "self"])
        frame = frame.f_back  # type: ignore[assignment]
    return found


def is_timeout(value: object) -> bool:
    """Whether a value is like `httpx.Timeout`: a limit for each of four waits."""
    return all(hasattr(value, name) for name in ("connect", "read", "write", "pool"))


def with_timeouts(options: Mapping[str, Any], *, of_call: bool) -> dict[str, Any]:
    """Options with a value like `httpx.Timeout` as the options that mean the same.

    It limits no call as a whole: `read` is the time until the headers and between bytes; `connect` and `pool`
    are those of a client. There is nothing like `write`.
    """
    limits: Any = options["timeout"]

    def seconds(value: float | None) -> float:
        return float("inf") if value is None else value

    read = seconds(limits.read)
    as_options = {"timeout": float("inf"), "first_byte_timeout": read, "idle_timeout": read}
    if not of_call:
        as_options |= {"connect_timeout": seconds(limits.connect), "pool_timeout": seconds(limits.pool)}
    given = {name: value for name, value in options.items() if value is not None}
    return {**as_options, **given, "timeout": as_options["timeout"]}


# What other SDKs have and this client does not.
_MISSING = {
    "completions": "text completions beside client.chat.completions",
    "files": "files",
    "uploads": "uploads",
    "batches": "batches",
    "fine_tuning": "fine-tuning",
    "vector_stores": "vector stores",
    "realtime": "realtime sessions",
    "conversations": "conversations beside previous_response_id of responses",
    "containers": "containers",
    "evals": "evaluations",
    "beta": "beta operations",
}


class MissingOperationError(ConfigurationError, AttributeError):
    """The client has no such operation; for `hasattr`, it is an AttributeError."""


def missing(client: object, name: str) -> AttributeError:
    """The error about an attribute that a client does not have."""
    if name in _MISSING:
        way = "call this API of your provider with its own SDK"
        return MissingOperationError(f"client.{name}: Gatewright has no {_MISSING[name]} yet; {way}")
    known = [] if name.startswith("_") else [one for one in dir(client) if not one.startswith("_")]
    return AttributeError(f"{type(client).__name__} has no attribute {name!r}{_hint(name, known)}")
