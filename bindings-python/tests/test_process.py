"""Living in a process: Ctrl-C, fork, exit, import time, the console script."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import VECTORS, Connection, Gateway

Serve = Callable[[Callable[[Connection], None]], str]


def start(program: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def run(program: str, *arguments: str, **environment: str) -> str:
    process = start(program, *arguments, **environment)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


BLOCKING = {
    "call": "client.models.list()",
    "wait": "client.videos.generations.wait('t')",
    "stream": "list(client.chat.completions.create(model='m', messages=[], stream=True))",
}


@pytest.mark.parametrize("expression", BLOCKING.values(), ids=BLOCKING)
def test_ctrl_c_ends_a_blocking_call_within_200_ms(serve: Serve, expression: str) -> None:
    def hang(connection: Connection) -> None:
        if b"stream" in connection.body:
            connection.stream_head()
        connection.wait_until_closed(30)

    program = f"""
import sys, time, gatewright
client = gatewright.Client(sys.argv[1], "key")
print("ready", flush=True)
try:
    {expression}
except KeyboardInterrupt:
    print(time.monotonic(), flush=True)
"""
    process = start(program, serve(hang))
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.4)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert process.returncode == 0, err
    # CLOCK_MONOTONIC is one clock for all processes of a machine.
    assert float(out) - sent < 0.2


FORK = """
import os, sys, gatewright
client = gatewright.Client()
assert client.models.list().data
stream = client.chat.completions.create(
    model="model-sol", messages=[{"role": "user", "content": "Tell me about rivers."}], stream=True)
next(stream)
children = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        try:
            assert client.models.list().data
            try:
                list(stream)
            except gatewright.ConfigurationError as error:
                assert "another process" in str(error)
            else:
                os._exit(4)
            del stream
            assert gatewright.Client().models.list().data
            text = [c.choices[0].delta.content for c in client.chat.completions.create(
                model="model-sol", messages=[{"role": "user", "content": "hi"}], stream=True)]
            assert text
            os._exit(0)
        except BaseException as error:
            print("child:", repr(error), file=sys.stderr, flush=True)
            os._exit(3)
    children.append(pid)
    assert client.models.list().data
codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
rest = list(stream)
assert rest[-1].choices[0].finish_reason == "stop"
assert client.models.list().data
print(codes)
"""


def test_parent_and_children_of_a_fork_go_on_with_the_same_client(gateway: Gateway) -> None:
    out = run(
        "import warnings; warnings.simplefilter('ignore', DeprecationWarning)\n" + FORK,
        GATEWRIGHT_BASE_URL=gateway.base_url,
        GATEWRIGHT_API_KEY=gateway.key,
    )
    assert out == "[0, 0, 0]\n"


def test_async_works_in_a_forked_child(gateway: Gateway) -> None:
    program = """
import asyncio, os, gatewright
client = gatewright.AsyncClient()
async def ask():
    return len((await client.models.list()).data)
count = asyncio.run(ask())
pid = os.fork()
if pid == 0:
    os._exit(0 if asyncio.run(ask()) == count else 3)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), asyncio.run(ask()) == count)
"""
    out = run(program, GATEWRIGHT_BASE_URL=gateway.base_url, GATEWRIGHT_API_KEY=gateway.key)
    assert out == "0 True\n"


def test_a_process_exits_with_calls_and_streams_under_way(serve: Serve) -> None:
    def hang(connection: Connection) -> None:
        connection.stream_head()
        connection.wait_until_closed(30)

    program = """
import sys, threading, gatewright
client = gatewright.Client(sys.argv[1], "key")
stream = client.chat.completions.create(model="m", messages=[], stream=True)
threading.Thread(target=client.models.list, daemon=True).start()
print("leaving")
"""
    begun = time.monotonic()
    assert run(program, serve(hang)) == "leaving\n"
    assert time.monotonic() - begun < 5


def test_importing_brings_in_neither_asyncio_nor_typing() -> None:
    program = """
import sys
before = set(sys.modules)
import gatewright
print(sorted(name for name in set(sys.modules) - before if not name.startswith("gatewright")))
"""
    imported = run(program)
    for heavy in ("asyncio", "typing", "json", "ssl", "inspect", "dataclasses"):
        assert f"'{heavy}'" not in imported


def test_importing_takes_less_than_30_ms_beside_python_itself() -> None:
    def best(program: str) -> float:
        times = []
        for _ in range(10):
            begun = time.perf_counter()
            subprocess.run([sys.executable, "-I", "-c", program], check=True)
            times.append(time.perf_counter() - begun)
        return min(times)

    path = str(Path(__file__).resolve().parents[1] / "python")
    enter = f"import sys; sys.path.insert(0, {path!r})"
    assert best(f"{enter}; import gatewright") - best(enter) < 0.030


def test_the_program_is_carried_along() -> None:
    accepted = json.loads((VECTORS / "report" / "top_level.json").read_text())
    assert accepted
    program = [sys.executable, "-m", "gatewright"]
    version = subprocess.run([*program, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith("gatewright ")
    verdict = subprocess.run(
        [*program, "report", "validate", "--format", "json", "-"], input="{", capture_output=True, text=True
    )
    assert verdict.returncode == 1
    assert json.loads(verdict.stdout)["violations"][0]["rule"] == "syntax"
    wrong = subprocess.run([*program, "no-such-command"], capture_output=True, text=True)
    assert wrong.returncode == 2


def test_ctrl_c_stops_the_gateway_run_from_the_package() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "gatewright", "serve", "--json", "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        assert json.loads(process.stdout.readline())["listening"]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=5) in (0, 130, -signal.SIGINT)


def test_the_lines_of_the_readme_run(gateway: Gateway) -> None:
    readme = (Path(__file__).resolve().parents[1] / "README.md").read_text()
    lines = readme.split("```python\n")[1].split("```")[0]
    out = run(lines, GATEWRIGHT_BASE_URL=gateway.base_url, GATEWRIGHT_API_KEY=gateway.key)
    assert "rivers" in out
