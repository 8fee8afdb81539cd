//! Tools, tool choice and tool calls in the chat protocol.

use serde_json::{Map, Value, json};

use super::reasoning::EXTRA;
use crate::conversation::{Input, Located, Protocol, Tool, ToolCall, ToolChoice, ToolKind};
use crate::members::{Members, RemainingFields, RequestWriter, object};
use crate::proof;
use crate::tool_choice::{function_parameters, strictness};

/// Reads a tool. A tool that isn't fully understood becomes `Other`.
pub(super) fn read_tool(tool: Value, at: String, rest: &mut RemainingFields) -> Tool {
    let (kind, cache) = match tool["type"].as_str() {
        Some("function") if tool["function"]["name"].is_string() => read_function(tool, &at, rest),
        Some("custom") if tool["custom"]["name"].is_string() => read_custom(tool, &at, rest),
        _ => (ToolKind::Other(tool), None),
    };
    let within = match &kind {
        ToolKind::Function { .. } => "/function/parameters",
        ToolKind::Custom { .. } => "/custom/format/grammar",
        ToolKind::Other(_) => "",
    };
    Tool { schema_at: format!("{at}{within}").into(), at: at.into(), kind, cache }
}

fn read_function(tool: Value, at: &str, rest: &mut RemainingFields) -> (ToolKind, Option<Located<Value>>) {
    let mut tool = match Members::read(tool, at) {
        Ok(tool) => tool,
        Err(other) => return (ToolKind::Other(other), None),
    };
    let cache = tool.given("cache_control", Members::value);
    tool.text("type");
    let mut kind = ToolKind::Other(Value::Null);
    if let Some(mut function) = tool.members("function") {
        kind = ToolKind::Function {
            name: function.text("name").unwrap_or_default(),
            description: function.text("description"),
            parameters: function.object("parameters").map(Value::Object),
            strict: function.given("strict", Members::flag),
        };
        rest.keep(function, &[]);
    }
    rest.keep(tool, &[]);
    (kind, cache)
}

fn read_custom(tool: Value, at: &str, rest: &mut RemainingFields) -> (ToolKind, Option<Located<Value>>) {
    let format = &tool["custom"]["format"];
    let flat = match format["type"].as_str() {
        Some("grammar") => json!({
            "type": "grammar",
            "syntax": format["grammar"]["syntax"],
            "definition": format["grammar"]["definition"],
        }),
        _ => format.clone(),
    };
    if nested_format(&flat) != *format {
        return (ToolKind::Other(tool), None);
    }
    let mut tool = match Members::read(tool, at) {
        Ok(tool) => tool,
        Err(other) => return (ToolKind::Other(other), None),
    };
    let cache = tool.given("cache_control", Members::value);
    tool.text("type");
    let mut kind = ToolKind::Other(Value::Null);
    if let Some(mut custom) = tool.members("custom") {
        kind = ToolKind::Custom {
            name: custom.text("name").unwrap_or_default(),
            description: custom.text("description"),
            format: custom.value("format").map(|_| flat),
        };
        rest.keep(custom, &[]);
    }
    rest.keep(tool, &[]);
    (kind, cache)
}

/// The format of a custom tool. Its grammar is a nested object here.
fn nested_format(format: &Value) -> Value {
    match format["type"].as_str() {
        Some("grammar") => json!({
            "type": "grammar",
            "grammar": { "syntax": format["syntax"], "definition": format["definition"] },
        }),
        _ => format.clone(),
    }
}

/// Writes a tool; `None`: this protocol can't express it.
pub(super) fn write_tool(tool: &Tool, writer: &mut RequestWriter<'_>) -> Option<Value> {
    let (word, mut inner) = match &tool.kind {
        ToolKind::Function { name, description, parameters, strict } => {
            let mut function = object([("name", name.as_str().into())]);
            insert(&mut function, "description", description.as_deref());
            let parameters = parameters.as_ref();
            let parameters = parameters.map(|parameters| function_parameters(tool, parameters, writer));
            insert(&mut function, "parameters", parameters);
            let strict = strictness(function.get("parameters"), strict.as_ref(), writer);
            insert(&mut function, "strict", strict);
            ("function", function)
        }
        ToolKind::Custom { name, description, format } => {
            let mut custom = object([("name", name.as_str().into())]);
            insert(&mut custom, "description", description.as_deref());
            insert(&mut custom, "format", format.as_ref().map(nested_format));
            ("custom", custom)
        }
        ToolKind::Other(value) if writer.is_same() => return Some(value.clone()),
        ToolKind::Other(_) => {
            writer.lose(tool.at.clone());
            return None;
        }
    };
    writer.complete(&mut inner, &format!("{}/{word}", tool.at));
    let mut members = object([("type", word.into()), (word, inner.into())]);
    match &tool.cache {
        Some(cache) if writer.is_same() => insert(&mut members, "cache_control", Some(cache.value.clone())),
        cache => writer.lose_cache(cache.as_ref()),
    }
    writer.complete(&mut members, &tool.at);
    Some(members.into())
}

