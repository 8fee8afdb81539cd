//! Why an upstream gave no answer: how the gateway handles it, and what it reports to the client.

use std::time::{Duration, SystemTime};

use gatewright::ErrorCode;
use gatewright::redact::Redactor;
use gatewright_protocol::conversation::{Failure, FailureKind, Protocol, ProviderExtra, Usage};
use gatewright_protocol::lazy_json::members;
use gatewright_protocol::{StreamError, code_of};
use gatewright_system::clock::{unix_seconds, whole_seconds};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

use crate::bounds::memory_budget::ReservationError;
use crate::routing::{SkipReason, Unavailable};
use crate::upstream::{NoAnswer, retry_after, tokens_left};
use crate::wire::{ApiError, UpstreamError};
use gatewright_protocol::inspect::StreamInspector;

/// Reports which upstream answered or failed.
pub(crate) const UPSTREAM_HEADER: HeaderName = HeaderName::from_static("x-gatewright-upstream");
/// The status of an answer whose body contains an error.
const SUCCEEDED: u16 = 200;
/// When to retry if the memory budget is exhausted.
const NO_ROOM_WAIT: Duration = Duration::from_secs(1);
/// Maximum length of an upstream's message, in bytes.
const MAX_MESSAGE_BYTES: usize = 4 * 1024;
/// Maximum length of a code or parameter name, in bytes.
const MAX_WORD_BYTES: usize = 128;

/// A failed attempt.
#[derive(Debug)]
pub(crate) struct AttemptFailure {
    pub(crate) class: FailureClass,
    /// The upstream's error, sanitized.
    cause: Box<Failure>,
    /// The upstream's status, if it is passed to the client.
    status: Option<u16>,
    pub(crate) retry_after: Option<Duration>,
    /// The number of tokens that are left for smaller requests, if a token rate limit was reached.
    pub(crate) tokens_left: Option<u64>,
    /// What the upstream did and reported before it or the gateway failed.
    pub(crate) usage: Option<Box<Usage>>,
    /// The upstream's name, as reported to clients.
    upstream: Option<Box<HeaderValue>>,
}

/// What is at fault for a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureClass {
    /// The request: don't try another upstream.
    Request,
    /// The key: another one may work.
    Key,
    /// The key or the request; upstreams use the same code for both. Another key may work, but this one isn't rested. Otherwise
    /// one client could block the requests of all others.
    Permission,
    /// The key, for a while: the upstream's rate limit is reached.
    RateLimit,
    /// The upstream: another one may work.
    Upstream,
    /// The gateway: the upstream has done its work.
    Gateway,
}

impl AttemptFailure {
    /// From an error response.
    pub(crate) fn of_answer(
        protocol: Protocol,
        status: u16,
        headers: &HeaderMap,
        body: &[u8],
        redactor: &Redactor,
    ) -> Self {
        let mut failure = protocol.failure_in(status, body);
        // Failed dependency: the model behind the server failed.
        let is_of_server = status == 424 || !(400..=599).contains(&status);
        if is_of_server && failure.kind == FailureKind::InvalidRequest {
            failure.kind = FailureKind::Server;
        }
        // Proxies in front of other servers report some rejections with a status of their own. The code says what is at fault.
        let is_refusal = status >= 500 && failure.kind == FailureKind::InvalidRequest;
        let class = match (status, failure.kind) {
            _ if is_refusal => FailureClass::Request,
            // The native protocol rejects a key with 400.
            (401 | 402, _) | (429, FailureKind::QuotaExceeded) | (400, FailureKind::Authentication) => {
                FailureClass::Key
            }
            (403, _) => FailureClass::Permission,
            (429, _) => FailureClass::RateLimit,
            (424, _) => FailureClass::Upstream,
            (400..=407 | 409..=499, _) => FailureClass::Request,
            _ => FailureClass::Upstream,
        };
        // The client's own key is valid, whatever the upstream says about the gateway's.
        let is_own = failure.kind == FailureKind::Authentication || !(400..=599).contains(&status);
        let status = (status != 401 && !is_own && !is_refusal).then_some(status);
        let retry_after = retry_after(headers, body, SystemTime::now());
        let tokens_left = if class == FailureClass::RateLimit { tokens_left(headers) } else { None };
        let cause = shown(failure, redactor).into();
        Self { class, cause, status, retry_after, tokens_left, usage: None, upstream: None }
    }

