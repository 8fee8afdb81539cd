"""Client for the Gatewright gateway, and validator of compatibility reports.

>>> import gatewright
>>> client = gatewright.Client()  # GATEWRIGHT_BASE_URL, GATEWRIGHT_API_KEY
>>> completion = client.chat.completions.create(
...     model="model-sol", messages=[{"role": "user", "content": "Say hello."}]
... )
>>> completion.choices[0].message.role
'assistant'
"""

from __future__ import annotations

import sys

from gatewright._client import AsyncClient, Client
from gatewright._engine import NOT_GIVEN, NotGiven, RawEvent, Record, ResponseInfo, __version__
from gatewright._options import CallOptions, SaveOptions, WaitOptions
from gatewright._responses import response_of, with_response
from gatewright._streams import AsyncStream, Stream
from gatewright.generated import errors, streams
from gatewright.generated.errors import *
from gatewright.generated.streams import *

# A free-threaded Python turns its lock on when it loads the engine, unless its user forbids that. The engine
# has never been tested without the lock.
if not getattr(sys, "_is_gil_enabled", lambda: True)():
    raise ImportError(
        "gatewright needs the global interpreter lock, which this free-threaded Python runs without: "
        "remove PYTHON_GIL=0 or -X gil=0, so that the import turns the lock on, or use a Python that has it"
    )

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gatewright import middleware, report, types, webhooks
    from gatewright._check import CheckOptions, CheckResult, check, check_async
    from gatewright._jsonable import to_jsonable
    from gatewright._parsed import ParsedAnswer, ParsedChatCompletion, ParsedContent, ParsedResponse
    from gatewright._tools import Tool, ToolRun

__all__ = [
    "NOT_GIVEN",
    "AsyncClient",
    "AsyncStream",
    "CallOptions",
    "CheckOptions",
    "CheckResult",
    "Client",
    "NotGiven",
    "ParsedAnswer",
    "ParsedChatCompletion",
    "ParsedContent",
    "ParsedResponse",
    "RawEvent",
    "Record",
    "ResponseInfo",
    "SaveOptions",
    "Stream",
    "Tool",
    "ToolRun",
    "WaitOptions",
    "__version__",
    "check",
    "check_async",
    "middleware",
    "report",
    "response_of",
    "to_jsonable",
    "types",
    "webhooks",
    "with_response",
]
__all__ += errors.__all__
__all__ += streams.__all__


def __getattr__(name: str) -> Any:
    # What few programs need is imported when it is first used.
    if name in ("CheckOptions", "CheckResult", "check", "check_async"):
        from gatewright import _check

        return getattr(_check, name)
    if name == "to_jsonable":
        from gatewright._jsonable import to_jsonable

        return to_jsonable
    if name in ("Tool", "ToolRun"):
        from gatewright import _tools

        return getattr(_tools, name)
    if name in ("ParsedAnswer", "ParsedChatCompletion", "ParsedContent", "ParsedResponse"):
        from gatewright._view import View

        return View
    if name in ("middleware", "report", "types", "webhooks"):
        import importlib

        return importlib.import_module(f"gatewright.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
