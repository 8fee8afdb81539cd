//! Calls and results without ids.

use serde_json::{Value, json};

use super::*;
use crate::Defaults;
use crate::conversation::{Conversation, PartKind, Protocol, ToolCall, ToolResult};

fn read(request: &Value) -> Conversation {
    request_in::request_in(request.clone(), "m", false).expect("a request")
}

#[test]
fn results_without_ids_match_calls_by_name_in_order() {
    let call = |name: &str| json!({ "functionCall": { "name": name } });
    let result = |name: &str| json!({ "functionResponse": { "name": name, "response": {} } });
    let conversation = read(&json!({ "contents": [
        { "role": "model", "parts": [call("f"), call("g"), call("f")] },
        { "role": "user", "parts": [result("f"), result("f"), result("g"), result("f")] },
    ] }));
    let parts = conversation.turns.iter().flat_map(|turn| &turn.parts);
    let ids: Vec<&str> = parts
        .map(|part| match &part.kind {
            PartKind::Call(ToolCall { id, .. }) => id.as_str(),
            PartKind::Result(ToolResult { call_id, .. }) => call_id.as_str(),
            other => unreachable!("{other:?}"),
        })
        .collect();
    assert_eq!(ids[..3], ["call_native_0_0", "call_native_0_1", "call_native_0_2"]);
    assert_eq!(ids[3..], [ids[0], ids[2], ids[1], "call_native_1_3"]);
}

#[test]
fn function_response_is_a_result_under_any_role() {
    for role in ["user", "function", "tool"] {
        let conversation = read(&json!({ "contents": [
            { "role": "user", "parts": [{ "text": "Weather?" }] },
            { "role": "model", "parts": [{ "functionCall": { "name": "f" } }] },
            { "role": role, "parts": [{ "functionResponse": { "name": "f", "response": { "output": "rain" } } }] },
        ] }));
        let last = conversation.turns.last().expect("a turn");
        assert_eq!(last.role, crate::conversation::Role::Tool, "{role}");
        let results = last.parts.iter().filter(|part| matches!(part.kind, PartKind::Result(_)));
        assert_eq!(results.count(), 1, "{role}");
    }
}

/// What a request of chat becomes, and what is lost.
fn of_chat(request: Value) -> (Value, Vec<String>) {
    let conversation = Protocol::Chat.request_in(request, "m", false).expect("a request");
    let written = Protocol::Native.request_out(&conversation, Defaults::default());
    (written.body, written.dropped.into_iter().map(Into::into).collect())
}

#[test]
fn reference_in_a_schema_keeps_only_what_providers_accept_beside_it() {
    let schema = |unit: Value| json!({ "type": "object", "properties": { "unit": unit }, "$defs": { "Unit": { "type": "string" } } });
    for (unit, sent, lost) in [
        (
            json!({ "title": "Unit", "description": "d", "default": "C" }),
            json!({ "description": "d", "default": "C" }),
            0,
        ),
        (json!({ "minLength": 1 }), json!({}), 2),
    ] {
        let refer = |mut members: Value| {
            members["$ref"] = json!("#/$defs/Unit");
            members
        };
        let parameters = schema(refer(unit));
        let (body, dropped) = of_chat(json!({
            "model": "m", "messages": [{ "role": "user", "content": "x" }],
            "tools": [{ "type": "function", "function": { "name": "f", "parameters": parameters } }],
            "response_format": { "type": "json_schema", "json_schema": { "name": "s", "schema": parameters } },
        }));
        let declared = &body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"];
        assert_eq!(declared["properties"]["unit"], refer(sent.clone()));
        assert_eq!(body["generationConfig"]["responseJsonSchema"]["properties"]["unit"], refer(sent));
        assert_eq!(dropped.len(), lost, "{dropped:?}");
    }
}

#[test]
fn conversation_that_begins_with_a_call_gets_a_user_turn_before_it() {
    let call = json!({ "id": "c", "type": "function", "function": { "name": "f", "arguments": "{}" } });
    let (body, _) = of_chat(json!({ "model": "m", "messages": [
        { "role": "assistant", "tool_calls": [call] },
        { "role": "tool", "tool_call_id": "c", "content": "rain" },
    ] }));
    let roles: Vec<&str> = body["contents"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|turn| turn["role"].as_str())
        .collect();
    assert_eq!(roles, ["user", "model", "user"]);
}

#[test]
fn instruction_after_an_answer_is_a_turn_of_the_user() {
    for protocol in [Protocol::Messages, Protocol::Converse, Protocol::Native] {
        let request = json!({ "model": "m", "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "Hi" },
            { "role": "assistant", "content": "Hello" },
            { "role": "system", "content": "Now in French." },
        ] });
        let conversation = Protocol::Chat.request_in(request, "m", false).expect("a request");
        let written = protocol.request_out(&conversation, Defaults::default());
        let turns = written.body.get("messages").unwrap_or(&written.body["contents"]);
        let last = turns.as_array().and_then(|turns| turns.last()).expect("a turn");
        assert_eq!(last["role"], "user", "{protocol:?}");
        assert!(last.to_string().contains("Now in French."), "{last}");
        let dropped: Vec<String> = written.dropped.into_iter().map(Into::into).collect();
        assert_eq!(dropped, ["/messages/3/role"], "{protocol:?}");
    }
}

#[test]
fn budget_of_another_protocol_is_bounded() {
    let request = json!({ "model": "m", "max_tokens": 64_000, "thinking": { "type": "enabled", "budget_tokens": 31_999 },
        "messages": [{ "role": "user", "content": "x" }] });
    let conversation = Protocol::Messages.request_in(request, "m", false).expect("a request");
    let written = Protocol::Native.request_out(&conversation, Defaults::default());
    assert_eq!(written.body["generationConfig"]["thinkingConfig"]["thinkingBudget"], 24_576);
    assert_eq!(written.dropped.len(), 1);
}

#[test]
fn json_beside_tools_is_asked_for_in_the_prompt_of_models_that_reject_the_format() {
    for (model, accepts) in [("gemini-2.5-flash", false), ("gemini-3-pro-preview", true)] {
        for (format, word) in [
            (json!({ "type": "json_object" }), "one JSON object"),
            (
                json!({ "type": "json_schema", "json_schema": { "name": "s", "schema": { "type": "object" } } }),
                "JSON Schema",
            ),
        ] {
            let request = json!({ "model": model, "messages": [{ "role": "user", "content": "x" }],
                "tools": [{ "type": "function", "function": { "name": "f" } }], "response_format": format });
            let conversation = Protocol::Chat.request_in(request.clone(), model, false).expect("a request");
            let written = Protocol::Native.request_out(&conversation, Defaults::default());
            let is_format = !written.body["generationConfig"]["responseMimeType"].is_null();
            let prompt = written.body["systemInstruction"].to_string();
            assert_eq!((is_format, prompt.contains(word)), (accepts, !accepts), "{model}: {}", written.body);
            assert_eq!(written.dropped.len(), usize::from(!accepts), "{model}");
            // Without calls, the format itself is accepted.
            let mut without = request;
            without["tool_choice"] = json!("none");
            let conversation = Protocol::Chat.request_in(without, model, false).expect("a request");
            let written = Protocol::Native.request_out(&conversation, Defaults::default());
            assert_eq!(written.body["generationConfig"]["responseMimeType"], "application/json");
        }
    }
}
