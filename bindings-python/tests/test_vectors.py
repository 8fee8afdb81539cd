"""The vectors that all languages share (tests/vectors/README.md), through this package."""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gatewright
import pytest
from conftest import ROOT, VECTORS, Connection
from gatewright import AsyncClient, Client, report

# Reports: 2.12.


def report_cases() -> Iterator[Any]:
    for file in sorted((VECTORS / "report").glob("*.json")):
        for case in json.loads(file.read_text())["cases"]:
            yield pytest.param(case, id=f"{file.stem}/{case['name']}")


def document(case: dict[str, Any]) -> bytes:
    if "base64" in case:
        return base64.b64decode(case["base64"])
    if "text" in case:
        text = case["text"]
        return (text if isinstance(text, str) else "\n".join(text)).encode()
    if "document" in case:
        value = case["document"]
    else:
        value = json.loads((VECTORS / "report" / "bases" / f"{case['base']}.json").read_text())
    for pointer, member in case.get("set", {}).items():
        put(value, pointer, member)
    for pointer in case.get("remove", []):
        parent, step = at(value, pointer)
        del parent[step]
    for pointer, (text, times) in case.get("fill", {}).items():
        put(value, pointer, text * times)
    raw = case.get("raw", {})
    for number, pointer in enumerate(raw):
        put(value, pointer, f"@raw {number}@")
    written = json.dumps(value, ensure_ascii=False)
    for number, text in enumerate(raw.values()):
        written = written.replace(f'"@raw {number}@"', text)
    return written.encode()


def at(value: Any, pointer: str) -> tuple[Any, Any]:
    *way, last = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    for step in way:
        value = value[int(step) if isinstance(value, list) else step]
    return value, int(last) if isinstance(value, list) else last


def put(value: Any, pointer: str, member: Any) -> None:
    parent, step = at(value, pointer)
    if isinstance(parent, list) and step == len(parent):
        parent.append(member)
    else:
        parent[step] = member


@pytest.mark.parametrize("case", list(report_cases()))
def test_report_vectors(case: dict[str, Any]) -> None:
    outcome = report.Validator(**case.get("options", {})).validate(document(case))
    assert outcome.valid is case["valid"]
    for name in ("violations", "advisories"):
        assert getattr(outcome, f"more_{name}") == case.get(f"more_{name}", 0)
        expected = case.get(name, [])
        found = [finding._asdict() for finding in getattr(outcome, name)]
        assert [
            {key: one.get(key) for key in wanted} for one, wanted in zip(found, expected, strict=True)
        ] == expected


# Requests against the rules of the specification and the catalog: sections 2, 8.


def catalogued() -> set[str]:
    catalog = json.loads((ROOT / "spec" / "catalog.json").read_text())
    return {model["id"] for name in catalog if name.endswith("_models") for model in catalog[name]}


def limit_cases() -> Iterator[Any]:
    known = catalogued()
    names = ("requests.json", "tools.json", "native.json", "messages.json")
    files = [VECTORS / "limits" / name for name in names]
    for case in (case for file in files for case in json.loads(file.read_text())["cases"]):
        # Excluded: what arguments cannot express, what the client sets itself, and models it does not know.
        body = case["body"]
        if (
            isinstance(body, dict)
            and "stream" not in body
            and body.get("stream_format") != "sse"
            and ("model" not in body or body["model"] in known)
        ):
            yield pytest.param(case, id=case["name"])


METHODS: dict[str, Callable[[Client], Callable[..., Any]]] = {
    "create_chat_completion": lambda client: client.chat.completions.create,
    "create_response": lambda client: client.responses.create,
    "compact_response": lambda client: client.responses.compact,
    "create_message": lambda client: client.messages.create,
    "count_message_tokens": lambda client: client.messages.count_tokens,
    "create_embedding": lambda client: client.embeddings.create,
    "create_rerank": lambda client: client.rerank.create,
    "create_moderation": lambda client: client.moderations.create,
    "create_speech": lambda client: client.audio.speech.create,
    "create_image": lambda client: client.images.generate,
    "create_video": lambda client: client.videos.generations.create,
    "generate_content": lambda client: client.native.generate_content,
    "count_tokens": lambda client: client.native.count_tokens,
    "stream_generate_content": lambda client: client.native.stream_generate_content,
}


def test_enough_limit_cases_name_a_model_of_the_catalog() -> None:
    assert len(list(limit_cases())) > 50


