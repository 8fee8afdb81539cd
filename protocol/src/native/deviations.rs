//! How servers deviate from the protocol.

use serde_json::{Map, Value, json};

use crate::deviations::{items, remove};

/// Servers add an empty part, and omit indices, roles and empty arguments.
pub(super) fn answer(document: &mut Value) {
    for candidate in items(document, "candidates") {
        remove(candidate, &["index", "safetyRatings"]);
        let content = &mut candidate["content"];
        remove(content, &["role"]);
        for part in items(content, "parts") {
            if let Some(call) = part.get_mut("functionCall") {
                let is_empty = call["args"].as_object().is_some_and(Map::is_empty);
                remove(call, if is_empty { &["args", "id"] } else { &["id"] });
            }
        }
        if let Some(parts) = content["parts"].as_array_mut() {
            parts.push(json!({ "text": "" }));
        }
    }
}

/// Events are answers.
pub(super) fn event(document: &mut Value) -> bool {
    answer(document);
    true
}
