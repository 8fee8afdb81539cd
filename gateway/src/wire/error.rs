//! Error responses of the gateway: one description, written in the standard, native or messages format. Codes, statuses
//! and types come from `spec/errors.json`.

use std::fmt;

use gatewright::ErrorCode;
use gatewright::limits::{UNSUPPORTED, Violation, Violations};
use gatewright::operations::{ErrorStyle, Operation};
use gatewright_protocol::conversation::ProviderExtra;
use gatewright_simulator::Refusal;
use gatewright_simulator::budget::BudgetExceeded;
use gatewright_simulator::client_schema::OutOfBounds;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use super::response::{Response, json_response};

/// Type URL of the detail that names a reason in the native format.
const NATIVE_ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
/// Type URL of the detail that lists broken rules in the native format.
const NATIVE_BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";
/// Maximum length of an error message: enough for the first violations in a request, but not for the request's own text.
const MAX_MESSAGE_BYTES: usize = 16 * 1024;
/// Type URL of the detail that says when to retry in the native format.
const NATIVE_RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";
/// Tells the official clients whether to retry, whatever the status.
pub(crate) const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// `domain` of reasons in the native format.
const DOMAIN: &str = "gatewright";

/// A rejected or failed request.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    code: &'static ErrorCode,
    message: String,
    param: Option<Box<str>>,
    violations: Violations,
    /// Response headers that don't follow from the code.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// An upstream's own error, which overrides the fields derived from the code.
    foreign: Option<Box<UpstreamError>>,
    /// See [`Abandoned`].
    is_abandoned: bool,
}

/// The gateway's code for a failure: an extension of the response. Never text of a client or an upstream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FailureCode(pub(crate) &'static str);

/// The client left before its request had arrived or was answered: an extension of the response. Nothing else failed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Abandoned;

/// An upstream's error. All of it must be safe to show.
#[derive(Debug, Clone)]
pub(crate) struct UpstreamError {
    /// Its status and code, if the client gets them.
    pub(crate) status: Option<u16>,
    pub(crate) code: Option<String>,
    /// Its further fields, for clients of its protocol.
    pub(crate) beyond: Option<Box<ProviderExtra>>,
}

