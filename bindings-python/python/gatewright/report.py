"""Compatibility reports (specification 2.12): validation with every violation at once.

>>> from gatewright import report
>>> outcome = report.validate('{"schema_version": "1.0"}')
>>> outcome.valid
False
>>> outcome.violations[0].message
'kit is missing (2.12)'
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from gatewright._native import ReportValidator

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Outcome", "Validator", "Violation", "validate"]


class Violation(NamedTuple):
    """One thing wrong with a document, and where."""

    pointer: str
    """JSON Pointer of the value at fault; of the object, where a property is missing or unknown."""
    line: int
    """Line in the document, from 1."""
    column: int
    """Column there in code points, from 1."""
    rule: str
    """The JSON Schema keyword that failed; for a document that does not parse `syntax`, `duplicate_key`, …"""
    property: str | None
    """The property that is missing, unknown or repeated."""
    expected: str | None
    """What should stand there, in words."""
    found: str | None
    """What stands there: the document's own text, cut to a bearable length."""
    message: str
    """One line for people: place, what is wrong, section."""
    section: str
    """Section of the specification; `ours` for a rule it does not state."""


class Outcome(NamedTuple):
    """The verdict on one document."""

    valid: bool
    """Whether the document is a valid report; if strict, also free of advisories."""
    violations: list[Violation]
    """Everything that breaks section 2.12, in document order."""
    advisories: list[Violation]
    """What the section allows and is suspicious all the same, in document order."""


class Validator:
    """A validator to keep for many documents: making one compiles the schema. Safe to share between threads.

    Args:
        strict: Whether advisories make a document invalid.
        models: Ids that stand in for the tested models of the specification.
        kit_name: Name that stands in for the kit's.
        max_bytes: Largest document to read. Default 16 MiB.
    """

    def __init__(
        self,
        *,
        strict: bool = False,
        models: Sequence[str] | None = None,
        kit_name: str | None = None,
        max_bytes: int | None = None,
    ) -> None:
        self._native = ReportValidator(strict=strict, models=models, kit_name=kit_name, max_bytes=max_bytes)

    def validate(self, document: bytes | bytearray | memoryview | str | os.PathLike[str]) -> Outcome:
        """Validates one document: its bytes, its text, or as a path the file that holds it.

        Raises:
            FileError: The file cannot be read.
        """
        verdict = self._native.validate(_content(document))
        return Outcome(
            verdict["valid"],
            [Violation(**violation) for violation in verdict["violations"]],
            [Violation(**advisory) for advisory in verdict["advisories"]],
        )


_default: dict[bool, Validator] = {}


def validate(
    document: bytes | bytearray | memoryview | str | os.PathLike[str],
    *,
    strict: bool = False,
    models: Sequence[str] | None = None,
    kit_name: str | None = None,
) -> Outcome:
    """Validates one document; see `Validator` for the options and `Validator.validate` for the argument.

    A `str` is the document's text, not a file name: give `pathlib.Path(name)` for a file.
    """
    if models is not None or kit_name is not None:
        return Validator(strict=strict, models=models, kit_name=kit_name).validate(document)
    validator = _default.get(strict)
    if validator is None:
        validator = _default[strict] = Validator(strict=strict)
    return validator.validate(document)


def _content(document: bytes | bytearray | memoryview | str | os.PathLike[str]) -> bytes:
    if isinstance(document, str):
        # A lone surrogate has no UTF-8 form: passed on as it is, for the validator to refuse.
        return document.encode("utf-8", "surrogatepass")
    if isinstance(document, os.PathLike):
        try:
            with open(document, "rb") as file:
                return file.read()
        except OSError as error:
            from gatewright.generated.errors import FileError

            raise FileError(str(error)) from error
    if isinstance(document, (bytes, bytearray, memoryview)):
        return bytes(document)
    raise TypeError(f"a document is bytes, text or a path, not {type(document).__name__}")
