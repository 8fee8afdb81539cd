use serde_json::{Value, json};

use super::{Case, every_rule_refuses_and_takes};
use crate::conversation::Protocol;

fn user(content: Value) -> Value {
    json!({ "role": "user", "content": content })
}

fn text(text: &str) -> Value {
    json!({ "text": text })
}

fn call(id: &str) -> Value {
    json!({ "toolUse": { "toolUseId": id, "name": "now", "input": {} } })
}

fn result(id: &str) -> Value {
    json!({ "toolResult": { "toolUseId": id, "content": [text("noon")] } })
}

fn tools(spec: Value) -> Value {
    json!({ "tools": [{ "toolSpec": spec }] })
}

fn now() -> Value {
    json!({ "name": "now", "inputSchema": { "json": { "type": "object" } } })
}

/// A question, blocks by the model, and blocks of the next turn.
fn turns(of_model: &[Value], of_user: &[Value]) -> Value {
    let messages = [
        user(json!([text("Hi")])),
        json!({ "role": "assistant", "content": of_model }),
        user(json!(of_user)),
    ];
    json!({ "messages": messages, "toolConfig": tools(now()) })
}

/// A call with one field changed, and its result.
fn called_with(name: &str, value: Value) -> Value {
    let mut call = call("c1");
    call["toolUse"][name] = value;
    turns(&[call], &[result("c1")])
}

fn content(blocks: Value) -> Value {
    json!({ "messages": [user(blocks)] })
}

fn beginning(end: &str) -> Value {
    json!({ "messages": [user(json!([text("Hi")])), { "role": "assistant", "content": [text(end)] }] })
}

fn document(name: &str) -> Value {
    json!({ "document": { "format": "pdf", "name": name, "source": { "bytes": "AA==" } } })
}

fn image(format: &str, source: Value) -> Value {
    content(json!([{ "image": { "format": format, "source": source } }]))
}

fn inference(name: &str, value: Value) -> Value {
    json!({ "inferenceConfig": { name: value } })
}

fn form(schema: &str) -> Value {
    let definition = json!({ "jsonSchema": { "schema": schema } });
    json!({ "outputConfig": { "textFormat": { "type": "json_schema", "structure": definition } } })
}

