"""Texts and lists that arrive in pieces, and the JSON that a text begins."""

from __future__ import annotations

import sys

from gatewright._json_prefix import JsonPrefix, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


# Cuts nothing off.
_WHOLE = (sys.maxsize, "")


class GrowingText:
    """A text so far. It is joined when it is read, so that a piece costs as much as its own characters."""

    __slots__ = ("_joined", "_pieces", "_prefix")

    def __init__(self, text: str = "", *, is_json: bool = False) -> None:
        self._pieces: list[str] = []
        # The number of pieces that have been joined, and their text. Threads replace both at once.
        self._joined = (0, "")
        self._prefix = JsonPrefix() if is_json else None
        self.push(text)

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def push(self, piece: str) -> TextSoFar:
        """Adds a piece; returns the text so far."""
        if piece:
            self._pieces.append(piece)
            if self._prefix is not None:
                self._prefix.feed(piece)
        return self.so_far()

    def so_far(self) -> TextSoFar:
        """The text as it is now."""
        cut = (0, "") if self._prefix is None else self._prefix.cut()
        return TextSoFar(self, len(self._pieces), cut)

    def whole(self) -> TextSoFar:
        """The text as it is now. It is complete: it has no value unless all of it is JSON."""
        return TextSoFar(self, len(self._pieces), _WHOLE)

    def text(self, count: int | None = None) -> str:
        """The first pieces, or all of them, as one text."""
        if count is None:
            count = len(self._pieces)
        joined, text = self._joined
        if joined > count:
            return "".join(self._pieces[:count])
        if joined < count:
            text += "".join(self._pieces[joined:count])
            self._joined = (count, text)
        return text


class TextSoFar:
    """A growing text as it was after one of its pieces."""

    __slots__ = ("_count", "_cut", "_growing", "_value")

    def __init__(self, growing: GrowingText, count: int, cut: tuple[int, str]) -> None:
        self._growing = growing
        self._count = count
        self._cut: tuple[int, str] | None = cut
        self._value: Any = None

    @property
    def text(self) -> str:
        """The text so far."""
        return self._growing.text(self._count)

    @property
    def value(self) -> Any:
        """The JSON so far, parsed on first access; None if there is none, or it is beyond a bound of
        `JsonPrefix`."""
        if self._cut is not None:
            self._value = value_of(self.text, *self._cut)
            self._cut = None
        return self._value


class ListSoFar:
    """A growing list as it was after some of its elements."""

    __slots__ = ("_count", "_elements")

    def __init__(self, elements: list[Any]) -> None:
        self._elements = elements
        self._count = len(elements)

    @property
    def elements(self) -> list[Any]:
        """A copy of the list so far."""
        return self._elements[: self._count]
