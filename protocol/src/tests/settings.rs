//! Settings of requests, as providers of the target's protocol accept them.

use serde_json::{Value, json};

use super::super::{Defaults, EncodedRequest};
use super::DEFAULTS;
use crate::capabilities::{Capabilities, Roles, TokenLimit};
use crate::conversation::Protocol::{self, Chat, Messages, Native, Responses};

fn sent_to(source: Protocol, target: Protocol, request: Value, server: Capabilities) -> (Value, Vec<String>) {
    let stream = request["stream"] == true;
    let conversation = source.request_in(request, "m", stream).expect("a request");
    let defaults = Defaults { capabilities: server, ..DEFAULTS };
    let EncodedRequest { body, dropped } = target.request_out(&conversation, defaults);
    (body, dropped.into_iter().map(Into::into).collect())
}

fn sent(source: Protocol, target: Protocol, request: Value) -> (Value, Vec<String>) {
    sent_to(source, target, request, Capabilities::MOST)
}

#[test]
fn instructions_are_merged_for_single_system_message_servers() {
    let server = Capabilities { roles: Roles::SystemFirst, ..Capabilities::MOST };
    let request = json!({ "instructions": "Be brief.", "input": [
        { "role": "developer", "content": "No tools." },
        { "role": "user", "content": "one" },
        { "role": "system", "content": [{ "type": "input_text", "text": "A note." }] },
    ] });
    let (body, dropped) = sent_to(Responses, Chat, request.clone(), server);
    let expected = json!([
        { "role": "system", "content": "Be brief.\n\nNo tools.\n\nA note." },
        { "role": "user", "content": "one" },
    ]);
    assert_eq!(body["messages"], expected);
    assert_eq!(dropped, ["/input/2/role"]);
    let (body, _) = sent(Responses, Chat, request);
    assert_eq!(body["messages"].as_array().map(Vec::len), Some(4));
}

#[test]
fn token_limit_uses_the_servers_name_and_minimum() {
    let request = json!({ "max_tokens": 8, "messages": [{ "role": "user", "content": "q" }] });
    let newer = Capabilities { token_limit: TokenLimit::MaxCompletionTokens, ..Capabilities::MOST };
    let (body, _) = sent_to(Messages, Chat, request.clone(), newer);
    assert_eq!((&body["max_completion_tokens"], &body["max_tokens"]), (&json!(8), &Value::Null));
    let (body, _) = sent(Messages, Chat, request.clone());
    assert_eq!((&body["max_completion_tokens"], &body["max_tokens"]), (&Value::Null, &json!(8)));
    let (body, dropped) = sent(Messages, Responses, request);
    assert_eq!((&body["max_output_tokens"], dropped), (&json!(16), vec!["/max_tokens".to_owned()]));
}

#[test]
fn unsupported_reasoning_and_stream_options_are_not_sent() {
    let server = Capabilities { reasoning_content: false, stream_options: false, ..Capabilities::MOST };
    let request = json!({ "max_tokens": 8, "stream": true, "messages": [
        { "role": "user", "content": "q" },
        { "role": "assistant", "content": [
            { "type": "thinking", "thinking": "hm", "signature": "s" }, { "type": "text", "text": "Yes." }] },
        { "role": "user", "content": "more" },
    ] });
    let (body, dropped) = sent_to(Messages, Chat, request, server);
    assert_eq!(body["messages"][1], json!({ "role": "assistant", "content": "Yes." }));
    assert_eq!(body["stream_options"], Value::Null);
    assert_eq!(dropped, ["/messages/1/content/0"]);
}

