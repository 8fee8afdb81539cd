"""The check kit from Python: the same run as the program's, with events."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import gatewright
import pytest
from conftest import Gateway
from gatewright import report


def test_a_compatible_gateway_passes_and_every_step_is_told(gateway: Gateway, tmp_path: Path) -> None:
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


def test_a_key_that_is_refused_fails_the_checks_and_is_told_nowhere(gateway: Gateway) -> None:
    result = gatewright.check(gateway.base_url, api_key="wrong-canary-key", only=["models_endpoint"])
    assert not result.passed
    assert result.report["checks"][0]["error"]["category"] == "auth"
    assert "canary" not in result.json + json.dumps(result.evidence)


def test_options_out_of_bounds_are_refused_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(gatewright.ConfigurationError) as raised:
        gatewright.check("http://127.0.0.1:9", api_key="k", timeout_ms=1, models=["model-mars"])
    assert "timeout_ms must be from 1000 to 120000, not 1 (2.12)" in str(raised.value)
    assert "model-mars" in str(raised.value)
    with pytest.raises(gatewright.ConfigurationError, match="unknown field `key`"):
        gatewright.check("http://127.0.0.1:9", api_key="k", key="k")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    monkeypatch.delenv("GATEWRIGHT_API_KEY", raising=False)
    with pytest.raises(gatewright.ConfigurationError, match="the API key is empty"):
        gatewright.check("http://127.0.0.1:9")


def test_the_key_comes_from_the_environment_and_models_from_a_profile(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWRIGHT_API_KEY", gateway.key)
    profile = {"kit_name": "our-kit", "models": ["model-sol"]}
    result = gatewright.check(gateway.base_url, profile=profile, skip=["responses_stream"], parallel=None)
    assert result.passed
    assert report.validate(result.json, kit_name="our-kit", models=["model-sol"]).valid


def test_what_a_progress_function_raises_ends_the_run(gateway: Gateway) -> None:
    def stop(_event: dict[str, Any]) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        gatewright.check(gateway.base_url, api_key=gateway.key, on_progress=stop)


def test_a_run_on_an_event_loop_leaves_the_loop_free_and_can_be_cancelled(gateway: Gateway) -> None:
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


def test_ctrl_c_ends_a_run_at_once(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import os, signal, socket, threading, time
        import gatewright

        # Accepts, and never says anything.
        listener = socket.create_server(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        pressed = []

        def press(event):
            if event["event"] == "started":
                pressed.append(time.monotonic() + 0.2)
                threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()

        try:
            gatewright.check(url, api_key="k", timeout_ms=120000, on_progress=press)
        except KeyboardInterrupt:
            print(f"interrupted {time.monotonic() - pressed[0] < 2}")
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=tmp_path, check=False
    )
    assert (done.stdout, done.returncode) == ("interrupted True\n", 0), done.stderr
