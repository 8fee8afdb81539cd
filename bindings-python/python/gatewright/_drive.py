"""Work that is written once for both clients.

Such work is a generator: it yields what a call has returned, and is sent the call's result. For `drive` they
are the same; for `drive_async`, what a call has returned may be awaitable.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any, TypeAlias, TypeVar

    _Result = TypeVar("_Result")

    Steps: TypeAlias = Generator[Any, Any, _Result]


def drive(steps: Steps[_Result]) -> _Result:
    """Does the work of a Client."""
    result = None
    while True:
        try:
            result = steps.send(result)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


async def drive_async(steps: Steps[_Result]) -> _Result:
    """Does the work of an AsyncClient. What an awaitable raises is raised where the work yielded it."""
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
