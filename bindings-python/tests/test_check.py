"""The check kit from Python: the same run as the program's, with events."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import gatewright
import pytest
from conftest import Gateway
from gatewright import report


def test_a_compatible_gateway_passes_and_every_step_is_reported(gateway: Gateway, tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    result = gatewright.check(
        gateway.base_url, api_key=gateway.key, models=["model-terra"], on_progress=events.append
    )
    assert result.passed
    assert not result.interrupted
    assert repr(result) == "<CheckResult pass: 5 passed, 0 failed, 1 skipped>"
    assert report.validate(result.json, strict=True).valid
    assert json.loads(result.json) == result.report
    version = ".".join(map(str, sys.version_info[:3]))
    assert result.report["environment"]["runtime_version"].startswith(f"v{version}")
    assert events[0] == {"event": "planned", "cells": 6, "to_run": 5}
    finished = [event for event in events if event["event"] == "finished"]
    assert [(event["id"], event["model"]) for event in finished] == [
        (event["check"]["id"], event["check"]["model"]) for event in finished
    ]
    finished = [event["check"] for event in events if event["event"] == "finished"]
    assert finished == result.report["checks"]
    assert [piece["id"] for piece in result.evidence] == [check["id"] for check in finished][:5]
    assert gateway.key not in result.json + json.dumps(result.evidence) + json.dumps(events)

    result.write(tmp_path / "report.json")
    assert (tmp_path / "report.json").read_text("utf-8") == result.json
    names = result.write_evidence(tmp_path / "evidence")
    texts = [(tmp_path / "evidence" / name).read_text("utf-8") for name in names]
    assert [json.loads(text) for text in texts] == result.evidence
    with pytest.raises(gatewright.FileError, match="cannot write"):
        result.write(tmp_path / "missing" / "report.json")


def test_other_protocols_are_a_document_of_their_own(gateway: Gateway, tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    result = gatewright.check(
        gateway.base_url,
        api_key=gateway.key,
        only=["models_endpoint"],
        protocols=["native", "chat"],
        on_progress=events.append,
    )
    assert result.passed
    assert result.protocols is not None
    assert result.protocols_json is not None
    checks = result.protocols["checks"]
    kinds = ["text", "stream", "tool", "tool_stream", "error"]
    ids = [f"{protocol}_{kind}" for protocol in ("chat", "native") for kind in kinds]
    assert [check["id"] for check in checks] == ids
    assert [event["check"] for event in events if event["event"] == "protocol_checked"] == checks
    assert repr(result).endswith("; other protocols: 10 passed, 0 failed, 0 skipped>")
    assert gateway.key not in result.protocols_json
    assert report.validate(result.protocols).valid
    assert report.canonical(result.protocols_json) == result.protocols_json
    assert "Other protocols" in report.html(result.report, protocols=result.protocols)

    result.write_protocols(tmp_path / "report.protocols.json")
    assert (tmp_path / "report.protocols.json").read_text("utf-8") == result.protocols_json
    with pytest.raises(gatewright.FileError, match="cannot write"):
        result.write_protocols(tmp_path / "missing" / "report.protocols.json")


def test_a_failed_check_of_another_protocol_fails_the_run(gateway: Gateway, tmp_path: Path) -> None:
    options: dict[str, Any] = {"models": ["gpt-5"], "only": ["models_endpoint"]}
    result = gatewright.check(gateway.base_url, api_key=gateway.key, protocols=["all"], **options)
    assert result.report["overall_status"] == "pass"
    assert result.protocols is not None
    assert result.protocols["summary"]["failed"] > 0
    assert not result.passed
    assert report.github_annotations(result.protocols).startswith("::error title=chat_text gpt-5")
    without = gatewright.check(gateway.base_url, api_key=gateway.key, **options)
    assert without.passed
    assert without.protocols is None
    with pytest.raises(gatewright.FileError, match="the run had no additional checks"):
        without.write_protocols(tmp_path / "report.protocols.json")


def test_a_rejected_key_fails_the_checks_and_is_never_shown(gateway: Gateway) -> None:
    result = gatewright.check(gateway.base_url, api_key="wrong-canary-key", only=["models_endpoint"])
    assert not result.passed
    assert result.report["checks"][0]["error"]["category"] == "auth"
    assert "canary" not in result.json + json.dumps(result.evidence)


def test_out_of_bounds_options_are_reported_together(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(gatewright.ConfigurationError) as raised:
        gatewright.check("http://127.0.0.1:9", api_key="k", timeout_ms=1, models=["model-tera"])
    assert "timeout_ms must be from 1000 to 120000, not 1" in str(raised.value)
    assert "model-tera" in str(raised.value)
    unknown = "no option is called key; the options are endpoint, "
    with pytest.raises(gatewright.ConfigurationError, match=unknown):
        gatewright.check("http://127.0.0.1:9", api_key="k", key="k")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    monkeypatch.delenv("GATEWRIGHT_API_KEY", raising=False)
    with pytest.raises(gatewright.ConfigurationError, match="the API key is empty"):
        gatewright.check("http://127.0.0.1:9")


LIMIT = "timeout_ms must be a whole number from 1000 to 120000, not "


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout_ms": -1}, f"{LIMIT}-1"),
        ({"timeout_ms": 2**70}, LIMIT),
        ({"timeout_ms": 1.5}, f"{LIMIT}1.5"),
        ({"timeout_ms": float("nan")}, f'{LIMIT}"nan"'),
        ({"only": ["nope"]}, "only must be a list out of models_endpoint, "),
        ({"protocols": ["chatt"]}, "protocols must be a list out of chat, messages, native, all, not"),
        ({"protocols": "all"}, 'protocols must be a list out of chat, messages, native, all, not "all"'),
        ({"agent_mode": "nope"}, "agent_mode must be one of skipped, one-model, all-models"),
        ({"models": "model-sol"}, 'models must be a list of strings, not "model-sol"'),
        ({"models": []}, "models is empty"),
        ({"models": {"model-sol"}}, "models cannot be {'model-sol'}"),
    ],
)
def test_a_value_of_the_wrong_type_is_rejected_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(gatewright.ConfigurationError) as raised:
        gatewright.check("http://127.0.0.1:9", api_key="k", **options)
    assert str(raised.value).startswith(message)


def test_the_key_comes_from_the_environment_and_models_from_a_profile(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWRIGHT_API_KEY", gateway.key)
    profile = {"kit_name": "our-kit", "models": ["model-sol"]}
    result = gatewright.check(gateway.base_url, profile=profile, skip=["responses_stream"], parallel=None)
    assert result.passed
    assert report.validate(result.json, kit_name="our-kit", models=["model-sol"]).valid


def test_an_exception_in_a_progress_function_ends_the_run(gateway: Gateway) -> None:
    def stop(_event: dict[str, Any]) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        gatewright.check(gateway.base_url, api_key=gateway.key, on_progress=stop)


def test_a_run_on_an_event_loop_does_not_block_it_and_can_be_canceled(gateway: Gateway) -> None:
    async def both() -> None:
        one, two = await asyncio.gather(
            gatewright.check_async(gateway.base_url, api_key=gateway.key, only=["responses_text"]),
            gatewright.check_async(gateway.base_url, api_key=gateway.key, only=["responses_stream"]),
        )
        assert one.passed
        assert two.passed
        started = asyncio.Event()
        running = asyncio.create_task(
            gatewright.check_async(
                gateway.base_url, api_key=gateway.key, on_progress=lambda _event: started.set()
            )
        )
        await started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(both())


def test_a_canceled_run_returns_its_complete_report() -> None:
    async def limited(url: str) -> BaseException | None:
        checking = gatewright.check_async(url, api_key="k", timeout_ms=120000)
        with pytest.raises(asyncio.TimeoutError) as raised:
            await asyncio.wait_for(checking, 0.3)
        cause = raised.value.__cause__
        return cause if cause is None or hasattr(cause, "result") else cause.__context__

    async def cancelled(url: str) -> BaseException | None:
        caught: list[BaseException] = []

        async def run() -> None:
            try:
                await gatewright.check_async(url, api_key="k", timeout_ms=120000)
            except asyncio.CancelledError as error:
                caught.append(error)
                raise

        running = asyncio.create_task(run())
        await asyncio.sleep(0.3)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return caught[0]

    # Accepts connections and never sends anything.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        for way in (limited, cancelled):
            result = getattr(asyncio.run(way(url)), "result", None)
            assert isinstance(result, gatewright.CheckResult)
            assert result.interrupted
            assert report.validate(result.json).valid
            reasons = [check["reason"] for check in result.report["checks"]]
            assert any(reason and reason.startswith("aborted:") for reason in reasons)


def test_ctrl_c_ends_a_run_immediately(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import os, signal, socket, threading, time
        import gatewright

        # Accepts connections and never sends anything.
        listener = socket.create_server(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        pressed = []

        def press(event):
            if event["event"] == "started":
                pressed.append(time.monotonic() + 0.2)
                threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()

        try:
            gatewright.check(url, api_key="k", timeout_ms=120000, on_progress=press)
        except KeyboardInterrupt as interrupt:
            print(f"interrupted {time.monotonic() - pressed[0] < 2}")
            result = interrupt.result
            result.write("report.json")
            print(result.interrupted, [check["reason"] for check in result.report["checks"]][0])
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=tmp_path, check=False
    )
    first, second = done.stdout.splitlines()
    assert (first, done.returncode) == ("interrupted True", 0), done.stderr
    assert second.startswith("True aborted:")
    assert report.validate(tmp_path / "report.json").valid