    /// From an error within a stream.
    pub(crate) fn of_event(failure: Failure, redactor: &Redactor) -> Self {
        let class = match failure.kind {
            FailureKind::InvalidRequest | FailureKind::NotFound | FailureKind::TooLarge => {
                FailureClass::Request
            }
            FailureKind::RateLimited => FailureClass::RateLimit,
            FailureKind::Authentication | FailureKind::QuotaExceeded => FailureClass::Key,
            FailureKind::PermissionDenied => FailureClass::Permission,
            FailureKind::Timeout | FailureKind::Overloaded | FailureKind::Server => FailureClass::Upstream,
        };
        Self {
            class,
            cause: shown(failure, redactor).into(),
            status: None,
            retry_after: None,
            tokens_left: None,
            usage: None,
            upstream: None,
        }
    }

    /// There was no response.
    pub(crate) fn no_answer(why: &NoAnswer, redactor: &Redactor) -> Self {
        let kind = match why {
            NoAnswer::Timeout(_) => FailureKind::Timeout,
            NoAnswer::Broken(_) => FailureKind::Server,
        };
        Self::upstream(kind, format!("the provider did not respond: {why}"), redactor)
    }

    /// From a successful answer that isn't what the client wants. `why`: what is wrong with it if it reports no error; continues "the
    /// provider's response".
    pub(crate) fn of_document(protocol: Protocol, document: &[u8], why: &str, redactor: &Redactor) -> Self {
        let mut error = false;
        if let Ok(text) = std::str::from_utf8(document) {
            _ = members(text, |name, value| error |= name == "error" && value.get() != "null");
        }
        if error {
            Self::of_event(protocol.failure_in(SUCCEEDED, document), redactor)
        } else {
            Self::broken(why, redactor)
        }
    }

    /// The answer was cut off, or isn't in the protocol's format. `why`: continues "the provider's answer".
    pub(crate) fn broken(why: &str, redactor: &Redactor) -> Self {
        Self::upstream(FailureKind::Server, format!("the provider's response {why}"), redactor)
    }

    /// The answer timed out.
    pub(crate) fn silent(time: Duration, redactor: &Redactor) -> Self {
        let message = format!("the provider's response stalled for {time:?}");
        Self::upstream(FailureKind::Timeout, message, redactor)
    }

    /// The client half-closed the connection. Tells a client that still reads that its answer is incomplete.
    pub(crate) fn given_up(redactor: &Redactor) -> Self {
        let message = "the answer was canceled because the client closed its side of the connection; keep it open until the \
            answer ends";
        Self::of_event(Failure::new(FailureKind::InvalidRequest, message), redactor)
    }

    /// The gateway has no memory for the request or its answer.
    pub(crate) fn no_room(why: ReservationError, redactor: &Redactor) -> Self {
        let (kind, message) = match why {
            ReservationError::Whole => (
                FailureKind::Overloaded,
                "the requests and answers in progress use all the memory that the gateway has for them; try again soon",
            ),
            ReservationError::Part => (
                FailureKind::RateLimited,
                "the requests and answers in progress of this API key use all the memory that one key may use; try again when \
                 one has ended",
            ),
        };
        let failure = Self::of_event(Failure::new(kind, message), redactor);
        Self { class: FailureClass::Gateway, retry_after: Some(NO_ROOM_WAIT), ..failure }
    }

    /// The gateway is about to stop.
    pub(crate) fn stopping(why: &ApiError) -> Self {
        let failure = Failure::new(FailureKind::Overloaded, why.to_string());
        Self { class: FailureClass::Gateway, ..Self::of_event(failure, &Redactor::default()) }
    }

    fn upstream(kind: FailureKind, message: String, redactor: &Redactor) -> Self {
        let cause = shown(Failure::new(kind, message), redactor).into();
        Self {
            class: FailureClass::Upstream,
            cause,
            status: None,
            retry_after: None,
            tokens_left: None,
            usage: None,
            upstream: None,
        }
    }

