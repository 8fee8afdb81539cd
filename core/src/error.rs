//! The one error of the client. Its kinds are generated from `spec/errors.json`; no type of the transport is in it.
//!
//! What came from outside is set apart in error/foreign.rs and told only once [`Error::shown`] has had a redactor look at
//! it: an error that nobody has redacted tells nothing but our own words.

mod foreign;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;

use crate::error_body::ErrorBody;
use crate::limits::Violation;
use crate::operation::Operation;
use crate::redact::{Redactor, Shown};
use crate::visible::visible_lines;

use self::foreign::{Cause, Foreign, Told};

pub use crate::generated::error_kinds::{ErrorCode, ErrorKind};

/// A failed call: what kind of failure, in which operation, and all the gateway said about it.
///
/// One pointer wide, so that a `Result` stays small on the stack.
pub struct Error {
    inner: Box<Inner>,
}

struct Inner {
    kind: ErrorKind,
    /// Our own, or what may be shown of the gateway's.
    message: String,
    operation: Option<&'static str>,
    status: Option<u16>,
    retry_after: Option<Duration>,
    attempts: u32,
    elapsed: Option<Duration>,
    violations: Vec<Violation>,
    received: Option<Received>,
    told: Told,
    /// What nobody has redacted yet.
    foreign: Foreign,
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
    ///
    /// No text of an error holds a secret: the client's keys and what its requests carried are taken out in whatever
    /// form the gateway wrote them, as is what looks like somebody else's key. What a terminal would act on is written
    /// as an escape.
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
        self.inner.told.request_id.as_deref()
    }

    /// The error code of the body: `model_not_found`. In the native style the reason, else the status word. Of a
    /// webhook that is refused, the reason (see [`webhook::unwrap`](crate::webhook::unwrap)).
    pub fn code(&self) -> Option<&str> {
        self.inner.told.code.as_deref()
    }

    /// The request field the gateway complained about; the header that a refused webhook lacks.
    pub fn param(&self) -> Option<&str> {
        self.inner.told.param.as_deref()
    }

    /// The error type of the body: `invalid_request_error`. In the native style the status word.
    pub fn error_type(&self) -> Option<&str> {
        self.inner.told.error_type.as_deref()
    }

    /// How long the gateway asked to wait before the next try.
    pub fn retry_after(&self) -> Option<Duration> {
        self.inner.retry_after
    }

    /// The body of the answer, or the event of the stream, that told of the error, without the secrets in it; cut at
    /// [`MAX_ERROR_BODY_BYTES`](crate::MAX_ERROR_BODY_BYTES).
    pub fn body(&self) -> Option<&Bytes> {
        self.inner.told.body.as_deref()
    }

    /// Headers of the answer, where there was one, without the secrets in them: cookies and the like have no value.
    pub fn headers(&self) -> Option<&HeaderMap> {
        self.inner.told.headers.as_deref()
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
    /// streamed, as far as it got. None where no chunk had arrived. A secret of the client's that the answer quoted is
    /// taken out, and nothing else.
    pub fn partial(&self) -> Option<&Bytes> {
        self.inner.told.partial.as_deref()
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
                retry_after: None,
                attempts: 0,
                elapsed: None,
                violations: Vec::new(),
                received: None,
                told: Told::default(),
                foreign: Foreign::default(),
            }),
        }
    }

    /// An error of the gateway's, from an answer or from an event of a stream: reads `body` in any of the known
    /// forms and keeps it.
    pub(crate) fn from_body(kind: ErrorKind, body: Bytes, fallback: impl FnOnce() -> String) -> Self {
        let read = ErrorBody::read(&body);
        let mut error = Self::new(kind, "what the gateway said is not shown");
        error.inner.foreign = Foreign {
            message: Some(read.message.unwrap_or_else(fallback)),
            code: read.code,
            param: read.param,
            error_type: read.error_type,
            body: Some(body),
            ..Foreign::default()
        };
        error
    }

    /// This error as it may be shown: every text that came from outside without the secrets that the redactor knows.
    /// Whatever leaves the client has been here.
    #[must_use]
    pub(crate) fn shown(mut self, redactor: &Redactor) -> Self {
        let inner = &mut *self.inner;
        let ours = visible_lines(&redactor.redact(&inner.message)).into_owned();
        let (foreign, told) = (std::mem::take(&mut inner.foreign), std::mem::take(&mut inner.told));
        let (message, told) = foreign.shown(&ours, told, redactor);
        inner.message = message.unwrap_or(ours);
        inner.told = told;
        self
    }

    /// Without anything that the answer said, but for its status.
    pub(crate) fn without_answer(mut self) -> Self {
        let Foreign { quoted, cause, .. } = std::mem::take(&mut self.inner.foreign);
        self.inner.foreign = Foreign { quoted, cause, ..Foreign::default() };
        self
    }

    /// Adds to our message, after a colon, a text that came from outside or quotes what did.
    pub(crate) fn quoting(mut self, text: impl fmt::Display) -> Self {
        self.inner.foreign.quoted = Some(text.to_string());
        self
    }

    pub(crate) fn with_headers(mut self, headers: HeaderMap) -> Self {
        self.inner.foreign.headers = Some(headers);
        self
    }

    /// This error with what led to it, as [`std::error::Error::source`] gives it back. It is the caller's own and is not
    /// redacted.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.inner.told.cause = Some(source.into());
        self
    }

    /// The same of what a library says of what came from outside.
    pub(crate) fn caused_by(mut self, cause: impl Into<Cause>) -> Self {
        self.inner.foreign.cause = Some(cause.into());
        self
    }

    /// Our own word for the reason, where there is no error body that has one.
    pub(crate) fn with_code(mut self, code: &'static str) -> Self {
        self.inner.told.code = Some(Shown::ours(code));
        self
    }

    pub(crate) fn with_param(mut self, param: &'static str) -> Self {
        self.inner.told.param = Some(Shown::ours(param));
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
        self.inner.foreign.request_id = request_id.map(str::to_owned);
        self
    }

    pub(crate) fn with_retry_after(mut self, retry_after: Option<Duration>) -> Self {
        self.inner.retry_after = retry_after;
        self
    }

    pub(crate) fn with_body(mut self, body: Bytes) -> Self {
        self.inner.foreign.body = Some(body);
        self
    }

    pub(crate) fn with_attempts(mut self, attempts: u32) -> Self {
        self.inner.attempts = attempts;
        self
    }

    pub(crate) fn with_partial(mut self, partial: Option<Bytes>, received: Received) -> Self {
        self.inner.foreign.partial = partial;
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
        let Inner { operation, status, message, .. } = &*self.inner;
        if let Some(operation) = operation {
            write!(f, "{operation}: ")?;
        }
        if let Some(status) = status {
            write!(f, "status {status}: ")?;
        }
        f.write_str(message)?;
        if let Some(request_id) = self.request_id() {
            write!(f, " (request {request_id})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, operation, status, attempts, message, told, .. } = &*self.inner;
        f.debug_struct("Error")
            .field("kind", kind)
            .field("message", message)
            .field("operation", operation)
            .field("status", status)
            .field("request_id", &self.request_id())
            .field("code", &self.code())
            .field("attempts", attempts)
            .field("source", &told.cause)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner.told.cause.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_nobody_has_redacted_tells_nothing_of_what_came_from_outside() {
        let body = Bytes::from_static(br#"{"error":{"message":"canary","code":"canary","param":"canary"}}"#);
        let headers =
            HeaderMap::from_iter([(http::header::SERVER, http::HeaderValue::from_static("canary"))]);
        let error = Error::from_body(ErrorKind::Status, body, String::new)
            .quoting("canary")
            .with_request_id(Some("canary"))
            .with_headers(headers)
            .with_partial(Some(Bytes::from_static(b"\"canary\"")), Received::default())
            .caused_by("canary");
        assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
        let told = (error.code(), error.param(), error.request_id(), error.body(), error.partial());
        assert_eq!(told, (None, None, None, None, None));
        assert!(error.headers().is_none() && std::error::Error::source(&error).is_none());
        let shown = error.shown(&Redactor::default());
        assert_eq!((shown.message(), shown.code()), ("canary: canary", Some("canary")));
    }

    #[test]
    fn an_error_is_one_pointer_wide() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }

    #[test]
    fn display_names_operation_status_and_request() {
        let error = Error::new(ErrorKind::NotFound, "no such model")
            .with_operation(&crate::operations::LIST_MODELS)
            .with_status(404)
            .with_request_id(Some("req_1"))
            .shown(&Redactor::default());
        assert_eq!(error.to_string(), "list_models: status 404: no such model (request req_1)");
    }

    #[test]
    fn the_kept_body_is_bounded() {
        let body = Bytes::from(vec![b'x'; crate::MAX_ERROR_BODY_BYTES + 1]);
        let error =
            Error::from_body(ErrorKind::Status, body, || "unreadable".to_owned()).shown(&Redactor::default());
        assert_eq!(error.body().map(Bytes::len), Some(crate::MAX_ERROR_BODY_BYTES));
    }
}
