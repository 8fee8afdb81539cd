"""Waiting for video tasks (2.7, 3), and saving images and videos (2.11, 4 rule 4)."""

from __future__ import annotations

import asyncio
import base64
import errno
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

import gatewright
import pytest
from conftest import Connection, Gateway
from gatewright import AsyncClient, Client
from test_process import interrupt, promptly, run

Serve = Callable[[Callable[[Connection], None]], str]

CONTENTS = bytes(range(256)) * 40


def record(status: str, **members: object) -> bytes:
    return json.dumps({"id": "t1", "status": status, "created": 1, "model": "m", **members}).encode()


def states(*answers: bytes | None) -> Callable[[Connection], None]:
    """Answers the polls in order, repeating the last response; None closes the connection without a
    response."""
    left = list(answers)

    def answer(connection: Connection) -> None:
        body = left.pop(0) if len(left) > 1 else left[0]
        if body is not None:
            connection.answer(body)

    return answer


FAILED = record("failed", error={"message": "the prompt was refused"})


def test_progress_is_reported_at_every_poll_including_the_last(serve: Serve) -> None:
    url = serve(states(record("processing"), record("warming_up", percent=40), record("completed")))
    seen: list[gatewright.types.VideoTask] = []
    with Client(url, "key") as client:
        task = client.videos.generations.wait("t1", interval=0.01, on_progress=seen.append)
    assert [found.status for found in seen] == ["processing", "warming_up", "completed"]
    assert seen[1]["percent"] == 40
    assert task == seen[-1]
    assert gatewright.response_of(task).status_code == 200


def test_progress_of_a_failing_task_is_reported_before_the_error_is_raised(serve: Serve) -> None:
    seen: list[str] = []
    url = serve(states(record("processing"), FAILED))
    with Client(url, "key") as client, pytest.raises(gatewright.TaskFailedError, match="refused") as caught:
        client.videos.generations.wait("t1", interval=0.01, on_progress=lambda task: seen.append(task.status))
    assert seen == ["processing", "failed"]
    assert caught.value.operation == "retrieve_video"


async def test_the_async_client_reports_progress_to_functions_and_coroutine_functions(serve: Serve) -> None:
    seen: list[str] = []
    loop = asyncio.get_running_loop()

    async def note(task: gatewright.types.VideoTask) -> None:
        await asyncio.sleep(0)
        assert asyncio.get_running_loop() is loop
        seen.append(task.status)

    for on_progress in (note, lambda task: seen.append(task.status)):
        url = serve(states(record("processing"), record("completed")))
        async with AsyncClient(url, "key") as client:
            task = await client.videos.generations.wait("t1", interval=0.01, on_progress=on_progress)
        assert task.status == "completed"
    assert seen == ["processing", "completed"] * 2


async def test_an_exception_in_on_progress_ends_the_wait_and_reaches_the_caller(serve: Serve) -> None:
    class Enough(Exception):
        pass

    def enough(_: object) -> None:
        raise Enough

    url = serve(states(record("processing")))
    with Client(url, "key") as client, pytest.raises(Enough):
        client.videos.generations.wait("t1", on_progress=enough)
    async with AsyncClient(url, "key") as async_client:
        with pytest.raises(Enough):
            await async_client.videos.generations.wait("t1", on_progress=enough)


def test_the_sync_client_rejects_a_coroutine_function(serve: Serve) -> None:
    async def note(_: object) -> None:
        raise AssertionError("never awaited")

    with (
        Client(serve(states(record("processing"))), "key") as client,
        pytest.raises(TypeError, match="AsyncClient"),
    ):
        client.videos.generations.wait("t1", on_progress=note)


def test_a_call_within_on_progress_is_independent(serve: Serve) -> None:
    url = serve(states(record("processing"), record("processing"), record("completed")))
    with Client(url, "key") as client:
        task = client.videos.generations.wait(
            "t1", interval=0.01, on_progress=lambda task: client.videos.generations.retrieve(task.id)
        )
    assert task.status == "completed"


async def test_a_wait_continues_through_unknown_states_until_the_deadline(serve: Serve) -> None:
    url = serve(states(record("archived")))
    with Client(url, "key") as client, pytest.raises(gatewright.APITimeoutError, match="t1"):
        client.videos.generations.wait("t1", interval=0.02, timeout=0.2)
    async with AsyncClient(url, "key") as async_client:
        with pytest.raises(gatewright.APITimeoutError, match="t1"):
            await async_client.videos.generations.wait("t1", interval=0.02, timeout=0.2)


def test_a_wait_survives_an_outage_but_not_a_gateway_that_never_responded(serve: Serve) -> None:
    url = serve(states(record("processing"), None, None, None, record("completed")))
    with Client(url, "key", max_retries=0) as client:
        assert client.videos.generations.wait("t1", interval=0.01).status == "completed"
    url = serve(states(None))
    with Client(url, "key", max_retries=0) as client, pytest.raises(gatewright.APIConnectionError):
        client.videos.generations.wait("t1", interval=0.01, timeout=5)


