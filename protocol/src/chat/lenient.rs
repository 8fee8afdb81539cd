//! Repairs nonstandard messages that providers write in whole answers.

use serde_json::{Value, json};

use super::reasoning;

/// Converts an answer's message to the standard form.
pub(super) fn mend(message: &mut Value) {
    let Value::Object(members) = message else { return };
    let has_calls =
        members.get("tool_calls").and_then(Value::as_array).is_some_and(|calls| !calls.is_empty());
    // The protocol's form before it had tools.
    if !has_calls && members.get("function_call").is_some_and(Value::is_object) {
        let function = members.remove("function_call");
        members.insert("tool_calls".to_owned(), json!([{ "type": "function", "function": function }]));
    }
    for call in members.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
        mend_call(call);
    }
    let thought = members.get("content").map(reasoning::of_content).unwrap_or_default();
    if thought.is_string()
        && !reasoning::SHOWN.iter().any(|name| members.get(*name).is_some_and(Value::is_string))
    {
        members.insert(reasoning::SHOWN[0].to_owned(), thought);
        if let Some(Value::Array(parts)) = members.get_mut("content") {
            parts.retain(|part| part["type"] != reasoning::PART);
        }
    }
}

/// Some providers omit a call's type or id, or write its arguments as an object instead of JSON text.
fn mend_call(call: &mut Value) {
    let Value::Object(members) = call else { return };
    let is_custom = members.get("custom").is_some_and(Value::is_object);
    let (name, input) = match members.get("type").and_then(Value::as_str).unwrap_or_default() {
        word if word == "custom" || word.is_empty() && is_custom => ("custom", "input"),
        "function" | "" => ("function", "arguments"),
        // Unknown kinds are unchanged.
        _ => return,
    };
    let Some(Value::Object(callee)) = members.get_mut(name) else { return };
    let input = callee.entry(input).or_insert(Value::Null);
    if !input.is_string() {
        let text = if input.is_null() { String::new() } else { input.to_string() };
        *input = text.into();
    }
    let kind = members.entry("type").or_insert(Value::Null);
    if kind != name {
        *kind = name.into();
    }
    let id = members.entry("id").or_insert(Value::Null);
    if !id.is_string() {
        *id = "".into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mended(mut message: Value) -> Value {
        mend(&mut message);
        message
    }

    #[test]
    fn malformed_tool_calls_are_normalized() {
        let message = mended(json!({ "tool_calls": [
            { "function": { "name": "f", "arguments": { "a": [1] } } },
            { "id": null, "type": "function", "function": { "name": "f" } },
            { "id": "c", "type": "function", "function": { "name": "f", "arguments": null } },
            { "id": "d", "custom": { "name": "f" } },
        ] }));
        let expected = json!({ "tool_calls": [
            { "function": { "name": "f", "arguments": "{\"a\":[1]}" }, "type": "function", "id": "" },
            { "id": "", "type": "function", "function": { "name": "f", "arguments": "" } },
            { "id": "c", "type": "function", "function": { "name": "f", "arguments": "" } },
            { "id": "d", "custom": { "name": "f", "input": "" }, "type": "custom" },
        ] });
        assert_eq!(message, expected);
        let whole = json!({ "content": "x", "tool_calls": [{ "id": "c", "type": "function",
            "function": { "name": "f", "arguments": "{}" } }] });
        assert_eq!(mended(whole.clone()), whole);
    }

    #[test]
    fn function_call_becomes_a_tool_call() {
        let message = mended(json!({ "function_call": { "name": "f", "arguments": "{}" } }));
        let call = json!({ "type": "function", "function": { "name": "f", "arguments": "{}" }, "id": "" });
        assert_eq!(message, json!({ "tool_calls": [call] }));
    }

    #[test]
    fn thinking_content_becomes_reasoning_content() {
        let message = mended(json!({ "content": [
            { "type": "thinking", "thinking": [{ "type": "text", "text": "h" }, { "type": "text", "text": "m" }] },
            { "type": "text", "text": "Yes." },
        ] }));
        let expected = json!({ "content": [{ "type": "text", "text": "Yes." }], "reasoning_content": "hm" });
        assert_eq!(message, expected);
    }
}
