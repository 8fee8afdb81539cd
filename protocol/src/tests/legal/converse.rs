//! Reads requests of converse back, which no client sends, and knows which models take which settings.

use serde_json::Value;

use super::super::super::judge;
use crate::conversation::{
    Conversation, Input, Media, MediaSource, Part, PartKind, Protocol, Role, Tool, ToolCall, ToolKind,
    ToolResult, Turn,
};
use crate::json::list;

/// Whether a model rejects requests that break a provider rule.
pub(super) fn refuses(model: &str, rule: &judge::Rule) -> bool {
    match rule.name {
        "temperature_or_top_p" => model.contains("anthropic"),
        "plain_settings" | "no_cache_points" => model == "m",
        other => panic!("which models have the rule {other}?"),
    }
}

/// What a request says.
pub(super) fn read_back(body: &Value) -> Conversation {
    let turn = |role: Role, content: &Value| Turn {
        at: "".into(),
        role,
        name: None,
        parts: list(content).filter_map(part).collect(),
    };
    let system = (!body["system"].is_null()).then(|| turn(Role::System, &body["system"]));
    let messages = list(&body["messages"]).map(|message| {
        let role = if message["role"] == "user" { Role::User } else { Role::Assistant };
        turn(role, &message["content"])
    });
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let tools = list(&body["toolConfig"]["tools"]).filter(|tool| tool["toolSpec"].is_object()).map(|tool| {
        let name = text(&tool["toolSpec"]["name"]);
        let kind = ToolKind::Function { name, description: None, parameters: None, strict: None };
        Tool { at: "".into(), kind, schema_at: "".into(), cache: None }
    });
    Conversation {
        source: Protocol::Converse,
        turns: system.into_iter().chain(messages).collect(),
        tools: tools.collect(),
        ..Conversation::default()
    }
}

fn part(block: &Value) -> Option<Part> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let medium = |block: &Value| Media {
        source: MediaSource::Inline(text(&block["source"]["bytes"])),
        media_type: None,
        name: None,
        detail: None,
    };
    let (call, result) = (&block["toolUse"], &block["toolResult"]);
    let kind = if block["text"].is_string() {
        PartKind::Text(text(&block["text"]))
    } else if block["image"].is_object() {
        PartKind::Image(medium(&block["image"]))
    } else if block["document"].is_object() {
        PartKind::File(medium(&block["document"]))
    } else if call.is_object() {
        PartKind::Call(ToolCall {
            id: text(&call["toolUseId"]),
            name: text(&call["name"]),
            input: Input::Json(call["input"].to_string()),
            signature: None,
        })
    } else if result.is_object() {
        PartKind::Result(ToolResult {
            call_id: text(&result["toolUseId"]),
            name: None,
            parts: list(&result["content"]).filter_map(part).collect(),
            failed: None,
            custom: false,
        })
    } else {
        return None;
    };
    Some(Part { at: "".into(), kind, cache: None })
}
