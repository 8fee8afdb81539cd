"""The floor for every Python client: a bare socket and json.

It implements only the HTTP that the stub's responses need.
"""

import asyncio
import json
import socket

from measured import AT_ONCE, HOST, MESSAGES, MODEL, WORK, main, weight

HOSTNAME, PORT = HOST.rsplit(":", 1)
ADDRESS = (HOSTNAME, int(PORT))
END = b"0\r\n\r\n"


def request() -> bytes:
    stream = {} if WORK in ("ask", "crowd") else {"stream": True}
    body = json.dumps({"model": MODEL, "messages": MESSAGES} | stream)
    return (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: {HOST}\r\nauthorization: Bearer none\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n{body}"
    ).encode()


def document(received: bytes) -> bytes | None:
    """The body of a response, once it is complete."""
    head, _, body = received.partition(b"\r\n\r\n")
    length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    return body if length and len(body) >= int(length) else None


def weight_of(body: bytes) -> int:
    completion = json.loads(body)
    return weight(completion["choices"][0]["message"]["content"]) + completion["usage"]["total_tokens"]


class Lines:
    """The lines of a stream. The HTTP lines between them belong to no event."""

    def __init__(self) -> None:
        self.weight = 0
        self.rest = b""
        self.is_over = False

    def feed(self, packet: bytes) -> None:
        *lines, self.rest = (self.rest + packet).split(b"\n")
        for line in lines:
            if line.startswith(b"data: {"):
                choices = json.loads(line[6:])["choices"]
                self.weight += weight(choices[0]["delta"].get("content")) if choices else 0
        self.is_over = packet.endswith(END)


def ask() -> int:
    connection.sendall(request())
    received = connection.recv(65536)
    while (body := document(received)) is None:
        received += connection.recv(65536)
    return weight_of(body)


def read() -> int:
    connection.sendall(request())
    lines = Lines()
    while not lines.is_over:
        lines.feed(connection.recv(65536))
    return lines.weight


class Connection(asyncio.Protocol):
    """A connection on the event loop, with one request at a time."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def send(self) -> asyncio.Future[int]:
        self.answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.received, self.lines = b"", Lines()
        self.transport.write(request())
        return self.answer

    def data_received(self, packet: bytes) -> None:
        if WORK == "crowd":
            self.received += packet
            if (body := document(self.received)) is not None:
                self.answer.set_result(weight_of(body))
            return
        self.lines.feed(packet)
        if self.lines.is_over:
            self.answer.set_result(self.lines.weight)


idle: list[Connection] = []


async def exchange() -> int:
    if idle:
        connection = idle.pop()
    else:
        _, connection = await asyncio.get_running_loop().create_connection(Connection, *ADDRESS)
    answer = await connection.send()
    assert len(idle) < AT_ONCE
    idle.append(connection)
    return answer


if WORK in ("ask", "read"):
    connection = socket.create_connection(ADDRESS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

main({"ask": ask, "read": read}, {"crowd": exchange, "read-async": exchange})
