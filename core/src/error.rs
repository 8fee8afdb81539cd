//! The one error of the client. Its kinds are generated from `spec/errors.json`; no type of the transport is in it.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;

use crate::error_body::ErrorBody;
use crate::limits::Violation;
use crate::operation::Operation;

pub use crate::generated::error_kinds::{ErrorCode, ErrorKind};

/// A failed call: what kind of failure, in which operation, and all the gateway said about it.
///
/// One pointer wide, so that a `Result` stays small on the stack.
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    operation: Option<&'static str>,
    status: Option<u16>,
    request_id: Option<String>,
    code: Option<String>,
    param: Option<String>,
    error_type: Option<String>,
    retry_after: Option<Duration>,
    body: Option<Bytes>,
    headers: Option<HeaderMap>,
    attempts: u32,
    elapsed: Option<Duration>,
    violations: Vec<Violation>,
    partial: Option<Bytes>,
    received: Option<Received>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// How much of a stream has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// Chunks that were handed over; heartbeats and terminators do not count.
    pub events: u64,
    /// Bytes of the body, after decompression.
    pub bytes: u64,
}

impl Error {
    /// What went wrong, as one of a closed list.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// The message alone: the gateway's own where it sent one, else ours. `Display` adds operation, status and
    /// request id.
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// Id of the operation that failed, such as `create_chat_completion`; none where no call was made.
    pub fn operation(&self) -> Option<&'static str> {
        self.inner.operation
    }

    /// HTTP status of the answer, where there was one.
    pub fn status(&self) -> Option<u16> {
        self.inner.status
    }

    /// The gateway's id of the request, to quote when asking its operator.
    pub fn request_id(&self) -> Option<&str> {
        self.inner.request_id.as_deref()
    }

    /// The error code of the body: `model_not_found`. In the native style the reason, else the status word. Of a
    /// webhook that is refused, the reason (see [`webhook::unwrap`](crate::webhook::unwrap)).
    pub fn code(&self) -> Option<&str> {
        self.inner.code.as_deref()
    }

    /// The request field the gateway complained about; the header that a refused webhook lacks.
    pub fn param(&self) -> Option<&str> {
        self.inner.param.as_deref()
    }

    /// The error type of the body: `invalid_request_error`. In the native style the status word.
    pub fn error_type(&self) -> Option<&str> {
        self.inner.error_type.as_deref()
    }

    /// How long the gateway asked to wait before the next try.
    pub fn retry_after(&self) -> Option<Duration> {
        self.inner.retry_after
    }

    /// The body of the answer, or the event of the stream, that told of the error; cut at
    /// [`MAX_ERROR_BODY_BYTES`](crate::MAX_ERROR_BODY_BYTES).
    pub fn body(&self) -> Option<&Bytes> {
        self.inner.body.as_ref()
    }

    /// Headers of the answer, where there was one.
    pub fn headers(&self) -> Option<&HeaderMap> {
        self.inner.headers.as_ref()
    }

    /// How many requests were sent for this call; 0 where it failed before the first.
    pub fn attempts(&self) -> u32 {
        self.inner.attempts
    }

    /// From the call's beginning to its failure; of an answer that could not be read to its end, of a stream to its
    /// head. None where nothing was sent.
    pub fn elapsed(&self) -> Option<Duration> {
        self.inner.elapsed
    }

    /// The rules the request breaks, where it was checked before sending (kind [`ErrorKind::InvalidRequest`]), at most
    /// [`crate::limits::MOST_VIOLATIONS`]; else empty. The message says whether there are more.
    pub fn violations(&self) -> &[Violation] {
        &self.inner.violations
    }

    /// Of a stream that failed: what had arrived, as one JSON document in the form of the answer that is not
    /// streamed, as far as it got. None where no chunk had arrived.
    pub fn partial(&self) -> Option<&Bytes> {
        self.inner.partial.as_ref()
    }

    /// Of a stream that failed: how much had arrived. None on errors of anything else.
    pub fn received(&self) -> Option<Received> {
        self.inner.received
    }

    /// An error of this kind with this message. Gateways and bindings make their own with it.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            inner: Box::new(Inner {
                kind,
                message: message.into(),
                operation: None,
                status: None,
                request_id: None,
                code: None,
                param: None,
                error_type: None,
                retry_after: None,
                body: None,
                headers: None,
                attempts: 0,
                elapsed: None,
                violations: Vec::new(),
                partial: None,
                received: None,
                source: None,
            }),
        }
    }

    /// An error of the gateway's, from an answer or from an event of a stream: reads `body` in any of the known
    /// forms and keeps it.
    pub(crate) fn from_body(kind: ErrorKind, body: Bytes, fallback: impl FnOnce() -> String) -> Self {
        let read = ErrorBody::read(&body);
        let mut error = Self::new(kind, read.message.unwrap_or_else(fallback));
        error.inner.code = read.code;
        error.inner.param = read.param;
        error.inner.error_type = read.error_type;
        error.with_body(body)
    }

    pub(crate) fn with_headers(mut self, headers: HeaderMap) -> Self {
        self.inner.headers = Some(headers);
        self
    }

    /// This error with what led to it, as [`std::error::Error::source`] gives it back.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.inner.source = Some(source.into());
        self
    }

    /// Our own word for the reason, where there is no error body that has one.
    pub(crate) fn with_code(mut self, code: &str) -> Self {
        self.inner.code = Some(code.to_owned());
        self
    }

    pub(crate) fn with_param(mut self, param: &str) -> Self {
        self.inner.param = Some(param.to_owned());
        self
    }

    pub(crate) fn with_operation(mut self, operation: &Operation) -> Self {
        self.inner.operation = Some(operation.id);
        self
    }

    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.inner.status = Some(status);
        self
    }

    pub(crate) fn with_request_id(mut self, request_id: Option<&str>) -> Self {
        self.inner.request_id = request_id.map(str::to_owned);
        self
    }

    pub(crate) fn with_retry_after(mut self, retry_after: Option<Duration>) -> Self {
        self.inner.retry_after = retry_after;
        self
    }

    pub(crate) fn with_body(mut self, mut body: Bytes) -> Self {
        body.truncate(crate::MAX_ERROR_BODY_BYTES);
        self.inner.body = Some(body);
        self
    }

    pub(crate) fn with_attempts(mut self, attempts: u32) -> Self {
        self.inner.attempts = attempts;
        self
    }

    pub(crate) fn with_partial(mut self, partial: Option<Bytes>, received: Received) -> Self {
        self.inner.partial = partial;
        self.inner.received = Some(received);
        self
    }

    pub(crate) fn with_elapsed(mut self, elapsed: Duration) -> Self {
        self.inner.elapsed = Some(elapsed);
        self
    }

    pub(crate) fn with_violations(mut self, violations: Vec<Violation>) -> Self {
        self.inner.violations = violations;
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { operation, status, message, request_id, .. } = &*self.inner;
        if let Some(operation) = operation {
            write!(f, "{operation}: ")?;
        }
        if let Some(status) = status {
            write!(f, "status {status}: ")?;
        }
        f.write_str(message)?;
        if let Some(request_id) = request_id {
            write!(f, " (request {request_id})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, operation, status, request_id, code, attempts, message, source, .. } = &*self.inner;
        f.debug_struct("Error")
            .field("kind", kind)
            .field("message", message)
            .field("operation", operation)
            .field("status", status)
            .field("request_id", request_id)
            .field("code", code)
            .field("attempts", attempts)
            .field("source", source)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_pointer_wide() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }

    #[test]
    fn display_names_operation_status_and_request() {
        let error = Error::new(ErrorKind::NotFound, "no such model")
            .with_operation(&crate::operations::LIST_MODELS)
            .with_status(404)
            .with_request_id(Some("req_1"));
        assert_eq!(error.to_string(), "list_models: status 404: no such model (request req_1)");
    }

    #[test]
    fn the_kept_body_is_bounded() {
        let body = Bytes::from(vec![b'x'; crate::MAX_ERROR_BODY_BYTES + 1]);
        let error = Error::from_body(ErrorKind::Status, body, || "unreadable".to_owned());
        assert_eq!(error.body().map(Bytes::len), Some(crate::MAX_ERROR_BODY_BYTES));
    }
}
