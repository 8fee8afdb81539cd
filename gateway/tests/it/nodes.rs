//! Several gateways on one Postgres server (ours): each knows what the others know. `cargo xtask test nodes` runs these.

#![expect(clippy::print_stderr, reason = "says what was measured")]

use std::time::{Duration, Instant};

use gatewright_gateway::{ApiKey, Config, Gateway, Pepper, StoreUrl};
use gatewright_test_stores::Postgres;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::store_away::Load;
use crate::support::{KEY, Server, read, start_with};

const ADMIN: &str = "gw-admin-canary-77";
/// Within this time every node knows of a key that another has changed.
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

/// Waits until a node answers a key with this status, and gives the time that it took.
async fn until(node: &Server, key: &str, expected: u16) -> Duration {
    let begun = Instant::now();
    while read(node.bare(Method::GET, "/v1/models").bearer_auth(key)).await.0 != expected {
        assert!(begun.elapsed() < PATIENCE, "{expected} does not come");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    begun.elapsed()
}

#[tokio::test]
async fn a_key_that_one_node_makes_rotates_or_revokes_is_known_on_all_within_two_seconds() {
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
async fn a_key_is_revoked_everywhere_also_after_the_store_was_away() {
    let mut store = Postgres::start();
    let (one, other) = (start_with(node(&store)).await, start_with(node(&store)).await);
    let secret = create(&one, json!({ "name": "ci" })).await;
    until(&other, &secret, 200).await;
    store.stop();
    // It cannot be revoked, and goes on working.
    assert_eq!(read(admin(&one, Method::DELETE, "/keys/ci")).await.0, 503);
    assert_eq!(chat(&other, &secret).await.0, 200);
    store.resume();
    let begun = Instant::now();
    while read(admin(&one, Method::DELETE, "/keys/ci")).await.0 != 200 {
        assert!(begun.elapsed() < PATIENCE, "the store is not used again");
    }
    assert!(until(&other, &secret, 401).await < PATIENCE);
}

#[tokio::test]
async fn usage_of_all_nodes_adds_up_and_a_budget_holds_for_them_together() {
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
    let begun = Instant::now();
    loop {
        let (status, report) = read(admin(&other, Method::GET, "/usage?key=ci&by=key")).await;
        let row = &report["usage"][0];
        let counted =
            [&row["input_tokens"], &row["output_tokens"]].map(|count| count.as_u64().unwrap_or_default());
        if (row["requests"].as_u64(), counted[0] + counted[1]) == (Some(5), tokens) {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{tokens} tokens expected: {status} {report}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // What one has spent uses up the budget on the other.
    let brief = json!({ "name": "brief", "limits": { "tokens_per_day": 1 } });
    let secret = create(&one, brief).await;
    until(&other, &secret, 200).await;
    assert_eq!(chat(&one, &secret).await.0, 200);
    let begun = Instant::now();
    let refused = loop {
        let (status, answer) = chat(&other, &secret).await;
        if status == 429 {
            break answer;
        }
        assert!(begun.elapsed() < PATIENCE, "the budget is not shared");
    };
    assert_eq!(refused["error"]["code"], "insufficient_quota");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_stops_and_starts_under_load_costs_no_request_and_no_usage() {
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
async fn a_node_that_starts_while_the_server_is_away_serves_and_reads_its_keys_later() {
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
async fn a_node_with_another_pepper_password_or_database_does_not_start_and_says_why() {
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
    assert!(error.contains("the configured pepper is not what the keys in postgres://"), "{error}");
    let error = refused(Config { pepper: None, ..node(&store) }).await;
    assert!(error.contains("needs a pepper"), "{error}");
    let at = |url: String| Some(StoreUrl::new(&url).expect("an address"));
    let error = refused(Config { store: at(store.url_with_wrong_password()), ..node(&store) }).await;
    assert!(error.contains("password authentication failed"), "{error}");
    let error =
        refused(Config { store: at(store.url().replace("/postgres?", "/none?")), ..node(&store) }).await;
    assert!(error.contains("database \"none\" does not exist"), "{error}");
}
