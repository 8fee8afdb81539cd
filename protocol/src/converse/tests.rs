//! The documents of the protocol, read and written.

#![expect(clippy::needless_pass_by_value, reason = "documents are written in place")]

use serde_json::{Value, json};

use crate::capabilities::{Capabilities, Thinking};
use crate::conversation::{Conversation, Delta, FailureKind, Protocol};
use crate::{Defaults, EncodedRequest, ResponseContext};

const MODEL: &str = "us.anthropic.claude-sonnet-4-20250514-v1:0";
const OTHER_MODEL: &str = "meta.llama3-70b-instruct-v1:0";

fn written(source: Protocol, request: Value, model: &str) -> EncodedRequest {
    let conversation = source.request_in(request, model, false).expect("a request");
    let conversation = Conversation { model: model.to_owned(), ..conversation };
    let defaults = Defaults { max_tokens: 4096, thinking: Thinking::Budget, ..Defaults::default() };
    let capabilities = Capabilities { bucket_urls: true, ..Capabilities::MOST };
    Protocol::Converse.request_out(&conversation, defaults.of_upstream(capabilities))
}

/// Where the client wrote what is dropped.
fn dropped(outgoing: &EncodedRequest) -> Vec<&str> {
    outgoing.dropped.iter().map(|place| &**place).collect()
}

fn question(content: Value) -> Value {
    json!({ "model": "m", "max_tokens": 9000, "messages": [{ "role": "user", "content": content }] })
}

#[test]
fn conversation_with_tools_is_written_as_blocks() {
    let call = json!({ "id": "c1", "type": "function", "function": { "name": "now", "arguments": "{\"zone\":\"UTC\"}" } });
    let outgoing = written(
        Protocol::Chat,
        json!({
            "model": "m",
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": "What time is it?" },
                { "role": "assistant", "tool_calls": [call] },
                { "role": "tool", "tool_call_id": "c1", "content": "noon" },
                { "role": "user", "content": "Thanks." },
            ],
            "tools": [{ "type": "function", "function": { "name": "now", "parameters": { "type": "object" } } }],
            "tool_choice": "required", "max_completion_tokens": 64, "temperature": 0.5, "stop": ["END"],
            "service_tier": "flex", "metadata": { "team": "one" },
        }),
        OTHER_MODEL,
    );
    assert_eq!(
        outgoing.body,
        json!({
            "messages": [
                { "role": "user", "content": [{ "text": "What time is it?" }] },
                { "role": "assistant", "content": [{ "toolUse": { "toolUseId": "c1", "name": "now", "input": { "zone": "UTC" } } }] },
                { "role": "user", "content": [
                    { "toolResult": { "toolUseId": "c1", "content": [{ "text": "noon" }] } }, { "text": "Thanks." },
                ] },
            ],
            "system": [{ "text": "Be brief." }],
            "toolConfig": {
                "tools": [{ "toolSpec": { "name": "now", "inputSchema": { "json": { "type": "object" } } } }],
                "toolChoice": { "any": {} },
            },
            "inferenceConfig": { "maxTokens": 64, "stopSequences": ["END"], "temperature": 0.5 },
            "additionalModelResponseFieldPaths": ["/stop_sequence"],
            "serviceTier": { "type": "flex" },
            "requestMetadata": { "team": "one" },
        })
    );
    assert_eq!(dropped(&outgoing), [""; 0]);
}

#[test]
fn objects_in_buckets_are_read_only_if_the_operator_allows_it() {
    let image = json!({ "type": "image", "source": { "type": "url", "url": "s3://bucket/a.png" } });
    let request = question(json!([{ "type": "text", "text": "x" }, image]));
    let conversation = Protocol::Messages.request_in(request, MODEL, false).expect("a request");
    for (bucket_urls, expected) in [(false, 1), (true, 2)] {
        let capabilities = Capabilities { bucket_urls, ..Capabilities::MOST };
        let defaults = Defaults::default().of_upstream(capabilities);
        let outgoing = Protocol::Converse.request_out(&conversation, defaults);
        let content = outgoing.body["messages"][0]["content"].as_array().map(Vec::len);
        assert_eq!((content, outgoing.dropped.len()), (Some(expected), 2 - expected), "{bucket_urls}");
    }
}

