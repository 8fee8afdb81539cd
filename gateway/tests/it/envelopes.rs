//! Upstreams with other paths and members for a known protocol: the requests they receive.

use gatewright_gateway::{Kind, Paths, UpstreamConfig};
use reqwest::Method;
use serde_json::json;

use crate::support::{KEY, Server, send, start_with};
use crate::upstreams::{
    STREAM_HEAD, Scripted, Seen, Step, config, json_answer, message, message_events, upstream,
};

/// A gateway with the model `mine`, which the upstream calls `claude-1@2025:0`.
async fn in_front_of(one: UpstreamConfig) -> Server {
    let mut config = config(vec![one]);
    for model in &mut config.models {
        for target in &mut model.targets {
            "claude-1@2025:0".clone_into(&mut target.model);
        }
    }
    start_with(config).await
}

/// Claude on Vertex AI.
fn vertex(url: &str) -> UpstreamConfig {
    let mut one = upstream("one", Kind::Messages, url);
    let path = |end: &str| Some(format!("/publishers/anthropic/models/{end}"));
    one.envelope.paths = paths([
        path("{model}:rawPredict"),
        path("{model}:streamRawPredict"),
        path("count-tokens:rawPredict"),
    ]);
    one.envelope.set_body.insert("anthropic_version".to_owned(), "vertex-2023-10-16".into());
    one
}

/// Claude on Bedrock.
fn bedrock(url: &str) -> UpstreamConfig {
    let mut one = upstream("one", Kind::Messages, url);
    let path = |end: &str| Some(format!("/model/{{model}}/{end}"));
    one.envelope.paths = paths([path("invoke"), path("invoke-with-response-stream"), None]);
    one.envelope.set_body.insert("anthropic_version".to_owned(), "bedrock-2023-05-31".into());
    one.envelope.omit_body = vec!["stream".to_owned()];
    one.envelope.betas_in_body = true;
    one
}

fn paths([answer, stream, count_tokens]: [Option<String>; 3]) -> Paths {
    let mut paths = Paths::default();
    (paths.answer, paths.stream, paths.count_tokens) = (answer, stream, count_tokens);
    paths
}

/// The events of a message as a stream.
fn events() -> Vec<Step> {
    let events = message_events();
    let texts = events.iter().map(|event| {
        let name = event["type"].as_str().expect("a name");
        format!("event: {name}\ndata: {event}\n\n")
    });
    vec![Step::Write(format!("{STREAM_HEAD}{}", texts.collect::<String>()).into_bytes()), Step::Close]
}

/// Rejects requests that the provider would reject.
fn strict(seen: &Seen) -> Vec<Step> {
    let body = seen.json();
    let is_count = seen.path().contains("count-tokens");
    let version = body["anthropic_version"].as_str().unwrap_or_default();
    let is_right = match version {
        "vertex-2023-10-16" => body.get("model").is_some() == is_count,
        "bedrock-2023-05-31" => {
            body.get("model").is_none()
                && body.get("stream").is_none()
                && seen.header("anthropic-beta").is_none()
        }
        _ => false,
    };
    if !is_right {
        let why = json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "an extra input" } });
        return json_answer(400, &why);
    }
    if is_count {
        return json_answer(200, &json!({ "input_tokens": 42 }));
    }
    let streams = seen.path().contains("stream");
    if streams { events() } else { json_answer(200, &message()) }
}

/// Posts a text with beta features, and returns the response.
async fn post(server: &Server, path: &str, body: &str) -> String {
    let request = server.bare(Method::POST, path).bearer_auth(KEY).header("anthropic-beta", "one,two");
    let response = send(request.header("content-type", "application/json").body(body.to_owned())).await;
    let status = response.status();
    let text = response.text().await.expect("a body");
    assert_eq!(status, 200, "{text}");
    text
}

#[tokio::test]
async fn relayed_request_moves_its_model_to_the_path_and_is_otherwise_unchanged() {
    let scripted = Scripted::answering(strict).await;
    let server = in_front_of(vertex(&scripted.url)).await;
    let body = r#"{"model":"mine","max_tokens":9, "future":1.50,"messages":[{"role":"user","content":"hi","x":1e0}]}"#;
    let answer = post(&server, "/v1/messages", body).await;
    assert_eq!(answer, message().to_string().replace("claude-1", "mine"));
    let seen = scripted.seen().swap_remove(0);
    assert_eq!(seen.path(), "/v1/publishers/anthropic/models/claude-1@2025%3A0:rawPredict");
    assert_eq!(
        seen.body,
        r#"{"max_tokens":9, "future":1.50,"messages":[{"role":"user","content":"hi","x":1e0}],"anthropic_version":"vertex-2023-10-16"}"#
    );
    assert_eq!(seen.header("anthropic-beta"), Some("one,two"));
}