    /// The failure of an answer that reports this usage: the upstream bills it.
    pub(crate) fn billed(self, usage: Option<Usage>) -> Self {
        Self { usage: usage.map(Box::new), ..self }
    }

    /// Adds the name of the upstream.
    pub(crate) fn at(self, upstream: &HeaderValue) -> Self {
        Self { upstream: Some(Box::new(upstream.clone())), ..self }
    }

    /// Whether the upstream may not know the previous response.
    pub(crate) fn is_unknown_response(&self) -> bool {
        let Failure { kind, code, param, .. } = &*self.cause;
        *kind == FailureKind::NotFound
            || code.as_deref() == Some(ErrorCode::PREVIOUS_RESPONSE_NOT_FOUND.code)
            || param.as_deref() == Some("previous_response_id")
    }

    /// Whether a server rejects the request because of `stream_options`.
    pub(super) fn refuses_stream_options(&self) -> bool {
        let Failure { message, param, .. } = &*self.cause;
        let is_named = |text: &str| text.contains("stream_options");
        self.class == FailureClass::Request && (is_named(message) || param.as_deref().is_some_and(is_named))
    }

    /// The upstream's status, if it is passed to the client.
    pub(super) fn status(&self) -> Option<u16> {
        self.status
    }

    /// The gateway's error code.
    pub(super) fn code(&self) -> &'static str {
        code_of(self.cause.kind).code
    }

    /// The upstream's error, sanitized.
    pub(crate) fn cause(&self) -> &Failure {
        &self.cause
    }

    /// The error for the client.
    pub(crate) fn into_error(self) -> ApiError {
        let Failure { kind, message, code, param, beyond } = *self.cause;
        let mut error = ApiError::new(code_of(kind), message);
        if self.status.is_some() || code.is_some() || beyond.is_some() {
            error = error.foreign(UpstreamError { status: self.status, code, beyond });
        }
        if let Some(param) = param {
            error = error.param(param);
        }
        if let Some(upstream) = self.upstream {
            error = error.header(UPSTREAM_HEADER, *upstream);
        }
        match self.retry_after {
            Some(time) => error.retry_after(whole_seconds(time)),
            None => error,
        }
    }
}

/// The error if no upstream is available.
pub(crate) fn unavailable(unavailable: Unavailable, model: &str) -> ApiError {
    let wait = unavailable.until.saturating_duration_since(std::time::Instant::now());
    let model = gatewright::limits::brief(format_args!("{model:?}"));
    let (code, message) = match unavailable.why {
        SkipReason::Broken => (
            &ErrorCode::SERVER_IS_OVERLOADED,
            format!("every provider of the model {model} failed recently; see retry-after"),
        ),
        SkipReason::Busy => (
            &ErrorCode::SERVER_IS_OVERLOADED,
            format!(
                "every provider of the model {model} has reached its maximum number of requests; see retry-after"
            ),
        ),
        SkipReason::KeysWait => (
            &ErrorCode::RATE_LIMIT_EXCEEDED,
            format!("every provider of the model {model} limits the rate at the moment; see retry-after"),
        ),
    };
    ApiError::new(code, message).retry_after(whole_seconds(wait))
}

/// An error of the gateway, as the last event of a stream.
pub(crate) fn stream_error(error: &ApiError) -> StreamError<'_> {
    let (code, beyond) = (error.code(), error.beyond());
    StreamError { code, word: error.word(), message: error.message(), param: error.field(), beyond }
}

/// The end of a failed stream, in the format of its protocol and without the marker of success.
pub(crate) fn last_event(protocol: Protocol, error: &StreamError<'_>, inspector: &StreamInspector) -> String {
    protocol.error_event(error, inspector, unix_seconds())
}