#[test]
fn tool_choice_is_dropped_with_its_tool() {
    let forced = json!({ "max_tokens": 64, "messages": [{ "role": "user", "content": "q" }],
        "tools": [{ "type": "web_search_1", "name": "web_search" }, { "name": "f", "input_schema": {} }],
        "tool_choice": { "type": "tool", "name": "web_search" } });
    for (target, member) in [(Chat, "tool_choice"), (Responses, "tool_choice"), (Native, "toolConfig")] {
        let (body, dropped) = sent(Messages, target, forced.clone());
        assert_eq!(body[member], Value::Null, "{target:?}");
        assert_eq!(dropped, ["/tools/0", "/tool_choice"], "{target:?}");
        let mut none = forced.clone();
        none["tools"].as_array_mut().expect("tools").pop();
        none["tool_choice"] = json!({ "type": "auto", "disable_parallel_tool_use": true });
        let (body, _) = sent(Messages, target, none);
        assert_eq!((&body[member], &body["parallel_tool_calls"]), (&Value::Null, &Value::Null), "{target:?}");
    }
    let request = json!({ "input": "q", "tools": [{ "type": "web_search" }], "tool_choice": "required" });
    let (body, dropped) = sent(Responses, Messages, request);
    assert_eq!((&body["tool_choice"], dropped.len()), (&Value::Null, 2));
}

#[test]
fn messages_protocol_gets_either_temperature_or_top_p() {
    let messages = json!([{ "role": "user", "content": "q" }]);
    for (temperature, kept, dropped) in [(0.2, "temperature", "/top_p"), (1.0, "top_p", "/temperature")] {
        let request = json!({ "messages": messages, "temperature": temperature, "top_p": 0.9 });
        let (body, lost) = sent(Chat, Messages, request);
        assert!(body[kept].is_number(), "{body}");
        assert_eq!(lost, [dropped]);
    }
}

#[test]
fn thinking_settings_are_translated_for_the_target() {
    let request = |thinking: Value| json!({ "max_tokens": 4000, "thinking": thinking, "messages": [{ "role": "user", "content": "q" }] });
    let (body, dropped) = sent(Messages, Responses, request(json!({ "type": "disabled" })));
    assert_eq!((&body["reasoning"], &body["include"]), (&Value::Null, &Value::Null));
    assert_eq!(dropped, ["/thinking"]);
    let on = json!({ "type": "enabled", "budget_tokens": 2000 });
    let (body, _) = sent(Messages, Native, request(on.clone()));
    assert_eq!(body["generationConfig"]["thinkingConfig"]["includeThoughts"], true);
    let (body, _) = sent(Messages, Responses, request(on));
    assert_eq!(body["reasoning"], json!({ "effort": "low", "summary": "auto" }));
    let hidden = json!({ "type": "enabled", "budget_tokens": 2000, "display": "omitted" });
    let (body, _) = sent(Messages, Native, request(hidden));
    assert_eq!(body["generationConfig"]["thinkingConfig"], json!({ "thinkingBudget": 2000 }));
    // "Let the model decide", for a model that needs a number.
    let native = json!({ "contents": [{ "parts": [{ "text": "q" }] }],
        "generationConfig": { "thinking_config": { "thinking_budget": "-1" } } });
    let (body, _) = sent(Native, Messages, native);
    assert_eq!(body["thinking"], json!({ "type": "enabled", "budget_tokens": 8192 }));
    for reasoning in [
        json!({ "reasoning": { "max_tokens": 2000 } }),
        json!({ "thinking": { "type": "enabled", "budget_tokens": 2000 } }),
    ] {
        let mut chat = reasoning;
        chat["messages"] = json!([{ "role": "user", "content": "q" }]);
        chat["top_k"] = json!(5);
        let (body, dropped) = sent(Chat, Native, chat);
        assert_eq!(body["generationConfig"]["thinkingConfig"]["thinkingBudget"], 2000);
        assert_eq!((&body["generationConfig"]["topK"], dropped.len()), (&json!(5), 0));
    }
}

