//! What operators query: health and metrics.

mod traces;

use std::time::{Duration, Instant};

use gatewright_gateway::{ApiKey, Config, Gateway, Kind};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use tokio::sync::oneshot;

use crate::support::{KEY, Server, read, send, start, start_as, start_with};
use crate::upstreams::{
    self, STREAM_HEAD, Scripted, Step, UPSTREAM_KEY, chunks, completion, config, json_answer, question,
    upstream,
};
use crate::webhooks::receiver;

/// Maximum duration of a scrape; one that waited for the store would take the two seconds of a lock.
const QUICK: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(30);

async fn metrics(server: &Server) -> String {
    let response = send(server.bare(Method::GET, "/metrics")).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    response.text().await.expect("a text")
}

fn value(metrics: &str, name: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} in:\n{metrics}")).parse().expect("a number")
}

#[tokio::test]
async fn health_needs_no_key() {
    let server = start().await;
    assert_eq!(read(server.bare(Method::GET, "/health/live")).await, (200, json!({ "status": "live" })));
    assert_eq!(read(server.bare(Method::GET, "/health/ready")).await, (200, json!({ "status": "ready" })));
    assert_eq!(send(server.bare(Method::HEAD, "/health/ready")).await.status(), 200);
    let (status, error) = read(server.bare(Method::POST, "/health/live")).await;
    assert_eq!((status, &error["error"]["code"]), (405, &json!("method_not_allowed")));
}

#[tokio::test]
async fn metrics_are_404_unless_opened() {
    let server = start().await;
    let (status, error) = read(server.bare(Method::GET, "/metrics")).await;
    assert_eq!((status, &error["error"]["code"]), (404, &json!("not_found")));
}

#[tokio::test]
async fn metrics_count_requests_by_operation_and_status() {
    let server = start_with(Config { open_metrics: true, ..Config::default() }).await;
    let body = json!({ "model": "model-sol", "messages": [{ "role": "user", "content": "hi" }] });
    server.ask("/v1/chat/completions", &body).await;
    let streamed =
        json!({ "model": "model-sol", "messages": [{ "role": "user", "content": "hi" }], "stream": true });
    server.stream("/v1/chat/completions", &streamed).await;
    server.refused("/v1/chat/completions", &json!({})).await;
    assert_eq!(send(server.bare(Method::GET, "/nothing")).await.status(), 404);
    let text = metrics(&server).await;
    let requests = |operation: &str, status: u16| {
        value(&text, &format!("gatewright_requests_total{{operation=\"{operation}\",status=\"{status}\"}}"))
    };
    assert!((requests("create_chat_completion", 200) - 2.0).abs() < f64::EPSILON, "{text}");
    assert!((requests("create_chat_completion", 400) - 1.0).abs() < f64::EPSILON, "{text}");
    assert!((requests("none", 404) - 1.0).abs() < f64::EPSILON, "{text}");
    assert!(value(&text, "gatewright_connections") >= 1.0, "{text}");
    assert!(!text.contains(KEY));
}

/// A metric's value; 0 if it has no line yet.
fn value_so_far(metrics: &str, name: &str) -> f64 {
    if metrics.lines().any(|line| line.starts_with(&format!("{name} "))) { value(metrics, name) } else { 0.0 }
}

