"""The check kit: is a service compatible, and the report about it (specification 2.12)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import platform
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from gatewright._native import CheckRun
from gatewright.generated.errors import ConfigurationError, FileError, InternalError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from typing_extensions import Unpack

    Progress: TypeAlias = Callable[[dict[str, Any]], object]

__all__ = ["CheckOptions", "CheckResult", "check", "check_async"]

CheckId = Literal[
    "models_endpoint",
    "model_access",
    "responses_text",
    "responses_stream",
    "responses_function_tool",
    "agent_cli_smoke",
]


class CheckOptions(TypedDict, total=False):
    """What a run may be told; `None` is as if it were left out."""

    base_path: str | None
    """Path below the endpoint. Default `/v1`."""
    models: Sequence[str] | None
    """Models to check, in order. Default: all of the profile."""
    full: bool | None
    """Whether every check runs on every model; else the stream and the function tool on the first alone."""
    agent_mode: Literal["skipped", "one-model", "all-models"] | None
    """Models to run the agent's program on. Default `skipped`."""
    agent_program: str | os.PathLike[str] | None
    """The agent's program. Default: that of `GATEWRIGHT_AGENT_PROGRAM`, else the one on the path."""
    agent_env: Sequence[str] | None
    """Names of environment variables to hand on to the agent beside PATH."""
    timeout_ms: int | None
    """Time limit of a request, 1000 to 120000. Default 30000."""
    agent_timeout_ms: int | None
    """Time limit of a run of the agent, 5000 to 300000. Default 120000."""
    only: Sequence[CheckId] | None
    """Checks to run; none means all."""
    skip: Sequence[CheckId] | None
    """Checks to leave out."""
    parallel: bool | None
    """Whether the models are checked at the same time."""
    profile: Mapping[str, Any] | None
    """`{"kit_name": "…", "models": ["…"]}` in place of the specification's."""
    ca_bundle: str | os.PathLike[str] | None
    """PEM file of certificates to trust beside the platform's."""


_WAIT_MS = 50
"""How long the kit is waited for before signals get their turn."""


class CheckResult:
    """What a run leaves behind."""

    def __init__(self, run: CheckRun) -> None:
        self._run = run
        self.json, evidence, self.interrupted = run.result()
        self.report: dict[str, Any] = json.loads(self.json)
        """The report, as section 2.12 has it."""
        self.evidence: list[dict[str, Any]] = json.loads(evidence)
        """Per check that was run: `id`, `model`, `assertions`, `exchange`; secrets are taken out."""

    json: str
    """The report as text, in canonical form."""
    interrupted: bool
    """Whether the run was cut short."""

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return bool(self.report["overall_status"] == "pass")

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the report, whole or not at all.

        Raises:
            FileError: It cannot be written.
        """
        try:
            self._run.write_report(os.fspath(path))
        except OSError as error:
            raise FileError(str(error)) from error

    def write_evidence(self, folder: str | os.PathLike[str]) -> list[str]:
        """Writes one JSON file per piece of evidence into a folder, and returns their names.

        Raises:
            FileError: One cannot be written.
        """
        try:
            return self._run.write_evidence(os.fspath(folder))
        except OSError as error:
            raise FileError(str(error)) from error

    def __repr__(self) -> str:
        summary = self.report["summary"]
        counts = ", ".join(f"{count} {result}" for result, count in summary.items())
        return f"<CheckResult {self.report['overall_status']}: {counts}>"


def check(
    endpoint: str,
    *,
    api_key: str | None = None,
    on_progress: Progress | None = None,
    **options: Unpack[CheckOptions],
) -> CheckResult:
    """Checks whether a service is compatible.

    Ctrl-C ends the run at once. The `KeyboardInterrupt` then has an attribute `result`, the `CheckResult` of
    what was done: its report is whole, with the cells that were not reached marked `aborted:`.

    Args:
        endpoint: Address of the service, without the base path.
        api_key: Key that the requests carry. Default: `GATEWRIGHT_API_KEY`.
        on_progress: Called with each event. `planned` has `cells` and `to_run`; `started` has `index`, `id`,
            `model`; `finished` has these and `check`. What it raises ends the run.
        options: See `CheckOptions`.

    Raises:
        ConfigurationError: An option is unknown or out of bounds, or there is no key. Nothing was sent.
        KeyboardInterrupt: Ctrl-C, with the `result` so far.
    """
    run = _begin(endpoint, api_key, options)
    try:
        while True:
            goes_on, event = run.next(_WAIT_MS)
            if not goes_on:
                return CheckResult(run)
            if event is not None and on_progress is not None:
                on_progress(json.loads(event))
    except KeyboardInterrupt as interrupt:
        run.cancel()
        while run.next(_WAIT_MS)[0]:
            pass
        _hand_over(run, interrupt)
        raise
    except BaseException:
        run.cancel()
        raise


async def check_async(
    endpoint: str,
    *,
    api_key: str | None = None,
    on_progress: Progress | None = None,
    **options: Unpack[CheckOptions],
) -> CheckResult:
    """As `check`, on an asyncio event loop.

    Cancelling the task ends the run at once. The `CancelledError` then has the attribute `result`, as the
    `KeyboardInterrupt` of `check` has it. `asyncio.timeout` and `asyncio.wait_for` raise a `TimeoutError`
    instead, whose `__cause__` it is; before Python 3.11, whoever awaits a task gets another `CancelledError`,
    whose `__context__` it is.
    """
    run = _begin(endpoint, api_key, options)
    try:
        while True:
            goes_on, event = await asyncio.to_thread(run.next, _WAIT_MS)
            if not goes_on:
                return CheckResult(run)
            if event is not None and on_progress is not None:
                on_progress(json.loads(event))
    except asyncio.CancelledError as cancelled:
        run.cancel()
        while (await asyncio.to_thread(run.next, _WAIT_MS))[0]:
            pass
        _hand_over(run, cancelled)
        raise
    except BaseException:
        run.cancel()
        raise


def _hand_over(run: CheckRun, interruption: BaseException) -> None:
    """Puts what a run left behind into the exception that ended it.

    An attribute of the exception that is there, and not one of another class: `asyncio.timeout` knows the
    cancellations that it asked for by their very class.
    """
    # Only a kit that broke leaves nothing behind; that must not hide the interruption.
    with contextlib.suppress(RuntimeError, InternalError):
        interruption.result = CheckResult(run)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


def _begin(endpoint: str, api_key: str | None, options: CheckOptions) -> CheckRun:
    given = {name: _plain(name, value) for name, value in options.items() if value is not None}
    # The kit knows its options; an unknown one is refused there.
    document = {
        "runtime_version": f"v{platform.python_version()}",
        **given,
        "endpoint": _plain("endpoint", endpoint),
    }
    key = os.environ.get("GATEWRIGHT_API_KEY", "") if api_key is None else api_key
    try:
        return CheckRun(json.dumps(document), key)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None


def _plain(name: str, value: object) -> object:
    """An option as JSON has it: a path as text; so is a number that JSON lacks, for the kit to refuse."""
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    try:
        json.dumps(value)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{name} cannot be {value!r}: {error}") from None
    return value
