"""No error shows a secret that a service echoes (5 rule 1), tested with the vectors that all languages
share."""

from __future__ import annotations

import base64
import json
import traceback
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote

import gatewright
import pytest
from conftest import VECTORS, Connection
from gatewright import Client

KEY = "gw-Canary/4+7f=x9"
IN_HEADER = "canary-in-a-header"
IN_QUERY = "canary-in-a-query"
BASE64 = base64.b64encode(f"Bearer {KEY}".encode()).decode()

FORMS = {
    "key": KEY,
    "percent": "".join(f"%{ord(letter):02X}" for letter in KEY),
    "json": "".join(f"\\u{ord(letter):04x}" for letter in KEY),
    "html": "".join(f"&#{ord(letter)};" for letter in KEY),
    "hex": KEY.encode().hex(),
    "base64": BASE64,
    "upper": KEY.upper(),
    "head": KEY[:8],
    "tail": KEY[8:],
    "header": IN_HEADER,
    "query": IN_QUERY,
}


def echoed(text: str) -> str:
    for name, form in FORMS.items():
        text = text.replace("{{" + name + "}}", form)
    return text


def shown(error: gatewright.APIError) -> str:
    """Everything that an error shows: itself, its traceback with its causes, and each attribute."""
    parts = ["".join(traceback.format_exception(error)), str(error), repr(error)]
    for name in dir(error):
        value = None if name.startswith("__") else getattr(error, name)
        if value is not None and not callable(value):
            parts.append(f"{name}: {value!r} {value}")
    if error.response is not None:
        parts.append(repr(dict(error.response.headers)))
    return "\n".join(parts)


def call(client: Client, operation: str, stream: bool) -> None:
    options: dict[str, Any] = {
        "extra_headers": {"x-goog-api-key": IN_HEADER},
        "extra_query": {"key": IN_QUERY},
    }
    if operation == "create_chat_completion":
        result: Any = client.chat.completions.create(model="m", messages=[], stream=stream, **options)
    elif operation == "create_response":
        result = client.responses.create(model="m", input="hi", stream=stream, **options)
    else:
        result = client.native.stream_generate_content(model="m", contents=[], **options)
    for _ in result:
        pass


def cases() -> Iterator[Any]:
    for case in json.loads((VECTORS / "secrets" / "echoes.json").read_text())["cases"]:
        yield pytest.param(case, id=case["name"])


@pytest.mark.parametrize("case", list(cases()))
def test_no_error_shows_a_secret_that_a_service_echoes(
    serve: Callable[[Callable[[Connection], None]], str], case: dict[str, Any]
) -> None:
    response = case["response"]
    headers = "\r\n".join(f"{name}: {echoed(value)}" for name, value in response["headers"].items())

    def answer(connection: Connection) -> None:
        connection.answer(echoed(response["body"]).encode(), f"{response['status']} Status", headers)

    with Client(serve(answer), KEY, max_retries=0) as client, pytest.raises(gatewright.APIError) as caught:
        call(client, case["operation"], case["stream"])
    error = caught.value
    if case["error"]["message"] is not None:
        assert error.message == case["error"]["message"]
    text = shown(error)
    # The lines of this file are part of the traceback, and contain no secret themselves.
    assert "canary" not in unquote(text).lower().replace(f"{__file__}".lower(), ""), text
    for form in (FORMS["hex"], BASE64, base64.b64encode(KEY.encode()).decode()):
        assert form not in text, text