#[test]
fn media_are_bytes_or_s3_objects_and_urls_are_reported_as_dropped() {
    let image = |source: Value| json!({ "type": "image", "source": source });
    let pdf = json!({ "type": "base64", "media_type": "application/pdf", "data": "AA==" });
    let outgoing = written(
        Protocol::Messages,
        question(json!([
            image(json!({ "type": "base64", "media_type": "image/png", "data": "AA==" })),
            image(json!({ "type": "url", "url": "s3://bucket/a.png" })),
            image(json!({ "type": "url", "url": "https://a.example/a.png" })),
            { "type": "document", "source": pdf, "title": "plan.pdf" },
        ])),
        MODEL,
    );
    assert_eq!(
        outgoing.body["messages"][0]["content"],
        json!([
            { "image": { "format": "png", "source": { "bytes": "AA==" } } },
            { "image": { "format": "png", "source": { "s3Location": { "uri": "s3://bucket/a.png" } } } },
            { "document": { "format": "pdf", "name": "plan", "source": { "bytes": "AA==" } } },
            { "text": "…" },
        ])
    );
    assert_eq!(dropped(&outgoing), ["/messages/0/content/2"]);
}

#[test]
fn thinking_top_k_and_cache_points_reach_only_supporting_models() {
    let mut request = question(
        json!([{ "type": "text", "text": "Hi", "cache_control": { "type": "ephemeral", "ttl": "1h" } }]),
    );
    request["thinking"] = json!({ "type": "enabled", "budget_tokens": 2048 });
    let outgoing = written(Protocol::Messages, request.clone(), MODEL);
    assert_eq!(
        outgoing.body,
        json!({
            "messages": [{ "role": "user", "content": [
                { "text": "Hi" }, { "cachePoint": { "type": "default", "ttl": "1h" } },
            ] }],
            "inferenceConfig": { "maxTokens": 9000 },
            "additionalModelRequestFields": { "thinking": { "type": "enabled", "budget_tokens": 2048 } },
        })
    );
    assert_eq!(dropped(&outgoing), [""; 0]);
    request["top_k"] = json!(5);
    let other = written(Protocol::Messages, request, OTHER_MODEL);
    assert_eq!(other.body["additionalModelRequestFields"], Value::Null);
    let mut places = dropped(&other);
    places.sort_unstable();
    assert_eq!(places, ["/messages/0/content/0/cache_control", "/thinking/budget_tokens", "/top_k"]);
}

#[test]
fn tool_choice_none_omits_tools_unless_some_were_called() {
    let tools = json!([{ "name": "now", "input_schema": { "type": "object" } }]);
    let mut request = question(json!("Hi"));
    (request["tools"], request["tool_choice"]) = (tools, json!({ "type": "none" }));
    let outgoing = written(Protocol::Messages, request.clone(), MODEL);
    assert_eq!((&outgoing.body["toolConfig"], dropped(&outgoing)), (&Value::Null, Vec::new()));
    request["messages"] = json!([
        { "role": "user", "content": "Hi" },
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "c1", "name": "now", "input": {} }] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "c1", "content": "noon" }] },
    ]);
    let outgoing = written(Protocol::Messages, request.clone(), MODEL);
    assert_eq!(outgoing.body["toolConfig"]["tools"][0]["toolSpec"]["name"], "now");
    assert_eq!(dropped(&outgoing), ["/tool_choice"]);
    for name in ["tools", "tool_choice"] {
        request[name].take();
    }
    let outgoing = written(Protocol::Messages, request, MODEL);
    let declared = &outgoing.body["toolConfig"]["tools"][0]["toolSpec"];
    assert_eq!(
        (&declared["name"], &declared["inputSchema"]["json"]["type"]),
        (&json!("now"), &json!("object"))
    );
}

