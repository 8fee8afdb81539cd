//! Budgets of keys with requests in progress and with several processes (ours).

use std::path::Path;
use std::time::Duration;

use gatewright_gateway::{ApiKey, Config, Kind};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Server, read, send, start_with};
use crate::upstreams::{Scripted, Step, completion, config, json_answer, question, upstream};

const ADMIN: &str = "gw-admin-canary-77";
const CHAT: &str = "/v1/chat/completions";
/// Long enough for a busy machine; no passing test waits this long.
const PATIENCE: Duration = Duration::from_mins(1);

async fn start(folder: Option<&Path>, upstream_server: &Scripted) -> Server {
    let settings = config(vec![upstream("one", Kind::Chat, &upstream_server.url)]);
    let admin_key = Some(ApiKey::new(ADMIN).expect("a valid key"));
    start_with(Config { admin_key, data: folder.map(Path::to_path_buf), ..settings }).await
}

async fn create(server: &Server, limits: Value) -> String {
    let new = json!({ "name": "ci", "limits": limits });
    let (status, issued) = read(server.bare(Method::POST, "/admin/keys").bearer_auth(ADMIN).json(&new)).await;
    assert_eq!(status, 201, "{issued}");
    issued["secret"].as_str().expect("a secret").to_owned()
}

/// A request whose answer is limited to this many tokens.
fn ask(server: &Server, key: &str, most: u64) -> reqwest::RequestBuilder {
    let mut body = question(false);
    body["max_tokens"] = most.into();
    server.bare(Method::POST, CHAT).bearer_auth(key).json(&body).timeout(PATIENCE)
}

/// Waits for a condition.
async fn until(condition: impl AsyncFn() -> bool) {
    let waiting = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it becomes true");
}

#[tokio::test]
async fn requests_in_progress_reserve_their_share_of_the_budget() {
    let scripted = Scripted::start([vec![Step::Hang]]).await;
    let server = start(None, &scripted).await;
    let key = create(&server, json!({ "tokens_per_day": 1000 })).await;
    // Each reserves a bit more than 400 tokens: the third one exhausts the budget.
    let mut waiting = tokio::task::JoinSet::new();
    for count in 1..=3 {
        waiting.spawn(ask(&server, &key, 400).send());
        until(async || scripted.count() == count).await;
    }
    for _ in 0..5 {
        let response = send(ask(&server, &key, 1)).await;
        assert_eq!(response.status(), 429);
        assert!(response.headers().contains_key("retry-after"));
        let text = response.text().await.expect("a body");
        assert!(text.contains("rate_limit_exceeded") && text.contains("in progress"), "{text}");
    }
    assert_eq!(scripted.count(), 3);
    // Unused reservations are released.
    waiting.shutdown().await;
    scripted.then(json_answer(200, &completion("hello")));
    until(async || send(ask(&server, &key, 400)).await.status() == 200).await;
}

#[tokio::test]
async fn request_without_a_maximum_reserves_its_models_default() {
    let scripted = Scripted::start([vec![Step::Hang]]).await;
    let server = start(None, &scripted).await;
    let key = create(&server, json!({ "tokens_per_month": 1000 })).await;
    let waiting = server.bare(Method::POST, CHAT).bearer_auth(&key).json(&question(false)).send();
    let waiting = tokio::spawn(waiting);
    until(async || scripted.count() == 1).await;
    assert_eq!(read(ask(&server, &key, 1)).await.0, 429);
    waiting.abort();
}

#[tokio::test]
async fn failed_attempt_spends_no_budget() {
    let scripted = Scripted::start([json_answer(500, &json!({}))]).await;
    let server = start(None, &scripted).await;
    let key = create(&server, json!({ "tokens_per_day": 100 })).await;
    for _ in 0..3 {
        assert_eq!(read(ask(&server, &key, 1000)).await.0, 500);
    }
    scripted.then(json_answer(200, &completion("hello")));
    assert_eq!(read(ask(&server, &key, 1000)).await.0, 200);
}

#[tokio::test]
async fn budget_spent_by_one_process_is_spent_in_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let scripted = Scripted::start([json_answer(200, &completion("hello"))]).await;
    let one = start(Some(folder.path()), &scripted).await;
    let other = start(Some(folder.path()), &scripted).await;
    let key = create(&one, json!({ "tokens_per_day": 11 })).await;
    // The other process knows the key before much is spent. An answer takes five tokens.
    until(async || send(ask(&other, &key, 1)).await.status() == 200).await;
    for _ in 0..2 {
        assert_eq!(read(ask(&one, &key, 1)).await.0, 200);
    }
    // A request that would be rejected anyway if budget were left, so it spends nothing.
    let nothing = async || {
        let request = other.bare(Method::POST, CHAT).bearer_auth(&key).json(&json!({}));
        let (status, refused) = read(request).await;
        assert!(status == 400 || status == 429, "{refused}");
        refused["error"]["code"] == "insufficient_quota"
    };
    until(nothing).await;
    assert_eq!(scripted.count(), 3);
}
