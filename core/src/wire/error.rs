//! The client's one error type. Its kinds are generated from `spec/errors.json`; it exposes no transport type.
//!
//! Text from outside is stored separately in error/unredacted.rs. It becomes visible only after [`Error::shown`] has
//! redacted it: until then, an error shows only our own text.

mod unredacted;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;

use crate::api::operation::Operation;
use crate::wire::error_body::ErrorBody;
use crate::wire::limits::Violation;
use crate::wire::redact::{Redactor, SafeText};
use gatewright_safe::visible::visible_lines;

use self::unredacted::{Cause, ErrorDetails, Unredacted};

pub(crate) use crate::api::generated::error_kinds::ErrorKind;

/// A failed call: the kind of failure, the operation, and everything the gateway sent about it.
///
/// One pointer wide, so that a `Result` stays small on the stack.
///
/// ```no_run
/// # async fn example(client: gatewright::Client) {
/// use gatewright::ErrorKind;
///
/// match client.models().retrieve("no-such-model").await {
///     Ok(model) => println!("{}", model.id),
///     Err(error) if error.kind() == ErrorKind::NotFound => println!("there is none: {error}"),
///     Err(error) => println!("{error}; again in {:?}", error.retry_after()),
/// }
/// # }
/// ```
pub struct Error {
    inner: Box<Inner>,
}

struct Inner {
    kind: ErrorKind,
    /// Our own message, or the redacted message of the gateway.
    message: String,
    operation: Option<&'static str>,
    /// The operation's method, as the caller knows it.
    method: Option<String>,
    status: Option<u16>,
    retry_after: Option<Duration>,
    attempts: u32,
    elapsed: Option<Duration>,
    violations: Vec<Violation>,
    received: Option<Received>,
    details: ErrorDetails,
    /// Text that is not redacted yet.
    unredacted: Unredacted,
}

/// How much of a stream has arrived.
///
/// ```
/// use gatewright::{Error, Received};
///
/// /// Whether a failed stream had started.
/// fn had_started(error: &Error) -> bool {
///     error.received().is_some_and(|Received { events, .. }| events > 0)
/// }
/// # assert!(!had_started(&Error::new(gatewright::ErrorKind::Cancelled, "stopped")));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// Chunks that were delivered; heartbeats and terminators do not count.
    pub events: u64,
    /// Bytes of the body, after decompression.
    pub bytes: u64,
}

