//! `errors.py`: an exception class for each kind of error.

use std::fmt::Write as _;

use super::docstring;
use crate::codegen::model::Errors;

/// What the bases and the kinds inherit.
const STATE: &str = r#"
    __module__ = "gatewright"

    kind: str = ""
    """Name of the kind of failure, as in the other languages."""
    retryable: bool = False
    """Whether trying again may help."""

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
    ) -> None:
        super().__init__(message)
        self.message = message
        """What went wrong: the gateway's own words where it sent some."""
        self.status_code = status_code
        """HTTP status of the answer, where there was one."""
        self.request_id = request_id
        """The gateway's id of the request, to quote when asking its operator."""
        self.code = code
        """Error code of the body: `model_not_found`."""
        self.param = param
        """The field of the request that the gateway complained about."""
        self.type = type
        """Error type of the body: `invalid_request_error`."""
        self.retry_after = retry_after
        """Seconds the gateway asked to wait."""
        self.body = body
        """The answer's body: parsed JSON, else text."""
        self.operation = operation
        """Id of the operation that failed: `create_chat_completion`."""
        self.attempts = attempts
        """Requests sent for this call."""
        self.violations = violations or []
        """Every rule the request breaks, where it was checked before sending: pointer, rule, message, section."""
        self.partial = partial
        """Of a stream that failed: what had arrived, as one document in the form of the answer that is not streamed:
        a `ChatCompletion`, `Response` or `GenerateContentResponse`. None where no event had arrived."""
        self.received = received
        """Of a stream that failed: how many events and bytes had arrived."""
        self.response = response
        """The answer that the error was made of, where there was one: status, headers, request id, attempts."""

    @property
    def headers(self) -> dict[str, str] | None:
        """Headers of that answer, as `response` has them."""
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
            text = f"{self.operation}: {text}"
        if self.request_id is not None:
            text = f"{text} (request {self.request_id})"
        return text
"#;

pub(super) fn module(errors: &Errors) -> String {
    let mut out = String::from(
        "\"\"\"The exceptions: one class for each kind of failure, all with the same attributes.\"\"\"\n\n\
         from __future__ import annotations\n\n\
         TYPE_CHECKING = False\nif TYPE_CHECKING:\n    from typing import Any\n\n    \
         from gatewright._native import ResponseInfo\n    from gatewright._received import Received\n\n",
    );
    let bases = errors.bases.iter().map(|base| base.class.as_str());
    let classes: Vec<&str> = bases.chain(errors.kinds.iter().map(|kind| kind.class.as_str())).collect();
    out.push_str("__all__ = [\n");
    for class in &classes {
        let _ = writeln!(out, "    \"{class}\",");
    }
    out.push_str("]\n");
    let mut written: Vec<&str> = Vec::new();
    let class = |out: &mut String, name: &str, parent: Option<&str>, doc: &str, body: &str| {
        let _ = write!(out, "\n\nclass {name}({}):\n", parent.unwrap_or("Exception"));
        out.push_str(&docstring(&[doc.to_owned()], "    "));
        out.push_str(body);
    };
    for base in &errors.bases {
        let body = if base.parent.is_some() { MEMBER } else { STATE };
        class(&mut out, &base.class, base.parent.as_deref(), &base.meaning, body);
        written.push(&base.class);
    }
    // A kind may come before its parent in the file: write in rounds until all parents are there.
    let mut waiting: Vec<_> = errors.kinds.iter().collect();
    while !waiting.is_empty() {
        let before = waiting.len();
        waiting.retain(|kind| {
            if !written.contains(&kind.parent.as_str()) {
                return true;
            }
            let body = format!(
                "{MEMBER}    kind = \"{}\"\n    retryable = {}\n",
                kind.name,
                if kind.retryable { "True" } else { "False" }
            );
            class(&mut out, &kind.class, Some(&kind.parent), &kind.meaning, &body);
            written.push(&kind.class);
            false
        });
        assert!(waiting.len() < before, "the parent of {} is no class of spec/errors.json", waiting[0].class);
    }
    out
}

const MEMBER: &str = "\n    __module__ = \"gatewright\"\n";