#[tokio::test]
async fn relayed_stream_uses_the_stream_path() {
    let scripted = Scripted::answering(strict).await;
    for (one, path, sent) in [
        (
            vertex(&scripted.url),
            "/v1/publishers/anthropic/models/claude-1@2025%3A0:streamRawPredict",
            r#"{"stream":true,"max_tokens":9,"messages":[{"role":"user","content":"hi"}],"anthropic_version":"vertex-2023-10-16"}"#,
        ),
        (
            bedrock(&scripted.url),
            "/v1/model/claude-1@2025%3A0/invoke-with-response-stream",
            r#"{"max_tokens":9,"messages":[{"role":"user","content":"hi"}],"anthropic_version":"bedrock-2023-05-31","anthropic_beta":["one","two"]}"#,
        ),
    ] {
        let server = in_front_of(one).await;
        let body =
            r#"{"model":"mine","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#;
        let answer = post(&server, "/v1/messages", body).await;
        assert!(answer.contains("hello") && answer.contains("message_stop"), "{answer}");
        let seen = scripted.seen().pop().expect("a request");
        assert_eq!((seen.path(), &*seen.body), (path, sent));
    }
}

#[tokio::test]
async fn translated_request_has_the_same_envelope() {
    let scripted = Scripted::answering(strict).await;
    for one in [vertex(&scripted.url), bedrock(&scripted.url)] {
        let server = in_front_of(one).await;
        for stream in ["false", "true"] {
            let body = format!(
                r#"{{"model":"mine","stream":{stream},"messages":[{{"role":"user","content":"hi"}}]}}"#
            );
            let answer = post(&server, "/v1/chat/completions", &body).await;
            assert!(answer.contains("hello"), "{answer}");
            let seen = scripted.seen().pop().expect("a request");
            let sent = seen.json();
            assert_eq!(sent["messages"][0]["content"][0]["text"], "hi", "{sent}");
            assert!(sent.get("anthropic_beta").is_none(), "the client speaks another protocol: {sent}");
        }
    }
}

#[tokio::test]
async fn tokens_are_counted_upstream_if_it_has_a_path_or_else_estimated() {
    let scripted = Scripted::answering(strict).await;
    let body = json!({ "model": "mine", "messages": [{ "role": "user", "content": "hi" }] });
    let server = in_front_of(vertex(&scripted.url)).await;
    assert_eq!(server.ask("/v1/messages/count_tokens", &body).await, json!({ "input_tokens": 42 }));
    let seen = scripted.seen().swap_remove(0);
    assert_eq!(seen.path(), "/v1/publishers/anthropic/models/count-tokens:rawPredict");
    assert_eq!(
        seen.json(),
        json!({ "model": "claude-1@2025:0", "messages": body["messages"], "anthropic_version": "vertex-2023-10-16" })
    );
    let server = in_front_of(bedrock(&scripted.url)).await;
    let response = send(server.post("/v1/messages/count_tokens", &body)).await;
    assert_eq!(response.headers()["x-gatewright-estimated"], "true");
    assert_eq!((response.status().as_u16(), scripted.count()), (200, 1));
}

#[tokio::test]
async fn chat_and_native_paths_may_be_overridden() {
    let chat = json!({ "id": "c", "object": "chat.completion", "created": 1, "model": "theirs", "choices": [
        { "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "hello" } }] });
    let scripted = Scripted::start([json_answer(200, &chat)]).await;
    let mut one = upstream("one", Kind::Chat, &scripted.url);
    one.envelope.paths.answer = Some("/deployments/{model}/chat/completions".to_owned());
    let server = in_front_of(one).await;
    let body = json!({ "model": "mine", "messages": [{ "role": "user", "content": "hi" }] });
    server.ask("/v1/chat/completions", &body).await;
    let seen = scripted.seen().swap_remove(0);
    assert_eq!(seen.path(), "/v1/deployments/claude-1@2025%3A0/chat/completions");
    assert_eq!(seen.json(), json!({ "messages": body["messages"] }));

    let native = json!({ "candidates": [{ "content": { "role": "model", "parts": [{ "text": "hello" }] },
        "finishReason": "STOP" }] });
    let scripted = Scripted::start([json_answer(200, &native)]).await;
    let mut one = upstream("one", Kind::Native, &scripted.url);
    let path = |method: &str| Some(format!("/publishers/google/models/{{model}}:{method}"));
    one.envelope.paths =
        paths([path("generateContent"), path("streamGenerateContent?alt=sse"), path("countTokens")]);
    let server = in_front_of(one).await;
    let body = json!({ "contents": [{ "role": "user", "parts": [{ "text": "hi" }] }] });
    server.ask("/v1beta/models/mine:generateContent", &body).await;
    let seen = scripted.seen().swap_remove(0);
    assert_eq!(seen.path(), "/v1/publishers/google/models/claude-1@2025%3A0:generateContent");
    assert_eq!(seen.json(), body);
}
