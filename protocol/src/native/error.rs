//! Errors in streams.

use serde_json::json;

use crate::StreamError;
use crate::conversation::Protocol;

/// The document that ends a failed stream.
pub(super) fn event(error: &StreamError<'_>) -> String {
    let StreamError { code, message, .. } = *error;
    let error_object =
        json!({ "code": code.native_http, "message": message, "status": code.native_status, "details": [] });
    format!("data: {}\n\n", error.complete(Protocol::Native, json!({ "error": error_object })))
}

/// The error of a server that fails in mid-stream.
pub(super) fn server_event(message: &str) -> String {
    let error = json!({ "code": 500, "message": message, "status": "INTERNAL" });
    format!("data: {}\n\n", json!({ "error": error }))
}
