//! How servers deviate from the protocol.

use serde_json::Value;

use crate::deviations::remove;

pub(super) fn answer(document: &mut Value) {
    remove(document, &["type", "role", "stop_sequence"]);
}

/// Servers omit the usage in the first event, and end calls with the stop reason of texts.
pub(super) fn event(document: &mut Value) -> bool {
    match document["type"].as_str() {
        Some("message_start") => {
            remove(&mut document["message"], &["type", "role", "stop_sequence", "usage"]);
        }
        Some("content_block_start") => {
            remove(&mut document["content_block"], &["citations", "signature"]);
        }
        Some("message_delta") => {
            remove(&mut document["delta"], &["stop_sequence"]);
            if document["delta"]["stop_reason"] == "tool_use" {
                document["delta"]["stop_reason"] = "end_turn".into();
            }
        }
        _ => {}
    }
    true
}
