"""Closes the beginning of a JSON document, to parse a growing answer; and parses a whole one as the core
does."""

from __future__ import annotations

import json
import math
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The bounds of a document whose beginning is parsed, which are the core's. Beyond them it is parsed only as a
# whole.
MAX_PREFIX = 8 * 1024 * 1024
"""Maximum length, in bytes of UTF-8."""
MAX_PREFIX_DEPTH = 128
"""Maximum nesting."""
MAX_PREFIX_VALUES = 100_000
"""Maximum number of values, members and items at every depth included."""
MAX_PREFIX_WORD = 1024
"""Maximum length of a number or a word."""

MAX_WHOLE_DEPTH = 127
"""Maximum nesting of a document that is parsed as a whole: that of the core's parser."""

_STRING = re.compile(r'[^"\\]*')
_SCALAR = re.compile(r"[-+.0-9a-zA-Z]*")
_SPACE = re.compile(r"[ \t\r\n]*")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
# Any escape; in the group if it is of half a character, without the other half.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


class JsonPrefix:
    """A growing document. Each character is read once, however often the value is requested.

    An open string counts as far as it goes; a number, `true`, `false` and `null` count once the next
    character shows that they are complete; a name without a value does not count.
    """

    __slots__ = (
        "_broken",
        "_bytes",
        "_closers",
        "_complete",
        "_length",
        "_pending",
        "_state",
        "_values",
        "_word",
    )

    def __init__(self) -> None:
        self._closers: list[str] = []
        # What comes next: a value, the first of an array, a name, the first of an object, a colon, what is
        # after a value, the end; or the rest of a text, of a name's text, of a scalar.
        self._state = "value"
        # How much of the document is complete but for its closers.
        self._complete = 0
        self._length = 0
        self._bytes = 0
        self._values = 0
        # The length of the scalar so far.
        self._word = 0
        # An escape that continues in the next text.
        self._pending = ""
        self._broken = False

    def feed(self, text: str) -> None:
        """Adds text to the document."""
        if self._broken or not text:
            return
        pending, self._pending = self._pending + text, ""
        start = self._length - (len(pending) - len(text))
        self._length += len(text)
        self._bytes += len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
        if self._bytes > MAX_PREFIX:
            self._broken = True
            return
        at = 0
        while at < len(pending) and not self._broken:
            reached = self._step(pending, at, start)
            if reached is None:
                self._pending = pending[at:]
                break
            at = reached

    def _step(self, text: str, at: int, start: int) -> int | None:
        """Reads one token; returns where the next begins."""
        state = self._state
        if state in ("text", "name text"):
            return self._in_text(text, at, start)
        if state == "scalar":
            end = self._end_of(_SCALAR, text, at)
            self._word += end - at
            if self._word > MAX_PREFIX_WORD:
                self._broken = True
            elif end < len(text):
                self._value_begins()
                self._value_ends(start + end)
            return end
        at = self._end_of(_SPACE, text, at)
        if at == len(text):
            return at
        one = text[at]
        if one == '"' and state in ("value", "first", "name", "first name"):
            self._state = "name text" if "name" in state else "text"
            if self._state == "text":
                self._value_begins()
        elif one in "{[" and state in ("value", "first"):
            self._closers.append("}" if one == "{" else "]")
            self._state = "first name" if one == "{" else "first"
            self._complete = start + at + 1
            self._value_begins()
            self._broken = self._broken or len(self._closers) > MAX_PREFIX_DEPTH
        elif self._closers and one == self._closers[-1] and state in ("after", "first", "first name"):
            self._closers.pop()
            self._value_ends(start + at + 1)
        elif one == "," and state == "after" and self._closers:
            self._state = "name" if self._closers[-1] == "}" else "value"
        elif one == ":" and state == "colon":
            self._state = "value"
        elif state in ("value", "first") and (one in "-tfn" or one.isdigit()):
            self._state = "scalar"
            self._word = 1
        else:
            self._broken = True
        return at + 1

    def _in_text(self, text: str, at: int, start: int) -> int | None:
        end = self._end_of(_STRING, text, at)
        if end > at or end == len(text):
            return end
        if text[end] == '"':
            if self._state == "name text":
                self._state = "colon"
            else:
                self._value_ends(start + end + 1)
            return end + 1
        size = self._escape_size(text, end)
        return None if size is None or end + size > len(text) else end + size

    @staticmethod
    def _escape_size(text: str, at: int) -> int | None:
        """The size of an escape, or of both halves of a surrogate pair; None if it is not complete."""
        if text[at + 1 : at + 2] != "u":
            return 2
        if text[at + 2 : at + 4].lower() not in ("d8", "d9", "da", "db"):
            return 6
        after = text[at + 6 : at + 8]
        if len(after) < 2 and after in ("", "\\"):
            return None
        return 12 if after == "\\u" else 6

    @staticmethod
    def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
        found = pattern.match(text, at)
        assert found is not None
        return found.end()

    def _value_begins(self) -> None:
        self._values += 1
        self._broken = self._values > MAX_PREFIX_VALUES

    def _value_ends(self, end: int) -> None:
        self._complete = end
        self._state = "after" if self._closers else "end"

    def cut(self) -> tuple[int, str]:
        """How much of the text to take, and the text that closes it; (0, "") if there is no value."""
        if self._broken:
            return 0, ""
        closers = "".join(reversed(self._closers))
        if self._state == "text":
            return self._length - len(self._pending), '"' + closers
        return self._complete, closers


def value_of(text: str, end: int, tail: str) -> Any:
    """The value of a text after it was cut and closed; None if it has no value."""
    if end == 0 and not tail:
        return None
    try:
        return _STRICT.decode(_without_halves(text[:end] + tail))
    except (ValueError, RecursionError):
        return None


def whole_value(text: str) -> Any:
    """The value of a whole text, of which everything is mended that the core mends: null replaces a number
    that JSON cannot represent, and U+FFFD half of a character.

    Raises:
        ValueError: It is not JSON, or too deep.
    """
    try:
        value = _MENDING.decode(_without_halves(text))
    except RecursionError:
        raise ValueError("too deep") from None
    # Few texts have so many brackets that they may be too deep.
    if text.count("[") + text.count("{") > MAX_WHOLE_DEPTH and _depth(value) > MAX_WHOLE_DEPTH:
        raise ValueError("too deep")
    return value


def _without_halves(text: str) -> str:
    if _SURROGATE.search(text) is None:
        return text
    return _ESCAPE.sub(lambda escape: "\\ufffd" if escape[1] else escape[0], text)


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while containers := [one for one in level if isinstance(one, (dict, list))]:
        depth += 1
        level = [inner for one in containers for inner in (one.values() if isinstance(one, dict) else one)]
    return depth


def _refused(word: str) -> None:
    raise ValueError(f"JSON cannot represent {word}")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        _refused(digits)
    return number


def _finite_or_null(digits: str) -> float | None:
    number = float(digits)
    return None if math.isinf(number) else number


_STRICT = json.JSONDecoder(parse_constant=_refused, parse_float=_finite)
_MENDING = json.JSONDecoder(parse_constant=lambda _: None, parse_float=_finite_or_null)
