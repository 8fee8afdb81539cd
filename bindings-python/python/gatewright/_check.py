"""The check kit: checks whether a service is compatible, and creates the report.

Source: section 2.12 of the specification.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import platform
from typing import TYPE_CHECKING, Any

from gatewright._engine import CheckRun
from gatewright.generated.check_options import CheckOptions
from gatewright.generated.errors import ConfigurationError, FileError, InternalError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from typing_extensions import Unpack

    from gatewright.generated.report import Report

    Progress: TypeAlias = Callable[[dict[str, Any]], object]

__all__ = ["CheckOptions", "CheckResult", "check", "check_async"]


_WAIT_MS = 50
"""How long the kit is waited for before signals get their turn."""


class CheckResult:
    """The result of a run.

    >>> import gatewright
    >>> service = gatewright.Client().base_url
    >>> result = gatewright.check(service, only=["models_endpoint"])
    >>> result.write("report.json")
    >>> result.report["summary"]["failed"]
    0
    """

    def __init__(self, run: CheckRun) -> None:
        self._run = run
        self.json, evidence, self.interrupted = run.result()
        self.report: Report = json.loads(self.json)
        """The report, in the form that `gatewright.report` validates."""
        self.evidence: list[dict[str, Any]] = json.loads(evidence)
        """Per check that was run: `id`, `model`, `assertions`, `exchange`; secrets are taken out."""

    json: str
    """The report as text, in canonical form."""
    interrupted: bool
    """Whether the run was cut short."""

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return self.report["overall_status"] == "pass"

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the report atomically.

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
    the run so far: its report is complete, and cells that were not reached are marked `aborted:`.

    Args:
        endpoint: Address of the service, without the base path.
        api_key: Key that the requests carry. Default: `GATEWRIGHT_API_KEY`.
        on_progress: Called with each event. `planned` has `cells` and `to_run`; `started` has `index`, `id`,
            `model`; `finished` has these and `check`. An exception in it ends the run.
        options: See `CheckOptions`.

    >>> import gatewright
    >>> service = gatewright.Client().base_url
    >>> result = gatewright.check(service, only=["models_endpoint"], timeout_ms=10_000)
    >>> result.passed
    True

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
    """Like `check`, on an asyncio event loop.

    Cancelling the task ends the run at once. The `CancelledError` then has the attribute `result`, as the
    `KeyboardInterrupt` of `check` has it. `asyncio.timeout` and `asyncio.wait_for` raise a `TimeoutError`
    instead, whose `__cause__` it is; before Python 3.11, the task that awaits it gets another
    `CancelledError`, whose `__context__` it is.

    >>> import asyncio, gatewright
    >>> service = gatewright.Client().base_url
    >>> asyncio.run(gatewright.check_async(service, only=["models_endpoint"])).passed
    True
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
    """Attaches the result of a run to the exception that ended it.

    Sets an attribute of the existing exception instead of raising another class: `asyncio.timeout`
    recognises its own cancellations by their exact class.
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
    """An option as JSON: a path becomes text, and so does a number that JSON lacks (the kit refuses it)."""
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    try:
        json.dumps(value)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{name} cannot be {value!r}: {error}") from None
    return value
