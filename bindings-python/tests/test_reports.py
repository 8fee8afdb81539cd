"""Processing reports: many verdicts at once, pages, JUnit, comparisons, the canonical form."""

from __future__ import annotations

import copy
import glob
import json
import pickle
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from conftest import VECTORS
from gatewright import FileError, report

BASES = VECTORS / "report" / "bases"
FULL = (BASES / "full.json").read_bytes()
MINIMAL = (BASES / "minimal.json").read_bytes()


def valid(judged: report.Judged) -> bool:
    assert judged.outcome is not None
    return judged.outcome.valid


def test_a_file_is_read_only_up_to_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_bytes(b" " * 5000)
    validator = report.Validator(max_bytes=1000)
    [violation] = validator.validate(file).violations
    assert violation.message == "the document has 1001 bytes"
    with pytest.raises(report.InvalidReport, match="1001 bytes"):
        validator.canonical(file)


def test_validate_many_counts_unlisted_findings_too() -> None:
    validator = report.Validator(max_findings=1)
    [judged] = validator.validate_many([b"[NaN, NaN, NaN]"])
    assert judged.outcome is not None
    assert (len(judged.outcome.violations), judged.outcome.more_violations) == (1, 2)
    with pytest.raises(report.InvalidReport, match=r"\(and 2 more\)"):
        validator.canonical(b"[NaN, NaN, NaN]")


def test_many_documents_are_validated_in_any_order() -> None:
    documents = [MINIMAL if index % 3 else b"{}" for index in range(300)]
    judged = list(report.validate_many(documents))
    assert sorted(one.position for one in judged) == list(range(300))
    for one in judged:
        assert one.source is documents[one.position]
        assert valid(one) == (one.position % 3 != 0)
        assert one.error is None


def test_ordered_results_arrive_in_document_order() -> None:
    judged = report.validate_many((MINIMAL for _ in range(200)), ordered=True, threads=4)
    assert [one.position for one in judged] == list(range(200))


def test_verdicts_match_validate() -> None:
    documents: list[report.Document] = [
        b"{}",
        MINIMAL,
        FULL,
        b'{"a": 1, "a": 2}',
        b"",
        bytearray(b"[]"),
        memoryview(b"1"),
    ]
    for judged in report.validate_many(documents):
        assert judged.outcome == report.validate(judged.source)


def test_threads_read_the_files_and_a_missing_one_retains_its_position(tmp_path: Path) -> None:
    paths = [BASES / "full.json", tmp_path / "missing.json", BASES / "minimal.json"]
    judged = list(report.validate_many(paths, ordered=True))
    assert [one.source for one in judged] == paths
    assert valid(judged[0])
    assert valid(judged[2])
    assert judged[1].outcome is None
    assert isinstance(judged[1].error, FileError)
    assert "missing.json: No such file" in str(judged[1].error)


