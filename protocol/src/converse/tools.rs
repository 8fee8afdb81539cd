//! Tools and the tool choice.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::blocks::cache_point;
use super::features::ModelFeatures;
use crate::conversation::{Conversation, Located, PartKind, Tool, ToolChoice, ToolKind};
use crate::members::{RequestWriter, object};
use crate::messages::enforced;
use crate::tool_choice::possible;
use crate::tool_schema::without_top_unions;

/// Description of a tool that the conversation calls but the request doesn't declare.
const NO_LONGER_THERE: &str = "This tool is no longer available.";

/// Writes the tools and the tool choice.
pub(super) fn write(
    conversation: &Conversation,
    features: ModelFeatures,
    writer: &mut RequestWriter<'_>,
    body: &mut Map<String, Value>,
) {
    let is_written = |tool: &Tool| matches!(tool.kind, ToolKind::Function { .. });
    for tool in conversation.tools.iter().filter(|tool| !is_written(tool)) {
        writer.lose(tool.at.clone());
    }
    let choice = possible(conversation, is_written, writer);
    let called = called_tools(conversation);
    let is_none = matches!(choice.as_deref(), Some(ToolChoice::None));
    if is_none && called.is_empty() {
        // The protocol can't forbid calls: a request without tools does.
        return;
    }
    // It can't choose among some tools either: the others are omitted.
    let allowed = match &conversation.tool_choice {
        Some(Located { value: ToolChoice::Allowed { names, .. }, .. }) => Some(names),
        _ => None,
    };
    let mut tools = Vec::new();
    let mut declared = HashSet::new();
    for tool in conversation.tools.iter().filter(|tool| is_written(tool)) {
        let ToolKind::Function { name, .. } = &tool.kind else { continue };
        if allowed.is_none_or(|names| names.contains(name)) {
            declared.insert(name.as_str());
            write_tool(tool, features, writer, &mut tools);
        }
    }
    let has_tools = !tools.is_empty();
    if !has_tools {
        // Servers reject calls and results in a request without tools.
        tools.extend(called.into_iter().map(|name| {
            let schema = json!({ "json": { "type": "object" } });
            json!({ "toolSpec": { "name": name, "description": NO_LONGER_THERE, "inputSchema": schema } })
        }));
    }
    if tools.is_empty() {
        return;
    }
    let mut config = object([("tools", tools.into())]);
    let written = match choice.as_deref().filter(|_| has_tools) {
        None | Some(ToolChoice::Other(_)) => None,
        Some(ToolChoice::None) => {
            writer.lose(conversation.tool_choice.as_ref().map_or_else(Default::default, |it| it.at.clone()));
            None
        }
        Some(ToolChoice::Auto | ToolChoice::Allowed { required: false, .. }) => Some(json!({ "auto": {} })),
        Some(ToolChoice::Required | ToolChoice::Allowed { required: true, .. }) => Some(json!({ "any": {} })),
        Some(ToolChoice::Function(name) | ToolChoice::Custom(name)) => {
            Some(json!({ "tool": { "name": name } }))
        }
    };
    config.extend(written.map(|choice| ("toolChoice".to_owned(), choice)));
    if let Some(parallel) = &conversation.parallel_tool_calls
        && !parallel.value
        && has_tools
        && !is_none
    {
        writer.lose(parallel.at.clone());
    }
    body.insert("toolConfig".to_owned(), config.into());
}

/// The names of the tools that were called, each once.
fn called_tools(conversation: &Conversation) -> Vec<&str> {
    let mut known = HashSet::new();
    let parts = conversation.turns.iter().flat_map(|turn| &turn.parts);
    let names = parts.filter_map(|part| match &part.kind {
        PartKind::Call(call) => Some(call.name.as_str()),
        _ => None,
    });
    names.filter(|name| known.insert(*name)).collect()
}

fn write_tool(tool: &Tool, features: ModelFeatures, writer: &mut RequestWriter<'_>, tools: &mut Vec<Value>) {
    let ToolKind::Function { name, description, parameters, strict } = &tool.kind else { return };
    let mut spec = object([("name", name.as_str().into())]);
    if let Some(description) = description.as_deref().filter(|description| !description.trim().is_empty()) {
        spec.insert("description".to_owned(), description.into());
    }
    let mut schema = parameters.clone().unwrap_or_else(|| json!({ "properties": {} }));
    if without_top_unions(&mut schema) {
        writer.lose(tool.at.clone());
    }
    if let Value::Object(schema) = &mut schema {
        // Servers insist on the obvious.
        schema.entry("type").or_insert_with(|| "object".into());
    }
    if let Some(strict) = strict.as_ref().filter(|strict| strict.value) {
        if features.messages_settings {
            schema = enforced(&schema, &tool.at, writer);
            spec.insert("strict".to_owned(), true.into());
        } else {
            writer.lose(strict.at.clone());
        }
    }
    spec.insert("inputSchema".to_owned(), json!({ "json": schema }));
    tools.push(json!({ "toolSpec": spec }));
    match &tool.cache {
        Some(cache) if features.cache_points => tools.push(cache_point(cache)),
        cache => writer.lose_cache(cache.as_ref()),
    }
}