impl fmt::Display for ApiError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl ApiError {
    /// Truncates a message that quotes much of the request.
    pub(crate) fn new(code: &'static ErrorCode, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > MAX_MESSAGE_BYTES {
            message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
            message.push('…');
        }
        Self {
            code,
            message,
            param: None,
            violations: Violations::default(),
            headers: Vec::new(),
            foreign: None,
            is_abandoned: false,
        }
    }

    /// The request breaks these rules. `param` is the field of the first violation; the message lists the first
    /// violations. If only the model is wrong, the error says that the endpoint has no such model (4 rule 1).
    pub(crate) fn violations(violations: Violations) -> Self {
        let param = violations.first().map(|violation| at_fault(violation).into());
        let (code, message) = match &*violations {
            [only] if only.pointer == "/model" && only.rule == UNSUPPORTED => {
                (&ErrorCode::MODEL_NOT_FOUND, only.message.clone())
            }
            _ => (&ErrorCode::INVALID_VALUE, violations.to_string()),
        };
        Self { param, violations, ..Self::new(code, message) }
    }

    /// Sets the request field at fault.
    pub(crate) fn param(self, param: impl Into<String>) -> Self {
        Self { param: Some(param.into().into_boxed_str()), ..self }
    }

    /// Sets the methods that the path allows.
    pub(crate) fn allow(self, methods: &str) -> Self {
        match HeaderValue::try_from(methods) {
            Ok(methods) => self.header(header::ALLOW, methods),
            Err(_) => self,
        }
    }

    /// Sets the seconds until the client should retry.
    pub(crate) fn retry_after(self, seconds: u64) -> Self {
        self.header(header::RETRY_AFTER, seconds.into())
    }

    /// Passes on an upstream's error.
    pub(crate) fn foreign(self, foreign: UpstreamError) -> Self {
        Self { foreign: Some(Box::new(foreign)), ..self }
    }

    /// The error of a request whose client has disconnected: nobody gets it, and it doesn't count as a failure.
    pub(crate) fn client_disconnected() -> Self {
        Self { is_abandoned: true, ..Self::new(&ErrorCode::REQUEST_TIMEOUT, "the client disconnected") }
    }

    /// Adds a header to the response.
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The code.
    pub(crate) fn code(&self) -> &'static ErrorCode {
        self.code
    }

    /// The code sent to the client: the upstream's own, if it has one.
    pub(crate) fn word(&self) -> &str {
        self.foreign.as_ref().and_then(|foreign| foreign.code.as_deref()).unwrap_or(self.code.code)
    }

    /// The human-readable message.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The request field at fault.
    pub(crate) fn field(&self) -> Option<&str> {
        self.param.as_deref()
    }

    /// Further fields of an upstream's error.
    pub(crate) fn beyond(&self) -> Option<&ProviderExtra> {
        self.foreign.as_ref()?.beyond.as_deref()
    }

    /// The upstream's status, if the client gets it.
    fn foreign_status(&self) -> Option<u16> {
        self.foreign.as_ref()?.status
    }

    /// The response in a protocol's format.
    pub(crate) fn into_response(self, style: ErrorStyle) -> Response {
        let (status, mut body) = match style {
            ErrorStyle::Native => (self.code.native_http, self.native_body()),
            ErrorStyle::Standard => (self.code.status, self.standard_body()),
            ErrorStyle::Messages => (self.code.status, self.messages_body()),
        };
        if let Some(beyond) = self.beyond().filter(|beyond| beyond.protocol.binding().error_style == style) {
            beyond.write(&mut body);
        }
        let status = self.foreign_status().unwrap_or(status);
        let mut response = json_response(&body);
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.extensions_mut().insert(FailureCode(self.code.code));
        if self.is_abandoned {
            response.extensions_mut().insert(Abandoned);
        }
        response.headers_mut().extend(self.headers);
        if status == 401 {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // Otherwise, clients of other vendors retry: after any 429, and coding agents for minutes after a 401.
        if status == 401 || self.code.code == ErrorCode::INSUFFICIENT_QUOTA.code {
            response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        response
    }

    fn standard_body(&self) -> Value {
        json!({ "error": self.members(self.code.error_type) })
    }

    /// The fields `param`, `code` and `violations` are ours: clients of this format ignore them.
    fn messages_body(&self) -> Value {
        json!({ "type": "error", "error": self.members(self.code.messages_type) })
    }

    fn members(&self, error_type: &str) -> Value {
        let mut error = json!({
            "message": self.message,
            "type": error_type,
            "param": self.param,
            "code": self.word(),
        });
        if !self.violations.is_empty() {
            error["violations"] = self
                .violations
                .iter()
                .map(|violation| {
                    json!({
                        "pointer": violation.pointer,
                        "rule": violation.rule,
                        "message": violation.message,
                        "section": violation.section,
                    })
                })
                .collect();
        }
        error
    }

    fn native_body(&self) -> Value {
        let mut details = Vec::new();
        if let Some(reason) = self.code.native_reason {
            details.push(json!({ "@type": NATIVE_ERROR_INFO, "reason": reason, "domain": DOMAIN }));
        }
        let retry_after = self.headers.iter().find(|(name, _)| *name == header::RETRY_AFTER);
        if let Some(seconds) = retry_after.and_then(|(_, seconds)| seconds.to_str().ok()) {
            details.push(json!({ "@type": NATIVE_RETRY_INFO, "retryDelay": format!("{seconds}s") }));
        }
        if !self.violations.is_empty() {
            let fields: Vec<Value> = self
                .violations
                .iter()
                .map(|violation| json!({ "field": at_fault(violation), "description": violation.message }))
                .collect();
            details.push(json!({ "@type": NATIVE_BAD_REQUEST, "fieldViolations": fields }));
        }
        json!({ "error": {
            "code": self.foreign_status().unwrap_or(self.code.native_http),
            "message": self.message,
            "status": self.code.native_status,
            "details": details,
        }})
    }
}

/// The field of a violation: the missing one, else the one at its location.
fn at_fault(violation: &Violation) -> String {
    match &violation.missing {
        Some(name) => field(&format!("{}/{}", violation.pointer, name.replace('~', "~0").replace('/', "~1"))),
        None => field(&violation.pointer),
    }
}

impl From<BudgetExceeded> for ApiError {
    /// The content of the request causes the work.
    fn from(exceeded: BudgetExceeded) -> Self {
        Self::new(&ErrorCode::REQUEST_TOO_COSTLY, exceeded.to_string())
    }
}

impl From<OutOfBounds> for ApiError {
    fn from(refused: OutOfBounds) -> Self {
        Self::violations(
            Violation {
                message: refused.to_string(),
                rule: refused.breach.rule().to_owned(),
                pointer: refused.pointer,
                section: "ours".to_owned(),
                missing: None,
            }
            .into(),
        )
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Budget(exceeded) => exceeded.into(),
            Refusal::Schema(refused) => refused.into(),
            Refusal::Request { message, at } => {
                Self::new(&ErrorCode::INVALID_VALUE, message).param(field(&at))
            }
        }
    }
}

/// `/messages/0/role` as `messages[0].role`; `body` for the whole document.
fn field(pointer: &str) -> String {
    let mut field = String::new();
    for segment in pointer.split('/').skip(1) {
        if !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit()) {
            field.push('[');
            field.push_str(segment);
            field.push(']');
        } else {
            if !field.is_empty() {
                field.push('.');
            }
            field.push_str(&segment.replace("~1", "/").replace("~0", "~"));
        }
    }
    if field.is_empty() { "body".to_owned() } else { field }
}

