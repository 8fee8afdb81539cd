"""Compatibility reports: validation that lists every violation at once, pages and comparisons.

>>> from gatewright import report
>>> outcome = report.validate('{"schema_version": "1.0"}')
>>> outcome.valid
False
>>> outcome.violations[0].message
'kit is missing'
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from gatewright._engine import (
    SLOWER_MS,
    SLOWER_PERCENT,
    ReportPool,
    ReportValidator,
    is_blank_line,
)
from gatewright.generated import report as generated
from gatewright.generated.report import *

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gatewright._engine import _Finding, _Made, _Verdict

__all__ = [
    "Document",
    "InvalidReport",
    "Judged",
    "Outcome",
    "Validator",
    "Violation",
    "canonical",
    "diff",
    "diff_html",
    "github_annotations",
    "html",
    "junit",
    "sarif",
    "validate",
    "validate_many",
]
__all__ += generated.__all__

Document: TypeAlias = "bytes | bytearray | memoryview | str | os.PathLike[str] | Mapping[str, Any]"
"""A document: bytes, text, the path of a file, or a mapping such as the `report` or the `protocols` of a
`CheckResult`.
`validate_many` differs: a `str` is a path there.
"""


class Violation(NamedTuple):
    """One problem in a document, with its location."""

    pointer: str
    """JSON Pointer of the invalid value; for a missing or unknown property, of its object. Beyond 256 code
    points, it is cut and ends in `…`, as does `property`.
    """
    line: int
    """Line in the document, from 1."""
    column: int
    """Column in code points, from 1."""
    rule: str
    """The JSON Schema keyword that failed; for a document that does not parse `syntax`, `duplicate_key`, …"""
    property: str | None
    """The property that is missing, unknown or repeated."""
    expected: str | None
    """The expected value, in words."""
    found: str | None
    """The actual value, as text of the document, which may be cut."""
    message: str
    """One line for people: place, problem, section."""
    section: str
    """Section of the specification; `ours` for a rule it does not state."""


class Outcome(NamedTuple):
    """The verdict on one document."""

    valid: bool
    """Whether the document is a valid report, or valid additional checks; if strict, without advisories."""
    violations: list[Violation]
    """Violations of the form of reports, in document order: the first 1000, or `max_findings`."""
    advisories: list[Violation]
    """Suspicious values that the section allows, in document order; as many at most."""
    more_violations: int = 0
    """Number of violations that are not listed."""
    more_advisories: int = 0
    """Number of advisories that are not listed."""


class Validator:
    """A validator. Reuse it for many documents, because creating one compiles the schema. Threads can share
    it.

    Its pickle contains only the options, so a cluster can send it to each worker once.

    Args:
        strict: Whether advisories make a document invalid.
        own_names: Whether a report may declare its own kit name and models, instead of those of the
            specification. Ignored if `models` or `kit_name` is given.
        models: Model ids to use instead of the specification's tested models.
        kit_name: Name to use instead of the kit's.
        max_bytes: Maximum size of a document in bytes. Default 16 MiB.
        max_findings: Maximum number of violations, and of advisories, that an outcome lists; further ones are
            only counted. Default 1000, at least 1 and at most 100,000.
    """

    def __init__(
        self,
        *,
        strict: bool = False,
        own_names: bool = False,
        models: Sequence[str] | None = None,
        kit_name: str | None = None,
        max_bytes: int | None = None,
        max_findings: int | None = None,
    ) -> None:
        self._options: dict[str, Any] = {
            "strict": strict,
            "own_names": own_names,
            "models": models,
            "kit_name": kit_name,
            "max_bytes": max_bytes,
            "max_findings": max_findings,
        }
        self._engine = ReportValidator(**self._options)

    def __reduce__(self) -> tuple[Any, tuple[dict[str, Any]]]:
        return _validator, (self._options,)

    def _content(self, document: Document) -> bytes:
        return _bytes_of(document, self._engine.max_bytes)

    def validate(self, document: Document) -> Outcome:
        """Validates one document: bytes, text, the path of a file, or a mapping.

        Raises:
            FileError: The file cannot be read.
        """
        # Bytes are what most documents are.
        content = document if type(document) is bytes else self._content(document)
        return _outcome(self._engine.validate(content))

    def validate_many(
        self, documents: Iterable[Document], *, ordered: bool = False, threads: int = 0
    ) -> Iterator[Judged]:
        """Validates documents on threads, without the GIL, and yields the results.

        Takes at most 8 documents per thread in advance; the threads read files. You may stop iterating early.

        >>> from gatewright import report
        >>> [judged.outcome.valid for judged in report.validate_many([b"{}", b"[]"], ordered=True)]
        [False, False]

        Args:
            documents: Paths as `str` or `os.PathLike`, and documents as bytes. A file with one document per
                line, opened in binary mode, works, too: blank lines (only JSON whitespace) are skipped, but
                count in the positions.
            ordered: Whether to yield results in the order of the documents, or as soon as they are ready.
            threads: Number of threads, at most 64; 0 for one per core.
        """
        if isinstance(documents, (str, bytes, bytearray, memoryview, os.PathLike, Mapping)):
            raise TypeError(
                f"validate_many takes an iterable of documents, not one {type(documents).__name__}: "
                "validate takes one, and a file as a pathlib.Path"
            )
        pool = ReportPool(self._engine, threads, ordered)
        sources: dict[int, tuple[int, Document]] = {}
        number = 0
        for position, document in enumerate(documents):
            if isinstance(document, (bytes, bytearray)) and is_blank_line(bytes(document)):
                continue
            sources[number] = (position, document)
            number += 1
            if isinstance(document, (str, os.PathLike)):
                room = pool.submit(None, os.fspath(document))
            else:
                room = pool.submit(self._content(document), None)
            if not room and (fetched := pool.fetch()) is not None:
                yield _judged(fetched, sources)
        while (fetched := pool.fetch()) is not None:
            yield _judged(fetched, sources)

    def html(
        self,
        document: Document,
        *,
        evidence: str | os.PathLike[str] | None = None,
        page: str | os.PathLike[str] | None = None,
        protocols: Document | None = None,
    ) -> str:
        """The report, or the additional checks, as one self-contained HTML page.

        Args:
            document: A valid report, or additional checks such as the `protocols` of a `CheckResult`.
            evidence: Folder with the check kit's evidence, which the page shows in its cells and links to.
            page: The file to which the page will be written; links are relative to it. Default: the working
                folder.
            protocols: Additional checks of the same run, for a section of the report's page.

        Raises:
            InvalidReport: A document is invalid.
            FileError: A file cannot be read.
        """
        folder = None if evidence is None else os.fspath(evidence)
        place = None if page is None else os.fspath(page)
        checks = None if protocols is None else self._content(protocols)
        try:
            made = self._engine.html(self._content(document), folder, place, checks)
        except OSError as error:
            raise _file_error(str(error)) from error
        return _text(made)

    def junit(self, document: Document) -> str:
        """The report as JUnit XML, one suite per model.

        Raises:
            InvalidReport: The document is not a valid report.
        """
        return _text(self._engine.junit(self._content(document)))

    def sarif(self, document: Document, *, path: str | os.PathLike[str] | None = None) -> str:
        """The failed checks as a SARIF log, for code scanning: one result each, at its line of the document.

        Args:
            document: A valid report.
            path: The file of the report, absolute or relative to the root of the sources. Default: the path
                that is the document, else `report.json`.

        Raises:
            InvalidReport: The document is not a valid report.
        """
        if path is None:
            path = document if isinstance(document, os.PathLike) else "report.json"
        return _text(self._engine.sarif(self._content(document), os.fspath(path)))

    def github_annotations(self, document: Document) -> str:
        """Workflow commands of GitHub Actions, one line per failed check of a report or of additional checks.

        Raises:
            InvalidReport: The document is invalid.
        """
        return _text(self._engine.annotations(self._content(document)))

    def canonical(self, document: Document) -> str:
        """The document in canonical form: members in the order of the schema, two spaces per level.

        Raises:
            InvalidReport: The document is not JSON. It doesn't have to be a valid report.
        """
        return _text(self._engine.canonical(self._content(document)))

    def diff(
        self,
        old: Document,
        new: Document,
        *,
        slower_percent: int = SLOWER_PERCENT,
        slower_ms: int = SLOWER_MS,
    ) -> dict[str, Any]:
        """The changes: lists of cells under `worse`, `better`, `hidden` (failed before, not run now),
        `not_run` (passed before, left out of the new run), `fails_otherwise`, `slower`, `faster`,
        `other_model`; and `old`, `new`, `settings`, `thresholds`.

        Args:
            old: A valid report.
            new: Another valid report.
            slower_percent: A cell is slower if its time grew by more than this percentage of the old time,
                and by more than `slower_ms`. Default: 50.
            slower_ms: In milliseconds. Default: 200.

        Raises:
            InvalidReport: One of them is not a valid report.
        """
        thresholds = (slower_percent, slower_ms)
        text = _text(self._engine.diff(self._content(old), self._content(new), thresholds, as_html=False))
        comparison: dict[str, Any] = json.loads(text)
        return comparison

    def diff_html(
        self,
        old: Document,
        new: Document,
        *,
        slower_percent: int = SLOWER_PERCENT,
        slower_ms: int = SLOWER_MS,
    ) -> str:
        """Like `diff`, but returns one self-contained HTML page."""
        thresholds = (slower_percent, slower_ms)
        return _text(self._engine.diff(self._content(old), self._content(new), thresholds, as_html=True))


class Judged(NamedTuple):
    """One result of `validate_many`."""

    position: int
    """Number of items before this one; for a file opened in binary mode, the line number minus one."""
    source: Document
    """The document as it was passed."""
    outcome: Outcome | None
    """The verdict; None if the file could not be read."""
    error: Exception | None
    """Why the file could not be read, as a FileError."""


class InvalidReport(ValueError):
    """A document to be converted is not a valid report.

    >>> from gatewright import report
    >>> try:
    ...     page = report.html(b"{}")
    ... except report.InvalidReport as invalid:
    ...     print(invalid.outcome.violations[0].message)
    schema_version is missing
    """

    def __init__(self, message: str, outcome: Outcome) -> None:
        super().__init__(message)
        self.outcome = outcome
        """The verdict on the document."""

    def __reduce__(self) -> tuple[type[InvalidReport], tuple[str, Outcome]]:
        return InvalidReport, (str(self), self.outcome)


def _validator(options: dict[str, Any]) -> Validator:
    return Validator(**options)


_default: dict[tuple[bool, bool], Validator] = {}


def _standard(
    strict: bool = False,
    own_names: bool = False,
    models: Sequence[str] | None = None,
    kit_name: str | None = None,
) -> Validator:
    """A validator with these options; a validator without names is created only once."""
    if models is not None or kit_name is not None:
        return Validator(strict=strict, models=models, kit_name=kit_name)
    options = (strict, own_names)
    validator = _default.get(options)
    if validator is None:
        validator = _default[options] = Validator(strict=strict, own_names=own_names)
    return validator


def validate(
    document: Document,
    *,
    strict: bool = False,
    own_names: bool = False,
    models: Sequence[str] | None = None,
    kit_name: str | None = None,
) -> Outcome:
    """Validates one document; see `Validator` for the options and `Validator.validate` for the argument.

    A `str` is the document's text; use `pathlib.Path(name)` for a file. You can pass the `report` of a
    `CheckResult` directly.

    >>> from pathlib import Path
    >>> from gatewright import report
    >>> report.validate(Path("runs/good.json")).valid
    True
    """
    return _standard(strict, own_names, models, kit_name).validate(document)


def validate_many(
    documents: Iterable[Document],
    *,
    strict: bool = False,
    own_names: bool = False,
    models: Sequence[str] | None = None,
    kit_name: str | None = None,
    ordered: bool = False,
    threads: int = 0,
) -> Iterator[Judged]:
    """Validates documents on threads and yields the results; see `Validator.validate_many`.

    A `str` is a path, as in `validate_many(glob.glob("runs/*.json"))`; a document must be bytes.

    >>> from gatewright import report
    >>> for judged in report.validate_many(["runs/good.json", "runs/broken.json"], ordered=True):
    ...     print(judged.source, judged.outcome.valid)
    runs/good.json True
    runs/broken.json False
    """
    validator = _standard(strict, own_names, models, kit_name)
    return validator.validate_many(documents, ordered=ordered, threads=threads)


def html(
    document: Document,
    *,
    evidence: str | os.PathLike[str] | None = None,
    page: str | os.PathLike[str] | None = None,
    protocols: Document | None = None,
) -> str:
    """The report, or the additional checks, as one self-contained HTML page; see `Validator.html`.

    >>> from pathlib import Path
    >>> from gatewright import report
    >>> Path("report.html").write_text(report.html(Path("runs/good.json")), encoding="utf-8") > 0
    True
    """
    return _standard(own_names=True).html(document, evidence=evidence, page=page, protocols=protocols)


def junit(document: Document) -> str:
    """The report as JUnit XML; see `Validator.junit`.

    >>> from pathlib import Path
    >>> from gatewright import report
    >>> report.junit(Path("runs/good.json"))[:5]
    '<?xml'
    """
    return _standard(own_names=True).junit(document)


def sarif(document: Document, *, path: str | os.PathLike[str] | None = None) -> str:
    """The failed checks as a SARIF log; see `Validator.sarif`.

    >>> import json
    >>> from pathlib import Path
    >>> from gatewright import report
    >>> json.loads(report.sarif(Path("runs/good.json")))["version"]
    '2.1.0'
    """
    return _standard(own_names=True).sarif(document, path=path)


def github_annotations(document: Document) -> str:
    """Workflow commands of GitHub Actions, one line per failed check; see `Validator.github_annotations`.

    >>> from pathlib import Path
    >>> from gatewright import report
    >>> print(report.github_annotations(Path("runs/good.json")), end="")
    """
    return _standard(own_names=True).github_annotations(document)


def canonical(document: Document) -> str:
    """The document in canonical form; see `Validator.canonical`.

    >>> from gatewright import report
    >>> print(report.canonical('{"kit": {}, "schema_version": "1.0"}'), end="")
    {
      "schema_version": "1.0",
      "kit": {}
    }
    """
    return _standard(own_names=True).canonical(document)


def diff(
    old: Document, new: Document, *, slower_percent: int = SLOWER_PERCENT, slower_ms: int = SLOWER_MS
) -> dict[str, Any]:
    """The changes from one report to another; see `Validator.diff`.

    >>> from pathlib import Path
    >>> from gatewright import report
    >>> changes = report.diff(Path("runs/good.json"), Path("runs/good.json"), slower_percent=20)
    >>> changes["worse"], changes["thresholds"]["percent"]
    ([], 20)
    """
    return _standard(own_names=True).diff(old, new, slower_percent=slower_percent, slower_ms=slower_ms)


def diff_html(
    old: Document, new: Document, *, slower_percent: int = SLOWER_PERCENT, slower_ms: int = SLOWER_MS
) -> str:
    """Like `diff`, but returns one self-contained HTML page.

    >>> from pathlib import Path
    >>> from gatewright import report
    >>> page = report.diff_html(Path("runs/good.json"), Path("runs/good.json"))
    """
    return _standard(own_names=True).diff_html(old, new, slower_percent=slower_percent, slower_ms=slower_ms)


def _outcome(verdict: _Verdict | None) -> Outcome:
    """The outcome. Without a verdict, the document is clean."""
    if verdict is None:
        return Outcome(True, [], [])
    valid, violations, advisories, more_violations, more_advisories = verdict
    return Outcome(valid, _violations(violations), _violations(advisories), more_violations, more_advisories)


def _violations(findings: list[_Finding]) -> list[Violation]:
    # Faster than the class, which would take the members out of the tuple and put them into another.
    return [tuple.__new__(Violation, finding) for finding in findings]


def _judged(
    fetched: tuple[int, _Verdict | None, str | None], sources: dict[int, tuple[int, Document]]
) -> Judged:
    number, verdict, problem = fetched
    position, source = sources.pop(number)
    if problem is None:
        return Judged(position, source, _outcome(verdict), None)
    is_text = isinstance(source, str) and source.lstrip().startswith("{")
    hint = "; a str is a path here: give the text of a document as bytes" if is_text else ""
    return Judged(position, source, None, _file_error(f"{source!s}: {problem}{hint}"))


def _text(made: _Made) -> str:
    text, refused = made
    if refused is not None:
        message, verdict = refused
        raise InvalidReport(message, _outcome(verdict))
    assert text is not None
    return text


def _file_error(message: str) -> Exception:
    from gatewright.generated.errors import FileError

    return FileError(message)


def _bytes_of(document: Document, most: int) -> bytes:
    """The document. Of a file over the limit, only as much as is needed to reject it."""
    if isinstance(document, str):
        # A lone surrogate has no UTF-8 form: passed on as it is, for the validator to refuse.
        return document.encode("utf-8", "surrogatepass")
    if isinstance(document, os.PathLike):
        try:
            with open(document, "rb") as file:
                return file.read(most + 1)
        except OSError as error:
            raise _file_error(str(error)) from error
    if isinstance(document, (bytes, bytearray, memoryview)):
        return bytes(document)
    if isinstance(document, Mapping):
        return json.dumps(dict(document), ensure_ascii=False).encode("utf-8", "surrogatepass")
    raise TypeError(f"a document must be bytes, text, a path or a mapping, not {type(document).__name__}")
