//! Resources shared by all keys: one key cannot use them up (ours).

use std::time::Duration;

use gatewright_gateway::{ApiKey, Config, Kind};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::support::{KEY, Server, events, read, send, start_as, start_with};
use crate::upstreams::{Scripted, chunks, completion, config, json_answer, question, stream, upstream};

const ADMIN: &str = "gw-admin-canary-77";
const VIDEOS: &str = "/v1/videos/generations";

/// Creates another key and returns its secret.
async fn other_key(server: &Server) -> String {
    new_key(server, json!({ "name": "other" })).await
}

async fn new_key(server: &Server, new: Value) -> String {
    let (status, issued) = read(server.bare(Method::POST, "/admin/keys").bearer_auth(ADMIN).json(&new)).await;
    assert_eq!(status, 201, "{issued}");
    issued["secret"].as_str().expect("a secret").to_owned()
}

fn by(key: &str, server: &Server, path: &str, body: &Value) -> RequestBuilder {
    server.bare(Method::POST, path).bearer_auth(key).json(body)
}

fn with_admin(config: Config) -> Config {
    Config { admin_key: Some(ApiKey::new(ADMIN).expect("a key")), ..config }
}

/// A rate limit error that mentions the key and has a retry time.
async fn is_rate_limit(request: RequestBuilder, member: &str, word: &str) {
    let response = send(request).await;
    assert_eq!((response.status().as_u16(), response.headers().contains_key("retry-after")), (429, true));
    let error: Value = response.json().await.expect("JSON");
    assert_eq!(error["error"][member], word, "{error}");
    assert!(error["error"]["message"].as_str().is_some_and(|text| text.contains("this API key")), "{error}");
}

#[tokio::test]
async fn responses_of_a_key_are_limited_to_its_share_of_memory() {
    let long = completion(&"x".repeat(200_000));
    let scripted = Scripted::start([json_answer(200, &long)]).await;
    let settings = config(vec![upstream("one", Kind::Chat, &scripted.url)]);
    // A response takes twice its length while it is read.
    let settings = Config { max_held_bytes: 700_000, max_percent_per_key: 50, ..settings };
    let server = start_with(with_admin(settings)).await;
    let body = question(false);
    server.ask("/v1/chat/completions", &body).await;
    let other = other_key(&server).await;
    for key in [KEY, &*other] {
        is_rate_limit(by(key, &server, "/v1/chat/completions", &body), "code", "rate_limit_exceeded").await;
    }
    // In each protocol's form.
    let message = json!({"model": "mine", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]});
    is_rate_limit(by(KEY, &server, "/v1/messages", &message), "type", "rate_limit_error").await;
    let contents = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]});
    let path = "/v1beta/models/mine:generateContent";
    is_rate_limit(by(KEY, &server, path, &contents), "status", "RESOURCE_EXHAUSTED").await;
    scripted.then(stream(&chunks(&["first", &"x".repeat(400_000)])));
    let response = send(by(KEY, &server, "/v1/chat/completions", &question(true))).await;
    let got = events(&response.text().await.expect("text"));
    assert_eq!(got.last().expect("an event").json()["error"]["code"], "rate_limit_exceeded");
    // None of this counts against the upstream, and the memory is released.
    scripted.then(json_answer(200, &completion("small")));
    assert_eq!(send(by(KEY, &server, "/v1/chat/completions", &body)).await.status(), 200);
}

#[tokio::test]
async fn video_tasks_of_a_key_are_limited_to_its_share() {
    let settings =
        Config { video_time: Duration::from_hours(1), max_percent_per_key: 1, ..Config::default() };
    let server = start_as(with_admin(settings)).await;
    let other = other_key(&server).await;
    let body = json!({ "model": "video_model_3", "prompt": "[fail]" });
    for _ in 0..10 {
        server.ask(VIDEOS, &body).await;
    }
    is_rate_limit(by(KEY, &server, VIDEOS, &body), "code", "rate_limit_exceeded").await;
    assert_eq!(send(by(&other, &server, VIDEOS, &body)).await.status(), 200);
}