/// Redacts secrets, bounds lengths, and removes anything that a terminal would act on.
fn shown(failure: Failure, redactor: &Redactor) -> Failure {
    if failure.kind == FailureKind::Authentication {
        // Providers quote part of the key that they reject. Clients would look for the mistake in their own key.
        let message =
            "the provider rejected the gateway's key; the operator of the gateway has to replace it";
        return Failure::new(failure.kind, message);
    }
    let show = |text: &str, bytes: usize| {
        let (clean, more) = redactor.redact_beginning(text, bytes);
        let mut clean = gatewright::visible::visible_lines(&clean).into_owned();
        if more {
            clean.push('…');
        }
        clean
    };
    Failure {
        kind: failure.kind,
        message: show(&failure.message, MAX_MESSAGE_BYTES),
        code: failure.code.map(|code| show(&code, MAX_WORD_BYTES)),
        param: failure.param.map(|param| show(&param, MAX_WORD_BYTES)),
        beyond: failure.beyond.map(|beyond| {
            let ProviderExtra { protocol, error, beside } = *beyond;
            let members = |members| shown_members(members, &|text| show(text, MAX_MESSAGE_BYTES));
            Box::new(ProviderExtra { protocol, error: members(error), beside: members(beside) })
        }),
    }
}

/// Applies `show` to each text. Documents are within the limits that applied when they were read.
fn shown_members(members: Map<String, Value>, show: &dyn Fn(&str) -> String) -> Map<String, Value> {
    members.into_iter().map(|(name, value)| (show(&name), shown_value(value, show))).collect()
}

