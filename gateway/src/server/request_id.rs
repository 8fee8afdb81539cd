//! The headers of every response, its id first.

use http::{HeaderName, HeaderValue, header};
use uuid::Uuid;

use crate::wire::Response;

/// Gives each response an id, for logs and support.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A response to a request that could not be parsed, with the headers of every response.
pub(super) fn signed(mut response: Response) -> Response {
    sign(&mut response, &new_request_id());
    response
}

pub(super) fn sign(response: &mut Response, request_id: &str) {
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::try_from(request_id) {
        headers.insert(REQUEST_ID, id);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

pub(super) fn new_request_id() -> String {
    format!("req_{}", Uuid::new_v4().simple())
}
