//! Usage by key, model, upstream and day: recording, store outages, and budgets (ours).

use std::path::Path;
use std::time::{Duration, Instant};

use gatewright_gateway::{
    ApiKey, Config, Kind, ModelConfig, ModelPrice, Registry, TargetConfig, UpstreamConfig, UsageQuery,
};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use crate::support::{Server, read, send, start_with};
use crate::upstreams::{self, STREAM_HEAD, Scripted, Step, json_answer, question, upstream};

const ADMIN: &str = "gw-admin-canary-77";

/// A gateway whose text models cost 1 per million input tokens and 10 per million output tokens.
async fn start(folder: Option<&Path>, config: Config) -> Server {
    let admin_key = Some(ApiKey::new(ADMIN).expect("a valid key"));
    let mut config = Config { admin_key, data: folder.map(Path::to_path_buf), ..config };
    for target in config.models.iter_mut().flat_map(|model| &mut model.targets) {
        target.price = Some(ModelPrice::new(1.0, 10.0));
    }
    start_with(config).await
}

async fn create(server: &Server, new: Value) -> String {
    let (status, issued) = read(server.bare(Method::POST, "/admin/keys").bearer_auth(ADMIN).json(&new)).await;
    assert_eq!(status, 201, "{issued}");
    issued["secret"].as_str().expect("a secret").to_owned()
}

fn chat(server: &Server, key: &str, stream: bool) -> reqwest::RequestBuilder {
    let messages = json!([{ "role": "user", "content": "count to 20" }]);
    let mut body = json!({ "model": "model-sol", "messages": messages, "stream": stream });
    if stream {
        body["stream_options"] = json!({ "include_usage": true });
    }
    server.bare(Method::POST, "/v1/chat/completions").bearer_auth(key).json(&body)
}

async fn usage(server: &Server, query: &str) -> Vec<Value> {
    let path = format!("/admin/usage?{query}");
    let (status, report) = read(server.bare(Method::GET, &path).bearer_auth(ADMIN)).await;
    assert_eq!(status, 200, "{report}");
    report["usage"].as_array().expect("rows").clone()
}

/// The only row of a report, once it counts this many requests.
async fn row_of(server: &Server, query: &str, requests: u64) -> Value {
    let started = Instant::now();
    loop {
        match &*usage(server, query).await {
            [row] if row["requests"] == requests => return row.clone(),
            rows => assert!(started.elapsed() < Duration::from_secs(10), "{requests}: {rows:?}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn usage_is_recorded_by_key_model_upstream_and_day_with_cost() {
    let server = start(None, Config::default()).await;
    let key = create(&server, json!({ "name": "ci" })).await;
    let (_, answer) = read(chat(&server, &key, false)).await;
    let (read_tokens, written) = (&answer["usage"]["prompt_tokens"], &answer["usage"]["completion_tokens"]);
    send(chat(&server, &key, true)).await.text().await.expect("a whole stream");
    let row = row_of(&server, "key=ci", 2).await;
    let twice = |tokens: &Value| tokens.as_u64().expect("tokens") * 2;
    assert_eq!(
        (&row["input_tokens"], &row["output_tokens"]),
        (&json!(twice(read_tokens)), &json!(twice(written)))
    );
    assert_eq!(
        (&row["model"], &row["upstream"], &row["name"]),
        (&json!("model-sol"), &json!("simulator"), &json!("ci"))
    );
    assert_eq!((&row["complete"], &row["estimated"]), (&json!(2), &json!(0)), "{row}");
    let micros = u32::try_from(twice(read_tokens) + 10 * twice(written)).expect("few tokens");
    let cost = f64::from(micros) / 1e6;
    assert!((row["cost"].as_f64().expect("an amount") - cost).abs() < 1e-9, "{row}");
    assert_eq!(row["day"].as_str().map(str::len), Some("2026-07-31".len()));
    // Grouped by model only: one row, without the other labels. Another key has none.
    let all = usage(&server, "by=model").await;
    assert_eq!((all.len(), &all[0]["key"], &all[0]["day"]), (1, &Value::Null, &Value::Null));
    assert_eq!(usage(&server, "key=nobody").await, Vec::<Value>::new());
    assert_eq!(usage(&server, "from=2020-01-01&to=2020-12-31").await, Vec::<Value>::new());
}

#[tokio::test]
async fn aborted_stream_is_recorded_as_an_estimate() {
    let slow = Config { event_delay: Duration::from_millis(50), ..Config::default() };
    let server = start(None, slow).await;
    let key = create(&server, json!({ "name": "ci" })).await;
    let mut stream = send(chat(&server, &key, true)).await;
    for _ in 0..5 {
        stream.chunk().await.expect("bytes").expect("an event");
    }
    drop(stream);
    let row = row_of(&server, "key=ci", 1).await;
    assert_eq!((&row["complete"], &row["estimated"]), (&json!(0), &json!(1)), "{row}");
    let tokens = |name: &str| row[name].as_u64().expect("a count");
    assert!(tokens("input_tokens") > 0 && tokens("output_tokens") >= 2, "{row}");
    assert!(row["cost"].as_f64().is_some_and(|cost| cost > 0.0), "{row}");
}

/// Providers send long pieces, whose tokens a client must not get for free by disconnecting before the usage comes.
#[tokio::test]
async fn aborted_stream_is_estimated_from_its_text() {
    let text = "word ".repeat(800);
    for (kind, delta) in [
        (Kind::Chat, json!({ "choices": [{ "index": 0, "delta": { "content": text } }] })),
        (
            Kind::Messages,
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text } }),
        ),
    ] {
        let begun = match kind {
            Kind::Messages => {
                let events = upstreams::message_events();
                format!("data: {}\n\ndata: {}\n\n", events[0], events[1])
            }
            _ => String::new(),
        };
        let begun = format!("{STREAM_HEAD}{begun}data: {delta}\n\n");
        let one = Scripted::start([vec![Step::Write(begun.into()), Step::Hang]]).await;
        let server = start(None, upstreams::config(vec![upstream("one", kind, &one.url)])).await;
        let key = create(&server, json!({ "name": "ci" })).await;
        let request = server.bare(Method::POST, "/v1/chat/completions").bearer_auth(&key);
        let mut stream = send(request.json(&question(true))).await;
        let mut got = Vec::new();
        while got.len() < text.len() {
            got.extend(stream.chunk().await.expect("bytes").expect("an event"));
        }
        drop(stream);
        let row = row_of(&server, "key=ci", 1).await;
        assert_eq!((&row["complete"], &row["estimated"]), (&json!(0), &json!(1)), "{row}");
        assert!((1000..1010).contains(&row["output_tokens"].as_u64().expect("a count")), "{kind:?}: {row}");
    }
}