def test_a_lasting_outage_is_a_timeout_that_mentions_it(serve: Serve) -> None:
    url, text = serve(states(record("processing"), None)), "the last look-up failed: the connection broke"
    with Client(url, "key", max_retries=0) as client, pytest.raises(gatewright.APITimeoutError, match=text):
        client.videos.generations.wait("t1", interval=0.01, timeout=0.2)


async def test_a_submitted_task_is_awaited(gateway: Gateway) -> None:
    seen: list[str] = []
    request = {"model": "video_model_1", "prompt": "waves", "duration": 3}
    with Client(gateway.base_url, gateway.key) as client:
        task = client.videos.generations.create_and_wait(
            **request, interval=0.05, on_progress=lambda task: seen.append(task.id)
        )
        assert task.status == "completed"
        assert set(seen) == {task.id}
        with pytest.raises(gatewright.TaskFailedError, match="out of paint"):
            client.videos.generations.create_and_wait(
                model="video_model_1", prompt="waves [fail: out of paint]", interval=0.05
            )


async def test_wrong_options_of_a_wait_are_errors_before_the_task_is_submitted(serve: Serve) -> None:
    submitted = threading.Event()

    def answer(connection: Connection) -> None:
        submitted.set()
        connection.answer(record("completed"))

    url, wrong = serve(answer), {"model": "video_model_1", "prompt": "waves", "interval": "soon"}
    with Client(url, "key") as client, pytest.raises(TypeError, match="interval"):
        client.videos.generations.create_and_wait(**wrong)  # type: ignore[arg-type]
    async with AsyncClient(url, "key") as client:
        with pytest.raises(TypeError, match="interval"):
            await client.videos.generations.create_and_wait(**wrong)  # type: ignore[arg-type]
    assert not submitted.is_set()


@pytest.mark.parametrize("during", ["look-up", "pause"])
async def test_canceling_a_wait_ends_it_immediately(serve: Serve, during: str) -> None:
    started, closed = threading.Event(), threading.Event()

    def answer(connection: Connection) -> None:
        started.set()
        if during == "pause":
            connection.answer(record("processing"))
        elif connection.wait_until_closed(10):
            closed.set()

    async with AsyncClient(serve(answer), "key") as client:
        waiting = asyncio.create_task(client.videos.generations.wait("t1", interval=30))
        await asyncio.to_thread(started.wait, 10)
        await asyncio.sleep(0.1)
        cancelled = time.monotonic()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert time.monotonic() - cancelled < 5
    if during == "look-up":
        assert closed.wait(1)


def hang_after_the_first(connection: Connection) -> None:
    if "/files/" in connection.head:
        connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nsome of it")
        connection.wait_until_closed(30)
    else:
        connection.answer(record("processing"))


@pytest.mark.parametrize(
    "expression",
    [
        "client.videos.generations.wait('t1', interval=30)",
        "client.images.save({'url': url + '/files/a'}, 'a.png')",
    ],
    ids=["in the pause of a wait", "in a transfer"],
)
def test_ctrl_c_ends_long_work_within_200_ms_and_leaves_nothing_behind(
    serve: Serve, tmp_path: Path, expression: str
) -> None:
    program = f"""
import os, sys, time, gatewright
url = sys.argv[1]
os.chdir(sys.argv[2])
client = gatewright.Client(url, "key")
print("ready", flush=True)
try:
    {expression}
except KeyboardInterrupt:
    print(time.monotonic(), os.listdir("."), flush=True)
"""

    def measure() -> float:
        seconds, left = interrupt(program, threading.Event(), serve(hang_after_the_first), str(tmp_path))
        assert left == "[]"
        return seconds

    promptly(0.2, measure)


def test_a_wait_belongs_to_the_process_that_started_it(serve: Serve) -> None:
    program = """
import os, sys, gatewright
client = gatewright.Client(sys.argv[1], "key")
parent = os.getpid()
def fork(task):
    if os.getpid() == parent and os.fork() == 0:
        return
try:
    client.videos.generations.wait("t1", interval=0.05, timeout=0.5, on_progress=fork)
except gatewright.ConfigurationError as error:
    assert os.getpid() != parent and "another process" in str(error)
    assert client.videos.generations.retrieve("t1").status == "processing"
    os._exit(0)
except gatewright.APITimeoutError:
    assert os.getpid() == parent
    codes = set()
    try:
        while True:
            codes.add(os.waitstatus_to_exitcode(os.wait()[1]))
    except ChildProcessError:
        print(codes)
"""
    assert run(program, serve(states(record("processing")))) == "{0}\n"


# Saving.


