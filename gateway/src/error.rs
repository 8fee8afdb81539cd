//! Errors as the gateway answers them: one description, written in the standard or the native form. Codes, statuses
//! and types are those of `spec/errors.json`.

use axum::body::Body;
use gatewright::ErrorCode;
use gatewright::limits::Violation;
use gatewright::operations::{ErrorStyle, Operation};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use crate::call::Response;
use crate::simulator::budget::Exceeded;
use crate::simulator::client_schema::OutOfBounds;

/// Type address of the detail that names a reason in the native form.
const NATIVE_ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
/// Type address of the detail that lists broken rules in the native form.
const NATIVE_BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";
/// `domain` of reasons in the native form.
const DOMAIN: &str = "gatewright";

/// A refused or failed request.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    code: &'static ErrorCode,
    message: String,
    param: Option<String>,
    violations: Vec<Violation>,
    allow: Option<String>,
}

impl ApiError {
    pub(crate) fn new(code: &'static ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), param: None, violations: Vec::new(), allow: None }
    }

    /// The request breaks these rules. `param` is the first one's field, the message names all.
    pub(crate) fn violations(violations: Vec<Violation>) -> Self {
        let messages: Vec<String> = violations.iter().map(ToString::to_string).collect();
        let param = violations.first().map(|violation| field(&violation.pointer));
        Self { param, violations, ..Self::new(&ErrorCode::INVALID_VALUE, messages.join("; ")) }
    }

    /// Names the request's field at fault.
    pub(crate) fn param(self, param: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..self }
    }

    /// Names the methods that the path has.
    pub(crate) fn allow(self, methods: String) -> Self {
        Self { allow: Some(methods), ..self }
    }

    /// The answer in a protocol's form.
    pub(crate) fn into_response(self, style: ErrorStyle) -> Response {
        let (status, body) = match style {
            ErrorStyle::Native => (self.code.native_http, self.native_body()),
            ErrorStyle::Standard => (self.code.status, self.standard_body()),
        };
        let mut response = json_response(&body);
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if let Some(methods) = self.allow.and_then(|methods| HeaderValue::try_from(methods).ok()) {
            response.headers_mut().insert(header::ALLOW, methods);
        }
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
                .map(|violation| json!({ "field": field(&violation.pointer), "description": violation.message }))
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

impl From<Exceeded> for ApiError {
    /// The request's own content asks for the work.
    fn from(exceeded: Exceeded) -> Self {
        Self::new(&ErrorCode::REQUEST_TOO_COSTLY, exceeded.to_string())
    }
}

impl From<OutOfBounds> for ApiError {
    fn from(refused: OutOfBounds) -> Self {
        Self::violations(vec![Violation {
            message: refused.to_string(),
            rule: refused.breach.rule().to_owned(),
            pointer: refused.pointer,
            section: "ours".to_owned(),
        }])
    }
}

/// `/messages/0/role` as `messages[0].role`; `body` for the document as a whole.
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

/// A JSON document as a successful answer.
pub(crate) fn json_response(document: &impl serde::Serialize) -> Response {
    let bytes = serde_json::to_vec(document).expect("answers are made of plain values");
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// 501 in the operation's form: it is routed, but nobody has implemented it.
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
