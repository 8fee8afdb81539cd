"""Servers that break HTTP, or exploit it: each ends as an answer or as an error of its call, and the next
call is served (3). The vectors are those that all languages share."""

from __future__ import annotations

import contextlib
import itertools
import json
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import gatewright
import pytest
import trustme
from conftest import VECTORS
from gatewright import Client

FRAMES = [
    "DATA",
    "HEADERS",
    "PRIORITY",
    "RST_STREAM",
    "SETTINGS",
    "PUSH_PROMISE",
    "PING",
    "GOAWAY",
    "WINDOW_UPDATE",
    "CONTINUATION",
]
COMPLETION = json.dumps({"id": "c1", "object": "chat.completion", "choices": []})
PLACEHOLDERS = {
    "{{completion}}": COMPLETION,
    "{{completion_chunk}}": f"{len(COMPLETION):x}\r\n{COMPLETION}\r\n",
}
HTTP1_ANSWER = [
    {"text": f"HTTP/1.1 200 OK\r\ncontent-length: {len(COMPLETION)}\r\n\r\n"},
    {"text": "{{completion}}"},
]
HTTP2_ANSWER = [
    {"type": "HEADERS", "flags": 4, "on": "request", "hex": "88"},
    {"type": "DATA", "flags": 1, "on": "request", "text": "{{completion}}"},
]
SETTINGS = {"type": "SETTINGS"}
T = TypeVar("T")
R = TypeVar("R")
# How much is sent at once, in bytes.
BLOCK = 65536
# How long a call may take, in seconds: where it is to take that long, and elsewhere.
SHORT, LONG = 1.5, 60.0


def encoded(piece: dict[str, Any], request: int) -> bytes:
    """The bytes of a piece: a frame of HTTP/2 (RFC 9113, section 4.1) if it has a type."""
    text = piece.get("text", "")
    for name, value in PLACEHOLDERS.items():
        text = text.replace(name, value)
    payload: bytes = (bytes.fromhex(piece.get("hex", "")) + text.encode()) * piece.get("repeat", 1)
    payload += bytes.fromhex(piece.get("then", ""))
    kind = piece.get("type")
    if kind is None:
        return payload
    stream = request if piece.get("on") == "request" else piece.get("on", 0)
    length = piece.get("length", len(payload))
    number = FRAMES.index(kind) if isinstance(kind, str) else kind
    head = [length.to_bytes(3, "big"), bytes([number, piece.get("flags", 0)]), stream.to_bytes(4, "big")]
    return b"".join([*head, payload])


class TlsConnection:
    """A connection that is read by one thread and written by others: OpenSSL allows one call at a time."""

    def __init__(self, accepted: ssl.SSLSocket) -> None:
        accepted.setblocking(False)
        self._socket = accepted
        self._calling = threading.Lock()
        # Bytes that did not fit must follow before any others.
        self._writing = threading.Lock()

    def read(self, length: int) -> bytes:
        """This many bytes; fewer at the end."""
        received = b""
        while len(received) < length:
            more = self._call(self._socket.recv, length - len(received))
            if not more:
                break
            received += more
        return received

    def sendall(self, data: bytes) -> None:
        with self._writing:
            while data:
                data = data[self._call(self._socket.send, data) :]

    def shutdown(self) -> None:
        with self._calling, contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _call(self, function: Callable[[T], R], argument: T) -> R:
        while True:
            reads: list[socket.socket] = []
            writes: list[socket.socket] = []
            with self._calling:
                try:
                    return function(argument)
                except (ssl.SSLWantReadError, BlockingIOError):
                    reads = [self._socket]
                except ssl.SSLWantWriteError:
                    writes = [self._socket]
            # Another thread may have done what this one waits for.
            select.select(reads, writes, [], 0.05)


