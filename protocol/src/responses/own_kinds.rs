//! Converts kinds that only this protocol has to kinds that every protocol has: namespaced tools become functions, and
//! shell and patch calls become function calls with their results.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::request_in::{tool_at, tool_kind};
use crate::conversation::{
    Conversation, Input, Part, PartKind, Tool, ToolCall, ToolChoice, ToolKind, ToolResult,
};
use crate::members::{Members, RemainingFields};
use crate::tool_calls::NAMESPACE_SEPARATOR;

/// Field of a call that names its tool's namespace.
pub(super) const NAMESPACE: &str = "namespace";
/// The type of an item that declares further tools.
const ADDITIONAL_TOOLS: &str = "additional_tools";

/// Whether a request of this protocol has anything that [`replace_own_kinds`] replaces.
pub(crate) fn has_own_kinds(conversation: &Conversation) -> bool {
    let is_namespace =
        |tool: &Tool| matches!(&tool.kind, ToolKind::Other(value) if value["type"] == NAMESPACE);
    let is_own = |part: &Part| matches!(&part.kind, PartKind::Other(value) if value["type"].is_string());
    conversation.tools.iter().any(is_namespace)
        || conversation.turns.iter().flat_map(|turn| &turn.parts).any(is_own)
        || conversation.extra.iter().any(|given| given.at.ends_with("/namespace"))
}

/// Converts the kinds that only this protocol has to kinds that every protocol has, where possible.
pub(crate) fn replace_own_kinds(conversation: &mut Conversation) {
    let mut rest = RemainingFields::default();
    let mut tools = Vec::with_capacity(conversation.tools.len());
    for tool in std::mem::take(&mut conversation.tools) {
        expand(tool, &mut tools, &mut rest);
    }
    let is_namespace = |at: &str| at.starts_with("/input/") && at.ends_with("/namespace");
    let (namespaces, extra): (Vec<_>, Vec<_>) =
        std::mem::take(&mut conversation.extra).into_iter().partition(|given| is_namespace(&given.at));
    conversation.extra = extra;
    let namespaces: HashMap<String, Value> = namespaces
        .into_iter()
        .filter_map(|given| {
            let item = given.at.strip_suffix("/namespace")?.to_owned();
            Some((item, given.value))
        })
        .collect();
    for turn in &mut conversation.turns {
        let parts = std::mem::take(&mut turn.parts);
        for mut part in parts {
            match &mut part.kind {
                PartKind::Call(call) => {
                    if let Some(namespace) = namespaces.get(&*part.at).and_then(Value::as_str) {
                        call.name = within(namespace, &call.name);
                    }
                }
                PartKind::Other(item) if item["type"] == ADDITIONAL_TOOLS => {
                    let declared = item["tools"].take();
                    declare(declared, &part.at, &mut tools, &mut rest);
                    continue;
                }
                PartKind::Other(item) => {
                    if let Some(kind) = replaced(item, &part.at) {
                        part.kind = kind;
                    }
                }
                _ => {}
            }
            turn.parts.push(part);
        }
    }
    conversation.turns.retain(|turn| !turn.parts.is_empty());
    choose(conversation, &tools);
    conversation.tools = tools;
    conversation.extra.extend(rest.into_extra());
}

/// The full name of a namespaced tool.
fn within(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}{NAMESPACE_SEPARATOR}{name}") }
}

/// A tool's namespace, if it has one, and its name within it.
pub(super) fn namespace_of(name: &str) -> (Option<&str>, &str) {
    match name.split_once(NAMESPACE_SEPARATOR) {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, name),
    }
}

fn expand(tool: Tool, tools: &mut Vec<Tool>, rest: &mut RemainingFields) {
    let ToolKind::Other(value) = &tool.kind else {
        tools.push(tool);
        return;
    };
    let (Some(namespace), true) = (value["name"].as_str(), value["type"] == NAMESPACE) else {
        tools.push(tool);
        return;
    };
    for (index, inner) in value["tools"].as_array().into_iter().flatten().enumerate() {
        let at = format!("{}/tools/{index}", tool.at);
        let mut kind = read(inner.clone(), &at, rest);
        if let ToolKind::Function { name, .. } | ToolKind::Custom { name, .. } = &mut kind {
            *name = within(namespace, name);
        }
        tools.push(tool_at(at, kind));
    }
}

fn declare(declared: Value, item: &str, tools: &mut Vec<Tool>, rest: &mut RemainingFields) {
    let Value::Array(declared) = declared else { return };
    for (index, value) in declared.into_iter().enumerate() {
        let at = format!("{item}/tools/{index}");
        let kind = read(value, &at, rest);
        expand(tool_at(at, kind), tools, rest);
    }
}

