"""Saving what records point to, for client.images and client.videos. Fetching and writing are the core's."""

from __future__ import annotations

from gatewright import _native
from gatewright._asyncio import finish, running_loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Any, Literal


def save(
    client: Any,
    kind: Literal["image", "video"],
    record: Mapping[str, Any],
    path: str | os.PathLike[str],
    overwrite: bool,
    max_bytes: int | None,
    timeout: float | None,
) -> int:
    """Saves to `path`; returns the size in bytes."""
    return _native.save(client._native, kind, record, path, (overwrite, max_bytes, timeout))


async def save_async(
    client: Any,
    kind: Literal["image", "video"],
    record: Mapping[str, Any],
    path: str | os.PathLike[str],
    overwrite: bool,
    max_bytes: int | None,
    timeout: float | None,
) -> int:
    """As `save`; leaving early, by cancellation, ends the transfer and leaves nothing behind."""
    options = (overwrite, max_bytes, timeout)
    size: int = await finish(_native.save_async(client._native, kind, record, path, options, running_loop()))
    return size