fn shown_value(value: Value, show: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => show(&text).into(),
        Value::Array(items) => items.into_iter().map(|item| shown_value(item, show)).collect(),
        Value::Object(members) => shown_members(members, show).into(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(status: u16, body: &str) -> AttemptFailure {
        let redactor = Redactor::new(["sk-canary-8842"]);
        AttemptFailure::of_answer(Protocol::Chat, status, &HeaderMap::new(), body.as_bytes(), &redactor)
    }

    #[test]
    fn status_determines_the_failure_class() {
        for (status, class) in [
            (400, FailureClass::Request),
            (401, FailureClass::Key),
            (402, FailureClass::Key),
            (403, FailureClass::Permission),
            (404, FailureClass::Request),
            (408, FailureClass::Upstream),
            (413, FailureClass::Request),
            (422, FailureClass::Request),
            (424, FailureClass::Upstream),
            (429, FailureClass::RateLimit),
            (500, FailureClass::Upstream),
            (503, FailureClass::Upstream),
            (529, FailureClass::Upstream),
            (302, FailureClass::Upstream),
        ] {
            assert_eq!(of(status, "").class, class, "{status}");
        }
        let quota = r#"{"error":{"message":"no money","code":"insufficient_quota"}}"#;
        assert_eq!(of(429, quota).class, FailureClass::Key);
    }

    #[test]
    fn request_error_code_is_kept_with_any_status_and_in_streams() {
        let body = r#"{"error":{"message":"too long","code":"context_length_exceeded","param":"input"}}"#;
        for failure in [of(400, body), of(502, body)] {
            assert_eq!(failure.class, FailureClass::Request);
            let error = failure.into_error();
            assert_eq!((error.word(), error.field()), ("context_length_exceeded", Some("input")));
            assert_eq!(error.code().status, 400);
        }
        let failure = Protocol::Responses.failure_in(200, body.as_bytes());
        let failure = AttemptFailure::of_event(failure, &Redactor::default());
        assert_eq!(failure.class, FailureClass::Request);
        for (protocol, code) in
            [(Protocol::Chat, "/error/code"), (Protocol::Responses, "/response/error/code")]
        {
            let inspector = StreamInspector::new(protocol, "mine", false);
            let event = last_event(protocol, &StreamError::of(failure.cause()), &inspector);
            let data = event.lines().find_map(|line| line.strip_prefix("data: ")).expect("data");
            let data: Value = serde_json::from_str(data).expect("JSON");
            assert_eq!(data.pointer(code).and_then(Value::as_str), Some("context_length_exceeded"));
        }
        assert_eq!(of(500, r#"{"error":{"type":"invalid_request_error"}}"#).class, FailureClass::Upstream);
    }

    #[test]
    fn stream_options_rejection_is_detected() {
        for (status, body, expected) in [
            (400, r#"{"error":{"message":"Unrecognized request argument supplied: stream_options"}}"#, true),
            (422, r#"{"error":{"message":"Extra inputs","param":"stream_options.include_usage"}}"#, true),
            (400, "stream_options: extra fields not permitted", true),
            (400, r#"{"error":{"message":"bad","param":"stream"}}"#, false),
            (500, r#"{"error":{"message":"stream_options"}}"#, false),
        ] {
            assert_eq!(of(status, body).refuses_stream_options(), expected, "{status} {body}");
        }
    }

    #[test]
    fn upstream_key_is_redacted_from_failures() {
        let body = r#"{"error":{"message":"bad key sk-canary-8842","code":"sk-canary-8842","param":"sk-canary-8842"}}"#;
        for status in [400, 401, 429, 500] {
            let text = format!("{:?}", of(status, body));
            assert!(!text.contains("canary"), "{text}");
        }
        let long = "x".repeat(100_000);
        assert!(of(500, &long).cause.message.len() < 2 * MAX_MESSAGE_BYTES);
    }

    #[test]
    fn upstream_key_error_details_are_hidden_from_clients() {
        // Providers quote part of a key that they reject: no redactor knows it.
        let body = r#"{"error":{"message":"Incorrect API key provided: sk-ca****8842","code":"invalid_api_key",
            "param":"sk-ca****8842"}}"#;
        for status in [400, 401, 403] {
            let text = format!("{:?}", of(status, body).into_error());
            assert!(!text.contains("8842"), "{text}");
        }
    }

    #[test]
    fn final_error_event_reuses_the_sequence_number_of_the_upstream_error() {
        for error in [
            r#"{"type":"error","sequence_number":6,"code":"server_error","message":"no"}"#,
            r#"{"type":"response.failed","sequence_number":6,"response":{"error":{"message":"no"}}}"#,
        ] {
            let mut inspector = StreamInspector::new(Protocol::Responses, "mine", false);
            inspector.event(None, r#"{"type":"response.output_text.delta","sequence_number":5,"delta":"x"}"#);
            inspector.event(None, error);
            let failure = Failure::new(FailureKind::Server, "no");
            let event = last_event(Protocol::Responses, &StreamError::of(&failure), &inspector);
            assert!(event.contains(r#""sequence_number":6"#), "{event}");
        }
    }

    #[test]
    fn failed_responses_stream_repeats_its_response() {
        let mut inspector = StreamInspector::new(Protocol::Responses, "mine", false);
        let created =
            r#"{"type":"response.created","sequence_number":4,"response":{"id":"r1","model":"theirs"}}"#;
        inspector.event(None, created);
        let failure = AttemptFailure::broken("broke off", &Redactor::default());
        let event = last_event(Protocol::Responses, &StreamError::of(failure.cause()), &inspector);
        let data: Value = event
            .strip_prefix("event: response.failed\ndata: ")
            .and_then(|data| serde_json::from_str(data.trim_end()).ok())
            .expect("an event");
        assert_eq!(data["sequence_number"], 5);
        let response = &data["response"];
        assert_eq!([&response["id"], &response["model"], &response["status"]], ["r1", "mine", "failed"]);
        assert_eq!(response["error"]["code"], "upstream_error");
        assert_eq!(response["output"], Value::Null);
    }

    #[test]
    fn failed_responses_stream_contains_its_completed_items() {
        let failed = |items: &[&str]| {
            let mut inspector = StreamInspector::new(Protocol::Responses, "mine", false);
            inspector.event(None, r#"{"type":"response.created","response":{"id":"r1","output":[]}}"#);
            for item in items {
                let event = format!(r#"{{"type":"response.output_item.done","item":{{"id":"{item}"}}}}"#);
                inspector.event(None, &event);
            }
            inspector.event(None, r#"{"type":"response.output_item.added","item":{"id":"open"}}"#);
            let failure = Failure::new(FailureKind::Server, "no");
            let event = last_event(Protocol::Responses, &StreamError::of(&failure), &inspector);
            let data = event.lines().find_map(|line| line.strip_prefix("data: ")).expect("data");
            serde_json::from_str::<Value>(data).expect("JSON")["response"]["output"].clone()
        };
        assert_eq!(failed(&["a", "b"]), json!([{ "id": "a" }, { "id": "b" }]));
        assert_eq!(failed(&[]), json!([]));
        let long = "x".repeat(300_000);
        assert_eq!(failed(&["a", &long, "b"]), json!([]), "stored items are bounded");
    }
}
