//! What operators see of requests that failed: their model in the list of requests, and their number in usage (ours).

use std::time::{Duration, Instant};

use gatewright_gateway::{ApiKey, Config, FAULT_HEADER, Kind};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{KEY, Server, read, send, start_with};
use crate::upstream_videos;
use crate::upstreams::{STREAM_HEAD, Scripted, Step, chunks, config, json_answer, question, upstream};

const ADMIN: &str = "gw-admin-canary-91";
const CHAT: &str = "/v1/chat/completions";
const NATIVE: &str = "/v1beta/models/model-sol:generateContent";
const VIDEOS: &str = "/v1/videos/generations";

async fn start(config: Config) -> Server {
    start_with(Config { admin_key: Some(ApiKey::new(ADMIN).expect("a valid key")), ..config }).await
}

/// A new key of these scopes and limits.
async fn key(server: &Server, name: &str, scopes: Value, limits: Value) -> String {
    let new = json!({ "name": name, "scopes": scopes, "limits": limits });
    let (status, issued) = read(server.bare(Method::POST, "/admin/keys").bearer_auth(ADMIN).json(&new)).await;
    assert_eq!(status, 201, "{issued}");
    issued["secret"].as_str().expect("a secret").to_owned()
}

fn chat(text: &str) -> Value {
    json!({ "model": "model-sol", "messages": [{ "role": "user", "content": text }] })
}

/// The request in the native protocol, whose path names the model.
fn native() -> Value {
    json!({ "contents": [{ "parts": [{ "text": "hi" }] }] })
}

fn asked(server: &Server, key: &str, path: &str, body: &Value) -> RequestBuilder {
    server.bare(Method::POST, path).bearer_auth(key).json(body)
}

/// Status, error, model and upstream of each request that has ended, the oldest first.
async fn listed(server: &Server) -> Vec<[Value; 4]> {
    let started = Instant::now();
    loop {
        let (_, all) = read(server.bare(Method::GET, "/admin/requests").bearer_auth(ADMIN)).await;
        if all["under_way_count"] == 0 {
            let recent = all["recent"].as_array().expect("a list").iter().rev();
            return recent
                .map(|one| ["status", "error", "model", "upstream"].map(|name| one[name].clone()))
                .collect();
        }
        assert!(started.elapsed() < Duration::from_secs(10), "{all}");
        tokio::task::yield_now().await;
    }
}

