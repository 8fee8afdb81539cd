//! JSON accessors. The body is already validated, so missing fields are optional.

use gatewright::limits::integer;
use serde_json::Value;

/// The elements of an array; empty if the value is not an array.
pub fn list(value: &Value) -> std::slice::Iter<'_, Value> {
    value.as_array().map_or(&[][..], Vec::as_slice).iter()
}

/// A string; empty if the value is not a string.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Text content: a string, or the texts of its parts, one per line.
pub fn content(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts =
                parts.iter().filter_map(|part| part["text"].as_str().or_else(|| part["refusal"].as_str()));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// A token limit.
pub fn limit(value: &Value) -> Option<usize> {
    integer(value).map(|limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// One string or several.
pub fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        _ => list(value).filter_map(Value::as_str).map(str::to_owned).collect(),
    }
}