class Hostile:
    """A server whose first connection does what a case says; further ones answer."""

    def __init__(self, case: dict[str, Any], tls: ssl.SSLContext | None) -> None:
        self._case = case
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        scheme = "http" if tls is None else "https"
        self.base_url = f"{scheme}://localhost:{self._listener.getsockname()[1]}"
        self._over = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._over.set()
        self._listener.close()

    def _serve(self) -> None:
        for number in itertools.count():
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(accepted, number == 0), daemon=True).start()

    def _talk(self, accepted: socket.socket, is_hostile: bool) -> None:
        # The client may end the connection at any time, and does so in most cases.
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is None:
                self._talk_http1(stack.enter_context(accepted), is_hostile)
            else:
                secure = self._tls.wrap_socket(accepted, server_side=True)
                self._talk_http2(stack.enter_context(secure), is_hostile)

    def _talk_http1(self, connection: socket.socket, is_hostile: bool) -> None:
        received = connection.makefile("rb")
        while received.readline():
            length = 0
            for line in iter(received.readline, b"\r\n"):
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            received.read(length)
            self._send(connection, self._case["answers"] if is_hostile else HTTP1_ANSWER, 0)
            if is_hostile and self._case.get("ends") == "close":
                return
            is_hostile = False

    def _talk_http2(self, accepted: ssl.SSLSocket, is_hostile: bool) -> None:
        connection = TlsConnection(accepted)
        opens = self._case.get("opens", [SETTINGS]) if is_hostile else [SETTINGS]
        self._send(connection, opens, 0)
        sender = None
        connection.read(len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
        try:
            for request in self._requests(connection):
                if not is_hostile:
                    self._send(connection, HTTP2_ANSWER, request)
                    continue
                is_hostile = False
                if self._case.get("reads", True):
                    # What the client says meanwhile must not stop it.
                    sender = threading.Thread(target=self._send_case, args=(connection, request), daemon=True)
                    sender.start()
                else:
                    self._send_case(connection, request)
        finally:
            # A sender that outlives its socket writes into the next one of the same number.
            if sender is not None:
                connection.shutdown()
                sender.join()

    def _send_case(self, connection: TlsConnection, request: int) -> None:
        with contextlib.suppress(OSError):
            self._send(connection, self._case["answers"], request)
            if self._case.get("ends") == "close":
                connection.shutdown()

    def _requests(self, connection: TlsConnection) -> Iterator[int]:
        """The streams of complete requests."""
        while len(head := connection.read(9)) == 9:
            connection.read(int.from_bytes(head[:3], "big"))
            if head[3] in (0, 1) and head[4] & 1:
                yield int.from_bytes(head[5:], "big")

    def _send(
        self, connection: socket.socket | TlsConnection, pieces: list[dict[str, Any]], request: int
    ) -> None:
        for piece in pieces:
            once = encoded(piece, request)
            # 0 times: without end.
            left = piece.get("times", 1) or float("inf")
            together = max(1, BLOCK // max(1, len(once)))
            while left > 0 and not self._over.is_set():
                count = int(min(left, together))
                connection.sendall(once * count)
                left -= count


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    """TLS that chooses HTTP/2, and the bundle to trust."""
    authority = trustme.CA()
    bundle = tmp_path_factory.mktemp("hostile") / "authority.pem"
    authority.cert_pem.write_to_path(str(bundle))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    context.set_alpn_protocols(["h2"])
    return context, bundle


def cases(protocol: str) -> Iterator[Any]:
    for case in json.loads((VECTORS / "hostile" / f"{protocol}.json").read_text())["cases"]:
        yield pytest.param(case, protocol, id=f"{protocol}-{case['name']}")


def outcome(client: Client, stream: bool) -> str:
    """`completion`, or the kind of the error."""
    try:
        answer = client.chat.completions.create(model="m", messages=[], stream=stream)
        if stream:
            for _ in answer:
                pass
    except gatewright.APIError as error:
        return error.kind
    return "completion"


@pytest.mark.parametrize(("case", "protocol"), [*cases("http1"), *cases("http2")])
def test_a_hostile_server_ends_one_call_and_the_next_is_served(
    secure: tuple[ssl.SSLContext, Path], case: dict[str, Any], protocol: str
) -> None:
    context, bundle = secure
    next_outcome = case.get("next", "completion")
    timeout = SHORT if "timeout" in (case["outcome"], next_outcome) else LONG
    server = Hostile(case, context if protocol == "http2" else None)
    limits: dict[str, Any] = {"timeout": timeout, "event_timeout": timeout, "max_body_bytes": 1 << 20}
    with (
        contextlib.closing(server),
        Client(server.base_url, "key", max_retries=0, ca_bundle=bundle, **limits) as client,
    ):
        assert outcome(client, case.get("stream", False)) == case["outcome"]
        assert outcome(client, False) == next_outcome
