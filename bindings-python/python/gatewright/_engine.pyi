"""The engine: records, clients over the core, the report validator, the program."""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, final

_Parameters: TypeAlias = tuple[dict[str, Any] | None, dict[str, Any] | None, dict[str, Any] | None]

class Record(Mapping[str, Any]):
    """A JSON object of a response: all members, including unknown ones, as attributes and items, in their
    order.

    Read-only; `to_dict()` returns a copy that you can change. If the gateway omitted a member that the
    specification declares, even a required one, the attribute is None and the item raises KeyError. Any other
    name raises AttributeError. Read a member named like a method (`items`, `keys`, …) as an item. A member
    named like a Python keyword is also an attribute with `_` after it. A record is equal to a dict with the
    same members.

    >>> import gatewright
    >>> model = gatewright.Client().models.list().data[0]
    >>> model.id == model["id"], "id" in model, isinstance(model.to_dict(), dict)
    (True, True, True)
    >>> gatewright.Record.from_json('{"n": 1}').to_json()
    '{"n":1}'
    """

    def __init__(self, members: Mapping[str, object]) -> None: ...
    @classmethod
    def from_json(cls, json: str | bytes) -> Record:
        """Parses a JSON object; raises ValueError for anything else."""
    def __getitem__(self, name: str, /) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __contains__(self, name: object, /) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def to_dict(self) -> dict[str, Any]:
        """A copy as plain dicts and lists."""
    def to_json(self) -> str:
        """The record as compact JSON text."""
    def model_dump(
        self,
        *,
        mode: str = ...,
        exclude_none: bool = ...,
        exclude_unset: bool = ...,
        by_alias: bool | None = ...,
    ) -> dict[str, Any]:
        """A copy as plain dicts and lists, for code written for pydantic models. A record contains only the
        members that arrived, under their wire names, so only `exclude_none` has an effect."""
    def model_dump_json(
        self,
        *,
        indent: int | None = ...,
        exclude_none: bool = ...,
        exclude_unset: bool = ...,
        by_alias: bool | None = ...,
    ) -> str:
        """The record as JSON text; without `indent`, compact."""
    @property
    def _response(self) -> ResponseInfo | None:
        """Metadata of the response; None on an inner record."""
    @property
    def _request_id(self) -> str | None:
        """The gateway's id of the request; None on an inner record."""

@final
class ResponseInfo:
    """Metadata of a response."""

    @property
    def status_code(self) -> int:
        """HTTP status."""
    @property
    def headers(self) -> dict[str, str]:
        """Headers by lower-case name; values of a repeated header are joined by commas."""
    @property
    def request_id(self) -> str | None:
        """The gateway's id of the request."""
    @property
    def attempts(self) -> int:
        """Number of requests, including retries."""
    @property
    def elapsed(self) -> float:
        """Seconds from the call to its response, to the headers of its stream, or to its failure."""

@final
class RawEvent:
    """One event of a stream as it arrived; also `[DONE]`, heartbeats and errors."""

    @property
    def event(self) -> str | None:
        """Name of the event."""
    @property
    def data(self) -> str | None:
        """Data, with its lines joined; None if there is none."""
    @property
    def id(self) -> str | None:
        """The last id that the stream sent."""
    @property
    def retry(self) -> float | None:
        """Requested pause before a reconnection, in seconds."""
    @property
    def comments(self) -> list[str]:
        """Comments of the event."""

@final
class NotGiven:
    """The class of NOT_GIVEN, the default of optional arguments. None is sent as null."""

    def __bool__(self) -> bool: ...

NOT_GIVEN: NotGiven
"""Stands for an omitted argument, which is not sent."""

@final
class Pending:
    """Work in progress, for asyncio."""

    @property
    def future(self) -> asyncio.Future[Any]:
        """Settled on the event loop of the call."""
    def cancel(self) -> None:
        """Drops the work, and closes its request."""

@final
class Reply:
    """Takes the outcome of a callback on an event loop."""

    def goes_on(self, task: asyncio.Future[Any]) -> None:
        """The callback continues as this task, which is cancelled with the call."""
    def settle(self, value: Any, failed: bool) -> None:
        """The callback has returned this value or, if failed, raised it."""

@final
class EngineStream:
    """A streamed response. The thread or task that waits for it reads it."""

    def take(self, level: str) -> list[Any] | None:
        """All ready events of a level, the last one first; None once the stream is complete. Raises the error
        that ended the stream.

        Levels: `events`, `raw_events`, `text`. The first call decides the level.
        """
    def next(self, level: str) -> list[Any] | None:
        """Like `take`, but blocks until there is at least one event."""
    def readable(self, event_loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        """Done once `take` has something to return."""
    def finish(self) -> Any:
        """Reads to the end; returns the whole document."""
    def finish_async(self, event_loop: asyncio.AbstractEventLoop) -> Pending:
        """Reads to the end; the whole document settles the future."""
    def close(self) -> None:
        """Closes the connection; the document of a complete stream remains available."""
    @property
    def response(self) -> ResponseInfo:
        """Status, headers, request id and attempts."""

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
        """A client with these options on top of this client's, on the same connections."""
    def noting(self, responses: list[ResponseInfo]) -> EngineClient:
        """This client, adding the metadata of its responses to the list."""
    def options(self, secrets: bool) -> dict[str, Any]:
        """The options of this client's calls, in the form that `with_options` takes."""
    @property
    def key(self) -> str | None:
        """The key, if the client has it as text."""
    @property
    def base_url(self) -> str:
        """Address of the gateway."""
    def call(
        self, operation: str, parameters: _Parameters, body: dict[str, Any] | None, options: dict[str, Any]
    ) -> Any:
        """Sends a call and waits for its response."""
    def call_async(
        self,
        operation: str,
        parameters: _Parameters,
        body: dict[str, Any] | None,
        options: dict[str, Any],
        event_loop: asyncio.AbstractEventLoop,
    ) -> Pending:
        """Sends a call; its response settles the future."""
    def open(
        self, operation: str, parameters: _Parameters, body: dict[str, Any] | None, options: dict[str, Any]
    ) -> EngineStream:
        """Sends a call and waits until its stream begins."""
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
        options: dict[str, Any],
        *,
        submitted: bool = ...,
    ) -> None: ...
    def next(self) -> Any:
        """The task after the next poll; None after the poll that found it completed."""
    def next_async(self, event_loop: asyncio.AbstractEventLoop) -> Pending:
        """Like `next`; the task settles the future."""

