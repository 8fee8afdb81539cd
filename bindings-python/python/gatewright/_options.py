"""Options of one call, which every method takes beside the operation's own arguments."""

from __future__ import annotations

from gatewright._native import is_secret_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypedDict

    class CallOptions(TypedDict, total=False):
        """Options of one call, or of a client made by `with_options`.

        What is left out or None is as the client has it.
        """

        timeout: float | None
        """Seconds for the call as a whole, all attempts and pauses together; of a stream, until it begins,
        and from then on the longest silence, unless an `idle_timeout` is given, here or to the client."""
        first_byte_timeout: float | None
        """Seconds until an answer begins, per attempt."""
        idle_timeout: float | None
        """Seconds without a byte of an answer that has begun. Where none is given: 120, or `timeout` if that
        is shorter."""
        event_timeout: float | None
        """Seconds without an event of a stream; keep-alive comments do not count."""
        max_retries: int | None
        """Attempts after the first."""
        extra_headers: Mapping[str, str] | None
        """Headers to send beside the client's own; one of the same name replaces it."""
        extra_query: Mapping[str, object] | None
        """Query parameters to send beside the operation's own."""
        extra_body: Mapping[str, object] | None
        """Members to send in the body; one of the same name replaces an argument, whole."""
        idempotency_key: str | None
        """The key that makes the attempts of a call one to the gateway, in place of one made up for it."""
        validate: bool | None
        """Whether a request for a model of the catalog is checked before it is sent: against the rules of the
        specification, the limits of the model and the endpoint that serves it; then InvalidRequestError tells
        all violations at once, at most 100. Never checked: requests for other models, members the
        specification does not describe, and what only the gateway knows, such as whether a response that is
        named exists. An answer is checked for what 2.7 and 2.11 promise; then DecodeError tells them."""

else:
    CallOptions = dict


def without_secrets(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a client or a call without headers and query parameters that are secret by their name (the
    names that the log redacts), and without user and password of a proxy."""
    clean = dict(options)
    for name in ("default_headers", "default_query", "extra_headers", "extra_query"):
        pairs = clean.get(name)
        if pairs is not None:
            clean[name] = {key: value for key, value in pairs.items() if not is_secret_name(key)}
    proxy = clean.get("proxy")
    if isinstance(proxy, str):
        before, separator, after = proxy.rpartition("@")
        if separator:
            scheme, slashes, _ = before.partition("://")
            clean["proxy"] = f"{scheme}{slashes}{after}" if slashes else after
    return clean


def over(options: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Options, with defaults where they say nothing; headers, query parameters and body members add up."""
    merged = dict(defaults)
    for name, value in options.items():
        if value is None:
            continue
        known = merged.get(name)
        if name in ("extra_query", "extra_body") and known is not None:
            value = {**known, **value}
        elif name == "extra_headers" and known is not None:
            given = {header.lower() for header in value}
            kept = {header: text for header, text in known.items() if header.lower() not in given}
            value = {**kept, **value}
        merged[name] = value
    return merged