@pytest.mark.parametrize("case", list(limit_cases()))
def test_limit_vectors(serve: Callable[[Callable[[Connection], None]], str], case: dict[str, Any]) -> None:
    bodies: list[bytes] = []

    kind = "audio/wav" if case["operation"] == "create_speech" else "application/json"

    def answer(connection: Connection) -> None:
        bodies.append(connection.body)
        connection.answer(b"{}", headers=f"content-type: {kind}")

    client = Client(serve(answer), "key", validate=True, max_retries=0)
    # Passed as extra_body, since a case may lack what the signature requires.
    method = METHODS[case["operation"]](client)
    signature = inspect.signature(method)
    arguments: dict[str, Any] = {
        one.name: gatewright.NOT_GIVEN
        for one in signature.parameters.values()
        if one.default is one.empty and one.kind is not one.VAR_KEYWORD
    }
    if "generate_content" in case["operation"] or case["operation"] == "count_tokens":
        # The native protocol has the model in the path, not in the body.
        arguments["model"] = "model-luna"
    if case["violations"]:
        with pytest.raises(gatewright.InvalidRequestError) as caught:
            method(**arguments, extra_body=case["body"])
        # In the order of the specification's fields, not of the body's members.
        found = {(one["pointer"], one["rule"]) for one in caught.value.violations}
        assert found == {(one["pointer"], one["rule"]) for one in case["violations"]}
        assert bodies == []
    else:
        method(**arguments, extra_body=case["body"])
        assert json.loads(bodies[0]) == case["body"]


# What responses promise: sections 2.7 and 2.11.


def answer_cases(name: str) -> Iterator[Any]:
    for case in json.loads((VECTORS / "answers" / f"{name}.json").read_text())["cases"]:
        yield pytest.param(case, id=case["name"])


@pytest.mark.parametrize("case", list(answer_cases("presence")))
def test_presence_vectors(serve: Callable[[Callable[[Connection], None]], str], case: dict[str, Any]) -> None:
    base_url = serve(lambda connection: connection.answer(json.dumps(case["answer"]).encode()))
    arguments = case.get("body", {"task_id": "m"})
    operation = case["operation"]
    retrieve = {"retrieve_video": lambda client: client.videos.generations.retrieve}
    method = {**METHODS, **retrieve}[operation]
    with Client(base_url, "key", max_retries=0) as client:
        # Without validation, a response that lacks members is returned unchanged.
        assert method(client)(**arguments) == case["answer"]
        if not case["violations"]:
            assert method(client)(**arguments, validate=True) == case["answer"]
            return
        with pytest.raises(gatewright.DecodeError) as caught:
            method(client)(**arguments, validate=True)
    assert caught.value.violations == case["violations"]
    assert caught.value.operation == operation
    assert caught.value.body == case["answer"]


@pytest.mark.parametrize("case", list(answer_cases("repaired")))
def test_answers_that_are_nearly_json_are_repaired(
    serve: Callable[[Callable[[Connection], None]], str], case: dict[str, Any]
) -> None:
    base_url = serve(lambda connection: connection.answer(case["answer"].encode()))
    # A call that validates reads the answer, too.
    with Client(base_url, "key", max_retries=0, validate=True) as client:
        method = METHODS[case["operation"]](client)
        if "error" not in case:
            assert method(**case["body"]) == case["document"]
            return
        with pytest.raises(gatewright.DecodeError) as caught:
            method(**case["body"])
    assert case["error"] in caught.value.message


# Streams as HTTP answers: streams.md.

SILENCE = 0.4


def stream_cases() -> Iterator[Any]:
    for case in json.loads((VECTORS / "sse" / "streams.json").read_text())["cases"]:
        yield pytest.param(case, id=case["name"])


def packet(encoded: dict[str, str]) -> bytes:
    return bytes.fromhex(encoded["hex"]) if "hex" in encoded else encoded["text"].encode()


def play(response: dict[str, Any]) -> Callable[[Connection], None]:
    packets = [packet(one) for one in response["packets"]]
    head = f"HTTP/1.1 {response['status']} X\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in response["headers"])
    whole = b"".join(packets)
    if response["framing"] == "length":
        head += f"content-length: {len(whole)}\r\n"
    elif response["framing"] == "short":
        head += f"content-length: {len(whole) + 100}\r\n"
    elif response["framing"] == "close":
        head += "connection: close\r\n"
    else:
        head += "transfer-encoding: chunked\r\n"

    def handle(connection: Connection) -> None:
        connection.send(head.encode() + b"\r\n")
        if response["framing"] != "chunked":
            connection.send(whole)
            return

        def send(data: bytes) -> None:
            connection.send(b"%x\r\n%b\r\n" % (len(data), data))

        for data in filter(None, packets):
            send(data)
            time.sleep(0.001)
        if response["end"] == "clean":
            connection.send(b"0\r\n\r\n")
        elif response["end"] == "reset":
            # A reset discards what has not been read.
            connection.wait_until_read()
            connection.reset()
        elif response["end"] == "hang":
            connection.wait_until_closed(10)
        else:
            assert response["end"] == "comments"
            for _ in range(20):
                send(b": keep-alive\n\n")
                time.sleep(SILENCE / 4)

    return handle


