//! Several gateways on one Postgres server (ours): each sees the others' changes. `cargo xtask test nodes` runs these tests.

#![expect(clippy::print_stderr, reason = "says what was measured")]

mod bucket;
mod dying;
mod lost_leases;
mod shared_config;
mod stopping;

use std::time::{Duration, Instant};

use gatewright_gateway::{ApiKey, Config, Gateway, Pepper, StoreUrl};
use gatewright_test_stores::{Network, Postgres, Way};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::store_outage::Load;
use crate::support::{KEY, Server, read, send, start_with};

const ADMIN: &str = "gw-admin-canary-77";
/// Within this time, every node knows of a key that another one has changed.
const KNOWN: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_mins(1);

/// 32 bytes in base64.
fn pepper(letter: &str) -> Pepper {
    Pepper::new(&format!("{}=", letter.repeat(43))).expect("a pepper")
}

fn node(store: &Postgres) -> Config {
    Config {
        store: Some(StoreUrl::new(&store.url()).expect("an address")),
        pepper: Some(pepper("A")),
        admin_key: Some(ApiKey::new(ADMIN).expect("a valid key")),
        ..Config::default()
    }
}

fn admin(node: &Server, method: Method, path: &str) -> RequestBuilder {
    node.bare(method, &format!("/admin{path}")).bearer_auth(ADMIN)
}

async fn create(node: &Server, new: Value) -> String {
    let (status, issued) = read(admin(node, Method::POST, "/keys").json(&new)).await;
    assert_eq!(status, 201, "{issued}");
    issued["secret"].as_str().expect("a secret").to_owned()
}

async fn chat(node: &Server, key: &str) -> (u16, Value) {
    let body = json!({ "model": "model-sol", "messages": [{ "role": "user", "content": "Say hi" }] });
    read(node.bare(Method::POST, "/v1/chat/completions").bearer_auth(key).json(&body)).await
}