/// Model, upstream, and the counts of answered, failed and timed requests, once a key has so many of them in all.
async fn counted(server: &Server, key: &str, all: u64) -> Vec<(String, String, [u64; 3])> {
    let started = Instant::now();
    loop {
        let path = format!("/admin/usage?key={key}&by=model,upstream");
        let (_, report) = read(server.bare(Method::GET, &path).bearer_auth(ADMIN)).await;
        let text = |value: &Value| value.as_str().expect("a name").to_owned();
        let row = |row: &Value| {
            let counts = ["requests", "failed", "timed"].map(|name| row[name].as_u64().expect("a count"));
            (text(&row["model"]), text(&row["upstream"]), counts)
        };
        let rows: Vec<_> = report["usage"].as_array().expect("rows").iter().map(row).collect();
        if rows.iter().map(|(_, _, [requests, failed, _])| requests + failed).sum::<u64>() == all {
            return rows;
        }
        assert!(started.elapsed() < Duration::from_secs(10), "{all}: {rows:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn request_over_the_limit_of_its_key_is_listed_with_the_model_in_its_path() {
    let server = start(Config::default()).await;
    let key = key(&server, "ci", json!({}), json!({ "requests_per_minute": 1 })).await;
    assert_eq!(read(asked(&server, &key, CHAT, &chat("hi"))).await.0, 200);
    for (path, body) in [(NATIVE, native()), (CHAT, chat("hi"))] {
        assert_eq!(read(asked(&server, &key, path, &body)).await.0, 429);
    }
    let limit = json!("rate_limit_exceeded");
    // The body isn't read, so its model is unknown.
    let [_, in_path, in_body] = listed(&server).await.try_into().expect("three requests");
    assert_eq!(in_path, [json!(429), limit.clone(), json!("model-sol"), Value::Null]);
    assert_eq!(in_body, [json!(429), limit, Value::Null, Value::Null]);
    let rows = counted(&server, "ci", 3).await;
    let row = |model: &str, upstream: &str, counts| (model.to_owned(), upstream.to_owned(), counts);
    let expected =
        [row("", "", [0, 1, 0]), row("model-sol", "", [0, 1, 0]), row("model-sol", "simulator", [1, 0, 1])];
    assert_eq!(rows, expected);
}

#[tokio::test]
async fn request_for_a_model_that_its_key_may_not_use_is_listed_with_it() {
    let server = start(Config::default()).await;
    let key = key(&server, "ci", json!({ "models": ["image_model_1"] }), json!({})).await;
    for (path, body) in [(CHAT, chat("hi")), (NATIVE, native())] {
        assert_eq!(read(asked(&server, &key, path, &body)).await.0, 403);
    }
    let refused = [json!(403), json!("permission_denied"), json!("model-sol"), Value::Null];
    assert_eq!(listed(&server).await, [refused.clone(), refused]);
    let expected = [("model-sol".to_owned(), String::new(), [0, 2, 0])];
    assert_eq!(counted(&server, "ci", 2).await, expected);
}

#[tokio::test]
async fn replays_and_their_conflicts_are_listed_with_the_model() {
    let server = start(Config::default()).await;
    let keyed = async |text: &str| {
        let request = server.post(CHAT, &chat(text)).header("idempotency-key", "once");
        read(request).await.0
    };
    assert_eq!([keyed("hi").await, keyed("ho").await, keyed("hi").await], [200, 422, 200]);
    let [first, conflict, replay] = listed(&server).await.try_into().expect("three requests");
    let (none, model) = (Value::Null, json!("model-sol"));
    assert_eq!(first, [json!(200), none.clone(), model.clone(), json!("simulator")]);
    assert_eq!(conflict, [json!(422), json!("idempotency_key_reused"), model.clone(), none.clone()]);
    assert_eq!(replay, [json!(200), none.clone(), model, none]);
}

#[tokio::test]
async fn request_that_fails_by_a_fault_is_listed_with_the_model_alone() {
    let server = start(Config::default()).await;
    let in_name = json!({ "model": "model-sol~status=503", "messages": chat("hi")["messages"] });
    assert_eq!(read(server.post(CHAT, &in_name)).await.0, 503);
    let in_header = |fault: &str| server.post(CHAT, &chat("hi")).header(FAULT_HEADER, fault);
    assert_eq!(read(in_header("status=503")).await.0, 503);
    assert_eq!(read(in_header("no-such-fault")).await.0, 400);
    let in_path = "/v1beta/models/model-sol~status=503:generateContent";
    assert_eq!(read(server.post(in_path, &native())).await.0, 503);
    let models: Vec<_> = listed(&server).await.into_iter().map(|[_, _, model, _]| model).collect();
    assert_eq!(models, vec![json!("model-sol"); 4]);
}

#[tokio::test]
async fn failed_video_is_listed_with_model_and_upstream() {
    let provider = Scripted::start([json_answer(500, &json!({}))]).await;
    let server = start(upstream_videos::config(vec![upstream("one", Kind::Chat, &provider.url)], None)).await;
    assert_eq!(server.refused(VIDEOS, &upstream_videos::request()).await.0, 500);
    let mut invalid = upstream_videos::request();
    invalid["duration"] = json!("long");
    assert_eq!(server.refused(VIDEOS, &invalid).await.0, 400);
    let mut unknown = upstream_videos::request();
    unknown["model"] = json!("no-such-model");
    assert_eq!(server.refused(VIDEOS, &unknown).await.0, 404);
    let seen: Vec<_> =
        listed(&server).await.into_iter().map(|[status, _, rest @ ..]| (status, rest)).collect();
    let expected = [
        (json!(500), [json!("mine"), json!("one")]),
        (json!(400), [json!("mine"), Value::Null]),
        (json!(404), [json!("no-such-model"), Value::Null]),
    ];
    assert_eq!(seen, expected);
    let row = |model: &str, upstream: &str| (model.to_owned(), upstream.to_owned(), [0, 1, 0]);
    assert_eq!(counted(&server, "default", 3).await, [row("", ""), row("mine", ""), row("mine", "one")]);
}

#[tokio::test]
async fn malformed_body_is_a_failure_and_a_client_that_leaves_is_none() {
    let provider = Scripted::start([]).await;
    let server = start(config(vec![upstream("one", Kind::Chat, &provider.url)])).await;
    let address = server.url.trim_start_matches("http://").to_owned();
    for (framing, body) in [("transfer-encoding: chunked", "zz\r\n"), ("content-length: 99", "{")] {
        let mut socket = tokio::net::TcpStream::connect(&address).await.expect("connected");
        let head = format!(
            "POST {CHAT} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n{framing}\r\n\r\n"
        );
        socket.write_all(format!("{head}{body}").as_bytes()).await.expect("sent");
        socket.shutdown().await.expect("closed");
        let mut answer = Vec::new();
        _ = socket.read_to_end(&mut answer).await;
    }
    assert_eq!(counted(&server, "default", 1).await, [(String::new(), String::new(), [0, 1, 0])]);
}

#[tokio::test]
async fn failures_and_times_are_counted() {
    let event = chunks(&["hel"]);
    let first = event.split_inclusive("\n\n").next().expect("an event");
    let cut = vec![Step::Write(format!("{STREAM_HEAD}{first}").into()), Step::Close];
    let slow = vec![
        Step::Write(format!("{STREAM_HEAD}{first}").into()),
        Step::Pause(Duration::from_millis(60)),
        Step::Write(chunks(&["lo"]).into()),
        Step::Close,
    ];
    let provider = Scripted::start([slow, cut, json_answer(500, &json!({}))]).await;
    let server = start(config(vec![upstream("one", Kind::Chat, &provider.url)])).await;
    let streamed = async || {
        let events = server.stream(CHAT, &question(true)).await;
        events.iter().any(|event| event.data.contains("\"error\""))
    };
    assert_eq!([streamed().await, streamed().await], [false, true]);
    assert_eq!(server.refused(CHAT, &question(false)).await.0, 500);
    let (status, _) = server.refused(CHAT, &json!({ "model": "mine" })).await;
    assert_eq!(status, 400);
    // A request without a valid key is nobody's.
    assert_eq!(read(asked(&server, "gw-stranger", CHAT, &question(false))).await.0, 401);

    let rows = counted(&server, "default", 5).await;
    let row = |upstream: &str, counts| ("mine".to_owned(), upstream.to_owned(), counts);
    // Both streams were answered, and one of them failed after that.
    assert_eq!(rows, [row("", [0, 1, 0]), row("one", [2, 2, 1])]);
    let report = server.bare(Method::GET, "/admin/usage?by=key").bearer_auth(ADMIN);
    let report: Value = send(report).await.json().await.expect("JSON");
    let [begun, ended] =
        ["first_byte_ms", "latency_ms"].map(|name| report["usage"][0][name].as_u64().expect("a time"));
    assert!(begun + 50 <= ended, "{report}");
}
