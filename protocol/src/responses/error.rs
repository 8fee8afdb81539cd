//! Errors in streams.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::StreamError;
use crate::conversation::Protocol;
use crate::inspect::StreamInspector;

/// The event that ends a failed stream: the response as far as it has come. `now`: Unix time in seconds.
pub(super) fn event(error: &StreamError<'_>, inspector: &StreamInspector, now: u64) -> String {
    let started = inspector.started.as_deref().and_then(|started| serde_json::from_str(started.get()).ok());
    let mut response: Value = started.unwrap_or_else(|| {
        json!({
            "id": format!("resp_{}", Uuid::new_v4().simple()), "object": "response",
            "created_at": now, "output": [], "incomplete_details": null,
            "instructions": null, "metadata": {}, "parallel_tool_calls": true, "temperature": null,
            "top_p": null, "tool_choice": "auto", "tools": [],
        })
    });
    response["model"] = serde_json::from_slice(inspector.model()).unwrap_or_default();
    response["status"] = "failed".into();
    if response["output"].as_array().is_none_or(Vec::is_empty) && !inspector.output.is_empty() {
        response["output"] = inspector
            .output
            .iter()
            .filter_map(|item| serde_json::from_str::<Value>(item.get()).ok())
            .collect();
    }
    response["error"] = json!({ "code": error.word, "message": error.message });
    let response = error.complete(Protocol::Responses, response);
    let number = inspector.sequence_number.map_or(0, |number| number.saturating_add(1));
    let event = json!({ "type": "response.failed", "sequence_number": number, "response": response });
    format!("event: response.failed\ndata: {event}\n\n")
}

/// The error of a server that fails in mid-stream.
pub(super) fn server_event(message: &str, number: usize) -> String {
    let event = json!({
        "type": "error", "code": "server_error", "message": message, "param": null, "sequence_number": number,
    });
    format!("event: error\ndata: {event}\n\n")
}