#[test]
fn response_schema_is_text_and_strict_reaches_only_enforcing_models() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"], "additionalProperties": false });
    let tool = json!({ "type": "function", "name": "now", "parameters": schema, "strict": true });
    let format = json!({ "type": "json_schema", "name": "n", "schema": schema, "strict": true });
    let request = json!({ "model": "m", "input": "Hi", "tools": [tool], "text": { "format": format } });
    let outgoing = written(Protocol::Responses, request.clone(), MODEL);
    let written_schema = &outgoing.body["outputConfig"]["textFormat"]["structure"]["jsonSchema"];
    assert_eq!(written_schema["name"], "n");
    let text = written_schema["schema"].as_str().expect("a text");
    assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), schema);
    assert_eq!(outgoing.body["toolConfig"]["tools"][0]["toolSpec"]["strict"], true);
    let other = written(Protocol::Responses, request, OTHER_MODEL);
    assert_eq!(other.body["toolConfig"]["tools"][0]["toolSpec"]["strict"], Value::Null);
    assert_eq!(dropped(&other), ["/tools/0/strict"]);
}

/// The answer in both forms: whole, and as a stream.
fn answer() -> (Value, Vec<(&'static str, Value)>) {
    let usage = json!({ "inputTokens": 5, "outputTokens": 7, "totalTokens": 15, "cacheReadInputTokens": 3 });
    let whole = json!({
        "output": { "message": { "role": "assistant", "content": [
            { "reasoningContent": { "reasoningText": { "text": "Hm.", "signature": "c2ln" } } },
            { "reasoningContent": { "redactedContent": "AAEC" } },
            { "text": "Noon?" },
            { "toolUse": { "toolUseId": "c1", "name": "now", "input": { "zone": "UTC" } } },
        ] } },
        "stopReason": "tool_use",
        "usage": usage,
        "metrics": { "latencyMs": 9 },
    });
    let delta = |index: u64, delta: Value| {
        ("contentBlockDelta", json!({ "delta": delta, "contentBlockIndex": index, "p": "ab" }))
    };
    let stop = |index: u64| ("contentBlockStop", json!({ "contentBlockIndex": index, "p": "abc" }));
    let stream = vec![
        ("messageStart", json!({ "role": "assistant", "p": "a" })),
        delta(0, json!({ "reasoningContent": { "text": "Hm." } })),
        delta(0, json!({ "reasoningContent": { "signature": "c2ln" } })),
        stop(0),
        delta(1, json!({ "reasoningContent": { "redactedContent": "AA==" } })),
        delta(1, json!({ "reasoningContent": { "redactedContent": "AQI=" } })),
        stop(1),
        delta(2, json!({ "text": "No" })),
        delta(2, json!({ "text": "on?" })),
        stop(2),
        (
            "contentBlockStart",
            json!({ "start": { "toolUse": { "toolUseId": "c1", "name": "now" } }, "contentBlockIndex": 3 }),
        ),
        delta(3, json!({ "toolUse": { "input": "{\"zone\":" } })),
        delta(3, json!({ "toolUse": { "input": "\"UTC\"}" } })),
        stop(3),
        ("messageStop", json!({ "stopReason": "tool_use" })),
        ("metadata", json!({ "usage": usage, "metrics": { "latencyMs": 9 } })),
    ];
    (whole, stream)
}

fn deltas(events: &[(&'static str, Value)]) -> Vec<Delta> {
    let (mut reader, mut deltas) = (Protocol::Converse.stream_in(), Vec::new());
    for (name, data) in events {
        reader.event(Some(name), &data.to_string(), &mut deltas).expect("an event");
    }
    reader.end(&mut deltas).expect("the end");
    deltas
}

fn context() -> ResponseContext {
    ResponseContext {
        model: "m".to_owned(),
        id: "msg_1".to_owned(),
        created: 1,
        ..ResponseContext::default()
    }
}

#[test]
fn answer_and_stream_translate_identically() {
    let (whole, stream) = answer();
    let answer = Protocol::Converse.answer_in(whole).expect("an answer");
    let message = Protocol::Messages.answer_out(answer, &context());
    assert_eq!(
        message,
        json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
            "content": [
                { "type": "thinking", "thinking": "Hm.", "signature": "c2ln" },
                { "type": "redacted_thinking", "data": "AAEC" },
                { "type": "text", "text": "Noon?" },
                { "type": "tool_use", "id": "c1", "name": "now", "input": { "zone": "UTC" } },
            ],
            "stop_reason": "tool_use", "stop_sequence": null,
            "usage": { "input_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 3, "output_tokens": 7 },
        })
    );
    let mut writer = Protocol::Messages.stream_out(context());
    let mut bytes = Vec::new();
    for delta in deltas(&stream) {
        writer.delta(delta, &mut bytes);
    }
    let text = String::from_utf8(bytes).expect("text");
    for expected in [
        r#""thinking":"Hm.""#,
        r#""signature":"c2ln""#,
        r#""type":"redacted_thinking","data":"AAEC""#,
        r#""text":"on?""#,
        r#""partial_json":"\"UTC\"}""#,
        r#""stop_reason":"tool_use""#,
        r#""cache_read_input_tokens":3,"output_tokens":7"#,
        "message_stop",
    ] {
        assert!(text.contains(expected), "{expected} is missing: {text}");
    }
}

#[test]
fn complete_answer_replaces_a_stream() {
    let (whole, stream) = answer();
    let bytes = Protocol::Converse.streamed(whole, context()).expect("events");
    let text = String::from_utf8(bytes).expect("text");
    let data = text.trim().strip_prefix("data: ").expect("an event");
    let (mut reader, mut read) = (Protocol::Converse.stream_in(), Vec::new());
    reader.event(None, data, &mut read).expect("an event");
    reader.end(&mut read).expect("the end");
    let calls = |deltas: &[Delta]| -> String {
        deltas
            .iter()
            .filter_map(
                |delta| if let Delta::CallInput { text, .. } = delta { Some(text.as_str()) } else { None },
            )
            .collect()
    };
    assert_eq!(calls(&read), calls(&deltas(&stream)));
    assert_eq!(read.last(), Some(&Delta::Done));
}

#[test]
fn stream_requires_its_end_but_not_its_usage() {
    let (_, stream) = answer();
    let (mut reader, mut read) = (Protocol::Converse.stream_in(), Vec::new());
    for (name, data) in &stream[..stream.len() - 2] {
        reader.event(Some(name), &data.to_string(), &mut read).expect("an event");
    }
    assert!(reader.end(&mut Vec::new()).is_err());
    assert_eq!(deltas(&stream[..stream.len() - 1]).last(), Some(&Delta::Done));
}

#[test]
fn errors_parse_in_both_spellings_and_model_errors_are_server_errors() {
    for (status, body, kind) in [
        (400, r#"{"message":"no"}"#, FailureKind::InvalidRequest),
        (403, r#"{"Message":"no"}"#, FailureKind::PermissionDenied),
        (408, r#"{"message":"no"}"#, FailureKind::Timeout),
        (424, r#"{"message":"no","originalStatusCode":400}"#, FailureKind::Server),
        (429, r#"{"message":"no"}"#, FailureKind::RateLimited),
        (503, r#"{"message":"no"}"#, FailureKind::Overloaded),
    ] {
        let failure = Protocol::Converse.failure_in(status, body.as_bytes());
        assert_eq!((failure.kind, failure.message.as_str()), (kind, "no"), "{status}");
    }
}