#[tokio::test]
async fn metrics_record_tokens_first_byte_and_duration() {
    const PAUSE: Duration = Duration::from_millis(150);
    let events = chunks(&["hel", "lo"]);
    let (first, rest) = events.split_at(events.find("\n\n").expect("an event") + 2);
    let streams = [
        Step::Write(STREAM_HEAD.into()),
        Step::Pause(PAUSE),
        Step::Write(first.into()),
        Step::Pause(PAUSE),
        Step::Write(rest.into()),
        Step::Close,
    ];
    let document = [vec![Step::Pause(PAUSE)], json_answer(200, &completion("hello"))].concat();
    for (streamed, steps) in [(true, streams.to_vec()), (false, document)] {
        let scripted = Scripted::start([steps]).await;
        let config =
            Config { open_metrics: true, ..config(vec![upstream("one", Kind::Chat, &scripted.url)]) };
        let server = start_with(config).await;
        let response = send(server.post("/v1/chat/completions", &question(streamed))).await;
        assert_eq!(response.status(), 200);
        response.text().await.expect("a body");
        let tokens =
            |kind| format!("gatewright_tokens_total{{model=\"mine\",upstream=\"one\",kind=\"{kind}\"}}");
        let started = Instant::now();
        let text = loop {
            let text = metrics(&server).await;
            let read = [tokens("input"), tokens("output")].map(|name| value_so_far(&text, &name));
            if (read[0] - 3.0).abs() < 0.5 && (read[1] - 2.0).abs() < 0.5 {
                break text;
            }
            assert!(started.elapsed() < PATIENCE, "{text}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        let of = |metric: &str| {
            let labels = "{operation=\"create_chat_completion\"}";
            let [count, sum] = ["count", "sum"].map(|end| value(&text, &format!("{metric}_{end}{labels}")));
            assert!((count - 1.0).abs() < 0.5, "{text}");
            Duration::from_secs_f64(sum)
        };
        let first = of("gatewright_time_to_first_byte_seconds");
        let whole = of("gatewright_request_duration_seconds");
        let between = if streamed { PAUSE } else { Duration::ZERO };
        assert!(
            first >= PAUSE && whole >= first && whole >= PAUSE + between,
            "{streamed}: {first:?}, {whole:?}"
        );
        // The second pause is not part of the time to first byte.
        assert!(first < PAUSE * 2 || first + PAUSE / 2 < whole, "{streamed}: {first:?}, {whole:?}");
    }
}

/// A failed attempt is counted even if the client got another upstream's answer.
#[tokio::test]
async fn attempts_are_counted_by_outcome() {
    let error = json!({"error": {"message": "no"}});
    let cut = chunks(&["hel", "lo"]);
    let cut = &cut[..cut.find("\n\n").expect("an event") + 2];
    let broken = vec![Step::Write(format!("{STREAM_HEAD}{cut}").into()), Step::Reset];
    let whole = json_answer(200, &completion("hello"));
    let streamed = upstreams::stream(&chunks(&["hel", "lo"]));
    let cases = [
        ("answered", false, whole, "answered"),
        ("streams", true, streamed, "answered"),
        ("breaks-off", true, broken, "broke_off"),
        ("fails", false, json_answer(500, &error), "failed"),
        ("fails-as-a-stream", true, json_answer(503, &error), "failed"),
        ("closes", false, vec![Step::Close], "failed"),
        ("refuses-the-key", false, json_answer(401, &error), "key_refused"),
        ("limits", false, json_answer(429, &error), "rate_limited"),
        ("refuses", false, json_answer(400, &error), "request_refused"),
        ("hangs", false, vec![Step::Hang], "client_left"),
        ("hangs-as-a-stream", true, vec![Step::Hang], "client_left"),
        ("hangs-after-its-head", true, vec![Step::Write(STREAM_HEAD.into()), Step::Hang], "client_left"),
    ];
    let good = Scripted::start([json_answer(200, &completion("hello"))]).await;
    for (name, stream, steps, outcome) in cases {
        let one = Scripted::start([steps]).await;
        let upstreams = vec![upstream(name, Kind::Chat, &one.url), upstream("good", Kind::Chat, &good.url)];
        let server = start_with(Config { open_metrics: true, ..config(upstreams) }).await;
        let call = tokio::spawn(server.post("/v1/chat/completions", &question(stream)).send());
        if outcome == "client_left" {
            while one.count() == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            call.abort();
        } else {
            let answered = call.await.expect("no panic").expect("an answer");
            // A stream that breaks has already sent status 200.
            _ = answered.text().await;
        }
        let attempts = |upstream: &str, outcome: &str| {
            format!(
                "gatewright_upstream_attempts_total{{upstream=\"{upstream}\",model=\"mine\",outcome=\"{outcome}\"}}"
            )
        };
        let started = Instant::now();
        loop {
            let text = metrics(&server).await;
            if (value_so_far(&text, &attempts(name, outcome)) - 1.0).abs() < 0.5 {
                let outcomes = text.matches(&format!("attempts_total{{upstream=\"{name}\"")).count();
                assert_eq!(outcomes, 1, "{text}");
                let is_helped = ["failed", "key_refused", "rate_limited"].contains(&outcome) && !stream;
                let helped = value_so_far(&text, &attempts("good", "answered"));
                assert!(!is_helped || (helped - 1.0).abs() < 0.5, "{text}");
                break;
            }
            assert!(started.elapsed() < PATIENCE, "{name}: {outcome} expected in:\n{text}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Waits until metrics have these values.
async fn becomes(server: &Server, expected: &[(&str, f64)]) {
    let started = Instant::now();
    loop {
        let sent = Instant::now();
        let text = metrics(server).await;
        assert!(sent.elapsed() < QUICK, "the metrics wait: {:?}", sent.elapsed());
        if expected.iter().all(|(name, number)| (value(&text, name) - number).abs() < f64::EPSILON) {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "{expected:?} expected in:\n{text}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn store_backlog_is_visible_in_the_metrics() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = Config {
        data: Some(folder.path().to_path_buf()),
        open_metrics: true,
        video_time: Duration::from_secs(2),
        ..Config::default()
    };
    let server = start_as(config).await;
    let waiting = |counts: [f64; 4]| {
        let names = [
            "gatewright_store_waiting{kind=\"responses\"}",
            "gatewright_store_waiting{kind=\"answers\"}",
            "gatewright_store_waiting{kind=\"task_ends\"}",
            "gatewright_video_tasks",
        ];
        names.into_iter().zip(counts).collect::<Vec<_>>()
    };
    let video = json!({ "model": "video_model_3", "prompt": "[fail]" });
    server.ask("/v1/videos/generations", &video).await;
    becomes(&server, &waiting([0.0, 0.0, 0.0, 1.0])).await;

    let database = SqliteConnectOptions::new().filename(folder.path().join("gatewright.db"));
    let mut other = SqliteConnection::connect_with(&database.busy_timeout(PATIENCE)).await.expect("opened");
    sqlx::query("BEGIN EXCLUSIVE").execute(&mut other).await.expect("the lock");
    server.ask("/v1/responses", &json!({ "model": "model-sol", "input": "hi" })).await;
    let chat = json!({ "model": "model-sol", "messages": [{ "role": "user", "content": "hi" }] });
    let keyed = server.post("/v1/chat/completions", &chat).header("idempotency-key", "one");
    assert_eq!(read(keyed).await.0, 200);
    becomes(&server, &waiting([1.0, 1.0, 1.0, 1.0])).await;

    other.close().await.expect("the lock is released");
    becomes(&server, &waiting([0.0; 4])).await;
}

#[tokio::test]
async fn notifications_are_counted_by_state() {
    let start = async |webhook_backoff| {
        let config =
            Config { open_metrics: true, allow_private_webhooks: true, webhook_backoff, ..Config::default() };
        start_with(config).await
    };
    let notifications = |counts: [f64; 4]| {
        let names = [
            "gatewright_notifications{state=\"sending\"}",
            "gatewright_notifications{state=\"retrying\"}",
            "gatewright_notifications{state=\"delivered\"}",
            "gatewright_notifications{state=\"dead\"}",
        ];
        names.into_iter().zip(counts).collect::<Vec<_>>()
    };
    let ask = async |server: &Server, url: &str| {
        let video = json!({ "model": "video_model_3", "prompt": "[fail]", "webhook_url": url });
        server.ask("/v1/videos/generations", &video).await;
    };
    let patient = start(Duration::from_hours(1)).await;
    let ((willing, _first), (refusing, _second)) = (receiver(0).await, receiver(usize::MAX).await);
    ask(&patient, &willing).await;
    ask(&patient, &refusing).await;
    becomes(&patient, &notifications([0.0, 1.0, 1.0, 0.0])).await;
    let hasty = start(Duration::ZERO).await;
    ask(&hasty, &refusing).await;
    becomes(&hasty, &notifications([0.0, 0.0, 0.0, 1.0])).await;
}

#[tokio::test]
async fn admin_api_and_metrics_report_upstream_health() {
    const ADMIN: &str = "gw-admin-canary-77";
    let failing = Scripted::start([json_answer(500, &json!({}))]).await;
    let limiting = Scripted::start([
        json_answer(429, &json!({})),
        json_answer(200, &completion("well")),
        vec![Step::Hang],
    ])
    .await;
    let mut limited = upstream("limiting", Kind::Chat, &limiting.url);
    limited.keys.push(ApiKey::new("sk-second-canary").expect("a key"));
    limited.region = Some("eu".to_owned());
    let server = start_with(Config {
        admin_key: Some(ApiKey::new(ADMIN).expect("a valid key")),
        ..config(vec![upstream("failing", Kind::Chat, &failing.url), limited])
    })
    .await;
    assert_eq!(read(server.bare(Method::GET, "/admin/upstreams").bearer_auth(KEY)).await.0, 401);
    let seen = async || {
        let get = |path| server.bare(Method::GET, path).bearer_auth(ADMIN);
        let (status, answer) = read(get("/admin/upstreams")).await;
        assert_eq!(status, 200, "{answer}");
        (answer, send(get("/metrics")).await.text().await.expect("a text"))
    };
    let (answer, text) = seen().await;
    assert_eq!(
        answer["upstreams"][0],
        json!({
            "name": "failing", "kind": "chat", "region": null, "address": failing.url, "in_flight": 0, "keys": 1,
            "models": [{ "model": "mine", "upstream_model": "theirs", "breaker": "closed", "keys_waiting": 0 }],
        })
    );
    let breaker = |text: &str, name: &str| {
        value(text, &format!("gatewright_upstream_breaker{{upstream=\"{name}\",model=\"mine\"}}"))
    };
    assert!(breaker(&text, "failing").abs() < f64::EPSILON, "{text}");

    server.ask("/v1/chat/completions", &question(false)).await;
    // From now on, the second upstream does not answer.
    let waiting: Vec<_> =
        (0..4).map(|_| tokio::spawn(server.post("/v1/chat/completions", &question(false)).send())).collect();
    let (answer, text) = tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            let (answer, text) = seen().await;
            if answer["upstreams"][1]["in_flight"] == 4 {
                return (answer, text);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .expect("four requests reach the second upstream");
    assert_eq!(answer["upstreams"][0]["models"][0]["breaker"], "open", "{answer}");
    assert!((breaker(&text, "failing") - 2.0).abs() < f64::EPSILON, "{text}");
    assert!(breaker(&text, "limiting").abs() < f64::EPSILON, "{text}");
    assert!(value(&text, "gatewright_upstream_in_flight{upstream=\"limiting\"}") >= 4.0, "{text}");
    let limited = &answer["upstreams"][1];
    assert_eq!((&limited["region"], &limited["keys"]), (&json!("eu"), &json!(2)));
    assert_eq!(limited["models"][0]["keys_waiting"], 1);
    for secret in [UPSTREAM_KEY, "sk-second-canary", ADMIN, KEY] {
        assert!(!answer.to_string().contains(secret) && !text.contains(secret));
    }
    for request in waiting {
        request.abort();
    }
}

#[tokio::test]
async fn draining_gateway_is_not_ready_and_still_serves() {
    _ = rustls::crypto::ring::default_provider().install_default();
    let config = Config {
        listen: vec!["127.0.0.1:0".to_owned()],
        key: Some(ApiKey::new(KEY).expect("a valid key")),
        drain_delay: Duration::from_secs(30),
        ..Config::default()
    };
    let gateway = Gateway::bind(config).await.expect("a free port");
    let url = gateway.url();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(gateway.serve(async {
        _ = stopped.await;
    }));
    stop.send(()).expect("the gateway runs");
    // Whether the signal or the request comes first is undefined; the gateway drains soon.
    let draining = async {
        loop {
            let response =
                reqwest::get(format!("{url}/health/ready")).await.expect("a new connection is accepted");
            let status = response.status().as_u16();
            let body: Value = response.json().await.expect("JSON");
            if status == 503 {
                return body;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let body = tokio::time::timeout(Duration::from_secs(20), draining).await.expect("the gateway drains");
    assert_eq!(body, json!({ "status": "draining" }));
    let models = reqwest::Client::new().get(format!("{url}/v1/models")).bearer_auth(KEY).send().await;
    assert_eq!(models.expect("an answer").status(), 200);
    serving.abort();
}
