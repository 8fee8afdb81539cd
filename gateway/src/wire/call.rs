//! One call of an operation, as the generated route table passes it to the service.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use gatewright::limits::Rules;
use gatewright::operations::Operation;
use gatewright::{ErrorCode, limits};
use http::HeaderMap;
use serde_json::Value;

use super::error::ApiError;
use super::form_body::FormBody;
use super::presence::Presence;
use crate::usage::{Caller, Consumed};

/// A request that was routed to an operation and admitted (section 5).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Call {
    /// The operation of the specification that was called.
    pub operation: &'static Operation,
    /// Path parameters by name, percent-decoded and free of dot segments and control characters. Slashes are part of
    /// the value, since model ids contain them: a value is not a file path.
    pub path: Vec<(String, String)>,
    /// Query parameters in the order sent, decoded, and validated against the rules of the operation. Never includes
    /// the key.
    pub query: Vec<(String, String)>,
    /// Request headers, without those that carry a key.
    pub headers: HeaderMap,
    /// The whole body; empty if the operation has none. Of a form, its members as JSON, with the names of its files.
    pub body: Bytes,
    /// The form itself, if the body is one.
    pub(crate) form: Option<Arc<FormBody>>,
    /// The key that the request was made with.
    pub(crate) caller: Caller,
    /// The id sent back as `x-request-id`.
    pub request_id: String,
    /// Whether the request arrived over TLS.
    pub is_tls: bool,
    /// Whether the client is still connected.
    pub(crate) presence: Presence,
    /// When its head arrived.
    pub(crate) started: Instant,
    /// The first upstream that failed.
    pub(crate) failed_at: OnceLock<Arc<str>>,
    /// What it consumed, once it ends.
    pub(crate) consumed: Consumed,
}

impl Call {
    /// The value of a path parameter; empty only if the route table names no such parameter.
    pub fn path(&self, name: &str) -> &str {
        self.path.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// The body as it was sent.
    pub(crate) fn sent(&self) -> &Bytes {
        self.form.as_ref().map_or(&self.body, |form| &form.bytes)
    }

    /// The first value of a query parameter.
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

impl Call {
    /// The body as JSON, validated against the rules of the operation and the limits of its model (section 8). If a
    /// protocol has several forms of a body, this is the one that the specification shows.
    ///
    /// Errors: the body is not JSON (with line and column), breaks rules (all violations at once), or names a model
    /// served by another endpoint.
    pub(crate) fn checked_body(&self) -> Result<Value, ApiError> {
        self.checked_body_by(Rules::default())
    }

    /// The same, validated against rules of the gateway's own.
    pub(crate) fn checked_body_by(&self, rules: Rules) -> Result<Value, ApiError> {
        let body = self.json_body()?;
        let violations = limits::check_with(self.operation, &body, rules);
        if !violations.is_empty() {
            return Err(ApiError::violations(violations));
        }
        Ok(limits::canonical(self.operation, &body).unwrap_or(body))
    }

    /// The same for a responses request that goes to a provider of that protocol: a prompt stored at the provider may
    /// replace the input.
    pub(crate) fn checked_prompt_by(&self, rules: Rules) -> Result<Value, ApiError> {
        let mut body = self.json_body()?;
        if !body["prompt"].is_object() || !body["input"].is_null() {
            return self.checked_body_by(rules);
        }
        body["input"] = "".into();
        let violations = limits::check_with(self.operation, &body, rules);
        if !violations.is_empty() {
            return Err(ApiError::violations(violations));
        }
        body["input"].take();
        Ok(body)
    }

    /// The body as JSON, validated with the limits of a catalog model, whatever model name the request uses. `limits`:
    /// the id of that model; `None`: only the specification's rules apply.
    pub(crate) fn checked_body_of(&self, limits: Option<&str>, rules: Rules) -> Result<Value, ApiError> {
        self.checked_of(self.json_body()?, limits, rules)
    }

    /// The same for a body that has already been read.
    pub(crate) fn checked_of(
        &self,
        mut body: Value,
        limits: Option<&str>,
        rules: Rules,
    ) -> Result<Value, ApiError> {
        let rules = rules.own_models(limits.is_none());
        let named = limits.and_then(|limits| Some((body.get_mut("model")?, limits)));
        let called = named.map(|(model, limits)| std::mem::replace(model, limits.into()));
        let violations = limits::check_with(self.operation, &body, rules);
        if !violations.is_empty() {
            return Err(ApiError::violations(violations));
        }
        if let Some(called) = called {
            body["model"] = called;
        }
        Ok(body)
    }

    /// The body as JSON, unvalidated.
    pub(crate) fn json_body(&self) -> Result<Value, ApiError> {
        serde_json::from_slice(&self.body).map_err(|error| {
            ApiError::new(&ErrorCode::INVALID_JSON, format!("the body is not one JSON document: {error}"))
        })
    }

    /// The typed value of a query parameter, or the default that the specification states.
    pub(crate) fn parameter(&self, name: &'static str) -> Value {
        limits::parameter(self.operation, name, self.query(name))
    }

    /// A field of the body, or the default that the specification states.
    pub(crate) fn field<'b>(&self, body: &'b Value, name: &str) -> &'b Value {
        match &body[name] {
            Value::Null => limits::default_of(self.operation, name),
            given => given,
        }
    }
}
