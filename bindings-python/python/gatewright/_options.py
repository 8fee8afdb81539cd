"""The options that may be stored: all except secrets."""

from __future__ import annotations

from gatewright._engine import is_secret_name
from gatewright.generated.options import ADDRESSES, PAIRS, CallOptions, SaveOptions, WaitOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["CallOptions", "SaveOptions", "WaitOptions", "without_secrets"]


def without_secrets(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a client without the headers and query parameters that have a secret name (those that the
    log redacts), and without a proxy's user and password."""
    clean = dict(options)
    for name in PAIRS:
        pairs = clean.get(name)
        if pairs is not None:
            clean[name] = {key: value for key, value in pairs.items() if not is_secret_name(key)}
    for name in ADDRESSES:
        address = clean.get(name)
        if isinstance(address, str):
            before, separator, after = address.rpartition("@")
            if separator:
                scheme, slashes, _ = before.partition("://")
                clean[name] = f"{scheme}{slashes}{after}" if slashes else after
    return clean
