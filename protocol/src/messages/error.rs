//! Errors in streams.

use serde_json::json;

use crate::StreamError;
use crate::conversation::Protocol;

/// The event that ends a failed stream.
pub(super) fn event(error: &StreamError<'_>) -> String {
    let StreamError { code, message, .. } = *error;
    let event = json!({ "type": "error", "error": { "type": code.messages_type, "message": message } });
    format!("event: error\ndata: {}\n\n", error.complete(Protocol::Messages, event))
}

/// The error of a server that fails in mid-stream.
pub(super) fn server_event(message: &str) -> String {
    let event = json!({ "type": "error", "error": { "type": "api_error", "message": message } });
    format!("event: error\ndata: {event}\n\n")
}