fn thinking(more: Value) -> Value {
    let mut request = json!({
        "additionalModelRequestFields": { "thinking": { "type": "enabled", "budget_tokens": 1024 } },
        "inferenceConfig": { "maxTokens": 2048 },
    });
    for (name, value) in more.as_object().expect("members") {
        request[name] = value.clone();
    }
    request
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn every_converse_rule_rejects_and_accepts() {
    let cached = |count: usize| {
        let point = json!({ "cachePoint": { "type": "default" } });
        content(json!([vec![text("x")], vec![point; count]].concat()))
    };
    let bytes = json!({ "bytes": "AA==" });
    let thought = json!({ "reasoningContent": { "reasoningText": { "text": "Hm.", "signature": "c2ln" } } });
    let unproven = json!({ "reasoningContent": { "reasoningText": { "text": "Hm." } } });
    let image_of_model = json!({ "image": { "format": "png", "source": bytes } });
    let strict = |schema: Value| json!({ "toolConfig": tools(json!({ "name": "now", "strict": true, "inputSchema": { "json": schema } })) });
    let closed = json!({ "type": "object", "additionalProperties": false });
    let choice = |choice: Value| {
        let mut config = tools(now());
        config["toolChoice"] = choice;
        json!({ "toolConfig": config })
    };
    let failed = |status: &str| {
        let mut result = result("c1");
        result["toolResult"]["status"] = status.into();
        turns(&[call("c1")], &[result])
    };
    let right = turns(&[call("c1")], &[result("c1"), text("x")]);
    let cases: Vec<Case> = vec![
        ("messages_are_there", json!({ "messages": [] }), json!({})),
        ("messages_are_there", content(json!([])), beginning("So")),
        (
            "roles_alternate",
            json!({ "messages": [user(json!([text("a")])), user(json!([text("b")]))] }),
            beginning("So"),
        ),
        (
            "roles_alternate",
            json!({ "messages": [{ "role": "assistant", "content": [text("x")] }] }),
            json!({}),
        ),
        ("a_block_is_of_one_kind", content(json!([{ "text": "x", "toolUse": {} }])), json!({})),
        ("a_block_is_of_one_kind", content(json!([{ "type": "text" }])), json!({ "system": [text("x")] })),
        ("results_follow_their_calls", turns(&[call("c1")], &[text("x"), result("c1")]), right.clone()),
        ("results_follow_their_calls", turns(&[call("c1")], &[text("x")]), right.clone()),
        ("results_follow_their_calls", turns(&[text("x")], &[result("c1")]), right.clone()),
        ("ids_have_their_characters", turns(&[call("c:1")], &[result("c:1")]), right.clone()),
        (
            "ids_have_their_characters",
            turns(&[call(&"c".repeat(65))], &[result(&"c".repeat(65))]),
            turns(&[call(&"c".repeat(64))], &[result(&"c".repeat(64))]),
        ),
        ("ids_are_unique", turns(&[call("c1"), call("c1")], &[result("c1"), result("c1")]), right.clone()),
        (
            "names_of_tools",
            json!({ "toolConfig": tools(json!({ "name": "a.b", "inputSchema": { "json": { "type": "object" } } })) }),
            json!({ "toolConfig": tools(now()) }),
        ),
        ("names_of_tools", called_with("name", "n".repeat(65).into()), called_with("name", "now".into())),
        (
            "names_of_tools_are_unique",
            json!({ "toolConfig": { "tools": [{ "toolSpec": now() }, { "toolSpec": now() }] } }),
            json!({ "toolConfig": tools(now()) }),
        ),
        ("texts_are_not_blank", content(json!([text(" \n")])), json!({})),
        ("texts_are_not_blank", json!({ "system": [text("")] }), json!({ "system": [text("x")] })),
        ("no_space_at_the_end", beginning("So "), beginning("So")),
        (
            "arguments_are_an_object",
            called_with("input", "x".into()),
            called_with("input", json!({ "a": 1 })),
        ),
        ("thoughts_have_their_proof", turns(&[unproven], &[text("x")]), turns(&[thought], &[text("x")])),
        ("four_cache_points", cached(5), cached(4)),
        ("media_have_their_form", image("bmp", bytes.clone()), image("png", bytes.clone())),
        (
            "media_have_their_form",
            image("png", json!({ "url": "https://a.example/a.png" })),
            image("png", json!({ "s3Location": { "uri": "s3://bucket/a.png" } })),
        ),
        (
            "media_have_their_form",
            turns(std::slice::from_ref(&image_of_model), &[text("x")]),
            content(json!([image_of_model])),
        ),
        (
            "names_of_documents",
            content(json!([document("a.pdf"), text("x")])),
            content(json!([document("a (1) [b]-c"), text("x")])),
        ),
        (
            "names_of_documents",
            content(json!([document("a"), document("A"), text("x")])),
            content(json!([document("a"), document("b"), text("x")])),
        ),
        (
            "a_text_beside_documents",
            content(json!([document("a")])),
            content(json!([document("a"), text("x")])),
        ),
        ("calls_need_tools", json!({ "messages": right["messages"] }), right.clone()),
        ("a_choice_has_its_tools", json!({ "toolConfig": { "tools": [] } }), choice(json!({ "any": {} }))),
        (
            "a_choice_has_its_tools",
            choice(json!({ "tool": { "name": "then" } })),
            choice(json!({ "tool": { "name": "now" } })),
        ),
        ("a_choice_has_its_tools", choice(json!({ "none": {} })), choice(json!({ "auto": {} }))),
        (
            "schemas_of_tools",
            json!({ "toolConfig": tools(json!({ "name": "now", "inputSchema": { "json": {} } })) }),
            json!({ "toolConfig": tools(now()) }),
        ),
        ("schemas_of_tools", strict(json!({ "type": "object" })), strict(closed.clone())),
        ("schemas_of_answers_are_closed", form("{"), form(&closed.to_string())),
        ("schemas_of_answers_are_closed", form(r#"{"type":"object"}"#), form(&closed.to_string())),
        ("numbers_are_in_range", inference("temperature", json!(1.5)), inference("temperature", json!(1))),
        ("numbers_are_in_range", inference("maxTokens", json!(0)), inference("maxTokens", json!(1))),
        (
            "stops_are_not_white",
            inference("stopSequences", json!([" "])),
            inference("stopSequences", json!(["x"])),
        ),
        (
            "metadata_fits",
            json!({ "requestMetadata": { "a": "{}" } }),
            json!({ "requestMetadata": { "a b": "c-d.e" } }),
        ),
        ("metadata_fits", json!({ "requestMetadata": {} }), json!({ "requestMetadata": { "a": "" } })),
        (
            "beside_thinking",
            thinking(json!({ "inferenceConfig": { "maxTokens": 2048, "temperature": 0.5 } })),
            thinking(json!({ "inferenceConfig": { "maxTokens": 2048, "temperature": 1 } })),
        ),
        ("beside_thinking", thinking(choice(json!({ "any": {} }))), thinking(choice(json!({ "auto": {} })))),
        ("beside_thinking", thinking(inference("maxTokens", json!(1024))), thinking(json!({}))),
        (
            "words_are_known",
            json!({ "serviceTier": { "type": "fast" } }),
            json!({ "serviceTier": { "type": "flex" } }),
        ),
        ("words_are_known", failed("bad"), failed("error")),
        ("members_are_known", json!({ "max_tokens": 1 }), json!({ "performanceConfig": {} })),
        ("members_are_known", inference("top_k", json!(1)), inference("topP", json!(1))),
        (
            "temperature_or_top_p",
            json!({ "inferenceConfig": { "temperature": 1, "topP": 1 } }),
            inference("topP", json!(1)),
        ),
        ("plain_settings", json!({ "additionalModelRequestFields": { "top_k": 1 } }), json!({})),
        ("plain_settings", strict(closed), json!({ "toolConfig": tools(now()) })),
        ("plain_settings", failed("error"), right),
        ("no_cache_points", cached(1), cached(0)),
    ];
    every_rule_refuses_and_takes(Protocol::Converse, &content(json!([text("Hi")])), &cases);
}
