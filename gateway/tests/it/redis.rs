//! Several gateways that share counters on a Redis server (ours). `cargo xtask test nodes` runs these tests.

#![expect(clippy::print_stderr, reason = "says what was measured")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gatewright_gateway::{ApiKey, Config, CounterServer, CountersUrl, Kind};
use gatewright_test_stores::Redis;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::support::{Server, read, send, start_with};
use crate::upstreams::{self, Scripted, Step, completion, json_answer, question, upstream};

const ADMIN: &str = "gw-admin-canary-77";
const CHAT: &str = "/v1/chat/completions";
/// Long enough for a busy machine; no passing test waits this long.
const PATIENCE: Duration = Duration::from_mins(1);

/// Gateways that share counters, and keys in a data folder.
struct Cluster {
    redis: Redis,
    upstream: Scripted,
    data: TempDir,
    nodes: [Arc<Server>; 2],
}

impl Cluster {
    /// `timeout`: how long a request waits for the counters.
    async fn start(timeout: Duration) -> Self {
        let (redis, data) = (Redis::start(), tempfile::tempdir().expect("a folder"));
        let upstream = Scripted::start([json_answer(200, &completion("hello"))]).await;
        let start = async || Arc::new(start_with(node(&redis, data.path(), &upstream, timeout)).await);
        let nodes = [start().await, start().await];
        for node in &nodes {
            becomes(node, "shared").await;
        }
        Self { redis, upstream, data, nodes }
    }

    /// Creates a key that both gateways know.
    async fn key(&self, name: &str, limits: Value) -> String {
        let [one, other] = &self.nodes;
        let new = json!({ "name": name, "limits": limits });
        let (status, issued) =
            read(one.bare(Method::POST, "/admin/keys").bearer_auth(ADMIN).json(&new)).await;
        assert_eq!(status, 201, "{issued}");
        let key = issued["secret"].as_str().expect("a secret").to_owned();
        until(async || read(other.bare(Method::GET, "/v1/models").bearer_auth(&key)).await.0 == 200).await;
        key
    }
}

fn node(redis: &Redis, data: &Path, upstream: &Scripted, timeout: Duration) -> Config {
    let mut counters = CounterServer::new(CountersUrl::new(&redis.url()).expect("an address"));
    counters.timeout = timeout;
    Config {
        data: Some(data.to_path_buf()),
        counters: Some(counters),
        admin_key: Some(ApiKey::new(ADMIN).expect("a valid key")),
        open_metrics: true,
        ..upstreams::config(vec![self::upstream("one", Kind::Chat, &upstream.url)])
    }
}

async fn until(condition: impl AsyncFn() -> bool) {
    let waiting = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it becomes true");
}

/// Waits until a node reports that its limits are shared, or local. It is ready in both cases.
async fn becomes(node: &Server, limits: &str) {
    until(async || {
        let response = send(node.bare(Method::GET, "/health/ready")).await;
        assert_eq!(response.status(), 200);
        let state: Value = serde_json::from_str(&response.text().await.expect("text")).expect("JSON");
        assert_eq!(state["status"], "ready");
        state["limits"] == limits
    })
    .await;
}

async fn metric(node: &Server, name: &str) -> f64 {
    let text = send(node.bare(Method::GET, "/metrics")).await.text().await.expect("text");
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} in {text}"))
}

fn chat(node: &Server, key: &str) -> reqwest::RequestBuilder {
    node.bare(Method::POST, CHAT).bearer_auth(key).json(&question(false)).timeout(PATIENCE)
}

