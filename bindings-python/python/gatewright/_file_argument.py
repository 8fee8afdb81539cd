"""The forms in which a request takes a file. The engine reads it once, when the call is made; for
`AsyncClient`, a thread does.
"""

from __future__ import annotations

import os
from typing import Protocol

__all__ = ["FileArgument"]


class _Readable(Protocol):
    """A file object in binary mode, or any other object that returns the next bytes and b"" at its end."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most this many."""
        ...


_Content = bytes | bytearray | memoryview | os.PathLike[str] | _Readable

FileArgument = _Content | tuple[str, _Content] | tuple[str, _Content, str | None]
"""A path (`pathlib.Path`, not `str`), bytes, a file object, or a tuple of a name, one of these and a media
type. Without a tuple, the name is that of the path or of the file object, or for bytes that of the argument.
A file may have at most 512 MiB.
"""
