//! The headers of every response, its id first.

use futures_util::FutureExt as _;
use gatewright::operations::ErrorStyle;
use http::{HeaderName, HeaderValue, header};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use serde_json::Value;
use uuid::Uuid;

use crate::wire::{Body, Response};

/// Gives each response an id, for logs and support.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The same, under the name that clients of the messages protocol read.
const MESSAGES_REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

/// A response to a request that could not be parsed, with the headers of every response.
pub(super) fn signed(mut response: Response) -> Response {
    sign(&mut response, &new_request_id(), ErrorStyle::Standard);
    response
}

/// `style`: of the operation's errors.
pub(super) fn sign(response: &mut Response, request_id: &str, style: ErrorStyle) {
    if style == ErrorStyle::Messages && !response.status().is_success() {
        let body = std::mem::take(response.body_mut());
        *response.body_mut() = with_id(body, request_id);
    }
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::try_from(request_id) {
        if style == ErrorStyle::Messages {
            headers.insert(MESSAGES_REQUEST_ID, id.clone());
        }
        headers.insert(REQUEST_ID, id);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

/// An error in the messages format with the id of its request. Any other body is unchanged.
fn with_id(body: Body, request_id: &str) -> Body {
    if body.size_hint().exact().is_none() {
        return body;
    }
    // A body of known length is immediately available.
    let bytes = match body.collect().now_or_never() {
        Some(Ok(body)) => body.to_bytes(),
        _ => return Body::empty(),
    };
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(mut error)) if error.contains_key("error") => {
            error.insert("request_id".to_owned(), request_id.into());
            Value::Object(error).to_string().into()
        }
        _ => bytes.into(),
    }
}

pub(super) fn new_request_id() -> String {
    format!("req_{}", Uuid::new_v4().simple())
}
