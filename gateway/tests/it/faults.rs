//! Faults on demand (ours), as a client sees them: by header, by model name and by configuration.

use std::time::{Duration, Instant};

use gatewright_gateway::{ApiKey, Config, FAULT_HEADER, Kind, ModelConfig, TargetConfig, UpstreamConfig};
use serde_json::{Value, json};

use crate::support::{Event, KEY, Server, events, read, send, start, start_with};

fn chat(stream: bool) -> Value {
    json!({ "model": "model-sol", "stream": stream, "messages": [{ "role": "user", "content": "count to 9" }] })
}

fn response(model: &str, stream: bool) -> Value {
    json!({ "model": model, "stream": stream, "input": "count to 9" })
}

fn with_tool(stream: bool) -> Value {
    let parameters = json!({
        "type": "object", "properties": { "value": { "type": "string" } }, "required": ["value"],
        "additionalProperties": false,
    });
    json!({
        "model": "model-sol", "stream": stream, "input": "Call echo with COMPAT-1a2b3c.",
        "tools": [{ "type": "function", "name": "echo", "parameters": parameters, "strict": true }],
        "tool_choice": { "type": "function", "name": "echo" },
    })
}

/// Status, content type and the received body; whether it ended cleanly.
async fn ask(server: &Server, path: &str, fault: &str, body: &Value) -> (u16, String, String, bool) {
    let mut response = send(server.post(path, body).header(FAULT_HEADER, fault)).await;
    let kind = response.headers()["content-type"].to_str().expect("ASCII").to_owned();
    let mut text = Vec::new();
    let whole = loop {
        match response.chunk().await {
            Ok(Some(chunk)) => text.extend_from_slice(&chunk),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    (response.status().as_u16(), kind, String::from_utf8(text).expect("UTF-8"), whole)
}

#[tokio::test]
async fn status_and_rate_limit_faults_use_the_protocols_error_form() {
    let server = start().await;
    let (status, body) =
        read(server.post("/v1/responses", &response("model-sol", false)).header(FAULT_HEADER, "status=503"))
            .await;
    assert_eq!((status, &body["error"]["code"]), (503, &json!("server_is_overloaded")));
    let (status, body) =
        read(server.post("/v1/chat/completions", &chat(true)).header(FAULT_HEADER, "status=418")).await;
    assert_eq!((status, &body["error"]["type"]), (418, &json!("invalid_request_error")));
    let contents = json!({ "contents": [{ "parts": [{ "text": "count to 9" }] }] });
    let limited = send(server.post("/v1beta/models/model-sol~rate_limit=7:generateContent", &contents)).await;
    assert_eq!(
        (limited.status().as_u16(), &limited.headers()["retry-after"]),
        (429, &"7".parse().expect("a value"))
    );
    let body: Value = limited.json().await.expect("JSON");
    assert_eq!(body["error"]["status"], "RESOURCE_EXHAUSTED");
}

/// With retries, every call of a client fails once and then succeeds, unary or streamed.
#[tokio::test]
async fn fail_once_fails_the_first_attempt_of_each_request() {
    let server = start().await;
    let status = async |path: &str, body: &Value, fault: &str| {
        let answered = send(server.post(path, body).header(FAULT_HEADER, fault)).await;
        let after =
            answered.headers().get("retry-after").map(|value| value.to_str().expect("ASCII").to_owned());
        (answered.status().as_u16(), after)
    };
    let (one, two) = (response("model-sol", false), response("model-sol", true));
    let limited = (429, Some("1".to_owned()));
    for _ in 0..2 {
        assert_eq!(status("/v1/responses", &one, "fail_once").await, limited);
        assert_eq!(status("/v1/responses", &two, "fail_once").await, limited, "another request");
        assert_eq!(status("/v1/responses", &two, "fail_once").await, (200, None));
        assert_eq!(status("/v1/responses", &one, "fail_once").await, (200, None));
    }
    assert_eq!(status("/v1/responses", &one, "fail_once=503").await.0, 503);
    assert_eq!(status("/v1/responses", &one, "fail_once=503").await.0, 200);
    let native = json!({ "contents": [{ "parts": [{ "text": "count to 9" }] }] });
    for expected in [429, 200, 429] {
        let path = "/v1beta/models/model-sol~fail_once:generateContent";
        assert_eq!(send(server.post(path, &native)).await.status(), expected);
    }
}

#[tokio::test]
async fn delay_fault_precedes_the_response() {
    let server = start().await;
    let started = Instant::now();
    server.ask("/v1/responses", &response("model-sol~delay=150", false)).await;
    assert!(started.elapsed() >= Duration::from_millis(150));
}

#[tokio::test]
async fn truncate_and_reset_end_a_stream_after_the_given_events() {
    let server = start().await;
    let (_, _, text, whole) = ask(&server, "/v1/chat/completions", "truncate=2", &chat(true)).await;
    assert_eq!((events(&text).len(), whole), (2, true));
    let (_, _, text, whole) = ask(&server, "/v1/responses", "reset=4", &response("model-sol", true)).await;
    assert_eq!((events(&text).len(), whole), (4, false));
}

#[tokio::test]
async fn truncate_and_reset_cut_a_document_in_half() {
    let server = start().await;
    for (fault, ends_cleanly) in [("truncate", true), ("reset", false)] {
        let (status, _, text, whole) =
            ask(&server, "/v1/responses", fault, &response("model-sol", false)).await;
        assert_eq!((status, whole), (200, ends_cleanly));
        assert!(text.starts_with('{') && serde_json::from_str::<Value>(&text).is_err(), "{text}");
    }
}

#[tokio::test]
async fn hang_fault_keeps_the_connection_open() {
    let server = start().await;
    let mut answer =
        send(server.post("/v1/chat/completions", &chat(true)).header(FAULT_HEADER, "hang=1")).await;
    assert!(answer.chunk().await.expect("an event").is_some());
    assert!(tokio::time::timeout(Duration::from_millis(200), answer.chunk()).await.is_err());
}

#[tokio::test]
async fn stream_error_fault_uses_the_protocols_error_event() {
    let server = start().await;
    let (_, _, text, _) = ask(&server, "/v1/chat/completions", "stream_error=2", &chat(true)).await;
    let found = events(&text);
    assert_eq!((found.len(), &found[2].json()["error"]["code"]), (3, &json!("server_error")));
    let (_, _, text, _) = ask(&server, "/v1/responses", "stream_error=2", &response("model-sol", true)).await;
    let found = events(&text);
    assert_eq!((found[2].name.as_deref(), &found[2].json()["type"]), (Some("error"), &json!("error")));
}

#[tokio::test]
async fn drip_fault_delays_without_losing_data() {
    let server = start().await;
    let started = Instant::now();
    let (_, _, text, whole) = ask(&server, "/v1/chat/completions", "drip=1", &chat(true)).await;
    assert!(whole && started.elapsed() > Duration::from_millis(100));
    assert_eq!(events(&text).last().map(|event| event.data.as_str()), Some("[DONE]"));
}

#[tokio::test]
async fn content_type_html_and_bad_json_replace_the_response() {
    let server = start().await;
    let (_, kind, text, _) =
        ask(&server, "/v1/responses", "content_type=text/plain", &response("model-sol", true)).await;
    assert_eq!((kind.as_str(), events(&text).is_empty()), ("text/plain", false));
    let (status, kind, text, _) = ask(&server, "/v1/responses", "html", &response("model-sol", false)).await;
    assert!(status == 200 && kind.starts_with("text/html") && text.starts_with("<!DOCTYPE"), "{kind} {text}");
    let (_, _, text, _) = ask(&server, "/v1/responses", "bad_json", &response("model-sol", false)).await;
    assert!(serde_json::from_str::<Value>(&text).is_err(), "{text}");
}

#[tokio::test]
async fn wrong_model_fault_changes_the_model_name() {
    let server = start().await;
    let named = server.ask("/v1/responses", &response("model-sol~wrong_model", false)).await;
    assert_eq!(named["model"], "another-model");
    let (_, _, text, _) =
        ask(&server, "/v1/responses", "wrong_model=model-luna", &response("model-sol", true)).await;
    let last = events(&text).iter().rev().find(|event| event.name.is_some()).map(Event::json);
    assert_eq!(last.expect("a terminal event")["response"]["model"], "model-luna");
}

#[tokio::test]
async fn tool_call_faults_omit_or_break_calls() {
    let server = start().await;
    let call = |answer: &Value| answer["output"][0].clone();
    let good = call(&server.ask("/v1/responses", &with_tool(false)).await);
    assert_eq!(good["arguments"], r#"{"value":"COMPAT-1a2b3c"}"#);
    let (_, _, text, _) = ask(&server, "/v1/responses", "bad_tool_call", &with_tool(false)).await;
    let bad = call(&serde_json::from_str(&text).expect("JSON"));
    assert_eq!(bad["arguments"], r#"{"value":"COMPAT-1a2b3c""#);
    let (_, _, text, _) = ask(&server, "/v1/responses", "no_tool_call", &with_tool(false)).await;
    let none = call(&serde_json::from_str(&text).expect("JSON"));
    assert_eq!(none["type"], "message");
}

#[tokio::test]
async fn terminal_event_faults_repeat_or_omit_it() {
    let server = start().await;
    let names = |text: &str| -> Vec<String> {
        events(text)
            .into_iter()
            .filter_map(|event| event.name)
            .filter(|name| name == "response.completed")
            .collect()
    };
    let (_, _, text, _) =
        ask(&server, "/v1/responses", "repeat_terminal", &response("model-sol", true)).await;
    assert_eq!(names(&text).len(), 2);
    let (_, _, text, _) = ask(&server, "/v1/responses", "no_terminal", &response("model-sol", true)).await;
    assert!(names(&text).is_empty() && events(&text).len() > 3);
}

#[tokio::test]
async fn strict_fault_rejects_the_request_and_names_the_rule() {
    let server = start().await;
    let call = json!({ "id": "c1", "type": "function", "function": { "name": "f", "arguments": "{}" } });
    let unanswered = json!({
        "model": "model-sol~strict",
        "messages": [
            { "role": "user", "content": "count to 9" },
            { "role": "assistant", "content": null, "tool_calls": [call] },
            { "role": "user", "content": "and now?" },
        ],
    });
    let (status, body) = server.refused("/v1/chat/completions", &unanswered).await;
    assert_eq!(status, 400, "{body}");
    let message = body["error"]["message"].as_str().expect("a message");
    assert!(message.contains("(rule ") && message.contains("strict providers"), "{message}");
    assert!(body["error"]["param"].as_str().is_some_and(|at| at.starts_with("/messages/")), "{body}");
    for (path, body) in [("/v1/chat/completions", chat(false)), ("/v1/responses", with_tool(true))] {
        assert_eq!(ask(&server, path, "strict", &body).await.0, 200);
    }
}

/// The codecs accept these forms: a messy upstream's client gets the same as a tidy one's.
#[tokio::test]
async fn messy_fault_keeps_the_meaning_of_the_response() {
    let provider = start().await;
    let upstreams = [Kind::Chat, Kind::Responses, Kind::Messages, Kind::Native];
    let model = |id: String, upstream: String, at: &str| {
        let mut model = ModelConfig::new(id, "family_one", TargetConfig::new(upstream, at));
        model.translate_responses = true;
        model
    };
    let models = (0..upstreams.len()).flat_map(|number| {
        let upstream = format!("u{number}");
        [
            model(format!("tidy-{number}"), upstream.clone(), "model-sol"),
            model(format!("messy-{number}"), upstream, "model-sol~messy"),
        ]
    });
    let models = models.collect();
    let upstreams = upstreams.into_iter().enumerate().map(|(number, kind)| {
        let base = if kind == Kind::Native { "v1beta" } else { "v1" };
        let mut upstream =
            UpstreamConfig::new(format!("u{number}"), kind, format!("{}/{base}", provider.url));
        upstream.keys = vec![ApiKey::new(KEY).expect("a key")];
        upstream
    });
    let server = start_with(Config { upstreams: upstreams.collect(), models, ..Config::default() }).await;
    let messages = |model: &str, stream: bool| {
        json!({ "model": model, "stream": stream, "max_tokens": 500,
            "messages": [{ "role": "user", "content": "Call echo with COMPAT-1a2b3c." }],
            "tools": [{ "name": "echo", "input_schema": { "type": "object", "properties": { "value": { "type": "string" } } } }],
            "tool_choice": { "type": "tool", "name": "echo" } })
    };
    for number in [0, 1, 3] {
        let tidy = server.ask("/v1/messages", &messages(&format!("tidy-{number}"), false)).await;
        let messy = server.ask("/v1/messages", &messages(&format!("messy-{number}"), false)).await;
        let called = |answer: &Value| {
            let blocks = answer["content"].as_array().expect("blocks").clone();
            let call = blocks.into_iter().find(|block| block["type"] == "tool_use").expect("a call");
            (call["name"].clone(), call["input"].clone(), answer["stop_reason"].clone())
        };
        assert_eq!(called(&messy), called(&tidy), "{messy}");
        assert_eq!(called(&messy).1, json!({ "value": "COMPAT-1a2b3c" }));
        let inputs = async |model: String| -> String {
            let events = server.stream("/v1/messages", &messages(&model, true)).await;
            assert_eq!(events.last().and_then(|event| event.name.as_deref()), Some("message_stop"));
            events
                .iter()
                .filter_map(|event| serde_json::from_str::<Value>(&event.data).ok())
                .filter_map(|event| Some(event["delta"]["partial_json"].as_str()?.to_owned()))
                .collect()
        };
        assert_eq!(inputs(format!("messy-{number}")).await, inputs(format!("tidy-{number}")).await);
    }
    // Upstreams of chat and of responses get chat requests unchanged, and so do their clients.
    for number in 2..4 {
        let text = async |model: String| -> String {
            let events = server
                .stream(
                    "/v1/chat/completions",
                    &json!({ "model": model, "stream": true,
                "messages": [{ "role": "user", "content": "count to 9" }] }),
                )
                .await;
            events
                .iter()
                .filter_map(|event| serde_json::from_str::<Value>(&event.data).ok())
                .filter_map(|event| Some(event["choices"][0]["delta"]["content"].as_str()?.to_owned()))
                .collect()
        };
        let tidy = text(format!("tidy-{number}")).await;
        assert!(tidy.contains('9'), "{tidy}");
        assert_eq!(text(format!("messy-{number}")).await, tidy, "{number}");
    }
}

#[tokio::test]
async fn configured_fault_applies_to_its_operation_only() {
    let faults = "status=503@create_response".parse().expect("a fault");
    let server = start_with(Config { faults, ..Config::default() }).await;
    assert_eq!(read(server.post("/v1/responses", &response("model-sol", false))).await.0, 503);
    server.ask("/v1/chat/completions", &chat(false)).await;
}

#[tokio::test]
async fn unknown_fault_is_rejected_with_the_list_of_faults() {
    let server = start().await;
    let (status, body) =
        read(server.post("/v1/responses", &response("model-sol", false)).header(FAULT_HEADER, "explode"))
            .await;
    assert_eq!((status, &body["error"]["param"]), (400, &json!(FAULT_HEADER)));
    assert!(body["error"]["message"].as_str().is_some_and(|message| message.contains("truncate[=EVENTS]")));
    let (status, body) = server.refused("/v1/responses", &response("model-sol~explode", false)).await;
    assert_eq!((status, &body["error"]["param"]), (400, &json!("model")));
}
