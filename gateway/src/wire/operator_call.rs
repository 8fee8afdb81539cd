//! One call of the operator API, as its generated route table passes it to the service.

use bytes::Bytes;
use gatewright::ErrorCode;
use gatewright::operations::Operation;
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// A request with the admin key that was routed to an operation.
#[derive(Debug)]
pub(crate) struct OperatorCall {
    pub(crate) operation: &'static Operation,
    /// Path parameters by name, percent-decoded, not empty and free of control characters.
    pub(crate) path: Vec<(&'static str, String)>,
    /// Query parameters: those of the operation alone, each at most once.
    pub(crate) query: Vec<(String, String)>,
    /// The whole body; empty if the request has none.
    pub(crate) body: Bytes,
}

impl OperatorCall {
    /// The value of a path parameter; empty only if the route table names no such parameter.
    pub(crate) fn path(&self, name: &str) -> &str {
        self.path.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    /// Takes a query parameter.
    pub(crate) fn take_query(&mut self, name: &str) -> Option<String> {
        let at = self.query.iter().position(|(found, _)| found == name)?;
        Some(self.query.swap_remove(at).1)
    }

    /// The body as a document of this form.
    pub(crate) fn document<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        serde_json::from_slice(&self.body).map_err(|error| {
            let (code, what) = if error.is_data() {
                (&ErrorCode::INVALID_VALUE, "not valid")
            } else {
                (&ErrorCode::INVALID_JSON, "not one JSON document")
            };
            ApiError::new(code, format!("the body is {what}: {error}"))
        })
    }
}
