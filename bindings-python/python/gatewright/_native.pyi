"""The native half: records, clients over the core, the report validator, the program."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, final

_Parameters: TypeAlias = tuple[dict[str, Any] | None, dict[str, Any] | None, dict[str, Any] | None]
_Options: TypeAlias = tuple[
    Mapping[str, str] | None,
    Mapping[str, object] | None,
    Mapping[str, object] | None,
    float | None,
    int | None,
]

class Record(Mapping[str, Any]):
    """A JSON object of a response: members by attribute and by item, unknown ones too, in the order sent.

    Read-only; `to_dict()` gives a copy to change. A member that the specification declares and the gateway
    left out reads as None by attribute and raises KeyError by item; any other name raises AttributeError.
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
        """Seconds from the call to its whole answer; of a stream, to its head."""

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
class NativeStream:
    """Events of one answer, read ahead."""

    def take(self) -> list[Any] | None:
        """All events that are ready; None once the stream has ended. Raises what ended it otherwise."""
    def wait(self) -> None:
        """Blocks until `take` has something to tell."""
    def readable(self, event_loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        """Done when `take` has something to tell."""
    def close(self) -> None:
        """Closes the connection."""
    @property
    def response(self) -> ResponseInfo:
        """Status, headers, request id, attempts."""

@final
class NativeClient:
    """A client of the core."""

    def __init__(
        self,
        *,
        base_url: str | None = ...,
        api_key: str | None = ...,
        timeout: float | None = ...,
        connect_timeout: float | None = ...,
        idle_timeout: float | None = ...,
        event_timeout: float | None = ...,
        max_retries: int | None = ...,
        validate: bool = ...,
        user_agent: str | None = ...,
    ) -> None: ...
    @property
    def base_url(self) -> str:
        """The gateway's address."""
    def call(
        self, operation: str, parameters: _Parameters, body: dict[str, Any] | None, options: _Options
    ) -> Any:
        """Sends a call and waits for its answer."""
    def call_async(
        self,
        operation: str,
        parameters: _Parameters,
        body: dict[str, Any] | None,
        options: _Options,
        event_loop: asyncio.AbstractEventLoop,
    ) -> Pending:
        """Sends a call; its answer settles the future."""
    def open(
        self, operation: str, parameters: _Parameters, body: dict[str, Any] | None, options: _Options
    ) -> NativeStream:
        """Sends a call and waits until its answer streams."""
    def open_async(
        self,
        operation: str,
        parameters: _Parameters,
        body: dict[str, Any] | None,
        options: _Options,
        event_loop: asyncio.AbstractEventLoop,
    ) -> Pending:
        """Sends a call; its stream settles the future."""
    def wait_for_video(self, task_id: str, interval: float | None, timeout: float | None) -> Any:
        """Waits for a video task."""
    def wait_for_video_async(
        self,
        task_id: str,
        interval: float | None,
        timeout: float | None,
        event_loop: asyncio.AbstractEventLoop,
    ) -> Pending:
        """Waits for a video task; it settles the future."""
    def close(self) -> None:
        """Closes idle connections and refuses new calls."""

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
    ) -> None: ...
    def validate(self, document: bytes) -> dict[str, Any]:
        """The verdict: valid, violations, advisories."""
    def html(self, document: bytes, evidence: str | None, page: str | None) -> _Made: ...
    def junit(self, document: bytes) -> _Made: ...
    def annotations(self, document: bytes) -> _Made: ...
    def canonical(self, document: bytes) -> _Made: ...
    def diff(self, old: bytes, new: bytes, thresholds: tuple[int, int], as_html: bool) -> _Made: ...

_Made: TypeAlias = tuple[str, None] | tuple[None, dict[str, Any]]
"""What was made of a document, or the verdict that says why nothing was."""

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

def run_program(arguments: list[str]) -> int:
    """Runs the program `gatewright`; the first argument is its own name. Returns the exit code."""
