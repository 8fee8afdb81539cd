"""Webhooks (2.7, 6): the vectors, the reference implementation, our gateway, and the inputs that frameworks
provide."""

from __future__ import annotations

import asyncio
import base64
import email.message
import hashlib
import hmac
import json
import os
import queue
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any

import gatewright
import pytest
import standardwebhooks
from conftest import ROOT, VECTORS, Connection
from gatewright import webhooks

Serve = Callable[[Callable[[Connection], None]], str]

VECTOR = json.loads((VECTORS / "webhooks" / "verify.json").read_text())
SECRET: str = VECTOR["secrets"]["a"]
BODY: bytes = VECTOR["body"].encode()


def body_of(given: dict[str, Any] | None) -> bytes:
    if given is None:
        return BODY
    found = given["text"].encode() if "text" in given else bytes.fromhex(given["hex"])
    return found * given.get("times", 1)


def signed(secret: str, message_id: str, timestamp: str, body: bytes) -> str:
    """Uses the reference where possible: it signs only whole seconds and UTF-8."""
    try:
        moment = datetime.fromtimestamp(int(timestamp), tz=timezone.utc)
        return standardwebhooks.Webhook(secret).sign(message_id, moment, body.decode())
    except (ValueError, OverflowError):
        key = base64.b64decode(secret.removeprefix("whsec_"))
        digest = hmac.new(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
        return "v1," + base64.b64encode(digest).decode()


def signature(given: Any, case: dict[str, Any], timestamp: str) -> str:
    if isinstance(given, str):
        return given
    if "age_s" in given:
        timestamp = str(int(time.time()) - given["age_s"])
    made = signed(
        VECTOR["secrets"][given["secret"]],
        given.get("id", VECTOR["id"]),
        timestamp,
        body_of(given.get("body", case.get("body"))),
    )
    version = given.get("version", "v1")
    made = made.removeprefix("v1,") if version == "" else version + made.removeprefix("v1")
    return made[: len(made) - given.get("cut", 0)]


def headers_of(case: dict[str, Any]) -> list[tuple[str, str]]:
    put = case.get("set", {})
    timestamp = put.get("webhook-timestamp", str(int(time.time()) - case.get("age_s", 0)))
    signatures = [signature(given, case, timestamp) for given in case["signatures"]]
    headers = {
        "content-type": "application/json",
        "webhook-id": VECTOR["id"],
        "webhook-timestamp": timestamp,
        "webhook-signature": case.get("separator", " ").join(signatures),
    } | put
    kept = [(name, value) for name, value in headers.items() if name not in case.get("remove", [])]
    named = [(case.get("rename", {}).get(name, name), value) for name, value in kept]
    return named + [(name, value) for name, value in case.get("add", [])]


@pytest.mark.parametrize("case", VECTOR["cases"], ids=lambda case: case["name"])
def test_webhook_vectors(case: dict[str, Any]) -> None:
    secrets = [VECTOR["secrets"][name] for name in case["secrets"]]
    if "error" not in case:
        task = webhooks.unwrap(body_of(case.get("body")), headers_of(case), secrets)
        assert {name: task[name] for name in case["task"]} == case["task"]
        return
    kinds = {"decode": gatewright.DecodeError, "configuration": gatewright.ConfigurationError}
    expected = kinds.get(case["error"], gatewright.WebhookSignatureError)
    with pytest.raises(gatewright.GatewrightError) as caught:
        webhooks.unwrap(body_of(case.get("body")), headers_of(case), secrets)
    assert type(caught.value) is expected
    if expected is gatewright.WebhookSignatureError:
        assert caught.value.code == case["error"]
    assert caught.value.param == case.get("param")
    for secret in VECTOR["secrets"].values():
        assert secret.removeprefix("whsec_") not in repr(caught.value) + str(caught.value)


def fresh(body: bytes = BODY, secret: str = SECRET) -> dict[str, str]:
    timestamp = str(int(time.time()))
    return {
        "webhook-id": "msg_1",
        "webhook-timestamp": timestamp,
        "webhook-signature": signed(secret, "msg_1", timestamp, body),
    }


def test_headers_are_accepted_as_frameworks_provide_them() -> None:
    headers = fresh()
    message = email.message.Message()
    for name, value in headers.items():
        message[name.title()] = value
    scope = [(name.encode(), value.encode()) for name, value in headers.items()] + [(b"x-other", b"\xff")]
    lists = {name: [value] for name, value in headers.items()} | {"accept": [1, 2]}
    for given in (headers, message, scope, lists, list(headers.items())):
        assert webhooks.unwrap(BODY, given, SECRET).id == "task_1"  # type: ignore[arg-type]
    message["Webhook-Id"] = "msg_2"
    with pytest.raises(gatewright.WebhookSignatureError) as caught:
        webhooks.unwrap(BODY, message, SECRET)  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.param) == ("duplicate_header", "webhook-id")


