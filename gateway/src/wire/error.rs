//! Errors in responses of the gateway: one description, written in the standard or the native form. Codes, statuses and
//! types come from `spec/errors.json`.

use std::fmt;

use gatewright::ErrorCode;
use gatewright::limits::{UNSUPPORTED, Violation, Violations};
use gatewright::operations::{ErrorStyle, Operation};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use super::response::{Response, json_response};
use crate::bounds::budget::Exceeded;
use crate::bounds::client_schema::OutOfBounds;

/// Type address of the detail that names a reason in the native form.
const NATIVE_ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
/// Type address of the detail that lists broken rules in the native form.
const NATIVE_BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";
/// Maximum length of an error message: enough for the first violations of a request, but not for the request's own
/// text.
const MOST_MESSAGE_BYTES: usize = 16 * 1024;
/// `domain` of reasons in the native form.
const DOMAIN: &str = "gatewright";

/// A refused or failed request.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    code: &'static ErrorCode,
    message: String,
    param: Option<String>,
    violations: Violations,
    /// Response headers that do not follow from the code.
    headers: Vec<(HeaderName, HeaderValue)>,
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
        if message.len() > MOST_MESSAGE_BYTES {
            message.truncate(message.floor_char_boundary(MOST_MESSAGE_BYTES));
            message.push('…');
        }
        Self { code, message, param: None, violations: Violations::default(), headers: Vec::new() }
    }

    /// The request breaks these rules. `param` is the field of the first violation; the message lists the first
    /// violations. If only the model is wrong, the error is that the endpoint has no such model (4 rule 1).
    pub(crate) fn violations(violations: Violations) -> Self {
        let param = violations.first().map(at_fault);
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
        Self { param: Some(param.into()), ..self }
    }

    /// Sets the methods of the path.
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

    /// Adds a header to the response.
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The response in the form of a protocol.
    pub(crate) fn into_response(self, style: ErrorStyle) -> Response {
        let (status, body) = match style {
            ErrorStyle::Native => (self.code.native_http, self.native_body()),
            ErrorStyle::Standard => (self.code.status, self.standard_body()),
        };
        let mut response = json_response(&body);
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().extend(self.headers);
        if status == 401 {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }

    fn standard_body(&self) -> Value {
        let mut error = json!({
            "message": self.message,
            "type": self.code.error_type,
            "param": self.param,
            "code": self.code.code,
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
        json!({ "error": error })
    }

    fn native_body(&self) -> Value {
        let mut details = Vec::new();
        if let Some(reason) = self.code.native_reason {
            details.push(json!({ "@type": NATIVE_ERROR_INFO, "reason": reason, "domain": DOMAIN }));
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
            "code": self.code.native_http,
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

impl From<Exceeded> for ApiError {
    /// The content of the request causes the work.
    fn from(exceeded: Exceeded) -> Self {
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

/// 501 in the operation's form: the operation is routed but not implemented.
pub fn not_implemented(operation: &Operation) -> Response {
    let message = format!("the gateway does not implement {} yet", operation.qualified_name());
    ApiError::new(&ErrorCode::NOT_IMPLEMENTED, message).into_response(operation.error_style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_become_field_names() {
        assert_eq!(field(""), "body");
        assert_eq!(field("/messages/0/role"), "messages[0].role");
        assert_eq!(field("/metadata/a~1b"), "metadata.a/b");
    }
}
