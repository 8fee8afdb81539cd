//! Upstreams that fail mid-stream, and clients that disconnect.

use std::time::Duration;

use futures_util::future::join_all;
use gatewright_gateway::Kind;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client_disconnects::{is_given_up, leave};
use crate::support::{Event, KEY, Server, start_with};
use crate::upstreams::{STREAM_HEAD, Scripted, Step, chunks, config, question, upstream};

const CHAT: &str = "/v1/chat/completions";

#[tokio::test]
async fn failed_stream_ends_with_the_protocols_error() {
    let created = json!({"type": "response.created", "sequence_number": 0,
        "response": {"id": "resp_1", "object": "response", "model": "theirs", "status": "in_progress", "output": []}});
    let scripted = Scripted::start([]).await;
    scripted.then(vec![
        Step::Write(format!("{STREAM_HEAD}event: response.created\ndata: {created}\n\n").into()),
        Step::Close,
    ]);
    let server = start_with(config(vec![upstream("one", Kind::Gatewright, &scripted.url)])).await;
    let body = json!({"model": "mine", "input": "hi", "stream": true});
    let got = server.stream("/v1/responses", &body).await;
    let last = got.last().expect("an event");
    assert_eq!(last.name.as_deref(), Some("response.failed"));
    let failed = last.json();
    assert_eq!((&failed["sequence_number"], &failed["response"]["id"]), (&json!(1), &json!("resp_1")));
    assert_eq!(failed["response"]["status"], "failed");

    let document = json!({"candidates": [{"content": {"parts": [{"text": "hi"}]}}]});
    scripted.then(vec![Step::Write(format!("{STREAM_HEAD}data: {document}\n\n").into()), Step::Close]);
    let body = json!({"contents": [{"parts": [{"text": "hi"}]}]});
    let got = server.stream("/v1beta/models/mine:streamGenerateContent?alt=sse", &body).await;
    assert_eq!(got.last().expect("an event").json()["error"]["status"], "UNAVAILABLE");
    let array = server.ask("/v1beta/models/mine:streamGenerateContent", &body).await;
    assert_eq!(array[1]["error"]["status"], "UNAVAILABLE");
}

#[tokio::test]
async fn mid_stream_error_is_redacted() {
    let key = crate::upstreams::UPSTREAM_KEY;
    let event = chunks(&["x"]);
    let first = event.split_inclusive("\n\n").next().expect("an event");
    let error = json!({"error": {"message": format!("{key} is used up"), "type": "server_error"}});
    let text = format!("{STREAM_HEAD}{first}data: {error}\n\ndata: [DONE]\n\n");
    let scripted = Scripted::start([vec![Step::Write(text.into()), Step::Close]]).await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &scripted.url)])).await;
    let got = server.stream(CHAT, &question(true)).await;
    assert_eq!(got.len(), 2);
    assert_eq!(got[1].json()["error"]["message"], "[redacted] is used up");
}

#[tokio::test]
async fn stalled_stream_ends_with_a_timeout_error() {
    let event = chunks(&["x"]);
    let first = event.split_inclusive("\n\n").next().expect("an event");
    let mut scripted =
        Scripted::start([vec![Step::Write(format!("{STREAM_HEAD}{first}").into()), Step::Hang]]).await;
    let mut one = upstream("one", Kind::Chat, &scripted.url);
    one.idle_timeout = Duration::from_millis(200);
    let server = start_with(config(vec![one])).await;
    let got = server.stream(CHAT, &question(true)).await;
    assert_eq!(got[1].json()["error"]["code"], "upstream_timeout");
    scripted.left().await;
}

/// Sends a chat request over its own socket.
async fn ask(server: &Server, stream: bool) -> TcpStream {
    let address = server.url.strip_prefix("http://").expect("plain");
    let mut socket = TcpStream::connect(address).await.expect("connected");
    let body = question(stream).to_string();
    let request = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).await.expect("sent");
    socket
}

#[tokio::test]
async fn upstream_request_is_cancelled_when_the_client_disconnects() {
    let event = chunks(&["x"]);
    let first = event.split_inclusive("\n\n").next().expect("an event").to_owned();
    // Before the head, after it, mid-stream, within an event, and within a document.
    let stages: [(bool, String, bool); 5] = [
        (true, String::new(), false),
        (true, STREAM_HEAD.to_owned(), false),
        (true, format!("{STREAM_HEAD}{first}"), true),
        (true, format!("{STREAM_HEAD}{first}data: {{"), true),
        (false, "HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{\"ch".to_owned(), false),
    ];
    let cases = stages.into_iter().flat_map(|stage| [(stage.clone(), false), (stage, true)]);
    join_all(cases.map(async |((streams, started, answers), resets)| {
        is_given_up(&format!("a client of chat after {started:?}, reset: {resets}"), async || {
            let mut steps = vec![Step::Hang];
            if !started.is_empty() {
                steps.insert(0, Step::Write(started.clone().into()));
            }
            let mut scripted = Scripted::start([steps]).await;
            let server = start_with(config(vec![upstream("one", Kind::Chat, &scripted.url)])).await;
            let mut socket = ask(&server, streams).await;
            while scripted.count() == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            if answers {
                assert!(socket.read(&mut [0; 1024]).await.expect("a head") > 0);
            }
            tokio::time::sleep(Duration::from_millis(60)).await;
            let left = leave(socket, resets);
            scripted.left().await.saturating_duration_since(left)
        })
        .await;
    }))
    .await;
}

#[tokio::test]
async fn slow_client_applies_backpressure_to_the_upstream() {
    // Endless events: the gateway reads no more of them than fit into the socket buffers.
    let event = format!("data: {}\n\n", json!({"choices": [{"delta": {"content": "x".repeat(60_000)}}]}));
    let mut steps = vec![Step::Write(STREAM_HEAD.into())];
    steps.extend((0..2000).map(|_| Step::Write(event.clone().into())));
    let mut scripted = Scripted::start([steps]).await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &scripted.url)])).await;
    let mut socket = ask(&server, true).await;
    assert!(socket.read(&mut [0; 1024]).await.expect("a head") > 0);
    tokio::time::sleep(Duration::from_millis(500)).await;
    drop(socket);
    // If the gateway had read all 120 MB, the upstream would not notice the disconnect.
    scripted.left().await;
}

#[tokio::test]
async fn hidden_usage_chunk_does_not_reach_the_client() {
    // The usage chunk is removed; the event after it arrives in the same packet.
    let scripted = Scripted::start([crate::upstreams::stream(&chunks(&["x"]))]).await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &scripted.url)])).await;
    let got = server.stream(CHAT, &question(true)).await;
    let received: Vec<Value> = got.iter().filter(|event| event.data != "[DONE]").map(Event::json).collect();
    assert!(received.iter().all(|chunk| chunk["usage"].is_null()));
}
