//! A native stream as a JSON array, for clients that do not ask for server-sent events. Each element is sent as soon as
//! it is ready.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, header};
use serde_json::Value;

use crate::wire::Response;
use crate::wire::sse;

/// Responds with an array of documents. `delay`: pause before each.
pub(super) fn respond(documents: impl Iterator<Item = Value> + Send + 'static, delay: Duration) -> Response {
    let mut documents = documents.peekable();
    let mut opened = false;
    let pieces = std::iter::from_fn(move || {
        let document = documents.next()?;
        let before = if std::mem::replace(&mut opened, true) { ",\r\n" } else { "[" };
        let after = if documents.peek().is_none() { "]" } else { "" };
        Some(Bytes::from(format!("{before}{document}{after}")))
    });
    let mut response = Response::new(sse::paced(pieces, delay));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
