//! `idempotency-key` (ours): a repeated request is not executed again.

use std::sync::Arc;
use std::time::Duration;

use gatewright::{Attempt, BoxFuture, Middleware, Outcome, RequestOptions, types};
use gatewright_gateway::{Config, FAULT_HEADER, Kind};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::support::{KEY, Server, read, send, start, start_with, until};
use crate::upstreams::{Scripted, Step, completion, config, json_answer, question, upstream};
use crate::videos::finished;
use crate::webhooks::receiver;

const CHAT: &str = "/v1/chat/completions";
const PATH: &str = "/v1/videos/generations";
const HEADER: &str = "idempotency-key";

fn video(prompt: &str) -> Value {
    json!({ "model": "video_model_3", "prompt": prompt, "duration": 3, "resolution": "720p" })
}

/// Status, body and whether it was replayed.
async fn keyed(server: &Server, path: &str, key: &str, body: &Value) -> (u16, Value, bool) {
    let response = send(server.post(path, body).header(HEADER, key)).await;
    let replayed = response.headers().contains_key("idempotency-replayed");
    (response.status().as_u16(), response.json().await.expect("JSON"), replayed)
}

#[tokio::test]
async fn repeated_request_replays_the_first_answer() {
    let server = start().await;
    let (status, first, replayed) = keyed(&server, PATH, "k1", &video("a comet")).await;
    assert_eq!((status, replayed), (200, false));
    assert_eq!(keyed(&server, PATH, "k1", &video("a comet")).await, (200, first.clone(), true));
    let (_, other, replayed) = keyed(&server, PATH, "k2", &video("a comet")).await;
    assert!(other["id"] != first["id"] && !replayed);
    // A request error is replayed, too; keys are scoped per operation.
    let broken = json!({ "model": "model-sol" });
    let (status, error, _) = keyed(&server, "/v1/responses", "k1", &broken).await;
    assert_eq!(status, 400);
    assert_eq!(keyed(&server, "/v1/responses", "k1", &broken).await, (400, error, true));
}

#[tokio::test]
async fn replayed_answers_are_bounded_and_the_oldest_evicted() {
    let data = tempfile::tempdir().expect("a folder");
    for data in [None, Some(data.path().to_owned())] {
        let server = start_with(Config { max_idempotent_answers: 2, data, ..Config::default() }).await;
        for key in ["k1", "k2", "k3"] {
            keyed(&server, PATH, key, &video("a comet")).await;
        }
        assert!(keyed(&server, PATH, "k2", &video("a comet")).await.2);
        // A database evicts it in the background.
        let gone = async {
            while keyed(&server, PATH, "k1", &video("a comet")).await.2 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), gone).await.expect("the oldest answer is evicted");
    }
}

#[tokio::test]
async fn reused_key_is_422_and_an_invalid_key_400() {
    let server = start().await;
    keyed(&server, PATH, "k", &video("a comet")).await;
    let (status, body, _) = keyed(&server, PATH, "k", &video("a planet")).await;
    assert_eq!((status, &body["error"]["code"]), (422, &json!("idempotency_key_reused")));
    // The body is compared as it is, not as JSON.
    let reordered = r#"{"prompt":"a comet","model":"video_model_3","duration":3,"resolution":"720p"}"#;
    assert_ne!(reordered, video("a comet").to_string());
    let request = server.post(PATH, &json!({})).header(HEADER, "k").body(reordered);
    assert_eq!(read(request).await.0, 422);
    for key in [&"k".repeat(256), "", "a key"] {
        let (status, body, _) = keyed(&server, PATH, key, &video("a comet")).await;
        assert_eq!((status, &body["error"]["code"]), (400, &json!("invalid_idempotency_key")), "{key:?}");
        assert_eq!(body["error"]["param"], HEADER);
    }
}