#[test]
fn proof_reaches_only_its_maker_and_unproven_calls_skip_validation() {
    let history = |proof: &str| {
        json!({ "max_tokens": 4000, "thinking": { "type": "enabled", "budget_tokens": 2000 }, "messages": [
            { "role": "user", "content": "q" },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "Hm.", "signature": proof },
                { "type": "tool_use", "id": "c", "name": "f", "input": {} }] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "c", "content": "8" }] },
        ] })
    };
    for target in [Responses, Native] {
        for foreign in ["EqQB", "gw-messages:EqQB", "gw-chat:EqQB"] {
            let (body, dropped) = sent(Messages, target, history(foreign));
            assert!(!body.to_string().contains("EqQB"), "{target:?}: {body}");
            assert!(dropped.contains(&"/messages/1/content/0".to_owned()), "{dropped:?}");
        }
    }
    let (body, _) = sent(Messages, Native, history("EqQB"));
    assert_eq!(body["contents"][1]["parts"][0]["thoughtSignature"], "skip_thought_signature_validator");
    let (body, dropped) = sent(Messages, Responses, history("gw-responses:gAAA"));
    let summary = json!([{ "type": "summary_text", "text": "Hm." }]);
    assert_eq!(
        body["input"][1],
        json!({ "type": "reasoning", "summary": summary, "encrypted_content": "gAAA" })
    );
    assert!(dropped.is_empty(), "{dropped:?}");
    let (body, _) = sent(Messages, Native, history("gw-native:AAAA"));
    assert_eq!(
        body["contents"][1]["parts"][0],
        json!({ "text": "Hm.", "thought": true, "thoughtSignature": "AAAA" })
    );

    // A thinking model has no proof for another maker's thought before a call.
    let native = json!({ "contents": [
        { "role": "user", "parts": [{ "text": "q" }] },
        { "role": "model", "parts": [
            { "text": "Hm.", "thought": true, "thoughtSignature": "AAAA" },
            { "functionCall": { "name": "f", "id": "x" } }] },
        { "role": "user", "parts": [{ "functionResponse": { "name": "f", "id": "x", "response": { "r": 1 } } }] },
    ], "generationConfig": { "thinkingConfig": { "thinkingBudget": 2048 } } });
    let (body, dropped) = sent(Native, Messages, native);
    assert_eq!(body["thinking"], Value::Null);
    assert!(dropped.contains(&"/contents/1/parts/0".to_owned()), "{dropped:?}");
    assert!(dropped.contains(&"/generationConfig/thinkingConfig/thinkingBudget".to_owned()), "{dropped:?}");
}

#[test]
fn chat_extra_content_signature_becomes_a_native_signature() {
    let call = json!({ "id": "c", "type": "function", "function": { "name": "f", "arguments": "{}" },
        "extra_content": { "google": { "thought_signature": "AAAA" } } });
    let request = json!({ "messages": [
        { "role": "user", "content": "q" },
        { "role": "assistant", "content": null, "tool_calls": [call] },
        { "role": "tool", "tool_call_id": "c", "content": "8" },
    ] });
    let (body, dropped) = sent(Chat, Native, request.clone());
    assert_eq!((&body["contents"][1]["parts"][0]["thoughtSignature"], dropped.len()), (&json!("AAAA"), 0));
    let (body, _) = sent(Chat, Messages, request.clone());
    assert!(!body.to_string().contains("AAAA"), "{body}");
    assert_eq!(sent(Chat, Chat, request.clone()).0["messages"], request["messages"]);
}

#[test]
fn native_members_parse_in_both_spellings_at_any_depth() {
    let request = json!({ "contents": [{ "parts": [
        { "file_data": { "file_uri": "https://e.example/a.pdf", "mime_type": "application/pdf" } },
        { "text": "q" },
    ] }], "generationConfig": { "presence_penalty": 0.5, "thinkingConfig": { "include_thoughts": true, "thinking_level": "HIGH" } } });
    let (body, dropped) = sent(Native, Responses, request);
    assert_eq!(body["input"][0]["content"][0]["file_url"], "https://e.example/a.pdf");
    assert_eq!(body["reasoning"], json!({ "effort": "high", "summary": "auto" }));
    assert_eq!(dropped, ["/generationConfig/presencePenalty"]);
}

