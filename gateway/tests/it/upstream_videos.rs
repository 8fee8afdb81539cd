//! Videos of providers: submitted, polled to completion, and their files downloaded, despite provider failures.

use std::time::{Duration, Instant};

use gatewright_gateway::{ApiKey, Body, Config, Embedded, Kind, ModelKind, UpstreamConfig};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::support::{KEY, Server, read, send, start, start_with};
use crate::upstream_images::usage_row;
use crate::upstreams::{self, Scripted, Step, UPSTREAM_KEY, answer, json_answer, upstream};
use crate::videos::finished;
use crate::webhooks::{Sent, receiver};

const PATH: &str = "/v1/videos/generations";

/// A gateway with the video model `mine` at these upstreams, with the limits of a catalog model or none.
pub(crate) fn config(upstreams: Vec<UpstreamConfig>, limits: Option<&str>) -> Config {
    let mut config = upstreams::config(upstreams);
    config.models[0].kind = ModelKind::Video;
    config.models[0].limits = limits.map(str::to_owned);
    Config {
        video_poll: Duration::from_millis(5),
        allow_private_webhooks: true,
        webhook_backoff: Duration::from_millis(10),
        ..config
    }
}

async fn gateway_to(provider: &Scripted) -> Server {
    start_with(config(vec![upstream("one", Kind::Chat, &provider.url)], None)).await
}

pub(crate) fn request() -> Value {
    json!({ "model": "mine", "prompt": "a kite", "duration": 8, "resolution": "720p", "aspect_ratio": "9:16" })
}

/// A video in the public form.
pub(crate) fn video(status: &str) -> Vec<Step> {
    let progress = if status == "completed" { 100 } else { 0 };
    json_answer(
        200,
        &json!({ "id": "video/7", "object": "video", "model": "theirs", "status": status, "progress": progress,
            "created_at": 1, "seconds": "8", "size": "720x1280", "error": null }),
    )
}

fn file() -> Vec<u8> {
    let mut file = b"\0\0\0\x18ftypmp42".to_vec();
    file.extend((0..100_000_u32).map(|byte| (byte % 251) as u8));
    file
}

/// The head of a file of this many bytes.
fn file_head(length: usize) -> Step {
    Step::Write(
        format!("HTTP/1.1 200 X\r\ncontent-type: video/mp4\r\ncontent-length: {length}\r\n\r\n").into(),
    )
}

pub(crate) fn whole_file() -> Vec<Step> {
    vec![file_head(file().len()), Step::Write(file())]
}

fn page() -> Vec<Step> {
    vec![Step::Write(answer(200, "text/html", "<html>Please wait</html>"))]
}

/// Downloads the file of a task from the gateway.
async fn download(server: &Server, task: &Value) -> Vec<u8> {
    let url = task["output"]["url"].as_str().unwrap_or_else(|| panic!("no file: {task}"));
    let path = url.strip_prefix(&server.url).expect("an address of this gateway");
    let response = send(server.bare(Method::GET, path)).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"].to_str().ok()),
        (200, &Some("video/mp4"))
    );
    response.bytes().await.expect("a file").to_vec()
}

/// The verified notification of a task.
async fn notified(server: &Server, received: &mut UnboundedReceiver<Sent>) -> Value {
    let waited = tokio::time::timeout(Duration::from_secs(30), received.recv()).await;
    let (headers, body) = waited.expect("in time").expect("a post");
    let verifier = standardwebhooks::Webhook::new(&server.webhook_secret).expect("a secret");
    verifier.verify(&body, &headers).expect("a signature of this gateway");
    serde_json::from_slice(&body).expect("JSON")
}

/// The error message of a task.
async fn failure(server: &Server, task: &Value) -> String {
    let task = finished(server, &task["id"]).await;
    assert_eq!(task["status"], "failed", "{task}");
    assert!(!task.to_string().contains("canary"), "{task}");
    task["error"]["message"].as_str().expect("a message").to_owned()
}

