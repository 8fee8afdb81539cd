use serde_json::{Value, json};

use super::{Case, every_rule_refuses_and_takes};
use crate::conversation::Protocol;

fn user() -> Value {
    json!({ "role": "user", "content": "Hi" })
}

fn call(id: &str) -> Value {
    json!({ "type": "function_call", "call_id": id, "name": "now", "arguments": "{}" })
}

fn output(id: &str) -> Value {
    json!({ "type": "function_call_output", "call_id": id, "output": "noon" })
}

fn input(items: &[Value]) -> Value {
    json!({ "input": items })
}

/// An item with one more field.
fn with(mut item: Value, name: &str, value: Value) -> Value {
    item[name] = value;
    item
}

fn part(part: Value) -> Value {
    input(&[json!({ "role": "user", "content": [part] })])
}

fn tools(mut tool: Value) -> Value {
    tool["type"] = "function".into();
    json!({ "tools": [tool] })
}

fn format(mut format: Value) -> Value {
    format["type"] = "json_schema".into();
    json!({ "text": { "format": format } })
}

/// A thought, and what follows it.
fn thought(members: &[(&str, Value)]) -> Value {
    let mut item = json!({ "type": "reasoning", "summary": [], "encrypted_content": "AA==" });
    for (name, value) in members {
        item[*name] = value.clone();
    }
    json!({ "store": false, "input": [item, { "role": "assistant", "content": "Yes." }] })
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn every_responses_rule_rejects_and_accepts() {
    let now = json!({ "type": "function", "name": "now" });
    let choice = |name: &str| json!({ "type": "function", "name": name });
    let closed = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"],
        "additionalProperties": false });
    let open = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let picture = |url: &str| part(json!({ "type": "input_image", "image_url": url }));
    let file = |members: Value| part(with(members, "type", json!("input_file")));
    let pdf = "data:application/pdf;base64,AAAA";
    let custom = |id: &str| json!({ "type": "custom_tool_call", "call_id": id, "name": "sh", "input": "x" });
    let custom_output = |id: &str| json!({ "type": "custom_tool_call_output", "call_id": id, "output": "x" });
    let text = |kind: &str, role: &str| {
        input(&[json!({ "role": role, "content": [{ "type": kind, "text": "x" }] })])
    };
    let cases: Vec<Case> = vec![
        ("input_is_there", json!({ "input": [] }), json!({})),
        ("input_is_there", json!({ "input": "" }), json!({ "input": [], "previous_response_id": "resp_1" })),
        (
            "results_have_their_calls",
            input(&[output("c1"), call("c1")]),
            input(&[call("c1"), user(), output("c1")]),
        ),
        ("results_have_their_calls", input(&[call("c1")]), input(&[call("c1"), output("c1")])),
        (
            "results_have_their_calls",
            input(&[call("c1"), call("c1"), output("c1")]),
            input(&[call("c1"), call("c2"), output("c2"), output("c1")]),
        ),
        (
            "results_have_their_calls",
            input(&[custom("c1"), output("c1")]),
            input(&[custom("c1"), custom_output("c1")]),
        ),
        (
            "ids_are_short",
            input(&[call(&"x".repeat(65)), output(&"x".repeat(65))]),
            input(&[call(&"x".repeat(64)), output(&"x".repeat(64))]),
        ),
        (
            "ids_of_items_fit_their_kind",
            input(&[with(call("c1"), "id", json!("c1")), output("c1")]),
            input(&[with(call("c1"), "id", json!("fc_1")), output("c1")]),
        ),
        ("names_of_tools", tools(json!({ "name": "a.b" })), tools(json!({ "name": "x".repeat(128) }))),
        (
            "names_of_tools",
            input(&[with(call("c1"), "name", json!("a b")), output("c1")]),
            input(&[with(call("c1"), "name", json!("0-_")), output("c1")]),
        ),
        ("names_of_tools_are_unique", json!({ "tools": [now, now] }), json!({ "tools": [now] })),
        (
            "arguments_are_an_object",
            input(&[with(call("c1"), "arguments", json!("")), output("c1")]),
            input(&[with(call("c1"), "arguments", json!("{\"a\":1}")), output("c1")]),
        ),
        ("parts_fit_the_role", text("input_text", "assistant"), text("output_text", "assistant")),
        ("parts_fit_the_role", text("text", "user"), text("input_text", "user")),
        (
            "parts_fit_the_role",
            input(&[json!({ "role": "tool", "content": "x" })]),
            input(&[json!({ "role": "developer", "content": "x" })]),
        ),
        ("parts_fit_the_role", input(&[json!({ "role": "user", "content": null })]), input(&[user()])),
        (
            "results_are_texts_or_parts",
            input(&[call("c1"), with(output("c1"), "output", json!({}))]),
            input(&[
                call("c1"),
                with(output("c1"), "output", json!([{ "type": "input_text", "text": "x" }])),
            ]),
        ),
        ("thoughts_have_their_proof", thought(&[("encrypted_content", Value::Null)]), thought(&[])),
        (
            "thoughts_have_their_proof",
            thought(&[("content", json!([{ "type": "reasoning_text", "text": "Hm." }]))]),
            thought(&[("summary", json!([{ "type": "summary_text", "text": "Hm." }]))]),
        ),
        (
            "thoughts_are_followed",
            input(&[
                json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "AA==" }),
                user(),
            ]),
            thought(&[("id", json!("rs_1"))]),
        ),
        (
            "media_have_their_form",
            picture("data:application/pdf;base64,AAAA"),
            picture("https://a.example/i.png"),
        ),
        (
            "media_have_their_form",
            file(json!({ "file_data": "AAAA", "filename": "a.pdf" })),
            file(json!({ "file_data": pdf, "filename": "a.pdf" })),
        ),
        (
            "media_have_their_form",
            file(json!({ "file_data": pdf })),
            file(json!({ "file_url": "https://a.example/a.pdf" })),
        ),
        (
            "a_choice_has_its_tools",
            json!({ "tool_choice": "required" }),
            json!({ "tool_choice": "required", "tools": [now] }),
        ),
        (
            "a_choice_has_its_tools",
            json!({ "tool_choice": choice("then"), "tools": [now] }),
            json!({ "tool_choice": choice("now"), "tools": [now] }),
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
            json!({ "instructions": "As JSON.", "text": { "format": { "type": "json_object" } } }),
            json!({ "input": "As JSON.", "text": { "format": { "type": "json_object" } } }),
        ),
        ("sixteen_tokens", json!({ "max_output_tokens": 15 }), json!({ "max_output_tokens": 16 })),
        ("user_is_short", json!({ "user": "u".repeat(65) }), json!({ "user": "u".repeat(64) })),
        ("numbers_are_in_range", json!({ "top_p": 1.1 }), json!({ "top_p": 1 })),
        (
            "words_are_known",
            json!({ "reasoning": { "summary": "none" } }),
            json!({ "reasoning": { "summary": "auto" } }),
        ),
        (
            "words_are_known",
            json!({ "include": ["thoughts"] }),
            json!({ "include": ["reasoning.encrypted_content"] }),
        ),
        ("metadata_is_short", json!({ "metadata": { "a": null } }), json!({ "metadata": { "a": "" } })),
        ("members_are_known", json!({ "stop": ["a"] }), json!({ "truncation": "auto" })),
        ("members_are_known", input(&[with(user(), "name", json!("a"))]), input(&[user()])),
        (
            "no_thoughts_no_proofs",
            json!({ "include": ["reasoning.encrypted_content"], "reasoning": { "effort": "none" } }),
            json!({ "include": ["reasoning.encrypted_content"], "reasoning": { "effort": "low" } }),
        ),
    ];
    every_rule_refuses_and_takes(Protocol::Responses, &json!({ "model": "m", "input": [user()] }), &cases);
}
