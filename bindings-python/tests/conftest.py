"""Servers for the tests: the real gateway as a subprocess, and one that each test scripts."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import gatewright
import pytest

# A shell without job control starts background processes with SIGINT ignored, and children inherit that: the
# programs of the Ctrl-C tests would never receive it.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[2]
VECTORS = ROOT / "tests" / "vectors"


class Gateway(NamedTuple):
    base_url: str
    key: str


@pytest.fixture(scope="session")
def gateway() -> Iterator[Gateway]:
    """The program `gatewright serve`, with its simulated provider."""
    program = os.environ.get("GATEWRIGHT_BIN") or ROOT / "target" / "debug" / "gatewright"
    process = subprocess.Popen(
        [program, "serve", "--json", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout:
        ready = json.loads(process.stdout.readline())
        yield Gateway(ready["listening"], ready["key"])
        process.terminate()
        process.wait(timeout=10)


@pytest.fixture
def client(gateway: Gateway) -> Iterator[gatewright.Client]:
    with gatewright.Client(gateway.base_url, gateway.key) as client:
        yield client


class Connection:
    """One accepted connection: the request has been read, and the test writes the response."""

    def __init__(self, accepted: socket.socket) -> None:
        self._socket = accepted
        self.request = b""
        while b"\r\n\r\n" not in self.request:
            self.request += self._receive()
        head, self.body = self.request.split(b"\r\n\r\n", 1)
        self.head = head.decode()
        length = [
            int(line.split(":")[1])
            for line in self.head.split("\r\n")
            if line.lower().startswith("content-length:")
        ]
        while length and len(self.body) < length[0]:
            self.body += self._receive()

    def _receive(self) -> bytes:
        received = self._socket.recv(65536)
        if not received:
            raise ConnectionError("the client closed the connection within a request")
        return received

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def answer(
        self, body: bytes, status: str = "200 OK", headers: str = "content-type: application/json"
    ) -> None:
        # One request per connection: announced, so that no client sends a second one into the closing socket.
        head = f"HTTP/1.1 {status}\r\n{headers}\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
        self.send(head.encode() + body)

    def stream_head(self) -> None:
        self.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-request-id: req_stream\r\n\r\n")

    def wait_until_read(self) -> None:
        """Waits until the client has read all that was sent. Only Linux tells."""
        table = Path("/proc/net/tcp")
        if not table.exists():
            time.sleep(0.05)
            return
        own, peer = (
            f"{socket.inet_aton(host)[::-1].hex().upper()}:{port:04X}"
            for host, port in (self._socket.getsockname(), self._socket.getpeername())
        )
        for _ in range(10_000):
            rows = [line.split() for line in table.read_text().splitlines()[1:]]
            queues = {(row[1], row[2]): [int(size, 16) for size in row[4].split(":")] for row in rows}
            unsent, unread = queues.get((own, peer), [0, 0])[0], queues.get((peer, own), [0, 0])[1]
            if not unsent and not unread:
                return
            time.sleep(0.001)
        raise AssertionError("the client does not read what was sent")

    def reset(self) -> None:
        """Ends the connection with a reset rather than a close."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def wait_until_closed(self, timeout: float) -> bool:
        """Whether the client closes the connection within this many seconds."""
        self._socket.settimeout(timeout)
        try:
            return self._socket.recv(1) == b""
        except TimeoutError:
            return False
        except ConnectionError:
            return True


class Server:
    """Answers each connection with `handle`, on its own thread."""

    def __init__(self, handle: Callable[[Connection], None]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._handle = handle
        self.base_url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(accepted,), daemon=True).start()

    def _talk(self, accepted: socket.socket) -> None:
        # OSError: the client disconnected, which many tests are about.
        with accepted, contextlib.suppress(OSError):
            self._handle(Connection(accepted))

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[Connection], None]], str]]:
    """Starts a server that answers with the given function; returns its URL."""
    servers: list[Server] = []

    def start(handle: Callable[[Connection], None]) -> str:
        servers.append(Server(handle))
        return servers[-1].base_url

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def receive(serve: Callable[[Callable[[Connection], None]], str]) -> Callable[[bytes], gatewright.Record]:
    """Makes a gateway respond with exactly this body, and returns the client's result."""

    def receive(body: bytes) -> gatewright.Record:
        base_url = serve(lambda connection: connection.answer(body))
        with gatewright.Client(base_url, "key") as client:
            result = client.models.list()
        assert isinstance(result, gatewright.Record)
        return result

    return receive