class Files:
    """Serves CONTENTS, breaking off after `breaks` bytes the first time; supports ranges if requested."""

    def __init__(self, *, breaks: int | None = None, ranges: bool = True) -> None:
        self.heads: list[str] = []
        self._breaks = breaks
        self._ranges = ranges

    def __call__(self, connection: Connection) -> None:
        self.heads.append(connection.head.lower())
        first = (
            int(self.heads[-1].split("range: bytes=")[1].split("-")[0])
            if "range: bytes=" in self.heads[-1]
            else 0
        )
        tag = 'etag: "one"\r\n' if self._ranges else ""
        body, status = CONTENTS, "200 OK"
        if first and self._ranges:
            body, status = CONTENTS[first:], "206 Partial Content"
            tag += f"content-range: bytes {first}-{len(CONTENTS) - 1}/{len(CONTENTS)}\r\n"
        connection.send(f"HTTP/1.1 {status}\r\n{tag}content-length: {len(body)}\r\n\r\n".encode())
        broken = self._breaks is not None and len(self.heads) == 1
        connection.send(body[: self._breaks] if broken else body)


@pytest.fixture
def client() -> Iterator[Client]:
    with Client("http://127.0.0.1:9", "sk-canary") as client:
        yield client


def test_images_and_videos_from_the_gateway_are_saved(gateway: Gateway, tmp_path: Path) -> None:
    with Client(gateway.base_url, gateway.key) as client:
        for form in ("url", "b64_json"):
            made = client.images.generate(
                model="image_model_2", prompt="a kite", size="256x256", response_format=form
            )
            size = client.images.save(made.data[0], tmp_path / f"{form}.png")
            saved = (tmp_path / f"{form}.png").read_bytes()
            assert saved.startswith(b"\x89PNG")
            assert len(saved) == size
        task = client.videos.generations.create_and_wait(
            model="video_model_1", prompt="waves", duration=3, resolution="720p", interval=0.05
        )
        size = client.videos.generations.save(task, os.fspath(tmp_path / "waves.mp4"))
        assert (tmp_path / "waves.mp4").stat().st_size == size
        assert (tmp_path / "waves.mp4").read_bytes()[4:8] == b"ftyp"
    assert sorted(os.listdir(tmp_path)) == ["b64_json.png", "url.png", "waves.mp4"]


async def test_images_and_videos_are_saved_by_the_async_client(gateway: Gateway, tmp_path: Path) -> None:
    async with AsyncClient(gateway.base_url, gateway.key) as client:
        made = await client.images.generate(model="image_model_2", prompt="a kite", size="256x256")
        assert (
            await client.images.save(made.data[0], tmp_path / "a.png") == (tmp_path / "a.png").stat().st_size
        )
        task = await client.videos.generations.create_and_wait(
            model="video_model_1", prompt="waves", duration=3, resolution="720p", interval=0.05
        )
        size = await client.videos.generations.save(task, tmp_path / "a.mp4")
        assert size == (tmp_path / "a.mp4").stat().st_size


@pytest.mark.parametrize("ranges", [True, False], ids=["where it stopped", "from the start"])
def test_a_broken_transfer_resumes_once(serve: Serve, client: Client, tmp_path: Path, ranges: bool) -> None:
    files = Files(breaks=1000, ranges=ranges)
    url = serve(files) + "/files/a?sig=canary"
    assert client.images.save({"url": url}, tmp_path / "a") == len(CONTENTS)
    assert (tmp_path / "a").read_bytes() == CONTENTS
    assert len(files.heads) == 2
    assert ('if-range: "one"' in files.heads[1]) == ranges
    assert not any("authorization" in head for head in files.heads)