#[tokio::test]
async fn estimate_follows_the_queue_or_the_providers_estimate() {
    let provider = Scripted::start([video("queued"), video("queued"), video("in_progress")]).await;
    let mut config = config(vec![upstream("one", Kind::Chat, &provider.url)], None);
    config.video_poll = Duration::from_hours(1);
    let server = start_with(config).await;
    let mut estimates = Vec::new();
    for _ in 0..3 {
        let task: Value = send(server.post(PATH, &request())).await.json().await.expect("JSON");
        estimates.push(task["estimated_time"].as_u64().expect("whole seconds"));
    }
    // A minute while nothing is known; twice that behind a waiting video; and a minute without a queue.
    assert_eq!(estimates, [60, 120, 60]);

    let queued =
        json!({ "id": "v", "status": "processing", "created": 1, "model": "theirs", "estimated_time": 7 });
    let provider = Scripted::start([json_answer(200, &queued)]).await;
    let server = start_with(self::config(vec![upstream("one", Kind::Gatewright, &provider.url)], None)).await;
    let task: Value = send(server.post(PATH, &request())).await.json().await.expect("JSON");
    assert_eq!(task["estimated_time"], 7, "{task}");
}

#[tokio::test]
async fn video_is_submitted_polled_fetched_and_notified() {
    let steps = [video("queued"), video("queued"), video("in_progress"), video("completed"), whole_file()];
    let provider = Scripted::start(steps).await;
    let server = gateway_to(&provider).await;
    let (url, mut received) = receiver(0).await;
    let mut body = request();
    (body["webhook_url"], body["seed"]) = (json!(url), json!(7));
    let response = send(server.post(PATH, &body)).await;
    assert_eq!(response.headers()["x-gatewright-upstream"], "one");
    let task: Value = response.json().await.expect("JSON");
    // Section 3; the gateway assigns the id.
    assert_eq!((&task["status"], &task["model"]), (&json!("processing"), &json!("mine")));
    assert!(task["estimated_time"].as_u64().is_some_and(|seconds| seconds > 0));
    assert!(task["id"].as_str().is_some_and(|id| id.starts_with("video_")), "{task}");

    let notification = notified(&server, &mut received).await;
    let done = finished(&server, &task["id"]).await;
    assert_eq!(
        (&notification["id"], &notification["status"], &notification["output"]["duration"]),
        (&task["id"], &json!("completed"), &json!(8))
    );
    assert_eq!(
        (&done["output"]["resolution"], &done["output"]["format"]),
        (&json!("720x1280"), &json!("mp4"))
    );
    assert_eq!(download(&server, &done).await, file());
    assert_eq!(download(&server, &notification).await, file());

    let seen = provider.seen();
    let lines: Vec<&str> = seen.iter().map(|seen| seen.line.as_str()).collect();
    let look_up = "GET /v1/videos/video%2F7 HTTP/1.1";
    let content = "GET /v1/videos/video%2F7/content HTTP/1.1";
    assert_eq!(lines, ["POST /v1/videos HTTP/1.1", look_up, look_up, look_up, content]);
    let expected =
        json!({ "model": "theirs", "prompt": "a kite", "seconds": "8", "size": "720x1280", "seed": 7 });
    assert_eq!(seen[0].json(), expected);
    let key = format!("Bearer {UPSTREAM_KEY}");
    assert!(seen.iter().all(|seen| seen.header("authorization") == Some(&key)));
}

