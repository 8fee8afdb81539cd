//! Estimates the memory of a parsed JSON document, so that it can be charged before parsing.

use serde_json::Value;

/// Bytes per value: the value itself, the spare capacity of a growing array, and the name and index of a member.
const VALUE: usize = 2 * size_of::<Value>() + 64;
/// Bytes of the table of a non-empty object.
const OBJECT: usize = 512;

/// Estimates the bytes of a tree, rather too high than too low. The JSON parser limits the depth.
pub fn bytes(value: &Value) -> usize {
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

/// The same of a text that is JSON, without parsing it.
pub fn bytes_of_text(json: &str) -> usize {
    let (mut values, mut objects) = (1, 0);
    let (mut is_text, mut is_escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            _ if is_text => {}
            b'{' => (values, objects) = (values + 1, objects + 1),
            b'[' | b',' => values += 1,
            _ => {}
        }
    }
    values * VALUE + objects * OBJECT + json.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_estimate_is_at_least_the_tree_size() {
        for value in [
            json!({}),
            json!([[], [[]], {}]),
            json!({ "a": [1, 2.5, null, { "b,[{\"": "c\\" }], "d": "\"[[[[" }),
            json!(vec![0; 1000]),
        ] {
            let (tree, text) = (bytes(&value), bytes_of_text(&value.to_string()));
            assert!(tree <= text && text <= 3 * tree + 2 * OBJECT, "{value}: {tree} {text}");
        }
    }
}
