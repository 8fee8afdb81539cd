//! Upstreams that deviate from their protocol but still answer.

use gatewright_gateway::Kind;
use serde_json::{Value, json};

use crate::support::{Event, start_with, until};
use crate::upstreams::{Scripted, Step, chunks, completion, config, json_answer, question, stream, upstream};

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";

#[tokio::test]
async fn document_instead_of_a_stream_is_converted_to_a_stream() {
    let scripted = Scripted::answering(|_| json_answer(200, &completion("hello"))).await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &scripted.url)])).await;
    let mut body = question(true);
    body["stream_options"] = json!({ "include_usage": true });
    let chat = server.stream(CHAT, &body).await;
    assert_eq!(chat.last().map(|event| event.data.as_str()), Some("[DONE]"), "{chat:?}");
    let chunks: Vec<Value> = chat.iter().rev().skip(1).map(Event::json).collect();
    assert_eq!(chunks[0]["usage"]["total_tokens"], 5, "{chat:?}");
    assert!(chunks.iter().any(|chunk| chunk["choices"][0]["delta"]["content"] == "hello"), "{chat:?}");
    assert!(chunks.iter().all(|chunk| chunk["model"] == "mine"), "{chat:?}");

    let body = json!({ "model": "mine", "max_tokens": 64, "stream": true,
        "messages": [{ "role": "user", "content": "hi" }] });
    let messages = server.stream(MESSAGES, &body).await;
    assert_eq!(messages.last().and_then(|event| event.name.as_deref()), Some("message_stop"), "{messages:?}");
    assert!(messages.iter().any(|event| event.data.contains("hello")), "{messages:?}");
}

#[tokio::test]
async fn stream_options_are_omitted_after_one_rejection() {
    let scripted = Scripted::answering(|seen| match &seen.json()["stream_options"] {
        Value::Null => stream(&chunks(&["hello"])),
        _ => json_answer(400, &json!({ "error": { "message": "unknown member: stream_options" } })),
    })
    .await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &scripted.url)])).await;
    for expected in [2, 3] {
        let got = server.stream(CHAT, &question(true)).await;
        assert!(got.iter().any(|event| event.data.contains("hello")), "{got:?}");
        assert_eq!(scripted.count(), expected);
    }
    // If the client set them itself, the error is its own.
    let mut body = question(true);
    body["stream_options"] = json!({ "include_usage": true });
    let (status, _) = server.refused(CHAT, &body).await;
    assert_eq!((status, scripted.count()), (400, 4));
}

/// A request that the server rejects and quotes must not let one client hide the usage of all others.
#[tokio::test]
async fn error_quoting_stream_options_does_not_disable_them() {
    let scripted = Scripted::answering(|seen| match seen.json()["messages"][0]["content"].as_str() {
        Some("bad") => json_answer(400, &json!({ "error": { "message": format!("bad: {}", seen.body) } })),
        _ => stream(&chunks(&["hello"])),
    })
    .await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &scripted.url)])).await;
    let mut bad = question(true);
    bad["messages"][0]["content"] = "bad".into();
    assert_eq!(server.refused(CHAT, &bad).await.0, 400);
    server.stream(CHAT, &question(true)).await;
    let seen = scripted.seen();
    assert!(!seen.last().expect("a request").json()["stream_options"].is_null());
}

/// Nor must a client that disconnects before it is known whether the request without them succeeds.
#[tokio::test]
async fn disconnect_after_a_rejection_does_not_disable_stream_options() {
    let mut scripted = Scripted::answering(|seen| match &seen.json()["stream_options"] {
        Value::Null if seen.body.contains("impatient") => vec![Step::Hang],
        Value::Null => stream(&chunks(&["hello"])),
        _ => json_answer(400, &json!({ "error": { "message": "unknown member: stream_options" } })),
    })
    .await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &scripted.url)])).await;
    let mut impatient = question(true);
    impatient["messages"][0]["content"] = "impatient".into();
    let asking = tokio::spawn(server.post(CHAT, &impatient).send());
    until(|| scripted.count() == 2).await;
    asking.abort();
    scripted.left().await;
    server.stream(CHAT, &question(true)).await;
    let tried: Vec<bool> =
        scripted.seen().iter().map(|seen| !seen.json()["stream_options"].is_null()).collect();
    assert_eq!(tried, [true, false, true, false]);
}