#[test]
fn media_are_translated_by_their_actual_type() {
    let user = |part: Value| json!({ "messages": [{ "role": "user", "content": [part] }] });
    let file = user(json!({ "type": "file", "file": { "filename": "a.pdf", "file_data": "JVBERi0xLjQK" } }));
    let source = json!({ "type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQK" });
    let (body, dropped) = sent(Chat, Messages, file.clone());
    assert_eq!(
        body["messages"][0]["content"][0],
        json!({ "type": "document", "source": source, "title": "a.pdf" })
    );
    assert!(dropped.is_empty(), "{dropped:?}");
    assert_eq!(sent(Chat, Chat, file.clone()).0["messages"], file["messages"]);
    let picture = |url: &str| user(json!({ "type": "image_url", "image_url": { "url": url } }));
    let (body, _) = sent(Chat, Messages, picture("data:application/pdf;base64,JVBERi0xLjQK"));
    assert_eq!(body["messages"][0]["content"][0], json!({ "type": "document", "source": source }));
    let (body, _) = sent(Chat, Native, picture("https://e.example/a.webp?x=1"));
    assert_eq!(body["contents"][0]["parts"][0]["fileData"]["mimeType"], "image/webp");
    let (_, dropped) = sent(Chat, Messages, picture("data:image/bmp;base64,AAAA"));
    assert_eq!(dropped, ["/messages/0/content/0"]);
    let bucket = json!({ "contents": [{ "parts": [{ "text": "q" },
        { "fileData": { "fileUri": "gs://b/a.png", "mimeType": "image/png" } }] }] });
    for target in [Chat, Responses, Messages] {
        assert_eq!(sent(Native, target, bucket.clone()).1, ["/contents/0/parts/1"], "{target:?}");
    }
}

#[test]
fn search_results_and_block_documents_become_text_elsewhere() {
    let blocks = json!([{ "type": "text", "text": "found" }]);
    let request = json!({ "max_tokens": 64, "messages": [{ "role": "user", "content": [
        { "type": "search_result", "source": "https://e.example", "title": "T", "content": blocks },
        { "type": "document", "title": "D", "source": { "type": "content", "content": blocks } },
    ] }] });
    let (body, dropped) = sent(Messages, Chat, request.clone());
    let expected = json!([
        { "type": "text", "text": "T\nhttps://e.example\nfound" }, { "type": "text", "text": "D\nfound" }]);
    assert_eq!((&body["messages"][0]["content"], dropped.len()), (&expected, 0));
    assert_eq!(sent(Messages, Messages, request.clone()).0["messages"], request["messages"]);
}

#[test]
fn white_space_result_becomes_a_placeholder() {
    let result = |text: &str| {
        let call =
            json!({ "id": "c1", "type": "function", "function": { "name": "now", "arguments": "{}" } });
        let request = json!({ "messages": [
            { "role": "user", "content": "When?" },
            { "role": "assistant", "content": null, "tool_calls": [call] },
            { "role": "tool", "tool_call_id": "c1", "content": text },
        ] });
        sent(Chat, Messages, request).0["messages"][2]["content"][0]["content"].clone()
    };
    assert_eq!([result(" \n"), result("noon"), result("")], [json!("…"), json!("noon"), Value::Null]);
}

#[test]
fn numbers_over_the_native_maximum_are_clamped() {
    let request = json!({ "max_tokens": u64::MAX, "messages": [{ "role": "user", "content": "x" }] });
    let (body, _) = sent(Messages, Native, request);
    assert_eq!(body["generationConfig"]["maxOutputTokens"], i32::MAX);
}

#[test]
fn empty_translated_request_gets_a_placeholder_message() {
    let (body, dropped) = sent(Responses, Chat, json!({ "input": [{ "type": "mcp", "server_label": "s" }] }));
    assert_eq!(body["messages"], json!([{ "role": "user", "content": "…" }]));
    assert_eq!(dropped, ["/input/0"]);
}