fn read(tool: Value, at: &str, rest: &mut RemainingFields) -> ToolKind {
    match Members::read(tool, at) {
        Ok(tool) => tool_kind(tool, rest),
        Err(tool) => ToolKind::Other(tool),
    }
}

/// A choice of a namespaced tool, which names both.
fn choose(conversation: &mut Conversation, tools: &[Tool]) {
    let Some(choice) = &mut conversation.tool_choice else { return };
    let ToolChoice::Other(value) = &choice.value else { return };
    let (Some(namespace), Some(name)) = (value[NAMESPACE].as_str(), value["name"].as_str()) else { return };
    let wanted = within(namespace, name);
    let is_there = |tool: &Tool| matches!(&tool.kind, ToolKind::Function { name, .. } if *name == wanted);
    if tools.iter().any(is_there) {
        choice.value = ToolChoice::Function(wanted);
    }
}

/// A call or a result in the form every protocol has; `None`: it is another kind of item.
fn replaced(item: &mut Value, at: &str) -> Option<PartKind> {
    let call = |name: &str, item: &Value, input: &str| {
        let arguments = item[input].as_object()?;
        let name = name.to_owned();
        let input = Input::Json(Value::Object(arguments.clone()).to_string());
        Some(PartKind::Call(ToolCall { id: id_of(item)?, name, input, signature: None }))
    };
    match item["type"].as_str()? {
        "local_shell_call" => call("local_shell", item, "action"),
        "shell_call" => call("shell", item, "action"),
        "apply_patch_call" => call("apply_patch", item, "operation"),
        "local_shell_call_output" | "shell_call_output" | "apply_patch_call_output" => {
            let text = match item["output"].take() {
                Value::String(text) => text,
                Value::Null => item["status"].as_str().unwrap_or_default().to_owned(),
                output => shell_output(&output),
            };
            let text = Part { at: format!("{at}/output").into(), kind: PartKind::Text(text), cache: None };
            let call_id = id_of(item)?;
            Some(PartKind::Result(ToolResult {
                call_id,
                name: None,
                parts: vec![text],
                failed: None,
                custom: false,
            }))
        }
        _ => None,
    }
}

/// The id that ties a call to its result: older items only have their own.
fn id_of(item: &Value) -> Option<String> {
    item["call_id"].as_str().or_else(|| item["id"].as_str()).map(str::to_owned)
}

/// The output of commands as text: only the output itself if there is nothing else to report.
fn shell_output(output: &Value) -> String {
    let Some([only]) = output.as_array().map(Vec::as_slice) else { return output.to_string() };
    let is_plain = only["stderr"].as_str().is_none_or(str::is_empty)
        && (only["outcome"].is_null() || only["outcome"] == json!({ "type": "exit", "exit_code": 0 }));
    match only["stdout"].as_str() {
        Some(text) if is_plain => text.to_owned(),
        _ => output.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Defaults;
    use crate::conversation::Protocol;

    #[test]
    fn shell_calls_and_namespaced_tools_reach_every_protocol() {
        let request = json!({
            "model": "m",
            "tools": [{ "type": "namespace", "name": "files", "tools": [
                { "type": "function", "name": "read", "parameters": { "type": "object", "properties": {} } },
            ] }],
            "input": [
                { "type": "additional_tools", "tools": [
                    { "type": "function", "name": "late", "parameters": { "type": "object", "properties": {} } },
                ] },
                { "role": "user", "content": "go" },
                { "type": "local_shell_call", "call_id": "s1", "status": "completed",
                  "action": { "type": "exec", "command": ["ls"] } },
                { "type": "function_call", "call_id": "r1", "namespace": "files", "name": "read", "arguments": "{}" },
                { "type": "local_shell_call_output", "call_id": "s1", "output": "a.txt" },
                { "type": "function_call_output", "call_id": "r1", "output": "text of it" },
            ],
        });
        let conversation = Protocol::Responses.request_in(request, "m", false).expect("a request");
        for target in [Protocol::Chat, Protocol::Messages, Protocol::Native] {
            let outgoing = target.request_out(&conversation, Defaults::default());
            let written = outgoing.body.to_string();
            for word in ["files__read", "late", "local_shell", "a.txt", "text of it"] {
                assert!(written.contains(word), "{target:?} lacks {word}: {written}");
            }
            assert!(outgoing.dropped.is_empty(), "{target:?} loses {:?}", outgoing.dropped);
        }
        // Its own protocol gets what the client wrote.
        let same = Protocol::Responses.request_out(&conversation, Defaults::default()).body;
        assert_eq!(same["input"][2]["type"], "local_shell_call");
        assert_eq!(same["input"][3]["namespace"], "files");
    }
}