ARGUMENTS: dict[str, dict[str, Any]] = {
    "create_chat_completion": {"messages": [], "stream": True},
    "create_response": {"input": "x", "stream": True},
    "create_message": {"max_tokens": 16, "messages": [], "stream": True},
    "stream_generate_content": {"contents": []},
}
FINAL = {
    "create_chat_completion": "get_final_completion",
    "create_response": "get_final_response",
    "create_message": "get_final_message",
    "stream_generate_content": "get_final_response",
}
IMPATIENT: dict[str, Any] = {"idle_timeout": SILENCE, "event_timeout": 2 * SILENCE}
"""For the cases that end by a timeout."""


def read_sync(client: Any, operation: str, level: str) -> tuple[list[Any], Any, gatewright.APIError | None]:
    """The results of reading a stream at a level, its whole document at the level `final`, and how it
    ends."""
    events: list[Any] = []
    try:
        stream = METHODS[operation](client)(model="m", **ARGUMENTS[operation])
        if level == "final":
            return events, getattr(stream, FINAL[operation])(), None
        for event in stream.text() if level == "text" else stream:
            events.append(event)
    except gatewright.APIError as error:
        return events, None, error
    return events, None, None


async def read_async(
    client: Any, operation: str, level: str
) -> tuple[list[Any], Any, gatewright.APIError | None]:
    """Like `read_sync`, with the async client, whose methods have the same names."""
    events: list[Any] = []
    try:
        stream = await METHODS[operation](client)(model="m", **ARGUMENTS[operation])
        if level == "final":
            return events, await getattr(stream, FINAL[operation])(), None
        async for event in stream.text() if level == "text" else stream:
            events.append(event)
    except gatewright.APIError as error:
        return events, None, error
    return events, None, None


@pytest.mark.parametrize("level", ["events", "text", "final"])
@pytest.mark.parametrize("face", ["sync", "async"])
@pytest.mark.parametrize("case", list(stream_cases()))
def test_stream_vectors(
    serve: Callable[[Callable[[Connection], None]], str], case: dict[str, Any], face: str, level: str
) -> None:
    base_url = serve(play(case["response"]))
    options = IMPATIENT if case["error"] is not None and case["error"]["kind"] == "timeout" else {}
    started = time.monotonic()
    if face == "sync":
        client = Client(base_url, "key", max_retries=0, **options)
        events, final, error = read_sync(client, case["operation"], level)
    else:
        async_client = AsyncClient(base_url, "key", max_retries=0, **options)
        events, final, error = asyncio.run(read_async(async_client, case["operation"], level))
    # None waits for one of the default timeouts, which are longer.
    assert time.monotonic() - started < 30
    if level == "events":
        assert events == case["data"]
    elif level == "text":
        assert "" not in events
        assert "".join(events) == case["text"]
    elif "final" in case:
        assert final == case["final"]
    if level == "text" and case.get("final", {}).get("status") == "failed":
        # The text alone does not show that it failed.
        assert isinstance(error, gatewright.StreamError)
        assert error.code == case["final"]["error"]["code"]
        assert error.partial == case["final"]
    elif case["error"] is None:
        assert error is None
    else:
        assert error is not None
        assert error.kind == case["error"]["kind"]
        assert error.code == case["error"]["code"]
        if case["error"]["message"] is not None:
            assert error.message == case["error"]["message"]
        assert error.status_code == case["response"]["status"]
        assert error.request_id == dict(case["response"]["headers"]).get("x-request-id")
        assert error.partial == case["partial"]
        if case["response"]["status"] < 300:
            assert error.received is not None
            assert error.received.events == len(case["data"])
        else:
            assert error.received is None


# Other promises of the validator's interface.


def test_text_bytes_and_paths_are_distinguished(tmp_path: Path) -> None:
    text = (VECTORS / "report" / "bases" / "minimal.json").read_text()
    path = tmp_path / "report.json"
    path.write_text(text)
    for given in (text, text.encode(), bytearray(text.encode()), memoryview(text.encode()), path):
        assert report.validate(given).valid
    # A file's name as a str is a document, and not valid JSON.
    assert report.validate(str(path)).violations[0].rule == "syntax"
    with pytest.raises(gatewright.FileError, match=r"missing\.json"):
        report.validate(tmp_path / "missing.json")
    with pytest.raises(TypeError):
        report.validate(5)  # type: ignore[arg-type]


def test_a_lone_surrogate_in_text_is_a_violation() -> None:
    outcome = report.validate('{"a": "\ud800"}')
    assert [violation.rule for violation in outcome.violations] == ["encoding"]


def test_strict_makes_advisories_count() -> None:
    value = json.loads((VECTORS / "report" / "bases" / "minimal.json").read_text())
    value["summary"]["passed"] += 1
    text = json.dumps(value)
    assert report.validate(text).valid
    strict = report.validate(text, strict=True)
    assert not strict.valid
    assert [advisory.rule for advisory in strict.advisories] == ["tally"]