/// Sends this many concurrent requests to both nodes, and returns how many were granted.
async fn granted(nodes: &[Arc<Server>; 2], key: &str, requests: usize) -> usize {
    let mut clients = JoinSet::new();
    for client in 0..8 {
        let (node, key) = (Arc::clone(&nodes[client % 2]), key.to_owned());
        clients.spawn(async move {
            let mut granted = 0;
            for _ in 0..requests / 8 {
                let response = send(chat(&node, &key)).await;
                match response.status() {
                    StatusCode::OK => granted += 1,
                    refused => assert_eq!(refused, 429),
                }
                _ = response.bytes().await;
            }
            granted
        });
    }
    clients.join_all().await.into_iter().sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn per_minute_limit_holds_exactly_across_gateways() {
    let nodes = Cluster::start(PATIENCE).await;
    let key = nodes.key("ci", json!({ "requests_per_minute": 60 })).await;
    let started = Instant::now();
    let count = granted(&nodes.nodes, &key, 160).await;
    // Meanwhile, one request per second refills.
    let most = 60 + usize::try_from(started.elapsed().as_secs()).expect("few") + 1;
    eprintln!("{count} of 160 granted in {:?}", started.elapsed());
    assert!((60..=most).contains(&count), "{count}");
    assert_eq!(nodes.upstream.count(), count);
    for node in &nodes.nodes {
        assert!(metric(node, "gatewright_counters_local_requests_total").await < 0.5);
    }
}

#[tokio::test]
async fn remaining_limits_are_reported_across_gateways() {
    let nodes = Cluster::start(PATIENCE).await;
    let [one, other] = &nodes.nodes;
    let key = nodes.key("ci", json!({ "requests_per_minute": 3, "tokens_per_minute": 1000 })).await;
    let left = async |node: &Server, what: &str| {
        let response = send(chat(node, &key)).await;
        let status = response.status().as_u16();
        let name = format!("x-ratelimit-remaining-{what}");
        (status, response.headers()[name].to_str().expect("ASCII").to_owned())
    };
    assert_eq!(left(one, "requests").await, (200, "2".to_owned()));
    assert_eq!(left(other, "requests").await, (200, "1".to_owned()));
    assert_eq!(left(one, "requests").await, (200, "0".to_owned()));
    let (status, tokens) = left(other, "tokens").await;
    let tokens: u64 = tokens.parse().expect("a number");
    // Three answers of five tokens; a few tokens refill meanwhile.
    assert!(status == 429 && (985..1000).contains(&tokens), "{status} {tokens}");
}

#[tokio::test]
async fn tokens_spent_on_one_gateway_count_on_the_other() {
    let nodes = Cluster::start(PATIENCE).await;
    let [one, other] = &nodes.nodes;
    let key = nodes.key("ci", json!({ "tokens_per_minute": 4 })).await;
    // An answer takes five tokens.
    assert_eq!(send(chat(one, &key)).await.status(), 200);
    until(async || nodes.redis.command("KEYS *:tokens").contains("gatewright:{")).await;
    let (status, refused) = read(chat(other, &key)).await;
    assert_eq!((status, &refused["error"]["code"]), (429, &json!("rate_limit_exceeded")));
    assert_eq!(read(chat(one, &key)).await.0, 429);
}

#[tokio::test]
async fn budget_holds_across_gateways() {
    let nodes = Cluster::start(PATIENCE).await;
    let key = nodes.key("ci", json!({ "tokens_per_day": 100 })).await;
    let started = Instant::now();
    let mut granted = 0;
    for turn in 0..60 {
        let (status, answer) = read(chat(&nodes.nodes[turn % 2], &key)).await;
        granted += usize::from(status == 200);
        assert!(status == 200 || answer["error"]["code"] == "insufficient_quota", "{answer}");
    }
    eprintln!("{granted} of 60 granted in {:?}", started.elapsed());
    // Twenty answers of five tokens. Spending is reported within some ten milliseconds; meanwhile the other gateway may grant one more.
    assert!((20..=23).contains(&granted), "{granted}");
    assert_eq!(nodes.upstream.count(), granted);
}

#[tokio::test]
async fn concurrent_requests_are_limited_across_gateways() {
    let nodes = Cluster::start(PATIENCE).await;
    let [one, other] = &nodes.nodes;
    let key = nodes.key("ci", json!({ "concurrent_requests": 2 })).await;
    nodes.upstream.then(vec![Step::Hang]);
    let mut waiting = JoinSet::new();
    for (count, node) in [(1, one), (2, other)] {
        waiting.spawn(chat(node, &key).send());
        until(async || nodes.upstream.count() == count).await;
    }
    for node in [one, other] {
        assert_eq!(read(chat(node, &key)).await.0, 429);
    }
    waiting.shutdown().await;
    nodes.upstream.then(json_answer(200, &completion("hello")));
    for node in [one, other] {
        until(async || read(chat(node, &key)).await.0 == 200).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_counter_server_under_load_falls_back_to_local_limits() {
    let mut nodes = Cluster::start(Duration::from_secs(2)).await;
    let key = nodes.key("ci", json!({ "requests_per_minute": 20 })).await;
    let free = nodes.key("free", json!({})).await;
    let started = Instant::now();
    assert!(granted(&nodes.nodes, &key, 16).await <= 16);
    nodes.redis.stop();
    // Each gateway now has its own limit of twenty, and knows at least its own eight requests.
    let count = granted(&nodes.nodes, &key, 160).await;
    let most = 24 + 2 * usize::try_from(started.elapsed().as_secs()).expect("few") / 3 + 2;
    eprintln!("{count} granted by two gateways without counters");
    assert!((4..=most).contains(&count), "{count} of {most}");
    for node in &nodes.nodes {
        becomes(node, "local").await;
        assert!(metric(node, "gatewright_counters_present").await < 0.5);
        assert!(metric(node, "gatewright_counters_losses_total").await > 0.5);
        assert_eq!(send(chat(node, &free)).await.status(), 200);
    }
    nodes.redis.resume();
    for node in &nodes.nodes {
        becomes(node, "shared").await;
    }
    // The server has lost its data, and the gateways restore it.
    let started = Instant::now();
    let count = granted(&nodes.nodes, &key, 80).await;
    let most = 2 + usize::try_from(started.elapsed().as_secs()).expect("few") / 3 + 20 / 4;
    assert!(count <= most, "{count} of {most}");
}

#[tokio::test]
async fn hanging_counter_server_costs_one_bounded_wait() {
    let wait = Duration::from_millis(300);
    let nodes = Cluster::start(wait).await;
    let [one, _] = &nodes.nodes;
    let key = nodes.key("ci", json!({ "requests_per_minute": 1000 })).await;
    assert_eq!(send(chat(one, &key)).await.status(), 200);
    nodes.redis.hang();
    let mut took = Vec::new();
    for _ in 0..20 {
        let started = Instant::now();
        assert_eq!(send(chat(one, &key)).await.status(), 200);
        took.push(started.elapsed());
    }
    eprintln!("with a server that hangs: {took:?}");
    // Only the first request waits.
    assert!(took[0] >= wait && took[1..].iter().filter(|took| **took >= wait).count() <= 2, "{took:?}");
    becomes(one, "local").await;
    nodes.redis.go_on();
    becomes(one, "shared").await;
    assert_eq!(send(chat(one, &key)).await.status(), 200);
}

#[tokio::test]
async fn gateway_starts_without_counters_or_with_a_wrong_password() {
    let mut redis = Redis::start();
    let data = tempfile::tempdir().expect("a folder");
    let upstream = Scripted::start([json_answer(200, &completion("hello"))]).await;
    let mut wrong = node(&redis, data.path(), &upstream, PATIENCE);
    let url = CountersUrl::new(&redis.url_with_wrong_password()).expect("an address");
    assert!(!format!("{url:?} {url} {wrong:?}").contains(redis.password()));
    wrong.counters = Some(CounterServer::new(url));
    let wrong = start_with(wrong).await;
    redis.stop();
    let away = start_with(node(&redis, data.path(), &upstream, PATIENCE)).await;
    for node in [&wrong, &away] {
        becomes(node, "local").await;
    }
    redis.resume();
    becomes(&away, "shared").await;
    becomes(&wrong, "local").await;
}

#[tokio::test]
async fn counter_entries_contain_no_secrets_and_expire() {
    let nodes = Cluster::start(PATIENCE).await;
    let [one, _] = &nodes.nodes;
    let limits = json!({ "requests_per_minute": 10, "tokens_per_minute": 100, "concurrent_requests": 3, "cost_per_day": 1 });
    let key = nodes.key("ci", limits).await;
    assert_eq!(send(chat(one, &key)).await.status(), 200);
    until(async || nodes.redis.command("KEYS *:tokens").contains("gatewright:{")).await;
    let names = nodes.redis.command("KEYS *");
    assert!(names.contains(":requests") && names.contains(":spent:") && !names.contains(&key), "{names}");
    for name in names.lines().filter(|line| line.starts_with("gatewright:")) {
        let left = nodes.redis.command(&format!("PTTL {name}"));
        let left: i64 = left.trim().trim_start_matches(':').parse().expect("a time");
        // Expired by now, or soon.
        assert!(left == -2 || (0..=3_660_000).contains(&left), "{name}: {left}");
    }
    assert!(nodes.data.path().exists());
}
