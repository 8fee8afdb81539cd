//! How servers deviate from the protocol.

use serde_json::Value;

use crate::deviations::{items, remove};

/// Members of the answer that servers omit.
const OMITTED: [&str; 4] = ["object", "created", "system_fingerprint", "service_tier"];

pub(super) fn answer(document: &mut Value) {
    for choice in items(document, "choices") {
        let message = &mut choice["message"];
        for call in items(message, "tool_calls") {
            remove(call, &["type"]);
            unpack(&mut call["function"]["arguments"]);
        }
        // Some servers report a plain stop although the message contains calls.
        if choice["finish_reason"] == "tool_calls" {
            choice["finish_reason"] = "stop".into();
        }
    }
    remove(document, &OMITTED);
}

/// Servers omit members that a single choice does not need, and write missing members of a chunk as null or empty.
pub(super) fn event(document: &mut Value) -> bool {
    remove(document, &OMITTED);
    let choices = &mut document["choices"];
    if choices.as_array().is_some_and(Vec::is_empty) {
        *choices = Value::Null;
    }
    let is_one = choices.as_array().is_some_and(|choices| choices.len() == 1);
    for choice in items(document, "choices") {
        if is_one && choice["index"] == 0 {
            remove(choice, &["index", "logprobs"]);
        }
        if choice["finish_reason"].is_null() {
            choice["finish_reason"] = "".into();
        }
        let delta = &mut choice["delta"];
        for name in ["content", "reasoning_content", "refusal"] {
            fill(delta, name, Value::Null);
        }
        for call in items(delta, "tool_calls") {
            remove(call, &["type"]);
            fill(call, "id", "".into());
            fill(&mut call["function"], "name", "".into());
        }
    }
    true
}

/// Adds a member to an object unless it already has one of that name.
fn fill(value: &mut Value, name: &str, with: Value) {
    if let Some(members) = value.as_object_mut() {
        members.entry(name).or_insert(with);
    }
}

/// Replaces a text that contains JSON with its value.
fn unpack(text: &mut Value) {
    if let Some(Ok(document)) = text.as_str().map(serde_json::from_str) {
        *text = document;
    }
}
