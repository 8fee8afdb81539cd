//! Limits of keys, and the headers that report what remains (2.12; the values are ours).

use std::time::Duration;

use gatewright_gateway::{ApiKey, Config};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::support::{KEY, Server, read, send, start_with};

const ADMIN: &str = "gw-admin-canary-77";

/// A gateway and the secret of a key with these limits.
async fn limited(limits: Value, config: Config) -> (Server, String) {
    let admin_key = Some(ApiKey::new(ADMIN).expect("a valid key"));
    let server = start_with(Config { admin_key, ..config }).await;
    let new = json!({ "name": "limited", "limits": limits });
    let (status, issued) = read(server.bare(Method::POST, "/admin/keys").bearer_auth(ADMIN).json(&new)).await;
    assert_eq!(status, 201, "{issued}");
    let secret = issued["secret"].as_str().expect("a secret").to_owned();
    (server, secret)
}

fn chat(server: &Server, key: &str, stream: bool) -> RequestBuilder {
    let messages = json!([{ "role": "user", "content": "count to 20" }]);
    let body = json!({ "model": "model-sol", "messages": messages, "stream": stream });
    server.bare(Method::POST, "/v1/chat/completions").bearer_auth(key).json(&body)
}

fn header(response: &Response, name: &str) -> Option<String> {
    response.headers().get(name).map(|value| value.to_str().expect("ASCII").to_owned())
}

#[tokio::test]
async fn rate_limit_headers_count_down_to_a_429() {
    let (server, key) = limited(json!({ "requests_per_minute": 3 }), Config::default()).await;
    for remaining in ["2", "1", "0"] {
        let response = send(chat(&server, &key, false)).await;
        assert_eq!(response.status(), 200);
        assert_eq!(header(&response, "x-ratelimit-limit-requests").as_deref(), Some("3"));
        assert_eq!(header(&response, "x-ratelimit-remaining-requests").as_deref(), Some(remaining));
        let reset = header(&response, "x-ratelimit-reset-requests").expect("a time");
        let seconds: u64 = reset.strip_suffix('s').and_then(|number| number.parse().ok()).expect("seconds");
        assert!((1..=60).contains(&seconds), "{reset}");
        assert_eq!(header(&response, "x-ratelimit-limit-tokens"), None);
    }
    let response = send(chat(&server, &key, false)).await;
    assert_eq!(response.status(), 429);
    assert_eq!(header(&response, "x-ratelimit-remaining-requests").as_deref(), Some("0"));
    let wait: u64 = header(&response, "retry-after").and_then(|wait| wait.parse().ok()).expect("seconds");
    assert!((1..=20).contains(&wait), "{wait}");
    let refused: Value = serde_json::from_str(&response.text().await.expect("a body")).expect("JSON");
    assert_eq!(refused["error"]["code"], "rate_limit_exceeded");
    assert_eq!(refused["error"]["type"], "rate_limit_error");
    // Operations that call no model are not counted, and other keys are not affected.
    assert_eq!(read(server.bare(Method::GET, "/v1/models").bearer_auth(&key)).await.0, 200);
    let response = send(chat(&server, KEY, false)).await;
    assert_eq!((response.status().as_u16(), header(&response, "x-ratelimit-limit-requests")), (200, None));
}

#[tokio::test]
async fn rejected_requests_count_against_the_limit_per_minute() {
    let (server, key) = limited(json!({ "requests_per_minute": 2 }), Config::default()).await;
    let chat = |body: Value| server.bare(Method::POST, "/v1/chat/completions").bearer_auth(&key).json(&body);
    let messages = json!([{ "role": "user", "content": "hi" }]);
    assert_eq!(read(chat(json!({ "model": "no-such-model", "messages": messages }))).await.0, 404);
    assert_eq!(read(chat(json!({ "model": "model-sol" }))).await.0, 400);
    assert_eq!(read(chat(json!({ "model": "model-sol", "messages": messages }))).await.0, 429);
}

#[tokio::test]
async fn key_without_budget_gets_neither_replays_nor_stored_responses() {
    let (server, key) = limited(json!({ "tokens_per_day": 1 }), Config::default()).await;
    let body = json!({ "model": "model-sol", "input": "Say hi" });
    let ask = || {
        let request = server.bare(Method::POST, "/v1/responses").bearer_auth(&key);
        request.header("idempotency-key", "once").json(&body)
    };
    let (status, response) = read(ask()).await;
    assert_eq!(status, 200, "{response}");
    let id = response["id"].as_str().expect("an id");
    let stored = server.bare(Method::GET, &format!("/v1/responses/{id}")).bearer_auth(&key);
    for request in [ask(), stored] {
        let (status, refused) = read(request).await;
        assert_eq!((status, &refused["error"]["code"]), (429, &json!("insufficient_quota")));
    }
}

#[tokio::test]
async fn minute_limit_refills_evenly() {
    let (server, key) = limited(json!({ "requests_per_minute": 60 }), Config::default()).await;
    for _ in 0..60 {
        assert_eq!(send(chat(&server, &key, false)).await.status(), 200);
    }
    // One per second, however long the sixty took.
    loop {
        let response = send(chat(&server, &key, false)).await;
        if response.status() == 200 {
            break;
        }
        assert_eq!(header(&response, "retry-after").as_deref(), Some("1"));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn rate_limit_errors_use_the_protocols_form() {
    let (server, key) = limited(json!({ "requests_per_minute": 1 }), Config::default()).await;
    let body = json!({ "contents": [{ "parts": [{ "text": "hi" }] }] });
    let native = || {
        let path = "/v1beta/models/model-sol:countTokens";
        server.bare(Method::POST, path).header("x-goog-api-key", &key).json(&body)
    };
    assert_ne!(read(native()).await.0, 429);
    let (status, refused) = read(native()).await;
    assert_eq!((status, &refused["error"]["status"]), (429, &json!("RESOURCE_EXHAUSTED")));
}

#[tokio::test]
async fn concurrency_slot_is_held_until_the_response_ends() {
    let slow = Config { event_delay: Duration::from_millis(100), ..Config::default() };
    let (server, key) = limited(json!({ "concurrent_requests": 1 }), slow).await;
    // Its client disconnects mid-stream.
    let stream = send(chat(&server, &key, true)).await;
    assert_eq!(stream.status(), 200);
    let (status, refused) = read(chat(&server, &key, false)).await;
    assert_eq!((status, &refused["error"]["code"]), (429, &json!("rate_limit_exceeded")));
    drop(stream);
    let given_back = async {
        while send(chat(&server, &key, false)).await.status() == 429 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), given_back).await.expect("the slot is released");
    // Its client reads to the end.
    send(chat(&server, &key, true)).await.text().await.expect("a whole body");
    assert_eq!(send(chat(&server, &key, false)).await.status(), 200);
    // A failed request frees its slot, too.
    let wrong = server.bare(Method::POST, "/v1/chat/completions").bearer_auth(&key).json(&json!({}));
    assert_eq!(read(wrong).await.0, 400);
    assert_eq!(send(chat(&server, &key, false)).await.status(), 200);
}
