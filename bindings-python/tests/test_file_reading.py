"""The files of a call: nothing is read of them before the options are known to be right, or after the call
was cancelled."""

from __future__ import annotations

import asyncio
import io
import threading
import types
from collections.abc import Callable
from typing import Any

import pytest
from conftest import Connection, Gateway
from gatewright import AsyncClient, Client

Serve = Callable[[Callable[[Connection], None]], str]

WRONG = [
    ({"timeout": -1}, ValueError, "timeout"),
    ({"timeout": "x"}, TypeError, "timeout"),
    ({"max_retries": -1}, ValueError, "max_retries"),
    ({"extra_headers": 5}, TypeError, "Mapping"),
    ({"extra_body": {"x": float("nan")}}, ValueError, "NaN"),
    (
        {"tiemout": 1},
        TypeError,
        r"^audio\.transcriptions\.create\(\) has no argument 'tiemout'.*'timeout'\?$",
    ),
    # Like httpx.Timeout.
    (
        {"timeout": types.SimpleNamespace(connect=1, read=-1, write=1, pool=1)},
        ValueError,
        "first_byte_timeout|idle_timeout",
    ),
]


@pytest.mark.parametrize(("options", "kind", "message"), WRONG)
async def test_wrong_options_are_refused_before_a_file_is_read(
    options: Any, kind: type[Exception], message: str
) -> None:
    file = io.BytesIO(b"RIFF")
    with Client("http://127.0.0.1:9", "key") as client, pytest.raises(kind, match=message):
        client.audio.transcriptions.create(model="m", file=file, **options)
    assert file.tell() == 0
    async with AsyncClient("http://127.0.0.1:9", "key") as other:
        with pytest.raises(kind, match=message):
            await other.audio.transcriptions.create(model="m", file=("boat.wav", file), **options)
    assert file.tell() == 0


async def test_a_file_is_read_once_if_its_options_are_mended(gateway: Gateway) -> None:
    patient: Any = types.SimpleNamespace(connect=5, read=30, write=30, pool=5)
    async with AsyncClient(gateway.base_url, gateway.key) as client:
        spoken = await client.audio.speech.create(model="speech_model_1", input="a boat", voice="alloy")
        file = io.BytesIO(spoken)
        found = await client.audio.transcriptions.create(
            model="transcription_model_1", file=file, timeout=patient
        )
    assert found.text
    assert file.tell() == len(spoken)


class SlowFile:
    """A long file, whose reads wait."""

    name = "folder/boat.wav"

    def __init__(self) -> None:
        self.reads = 0
        self.is_reading = threading.Event()
        self.goes_on = threading.Event()

    def read(self, size: int, /) -> bytes:
        self.reads += 1
        self.is_reading.set()
        assert self.goes_on.wait(30)
        return b"x" * min(size, 10) if self.reads < 1000 else b""


@pytest.mark.parametrize("form", ["alone", "with its name"])
async def test_a_cancelled_call_reads_no_further(form: str) -> None:
    file = SlowFile()
    given: Any = file if form == "alone" else ("boat.wav", file, None)
    async with AsyncClient("http://127.0.0.1:9", "key") as client:
        call = asyncio.create_task(client.audio.transcriptions.create(model="m", file=given))
        assert await asyncio.to_thread(file.is_reading.wait, 30)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    file.goes_on.set()
    # Waits for the thread.
    await asyncio.get_running_loop().shutdown_default_executor()
    assert file.reads == 1


async def test_a_file_object_has_its_own_name_and_errors(serve: Serve) -> None:
    bodies: list[bytes] = []

    def answer(connection: Connection) -> None:
        bodies.append(connection.body)
        connection.answer(b'{"text": "a boat"}')

    class Open(io.BytesIO):
        name = "folder/boat.wav"

    async with AsyncClient(serve(answer), "key") as client:
        create: Any = client.audio.transcriptions.create
        assert (await create(model="m", file=Open(b"RIFF"))).text == "a boat"
        assert (await create(model="m", file=io.BytesIO(b"RIFF"))).text == "a boat"
        with pytest.raises(TypeError, match="not bytes; open it in binary mode"):
            await create(model="m", file=io.StringIO("RIFF"))
        with pytest.raises(TypeError, match="file: int is not a file"):
            await create(model="m", file=5)
        closed = io.BytesIO(b"RIFF")
        closed.close()
        with pytest.raises(ValueError, match="closed file"):
            await create(model="m", file=closed)
    assert b'filename="boat.wav"' in bodies[0]
    assert b'filename="file"' in bodies[1]
    assert len(bodies) == 2