def test_a_large_file_is_never_completely_in_memory(serve: Serve, tmp_path: Path) -> None:
    size, packet = 128 * 2**20, bytes(2**20)

    def send(connection: Connection) -> None:
        connection.send(f"HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n".encode())
        for _ in range(size // len(packet)):
            connection.send(packet)

    program = """
import resource, sys, gatewright
url, place = sys.argv[1:]
client = gatewright.Client("http://127.0.0.1:9", "key")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
size = client.images.save({"url": url}, place)
print(size, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) < 32 * 1024)
"""
    assert run(program, serve(send), str(tmp_path / "a")) == f"{size} True\n"


def test_an_existing_file_is_replaced_by_default(serve: Serve, client: Client, tmp_path: Path) -> None:
    image = {"url": serve(Files()) + "/files/a"}
    place = tmp_path / "a"
    place.write_text("before")
    with pytest.raises(gatewright.FileError, match="overwriting was not allowed"):
        client.images.save(image, place, overwrite=False)
    assert place.read_text() == "before"
    client.images.save(image, place)
    assert place.read_bytes() == CONTENTS


def test_a_file_over_the_limit_or_too_slow_is_not_saved(serve: Serve, client: Client, tmp_path: Path) -> None:
    url = serve(Files())
    with pytest.raises(gatewright.DecodeError, match="larger than the allowed 100 bytes"):
        client.images.save({"url": url}, tmp_path / "a", max_bytes=100)
    with pytest.raises(gatewright.APITimeoutError, match=r"not saved within 200ms"):
        client.images.save({"url": serve(hang_after_the_first) + "/files/a"}, tmp_path / "a", timeout=0.2)
    assert os.listdir(tmp_path) == []


def test_a_disk_failure_is_a_file_error_caused_by_the_os_error(client: Client, tmp_path: Path) -> None:
    image = {"b64_json": base64.b64encode(b"picture").decode()}
    with pytest.raises(gatewright.FileError, match=r"missing/a\.png: its folder does not exist") as caught:
        client.images.save(image, tmp_path / "missing" / "a.png")
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    assert caught.value.__cause__.errno == errno.ENOENT
    with pytest.raises(gatewright.FileError, match="it is a folder"):
        client.images.save(image, tmp_path)


def test_a_full_disk_leaves_no_partial_file_and_keeps_the_existing_one(serve: Serve, tmp_path: Path) -> None:
    # A file size limit simulates a full disk: the system rejects the write in the same way.
    program = """
import errno, os, resource, sys, gatewright
url, place = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
client = gatewright.Client("http://127.0.0.1:9", "key")
for image in ({"url": url}, {"b64_json": "AAAA" * 4096}):
    try:
        client.images.save(image, place)
    except gatewright.FileError as error:
        print(error.__cause__.errno == errno.EFBIG, place in str(error))
"""
    place = tmp_path / "a.png"
    place.write_text("before")
    assert run(program, serve(Files()), str(place)) == "True True\n" * 2
    assert os.listdir(tmp_path) == ["a.png"]
    assert place.read_text() == "before"


@pytest.mark.parametrize("kind", [dict, MappingProxyType, gatewright.Record])
def test_an_image_of_any_kind_is_saved(client: Client, tmp_path: Path, kind: Any) -> None:
    place = tmp_path / "a"
    image = kind({"url": "https://unused.example", "b64_json": "aGk=", "revised_prompt": "é"})
    assert client.images.save(image, place) == len("hi")
    assert place.read_text() == "hi"
    with pytest.raises(gatewright.InvalidRequestError, match="nothing to save"):
        client.images.save(kind({"url": None, "b64_json": None}), place)
    for member in ({"b64_json": 1}, {"b64_json": "aGk=", "url": []}):
        with pytest.raises(gatewright.InvalidRequestError, match="not an image of a response"):
            client.images.save(kind(member), place)


def test_escapes_in_image_data_are_decoded(client: Client, tmp_path: Path) -> None:
    image = gatewright.Record.from_json(r'{"b64_json": "aGk\u003d"}')
    assert client.images.save(image, tmp_path / "a") == len("hi")


@pytest.mark.parametrize("text", ["aGk", "aG k=", "aGk=aGk=", "data:image/png;base64,aGk="])
def test_invalid_base64_is_rejected(client: Client, tmp_path: Path, text: str) -> None:
    with pytest.raises(gatewright.DecodeError, match="not valid base64"):
        client.images.save({"b64_json": text}, tmp_path / "a")
    assert os.listdir(tmp_path) == []


def test_saving_nothing_is_rejected(serve: Serve, client: Client, tmp_path: Path) -> None:
    with pytest.raises(gatewright.InvalidRequestError, match="nothing to save"):
        client.images.save({"revised_prompt": "x"}, tmp_path / "a")
    with pytest.raises(gatewright.InvalidRequestError, match="t1 is processing and has no video"):
        client.videos.generations.save(json.loads(record("processing")), tmp_path / "a")
    expired = serve(
        lambda connection: connection.answer(b'{"error":{"message":"it has expired"}}', "410 Gone")
    )
    with pytest.raises(gatewright.APIStatusError, match="it has expired") as caught:
        client.images.save({"url": expired}, tmp_path / "a")
    assert caught.value.status_code == 410


async def test_canceling_a_transfer_closes_it_and_leaves_nothing_behind(serve: Serve, tmp_path: Path) -> None:
    started, closed = threading.Event(), threading.Event()

    def hang(connection: Connection) -> None:
        connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nsome of it")
        started.set()
        if connection.wait_until_closed(10):
            closed.set()

    async with AsyncClient("http://127.0.0.1:9", "key") as client:
        saving = asyncio.create_task(client.images.save({"url": serve(hang)}, tmp_path / "a"))
        await asyncio.to_thread(started.wait, 10)
        await asyncio.sleep(0.1)
        saving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await saving
    assert await asyncio.to_thread(closed.wait, 1)
    assert os.listdir(tmp_path) == []
