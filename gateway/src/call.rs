//! One call of one operation, as the generated route table hands it to the service, and the type of its answer.

use axum::body::Bytes;
use gatewright::operations::Operation;
use http::HeaderMap;

/// An answer: status, headers and a body that may be a stream.
pub type Response = axum::response::Response;

/// A request that was matched to an operation and let in (section 5).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Call {
    /// The operation of the specification that was called.
    pub operation: &'static Operation,
    /// Path parameters by name, percent-decoded and free of slashes, dot segments and control characters.
    pub path: Vec<(String, String)>,
    /// Query parameters in the order sent, decoded. The key, if it came this way, is not among them.
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
