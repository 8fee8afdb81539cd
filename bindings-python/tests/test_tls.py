"""TLS: authorities to trust, and client certificates."""

from __future__ import annotations

import contextlib
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import gatewright
import pytest
import trustme
from gatewright import Client


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Sends nothing."""


class Authority:
    """A certificate authority that only this test knows, and the files it has issued."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        self.bundle = folder / "authority.pem"
        self.authority.cert_pem.write_to_path(str(self.bundle))
        self.client = folder / "client.pem"
        self.authority.issue_cert("client@gatewright.test").private_key_and_cert_chain_pem.write_to_path(
            str(self.client)
        )

    @contextlib.contextmanager
    def serve(self, *, wants_certificate: bool) -> Iterator[str]:
        """A gateway behind TLS; its URL."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert("127.0.0.1").configure_cert(context)
        if wants_certificate:
            context.verify_mode = ssl.CERT_REQUIRED
            self.authority.configure_trust(context)
        server = HTTPServer(("127.0.0.1", 0), Answer)
        # Failed handshakes end the connection, not the server.
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield f"https://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


def test_a_configured_authority_is_trusted(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    with authority.serve(wants_certificate=False) as address:
        with pytest.raises(gatewright.APIConnectionError, match="certificate"):
            Client(address, "key", max_retries=0).models.list()
        assert Client(address, "key", ca_bundle=authority.bundle, max_retries=0).models.list() == {}
        monkeypatch.setenv("GATEWRIGHT_CA_BUNDLE", str(authority.bundle))
        assert Client(address, "key", max_retries=0).models.list() == {}


def test_a_client_presents_its_certificate_on_request(authority: Authority) -> None:
    with authority.serve(wants_certificate=True) as address:
        with pytest.raises(gatewright.APIConnectionError):
            Client(address, "key", ca_bundle=authority.bundle, max_retries=0).models.list()
        client = Client(
            address,
            "key",
            ca_bundle=str(authority.bundle),
            client_certificate=authority.client,
            max_retries=0,
        )
        assert client.models.list() == {}


def test_a_missing_or_invalid_certificate_file_is_rejected_with_its_path(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing\n")
    for path in (tmp_path / "missing.pem", empty):
        with pytest.raises(gatewright.ConfigurationError, match=path.name):
            Client("https://127.0.0.1:1", "key", ca_bundle=path)
        with pytest.raises(gatewright.ConfigurationError, match=path.name):
            Client("https://127.0.0.1:1", "key", client_certificate=path)
