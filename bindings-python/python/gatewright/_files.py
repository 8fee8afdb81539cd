"""Saves the files that records point to, for client.images and client.videos. The core does the work."""

from __future__ import annotations

from gatewright import _engine
from gatewright._asyncio import finish, running_loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Any, Literal


# A test compares these with the generated ones.
SAVE_OPTIONS = ("overwrite", "max_bytes", "timeout")


def _check(kind: str, options: dict[str, Any]) -> None:
    for name in options:
        if name not in SAVE_OPTIONS:
            from gatewright._mistakes import refused

            raise refused("images.save" if kind == "image" else "videos.generations.save", name, SAVE_OPTIONS)


def save(
    client: Any,
    kind: Literal["image", "video"],
    record: Mapping[str, Any],
    path: str | os.PathLike[str],
    options: dict[str, Any],
) -> int:
    """Saves to `path`; returns the size in bytes."""
    _check(kind, options)
    return _engine.save(client._engine, kind, record, path, options)


async def save_async(
    client: Any,
    kind: Literal["image", "video"],
    record: Mapping[str, Any],
    path: str | os.PathLike[str],
    options: dict[str, Any],
) -> int:
    """Like `save`; cancellation ends the transfer and leaves nothing behind."""
    _check(kind, options)
    size: int = await finish(_engine.save_async(client._engine, kind, record, path, options, running_loop()))
    return size