/// A gateway whose upstream answers once the gate is closed, and a request with the key `k` that waits for it.
async fn in_progress(gate: &Arc<Semaphore>) -> (Scripted, Server, JoinHandle<(u16, Value)>) {
    let steps = [vec![Step::Gate(Arc::clone(gate))], json_answer(200, &completion("hello"))].concat();
    let provider = Scripted::start([steps]).await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &provider.url)])).await;
    let first = tokio::spawn(read(server.post(CHAT, &question(false)).header(HEADER, "k")));
    until(|| provider.count() == 1).await;
    (provider, server, first)
}

#[tokio::test]
async fn concurrent_repeat_is_409_until_the_first_completes() {
    let gate = Arc::new(Semaphore::new(0));
    let (provider, server, first) = in_progress(&gate).await;
    let response = send(server.post(CHAT, &question(false)).header(HEADER, "k")).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (409, &"1".parse().expect("a value"))
    );
    gate.close();
    let (status, first) = first.await.expect("no panic");
    assert_eq!(status, 200);
    assert_eq!(keyed(&server, CHAT, "k", &question(false)).await, (200, first, true));
    assert_eq!(provider.count(), 1);
}

#[tokio::test]
async fn gateway_errors_and_streams_are_not_replayed() {
    let server = start().await;
    let body = json!({ "model": "model-sol", "input": "Say hi" });
    let path = "/v1/responses";
    let failed = server.post(path, &body).header(HEADER, "k").header(FAULT_HEADER, "status=503");
    assert_eq!(read(failed).await.0, 503);
    let (status, _, replayed) = keyed(&server, path, "k", &body).await;
    assert_eq!((status, replayed), (200, false));
    let body = json!({ "model": "model-sol", "input": "Say hi", "stream": true });
    for _ in 0..2 {
        let response = send(server.post(path, &body).header(HEADER, "s")).await;
        assert!(response.status() == 200 && !response.headers().contains_key("idempotency-replayed"));
        assert!(response.text().await.expect("events").contains("response.completed"));
    }
}

#[tokio::test]
async fn retries_after_broken_responses_create_one_task_and_one_webhook() {
    let faults = "reset@create_video".parse().expect("a fault");
    let server = start_with(Config { faults, allow_private_webhooks: true, ..Config::default() }).await;
    let (hook, mut received) = receiver(0).await;
    let client = gatewright::Client::builder().base_url(&server.url).api_key(KEY).build().expect("a client");
    let mut body = video("a comet");
    body["webhook_url"] = json!(hook);
    let request: types::VideoGenerationRequest = serde_json::from_value(body).expect("a request");
    // Every response breaks, including those of the two retries.
    let error = client.videos().generations().create(&request).await.expect_err("no complete response");
    assert_eq!(error.attempts(), 3, "{error}");
    let notified = tokio::time::timeout(Duration::from_secs(30), received.recv()).await;
    let (_, record) = notified.expect("in time").expect("a notification");
    let record: Value = serde_json::from_slice(&record).expect("JSON");
    assert_eq!(finished(&server, &record["id"]).await["status"], "completed");
    assert!(tokio::time::timeout(Duration::from_secs(2), received.recv()).await.is_err(), "a second task");
}

/// Closes the gate once the first attempt was rejected.
struct AfterAttempt(Arc<Semaphore>);

impl Middleware for AfterAttempt {
    fn after<'a>(
        &'a self,
        _: &'a Attempt,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, Result<(), gatewright::Error>> {
        if !self.0.is_closed() {
            assert_eq!(outcome.status(), Some(409));
            self.0.close();
        }
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn client_waits_for_a_request_in_progress() {
    let gate = Arc::new(Semaphore::new(0));
    let (provider, server, first) = in_progress(&gate).await;
    let client = gatewright::Client::builder().base_url(&server.url).api_key(KEY);
    let client = client.middleware(Arc::new(AfterAttempt(gate))).build().expect("a client");
    let options = RequestOptions { idempotency_key: Some("k".to_owned()), ..RequestOptions::default() };
    let request: types::ChatCompletionRequest = serde_json::from_value(question(false)).expect("a request");
    let answer = client.with_options(options).chat().completions().create(&request).await.expect("an answer");
    let (_, first) = first.await.expect("no panic");
    assert_eq!(json!(answer.id), first["id"]);
    assert_eq!(provider.count(), 1);
}