def save(
    client: EngineClient,
    kind: str,
    record: Mapping[str, Any],
    path: str | os.PathLike[str],
    options: dict[str, Any],
) -> int:
    """Saves what a record points to; returns the size."""

def save_async(
    client: EngineClient,
    kind: str,
    record: Mapping[str, Any],
    path: str | os.PathLike[str],
    options: dict[str, Any],
    event_loop: asyncio.AbstractEventLoop,
) -> Pending:
    """Like `save`; the size settles the future."""

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
        own_names: bool = ...,
        models: Sequence[str] | None = ...,
        kit_name: str | None = ...,
        max_bytes: int | None = ...,
        max_findings: int | None = ...,
    ) -> None: ...
    @property
    def max_bytes(self) -> int:
        """Largest document that is read."""
    def validate(self, document: bytes) -> _Verdict | None:
        """The verdict; nothing if the document is clean."""
    def html(
        self, document: bytes, evidence: str | None, page: str | None, protocols: bytes | None
    ) -> _Made: ...
    def junit(self, document: bytes) -> _Made: ...
    def sarif(self, document: bytes, path: str) -> _Made: ...
    def annotations(self, document: bytes) -> _Made: ...
    def canonical(self, document: bytes) -> _Made: ...
    def diff(self, old: bytes, new: bytes, thresholds: tuple[int, int], as_html: bool) -> _Made: ...

_Finding: TypeAlias = tuple[str, int, int, str, str | None, str | None, str | None, str, str]
"""The members of `report.Violation`."""

_Verdict: TypeAlias = tuple[bool, list[_Finding], list[_Finding], int, int]
"""The members of `report.Outcome`, with the members of each finding."""

_Made: TypeAlias = tuple[str, None] | tuple[None, tuple[str, _Verdict | None]]
"""The result for a document, or a one-line reason why there is none, and the verdict."""

SLOWER_PERCENT: int
"""Default of `slower_percent`, in percent of the old time."""

SLOWER_MS: int
"""Default of `slower_ms`, in milliseconds."""

def is_blank_line(line: bytes) -> bool:
    """Whether bytes are a blank line of a file: JSON whitespace only, and at least one byte."""

@final
class ReportPool:
    """Threads that validate documents."""

    def __init__(self, validator: ReportValidator, threads: int, ordered: bool) -> None: ...
    def submit(self, document: bytes | None, path: str | None) -> bool:
        """Submits a document. Returns whether there is room for another before a result is fetched."""
    def fetch(self) -> tuple[int, _Verdict | None, str | None] | None:
        """The next result: index, verdict, and why the document could not be read; neither if it is clean.
        None if no result is pending."""

@final
class CheckRun:
    """A run of the check kit, on its own threads."""

    def __init__(self, options: str, api_key: str) -> None: ...
    def next(self, wait_ms: int) -> tuple[bool, str | None]:
        """Whether the run continues, and the next event as JSON, if one arrives within this time."""
    def cancel(self) -> None: ...
    def result(self) -> tuple[str, str, str | None, bool]:
        """Report, evidence and additional checks as JSON, and whether the run was cut short."""
    def write_report(self, path: str) -> None: ...
    def write_protocols(self, path: str) -> None: ...
    def write_evidence(self, folder: str) -> list[str]: ...

__version__: str
"""The version of the package."""

def register_operations(json: str) -> None:
    """Adds operations of another API. A generated package calls this when it is imported."""

def takes_files(operation: str) -> bool:
    """Whether an operation takes files."""

@final
class ReadFile:
    """A file of a body, in memory."""

def read_files(operation: str, body: dict[str, Any]) -> dict[str, Any]:
    """A copy of a body in which files are a `ReadFile`. Errors: TypeError, ValueError, OSError."""

def is_secret_name(name: str) -> bool:
    """Whether a header or query parameter of this name is treated as a secret."""

def key_of_round(key: str, round: int) -> str:
    """The idempotency key of a later round of a loop; `round` is counted from 0."""

def run_program(arguments: list[str], folders: Callable[[], list[str]]) -> int:
    """Runs the program `gatewright`; the first argument is its own name. Returns the exit code.

    folders: called for the folders of programs, if a command needs that of `gatewright-server`.
    """