/// Sets a field if it has a value.
pub(super) fn insert(members: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        members.insert(name.to_owned(), value.into());
    }
}

/// Reads a choice. `tools`: those of the request.
pub(super) fn read_choice(value: Value, tools: &[Tool]) -> ToolChoice {
    let choice = match &value {
        Value::String(word) => match word.as_str() {
            "auto" => Some(ToolChoice::Auto),
            "none" => Some(ToolChoice::None),
            "required" => Some(ToolChoice::Required),
            _ => None,
        },
        _ => match value["type"].as_str() {
            Some("function") => {
                value["function"]["name"].as_str().map(|name| ToolChoice::Function(name.to_owned()))
            }
            Some("custom") => {
                value["custom"]["name"].as_str().map(|name| ToolChoice::Custom(name.to_owned()))
            }
            Some("allowed_tools") => {
                let allowed = &value["allowed_tools"];
                let name = |tool: &Value| {
                    let kind = tool["type"].as_str().unwrap_or_default();
                    tool[kind]["name"].as_str().map(str::to_owned)
                };
                let names = allowed["tools"].as_array().and_then(|tools| tools.iter().map(name).collect());
                names.map(|names| ToolChoice::Allowed { names, required: allowed["mode"] == "required" })
            }
            _ => None,
        },
    };
    match choice {
        // A choice with fields that the neutral form lacks stays specific to this protocol.
        Some(choice) if write_choice(&choice, tools) == value => choice,
        _ => ToolChoice::Other(value),
    }
}

/// Writes a choice. `tools`: those of the request.
pub(super) fn write_choice(choice: &ToolChoice, tools: &[Tool]) -> Value {
    let named = |kind: &str, name: &str| json!({ "type": kind, kind: { "name": name } });
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::Function(name) => named("function", name),
        ToolChoice::Custom(name) => named("custom", name),
        ToolChoice::Allowed { names, required } => {
            let is_custom = |name: &String| {
                tools
                    .iter()
                    .any(|tool| matches!(&tool.kind, ToolKind::Custom { name: custom, .. } if custom == name))
            };
            let tool = |name| named(if is_custom(name) { "custom" } else { "function" }, name);
            let mode = if *required { "required" } else { "auto" };
            let tools: Vec<Value> = names.iter().map(tool).collect();
            json!({ "type": "allowed_tools", "allowed_tools": { "mode": mode, "tools": tools } })
        }
        ToolChoice::Other(value) => value.clone(),
    }
}

/// Reads a call. Errors: its kind is unknown; it is handed back.
pub(super) fn read_call(call: Value, at: &str, rest: &mut RemainingFields) -> Result<ToolCall, Value> {
    let kind = match call["type"].as_str() {
        Some("custom") => "custom",
        Some("function") => "function",
        _ => return Err(call),
    };
    let text = if kind == "custom" { "input" } else { "arguments" };
    let is_whole = [&call["id"], &call[kind]["name"], &call[kind][text]].into_iter().all(Value::is_string);
    if !is_whole {
        return Err(call);
    }
    let mut call = Members::read(call, at)?;
    call.text("type");
    let signature = signature(call.peek(EXTRA));
    let id = call.text("id").unwrap_or_default();
    let (mut name, mut input) = (String::new(), String::new());
    if let Some(mut callee) = call.members(kind) {
        name = callee.text("name").unwrap_or_default();
        input = callee.text(text).unwrap_or_default();
        rest.keep(callee, &[]);
    }
    rest.keep(call, if signature.is_some() { &[EXTRA] } else { &[] });
    let input = if kind == "custom" { Input::Text(input) } else { Input::Json(input) };
    Ok(ToolCall { id, name, input, signature })
}

/// The proof of the thoughts that led to a call, as servers fronting a model of the native protocol send it.
fn signature(extra: &Value) -> Option<String> {
    let proof = extra["google"]["thought_signature"].as_str()?;
    Some(proof::marked(proof, Protocol::Native))
}

/// Writes a call.
pub(super) fn write_call(call: &ToolCall) -> Map<String, Value> {
    let (kind, text, input) = match &call.input {
        Input::Json(arguments) => ("function", "arguments", arguments),
        Input::Text(input) => ("custom", "input", input),
    };
    let callee = object([("name", call.name.as_str().into()), (text, input.as_str().into())]);
    object([("id", call.id.as_str().into()), ("type", kind.into()), (kind, callee.into())])
}
