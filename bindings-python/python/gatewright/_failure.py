"""The attributes of every exception; the classes themselves are generated from `spec/errors.json`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Self

    from gatewright._engine import ResponseInfo
    from gatewright._received import Received


class Failure(Exception):
    """What went wrong, and in which call."""

    kind: str = ""
    """Name of the kind of failure, as in the other languages."""
    retryable: bool = False
    """Whether a retry may help."""
    _method: str | None = None

    def __init__(
        self,
        message: str = "",
        *,
        status_code: int | None = None,
        request_id: str | None = None,
        code: str | None = None,
        param: str | None = None,
        type: str | None = None,
        retry_after: float | None = None,
        body: Any = None,
        operation: str | None = None,
        attempts: int = 0,
        violations: list[dict[str, str]] | None = None,
        partial: Any = None,
        received: Received | None = None,
        response: ResponseInfo | None = None,
        answer: Any = None,
        messages: list[Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        """What went wrong: the gateway's own message if it sent one."""
        self.status_code = status_code
        """HTTP status of the response, if there was one."""
        self.request_id = request_id
        """The gateway's id of the request, to quote to its operator."""
        self.code = code
        """Error code of the body: `model_not_found`."""
        self.param = param
        """The request field that caused the error."""
        self.type = type
        """Error type of the body: `invalid_request_error`."""
        self.retry_after = retry_after
        """Seconds to wait before the next attempt, as the gateway requested."""
        self.body = body
        """The response body: parsed JSON, or else text."""
        self.operation = operation
        """Id of the operation that failed: `create_chat_completion`."""
        self.attempts = attempts
        """Requests sent for this call."""
        self.violations: list[dict[str, str]] = violations or []
        """The rules that the request breaks, if it was validated before sending: pointer, rule, message,
        section."""
        self.partial = partial
        """For a failed stream: the events that arrived, merged into one document in the form of a whole
        response: a `ChatCompletion`, `Response` or `GenerateContentResponse`. None if no event arrived."""
        self.received = received
        """For a failed stream: how many events and bytes arrived."""
        self.response = response
        """The response that caused the error, if there was one: status, headers, request id,
        attempts."""
        self.answer = answer
        """For an answer that is not a value of the requested type (`StructuredOutputError`), and for a tool
        loop (`ToolLoopError`): the whole answer, a `ChatCompletion` or a `Response`."""
        self.messages = messages
        """For a tool loop: the conversation so far, including the last answer."""

    def _in_call(self, operation: str, method: str, response: ResponseInfo | None) -> Self:
        """Adds the call and its response, as the errors of the core have them."""
        self.operation, self._method = operation, method
        if response is not None:
            self.response, self.attempts = response, response.attempts
            self.status_code, self.request_id = response.status_code, response.request_id
        return self

    @property
    def completion(self) -> Any:
        """The same as `answer`."""
        return self.answer

    @property
    def headers(self) -> dict[str, str] | None:
        """Headers of that response."""
        return None if self.response is None else self.response.headers

    def __reduce__(self) -> tuple[Any, ...]:
        # By itself an exception pickles without its cause.
        cause = {} if self.__cause__ is None else {"__cause__": self.__cause__}
        return self.__class__, self.args, {**self.__dict__, **cause}

    def __str__(self) -> str:
        text = self.message
        if self.status_code is not None:
            text = f"status {self.status_code}: {text}"
        if self.operation is not None:
            text = f"{self._method or self.operation}: {text}"
        if self.request_id is not None:
            text = f"{text} (request {self.request_id})"
        return text
