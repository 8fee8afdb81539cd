"""Runs the callbacks of a call on its event loop. Imported by the engine when there are any."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gatewright._engine import Reply


def start(function: Callable[..., Any], arguments: tuple[Any, ...], reply: Reply) -> None:
    """Calls a function on the running loop, and awaits its result there if that is awaitable."""
    try:
        value = function(*arguments)
        if not hasattr(value, "__await__"):
            reply.settle(value, False)
            return
        import asyncio

        task = asyncio.ensure_future(value)
    except BaseException as error:
        reply.settle(error, True)
        # These two end the loop, wherever on it they are raised.
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return

    def finished(task: asyncio.Future[Any]) -> None:
        if task.cancelled():
            reply.settle(asyncio.CancelledError(), True)
        elif (error := task.exception()) is not None:
            reply.settle(error, True)
        else:
            reply.settle(task.result(), False)

    task.add_done_callback(finished)
    reply.goes_on(task)


def takes_refresh(provider: Callable[..., Any]) -> bool:
    """Whether a key provider accepts the keyword `refresh`."""
    import inspect

    try:
        parameters = inspect.signature(provider).parameters.values()
    except (TypeError, ValueError):
        # A callable that does not tell, such as some builtins.
        return False
    return any(
        one.kind is one.VAR_KEYWORD or (one.name == "refresh" and one.kind is not one.POSITIONAL_ONLY)
        for one in parameters
    )
