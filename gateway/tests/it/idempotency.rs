//! `idempotency-key` (ours): a request that comes again is not carried out again.

use std::time::Duration;

use gatewright::{RequestOptions, types};
use gatewright_gateway::{Config, FAULT_HEADER};
use serde_json::{Value, json};

use crate::support::{KEY, Server, read, send, start, start_with};
use crate::videos::finished;
use crate::webhooks::receiver;

const PATH: &str = "/v1/videos/generations";
const HEADER: &str = "idempotency-key";

fn video(prompt: &str) -> Value {
    json!({ "model": "video_model_3", "prompt": prompt, "duration": 3, "resolution": "720p" })
}

/// Status, body and whether it was given before.
async fn keyed(server: &Server, path: &str, key: &str, body: &Value) -> (u16, Value, bool) {
    let response = send(server.post(path, body).header(HEADER, key)).await;
    let replayed = response.headers().contains_key("idempotency-replayed");
    (response.status().as_u16(), response.json().await.expect("JSON"), replayed)
}

#[tokio::test]
async fn the_same_request_gets_the_first_answer_again() {
    let server = start().await;
    let (status, first, replayed) = keyed(&server, PATH, "k1", &video("a comet")).await;
    assert_eq!((status, replayed), (200, false));
    assert_eq!(keyed(&server, PATH, "k1", &video("a comet")).await, (200, first.clone(), true));
    let (_, other, replayed) = keyed(&server, PATH, "k2", &video("a comet")).await;
    assert!(other["id"] != first["id"] && !replayed);
    // An error of the request's own is an answer, too; the key counts per operation.
    let broken = json!({ "model": "model-sol" });
    let (status, error, _) = keyed(&server, "/v1/responses", "k1", &broken).await;
    assert_eq!(status, 400);
    assert_eq!(keyed(&server, "/v1/responses", "k1", &broken).await, (400, error, true));
}

#[tokio::test]
async fn as_many_answers_are_kept_as_the_configuration_says_and_the_oldest_gives_way() {
    let data = tempfile::tempdir().expect("a folder");
    for data in [None, Some(data.path().to_owned())] {
        let server = start_with(Config { max_idempotent_answers: 2, data, ..Config::default() }).await;
        for key in ["k1", "k2", "k3"] {
            keyed(&server, PATH, key, &video("a comet")).await;
        }
        assert!(keyed(&server, PATH, "k2", &video("a comet")).await.2);
        // A database removes it while nobody waits.
        let gone = async {
            while keyed(&server, PATH, "k1", &video("a comet")).await.2 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), gone).await.expect("the oldest answer goes");
    }
}

#[tokio::test]
async fn another_request_under_the_same_key_is_422_and_a_bad_key_400() {
    let server = start().await;
    keyed(&server, PATH, "k", &video("a comet")).await;
    let (status, body, _) = keyed(&server, PATH, "k", &video("a planet")).await;
    assert_eq!((status, &body["error"]["code"]), (422, &json!("idempotency_key_reused")));
    for key in [&"k".repeat(256), "", "a key"] {
        let (status, body, _) = keyed(&server, PATH, key, &video("a comet")).await;
        assert_eq!((status, &body["error"]["code"]), (400, &json!("invalid_idempotency_key")), "{key:?}");
        assert_eq!(body["error"]["param"], HEADER);
    }
}

#[tokio::test]
async fn a_request_under_way_is_409_and_its_answer_is_there_when_it_has_ended() {
    let server = start().await;
    let body = json!({ "model": "model-sol", "input": "Say hi" });
    let path = "/v1/responses";
    let slow = server.post(path, &body).header(HEADER, "k").header(FAULT_HEADER, "delay=2000");
    let slow = tokio::spawn(read(slow));
    tokio::time::sleep(Duration::from_millis(500)).await;
    let response = send(server.post(path, &body).header(HEADER, "k")).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (409, &"1".parse().expect("a value"))
    );
    let (status, first) = slow.await.expect("no panic");
    assert_eq!(status, 200);
    assert_eq!(keyed(&server, path, "k", &body).await, (200, first, true));
}

#[tokio::test]
async fn errors_of_the_gateway_and_streams_are_not_remembered() {
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
async fn a_client_that_tries_again_after_broken_answers_makes_one_task_and_gets_one_notification() {
    let faults = "reset@create_video".parse().expect("a fault");
    let server = start_with(Config { faults, allow_private_webhooks: true, ..Config::default() }).await;
    let (hook, mut received) = receiver(0).await;
    let client = gatewright::Client::builder().base_url(&server.url).api_key(KEY).build().expect("a client");
    let mut body = video("a comet");
    body["webhook_url"] = json!(hook);
    let request: types::VideoGenerationRequest = serde_json::from_value(body).expect("a request");
    // Every answer breaks, also those of the two further attempts.
    let error = client.videos().generations().create(&request).await.expect_err("no whole answer");
    assert_eq!(error.attempts(), 3, "{error}");
    let notified = tokio::time::timeout(Duration::from_secs(30), received.recv()).await;
    let (_, record) = notified.expect("in time").expect("a notification");
    let record: Value = serde_json::from_slice(&record).expect("JSON");
    assert_eq!(finished(&server, &record["id"]).await["status"], "completed");
    assert!(tokio::time::timeout(Duration::from_secs(2), received.recv()).await.is_err(), "a second task");
}

#[tokio::test]
async fn a_client_waits_for_a_request_that_is_under_way() {
    let server = start().await;
    let body = json!({ "model": "model-sol", "input": "Say hi" });
    let slow = server.post("/v1/responses", &body).header(HEADER, "k").header(FAULT_HEADER, "delay=2000");
    let slow = tokio::spawn(read(slow));
    tokio::time::sleep(Duration::from_millis(500)).await;
    let client = gatewright::Client::builder().base_url(&server.url).api_key(KEY).build().expect("a client");
    let options = RequestOptions { idempotency_key: Some("k".to_owned()), ..RequestOptions::default() };
    let request: types::ResponseRequest = serde_json::from_value(body).expect("a request");
    let answer = client.with_options(options).responses().create(&request).await.expect("an answer");
    let (_, first) = slow.await.expect("no panic");
    assert_eq!(json!(answer.id), first["id"]);
}
