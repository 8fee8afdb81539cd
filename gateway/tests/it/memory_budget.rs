//! The memory budget that all responses in progress share (ours).

use std::time::Duration;

use gatewright_gateway::{Config, Kind};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{KEY, Server, read, send, start_with};
use crate::upstreams::{
    STREAM_HEAD, Scripted, Step, chunks, completion, config, json_answer, question, stream, upstream,
};

const CHAT: &str = "/v1/chat/completions";
/// Long enough for a busy machine; no passing test waits this long.
const PATIENCE: Duration = Duration::from_mins(1);

/// A gateway with this memory budget in front of one upstream.
async fn with_room(bytes: usize, upstream_server: &Scripted) -> Server {
    let settings = config(vec![upstream("one", Kind::Chat, &upstream_server.url)]);
    start_with(Config { max_held_bytes: bytes, open_metrics: true, ..settings }).await
}

/// Waits until all memory is released.
async fn emptied(server: &Server) {
    let emptied = async {
        loop {
            let metrics = send(server.bare(reqwest::Method::GET, "/metrics")).await;
            if metrics.text().await.expect("text").contains("\ngatewright_held_bytes 0\n") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, emptied).await.expect("the memory is released");
}

#[tokio::test]
async fn response_beyond_the_memory_budget_is_503_and_not_an_upstream_failure() {
    let scripted = Scripted::start([]).await;
    let server = with_room(100_000, &scripted).await;
    scripted.then(json_answer(200, &completion(&"x".repeat(200_000))));
    // More often than a breaker tolerates.
    for _ in 0..7 {
        let response = send(server.post(CHAT, &question(false))).await;
        assert_eq!(
            (response.status().as_u16(), &response.headers()["retry-after"]),
            (503, &"1".parse().expect("a value"))
        );
        let text = response.text().await.expect("a body");
        assert!(text.contains("server_is_overloaded") && text.contains("memory"), "{text}");
    }
    scripted.then(json_answer(200, &completion("small")));
    server.ask(CHAT, &question(false)).await;
    emptied(&server).await;
}

#[tokio::test]
async fn translated_response_counts_against_the_memory_budget() {
    // Parsed, each pair of brackets is an array of a hundred times its length.
    let mut answer = completion("hi");
    answer["future"] = vec![json!([]); 5_000].into();
    let scripted = Scripted::start([json_answer(200, &answer)]).await;
    let server = with_room(500_000, &scripted).await;
    server.ask(CHAT, &question(false)).await;
    let body = json!({"model": "mine", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]});
    let (status, refused) = server.refused("/v1/messages", &body).await;
    assert_eq!((status, &refused["error"]["type"]), (503, &json!("overloaded_error")), "{refused}");
    emptied(&server).await;
}

#[tokio::test]
async fn translated_request_counts_against_the_memory_budget() {
    let scripted = Scripted::start([json_answer(200, &completion("hi"))]).await;
    let server = with_room(1_000_000, &scripted).await;
    let mut body = json!({"model": "mine", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]});
    server.ask("/v1/messages", &body).await;
    for brackets in [5_000, 100_000] {
        body["future"] = vec![json!([]); brackets].into();
        let (status, refused) = server.refused("/v1/messages", &body).await;
        assert_eq!((status, &refused["error"]["type"]), (503, &json!("overloaded_error")), "{refused}");
    }
    assert_eq!(scripted.count(), 1);
    emptied(&server).await;
}

#[tokio::test]
async fn event_beyond_the_memory_budget_ends_its_stream_with_an_error() {
    let whole = chunks(&["first", &"x".repeat(200_000)]);
    let scripted = Scripted::start([stream(&whole)]).await;
    let server = with_room(100_000, &scripted).await;
    let got = server.stream(CHAT, &question(true)).await;
    let last = got.last().expect("an event").json();
    assert_eq!(last["error"]["code"], "server_is_overloaded", "{last}");
    emptied(&server).await;
    // An event without an end, in chunks.
    let endless =
        Step::Write([STREAM_HEAD.as_bytes(), &chunks(&["first"]).as_bytes()[..200], b"\n\ndata: "].concat());
    let more = std::iter::repeat_n(Step::Write(vec![b'x'; 10_000]), 20);
    scripted.then(std::iter::once(endless).chain(more).chain([Step::Hang]).collect());
    let response = send(server.post(CHAT, &question(true))).await;
    let text = tokio::time::timeout(PATIENCE, response.text()).await.expect("an end").expect("a body");
    assert!(text.contains("server_is_overloaded"), "{text}");
    emptied(&server).await;
    scripted.then(stream(&chunks(&["small"])));
    assert_eq!(
        server.stream(CHAT, &question(true)).await.last().map(|event| event.data.as_str()),
        Some("[DONE]")
    );
}

#[tokio::test]
async fn response_holds_its_memory_until_the_client_has_read_it() {
    let long = completion(&"x".repeat(24 * 1024 * 1024));
    let scripted = Scripted::start([json_answer(200, &long)]).await;
    let server = with_room(64 * 1024 * 1024, &scripted).await;
    // Two copies while it is read, one until it is sent. This client reads only the head.
    let mut idle =
        TcpStream::connect(server.url.strip_prefix("http://").expect("plain")).await.expect("connected");
    let body = question(false).to_string();
    let request = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    idle.write_all(request.as_bytes()).await.expect("sent");
    idle.read_exact(&mut [0; 12]).await.expect("a head");
    let (status, _) = read(server.post(CHAT, &question(false))).await;
    assert_eq!(status, 503);
    drop(idle);
    emptied(&server).await;
    assert_eq!(send(server.post(CHAT, &question(false))).await.bytes().await.expect("a body").len(), {
        long.to_string().len() - "theirs".len() + "mine".len()
    });
}

#[tokio::test]
async fn half_closed_client_sees_that_a_cut_stream_is_incomplete() {
    let whole = chunks(&["first", "second"]);
    let first = whole.split_inclusive("\n\n").next().expect("an event");
    let started = Step::Write(format!("{STREAM_HEAD}{first}").into());
    let mut scripted = Scripted::start([vec![started, Step::Hang]]).await;
    let server = with_room(1_000_000, &scripted).await;
    let mut socket =
        TcpStream::connect(server.url.strip_prefix("http://").expect("plain")).await.expect("connected");
    let body = question(true).to_string();
    let request = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).await.expect("sent");
    let mut text = String::new();
    while !text.contains("first") {
        let mut piece = [0; 4096];
        let length = socket.read(&mut piece).await.expect("a piece");
        text.push_str(&String::from_utf8_lossy(&piece[..length]));
    }
    socket.shutdown().await.expect("half closed");
    let mut rest = String::new();
    tokio::time::timeout(PATIENCE, socket.read_to_string(&mut rest)).await.expect("an end").expect("text");
    assert!(rest.contains("\"error\"") && rest.contains("closed its side"), "{rest}");
    // HTTP doesn't signal a complete response either.
    assert!(!rest.ends_with("0\r\n\r\n"), "{rest}");
    let metrics = send(server.bare(reqwest::Method::GET, "/metrics")).await.text().await.expect("text");
    let aborted = "gatewright_requests_aborted_total{operation=\"create_chat_completion\"} 1";
    assert!(metrics.contains(aborted), "{metrics}");
    scripted.left().await;
}