#[tokio::test]
async fn response_without_usage_is_recorded_as_an_estimate() {
    let message = json!({ "role": "assistant", "content": "x".repeat(400) });
    let answer =
        json!({ "model": "m", "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] });
    let one = Scripted::start([json_answer(200, &answer)]).await;
    let server = start(None, upstreams::config(vec![upstream("one", Kind::Chat, &one.url)])).await;
    let key = create(&server, json!({ "name": "ci" })).await;
    let request = server.bare(Method::POST, "/v1/chat/completions").bearer_auth(&key);
    assert_eq!(read(request.json(&question(false))).await.0, 200);
    let row = row_of(&server, "key=ci", 1).await;
    assert_eq!((&row["complete"], &row["estimated"]), (&json!(1), &json!(1)), "{row}");
    let tokens = |name: &str| row[name].as_u64().expect("a count");
    assert!(tokens("input_tokens") > 0 && (100..200).contains(&tokens("output_tokens")), "{row}");
}

#[tokio::test]
async fn token_count_request_consumes_no_tokens() {
    let one = Scripted::start([json_answer(200, &json!({ "input_tokens": 7 }))]).await;
    let mut settings = upstreams::config(vec![upstream("one", Kind::Messages, &one.url)]);
    settings.upstreams.push(UpstreamConfig::new("embedded", Kind::Simulator, ""));
    settings.models.push(ModelConfig::new("sim", "family_one", TargetConfig::new("embedded", "model-sol")));
    let server = start(None, settings).await;
    let messages = json!({ "model": "mine", "messages": [{ "role": "user", "content": "hi" }] });
    let native = json!({ "contents": [{ "parts": [{ "text": "hi" }] }] });
    for (path, body, model) in
        [("/v1/messages/count_tokens", messages, "mine"), ("/v1beta/models/sim:countTokens", native, "sim")]
    {
        let key = create(&server, json!({ "name": format!("key-{model}") })).await;
        let request = server.bare(Method::POST, path).bearer_auth(&key).json(&body);
        let (status, answer) = read(request).await;
        assert_eq!(status, 200, "{answer}");
        let row = row_of(&server, &format!("key=key-{model}"), 1).await;
        assert_eq!((&row["complete"], &row["estimated"]), (&json!(1), &json!(0)), "{row}");
        assert_eq!((&row["input_tokens"], &row["output_tokens"]), (&json!(0), &json!(0)), "{row}");
        assert_eq!(row["cost"].as_f64(), Some(0.0), "{row}");
    }
}

/// Another process that locks the database exclusively.
async fn lock(folder: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(folder.join("gatewright.db"));
    let mut other = SqliteConnection::connect_with(&options).await.expect("a connection");
    sqlx::query("BEGIN EXCLUSIVE").execute(&mut other).await.expect("the lock");
    other
}

#[tokio::test]
async fn locked_database_delays_no_request_and_loses_no_usage() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = Config { open_metrics: true, ..Config::default() };
    let server = start(Some(folder.path()), config).await;
    let key = create(&server, json!({ "name": "ci" })).await;
    let other = lock(folder.path()).await;
    let ask = async || {
        let (mut tokens, mut took) = (0, Vec::new());
        for _ in 0..25 {
            let started = Instant::now();
            let (status, answer) = read(chat(&server, &key, false)).await;
            assert_eq!(status, 200, "{answer}");
            took.push(started.elapsed());
            tokens += answer["usage"]["total_tokens"].as_u64().expect("a count");
        }
        (tokens, took)
    };
    let (one, two, three, four) = tokio::join!(ask(), ask(), ask(), ask());
    let (counts, took): (Vec<u64>, Vec<_>) = [one, two, three, four].into_iter().unzip();
    let mut took = took.concat();
    took.sort_unstable();
    // A request that waited for the store would take seconds, as long as the store waits for the lock.
    assert!(took[90] < Duration::from_millis(500), "requests wait for the store: {took:?}");
    let metrics = send(server.bare(Method::GET, "/metrics")).await.text().await.expect("text");
    let waiting =
        metrics.lines().find(|line| line.starts_with("gatewright_usage_requests{state=\"waiting\"}"));
    assert_eq!(waiting, Some("gatewright_usage_requests{state=\"waiting\"} 100"), "{metrics}");

    other.close().await.expect("the lock is released");
    let row = row_of(&server, "key=ci", 100).await;
    let tokens =
        row["input_tokens"].as_u64().zip(row["output_tokens"].as_u64()).map(|(read, written)| read + written);
    assert_eq!(tokens, Some(counts.iter().sum()));
    let metrics = send(server.bare(Method::GET, "/metrics")).await.text().await.expect("text");
    assert!(metrics.contains("gatewright_usage_requests{state=\"stored\"} 100"), "{metrics}");
    assert!(metrics.contains("gatewright_usage_requests{state=\"lost\"} 0"), "{metrics}");
}

#[tokio::test]
async fn gateway_started_with_a_locked_database_loads_keys_later() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = start(Some(folder.path()), Config::default()).await;
    let key = create(&server, json!({ "name": "ci" })).await;
    drop(server);
    // In this mode, other processes cannot even read the file.
    let options = SqliteConnectOptions::new()
        .filename(folder.path().join("gatewright.db"))
        .locking_mode(sqlx::sqlite::SqliteLockingMode::Exclusive)
        .busy_timeout(Duration::from_secs(10));
    let mut other = SqliteConnection::connect_with(&options).await.expect("a connection");
    sqlx::query("BEGIN EXCLUSIVE").execute(&mut other).await.expect("the lock");

    let server = start(Some(folder.path()), Config::default()).await;
    assert_eq!(read(chat(&server, crate::support::KEY, false)).await.0, 200);
    // It may be valid, so the gateway doesn't call it invalid.
    let (status, refused) = read(chat(&server, &key, false)).await;
    assert_eq!((status, &refused["error"]["code"]), (503, &json!("server_is_overloaded")));
    other.close().await.expect("the lock is released");
    let started = Instant::now();
    while send(chat(&server, &key, false)).await.status() != 200 {
        assert!(started.elapsed() < Duration::from_secs(20), "the keys were not read");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn usage_and_budgets_survive_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = start(Some(folder.path()), Config::default()).await;
    let limits = json!({ "tokens_per_day": 1, "cost_per_month": 100.0 });
    let key = create(&server, json!({ "name": "ci", "limits": limits })).await;
    let (_, answer) = read(chat(&server, &key, false)).await;
    let refused = async |server: &Server| {
        let response = send(chat(server, &key, false)).await;
        assert_eq!(response.status(), 429);
        // Retrying soon would not help.
        assert!(!response.headers().contains_key("retry-after"));
        assert_eq!(response.headers()["x-should-retry"], "false");
        let body: Value = serde_json::from_str(&response.text().await.expect("a body")).expect("JSON");
        assert_eq!(
            (&body["error"]["code"], &body["error"]["type"]),
            (&json!("insufficient_quota"), &json!("insufficient_quota"))
        );
    };
    refused(&server).await;
    row_of(&server, "key=ci&by=key", 1).await;
    drop(server);
    let registry = Registry::open(folder.path()).await.expect("the folder");
    let mut query = UsageQuery::default();
    query.by = Some("key".to_owned());
    let rows = registry.usage(query).await.expect("a report");
    let total = answer["usage"]["total_tokens"].as_u64();
    assert_eq!(rows.first().map(|row| row.input_tokens + row.output_tokens), total);
    let server = start(Some(folder.path()), Config::default()).await;
    refused(&server).await;
}

#[tokio::test]
async fn cost_budget_is_spent_at_the_configured_prices() {
    let server = start(None, Config::default()).await;
    let key = create(&server, json!({ "name": "ci", "limits": { "cost_per_day": 0.000_001 } })).await;
    assert_eq!(read(chat(&server, &key, false)).await.0, 200);
    let (status, refused) = read(chat(&server, &key, false)).await;
    assert_eq!((status, &refused["error"]["code"]), (429, &json!("insufficient_quota")));
}

#[tokio::test]
async fn response_tokens_count_towards_the_minute_limit() {
    let server = start(None, Config::default()).await;
    let key = create(&server, json!({ "name": "ci", "limits": { "tokens_per_minute": 20 } })).await;
    let header = |response: &reqwest::Response, name: &str| {
        response.headers()[name].to_str().expect("ASCII").to_owned()
    };
    let response = send(chat(&server, &key, false)).await;
    assert_eq!(response.status(), 200);
    assert_eq!(header(&response, "x-ratelimit-limit-tokens"), "20");
    let left = || async {
        let response = send(chat(&server, &key, false)).await;
        (response.status(), header(&response, "x-ratelimit-remaining-tokens"), response)
    };
    // One answer takes more than the minute allows, which leaves a debt.
    let (status, remaining, response) = left().await;
    assert_eq!((status.as_u16(), remaining.as_str()), (429, "0"));
    assert!(response.headers().contains_key("retry-after"));
    let refused: Value = serde_json::from_str(&response.text().await.expect("a body")).expect("JSON");
    assert_eq!(refused["error"]["code"], "rate_limit_exceeded");
}

#[tokio::test]
async fn last_usage_is_written_on_shutdown() {
    let folder = tempfile::tempdir().expect("a folder");
    _ = rustls::crypto::ring::default_provider().install_default();
    let key = ApiKey::new(crate::support::KEY).expect("a valid key");
    let config = Config { data: Some(folder.path().to_path_buf()), key: Some(key), ..Config::default() };
    let gateway =
        gatewright_gateway::Gateway::bind(Config { listen: vec!["127.0.0.1:0".to_owned()], ..config });
    let gateway = gateway.await.expect("a free port");
    let url = gateway.url();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(gateway.serve(async {
        _ = stopped.await;
    }));
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let body = json!({ "model": "model-sol", "messages": [{ "role": "user", "content": "Say hi" }] });
    let request =
        client.post(format!("{url}/v1/chat/completions")).bearer_auth(crate::support::KEY).json(&body);
    assert_eq!(request.send().await.expect("an answer").status(), 200);
    stop.send(()).expect("it serves");
    serving.await.expect("it ends");
    let registry = Registry::open(folder.path()).await.expect("the folder");
    let rows = registry.usage(UsageQuery::default()).await.expect("a report");
    assert_eq!(
        rows.iter().map(|row| (row.key.as_deref(), row.requests)).collect::<Vec<_>>(),
        [(Some("default"), 1)]
    );
}

#[tokio::test]
async fn input_of_an_aborted_request_is_counted() {
    let failing = Scripted::start([json_answer(500, &json!({ "error": { "message": "no" } }))]).await;
    let hanging = Scripted::start([vec![Step::Hang]]).await;
    let mut config = upstreams::config(vec![
        upstream("failing", Kind::Chat, &failing.url),
        upstream("hanging", Kind::Chat, &hanging.url),
    ]);
    for target in config.models.iter_mut().flat_map(|model| &mut model.targets) {
        target.order = u32::from(target.upstream == "hanging");
    }
    let server = start(None, config).await;
    let key = create(&server, json!({ "name": "ci" })).await;
    let request = server.bare(Method::POST, "/v1/chat/completions").bearer_auth(key).json(&question(false));
    let call = tokio::spawn(request.send());
    while hanging.count() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    call.abort();
    // The failed upstream is not in the report.
    let row = row_of(&server, "key=ci", 1).await;
    let counts = [&row["complete"], &row["estimated"], &row["output_tokens"]].map(Value::as_u64);
    assert_eq!((&row["upstream"], counts), (&json!("hanging"), [Some(0), Some(1), Some(0)]), "{row}");
    assert!(row["input_tokens"].as_u64() > Some(0), "{row}");
}
