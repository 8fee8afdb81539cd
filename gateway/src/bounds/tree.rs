//! Estimates the memory of a parsed JSON document, so that it can be charged before parsing.

use serde_json::Value;

/// Bytes per value: the value itself, the spare capacity of a growing array, and the name and index of a member.
const VALUE: usize = 2 * size_of::<Value>() + 64;
/// Bytes of the table of a non-empty object.
const OBJECT: usize = 512;

/// Estimates the bytes of a tree, rather too high than too low. The JSON parser limits the depth.
pub(crate) fn bytes(value: &Value) -> usize {
    let inside = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(bytes).sum(),
        Value::Object(members) => {
            let table = if members.is_empty() { 0 } else { OBJECT };
            table + members.iter().map(|(name, member)| name.len() + bytes(member)).sum::<usize>()
        }
    };
    VALUE + inside
}
