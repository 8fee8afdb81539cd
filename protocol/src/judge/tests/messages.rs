use serde_json::{Value, json};

use super::{Case, every_rule_refuses_and_takes};
use crate::conversation::Protocol;

fn user() -> Value {
    json!({ "role": "user", "content": "Hi" })
}

fn call(id: &str) -> Value {
    json!({ "type": "tool_use", "id": id, "name": "now", "input": {} })
}

fn result(id: &str) -> Value {
    json!({ "type": "tool_result", "tool_use_id": id, "content": "noon" })
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// A question, blocks by the model, and blocks of the next turn.
fn turns(of_model: &[Value], of_user: &[Value]) -> Value {
    json!({ "messages": [user(), { "role": "assistant", "content": of_model }, { "role": "user", "content": of_user }] })
}

/// A call with one field changed, and its result.
fn called_with(name: &str, value: Value) -> Value {
    let mut call = call("c1");
    call[name] = value;
    turns(&[call], &[result("c1")])
}

fn block(block: Value) -> Value {
    json!({ "messages": [{ "role": "user", "content": [block] }] })
}

fn tool(schema: Value) -> Value {
    json!({ "tools": [{ "name": "now", "input_schema": schema }] })
}

fn strict(schema: Value) -> Value {
    json!({ "tools": [{ "name": "now", "strict": true, "input_schema": schema }] })
}

fn form(schema: Value) -> Value {
    json!({ "output_config": { "format": { "type": "json_schema", "schema": schema } } })
}

fn with(mut request: Value, more: Value) -> Value {
    for (name, value) in more.as_object().expect("members") {
        request[name] = value.clone();
    }
    request
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn every_messages_rule_rejects_and_accepts() {
    let now = json!({ "name": "now", "input_schema": { "type": "object" } });
    let thinking = json!({ "thinking": { "type": "enabled", "budget_tokens": 1024 }, "max_tokens": 2048 });
    let thought = json!({ "type": "thinking", "thinking": "Hm.", "signature": "s1" });
    let source = |kind: &str, media_type: &str, data: &str| {
        block(json!({ "type": kind, "source": { "type": "base64", "media_type": media_type, "data": data } }))
    };
    let url = |url: &str| block(json!({ "type": "image", "source": { "type": "url", "url": url } }));
    let cached = |count: usize| {
        let block = json!({ "type": "text", "text": "x", "cache_control": { "type": "ephemeral" } });
        json!({ "messages": [{ "role": "user", "content": vec![block; count] }] })
    };
    let closed = json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "additionalProperties": false });
    let bounded = json!({ "type": "object", "properties": { "a": { "type": "integer", "minimum": 1 } }, "additionalProperties": false });
    let named_like_a_bound = json!({ "type": "object", "properties": { "minimum": { "type": "integer" } }, "additionalProperties": false });
    let failed = |content: Value| {
        let mut result = result("c1");
        (result["is_error"], result["content"]) = (true.into(), content);
        turns(&[call("c1")], &[result])
    };
    let beginning = |text: &str| json!({ "messages": [user(), { "role": "assistant", "content": text }] });
    let user_id = |length: usize| json!({ "metadata": { "user_id": "u".repeat(length) } });
    let cases: Vec<Case> = vec![
        ("messages_are_there", json!({ "messages": [] }), json!({})),
        ("messages_are_there", json!({ "messages": [{ "role": "user", "content": [] }] }), beginning("So")),
        ("roles_alternate", json!({ "messages": [user(), user()] }), beginning("So")),
        (
            "roles_alternate",
            json!({ "messages": [{ "role": "assistant", "content": "x" }, user()] }),
            json!({}),
        ),
        (
            "system_turns_follow_the_user",
            json!({ "messages": [{ "role": "system", "content": "x" }, user()] }),
            json!({ "messages": [user(), { "role": "system", "content": "x" }] }),
        ),
        (
            "system_turns_follow_the_user",
            json!({ "messages": [
                user(),
                { "role": "assistant", "content": "x" },
                { "role": "system", "content": "y" },
                user(),
            ] }),
            json!({ "messages": [
                user(),
                { "role": "assistant", "content": "x" },
                user(),
                { "role": "system", "content": "y" },
                { "role": "system", "content": "z" },
            ] }),
        ),
        (
            "no_system_turns",
            json!({ "messages": [user(), { "role": "system", "content": "x" }] }),
            json!({ "system": "x" }),
        ),
        (
            "results_follow_their_calls",
            turns(&[call("c1")], &[text("x"), result("c1")]),
            turns(&[call("c1")], &[result("c1"), text("x")]),
        ),
        (
            "results_follow_their_calls",
            turns(&[call("c1"), call("c2")], &[result("c1")]),
            turns(&[call("c1"), call("c2")], &[result("c2"), result("c1")]),
        ),
        (
            "results_follow_their_calls",
            turns(&[text("x")], &[result("c1")]),
            turns(&[text("x")], &[text("y")]),
        ),
        (
            "ids_have_their_characters",
            turns(&[call("f.now:0")], &[result("f.now:0")]),
            turns(&[call("f-now_0")], &[result("f-now_0")]),
        ),
        (
            "ids_are_unique",
            turns(&[call("c1"), call("c1")], &[result("c1"), result("c1")]),
            turns(&[call("c1"), call("c2")], &[result("c1"), result("c2")]),
        ),
        ("names_of_tools", called_with("name", json!("a.b")), called_with("name", json!("x".repeat(128)))),
        (
            "names_of_tools",
            json!({ "tools": [{ "name": "", "input_schema": { "type": "object" } }] }),
            json!({ "tools": [now] }),
        ),
        ("names_of_tools_are_unique", json!({ "tools": [now, now] }), json!({ "tools": [now] })),
        ("texts_are_not_empty", turns(&[text("")], &[text("x")]), turns(&[text("x")], &[text("x")])),
        (
            "texts_are_not_white",
            turns(&[text("x"), text(" \n")], &[text("x")]),
            turns(&[text("x"), text(" y")], &[text("x")]),
        ),
        ("texts_are_not_white", json!({ "system": " " }), json!({ "system": "x" })),
        ("no_space_at_the_end", beginning("So "), beginning("So")),
        (
            "blocks_fit_the_role",
            turns(&[json!({ "type": "image" })], &[text("x")]),
            turns(&[text("x")], &[text("x")]),
        ),
        ("blocks_fit_the_role", block(thought.clone()), turns(&[thought.clone(), text("x")], &[text("x")])),
        (
            "arguments_are_an_object",
            called_with("input", json!("{}")),
            called_with("input", json!({ "a": 1 })),
        ),
        (
            "thoughts_have_their_proof",
            turns(&[json!({ "type": "thinking", "thinking": "Hm." }), text("x")], &[text("x")]),
            turns(
                &[thought.clone(), json!({ "type": "redacted_thinking", "data": "AA==" }), text("x")],
                &[text("x")],
            ),
        ),
        (
            "a_thought_before_the_last_calls",
            with(turns(&[text("x"), call("c1")], &[result("c1")]), thinking.clone()),
            with(turns(&[thought.clone(), call("c1")], &[result("c1")]), thinking.clone()),
        ),
        ("four_caches", cached(5), cached(4)),
        ("failed_results_say_why", failed(json!("")), failed(json!("No such file."))),
        (
            "media_have_their_form",
            source("image", "image/jpg", "AAAA"),
            source("image", "image/jpeg", "AAAA"),
        ),
        (
            "media_have_their_form",
            source("image", "application/pdf", "AAAA"),
            source("document", "application/pdf", "AAAA"),
        ),
        (
            "media_have_their_form",
            source("image", "image/png", "AA\nAA"),
            source("image", "image/png", "AA=="),
        ),
        ("media_have_their_form", url("gs://a/b"), url("https://a.example/i.png")),
        (
            "beside_thinking",
            with(thinking.clone(), json!({ "temperature": 0.5 })),
            with(thinking.clone(), json!({ "temperature": 1 })),
        ),
        ("beside_thinking", with(thinking.clone(), json!({ "top_k": 4 })), thinking.clone()),
        (
            "beside_thinking",
            with(thinking.clone(), json!({ "max_tokens": 1024 })),
            with(thinking.clone(), json!({ "max_tokens": 1025 })),
        ),
        (
            "beside_thinking",
            with(thinking.clone(), json!({ "tools": [now], "tool_choice": { "type": "any" } })),
            with(thinking.clone(), json!({ "tools": [now], "tool_choice": { "type": "auto" } })),
        ),
        ("temperature_or_top_p", json!({ "temperature": 1, "top_p": 1 }), json!({ "top_p": 1 })),
        ("numbers_are_in_range", json!({ "temperature": 1.5 }), json!({ "temperature": 1 })),
        ("numbers_are_in_range", json!({ "max_tokens": null }), json!({ "max_tokens": 1 })),
        ("stops_are_not_white", json!({ "stop_sequences": ["\n"] }), json!({ "stop_sequences": ["\nx"] })),
        (
            "a_choice_has_its_tools",
            json!({ "tool_choice": { "type": "auto" } }),
            json!({ "tools": [now], "tool_choice": { "type": "auto" } }),
        ),
        (
            "a_choice_has_its_tools",
            json!({ "tools": [now], "tool_choice": { "type": "tool", "name": "then" } }),
            json!({ "tools": [now], "tool_choice": { "type": "tool", "name": "now" } }),
        ),
        ("schemas_of_tools", tool(json!({})), tool(json!({ "type": "object" }))),
        (
            "schemas_of_tools",
            tool(json!({ "type": "object", "anyOf": [] })),
            tool(json!({ "type": "object", "properties": { "a": { "anyOf": [{ "type": "string" }] } } })),
        ),
        ("schemas_of_tools", strict(json!({ "type": "object" })), strict(closed.clone())),
        ("schemas_of_answers_are_closed", form(bounded), form(named_like_a_bound)),
        ("schemas_of_answers_are_closed", form(json!({ "type": "object" })), form(closed)),
        (
            "schemas_of_answers_are_closed",
            form(json!({ "type": "array", "minItems": 2 })),
            form(json!({ "type": "array", "minItems": 1 })),
        ),
        ("user_is_short", user_id(257), user_id(256)),
        (
            "user_is_short",
            json!({ "metadata": { "user_id": "jane@example.com" } }),
            json!({ "metadata": { "user_id": "jane" } }),
        ),
        ("user_is_short", json!({ "metadata": { "a": "b" } }), json!({ "metadata": { "user_id": "u" } })),
        (
            "words_are_known",
            json!({ "output_config": { "effort": "minimal" } }),
            json!({ "output_config": { "effort": "max" } }),
        ),
        ("members_are_known", json!({ "seed": 1 }), json!({ "top_k": 1 })),
        ("members_are_known", block(json!({ "type": "text", "text": "x", "name": "y" })), block(text("x"))),
        (
            "members_are_known",
            json!({ "messages": [{ "role": "user", "content": "x", "clear_at": "next_user_message" }] }),
            json!({ "messages": [
                user(),
                { "role": "system", "content": "x", "clear_at": "next_user_message" },
            ] }),
        ),
    ];
    let base = json!({ "model": "m", "max_tokens": 64, "messages": [user()] });
    every_rule_refuses_and_takes(Protocol::Messages, &base, &cases);
}