def test_a_str_is_a_path(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_bytes(MINIMAL)
    (tmp_path / "two.json").write_bytes(FULL)
    paths = [*sorted(glob.glob(f"{tmp_path}/*.json")), f"{tmp_path}/missing.json"]
    judged = list(report.validate_many(paths, ordered=True))
    assert [one.source for one in judged] == paths
    assert [one.outcome is not None and one.outcome.valid for one in judged] == [True, True, False]
    assert isinstance(judged[2].error, FileError)
    for one in (paths[0], tmp_path / "one.json", MINIMAL):
        with pytest.raises(TypeError, match="takes an iterable of documents, not one"):
            list(report.validate_many(one))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    [text] = report.validate_many([MINIMAL.decode()])
    assert "a str is a path here: give the text of a document as bytes" in str(text.error)


def test_a_report_is_taken_as_check_returns_it() -> None:
    document: dict[str, Any] = json.loads(FULL)
    assert report.validate(document).valid
    assert report.diff(document, FULL)["worse"] == []
    [judged] = report.validate_many([document])
    assert valid(judged)
    del document["kit"]
    assert [violation.message for violation in report.validate(document).violations] == ["kit is missing"]


def test_name_of_a_file_in_place_of_its_text_is_reported() -> None:
    [violation] = report.validate("runs/report.json").violations
    assert "this is the name of a file" in violation.message
    with pytest.raises(report.InvalidReport, match="this is the name of a file"):
        report.html("runs/report.json")


def test_blank_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    lines = tmp_path / "reports.ndjson"
    good = json.dumps(json.loads(MINIMAL))
    lines.write_bytes(f"\n{good}\r\n\r\n \t\n{{}}\n\n".encode())
    with lines.open("rb") as file:
        judged = list(report.validate_many(file, ordered=True))
    assert [(one.position, valid(one)) for one in judged] == [(1, True), (4, False)]
    empty = list(report.validate_many([b"", b" ", b"\n", bytearray(b"\r\n"), b"\n1\n"], ordered=True))
    assert [(one.position, valid(one)) for one in empty] == [(0, False), (4, False)]


def line_cases() -> Iterator[Any]:
    for case in json.loads((VECTORS / "report-forms" / "lines.json").read_text())["cases"]:
        yield pytest.param(case, id=case["name"])


@pytest.mark.parametrize("case", list(line_cases()))
def test_line_vectors(tmp_path: Path, case: dict[str, Any]) -> None:
    file = tmp_path / "reports.ndjson"
    file.write_bytes(bytes.fromhex(case["hex"]) if "hex" in case else case["text"].encode())
    found = []
    with file.open("rb") as lines:
        for one in report.validate_many(lines, ordered=True):
            assert one.outcome is not None
            found.append({"line": one.position + 1, "rule": one.outcome.violations[0].rule})
    assert found == case["lines"]


def test_documents_are_read_ahead_only_up_to_a_limit() -> None:
    taken = 0

    def documents() -> Iterator[bytes]:
        nonlocal taken
        for _ in range(1000):
            taken += 1
            yield MINIMAL

    for fetched, _ in enumerate(report.validate_many(documents(), threads=2), start=1):
        assert taken <= fetched + 16
        if fetched == 100:
            break


def test_open_file_of_one_document_per_line_is_an_iterable(tmp_path: Path) -> None:
    lines = tmp_path / "reports.ndjson"
    lines.write_text(json.dumps(json.loads(MINIMAL)) + "\n{}\n")
    with lines.open("rb") as file:
        assert [valid(one) for one in report.validate_many(file, ordered=True)] == [True, False]


def test_options_apply_to_every_document() -> None:
    ours = MINIMAL.replace(b"model-sol", b"a").replace(b"gatewright-checkkit", b"our-kit")
    validator = report.Validator(models=["a"], kit_name="our-kit", strict=True, max_bytes=len(ours))
    assert [valid(one) for one in validator.validate_many([ours, MINIMAL, ours + b" "], ordered=True)] == [
        True,
        False,
        False,
    ]
    assert [valid(one) for one in report.validate_many([ours], models=["a"], kit_name="our-kit")] == [True]


def test_validator_pickles_as_its_options() -> None:
    ours = MINIMAL.replace(b"model-sol", b"a")
    validator = pickle.loads(pickle.dumps(report.Validator(models=["a"], max_bytes=len(ours))))
    assert [valid(one) for one in validator.validate_many([ours, MINIMAL, ours + b" "], ordered=True)] == [
        True,
        False,
        False,
    ]


def test_error_of_the_iterable_reaches_the_caller() -> None:
    def documents() -> Iterator[bytes]:
        yield MINIMAL
        raise KeyError("source")

    with pytest.raises(KeyError, match="source"):
        list(report.validate_many(documents()))
    with pytest.raises(TypeError, match="a document must be bytes"):
        list(report.validate_many([1]))  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]


def test_other_threads_run_while_documents_are_validated() -> None:
    """A counter in another thread makes progress while one large document is validated: the GIL is
    released."""
    document = b"[" + b"0," * 3_000_000 + b"0]"
    count = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal count
        while not done.wait(0.001):
            count += 1

    thread = threading.Thread(target=tick)
    thread.start()
    before = time.monotonic()
    (judged,) = report.validate_many([document])
    elapsed = time.monotonic() - before
    done.set()
    thread.join()
    assert not valid(judged)
    assert count > elapsed * 50


def test_page_contains_and_links_the_evidence(tmp_path: Path) -> None:
    evidence = tmp_path / "evidence"
    evidence.mkdir()
    seen = {"what": "HTTP status", "expected": "200", "observed": "<500>", "held": False}
    cell = {"id": "responses_text", "model": "model-sol", "assertions": [seen], "exchange": None}
    (evidence / "02.json").write_text(json.dumps(cell))
    page = report.html(FULL, evidence=evidence, page=tmp_path / "page.html")
    assert 'href="./evidence/02.json"' in page
    assert "&lt;500&gt;" in page
    assert "<script" not in page
    (evidence / "03.json").write_text("{}")
    with pytest.raises(FileError, match=r"03\.json: no evidence"):
        report.html(FULL, evidence=evidence)


def test_junit_and_annotations_name_the_failures() -> None:
    root = ElementTree.fromstring(report.junit(BASES / "full.json"))
    assert (root.get("tests"), root.get("failures")) == ("9", "2")
    lines = report.github_annotations(FULL).splitlines()
    assert len(lines) == 2
    assert all(line.startswith("::error title=") for line in lines)


