//! The tool choice, limited to the tools that the target gets, and the schemas of their arguments. Providers reject a choice without tools, and one that
//! names a tool the request doesn't declare.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Value, json};

use super::members::RequestWriter;
use crate::conversation::{Conversation, Located, Protocol, Tool, ToolChoice, ToolKind};
use crate::tool_schema::without_top_unions;

/// The choice for a target of another protocol than the client's. What can't be expressed is reported. `is_written`:
/// whether the target gets a tool.
pub(super) fn possible<'c>(
    conversation: &'c Conversation,
    is_written: impl Fn(&Tool) -> bool,
    writer: &mut RequestWriter<'_>,
) -> Option<Cow<'c, ToolChoice>> {
    let given = conversation.tool_choice.as_ref()?;
    let tools = conversation.tools.iter().filter(|tool| is_written(tool));
    let has_tools = tools.clone().next().is_some();
    let is_forced = match &given.value {
        ToolChoice::Auto | ToolChoice::None | ToolChoice::Allowed { required: false, .. } => false,
        ToolChoice::Required
        | ToolChoice::Function(_)
        | ToolChoice::Custom(_)
        | ToolChoice::Allowed { required: true, .. } => true,
        // Only the request's protocol understands it.
        ToolChoice::Other(_) => {
            writer.lose(given.at.clone());
            return None;
        }
    };
    if !has_tools {
        if is_forced {
            writer.lose(given.at.clone());
        }
        return None;
    }
    let names: HashSet<&str> = tools.filter_map(name_of).collect();
    match &given.value {
        ToolChoice::Function(name) | ToolChoice::Custom(name) if !names.contains(name.as_str()) => {
            writer.lose(given.at.clone());
            None
        }
        ToolChoice::Allowed { names: allowed, required } => {
            let is_there = |name: &&String| names.contains(name.as_str());
            if allowed.iter().all(|name| is_there(&name)) {
                return Some(Cow::Borrowed(&given.value));
            }
            let left: Vec<String> = allowed.iter().filter(is_there).cloned().collect();
            if !left.is_empty() {
                return Some(Cow::Owned(ToolChoice::Allowed { names: left, required: *required }));
            }
            writer.lose(given.at.clone());
            // None of the remaining tools may be called.
            (!required).then_some(Cow::Owned(ToolChoice::None))
        }
        choice => Some(Cow::Borrowed(choice)),
    }
}

fn name_of(tool: &Tool) -> Option<&str> {
    match &tool.kind {
        ToolKind::Function { name, .. } | ToolKind::Custom { name, .. } => Some(name),
        ToolKind::Other(_) => None,
    }
}

/// Whether chat and responses providers would enforce a schema: each object is closed and requires all of its properties.
pub(super) fn is_enforceable(schema: &Value) -> bool {
    let Value::Object(members) = schema else {
        return !schema.is_array() || schema.as_array().is_some_and(|all| all.iter().all(is_enforceable));
    };
    if let Some(Value::Object(properties)) = members.get("properties") {
        let required = members.get("required").and_then(Value::as_array);
        let required: HashSet<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
        let is_closed = members.get("additionalProperties") == Some(&Value::Bool(false));
        if !is_closed || !properties.keys().all(|name| required.contains(name.as_str())) {
            return false;
        }
        if !properties.values().all(is_enforceable) {
            return false;
        }
    }
    members.iter().filter(|(name, _)| *name != "properties").all(|(_, value)| is_enforceable(value))
}

/// Whether function arguments are enforced, as the client wants: `None` if unspecified. A schema that these providers
/// would reject isn't enforced, and the loss is reported.
pub(super) fn strictness(
    parameters: Option<&Value>,
    strict: Option<&Located<bool>>,
    writer: &mut RequestWriter<'_>,
) -> Option<bool> {
    let strict = strict?;
    let is_alike = matches!(writer.source(), Protocol::Chat | Protocol::Responses);
    if strict.value && !is_alike && !parameters.is_some_and(is_enforceable) {
        writer.lose(strict.at.clone());
        return Some(false);
    }
    Some(strict.value)
}

/// The schema of a function's arguments for a server whose rules for schemas are those of OpenAI, if the client's protocol is another one.
pub(crate) fn function_parameters(tool: &Tool, parameters: &Value, writer: &mut RequestWriter<'_>) -> Value {
    let mut parameters = parameters.clone();
    if writer.is_same() {
        return parameters;
    }
    if without_top_unions(&mut parameters) {
        writer.lose(tool.at.clone());
    }
    with_properties(parameters)
}

/// A schema with the fields that some providers insist on: the type, and an object's properties.
fn with_properties(mut schema: Value) -> Value {
    const COMBINING: [&str; 6] = ["$ref", "anyOf", "oneOf", "allOf", "enum", "const"];
    if let Value::Object(members) = &mut schema {
        if COMBINING.iter().any(|name| members.contains_key(*name)) {
            return schema;
        }
        let is_object = match members.get("type") {
            None => true,
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
            Some(kind) => kind == "object",
        };
        if is_object {
            members.entry("type").or_insert_with(|| json!("object"));
            if !members.get("properties").is_some_and(Value::is_object) {
                members.insert("properties".to_owned(), json!({}));
            }
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_schema_gets_properties_and_others_are_unchanged() {
        for (given, expected) in [
            (json!({}), json!({ "type": "object", "properties": {} })),
            (json!({ "type": "object" }), json!({ "type": "object", "properties": {} })),
            (json!({ "type": "object", "properties": null }), json!({ "type": "object", "properties": {} })),
            (json!({ "properties": { "a": {} } }), json!({ "type": "object", "properties": { "a": {} } })),
            (json!({ "$ref": "#/$defs/a" }), json!({ "$ref": "#/$defs/a" })),
            (json!({ "type": "string" }), json!({ "type": "string" })),
            (json!(true), json!(true)),
        ] {
            assert_eq!(with_properties(given), expected);
        }
    }
}
