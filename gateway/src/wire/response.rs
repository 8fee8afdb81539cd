//! The response of an operation.

use bytes::Bytes;
use http::{HeaderValue, header};

use super::body::Body;

/// Capacity for the headers of most responses: rate-limit headers are added later.
const MAX_HEADERS: usize = 12;

/// A response: status, headers and a body, which may be a stream.
pub type Response = http::Response<Body>;

/// A successful response with a JSON document.
pub(crate) fn json_response(document: &impl serde::Serialize) -> Response {
    json_bytes(serde_json::to_vec(document).expect("answers are made of plain values").into())
}

/// The same, for a document that is already serialized.
pub(crate) fn json_bytes(document: Bytes) -> Response {
    let mut response = Response::new(Body::from(document));
    response.headers_mut().reserve(MAX_HEADERS);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
