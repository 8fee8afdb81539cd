//! One call of one operation, as the generated route table hands it to the service, and the type of its answer.

use axum::body::Bytes;
use gatewright::limits::Rules;
use gatewright::operations::Operation;
use gatewright::{ErrorCode, limits};
use http::HeaderMap;
use serde_json::Value;

use crate::error::ApiError;

/// An answer: status, headers and a body that may be a stream.
pub type Response = axum::response::Response;

/// A request that was matched to an operation and let in (section 5).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Call {
    /// The operation of the specification that was called.
    pub operation: &'static Operation,
    /// Path parameters by name, percent-decoded and free of dot segments and control characters. Slashes are
    /// characters of the value, as ids of models hold them: a value is no path of a file.
    pub path: Vec<(String, String)>,
    /// Query parameters in the order sent, decoded, checked against the rules of the operation. The key, if it came
    /// this way, is not among them.
    pub query: Vec<(String, String)>,
    /// Request headers, without the ones that carry a key.
    pub headers: HeaderMap,
    /// The body, whole; empty when the operation has none.
    pub body: Bytes,
    /// The id sent back as `x-request-id`.
    pub request_id: String,
}

impl Call {
    /// The value of a path parameter; empty only if the route table names no such parameter.
    pub fn path(&self, name: &str) -> &str {
        self.path.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// The first value of a query parameter.
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

impl Call {
    /// The body as JSON, checked against the rules of the operation and the limits of its model (section 8).
    /// Where a protocol has several ways to write it, it comes in the one that the specification shows.
    ///
    /// Errors: not JSON (with line and column), all violations at once, or a model that another endpoint serves.
    pub(crate) fn checked_body(&self) -> Result<Value, ApiError> {
        self.checked_body_by(Rules::default())
    }

    /// The same, by rules of the gateway's own.
    pub(crate) fn checked_body_by(&self, rules: Rules) -> Result<Value, ApiError> {
        let body: Value = serde_json::from_slice(&self.body).map_err(|error| {
            ApiError::new(&ErrorCode::INVALID_JSON, format!("the body is not one JSON document: {error}"))
        })?;
        let violations = limits::check_with(self.operation, &body, rules);
        if !violations.is_empty() {
            return Err(ApiError::violations(violations));
        }
        Ok(limits::canonical(self.operation, &body).unwrap_or(body))
    }

    /// The value of a query parameter by its type, or what the specification says is assumed without it.
    pub(crate) fn parameter(&self, name: &'static str) -> Value {
        limits::parameter(self.operation, name, self.query(name))
    }

    /// A field of the body, or what the specification says is assumed without it.
    pub(crate) fn field<'b>(&self, body: &'b Value, name: &str) -> &'b Value {
        match &body[name] {
            Value::Null => limits::default_of(self.operation, name),
            given => given,
        }
    }
}