/// 501 in the operation's format: the operation is routed but not implemented.
pub fn not_implemented(operation: &Operation) -> Response {
    let message = format!("the gateway does not implement {} yet", operation.qualified_name());
    ApiError::new(&ErrorCode::NOT_IMPLEMENTED, message).into_response(operation.error_style)
}

#[cfg(test)]
mod tests {
    use gatewright_protocol::conversation::Protocol;

    use super::*;

    #[tokio::test]
    async fn messages_errors_have_their_own_type_and_the_standard_status() {
        for (code, status, error_type) in [
            (&ErrorCode::INVALID_VALUE, 400, "invalid_request_error"),
            (&ErrorCode::MISSING_API_KEY, 401, "authentication_error"),
            (&ErrorCode::MODEL_NOT_FOUND, 404, "not_found_error"),
            (&ErrorCode::REQUEST_TOO_LARGE, 413, "request_too_large"),
            (&ErrorCode::RATE_LIMIT_EXCEEDED, 429, "rate_limit_error"),
            (&ErrorCode::UPSTREAM_ERROR, 502, "api_error"),
            (&ErrorCode::SERVER_IS_OVERLOADED, 503, "overloaded_error"),
            (&ErrorCode::UPSTREAM_TIMEOUT, 504, "timeout_error"),
        ] {
            let response =
                ApiError::new(code, "a message").param("model").into_response(ErrorStyle::Messages);
            assert_eq!(response.status().as_u16(), status);
            let body =
                http_body_util::BodyExt::collect(response.into_body()).await.expect("a body").to_bytes();
            let body: Value = serde_json::from_slice(&body).expect("JSON");
            let error =
                json!({ "type": error_type, "message": "a message", "param": "model", "code": code.code });
            assert_eq!(body, json!({ "type": "error", "error": error }));
        }
    }

    #[test]
    fn unretryable_errors_say_so_in_a_header() {
        for (code, style, says_so) in [
            (&ErrorCode::MISSING_API_KEY, ErrorStyle::Standard, true),
            (&ErrorCode::MISSING_API_KEY, ErrorStyle::Messages, true),
            (&ErrorCode::INSUFFICIENT_QUOTA, ErrorStyle::Native, true),
            (&ErrorCode::RATE_LIMIT_EXCEEDED, ErrorStyle::Standard, false),
            (&ErrorCode::SERVER_IS_OVERLOADED, ErrorStyle::Messages, false),
        ] {
            let response = ApiError::new(code, "a message").into_response(style);
            let header = response.headers().get(SHOULD_RETRY).map(HeaderValue::as_bytes);
            assert_eq!(header, says_so.then_some(&b"false"[..]), "{}", code.code);
        }
    }

    #[test]
    fn native_errors_include_retry_info() {
        let details = |error: ApiError| error.native_body()["error"]["details"].clone();
        let limited = || ApiError::new(&ErrorCode::SERVER_IS_OVERLOADED, "a message");
        let retry_info = json!({ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s" });
        let details_of_limited = details(limited().retry_after(7));
        assert!(
            details_of_limited.as_array().is_some_and(|all| all.contains(&retry_info)),
            "{details_of_limited}"
        );
        assert!(!details(limited()).to_string().contains("RetryInfo"));
    }

    #[test]
    fn upstream_details_come_first_and_suppress_duplicates() {
        let (retry, other) = ("type.googleapis.com/google.rpc.RetryInfo", "type.example/quota");
        for (theirs, ours) in
            [(json!([{ "@type": other }]), true), (json!([{ "@type": retry, "retryDelay": "6.5s" }]), false)]
        {
            let error = json!({ "details": theirs, "status": "ODD" });
            let Value::Object(error) = error else { unreachable!("it is an object") };
            let beyond = Some(Box::new(ProviderExtra {
                protocol: Protocol::Native,
                error,
                beside: serde_json::Map::new(),
            }));
            let limited = ApiError::new(&ErrorCode::SERVER_IS_OVERLOADED, "a message").retry_after(7);
            let error = limited.foreign(UpstreamError { status: Some(503), code: None, beyond });
            let mut body = error.native_body();
            error.beyond().expect("it is there").write(&mut body);
            let mut expected = theirs.as_array().cloned().expect("a list");
            expected.extend(
                error.native_body()["error"]["details"]
                    .as_array()
                    .expect("a list")
                    .iter()
                    .filter(|own| ours || own["@type"] != retry)
                    .cloned(),
            );
            assert_eq!(body["error"]["details"], Value::Array(expected));
            assert_eq!(body["error"]["status"], "ODD");
        }
    }

    #[test]
    fn pointers_become_field_names() {
        assert_eq!(field(""), "body");
        assert_eq!(field("/messages/0/role"), "messages[0].role");
        assert_eq!(field("/metadata/a~1b"), "metadata.a/b");
    }
}
