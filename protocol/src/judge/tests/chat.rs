use serde_json::{Value, json};

use super::{Case, every_rule_refuses_and_takes};
use crate::conversation::Protocol;

fn user() -> Value {
    json!({ "role": "user", "content": "Hi" })
}

fn call(id: &str) -> Value {
    json!({ "id": id, "type": "function", "function": { "name": "now", "arguments": "{}" } })
}

fn calling(calls: &[Value]) -> Value {
    json!({ "role": "assistant", "content": null, "tool_calls": calls })
}

fn result(id: &str) -> Value {
    json!({ "role": "tool", "tool_call_id": id, "content": "noon" })
}

/// A question, calls, and their results.
fn called(ids: &[&str]) -> Value {
    let calls: Vec<Value> = ids.iter().map(|id| call(id)).collect();
    let results = ids.iter().map(|id| result(id));
    let messages: Value = [user(), calling(&calls)].into_iter().chain(results).collect();
    json!({ "messages": messages })
}

/// A call with these fields, and its result.
fn called_with(members: &Value) -> Value {
    let mut call = call("c1");
    for (name, value) in members.as_object().expect("members") {
        call[name] = value.clone();
    }
    json!({ "messages": [user(), calling(&[call]), result("c1")] })
}

/// A call, its result, and these messages.
fn called_and_then(messages: &[Value]) -> Value {
    let before = [user(), calling(&[call("D681PevKs")]), result("D681PevKs")];
    json!({ "messages": before.iter().chain(messages).collect::<Vec<_>>() })
}

fn followed_by(message: Value) -> Value {
    json!({ "messages": [user(), message] })
}

fn part(part: Value) -> Value {
    json!({ "messages": [{ "role": "user", "content": [part] }] })
}

fn tool(function: Value) -> Value {
    json!({ "type": "function", "function": function })
}

fn tools(function: Value) -> Value {
    json!({ "tools": [tool(function)] })
}