#[tokio::test]
async fn catalog_model_has_catalog_limits_and_others_those_of_the_provider() {
    let provider = Scripted::start([video("queued")]).await;
    let one = || vec![upstream("one", Kind::Responses, &provider.url)];
    // 2.6, 2.9: up to 5 s; 5 s of 1080p in 16:9 unless stated.
    let server = start_with(config(one(), Some("video_model_4"))).await;
    let (status, refused) = server.refused(PATH, &request()).await;
    assert_eq!((status, &refused["error"]["param"], provider.count()), (400, &json!("duration"), 0));
    let bare = json!({ "model": "mine", "prompt": "a kite" });
    server.ask(PATH, &bare).await;
    let sent = provider.seen()[0].json();
    assert_eq!((&sent["seconds"], &sent["size"]), (&json!("5"), &json!("1920x1080")));

    let provider = Scripted::start([video("queued")]).await;
    let server = gateway_to(&provider).await;
    server.ask(PATH, &bare).await;
    server.ask(PATH, &json!({ "model": "mine", "prompt": "a kite", "resolution": "720p" })).await;
    let sent: Vec<Value> = provider
        .seen()
        .iter()
        .filter(|seen| seen.line.starts_with("POST"))
        .map(upstreams::Seen::json)
        .collect();
    assert_eq!(sent[0], json!({ "model": "theirs", "prompt": "a kite" }));
    assert_eq!(sent[1], json!({ "model": "theirs", "prompt": "a kite", "size": "1280x720" }));
    let (status, _) = server.refused(PATH, &json!({ "model": "mine", "prompt": "x", "duration": 16 })).await;
    assert_eq!(status, 400, "the rules for all models apply");
}

/// 3: a provider that returns a video to its queue, even after completion, doesn't change the reported state.
#[tokio::test]
async fn task_state_never_moves_backward() {
    let again = video("queued");
    let steps = [video("in_progress"), again.clone(), again.clone(), again.clone(), again];
    let provider = Scripted::start(steps).await;
    let server = gateway_to(&provider).await;
    let task = server.ask(PATH, &request()).await;
    assert_eq!(task["status"], "processing");
    let path = format!("{PATH}/{}", task["id"].as_str().expect("an id"));
    while provider.count() < 4 {
        assert_eq!(read(server.get(&path)).await.1["status"], "processing");
    }
}

#[tokio::test]
async fn inexpressible_video_members_are_reported_or_rejected_if_strict() {
    let provider = Scripted::start([video("queued")]).await;
    let server = gateway_to(&provider).await;
    let mut body = request();
    body["seconds"] = json!("4");
    let response = send(server.post(PATH, &body)).await;
    assert_eq!(response.headers()["x-gatewright-dropped"], "/seconds");
    let (status, refused) = read(server.post(PATH, &body).header("x-gatewright-strict", "true")).await;
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("seconds")));
}

#[tokio::test]
async fn upstream_that_rejects_a_video_is_skipped() {
    let error = json!({ "error": { "message": "no", "code": "x" } });
    for failing in [
        json_answer(429, &error),
        json_answer(503, &error),
        json_answer(401, &error),
        json_answer(200, &json!({ "object": "video" })),
        page(),
        vec![Step::Reset],
    ] {
        let bad = Scripted::start([failing]).await;
        let good = Scripted::start([video("queued"), video("completed"), whole_file()]).await;
        let both = vec![upstream("bad", Kind::Chat, &bad.url), upstream("good", Kind::Chat, &good.url)];
        let server = start_with(config(both, None)).await;
        let task = server.ask(PATH, &request()).await;
        let done = finished(&server, &task["id"]).await;
        assert_eq!(download(&server, &done).await, file());
        assert_eq!((bad.count(), good.count()), (1, 3));
    }
}

#[tokio::test]
async fn rejected_video_leaves_no_task() {
    let error = json!({ "error": { "message": format!("no {UPSTREAM_KEY}"), "code": "moderation", "param": "prompt" } });
    let provider = Scripted::start([json_answer(400, &error)]).await;
    let both = vec![upstream("one", Kind::Chat, &provider.url), upstream("two", Kind::Chat, &provider.url)];
    let server = start_with(config(both, None)).await;
    let (status, refused) = server.refused(PATH, &request()).await;
    assert_eq!((status, &refused["error"]["code"], provider.count()), (400, &json!("moderation"), 1));
    assert!(!refused.to_string().contains("canary"), "{refused}");
    provider.then(json_answer(503, &json!({ "error": { "message": "busy" } })));
    let (status, _) = server.refused(PATH, &request()).await;
    assert_eq!((status, provider.count()), (503, 3));
}

