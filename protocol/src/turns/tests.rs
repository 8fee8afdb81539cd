use serde_json::{Value, json};

use super::*;
use crate::EncodedRequest;

const DEFAULTS: Defaults = Defaults {
    max_tokens: 64,
    thinking: crate::capabilities::Thinking::Budget,
    functions_only: false,
    capabilities: crate::capabilities::Capabilities::MOST,
};

fn written(source: Protocol, request: Value, target: Protocol) -> Value {
    let conversation = source.request_in(request, "m", false).expect("a request");
    target.request_out(&conversation, DEFAULTS).body
}

fn kinds(messages: &Value) -> Vec<String> {
    let kind = |message: &Value| {
        let content = message["content"].as_array().into_iter().flatten();
        let blocks = content.filter_map(|block| block["type"].as_str()).collect::<Vec<_>>().join("+");
        format!("{} {blocks}", message["role"].as_str().unwrap_or_default()).trim().to_owned()
    };
    messages.as_array().into_iter().flatten().map(kind).collect()
}

#[test]
fn content_around_results_is_moved_after_them() {
    let request = json!({
        "model": "m", "max_tokens": 64,
        "messages": [
            { "role": "user", "content": "q" },
            { "role": "assistant", "content": [
                { "type": "tool_use", "id": "a", "name": "f", "input": {} },
                { "type": "tool_use", "id": "b", "name": "g", "input": {} },
            ] },
            { "role": "user", "content": [
                { "type": "text", "text": "before" },
                { "type": "tool_result", "tool_use_id": "b", "content": "of b" },
                { "type": "text", "text": "between" },
                { "type": "tool_result", "tool_use_id": "a", "content": "of a" },
            ] },
        ],
    });
    let chat = written(Protocol::Messages, request.clone(), Protocol::Chat);
    assert_eq!(chat["messages"][2], json!({ "role": "tool", "tool_call_id": "a", "content": "of a" }));
    assert_eq!(chat["messages"][3], json!({ "role": "tool", "tool_call_id": "b", "content": "of b" }));
    assert_eq!(kinds(&chat["messages"])[4..], ["user", "user"]);
    let native = written(Protocol::Messages, request, Protocol::Native);
    let results = &native["contents"][2]["parts"];
    assert_eq!(results[0]["functionResponse"]["response"], json!({ "output": "of a" }));
    assert_eq!(results[1]["functionResponse"]["name"], "g");
    assert_eq!(results.as_array().map(Vec::len), Some(2));
}

#[test]
fn multiple_results_of_one_call_are_merged() {
    let call = json!({ "id": "c", "type": "function", "function": { "name": "f", "arguments": "{}" } });
    let result = |text: &str| json!({ "role": "tool", "tool_call_id": "c", "content": text });
    let request = json!({ "model": "m", "messages": [
        { "role": "user", "content": "q" },
        { "role": "assistant", "tool_calls": [call] },
        result("one"),
        result("two"),
    ] });
    let conversation = Protocol::Chat.request_in(request, "m", false).expect("a request");
    for target in [Protocol::Responses, Protocol::Messages, Protocol::Native, Protocol::Converse] {
        let outgoing = target.request_out(&conversation, DEFAULTS);
        let body = outgoing.body.to_string();
        assert!(body.contains("one") && body.contains("two"), "{target:?}: {body}");
        assert!(outgoing.dropped.is_empty(), "{target:?}: {:?}", outgoing.dropped);
    }
}

#[test]
fn result_matches_the_nearest_call_with_its_id() {
    let call = |id: &str, arguments: &str| json!({ "type": "function_call", "call_id": id, "name": "f", "arguments": arguments });
    let output = |text: &str| json!({ "type": "function_call_output", "call_id": "x", "output": text });
    let request = json!({ "model": "m", "input": [
        { "role": "user", "content": "q" },
        call("x", "{\"a\":1}"), output("one"),
        call("x", "{\"a\":2}"), { "role": "developer", "content": "note" }, output("two"),
    ] });
    let messages = written(Protocol::Responses, request, Protocol::Messages);
    let messages = &messages["messages"];
    let (first, second) = (&messages[1]["content"][0], &messages[3]["content"][0]);
    assert_eq!((&first["id"], &first["input"]), (&json!("x"), &json!({ "a": 1 })));
    assert_eq!(second["input"], json!({ "a": 2 }));
    assert_ne!(second["id"], "x");
    assert_eq!(messages[2]["content"][0]["content"], "one");
    assert_eq!(messages[4]["content"][0]["content"], "two");
    assert_eq!(messages[4]["content"][0]["tool_use_id"], second["id"]);
}

