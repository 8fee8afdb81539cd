"""Code that runs around every attempt of a client's calls, retries included.

>>> import gatewright
>>> class Timing(gatewright.middleware.Middleware):
...     def after(self, attempt, outcome):
...         print(attempt.operation, attempt.number, outcome.status_code)
>>> client = gatewright.Client(middleware=[Timing()])
>>> answer = client.models.list()
list_models 1 200
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable
    from typing import Any, Protocol

    from gatewright.generated.errors import GatewrightError

    class Before(Protocol):
        """Runs before attempts."""

        def before(self, attempt: Attempt, /) -> Awaitable[None] | None: ...

    class After(Protocol):
        """Runs after attempts."""

        def after(self, attempt: Attempt, outcome: Outcome, /) -> Awaitable[None] | None: ...


__all__ = ["Attempt", "Middleware", "Outcome"]


class Middleware:
    """Code that runs around every attempt. Any object with one of these methods works.

    The methods run where the call is made: in the thread that a `Client` blocks, or on the event loop that
    awaits an `AsyncClient`, where they may be coroutine functions. They count against the call's deadline,
    and what they raise ends the call and reaches its caller as it is. With several, `before` runs in the
    order given and `after` in the reverse, for those whose `before` did not raise.
    """

    def before(self, attempt: Attempt) -> Awaitable[None] | None:
        """Runs before an attempt is sent. It may change `attempt.headers`, for this attempt only."""

    def after(self, attempt: Attempt, outcome: Outcome) -> Awaitable[None] | None:
        """Runs after an attempt that got a whole response or the headers of a stream, or that failed."""


class Attempt:
    """One request of a call, about to be sent or sent. You may set your own attributes on it."""

    def __init__(
        self,
        *,
        operation: str,
        number: int,
        max_retries: int,
        remaining: float,
        method: str,
        url: str,
        headers: dict[str, str],
        body: bytes | None,
    ) -> None:
        self.operation = operation
        """Id of the operation: `create_chat_completion`."""
        self.number = number
        """1 for the first attempt of a call."""
        self.max_retries = max_retries
        """Attempts the call may make after the first."""
        self.remaining = remaining
        """Seconds left of the call's deadline when the attempt began."""
        self.method = method
        """HTTP method."""
        self.url = url
        """The whole address, query included."""
        self.headers = headers
        """Headers to be sent, by lower-case name, the key among them. `before` may change them."""
        self.body = body
        """The JSON body, if the operation has one."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """An attribute of the middleware's own."""

        def __setattr__(self, name: str, value: Any) -> None:
            """An attribute of the middleware's own, kept from `before` to `after`."""

    def __repr__(self) -> str:
        # No headers, and no query: there may be secrets in either.
        address = self.url.partition("?")[0]
        return f"Attempt({self.operation!r}, number={self.number}, {self.method!r}, {address!r})"


class Outcome:
    """The outcome of an attempt."""

    def __init__(
        self,
        *,
        status_code: int | None,
        headers: dict[str, str] | None,
        request_id: str | None,
        elapsed: float,
        body: bytes | None,
        error: GatewrightError | None,
    ) -> None:
        self.status_code = status_code
        """HTTP status, if there was a response."""
        self.headers = headers
        """Headers of the answer by lower-case name, where there was one."""
        self.request_id = request_id
        """The gateway's id of the request."""
        self.elapsed = elapsed
        """Seconds from the attempt's beginning to the end of the body; of a stream, to its head."""
        self.body = body
        """The answer's body, where it has been read; None for a stream."""
        self.error = error
        """The failure, if the attempt failed. Whether it is retried is not decided yet."""

    def __repr__(self) -> str:
        what = self.status_code if self.error is None else repr(self.error)
        return f"Outcome({what}, elapsed={self.elapsed:.3f})"