#[tokio::test]
async fn key_over_its_task_share_evicts_one_of_its_own_results() {
    let settings = Config { video_time: Duration::ZERO, max_percent_per_key: 1, ..Config::default() };
    let server = start_as(with_admin(settings)).await;
    let other = other_key(&server).await;
    let body = json!({ "model": "video_model_3", "prompt": "[fail]" });
    let (_, theirs) = read(by(&other, &server, VIDEOS, &body)).await;
    let mut mine = Vec::new();
    for _ in 0..11 {
        let task = server.ask(VIDEOS, &body).await["id"].as_str().expect("an id").to_owned();
        let path = format!("{VIDEOS}/{task}");
        while read(server.get(&path)).await.1["status"] != "failed" {
            tokio::task::yield_now().await;
        }
        mine.push(path);
    }
    let mut gone = 0;
    for path in &mine {
        gone += u32::from(read(server.get(path)).await.0 == 404);
    }
    assert_eq!(gone, 1);
    let path = format!("{VIDEOS}/{}", theirs["id"].as_str().expect("an id"));
    assert_eq!(read(server.bare(Method::GET, &path).bearer_auth(&other)).await.0, 200);
}

#[tokio::test]
async fn files_of_a_key_are_limited_to_its_share() {
    let settings = Config { max_file_bytes: 100_000, max_percent_per_key: 50, ..Config::default() };
    let server = start_with(with_admin(settings)).await;
    let other = other_key(&server).await;
    let path = "/v1/images/generations";
    let body = json!({ "model": "image_model_2", "prompt": "a kite", "size": "256x256" });
    let mut refused = false;
    for _ in 0..40 {
        refused = send(by(KEY, &server, path, &body)).await.status() != 200;
        if refused {
            break;
        }
    }
    assert!(refused, "a key used all file space");
    is_rate_limit(by(KEY, &server, path, &body), "code", "rate_limit_exceeded").await;
    assert_eq!(send(by(&other, &server, path, &body)).await.status(), 200);
}

#[tokio::test]
async fn file_limit_of_a_key_holds_across_gateways() {
    let folder = tempfile::tempdir().expect("a folder");
    let start = || {
        let settings = Config { max_percent_per_key: 100, ..Config::default() };
        start_with(with_admin(Config { data: Some(folder.path().to_path_buf()), ..settings }))
    };
    let (one, other) = (start().await, start().await);
    let limits = json!({ "file_bytes": 100_000 });
    let limited = new_key(&one, json!({ "name": "limited", "limits": limits })).await;
    let (_, shown) = read(one.bare(Method::GET, "/admin/keys/limited").bearer_auth(ADMIN)).await;
    assert_eq!(shown["limits"]["file_bytes"], 100_000);
    while send(other.bare(Method::GET, "/v1/models").bearer_auth(&limited)).await.status() != 200 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let path = "/v1/images/generations";
    let mut body = json!({ "model": "image_model_2", "prompt": "a kite", "size": "256x256" });
    let mut made = 0;
    while send(by(&limited, [&one, &other][made % 2], path, &body)).await.status() == 200 {
        made += 1;
        assert!(made < 40, "a key exceeded its limit");
    }
    // Files made on one gateway count on the other.
    assert!(made > 1);
    for server in [&one, &other] {
        is_rate_limit(by(&limited, server, path, &body), "code", "rate_limit_exceeded").await;
        let (_, error) = read(by(&limited, server, path, &body)).await;
        let message = error["error"]["message"].as_str().expect("a message");
        assert!(message.contains("of the 100000 bytes that its limit file_bytes allows"), "{message}");
        assert_eq!(send(by(KEY, server, path, &body)).await.status(), 200);
    }
    // Inline images need no file space.
    body["response_format"] = json!("b64_json");
    assert_eq!(send(by(&limited, &one, path, &body)).await.status(), 200);
    // A video exceeds the key's limit: retrying cannot help, and nothing is started.
    let video = json!({ "model": "video_model_3", "prompt": "a kite" });
    let refused = send(by(&limited, &one, VIDEOS, &video)).await;
    assert_eq!((refused.status().as_u16(), refused.headers().contains_key("retry-after")), (429, false));
    let error: Value = refused.json().await.expect("JSON");
    let message = error["error"]["message"].as_str().expect("a message");
    assert!(message.ends_with("request less, or use a key with a larger limit"), "{message}");
}
