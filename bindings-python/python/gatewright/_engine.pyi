"""The engine: records, clients over the core, the report validator, the program."""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, final

_Parameters: TypeAlias = tuple[dict[str, Any] | None, dict[str, Any] | None, dict[str, Any] | None]

class Record(Mapping[str, Any]):
    """A JSON object of a response: members by attribute and by item, unknown ones too, in the order sent.

    Read-only; `to_dict()` gives a copy to change. A member that the specification declares, required or not,
    and the gateway left out reads as None by attribute and raises KeyError by item; any other name raises
    AttributeError.
    A member named like a method (`items`, `keys`, …) is read by item; one named like a Python keyword also
    as an attribute with `_` after it. Equal to a dict with the same members.
    """

    def __init__(self, members: Mapping[str, object]) -> None: ...
    @classmethod
    def from_json(cls, json: str | bytes) -> Record:
        """Reads a JSON object; raises ValueError for anything else."""
    def __getitem__(self, name: str, /) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __contains__(self, name: object, /) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def to_dict(self) -> dict[str, Any]:
        """A copy in plain dicts and lists."""
    def to_json(self) -> str:
        """The record as compact JSON text."""
    @property
    def _response(self) -> ResponseInfo | None:
        """What came with the response; None on an inner record."""
    @property
    def _request_id(self) -> str | None:
        """The gateway's id of the request; None on an inner record."""

@final
class ResponseInfo:
    """What comes with a response besides its body."""

    @property
    def status_code(self) -> int:
        """HTTP status."""
    @property
    def headers(self) -> dict[str, str]:
        """Headers by lower-case name; values of a repeated one are joined by a comma."""
    @property
    def request_id(self) -> str | None:
        """The gateway's id of the request."""
    @property
    def attempts(self) -> int:
        """Requests it took, retries included."""
    @property
    def elapsed(self) -> float:
        """Seconds from the call to its whole answer, the head of its stream, or its failure."""

@final
class RawEvent:
    """One event of a stream as it was framed: `[DONE]`, heartbeats and errors included."""

    @property
    def event(self) -> str | None:
        """The event's name."""
    @property
    def data(self) -> str | None:
        """Its data, lines joined; None for a block without any."""
    @property
    def id(self) -> str | None:
        """The id in force."""
    @property
    def retry(self) -> float | None:
        """Seconds a client is asked to wait before it connects again."""
    @property
    def comments(self) -> list[str]:
        """Comments that came before its end."""

@final
class NotGiven:
    """The class of NOT_GIVEN, the default of arguments that may be left out; None is sent as null."""

    def __bool__(self) -> bool: ...

NOT_GIVEN: NotGiven

@final
class Pending:
    """Work under way for asyncio."""

    @property
    def future(self) -> asyncio.Future[Any]:
        """Settled on the loop that was given."""
    def cancel(self) -> None:
        """Drops the work: an open request is closed."""

@final
class Reply:
    """Takes the outcome of a callback on an event loop."""

    def goes_on(self, task: asyncio.Future[Any]) -> None:
        """The callback goes on as this task, to be cancelled with the call."""
    def settle(self, value: Any, failed: bool) -> None:
        """The callback has returned this value or, where failed, raised it."""

