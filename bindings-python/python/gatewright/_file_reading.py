"""Reads the files of a call of AsyncClient in a thread, so that a slow file does not stop the event loop."""

from __future__ import annotations

from gatewright._asyncio import running_loop
from gatewright._engine import read_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


async def read_in_thread(operation: str, body: dict[str, Any]) -> dict[str, Any]:
    """A copy of a body whose files have been read. After cancellation, no read of a file object begins; one
    in progress cannot be stopped."""
    reading = _Reading()
    guarded = {name: reading.guarded(value) for name, value in body.items()}
    try:
        read: dict[str, Any] = await running_loop().run_in_executor(None, read_files, operation, guarded)
        return read
    finally:
        reading.is_over = True


class _Reading:
    """The reading of the files of one call."""

    def __init__(self) -> None:
        self.is_over = False

    def guarded(self, value: Any) -> Any:
        """A member of a body, with file objects that are read only until the call is over."""
        if type(value) in (list, tuple):
            # Several files, or the name, the content and the media type of one.
            return type(value)(self.guarded(item) for item in value)
        # A path may be open, too; it is opened anew.
        is_file = callable(getattr(value, "read", None)) and not hasattr(value, "__fspath__")
        return FileObject(value, self) if is_file else value


class FileObject:
    """A file object of the caller. Errors show the name of this class."""

    def __init__(self, file: Any, reading: _Reading) -> None:
        self._file = file
        self._reading = reading

    @property
    def name(self) -> Any:
        return self._file.name

    def read(self, size: int, /) -> Any:
        if self._reading.is_over:
            # The call is over: this error goes nowhere.
            raise EOFError("the call was cancelled")
        return self._file.read(size)
