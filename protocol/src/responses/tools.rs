//! Tools and tool choice of a provider's request.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::request_in::is_custom;
use crate::conversation::{Conversation, Tool, ToolChoice, ToolKind};
use crate::members::{RequestWriter, object};
use crate::tool_choice::{function_parameters, possible, strictness};

/// Writes the tools and the tool choice.
pub(super) fn write(
    conversation: &Conversation,
    writer: &mut RequestWriter<'_>,
    body: &mut Map<String, Value>,
) {
    let tools: Vec<Value> = conversation.tools.iter().filter_map(|tool| tool_out(tool, writer)).collect();
    if !tools.is_empty() {
        body.insert("tools".to_owned(), tools.into());
    }
    let parallel = conversation.parallel_tool_calls.as_ref();
    if let Some(parallel) = parallel.filter(|_| writer.is_same() || body.contains_key("tools")) {
        body.insert("parallel_tool_calls".to_owned(), json!(parallel.value));
    }
    let given = conversation.tool_choice.as_ref().map(|choice| &choice.value);
    let choice = if writer.is_same() {
        given.map(Cow::Borrowed)
    } else {
        let is_written = |tool: &Tool| !matches!(tool.kind, ToolKind::Other(_));
        possible(conversation, is_written, writer)
    };
    let choice = choice.map(|choice| match &*choice {
        // Specific to this protocol.
        ToolChoice::Other(choice) => choice.clone(),
        choice => tool_choice(choice, &conversation.tools).unwrap_or_default(),
    });
    body.extend(choice.map(|choice| ("tool_choice".to_owned(), choice)));
}

fn tool_out(tool: &Tool, writer: &mut RequestWriter<'_>) -> Option<Value> {
    writer.lose_cache(tool.cache.as_ref());
    let (kind, name, description) = match &tool.kind {
        ToolKind::Function { name, description, .. } => ("function", name, description),
        ToolKind::Custom { name, description, .. } => ("custom", name, description),
        ToolKind::Other(value) if writer.is_same() => return Some(value.clone()),
        ToolKind::Other(_) => {
            writer.lose(tool.at.clone());
            return None;
        }
    };
    let mut written = object([("type", json!(kind)), ("name", json!(name))]);
    let mut set = |name: &str, value: Value| drop(written.insert(name.to_owned(), value));
    if let Some(description) = description {
        set("description", json!(description));
    }
    match &tool.kind {
        ToolKind::Function { parameters, strict, .. } => {
            if let Some(parameters) = parameters {
                set("parameters", function_parameters(tool, parameters, writer));
            } else if !writer.is_same() {
                set("parameters", json!({ "type": "object", "properties": {} }));
            }
            match strictness(parameters.as_ref(), strict.as_ref(), writer) {
                Some(strict) => set("strict", json!(strict)),
                None if writer.is_same() => {}
                // Only this protocol defaults to true.
                None => set("strict", json!(false)),
            }
        }
        ToolKind::Custom { format: Some(format), .. } => set("format", format.clone()),
        _ => {}
    }
    writer.complete(&mut written, &tool.at);
    Some(Value::Object(written))
}

fn tool_choice(choice: &ToolChoice, tools: &[Tool]) -> Option<Value> {
    let named = |name: &str| {
        let kind = if is_custom(name, tools) { "custom" } else { "function" };
        json!({ "type": kind, "name": name })
    };
    Some(match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Function(name) => json!({ "type": "function", "name": name }),
        ToolChoice::Custom(name) => json!({ "type": "custom", "name": name }),
        ToolChoice::Allowed { names, required } => json!({
            "type": "allowed_tools",
            "mode": if *required { "required" } else { "auto" },
            "tools": names.iter().map(|name| named(name)).collect::<Vec<_>>(),
        }),
        ToolChoice::Other(_) => return None,
    })
}