def test_sarif_places_the_failures_in_the_document() -> None:
    def places(log: str) -> list[tuple[str, int]]:
        results = json.loads(log)["runs"][0]["results"]
        locations = [result["locations"][0]["physicalLocation"] for result in results]
        return [
            (location["artifactLocation"]["uri"], location["region"]["startLine"]) for location in locations
        ]

    [(first, line), (_, next_line)] = places(report.sarif(BASES / "full.json"))
    assert first.endswith("/full.json")
    assert 1 < line < next_line
    on_one_line = json.dumps(json.loads(FULL))
    assert places(report.sarif(on_one_line)) == [("report.json", 1)] * 2
    assert places(report.sarif(on_one_line, path="runs/a.json")) == [("runs/a.json", 1)] * 2


def protocol_cases() -> Iterator[tuple[str, dict[str, Any], list[dict[str, str]]]]:
    vectors = json.loads((VECTORS / "report-forms" / "protocols.json").read_text())
    for case in vectors["cases"]:
        document = copy.deepcopy(vectors["document"])
        for pointer, value in case["set"].items():
            *parents, name = pointer.split("/")[1:]
            target = document
            for step in parents:
                target = target[int(step) if isinstance(target, list) else step]
            target[name] = value
        yield case["name"], document, case["violations"]


@pytest.mark.parametrize(("name", "document", "violations"), list(protocol_cases()))
def test_protocol_vectors(name: str, document: dict[str, Any], violations: list[dict[str, str]]) -> None:
    outcome = report.validate(document)
    found = [{"pointer": violation.pointer, "rule": violation.rule} for violation in outcome.violations]
    assert (found, outcome.valid) == (violations, not violations), name
    assert all(violation.section == "ours" for violation in outcome.violations)
    if outcome.valid:
        assert "Other protocols" in report.html(document)
        assert report.html(FULL, protocols=document) != report.html(FULL)
        assert report.github_annotations(document).startswith("::error title=messages_text model-sol::")
    else:
        with pytest.raises(report.InvalidReport):
            report.html(document)
        with pytest.raises(report.InvalidReport):
            report.html(FULL, protocols=document)
    with pytest.raises(report.InvalidReport):
        report.junit(document)


def test_invalid_report_is_rejected_with_its_verdict() -> None:
    for make in (report.html, report.junit, report.sarif, report.github_annotations, report.canonical):
        with pytest.raises(report.InvalidReport) as raised:
            make(b"[")
        assert raised.value.outcome.violations[0].rule == "syntax"
    with pytest.raises(report.InvalidReport, match=r"kit is missing.*and \d+ more"):
        report.diff('{"schema_version": "1.0"}', FULL)
    again = pickle.loads(pickle.dumps(raised.value))
    assert again.outcome == raised.value.outcome


def test_comparison_as_data_and_as_page() -> None:
    slower = FULL.replace(b'"duration_ms": 340', b'"duration_ms": 3400')
    comparison = report.diff(FULL, slower)
    assert comparison["slower"] == [
        {"id": "responses_text", "model": "model-sol", "old_ms": 340, "new_ms": 3400}
    ]
    assert comparison["worse"] == []
    assert report.diff(FULL, slower, slower_ms=3060)["slower"] == []
    assert report.diff(FULL, slower, slower_percent=900)["slower"] == []
    assert "Nothing got worse" in report.diff_html(FULL, slower)


def cases(topic: str) -> list[dict[str, object]]:
    vectors = json.loads((VECTORS / "report-forms" / f"{topic}.json").read_text())
    found: list[dict[str, object]] = vectors["cases"]
    return found


@pytest.mark.parametrize("case", cases("canonical"), ids=lambda case: case["name"])
def test_canonical_vectors(case: dict[str, str]) -> None:
    assert report.canonical(case["text"]) == case["canonical"]


@pytest.mark.parametrize("case", cases("refused"), ids=lambda case: case["name"])
def test_refusal_vectors(case: dict[str, Any]) -> None:
    document = json.loads(FULL)
    for pointer, value in case["set"].items():
        *parents, name = pointer.split("/")[1:]
        target = document
        for step in parents:
            target = target[step]
        target[name] = value
    with pytest.raises(report.InvalidReport) as raised:
        report.Validator(strict=case["strict"], max_findings=1).junit(json.dumps(document))
    assert str(raised.value) == case["says"]


@pytest.mark.parametrize("case", cases("diff"), ids=lambda case: case["name"])
def test_diff_vectors(case: dict[str, dict[str, object]]) -> None:
    def document(edits: dict[str, object]) -> str:
        base = json.loads(FULL)
        for pointer, value in edits.items():
            *parents, name = pointer.split("/")[1:]
            target = base
            for step in parents:
                target = target[int(step) if isinstance(target, list) else step]
            target[int(name) if isinstance(target, list) else name] = value
        return json.dumps(base)

    comparison = report.diff(document(case["old"]), document(case["new"]))
    for name in (
        "worse",
        "better",
        "hidden",
        "not_run",
        "fails_otherwise",
        "slower",
        "faster",
        "other_model",
        "settings",
    ):
        assert comparison[name] == case["diff"].get(name, []), name