#[test]
fn invalid_ids_and_names_are_rewritten_consistently() {
    let name = "n".repeat(80);
    let request = json!({
        "model": "m",
        "messages": [
            { "role": "user", "content": "q" },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "functions.f:0", "type": "function", "function": { "name": name, "arguments": "" } },
            ] },
            { "role": "tool", "tool_call_id": "functions.f:0", "content": "r" },
        ],
        "tools": [{ "type": "function", "function": { "name": name, "parameters": { "type": "object" } } }],
        "tool_choice": { "type": "function", "function": { "name": name } },
    });
    let messages = written(Protocol::Chat, request.clone(), Protocol::Messages);
    let call = &messages["messages"][1]["content"][0];
    assert_eq!(call["name"], name.as_str(), "a name that conforms stays");
    assert_eq!(call["id"], messages["messages"][2]["content"][0]["tool_use_id"]);
    assert!(!call["id"].as_str().expect("an id").contains(['.', ':']));
    let native = written(Protocol::Chat, request.clone(), Protocol::Native);
    let short = &native["tools"][0]["functionDeclarations"][0]["name"];
    assert_eq!(short.as_str().map(str::len), Some(64));
    assert_eq!(native["contents"][1]["parts"][0]["functionCall"]["name"], *short);
    assert_eq!(native["contents"][2]["parts"][0]["functionResponse"]["name"], *short);
    assert_eq!(native["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"], json!([short]));
    assert_eq!(native["contents"][1]["parts"][0]["functionCall"]["id"], "functions.f:0");
    assert_eq!(native, written(Protocol::Chat, request, Protocol::Native), "names are stable");
}

#[test]
fn custom_tool_becomes_a_text_function_where_unsupported() {
    let request = json!({
        "model": "m",
        "tools": [{ "type": "custom", "name": "patch", "description": "Patches.",
            "format": { "type": "grammar", "syntax": "lark", "definition": "start: /.+/" } }],
        "tool_choice": { "type": "custom", "name": "patch" },
        "input": [
            { "role": "user", "content": "q" },
            { "type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "a \"b\"" },
            { "type": "custom_tool_call_output", "call_id": "c", "output": "done" },
        ],
    });
    let messages = written(Protocol::Responses, request.clone(), Protocol::Messages);
    assert_eq!(messages["tools"][0]["input_schema"]["required"], json!(["input"]));
    assert!(messages["tools"][0]["description"].as_str().is_some_and(|text| text.contains("start: /.+/")));
    assert_eq!(messages["messages"][1]["content"][0]["input"], json!({ "input": "a \"b\"" }));
    assert_eq!(messages["tool_choice"]["name"], "patch");
    let conversation = Protocol::Responses.request_in(request, "m", false).expect("a request");
    let simple =
        Protocol::Chat.request_out(&conversation, Defaults { functions_only: true, ..DEFAULTS }).body;
    assert_eq!(simple["tools"][0]["type"], "function");
    assert_eq!(
        simple["messages"][1]["tool_calls"][0]["function"]["arguments"],
        "{\"input\":\"a \\\"b\\\"\"}"
    );
    let full = Protocol::Chat.request_out(&conversation, DEFAULTS).body;
    assert_eq!(full["tools"][0]["type"], "custom");
}

#[test]
fn conforming_conversation_is_not_copied() {
    let request = json!({
        "model": "m",
        "messages": [
            { "role": "user", "content": "q" },
            { "role": "assistant", "content": "I look.", "tool_calls": [
                { "id": "c1", "type": "function", "function": { "name": "f", "arguments": "{}" } },
            ] },
            { "role": "tool", "tool_call_id": "c1", "content": "r" },
        ],
    });
    let conversation = Protocol::Chat.request_in(request, "m", false).expect("a request");
    for target in [Protocol::Responses, Protocol::Messages, Protocol::Native] {
        let arranged = arrange(&conversation, target, DEFAULTS);
        assert!(matches!(arranged.conversation, Cow::Borrowed(_)), "{target:?}");
    }
}

#[test]
fn media_of_the_model_reach_only_protocols_that_have_them() {
    for part in [
        json!({ "inlineData": { "mimeType": "image/png", "data": "iVBORw0KGgo=" } }),
        json!({ "inlineData": { "mimeType": "audio/wav", "data": "AA==" } }),
        json!({ "inlineData": { "mimeType": "application/pdf", "data": "AA==" } }),
    ] {
        let request = json!({ "contents": [
            { "role": "user", "parts": [{ "text": "draw" }] },
            { "role": "model", "parts": [{ "text": "Here:" }, part] },
            { "role": "user", "parts": [{ "text": "again" }] },
        ] });
        let conversation = Protocol::Native.request_in(request, "m", false).expect("a request");
        for target in [Protocol::Chat, Protocol::Responses, Protocol::Messages, Protocol::Converse] {
            let EncodedRequest { body, dropped } = target.request_out(&conversation, DEFAULTS);
            assert!(dropped.iter().any(|at| at == "/contents/1/parts/1"), "{target:?}: {dropped:?}");
            assert!(!body.to_string().contains("AA==") && !body.to_string().contains("iVBOR"), "{body}");
        }
    }
}