#[tokio::test]
async fn temporarily_failing_upstream_is_polled_again() {
    let error = json!({ "error": { "message": "down" } });
    let steps = [
        video("queued"),
        json_answer(500, &error),
        vec![Step::Reset],
        page(),
        json_answer(429, &error),
        json_answer(401, &error),
        json_answer(404, &error),
        video("in_progress"),
        json_answer(404, &error),
        json_answer(404, &error),
        video("completed"),
        whole_file(),
    ];
    let provider = Scripted::start(steps).await;
    let server = gateway_to(&provider).await;
    let task = server.ask(PATH, &request()).await;
    let done = finished(&server, &task["id"]).await;
    assert_eq!(download(&server, &done).await, file());
}

#[tokio::test]
async fn video_lost_by_its_upstream_fails() {
    let error = json!({ "error": { "message": format!("no video for {UPSTREAM_KEY}") } });
    let provider = Scripted::start([video("queued"), json_answer(404, &error)]).await;
    let server = gateway_to(&provider).await;
    let task = server.ask(PATH, &request()).await;
    let message = failure(&server, &task).await;
    assert!(message.starts_with("the provider no longer finds the video: no video for"), "{message}");
    assert_eq!(provider.count(), 4);
}

#[tokio::test]
async fn unfinished_video_fails_at_its_timeout_and_notifies() {
    let provider =
        Scripted::start([video("queued"), video("in_progress"), json_answer(500, &json!({}))]).await;
    let one = vec![upstream("one", Kind::Chat, &provider.url)];
    let config = Config { video_timeout: Duration::from_secs(2), ..config(one, None) };
    let server = start_with(config).await;
    let (url, mut received) = receiver(0).await;
    let mut body = request();
    body["webhook_url"] = json!(url);
    let task = server.ask(PATH, &body).await;
    let notification = notified(&server, &mut received).await;
    assert_eq!((&notification["id"], &notification["status"]), (&task["id"], &json!("failed")));
    let message = failure(&server, &task).await;
    assert!(message.starts_with("there was no video within 2s; the last problem: "), "{message}");
}

#[tokio::test]
async fn provider_failure_is_reported_without_the_key() {
    let error = json!({ "code": "moderation_blocked", "message": format!("no kites for {UPSTREAM_KEY}") });
    let failed = json_answer(200, &json!({ "id": "v", "status": "failed", "error": error }));
    let provider = Scripted::start([video("queued"), failed]).await;
    let server = gateway_to(&provider).await;
    let task = server.ask(PATH, &request()).await;
    let message = failure(&server, &task).await;
    assert!(message.starts_with("no kites for "), "{message}");
    let task = finished(&server, &task["id"]).await;
    assert_eq!(task["error"]["code"], "moderation_blocked");
}

#[tokio::test]
async fn truncated_file_is_fetched_again_and_never_stored() {
    let cut = vec![file_head(file().len()), Step::Write(file()[..5_000].to_vec()), Step::Close];
    let steps = [video("queued"), video("completed"), cut, page(), whole_file()];
    let provider = Scripted::start(steps).await;
    let server = gateway_to(&provider).await;
    let task = server.ask(PATH, &request()).await;
    let done = finished(&server, &task["id"]).await;
    assert_eq!(download(&server, &done).await, file());
}

#[tokio::test]
async fn non_video_file_is_not_served() {
    let provider = Scripted::start([video("queued"), video("completed"), page()]).await;
    let server = gateway_to(&provider).await;
    let task = server.ask(PATH, &request()).await;
    let message = failure(&server, &task).await;
    assert!(message.ends_with("the provider's response is not a video"), "{message}");
    assert_eq!(provider.count(), 7, "the file is requested five times");
}