/// Waits until a node answers a request with this key with this status. Returns the time it took.
async fn until(node: &Server, key: &str, expected: u16) -> Duration {
    let started = Instant::now();
    while read(node.bare(Method::GET, "/v1/models").bearer_auth(key)).await.0 != expected {
        assert!(started.elapsed() < PATIENCE, "{expected} does not come");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    started.elapsed()
}

#[tokio::test]
async fn key_changes_reach_all_nodes_within_two_seconds() {
    let store = Postgres::start();
    let (one, other) = (start_with(node(&store)).await, start_with(node(&store)).await);
    for round in 0..3 {
        let name = format!("ci-{round}");
        let first = create(&one, json!({ "name": name })).await;
        let made = until(&other, &first, 200).await;
        let (status, rotated) =
            read(admin(&other, Method::POST, &format!("/keys/{name}/rotate")).json(&json!({}))).await;
        assert_eq!(status, 200, "{rotated}");
        let second = rotated["secret"].as_str().expect("a secret").to_owned();
        let rotated = until(&one, &first, 401).await.max(until(&one, &second, 200).await);
        assert_eq!(read(admin(&one, Method::DELETE, &format!("/keys/{name}"))).await.0, 200);
        let revoked = until(&other, &second, 401).await;
        eprintln!("known after: made {made:?}, rotated {rotated:?}, revoked {revoked:?}");
        assert!([made, rotated, revoked].iter().all(|took| *took < KNOWN));
    }
}

#[tokio::test]
async fn key_is_revoked_on_all_nodes_after_a_store_outage() {
    let mut store = Postgres::start();
    let (one, other) = (start_with(node(&store)).await, start_with(node(&store)).await);
    let secret = create(&one, json!({ "name": "ci" })).await;
    until(&other, &secret, 200).await;
    store.stop();
    // It cannot be revoked, and keeps working.
    assert_eq!(read(admin(&one, Method::DELETE, "/keys/ci")).await.0, 503);
    assert_eq!(chat(&other, &secret).await.0, 200);
    store.resume();
    let started = Instant::now();
    while read(admin(&one, Method::DELETE, "/keys/ci")).await.0 != 200 {
        assert!(started.elapsed() < PATIENCE, "the store is not used again");
    }
    assert!(until(&other, &secret, 401).await < PATIENCE);
}

#[tokio::test]
async fn file_limit_of_a_key_holds_across_nodes() {
    let store = Postgres::start();
    let (one, other) = (start_with(node(&store)).await, start_with(node(&store)).await);
    let secret = create(&one, json!({ "name": "ci", "limits": { "file_bytes": 100_000 } })).await;
    until(&other, &secret, 200).await;
    let body = json!({ "model": "image_model_2", "prompt": "a kite", "size": "256x256" });
    let draw = async |node: &Server| {
        let path = "/v1/images/generations";
        read(node.bare(Method::POST, path).bearer_auth(&secret).json(&body)).await
    };
    let mut drawn = 0;
    while draw(&one).await.0 == 200 {
        drawn += 1;
        assert!(drawn < 40, "a key exceeded its limit");
    }
    let (status, error) = draw(&other).await;
    let message = error["error"]["message"].as_str().expect("a message");
    assert!(
        drawn > 0 && message.contains("of the 100000 bytes that its limit file_bytes allows"),
        "{message}"
    );
    assert_eq!((status, &error["error"]["code"]), (429, &json!("rate_limit_exceeded")));
}

#[tokio::test]
async fn usage_and_budgets_are_shared_across_nodes() {
    let store = Postgres::start();
    let (one, other) = (start_with(node(&store)).await, start_with(node(&store)).await);
    let secret = create(&one, json!({ "name": "ci", "limits": { "tokens_per_day": 10_000 } })).await;
    until(&other, &secret, 200).await;
    let mut tokens = 0;
    for node in [&one, &other, &one, &other, &other] {
        let (status, answer) = chat(node, &secret).await;
        assert_eq!(status, 200, "{answer}");
        tokens += answer["usage"]["total_tokens"].as_u64().expect("a count");
    }
    let started = Instant::now();
    loop {
        let (status, report) = read(admin(&other, Method::GET, "/usage?key=ci&by=key")).await;
        let row = &report["usage"][0];
        let counted =
            [&row["input_tokens"], &row["output_tokens"]].map(|count| count.as_u64().unwrap_or_default());
        if (row["requests"].as_u64(), counted[0] + counted[1]) == (Some(5), tokens) {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "{tokens} tokens expected: {status} {report}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Spending on one node uses up the budget on the other.
    let brief = json!({ "name": "brief", "limits": { "tokens_per_day": 1 } });
    let secret = create(&one, brief).await;
    until(&other, &secret, 200).await;
    assert_eq!(chat(&one, &secret).await.0, 200);
    let started = Instant::now();
    let refused = loop {
        let (status, answer) = chat(&other, &secret).await;
        if status == 429 {
            break answer;
        }
        assert!(started.elapsed() < PATIENCE, "the budget is not shared");
    };
    assert_eq!(refused["error"]["code"], "insufficient_quota");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn store_restart_under_load_loses_no_request_or_usage() {
    let mut store = Postgres::start();
    let load = Load::start(node(&store)).await;
    for _ in 0..2 {
        load.answered(8).await;
        store.stop();
        load.goes_on_without_it().await;
        store.resume();
    }
    load.ends().await;
}

#[tokio::test]
async fn node_started_without_the_store_serves_and_loads_keys_later() {
    let mut store = Postgres::start();
    let one = start_with(node(&store)).await;
    let secret = create(&one, json!({ "name": "ci" })).await;
    store.stop();
    let other = start_with(node(&store)).await;
    assert_eq!(chat(&other, KEY).await.0, 200);
    assert_eq!(chat(&other, &secret).await.0, 503);
    store.resume();
    until(&other, &secret, 200).await;
}

#[tokio::test]
async fn node_started_with_a_silent_store_serves_within_seconds() {
    let (store, network) = (Postgres::start(), Network::new());
    let config =
        Config { store: Some(StoreUrl::new(&network.url_of(&store)).expect("an address")), ..node(&store) };
    network.set(Way::Silent);
    let started = Instant::now();
    let one = start_with(config).await;
    assert_eq!(chat(&one, KEY).await.0, 200);
    // An operation waits for 4 s.
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    network.set(Way::Open);
    let secret = loop {
        let (status, issued) = read(admin(&one, Method::POST, "/keys").json(&json!({ "name": "ci" }))).await;
        if status == 201 {
            break issued["secret"].as_str().expect("a secret").to_owned();
        }
        assert!(started.elapsed() < PATIENCE, "{issued}");
    };
    until(&one, &secret, 200).await;
}

#[tokio::test]
async fn node_with_wrong_pepper_password_or_database_fails_to_start() {
    _ = rustls::crypto::ring::default_provider().install_default();
    let store = Postgres::start();
    let _first = start_with(node(&store)).await;
    let refused = async |config: Config| {
        let config = Config { listen: vec!["127.0.0.1:0".to_owned()], ..config };
        let error = Gateway::bind(config).await.err().expect("a refusal").to_string();
        assert!(!error.contains(store.password()) && !error.contains("wrong"), "{error}");
        error
    };
    let error = refused(Config { pepper: Some(pepper("Q")), ..node(&store) }).await;
    assert!(error.contains("the configured pepper does not match the keys in postgres://"), "{error}");
    let error = refused(Config { pepper: None, ..node(&store) }).await;
    assert!(error.contains("needs a pepper"), "{error}");
    let at = |url: String| Some(StoreUrl::new(&url).expect("an address"));
    let error = refused(Config { store: at(store.url_with_wrong_password()), ..node(&store) }).await;
    assert!(error.contains("password authentication failed"), "{error}");
    let error =
        refused(Config { store: at(store.url().replace("/postgres?", "/none?")), ..node(&store) }).await;
    assert!(error.contains("database \"none\" does not exist"), "{error}");
}

/// The gateways that a node lists.
async fn listed(node: &Server) -> Vec<Value> {
    let (status, listed) = read(admin(node, Method::GET, "/nodes")).await;
    assert_eq!(status, 200, "{listed}");
    listed["nodes"].as_array().expect("nodes").clone()
}

#[tokio::test]
async fn every_node_lists_the_running_nodes() {
    let store = Postgres::start();
    let called = |name: &str| Config { name: Some(name.to_owned()), ..node(&store) };
    let (one, other) = (start_with(called("one")).await, start_with(called("other")).await);
    let until_listed = async |expected: &[&str]| {
        let started = Instant::now();
        loop {
            let nodes = listed(&one).await;
            let names: Vec<_> = nodes.iter().map(|node| node["name"].as_str().unwrap_or_default()).collect();
            if names == expected {
                return nodes;
            }
            assert!(started.elapsed() < PATIENCE, "{expected:?} are expected: {nodes:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let nodes = until_listed(&["one", "other"]).await;
    assert_eq!(nodes, listed(&other).await);
    assert_eq!(nodes[0]["addresses"], json!([one.url]));
    assert_eq!(nodes[1]["addresses"], json!([other.url]));
    assert_ne!(nodes[0]["id"], nodes[1]["id"]);
    assert_eq!(nodes[0]["version"], env!("CARGO_PKG_VERSION"));
    drop(other);
    until_listed(&["one"]).await;
}

const RESPONSES: &str = "/v1/responses";

fn ask(text: &str) -> Value {
    json!({ "model": "model-sol", "input": text })
}

async fn retrieve(node: &Server, id: &str) -> (u16, Value) {
    read(node.get(&format!("{RESPONSES}/{id}"))).await
}

#[tokio::test]
async fn response_is_retrieved_continued_and_deleted_on_another_node() {
    let store = Postgres::start();
    let (one, other) = (start_with(node(&store)).await, start_with(node(&store)).await);
    let first = one.ask(RESPONSES, &ask("Say apples")).await;
    let id = first["id"].as_str().expect("an id");
    // Immediately: it is written before the terminal event is sent.
    assert_eq!(retrieve(&other, id).await, (200, first.clone()));
    let next =
        json!({ "model": "model-sol", "input": "Say pears", "previous_response_id": id, "stream": true });
    let events = other.stream(RESPONSES, &next).await;
    let last = events
        .iter()
        .rev()
        .filter(|event| event.data.starts_with('{'))
        .map(crate::support::Event::json)
        .find(|event| event["response"].is_object());
    let second = last.expect("its end")["response"]["id"].as_str().expect("an id").to_owned();
    let items = format!("{RESPONSES}/{second}/input_items");
    let (status, page) = read(one.get(&items)).await;
    assert_eq!((status, page["data"].as_array().map(Vec::len)), (200, Some(3)), "{page}");
    // A copy in memory is dropped, too.
    let (status, deleted) =
        read(other.bare(Method::DELETE, &format!("{RESPONSES}/{id}")).bearer_auth(KEY)).await;
    assert_eq!((status, &deleted["deleted"]), (200, &json!(true)));
    for node in [&one, &other] {
        assert_eq!(retrieve(node, id).await.0, 404);
        assert_eq!(retrieve(node, &second).await.0, 200);
    }
    let of_deleted = json!({ "model": "model-sol", "input": "Say plums", "previous_response_id": id });
    assert_eq!(one.refused(RESPONSES, &of_deleted).await.0, 400);
    // Another key cannot access it on any node.
    let secret = create(&one, json!({ "name": "ci" })).await;
    until(&other, &secret, 200).await;
    let path = format!("{RESPONSES}/{second}");
    assert_eq!(read(other.bare(Method::GET, &path).bearer_auth(&secret)).await.0, 404);
    // A response with `store: false` is on no node.
    let body = json!({ "model": "model-sol", "input": "Say plums", "store": false });
    let unstored = one.ask(RESPONSES, &body).await;
    assert_eq!(retrieve(&other, unstored["id"].as_str().expect("an id")).await.0, 404);
}

#[tokio::test]
async fn repeated_request_is_replayed_on_every_node() {
    let store = Postgres::start();
    let (one, other) = (start_with(node(&store)).await, start_with(node(&store)).await);
    let keyed = async |node: &Server, text: &str| {
        let answer = send(node.post(RESPONSES, &ask(text)).header("idempotency-key", "k")).await;
        let replayed = answer.headers().contains_key("idempotency-replayed");
        (answer.status().as_u16(), answer.json::<Value>().await.expect("JSON"), replayed)
    };
    let (status, first, replayed) = keyed(&one, "Say apples").await;
    assert_eq!((status, replayed), (200, false));
    for node in [&other, &one, &other] {
        assert_eq!(keyed(node, "Say apples").await, (200, first.clone(), true));
    }
    let (status, refused, _) = keyed(&other, "Say pears").await;
    assert_eq!((status, &refused["error"]["code"]), (422, &json!("idempotency_key_reused")));
    // One of several concurrent requests is executed; the others get a conflict or its answer.
    let body = json!({ "model": "video_model_3", "prompt": "a comet", "duration": 3, "resolution": "720p" });
    let submitting = (0..8).map(|number| {
        let node = if number % 2 == 0 { &one } else { &other };
        read(node.post("/v1/videos/generations", &body).header("idempotency-key", "v"))
    });
    let mut ids = std::collections::HashSet::new();
    for (status, answer) in futures_util::future::join_all(submitting).await {
        match status {
            200 => _ = ids.insert(answer["id"].as_str().expect("an id").to_owned()),
            status => assert_eq!((status, &answer["error"]["code"]), (409, &json!("idempotency_key_in_use"))),
        }
    }
    assert_eq!(ids.len(), 1);
}

#[tokio::test]
async fn answers_made_during_a_store_outage_are_written_later() {
    let mut store = Postgres::start();
    let (one, other) = (start_with(node(&store)).await, start_with(node(&store)).await);
    store.stop();
    let started = Instant::now();
    let first = one.ask(RESPONSES, &ask("Say apples")).await;
    let id = first["id"].as_str().expect("an id");
    assert_eq!(retrieve(&one, id).await, (200, first.clone()));
    assert_eq!(retrieve(&other, id).await.0, 503, "the other node cannot know");
    let keyed = || one.post(RESPONSES, &ask("Say pears")).header("idempotency-key", "k");
    let (status, answer) = read(keyed()).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(read(keyed()).await, (200, answer));
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    store.resume();
    while retrieve(&other, id).await != (200, first.clone()) {
        assert!(started.elapsed() < PATIENCE, "it is not written");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
