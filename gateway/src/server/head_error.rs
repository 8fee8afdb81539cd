//! Responses to requests with unreadable heads, and to refused connections: bytes without a request.

use bytes::Bytes;
use gatewright::operations::ErrorStyle;

use super::request_id::signed;
use crate::wire::ApiError;

/// An error as raw bytes, for a connection that it ends.
pub(crate) fn answer(error: ApiError) -> Bytes {
    let response = error.into_response(ErrorStyle::Standard);
    let (head, body) = signed(response).into_parts();
    let body = http_body_util::BodyExt::collect(body);
    let body =
        futures_util::FutureExt::now_or_never(body).and_then(Result::ok).unwrap_or_default().to_bytes();
    let reason = head.status.canonical_reason().unwrap_or_default();
    let mut bytes = format!("HTTP/1.1 {} {reason}\r\n", head.status.as_str()).into_bytes();
    for (name, value) in &head.headers {
        bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    bytes.extend(format!("content-length: {}\r\nconnection: close\r\n\r\n", body.len()).into_bytes());
    bytes.extend_from_slice(&body);
    bytes.into()
}
