//! How much memory JSON takes as a tree, so that it can be charged before a tree is made.

use serde_json::Value;

/// A value: its own place, the place that a growing array has in reserve for it, and the name and the index of a
/// member.
const VALUE: usize = 2 * size_of::<Value>() + 64;
/// The table of an object with a member.
const OBJECT: usize = 512;

/// About how many bytes a tree takes, rather more than fewer. Its depth is bounded by the reader of JSON.
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
