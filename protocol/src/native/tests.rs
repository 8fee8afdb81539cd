//! Calls and results without ids.

use serde_json::{Value, json};

use super::*;
use crate::conversation::{Conversation, PartKind, ToolCall, ToolResult};

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