@final
class EngineStream:
    """One answer as it streams: read ahead from the first `take` on."""

    def take(self, level: str) -> list[Any] | None:
        """All ready events of a level; None once the stream is complete. Raises the error that ended it.

        Levels: `events`, `raw_events`, `text`. The first call decides the level.
        """
    def wait(self) -> None:
        """Blocks until `take` has something to tell."""
    def readable(self, event_loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        """Done when `take` has something to tell."""
    def finish(self) -> Any:
        """Reads on to the end and gives the whole document."""
    def finish_async(self, event_loop: asyncio.AbstractEventLoop) -> Pending:
        """Reads on to the end; the whole document settles the future."""
    def close(self) -> None:
        """Closes the connection; of a complete stream the document stays."""
    @property
    def response(self) -> ResponseInfo:
        """Status, headers, request id, attempts."""

@final
class EngineClient:
    """A client of the core."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        key: str | None,
        callbacks: Any,
        *,
        keep_key: bool = ...,
    ) -> None: ...
    def with_options(self, options: dict[str, Any]) -> EngineClient:
        """A client with these options over this one's, over the same connections."""
    def options(self, secrets: bool) -> dict[str, Any]:
        """The options that calls have here, as `with_options` takes them."""
    @property
    def key(self) -> str | None:
        """The key, of a client that keeps it."""
    @property
    def base_url(self) -> str:
        """The gateway's address."""
    def call(
        self, operation: str, parameters: _Parameters, body: dict[str, Any] | None, options: dict[str, Any]
    ) -> Any:
        """Sends a call and waits for its answer."""
    def call_async(
        self,
        operation: str,
        parameters: _Parameters,
        body: dict[str, Any] | None,
        options: dict[str, Any],
        event_loop: asyncio.AbstractEventLoop,
    ) -> Pending:
        """Sends a call; its answer settles the future."""
    def open(
        self, operation: str, parameters: _Parameters, body: dict[str, Any] | None, options: dict[str, Any]
    ) -> EngineStream:
        """Sends a call and waits until its answer streams."""
    def open_async(
        self,
        operation: str,
        parameters: _Parameters,
        body: dict[str, Any] | None,
        options: dict[str, Any],
        event_loop: asyncio.AbstractEventLoop,
    ) -> Pending:
        """Sends a call; its stream settles the future."""
    def close(self) -> None:
        """Closes idle connections and refuses new calls."""

@final
class VideoWatch:
    """A wait for a video task, one poll at a time."""

    def __init__(
        self,
        client: EngineClient,
        task_id: str,
        interval: float,
        timeout: float,
        *,
        submitted: bool = ...,
    ) -> None: ...
    def next(self) -> Any:
        """The task after the next poll; None after the poll that found it completed."""
    def next_async(self, event_loop: asyncio.AbstractEventLoop) -> Pending:
        """As `next`; it settles the future."""

VIDEO_POLL_INTERVAL_S: float
"""Default number of seconds between two polls of a task."""

VIDEO_WAIT_TIMEOUT_S: float
"""Default number of seconds to wait for a task."""

def save(
    client: EngineClient,
    kind: str,
    record: Mapping[str, Any],
    path: str | os.PathLike[str],
    options: tuple[bool, int | None, float | None],
) -> int:
    """Saves what a record points to; options: overwrite, max_bytes, timeout. Returns the size."""

def save_async(
    client: EngineClient,
    kind: str,
    record: Mapping[str, Any],
    path: str | os.PathLike[str],
    options: tuple[bool, int | None, float | None],
    event_loop: asyncio.AbstractEventLoop,
) -> Pending:
    """As `save`; the size settles the future."""

def unwrap_webhook(body: Any, headers: Any, secrets: str | Sequence[str] | None) -> Any:
    """Verifies a webhook; returns its record."""

def read_webhook(body: Any) -> Any:
    """The record of a webhook that is not signed."""

@final
class ReportValidator:
    """A validator with its settings."""

    def __init__(
        self,
        *,
        strict: bool = ...,
        models: Sequence[str] | None = ...,
        kit_name: str | None = ...,
        max_bytes: int | None = ...,
        max_findings: int | None = ...,
    ) -> None: ...
    @property
    def max_bytes(self) -> int:
        """Largest document that is read."""
    def validate(self, document: bytes) -> dict[str, Any]:
        """The verdict: valid, violations, advisories, more_violations, more_advisories."""
    def html(self, document: bytes, evidence: str | None, page: str | None) -> _Made: ...
    def junit(self, document: bytes) -> _Made: ...
    def annotations(self, document: bytes) -> _Made: ...
    def canonical(self, document: bytes) -> _Made: ...
    def diff(self, old: bytes, new: bytes, thresholds: tuple[int, int], as_html: bool) -> _Made: ...

_Made: TypeAlias = tuple[str, None] | tuple[None, tuple[str, dict[str, Any]]]
"""The result for a document, or a one-line reason why there is none, and the verdict."""

SLOWER_PERCENT: int
"""Slower is longer by more than this, in percent of the old time, and …"""

SLOWER_MS: int
"""… by more than this, in milliseconds, unless told otherwise."""

def is_blank_line(line: bytes) -> bool:
    """Whether bytes are a line of a file with nothing in it: white space of JSON alone, and some."""

@final
class ReportPool:
    """Threads that judge documents."""

    def __init__(self, validator: ReportValidator, threads: int, ordered: bool) -> None: ...
    def submit(self, document: bytes | None, path: str | None) -> bool:
        """Hands a document over; whether there is room for another before a result is fetched."""
    def fetch(self) -> tuple[int, dict[str, Any] | None, str | None] | None:
        """The next result: index, verdict, or why there is none; nothing when none is pending."""

@final
class CheckRun:
    """A run of the check kit, on its own threads."""

    def __init__(self, options: str, api_key: str) -> None: ...
    def next(self, wait_ms: int) -> tuple[bool, str | None]:
        """Whether the run goes on, and the next event as JSON if one came within so many milliseconds."""
    def cancel(self) -> None: ...
    def result(self) -> tuple[str, str, bool]:
        """Report and evidence as JSON, and whether the run was cut short."""
    def write_report(self, path: str) -> None: ...
    def write_evidence(self, folder: str) -> list[str]: ...

__version__: str

def is_secret_name(name: str) -> bool:
    """Whether a header or query parameter of this name is treated as a secret."""

def run_program(arguments: list[str]) -> int:
    """Runs the program `gatewright`; the first argument is its own name. Returns the exit code."""
