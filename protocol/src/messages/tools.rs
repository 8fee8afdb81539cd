//! Tools and tool choice in the messages protocol.

use serde_json::{Map, Value, json};

use super::schema::enforced;
use crate::conversation::{Conversation, Located, Tool, ToolChoice, ToolKind};
use crate::members::{Members, RemainingFields, RequestWriter, object};
use crate::tool_choice::possible;
use crate::tool_schema::without_top_unions;

/// Field of a choice: at most one call.
const ONE_CALL: &str = "disable_parallel_tool_use";

/// Reads a tool. A tool that isn't fully understood becomes `Other`.
pub(super) fn read_tool(tool: Value, at: String, rest: &mut RemainingFields) -> Tool {
    let is_function = match &tool["type"] {
        Value::Null => true,
        kind => kind == "custom",
    };
    if !is_function || !tool["name"].is_string() || !tool["input_schema"].is_object() {
        return other(at, tool);
    }
    let mut tool = match Members::read(tool, at.clone()) {
        Ok(tool) => tool,
        Err(tool) => return other(at, tool),
    };
    let kind = ToolKind::Function {
        name: tool.text("name").unwrap_or_default(),
        description: tool.text("description"),
        parameters: tool.value("input_schema"),
        strict: tool.given("strict", Members::flag),
    };
    let cache = tool.given("cache_control", Members::value);
    rest.keep(tool, &["type"]);
    Tool { schema_at: format!("{at}/input_schema").into(), at: at.into(), kind, cache }
}

fn other(at: String, tool: Value) -> Tool {
    Tool { schema_at: at.clone().into(), at: at.into(), kind: ToolKind::Other(tool), cache: None }
}

/// Takes the choice, and whether several tools may be called at once.
pub(super) fn read_choice(
    body: &mut Members,
    rest: &mut RemainingFields,
) -> (Option<Located<ToolChoice>>, Option<Located<bool>>) {
    let given = body.peek("tool_choice");
    let choice = match given["type"].as_str() {
        Some("auto") => ToolChoice::Auto,
        Some("any") => ToolChoice::Required,
        Some("none") => ToolChoice::None,
        Some("tool") if let Some(name) = given["name"].as_str() => ToolChoice::Function(name.to_owned()),
        _ => {
            let other = body.given("tool_choice", Members::value);
            return (other.map(|other| Located::new(ToolChoice::Other(other.value), other.at)), None);
        }
    };
    let choice = Located::new(choice, "/tool_choice");
    let Some(mut members) = body.members("tool_choice") else { return (Some(choice), None) };
    members.text("type");
    if matches!(choice.value, ToolChoice::Function(_)) {
        members.text("name");
    }
    let one = members.given(ONE_CALL, Members::flag);
    rest.keep(members, &[]);
    (Some(choice), one.map(|one| Located::new(!one.value, one.at)))
}

/// Writes the tools and the tool choice.
pub(super) fn write(
    conversation: &Conversation,
    writer: &mut RequestWriter<'_>,
    body: &mut Map<String, Value>,
) {
    let choice = conversation.tool_choice.as_ref();
    // This protocol can't choose among some tools: the others are omitted.
    let allowed = match choice {
        Some(Located { value: ToolChoice::Allowed { names, .. }, .. }) => Some(names),
        _ => None,
    };
    let mut tools = Vec::new();
    for tool in &conversation.tools {
        match &tool.kind {
            ToolKind::Function { name, .. } if allowed.is_some_and(|names| !names.contains(name)) => {}
            ToolKind::Function { .. } => tools.push(write_tool(tool, writer)),
            ToolKind::Other(value) if writer.is_same() => tools.push(value.clone()),
            _ => writer.lose(tool.at.clone()),
        }
    }
    let has_tools = !tools.is_empty();
    if has_tools {
        body.insert("tools".to_owned(), tools.into());
    }
    let parallel = conversation.parallel_tool_calls.as_ref().map(|parallel| parallel.value);
    if writer.is_same() {
        if let Some(choice) = choice {
            write_back(&choice.value, parallel, writer, body);
        }
        return;
    }
    let is_written = |tool: &Tool| matches!(tool.kind, ToolKind::Function { .. });
    let possible = possible(conversation, is_written, writer);
    let words = match possible.as_deref() {
        None | Some(ToolChoice::Other(_)) => None,
        Some(ToolChoice::Auto | ToolChoice::Allowed { required: false, .. }) => Some(kind("auto")),
        Some(ToolChoice::None) => Some(kind("none")),
        Some(ToolChoice::Required | ToolChoice::Allowed { required: true, .. }) => Some(kind("any")),
        Some(ToolChoice::Function(name) | ToolChoice::Custom(name)) => Some(named(name)),
    };
    let is_none = matches!(possible.as_deref(), Some(ToolChoice::None));
    let words = match (words, parallel) {
        (words, Some(false)) if has_tools && !is_none => {
            let mut words = words.unwrap_or_else(|| kind("auto"));
            words.insert(ONE_CALL.to_owned(), true.into());
            Some(words)
        }
        (words, _) => words,
    };
    // Providers reject a choice without tools.
    if let Some(words) = words.filter(|_| has_tools) {
        body.insert("tool_choice".to_owned(), words.into());
    }
}

fn write_back(
    choice: &ToolChoice,
    parallel: Option<bool>,
    writer: &mut RequestWriter<'_>,
    body: &mut Map<String, Value>,
) {
    let mut words = match choice {
        ToolChoice::Auto => kind("auto"),
        ToolChoice::Required => kind("any"),
        ToolChoice::None => kind("none"),
        ToolChoice::Function(name) => named(name),
        ToolChoice::Other(value) => {
            body.insert("tool_choice".to_owned(), value.clone());
            return;
        }
        // Requests of this protocol never contain these.
        ToolChoice::Custom(_) | ToolChoice::Allowed { .. } => return,
    };
    if let Some(parallel) = parallel {
        words.insert(ONE_CALL.to_owned(), (!parallel).into());
    }
    writer.set(body, "tool_choice", words, "/tool_choice");
}

fn kind(kind: &str) -> Map<String, Value> {
    object([("type", kind.into())])
}

fn named(name: &str) -> Map<String, Value> {
    object([("type", "tool".into()), ("name", name.into())])
}

fn write_tool(tool: &Tool, writer: &mut RequestWriter<'_>) -> Value {
    let ToolKind::Function { name, description, parameters, strict } = &tool.kind else { return Value::Null };
    let mut members = object([("name", name.as_str().into())]);
    if let Some(description) = description {
        members.insert("description".to_owned(), description.as_str().into());
    }
    let mut schema = parameters.clone().unwrap_or_else(|| json!({ "properties": {} }));
    if !writer.is_same() && without_top_unions(&mut schema) {
        writer.lose(tool.at.clone());
    }
    if !writer.is_same()
        && let Value::Object(schema) = &mut schema
    {
        // This protocol insists on the obvious.
        schema.entry("type").or_insert_with(|| "object".into());
    }
    if !writer.is_same() && strict.as_ref().is_some_and(|strict| strict.value) {
        schema = enforced(&schema, &tool.at, writer);
    }
    members.insert("input_schema".to_owned(), schema);
    if let Some(strict) = strict {
        members.insert("strict".to_owned(), strict.value.into());
    }
    if let Some(cache) = &tool.cache {
        members.insert("cache_control".to_owned(), cache.value.clone());
    }
    writer.complete(&mut members, &tool.at);
    members.into()
}