impl Error {
    /// The kind of failure, from a closed list.
    ///
    /// ```
    /// use gatewright::{Error, ErrorKind};
    ///
    /// /// Whether another model may do better.
    /// fn may_help(error: &Error) -> bool {
    ///     matches!(error.kind(), ErrorKind::NotFound | ErrorKind::RateLimit)
    /// }
    /// assert!(!may_help(&Error::new(ErrorKind::Cancelled, "stopped")));
    /// ```
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// The message alone: the gateway's if it sent one, else ours. `Display` adds the method, the status and
    /// the request id.
    ///
    /// No text of an error contains a secret. The client's keys and the secrets of its requests are redacted in any
    /// encoding the gateway used, and so is anything that looks like another key. Control characters are escaped.
    ///
    /// ```
    /// use gatewright::{Error, ErrorKind};
    ///
    /// assert_eq!(Error::new(ErrorKind::Cancelled, "stopped").message(), "stopped");
    /// ```
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// Id of the operation that failed, such as `create_chat_completion`; none if no call was made.
    ///
    /// ```
    /// # fn example(error: &gatewright::Error) {
    /// println!("{} failed", error.operation().unwrap_or("the client itself"));
    /// # }
    /// ```
    pub fn operation(&self) -> Option<&'static str> {
        self.inner.operation
    }

    /// HTTP status of the response, if there was one.
    ///
    /// ```
    /// # fn example(error: &gatewright::Error) {
    /// if error.status() == Some(402) {
    ///     println!("no credit left");
    /// }
    /// # }
    /// ```
    pub fn status(&self) -> Option<u16> {
        self.inner.status
    }

    /// The gateway's id of the request, to quote when asking its operator.
    ///
    /// ```
    /// # fn example(error: &gatewright::Error) {
    /// if let Some(id) = error.request_id() {
    ///     println!("ask the operator about {id}");
    /// }
    /// # }
    /// ```
    pub fn request_id(&self) -> Option<&str> {
        self.inner.details.request_id.as_deref()
    }

    /// The error code of the body: `model_not_found`. In the native style: the reason, else the status word. For a
    /// rejected webhook: the reason (see [`webhook::unwrap`](crate::wire::webhook::unwrap)).
    ///
    /// ```
    /// use gatewright::webhook::{Secret, unwrap};
    ///
    /// let secret = Secret::from_bytes([7; 32]).unwrap();
    /// let error = unwrap(b"{}", [("webhook-id", "msg_1")], &[secret]).unwrap_err();
    /// assert_eq!(error.code(), Some("missing_header"));
    /// ```
    pub fn code(&self) -> Option<&str> {
        self.inner.details.code.as_deref()
    }

    /// The request field the gateway complained about; the header that a refused webhook lacks; the place where an answer
    /// does not fit its type (`$.population`).
    ///
    /// ```
    /// use gatewright::webhook::{Secret, unwrap};
    ///
    /// let secret = Secret::from_bytes([7; 32]).unwrap();
    /// let error = unwrap(b"{}", [("webhook-id", "msg_1")], &[secret]).unwrap_err();
    /// assert_eq!(error.param(), Some("webhook-timestamp"));
    /// ```
    pub fn param(&self) -> Option<&str> {
        self.inner.details.param.as_deref()
    }

    /// The error type of the body: `invalid_request_error`. In the native style the status word.
    ///
    /// ```
    /// # fn example(error: &gatewright::Error) {
    /// let is_ours = error.error_type() == Some("invalid_request_error");
    /// # }
    /// ```
    pub fn error_type(&self) -> Option<&str> {
        self.inner.details.error_type.as_deref()
    }

    /// How long to wait before the next try, as the gateway requests.
    ///
    /// ```
    /// # fn example(error: &gatewright::Error) {
    /// if let Some(wait) = error.retry_after() {
    ///     println!("again in {} s", wait.as_secs());
    /// }
    /// # }
    /// ```
    pub fn retry_after(&self) -> Option<Duration> {
        self.inner.retry_after
    }

    /// The response body or stream event that reported the error, redacted and cut at
    /// [`MAX_ERROR_BODY_BYTES`](crate::MAX_ERROR_BODY_BYTES).
    ///
    /// ```
    /// # fn example(error: &gatewright::Error) {
    /// if let Some(body) = error.body() {
    ///     println!("{}", String::from_utf8_lossy(body));
    /// }
    /// # }
    /// ```
    pub fn body(&self) -> Option<&Bytes> {
        self.inner.details.body.as_deref()
    }

    /// Response headers, if there was a response. Secrets are redacted: cookies and the like have no value.
    ///
    /// ```
    /// # fn example(error: &gatewright::Error) {
    /// let left = error.headers().and_then(|headers| headers.get("x-ratelimit-remaining"));
    /// println!("{left:?}");
    /// # }
    /// ```
    pub fn headers(&self) -> Option<&HeaderMap> {
        self.inner.details.headers.as_deref()
    }

    /// How many requests were sent for this call; 0 if it failed before the first.
    ///
    /// ```
    /// use gatewright::{Client, ErrorKind};
    ///
    /// let error = Client::builder().base_url("no URL").api_key("my-key").build().unwrap_err();
    /// assert_eq!((error.kind(), error.attempts()), (ErrorKind::Configuration, 0));
    /// ```
    pub fn attempts(&self) -> u32 {
        self.inner.attempts
    }

    /// Time from the start of the call to its failure; for a stream or a response that could not be read, to its
    /// headers. None if nothing was sent.
    ///
    /// ```
    /// # fn example(error: &gatewright::Error) {
    /// if let Some(elapsed) = error.elapsed() {
    ///     println!("failed after {elapsed:?}");
    /// }
    /// # }
    /// ```
    pub fn elapsed(&self) -> Option<Duration> {
        self.inner.elapsed
    }

    /// The rules that the request breaks, if it was validated before sending (kind [`ErrorKind::InvalidRequest`]): at
    /// most [`crate::wire::limits::MAX_VIOLATIONS`]; else empty. The message says whether there are more.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use gatewright::types::ChatCompletionRequest;
    ///
    /// let client = gatewright::Client::builder().api_key("my-key").validate(true).build()?;
    /// let request = ChatCompletionRequest::new("model-sol", vec![]);
    /// let error = client.chat().completions().create(&request).await.unwrap_err();
    /// assert_eq!(error.violations()[0].pointer, "/messages");
    /// # Ok::<(), gatewright::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn violations(&self) -> &[Violation] {
        &self.inner.violations
    }

    /// For a failed stream: the chunks that arrived, merged into one JSON document in the form of a response that is
    /// not streamed. None if no chunk arrived. Only the client's own secrets are redacted.
    ///
    /// ```
    /// # fn example(error: &gatewright::Error) {
    /// if let Some(partial) = error.partial() {
    ///     println!("{}", String::from_utf8_lossy(partial));
    /// }
    /// # }
    /// ```
    pub fn partial(&self) -> Option<&Bytes> {
        self.inner.details.partial.as_deref()
    }

    /// For an answer that holds no value of the requested type ([`ErrorKind::StructuredOutput`]), and for the
    /// last one of a tool loop ([`ErrorKind::ToolLoop`]): the whole answer as JSON. Only the client's own secrets are
    /// redacted.
    ///
    /// ```
    /// use gatewright::types::ChatCompletion;
    ///
    /// # fn example(error: &gatewright::Error) {
    /// if let Some(answer) = error.answer() {
    ///     let completion: Result<ChatCompletion, _> = serde_json::from_slice(answer);
    ///     println!("{completion:?}");
    /// }
    /// # }
    /// ```
    #[cfg(feature = "schemars")]
    pub fn answer(&self) -> Option<&Bytes> {
        self.inner.details.answer.as_deref()
    }

    /// For a tool loop that ended without an answer ([`ErrorKind::ToolLoop`]): the conversation so far as JSON, a list of
    /// messages. Only the client's own secrets are redacted.
    ///
    /// ```
    /// use gatewright::types::ChatMessage;
    ///
    /// # fn example(error: &gatewright::Error) {
    /// if let Some(messages) = error.messages() {
    ///     let messages: Result<Vec<ChatMessage>, _> = serde_json::from_slice(messages);
    ///     println!("{messages:?}");
    /// }
    /// # }
    /// ```
    #[cfg(feature = "schemars")]
    pub fn messages(&self) -> Option<&Bytes> {
        self.inner.details.messages.as_deref()
    }

    /// For a failed stream: how much arrived. None for other errors.
    ///
    /// ```
    /// # fn example(error: &gatewright::Error) {
    /// if let Some(received) = error.received() {
    ///     println!("{} events had arrived", received.events);
    /// }
    /// # }
    /// ```
    pub fn received(&self) -> Option<Received> {
        self.inner.received
    }

    /// An error with a kind and a message, for gateways and bindings.
    ///
    /// ```
    /// use gatewright::{Error, ErrorKind};
    ///
    /// let error = Error::new(ErrorKind::Configuration, "there is no model");
    /// assert_eq!(error.to_string(), "there is no model");
    /// ```
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            inner: Box::new(Inner {
                kind,
                message: message.into(),
                operation: None,
                method: None,
                status: None,
                retry_after: None,
                attempts: 0,
                elapsed: None,
                violations: Vec::new(),
                received: None,
                details: ErrorDetails::default(),
                unredacted: Unredacted::default(),
            }),
        }
    }

    /// An error that the gateway reported in a response or stream event. Reads `body` in any known form and keeps it.
    pub(crate) fn from_body(kind: ErrorKind, body: Bytes, fallback: impl FnOnce() -> String) -> Self {
        let read = ErrorBody::read(&body);
        let mut error = Self::new(kind, "the gateway's message is not shown");
        error.inner.unredacted = Unredacted {
            message: Some(read.message.unwrap_or_else(fallback)),
            code: read.code,
            param: read.param,
            error_type: read.error_type,
            body: Some(body),
            ..Unredacted::default()
        };
        error
    }

    /// Redacts every text from outside. Every error passes through here before it leaves the client.
    #[must_use]
    pub(crate) fn shown(mut self, redactor: &Redactor) -> Self {
        let inner = &mut *self.inner;
        let ours = visible_lines(&redactor.redact(&inner.message)).into_owned();
        let (unredacted, details) =
            (std::mem::take(&mut inner.unredacted), std::mem::take(&mut inner.details));
        let (message, details) = unredacted.shown(&ours, details, redactor);
        inner.message = message.unwrap_or(ours);
        inner.details = details;
        self
    }

    /// Drops everything from the response except its status.
    pub(crate) fn without_answer(mut self) -> Self {
        let Unredacted { quoted, cause, .. } = std::mem::take(&mut self.inner.unredacted);
        self.inner.unredacted = Unredacted { quoted, cause, ..Unredacted::default() };
        self
    }

    /// Appends a colon and a text from outside to our message.
    pub(crate) fn quoting(mut self, text: impl fmt::Display) -> Self {
        self.inner.unredacted.quoted = Some(text.to_string());
        self
    }

    pub(crate) fn with_headers(mut self, headers: HeaderMap) -> Self {
        self.inner.unredacted.headers = Some(headers);
        self
    }

    /// Sets the error's [`std::error::Error::source`]. It belongs to the caller and is not redacted.
    ///
    /// ```
    /// use std::error::Error as _;
    ///
    /// use gatewright::{Error, ErrorKind};
    ///
    /// let cause = std::io::Error::other("the disk is full");
    /// let error = Error::new(ErrorKind::Io, "the image cannot be saved").with_source(cause);
    /// assert_eq!(error.source().unwrap().to_string(), "the disk is full");
    /// ```
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.inner.details.cause = Some(source.into());
        self
    }

    /// As [`with_source`](Self::with_source), for the error of a library about data from outside. It is redacted.
    pub(crate) fn caused_by(mut self, cause: impl Into<Cause>) -> Self {
        self.inner.unredacted.cause = Some(cause.into());
        self
    }

    /// Sets our own code for errors that have no error body.
    pub(crate) fn with_code(mut self, code: &'static str) -> Self {
        self.inner.details.code = Some(SafeText::ours(code));
        self
    }

    pub(crate) fn with_param(mut self, param: &'static str) -> Self {
        self.inner.details.param = Some(SafeText::ours(param));
        self
    }

    pub(crate) fn with_operation(mut self, operation: &Operation) -> Self {
        self.inner.operation = Some(operation.id);
        self.inner.method = Some(operation.qualified_name());
        self
    }

    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.inner.status = Some(status);
        self
    }

    pub(crate) fn with_request_id(mut self, request_id: Option<&str>) -> Self {
        self.inner.unredacted.request_id = request_id.map(str::to_owned);
        self
    }

    pub(crate) fn with_retry_after(mut self, retry_after: Option<Duration>) -> Self {
        self.inner.retry_after = retry_after;
        self
    }

    pub(crate) fn with_body(mut self, body: Bytes) -> Self {
        self.inner.unredacted.body = Some(body);
        self
    }

    pub(crate) fn with_attempts(mut self, attempts: u32) -> Self {
        self.inner.attempts = attempts;
        self
    }

    pub(crate) fn with_partial(mut self, partial: Option<Bytes>, received: Received) -> Self {
        self.inner.unredacted.partial = partial;
        self.inner.received = Some(received);
        self
    }

    /// Keeps the answer that does not have the requested form, as JSON.
    #[cfg(feature = "schemars")]
    pub(crate) fn with_answer(mut self, answer: Option<Bytes>) -> Self {
        self.inner.unredacted.answer = answer;
        self
    }

    /// Keeps the conversation that came to nothing, as JSON.
    #[cfg(feature = "schemars")]
    pub(crate) fn with_messages(mut self, messages: Option<Bytes>) -> Self {
        self.inner.unredacted.messages = messages;
        self
    }

    /// Names the helper that was called, which is not the operation's own method.
    #[cfg(feature = "schemars")]
    pub(crate) fn with_method(mut self, method: &str) -> Self {
        self.inner.method = Some(method.to_owned());
        self
    }

    /// Names the invalid place in a value from outside.
    #[cfg(feature = "schemars")]
    pub(crate) fn about(mut self, place: String) -> Self {
        self.inner.unredacted.param = Some(place);
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
        let Inner { method, status, message, .. } = &*self.inner;
        if let Some(method) = method {
            write!(f, "{method}: ")?;
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
        let Inner { kind, operation, status, attempts, message, details, .. } = &*self.inner;
        f.debug_struct("Error")
            .field("kind", kind)
            .field("message", message)
            .field("operation", operation)
            .field("status", status)
            .field("request_id", &self.request_id())
            .field("code", &self.code())
            .field("attempts", attempts)
            .field("source", &details.cause)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner.details.cause.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unredacted_error_reveals_nothing_received() {
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
        let exposed = (error.code(), error.param(), error.request_id(), error.body(), error.partial());
        assert_eq!(exposed, (None, None, None, None, None));
        assert!(error.headers().is_none() && std::error::Error::source(&error).is_none());
        let shown = error.shown(&Redactor::default());
        assert_eq!((shown.message(), shown.code()), ("canary: canary", Some("canary")));
    }

    #[test]
    fn error_is_one_pointer_wide() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }

    #[test]
    fn display_names_method_status_and_request() {
        let error = Error::new(ErrorKind::NotFound, "no such model")
            .with_operation(&crate::api::operations::LIST_MODELS)
            .with_status(404)
            .with_request_id(Some("req_1"))
            .shown(&Redactor::default());
        assert_eq!(error.to_string(), "models.list: status 404: no such model (request req_1)");
    }

    #[test]
    fn retained_error_body_is_truncated() {
        let body = Bytes::from(vec![b'x'; crate::MAX_ERROR_BODY_BYTES + 1]);
        let error =
            Error::from_body(ErrorKind::Status, body, || "unreadable".to_owned()).shown(&Redactor::default());
        assert_eq!(error.body().map(Bytes::len), Some(crate::MAX_ERROR_BODY_BYTES));
    }
}