#[tokio::test]
async fn file_beyond_the_storage_limit_is_not_fetched() {
    // With and without a content length.
    const MOST: usize = 9 * 1024 * 1024;
    let with_length = vec![file_head(MOST + 1), Step::Hang];
    let head = b"HTTP/1.1 200 X\r\ncontent-type: video/mp4\r\n\r\n".to_vec();
    let without_length = vec![Step::Write(head), Step::Write(file()), Step::Write(vec![0; MOST]), Step::Hang];
    for content in [with_length, without_length] {
        let mut provider = Scripted::start([video("queued"), video("completed"), content]).await;
        let one = vec![upstream("one", Kind::Chat, &provider.url)];
        let server = start_with(Config { max_file_bytes: MOST, ..config(one, None) }).await;
        let task = server.ask(PATH, &request()).await;
        let message = failure(&server, &task).await;
        assert!(message.ends_with("the gateway does not store such large files"), "{message}");
        provider.left().await;
        assert_eq!(provider.count(), 3);
    }
}

#[tokio::test]
async fn file_beyond_the_key_limit_is_not_fetched() {
    // A video of 8 s is estimated at 8 MiB.
    const LIMIT: usize = 9 * 1024 * 1024;
    let content = vec![file_head(LIMIT + 1), Step::Hang];
    let mut provider = Scripted::start([video("queued"), video("completed"), content]).await;
    let one = vec![upstream("one", Kind::Chat, &provider.url)];
    let admin = ApiKey::new("gw-admin-canary-77").expect("a key");
    let server = start_with(Config { admin_key: Some(admin.clone()), ..config(one, None) }).await;
    let new = json!({ "name": "limited", "limits": { "file_bytes": LIMIT } });
    let made = read(server.bare(Method::POST, "/admin/keys").bearer_auth(admin.expose()).json(&new)).await.1;
    let with_key = |method, path: &str| {
        server.bare(method, path).bearer_auth(made["secret"].as_str().expect("a secret"))
    };
    let task = read(with_key(Method::POST, PATH).json(&request())).await.1;
    let path = format!("{PATH}/{}", task["id"].as_str().expect("an id"));
    let failed = loop {
        let task = read(with_key(Method::GET, &path)).await.1;
        if task["status"] == "failed" {
            break task;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let message = failed["error"]["message"].as_str().expect("a message");
    assert!(
        message.ends_with("the limit file_bytes of this API key does not allow such a large file"),
        "{message}"
    );
    provider.left().await;
}

#[tokio::test]
async fn video_without_file_space_is_not_submitted() {
    // Section 8: a stored file stays for its hour. A video of 8 s is estimated at 8 MiB.
    let provider = Scripted::start([video("queued"), video("in_progress")]).await;
    let one = vec![upstream("one", Kind::Chat, &provider.url)];
    let server = start_with(Config { max_file_bytes: 12 * 1024 * 1024, ..config(one, None) }).await;
    server.ask(PATH, &request()).await;
    let response = send(server.post(PATH, &request())).await;
    assert_eq!((response.status().as_u16(), response.headers().contains_key("retry-after")), (503, true));
    let submitted = provider.seen().iter().filter(|seen| seen.line.starts_with("POST")).count();
    assert_eq!(submitted, 1);
}

#[tokio::test]
async fn video_passes_through_two_gateways() {
    let inner = start().await;
    let mut next = UpstreamConfig::new("inner", Kind::Gatewright, inner.url.clone());
    next.keys = vec![ApiKey::new(KEY).expect("a key")];
    let mut config = config(vec![next], Some("video_model_1"));
    config.models[0].targets[0].model = "video_model_1".to_owned();
    let server = start_with(config).await;
    let (url, mut received) = receiver(1).await;
    let mut body = request();
    (body["duration"], body["webhook_url"]) = (json!(3), json!(url));
    let task = server.ask(PATH, &body).await;
    assert_eq!(task["model"], "mine");
    // One rejected and one accepted attempt, and none from the inner gateway.
    for _ in 0..2 {
        let notification = notified(&server, &mut received).await;
        assert_eq!((&notification["id"], &notification["status"]), (&task["id"], &json!("completed")));
    }
    let done = finished(&server, &task["id"]).await;
    assert_eq!(done["output"]["resolution"], "720x1280");
    assert!(download(&server, &done).await.len() > 10_000);
    assert!(tokio::time::timeout(Duration::from_millis(200), received.recv()).await.is_err());
    // Failures are passed on, too.
    body["prompt"] = json!("[fail: out of paint]");
    let task = server.ask(PATH, &body).await;
    assert_eq!(failure(&server, &task).await, "out of paint");
}

/// A finished task of a gateway, with its file at this URL.
fn task_with(url: &str) -> Vec<Step> {
    let output = json!({ "url": url, "duration": 8, "resolution": "720x1280", "format": "mp4" });
    json_answer(
        200,
        &json!({ "id": "t", "status": "completed", "created": 1, "model": "m", "output": output }),
    )
}

#[tokio::test]
async fn foreign_file_url_is_fetched_without_the_key_and_never_internally() {
    for allowed in [true, false] {
        let elsewhere = Scripted::start([whole_file()]).await;
        let url = format!("{}/files/a.mp4?sig=1", elsewhere.url);
        let provider = Scripted::start([task_with(&url)]).await;
        let one = vec![upstream("one", Kind::Gatewright, &provider.url)];
        let server = start_with(Config { allow_private_webhooks: allowed, ..config(one, None) }).await;
        let task = server.ask(PATH, &request()).await;
        if allowed {
            let done = finished(&server, &task["id"]).await;
            assert_eq!(download(&server, &done).await, file());
            let seen = &elsewhere.seen()[0];
            assert_eq!(seen.line, "GET /v1/files/a.mp4?sig=1 HTTP/1.1");
            assert!(!format!("{seen:?}").contains("canary"), "{seen:?}");
        } else {
            let message = failure(&server, &task).await;
            assert!(message.contains("the address of the file must begin with https://"), "{message}");
            assert_eq!(elsewhere.count(), 0);
        }
    }
}

#[tokio::test]
async fn file_of_the_upstreams_own_origin_is_fetched_without_the_key() {
    let provider = Scripted::start([Vec::new()]).await;
    let url = format!("{}/files/a.mp4", provider.url);
    provider.then(task_with(&url));
    let one = vec![upstream("one", Kind::Gatewright, &provider.url)];
    // Private addresses are disallowed, but the operator's configured upstream is not affected.
    let video_poll = Duration::from_millis(200);
    let config = Config { allow_private_webhooks: false, video_poll, ..config(one, None) };
    let server = start_with(config).await;
    let task = server.ask(PATH, &request()).await;
    // Until the upstream has the file, it returns the task instead.
    wait_for(|| provider.count() > 1).await;
    provider.then(whole_file());
    let done = finished(&server, &task["id"]).await;
    assert_eq!(download(&server, &done).await, file());
    let seen = provider.seen();
    assert!(seen[0].header("authorization").is_some() && seen[1].header("authorization").is_none());
}

async fn wait_for(is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(30), "the condition did not become true");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn video_is_polled_with_the_key_that_submitted_it() {
    let refused = json_answer(429, &json!({ "error": { "message": "slower" } }));
    let provider = Scripted::start([refused, video("queued"), video("completed"), whole_file()]).await;
    let mut one = upstream("one", Kind::Chat, &provider.url);
    one.keys.push(ApiKey::new("second").expect("a key"));
    let server = start_with(config(vec![one], None)).await;
    let task = server.ask(PATH, &request()).await;
    finished(&server, &task["id"]).await;
    let seen = provider.seen();
    let keys: Vec<Option<&str>> = seen.iter().map(|seen| seen.header("authorization")).collect();
    let (first, second) = (format!("Bearer {UPSTREAM_KEY}"), Some("Bearer second"));
    assert_eq!(keys, [Some(&*first), second, second, second]);
}

/// Waits until a provider has a request.
pub(crate) async fn until_requested(provider: &Scripted) {
    while provider.seen().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn video_of_a_disconnected_client_is_completed() {
    let mut slow = vec![Step::Pause(Duration::from_millis(300))];
    slow.extend(video("queued"));
    let provider = Scripted::start([slow, video("completed"), whole_file()]).await;
    let server = gateway_to(&provider).await;
    let (url, mut received) = receiver(0).await;
    let mut body = request();
    body["webhook_url"] = json!(url);
    tokio::select! {
        _ = server.post(PATH, &body).send() => panic!("no answer yet"),
        () = until_requested(&provider) => {}
    }
    let notification = notified(&server, &mut received).await;
    assert_eq!(notification["status"], "completed");
    assert_eq!(download(&server, &notification).await, file());
}

#[tokio::test]
async fn video_is_visible_to_its_key_only_and_counted_once() {
    const ADMIN: &str = "gw-admin-canary-77";
    let provider =
        Scripted::start([json_answer(500, &json!({})), video("queued"), video("completed"), whole_file()]);
    let provider = provider.await;
    let both = vec![upstream("one", Kind::Chat, &provider.url), upstream("two", Kind::Chat, &provider.url)];
    let admin_key = Some(ApiKey::new(ADMIN).expect("a key"));
    let server = start_with(Config { admin_key, ..config(both, None) }).await;
    let new = server.bare(Method::POST, "/admin/keys").bearer_auth(ADMIN).json(&json!({ "name": "other" }));
    let other = read(new).await.1["secret"].as_str().expect("a secret").to_owned();

    let task = server.ask(PATH, &request()).await;
    let path = format!("{PATH}/{}", task["id"].as_str().expect("an id"));
    let (status, refused) = read(server.bare(Method::GET, &path).bearer_auth(&other)).await;
    assert_eq!((status, &refused["error"]["code"]), (404, &json!("not_found")));
    finished(&server, &task["id"]).await;
    let row = usage_row(&server, ADMIN).await;
    let numbers = ["requests", "complete", "estimated", "input_tokens"].map(|name| row[name].as_u64());
    assert_eq!(numbers, [Some(1), Some(1), Some(0), Some(0)], "{row}");
    assert_eq!((&row["model"], &row["upstream"]), (&json!("mine"), &json!("two")));
}

#[tokio::test]
async fn repeated_submission_after_a_disconnect_makes_no_second_video() {
    let mut slow = vec![Step::Pause(Duration::from_millis(300))];
    slow.extend(video("queued"));
    let provider = Scripted::start([slow, video("completed"), whole_file()]).await;
    let settings = config(vec![upstream("one", Kind::Chat, &provider.url)], None);
    let gateway = Embedded::new(settings).expect("a gateway");
    let ask = || {
        let builder = http::Request::post(PATH)
            .header("authorization", format!("Bearer {}", gateway.key().expose()))
            .header("content-type", "application/json")
            .header("idempotency-key", "once");
        gateway.answer(builder.body(Body::from(request().to_string())).expect("a request"))
    };
    // Like a server whose connection was reset.
    tokio::select! {
        _ = ask() => panic!("no answer yet"),
        () = until_requested(&provider) => {}
    }
    let answered = loop {
        let response = ask().await;
        if response.status() != 409 {
            break response;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let replayed = answered.headers().get("idempotency-replayed").is_some_and(|value| value == "true");
    assert_eq!((answered.status().as_u16(), replayed), (200, true));
    let submitted = provider.seen().iter().filter(|seen| seen.line.starts_with("POST")).count();
    assert_eq!(submitted, 1);
}
