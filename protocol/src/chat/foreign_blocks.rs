//! Messages-protocol constructs that clients of this protocol send: call and result blocks, and cache markers in places
//! other than parts.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::conversation::{
    Conversation, Input, JsonPointer, Located, Part, PartKind, Role, ToolCall, ToolKind, ToolResult,
};

const CACHE: &str = "/cache_control";

/// Whether a request of this protocol has anything that [`replace_foreign_blocks`] replaces.
pub(crate) fn has_foreign_blocks(conversation: &Conversation) -> bool {
    let is_block = |part: &Part| match &part.kind {
        PartKind::Other(value) => is_foreign(value),
        PartKind::Result(result) => {
            result.parts.iter().any(|part| matches!(&part.kind, PartKind::Other(value) if is_foreign(value)))
        }
        _ => false,
    };
    conversation.turns.iter().flat_map(|turn| &turn.parts).any(is_block)
        || conversation.extra.iter().any(|given| given.at.ends_with(CACHE))
}

fn is_foreign(value: &Value) -> bool {
    matches!(value["type"].as_str(), Some("tool_use" | "tool_result"))
}

/// Reads such blocks, and moves each cache marker to the part it ends with.
pub(crate) fn replace_foreign_blocks(conversation: &mut Conversation) {
    let calls = conversation.turns.iter().flat_map(|turn| &turn.parts).filter_map(|part| match &part.kind {
        PartKind::Call(call) => Some(call.id.clone()),
        _ => None,
    });
    let mut called: HashSet<String> = calls.collect();
    for turn in &mut conversation.turns {
        for part in std::mem::take(&mut turn.parts) {
            push(part, turn.role, &mut turn.parts, &mut called);
        }
    }
    mark_caches(conversation);
}

fn push(mut part: Part, role: Role, parts: &mut Vec<Part>, called: &mut HashSet<String>) {
    let at = part.at.clone();
    match &mut part.kind {
        PartKind::Result(result) => {
            for inner in std::mem::take(&mut result.parts) {
                match &inner.kind {
                    PartKind::Other(value) if value["type"] == "tool_result" => {
                        result.parts.extend(texts(&value["content"], &inner.at));
                    }
                    _ => result.parts.push(inner),
                }
            }
        }
        PartKind::Other(value) if role == Role::Assistant && value["type"] == "tool_use" => {
            let (Some(id), Some(name)) = (value["id"].as_str(), value["name"].as_str()) else {
                parts.push(part);
                return;
            };
            // Some clients write a call in both forms.
            if !called.insert(id.to_owned()) {
                return;
            }
            let input = Input::Json(if value["input"].is_object() {
                value["input"].to_string()
            } else {
                "{}".to_owned()
            });
            part.kind =
                PartKind::Call(ToolCall { id: id.to_owned(), name: name.to_owned(), input, signature: None });
        }
        PartKind::Other(value) if value["type"] == "tool_result" => {
            if let Some(id) = value["tool_use_id"].as_str().map(str::to_owned) {
                let contents = texts(&value["content"], &at);
                part.kind = PartKind::Result(ToolResult {
                    call_id: id,
                    name: None,
                    parts: contents,
                    failed: None,
                    custom: false,
                });
            }
        }
        _ => {}
    }
    parts.push(part);
}

/// The texts of a result.
fn texts(content: &Value, at: &JsonPointer) -> Vec<Part> {
    let text = |text: &str| Part { at: at.clone(), kind: PartKind::Text(text.to_owned()), cache: None };
    match content {
        Value::String(only) => vec![text(only)],
        Value::Array(blocks) => blocks
            .iter()
            .map(|block| match block["text"].as_str() {
                Some(part) => text(part),
                None => Part { at: at.clone(), kind: PartKind::Other(block.clone()), cache: None },
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Moves each marker to the last part of the message, tool or request that contains it.
fn mark_caches(conversation: &mut Conversation) {
    let (marks, extra): (Vec<_>, Vec<_>) =
        std::mem::take(&mut conversation.extra).into_iter().partition(|given| given.at.ends_with(CACHE));
    conversation.extra = extra;
    let mut marks: HashMap<String, Located<Value>> = marks
        .into_iter()
        .filter_map(|given| Some((given.at.strip_suffix(CACHE)?.to_owned(), given)))
        .collect();
    for tool in &mut conversation.tools {
        let mark = marks.remove(&format!("{}/function", tool.at));
        if matches!(tool.kind, ToolKind::Function { .. }) && tool.cache.is_none() {
            tool.cache = mark;
        }
    }
    for turn in &mut conversation.turns {
        for part in &mut turn.parts {
            // Each result has a message of its own, and a call wraps a nested object.
            let own = marks.remove(&*part.at).or_else(|| marks.remove(&format!("{}/function", part.at)));
            part.cache = part.cache.take().or(own);
        }
        if let Some(mark) = marks.remove(&*turn.at) {
            set_last(&mut turn.parts, mark);
        }
    }
    if let (Some(mark), Some(turn)) = (marks.remove(""), conversation.turns.last_mut()) {
        set_last(&mut turn.parts, mark);
    }
    conversation.extra.extend(marks.into_values());
}

fn set_last(parts: &mut [Part], mark: Located<Value>) {
    if let Some(last) = parts.last_mut()
        && last.cache.is_none()
    {
        last.cache = Some(mark);
    }
}
