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
    awaits an `AsyncClient`, where they may be coroutine functions. They count against the call's deadline. If
    a method raises, the call ends and the caller gets the exception unchanged. With several objects, `before`
    runs in the given order and `after` in reverse order, for those whose `before` did not raise.

    >>> import gatewright
    >>> class Tagging(gatewright.middleware.Middleware):
    ...     def before(self, attempt):
    ...         attempt.headers["x-team"] = "search"
    >>> client = gatewright.Client(middleware=[Tagging()])
    >>> answer = client.models.list()
    """

    def before(self, attempt: Attempt) -> Awaitable[None] | None:
        """Runs before an attempt is sent. It may change `attempt.headers`, for this attempt only."""

    def after(self, attempt: Attempt, outcome: Outcome) -> Awaitable[None] | None:
        """Runs after an attempt received a whole response or the headers of a stream, or failed."""


class Attempt:
    """One request of a call, before or after it is sent. You may set your own attributes on it."""

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
        """Maximum number of attempts after the first."""
        self.remaining = remaining
        """Seconds until the call's deadline, at the start of the attempt."""
        self.method = method
        """HTTP method."""
        self.url = url
        """The whole address with its query."""
        self.headers = headers
        """Headers of the request by lower-case name, including the key. `before` may change them."""
        self.body = body
        """The body as it is sent, if the operation has one: JSON, or a form with its files."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """An attribute of the middleware's own."""

        def __setattr__(self, name: str, value: Any) -> None:
            """An attribute of the middleware's own, which `before` may set for `after`."""

    def __repr__(self) -> str:
        # Headers and query may hold secrets.
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
        """Headers of the response by lower-case name, if there was one."""
        self.request_id = request_id
        """The gateway's id of the request."""
        self.elapsed = elapsed
        """Seconds from the start of the attempt to the end of the body; for a stream, to its headers."""
        self.body = body
        """Body of the response, if it was read; None for a stream."""
        self.error = error
        """The failure, if the attempt failed. The client has not decided yet whether to retry."""

    def __repr__(self) -> str:
        what = self.status_code if self.error is None else repr(self.error)
        return f"Outcome({what}, elapsed={self.elapsed:.3f})"
