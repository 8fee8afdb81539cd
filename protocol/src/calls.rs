//! Tool calls and their results.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::members::object;
use crate::conversation::{Input, PartKind, Turn};

/// The result of a call without one.
pub(super) const NO_RESULT: &str = "The tool gave no result.";
/// The result of a call that failed without a message.
pub(super) const FAILED: &str = "The tool failed.";
/// Placeholder text for providers that reject empty content.
pub(super) const NOTHING: &str = "…";

/// If a protocol requires an object: the member that holds an input of any other kind, such as a text.
const INPUT: &str = "input";

/// A call's input as an object: models occasionally write something else.
pub(super) fn arguments(text: &str) -> Map<String, Value> {
    match serde_json::from_str(text) {
        Ok(Value::Object(members)) => members,
        Ok(other) => object([(INPUT, other)]),
        Err(_) if text.trim().is_empty() => Map::new(),
        Err(_) => object([(INPUT, text.into())]),
    }
}

/// Sets the name and kind of the called tool on each result, if the conversation contains the call.
pub(super) fn name_results(turns: &mut [Turn]) {
    let mut called: HashMap<String, (String, bool)> = HashMap::new();
    for part in turns.iter_mut().flat_map(|turn| &mut turn.parts) {
        match &mut part.kind {
            PartKind::Call(call) => {
                let is_custom = matches!(call.input, Input::Text(_));
                called.insert(call.id.clone(), (call.name.clone(), is_custom));
            }
            PartKind::Result(result) => {
                if let Some((name, is_custom)) = called.get(&result.call_id) {
                    result.name = Some(name.clone());
                    result.custom = *is_custom;
                }
            }
            _ => {}
        }
    }
}
