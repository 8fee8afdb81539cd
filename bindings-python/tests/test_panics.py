"""Panics in the client, which tests cause on purpose: each ends as an error of its call. Only builds with
debug assertions can do that, so packages are tested without this file (`cargo xtask test --packages`)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gatewright
import pytest
from conftest import Gateway
from gatewright import AsyncClient, Client, _engine, report, webhooks

MESSAGES: list[gatewright.types.ChatMessageParam] = [{"role": "user", "content": "Hi"}]
TASK = {"id": "t1", "status": "processing", "created": 1, "model": "m"}


@pytest.fixture
def panic_at() -> Iterator[Callable[[str], None]]:
    make: Callable[[str], None] = vars(_engine)["panic_at"]
    yield make
    make("nowhere")


def raises() -> Any:
    return pytest.raises(gatewright.InternalError, match="the client itself failed")


@pytest.mark.parametrize("place", ["call", "answer"])
def test_a_panic_in_a_call_is_an_error_of_that_call(
    gateway: Gateway, panic_at: Callable[[str], None], place: str
) -> None:
    async def use(client: AsyncClient) -> None:
        panic_at(place)
        with raises():
            await asyncio.wait_for(client.models.list(), 10)
        panic_at("call")
        with raises():
            await asyncio.wait_for(client.videos.generations.wait("t1"), 10)
        panic_at("nowhere")
        assert (await client.models.list()).data

    with Client(gateway.base_url, gateway.key) as client:
        panic_at(place)
        with raises():
            client.models.list()
        panic_at("call")
        with raises():
            client.videos.generations.wait("t1")
        with raises():
            client.chat.completions.create(model="model-sol", messages=MESSAGES, stream=True)
        panic_at("nowhere")
        assert client.models.list().data
    asyncio.run(_with_async(gateway, use))


async def _with_async(gateway: Gateway, use: Callable[[AsyncClient], Any]) -> None:
    async with AsyncClient(gateway.base_url, gateway.key) as client:
        await use(client)


@pytest.mark.parametrize("place", ["stream", "answer"])
def test_a_panic_in_a_stream_ends_it_for_its_reader(
    gateway: Gateway, panic_at: Callable[[str], None], place: str
) -> None:
    def read(client: Client) -> gatewright.ChatCompletionStream:
        return client.chat.completions.create(model="model-sol", messages=MESSAGES, stream=True)

    async def use(client: AsyncClient) -> None:
        panic_at("nowhere")
        stream = await client.chat.completions.create(model="model-sol", messages=MESSAGES, stream=True)
        whole = await client.chat.completions.create(model="model-sol", messages=MESSAGES, stream=True)
        panic_at(place)
        with raises():
            await asyncio.wait_for(anext(stream), 10)
        with raises():
            await asyncio.wait_for(whole.get_final_completion(), 10)

    with Client(gateway.base_url, gateway.key) as client:
        stream, text, whole = read(client), read(client), read(client)
        panic_at(place)
        with raises():
            next(stream)
        if place == "stream":
            with raises():
                next(text.text())
            # It is over: nothing waits for data that cannot arrive.
            assert next(stream, None) is None
            with raises():
                text.get_final_completion()
        with raises():
            whole.get_final_completion()
        panic_at("nowhere")
        assert read(client).get_final_completion().choices
    asyncio.run(_with_async(gateway, use))


def test_a_panic_in_a_callback_or_client_constructor_is_an_error(
    gateway: Gateway, panic_at: Callable[[str], None]
) -> None:
    class Middleware:
        def before(self, attempt: gatewright.middleware.Attempt) -> None:
            pass

    async def use(client: AsyncClient) -> None:
        with raises():
            await asyncio.wait_for(client.models.list(), 10)

    client = Client(gateway.base_url, gateway.key, middleware=[Middleware()])
    asynchronous = AsyncClient(gateway.base_url, gateway.key, middleware=[Middleware()])
    panic_at("callback")
    with raises():
        client.models.list()
    asyncio.run(use(asynchronous))
    panic_at("build")
    with raises():
        Client(gateway.base_url, gateway.key)


def test_a_panic_in_report_processing_is_an_error(panic_at: Callable[[str], None]) -> None:
    validator = report.Validator()
    panic_at("report")
    makes: list[Callable[[bytes], object]] = [
        validator.validate,
        validator.html,
        validator.junit,
        validator.sarif,
        validator.github_annotations,
        validator.canonical,
        lambda document: validator.diff(document, document),
        lambda document: list(validator.validate_many([document], ordered=True)),
    ]
    for make in makes:
        with raises():
            make(b"{}")
    panic_at("nowhere")
    assert not validator.validate(b"{}").valid


def test_a_panic_in_the_program_is_an_error(panic_at: Callable[[str], None]) -> None:
    panic_at("program")
    with raises():
        _engine.run_program(["gatewright", "--version"], list)


def test_a_panic_in_webhook_processing_is_an_error(panic_at: Callable[[str], None]) -> None:
    body = json.dumps(TASK)
    panic_at("webhook")
    with raises():
        webhooks.unwrap(body, {}, "whsec_c2VjcmV0")
    with raises():
        webhooks.parse_unsigned(body)
    panic_at("nowhere")
    assert webhooks.parse_unsigned(body).id == "t1"


def test_a_panic_in_a_check_run_is_its_error(
    gateway: Gateway, panic_at: Callable[[str], None], tmp_path: Path
) -> None:
    def run() -> gatewright.CheckResult:
        return gatewright.check(gateway.base_url, api_key=gateway.key, only=["models_endpoint"])

    panic_at("check")
    with raises():
        run()
    panic_at("nowhere")
    result = run()
    panic_at("check")
    with raises():
        result.write(tmp_path / "report.json")
    with raises():
        result.write_evidence(tmp_path)
    with raises():
        result.write_protocols(tmp_path / "report.protocols.json")