def test_bodies_are_bytes_or_text_and_parsed_objects_are_rejected() -> None:
    headers = fresh()
    for body in (BODY, bytearray(BODY), memoryview(BODY), BODY.decode()):
        assert webhooks.unwrap(body, headers, SECRET).status == "completed"
    for parsed in (json.loads(BODY), gatewright.Record(json.loads(BODY)), None):
        with pytest.raises(TypeError, match=r"as it arrived.*await request\.body\(\)"):
            webhooks.unwrap(parsed, headers, SECRET)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="as it arrived"):
            webhooks.parse_unsigned(parsed)  # type: ignore[arg-type]


def test_secrets_come_from_the_environment_unless_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GATEWRIGHT_WEBHOOK_SECRET", raising=False)
    with pytest.raises(gatewright.ConfigurationError, match="GATEWRIGHT_WEBHOOK_SECRET"):
        webhooks.unwrap(BODY, fresh())
    other = VECTOR["secrets"]["b"]
    monkeypatch.setenv("GATEWRIGHT_WEBHOOK_SECRET", f"{other} {SECRET}")
    assert webhooks.unwrap(BODY, fresh()).id == "task_1"
    assert webhooks.unwrap(BODY, fresh(secret=other)).id == "task_1"
    with pytest.raises(gatewright.WebhookSignatureError):
        webhooks.unwrap(BODY, fresh(), other)
    with pytest.raises(gatewright.ConfigurationError) as caught:
        webhooks.unwrap(BODY, fresh(), "canary")
    assert "canary" not in str(caught.value)


def test_both_clients_have_webhooks_and_neither_needs_a_network() -> None:
    for client in (
        gatewright.Client("http://127.0.0.1:9", "key"),
        gatewright.AsyncClient("http://127.0.0.1:9", "key"),
    ):
        assert client.webhooks.unwrap(BODY, fresh(), [SECRET]).id == "task_1"
        assert client.webhooks.parse_unsigned(BODY).model == "video_model_1"
        with pytest.raises(gatewright.DecodeError):
            client.webhooks.parse_unsigned(b"not json")


@pytest.fixture
def posting_gateway() -> Iterator[dict[str, str]]:
    """A gateway that may post to this machine."""
    program = os.environ.get("GATEWRIGHT_BIN") or ROOT / "target" / "debug" / "gatewright"
    command = [program, "serve", "--json", "--listen", "127.0.0.1:0", "--allow-private-webhooks"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
        process.terminate()


async def test_we_and_the_reference_accept_what_the_gateway_posts(
    posting_gateway: dict[str, str], serve: Serve
) -> None:
    received: queue.Queue[tuple[dict[str, str], bytes]] = queue.Queue()

    def take(connection: Connection) -> None:
        headers = dict(line.split(": ", 1) for line in connection.head.split("\r\n")[1:])
        received.put((headers, connection.body))
        connection.answer(b"", "204 No Content")

    secret = posting_gateway["webhook_secret"]
    async with gatewright.AsyncClient(posting_gateway["listening"], posting_gateway["key"]) as client:
        for prompt, status in (("waves", "completed"), ("waves [fail]", "failed")):
            task = await client.videos.generations.create(
                model="video_model_1", prompt=prompt, duration=3, resolution="720p", webhook_url=serve(take)
            )
            headers, body = await asyncio.to_thread(received.get, timeout=30)
            event = client.webhooks.unwrap(body, headers, secret)
            assert (event.id, event.status) == (task.id, status)
            assert standardwebhooks.Webhook(secret).verify(body, headers) == event
            with pytest.raises(gatewright.WebhookSignatureError):
                client.webhooks.unwrap(body + b" ", headers, secret)
