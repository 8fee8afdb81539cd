"""Code that is written once for both clients.

It is a generator that yields the return value of each call, and is sent the call's result. With `drive` both
are the same; with `drive_async`, the return value may be awaitable.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any, TypeAlias, TypeVar

    _Result = TypeVar("_Result")

    Steps: TypeAlias = Generator[Any, Any, _Result]


def drive(steps: Steps[_Result]) -> _Result:
    """Runs the generator for a Client."""
    result = None
    while True:
        try:
            result = steps.send(result)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        if hasattr(result, "__await__"):
            if hasattr(result, "close"):
                result.close()
            raise TypeError("callbacks of Client are plain functions; AsyncClient takes coroutine functions")


async def drive_async(steps: Steps[_Result]) -> _Result:
    """Runs the generator for an AsyncClient. If an awaitable raises, the exception is raised where it was
    yielded."""
    result: Any = None
    failure: BaseException | None = None
    while True:
        try:
            returned = steps.send(result) if failure is None else steps.throw(failure)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            # An error must not refer to itself by this frame: it would keep a stream open.
            result = failure = None
        if not hasattr(returned, "__await__"):
            result = returned
            continue
        try:
            result = await returned
        except BaseException as error:
            failure = error
