//! How servers deviate from the protocol.

use serde_json::{Value, json};

use crate::deviations::{items, remove};

pub(super) fn answer(document: &mut Value) {
    for item in items(document, "output") {
        remove(item, &["status"]);
    }
}

/// Servers do not number events, omit those that only frame a text, and do not repeat the output in the last event.
pub(super) fn event(document: &mut Value) -> bool {
    remove(document, &["sequence_number", "logprobs", "obfuscation", "content_index"]);
    if let Some(item) = document.get_mut("item") {
        remove(item, &["status"]);
    }
    match document["type"].as_str() {
        Some("response.completed") => document["response"]["output"] = json!([]),
        Some("response.in_progress" | "response.content_part.added" | "response.content_part.done") => {
            return false;
        }
        _ => {}
    }
    true
}
