"""Helpers for asyncio: the running event loop, and the outcome of work in progress."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gatewright._engine import Pending


def running_loop() -> Any:
    """The event loop of the calling coroutine; the error names the remedy if there is no usable one."""
    # Already imported by programs that run a loop; a program without asyncio does not pay for it.
    import asyncio

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "AsyncClient works on asyncio (uvloop, and anyio on its asyncio backend, included) and there "
            "is no asyncio event loop running here; under trio use Client in a thread: "
            "await anyio.to_thread.run_sync(...) or await trio.to_thread.run_sync(...)"
        ) from None


def current_task() -> Any:
    """The running task; None outside of one."""
    import asyncio

    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


async def finish(pending: Pending) -> Any:
    """The outcome of work in progress; cancellation ends the work."""
    try:
        return await pending.future
    finally:
        pending.cancel()