fn format(format: Value) -> Value {
    json!({ "response_format": { "type": "json_schema", "json_schema": format } })
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn every_chat_rule_rejects_and_accepts() {
    let now = tool(json!({ "name": "now" }));
    let choice = |name: &str| json!({ "type": "function", "function": { "name": name } });
    let closed = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"],
        "additionalProperties": false });
    let open = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let picture = |url: &str| part(json!({ "type": "image_url", "image_url": { "url": url } }));
    let file = |file: Value| part(json!({ "type": "file", "file": file }));
    let sound = |format: &str| {
        part(json!({ "type": "input_audio", "input_audio": { "format": format, "data": "AAAA" } }))
    };
    let named = |name: &str| followed_by(json!({ "role": "user", "content": "x", "name": name }));
    let system = |role: &str| json!({ "role": role, "content": "Be brief." });
    let cases: Vec<Case> = vec![
        ("messages_are_there", json!({ "messages": [] }), json!({})),
        (
            "messages_are_there",
            followed_by(json!({ "role": "nobody", "content": "x" })),
            followed_by(system("developer")),
        ),
        // A message between a call and its result, a result without a call, a call without a result.
        (
            "results_follow_their_calls",
            json!({ "messages": [user(), calling(&[call("c1")]), user(), result("c1")] }),
            called(&["c1"]),
        ),
        ("results_follow_their_calls", followed_by(result("c1")), called(&["c1", "c2"])),
        (
            "results_follow_their_calls",
            json!({ "messages": [user(), calling(&[call("c1"), call("c2")]), result("c1")] }),
            json!({ "messages": [user(), calling(&[call("c1"), call("c2")]), result("c2"), result("c1"), user()] }),
        ),
        ("ids_of_a_message_are_unique", called(&["c1", "c1"]), called(&["c1", "c2"])),
        ("ids_are_short", called(&[&"x".repeat(41)]), called(&[&"x".repeat(40)])),
        ("ids_are_short", called(&[""]), called(&["a.b:c|d"])),
        ("names_of_tools", tools(json!({ "name": "a.b" })), tools(json!({ "name": "x".repeat(64) }))),
        (
            "names_of_tools",
            called_with(&json!({ "function": { "name": "x".repeat(65), "arguments": "{}" } })),
            called_with(&json!({ "function": { "name": "0-_", "arguments": "{}" } })),
        ),
        ("names_of_tools_are_unique", json!({ "tools": [now, now] }), json!({ "tools": [now] })),
        (
            "arguments_are_an_object",
            called_with(&json!({ "function": { "name": "now", "arguments": "" } })),
            called_with(&json!({ "function": { "name": "now", "arguments": "{\"a\":1}" } })),
        ),
        (
            "arguments_are_an_object",
            called_with(&json!({ "function": { "name": "now", "arguments": { "a": 1 } } })),
            called_with(&json!({ "type": "custom", "custom": { "name": "now", "input": "x" } })),
        ),
        (
            "content_is_there",
            followed_by(json!({ "role": "assistant", "content": null })),
            followed_by(json!({ "role": "assistant", "content": null, "refusal": "No." })),
        ),
        (
            "content_is_there",
            followed_by(json!({ "role": "user" })),
            followed_by(json!({ "role": "user", "content": "" })),
        ),
        ("lists_are_not_empty", followed_by(json!({ "role": "user", "content": [] })), json!({})),
        (
            "lists_are_not_empty",
            followed_by(json!({ "role": "assistant", "content": "x", "tool_calls": [] })),
            followed_by(json!({ "role": "assistant", "content": "x" })),
        ),
        ("lists_are_not_empty", json!({ "tools": [] }), json!({ "tools": [now] })),
        (
            "parts_fit_the_role",
            followed_by(
                json!({ "role": "assistant", "content": [{ "type": "image_url", "image_url": { "url": "https://a.example/i" } }] }),
            ),
            followed_by(json!({ "role": "assistant", "content": [{ "type": "refusal", "refusal": "No." }] })),
        ),
        (
            "parts_fit_the_role",
            json!({ "messages": [user(), calling(&[call("c1")]), { "role": "tool", "tool_call_id": "c1", "content": [{ "type": "file" }] }] }),
            json!({ "messages": [user(), calling(&[call("c1")]), { "role": "tool", "tool_call_id": "c1", "content": [{ "type": "text", "text": "x" }] }] }),
        ),
        (
            "media_have_their_form",
            picture("data:image/jpg;base64,AAAA"),
            picture("data:image/jpeg;base64,AAAA"),
        ),
        (
            "media_have_their_form",
            picture("data:image/png;charset=utf-8;base64,AAAA"),
            picture("https://a.example/i.png"),
        ),
        ("media_have_their_form", picture("gs://bucket/i.png"), picture("data:image/png;base64,AAAA")),
        ("media_have_their_form", sound("ogg"), sound("wav")),
        (
            "media_have_their_form",
            file(json!({ "file_data": "AAAA" })),
            file(json!({ "file_data": "data:application/pdf;base64,AAAA" })),
        ),
        ("media_have_their_form", file(json!({})), file(json!({ "file_id": "file_1" }))),
        ("names_of_authors", named("a b"), named("a_b")),
        (
            "a_choice_has_its_tools",
            json!({ "tool_choice": "required" }),
            json!({ "tool_choice": "required", "tools": [now] }),
        ),
        (
            "a_choice_has_its_tools",
            json!({ "parallel_tool_calls": true }),
            json!({ "parallel_tool_calls": true, "tools": [now] }),
        ),
        (
            "a_choice_has_its_tools",
            json!({ "tool_choice": choice("then"), "tools": [now] }),
            json!({ "tool_choice": choice("now"), "tools": [now] }),
        ),
        (
            "a_choice_has_its_tools",
            json!({ "tools": [now], "tool_choice": { "type": "allowed_tools", "allowed_tools": { "mode": "auto", "tools": [choice("then")] } } }),
            json!({ "tools": [now], "tool_choice": { "type": "allowed_tools", "allowed_tools": { "mode": "auto", "tools": [choice("now")] } } }),
        ),
        (
            "parameters_are_objects",
            tools(json!({ "name": "now", "parameters": { "type": "object" } })),
            tools(json!({ "name": "now", "parameters": { "type": "object", "properties": {} } })),
        ),
        (
            "parameters_are_objects",
            tools(json!({ "name": "now", "parameters": { "type": "object", "properties": {}, "not": {} } })),
            tools(json!({ "name": "now", "parameters": { "type": "object", "properties": { "not": {} } } })),
        ),
        (
            "parameters_are_objects",
            tools(json!({ "name": "now", "parameters": {} })),
            tools(json!({ "name": "now" })),
        ),
        (
            "strict_schemas_are_closed",
            tools(json!({ "name": "now", "strict": true, "parameters": open })),
            tools(json!({ "name": "now", "strict": true, "parameters": closed })),
        ),
        (
            "strict_schemas_are_closed",
            format(json!({ "name": "n", "strict": true, "schema": open })),
            format(json!({ "name": "n", "strict": true, "schema": closed })),
        ),
        (
            "a_schema_has_a_name",
            format(json!({ "schema": open })),
            format(json!({ "name": "n", "schema": open })),
        ),
        (
            "json_is_mentioned",
            json!({ "response_format": { "type": "json_object" } }),
            json!({ "response_format": { "type": "json_object" },
                "messages": [{ "role": "user", "content": "As JSON." }] }),
        ),
        ("user_is_short", json!({ "user": "u".repeat(65) }), json!({ "user": "u".repeat(64) })),
        ("four_stops", json!({ "stop": ["a", "b", "c", "d", "e"] }), json!({ "stop": ["a", "b", "c", "d"] })),
        ("numbers_are_in_range", json!({ "temperature": 2.1 }), json!({ "temperature": 2 })),
        (
            "numbers_are_in_range",
            json!({ "top_logprobs": 3 }),
            json!({ "top_logprobs": 3, "logprobs": true }),
        ),
        (
            "one_limit",
            json!({ "max_tokens": 9, "max_completion_tokens": 9 }),
            json!({ "max_completion_tokens": 9 }),
        ),
        ("words_are_known", json!({ "reasoning_effort": "max" }), json!({ "reasoning_effort": "xhigh" })),
        ("metadata_is_short", json!({ "metadata": { "a": 1 } }), json!({ "metadata": { "a": "1" } })),
        (
            "metadata_is_short",
            json!({ "metadata": { "a": "x".repeat(513) } }),
            json!({ "metadata": { "a": "x".repeat(512) } }),
        ),
        (
            "stream_options_of_a_stream",
            json!({ "stream_options": { "include_usage": true } }),
            json!({ "stream_options": { "include_usage": true }, "stream": true }),
        ),
        ("members_are_known", json!({ "top_k": 1 }), json!({ "top_p": 1 })),
        (
            "members_are_known",
            followed_by(json!({ "role": "user", "content": "x", "cache_control": {} })),
            named("a"),
        ),
        (
            "members_are_known",
            followed_by(json!({ "role": "assistant", "content": "x", "thoughts": [] })),
            followed_by(json!({ "role": "assistant", "content": "x", "thinking_blocks": [], "images": [] })),
        ),
        ("newer_limit", json!({ "max_tokens": 9 }), json!({ "max_completion_tokens": 9 })),
        ("no_developer", followed_by(system("developer")), followed_by(system("system"))),
        ("system_first", followed_by(system("system")), json!({ "messages": [system("system"), user()] })),
        (
            "functions_only",
            json!({ "tools": [{ "type": "custom", "custom": { "name": "sh" } }] }),
            json!({ "tools": [now] }),
        ),
        (
            "no_reasoning_content",
            followed_by(json!({ "role": "assistant", "content": "x", "reasoning_content": "y" })),
            followed_by(json!({ "role": "assistant", "content": "x" })),
        ),
        ("nine_alphanumeric", called(&["call_1"]), called(&["D681PevKs"])),
        (
            "no_user_after_tool",
            called_and_then(&[user()]),
            called_and_then(&[json!({ "role": "assistant", "content": "x" }), user()]),
        ),
    ];
    every_rule_refuses_and_takes(Protocol::Chat, &json!({ "model": "m", "messages": [user()] }), &cases);
}
