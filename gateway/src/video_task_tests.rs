//! Tests responses about video tasks of a complete gateway, while the test holds its encoders and storage.

use std::time::Duration;

use gatewright_config::Config;
use gatewright_protocol::json::text;
use gatewright_store::NewKey;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::server::Embedded;
use crate::wire::{Body, Response};

async fn send(gateway: &Embedded, request: http::request::Builder, body: &str) -> Response {
    let request = request
        .header("authorization", format!("Bearer {}", gateway.key().expose()))
        .header("content-type", "application/json");
    gateway.answer(request.body(Body::from(body.to_owned())).expect("a request")).await
}

async fn ask(gateway: &Embedded, request: http::request::Builder, body: &str) -> Value {
    let response = send(gateway, request, body).await;
    assert_eq!(response.status(), 200);
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    serde_json::from_slice(&body).expect("JSON")
}

async fn submit(gateway: &Embedded, prompt: &str, duration_s: u32) -> Value {
    let body = json!({ "model": "video_model_1", "prompt": prompt, "duration": duration_s });
    ask(gateway, http::Request::post("/v1/videos/generations"), &body.to_string()).await
}

async fn status(gateway: &Embedded, task: &Value) -> String {
    let path = format!("/v1/videos/generations/{}", text(&task["id"]));
    text(&ask(gateway, http::Request::get(path), "").await["status"]).to_owned()
}

#[tokio::test]
async fn queued_task_is_pending_on_look_up_and_processing_on_submission() {
    // Section 3: an accepted submission is "processing", and pending is "queued, waiting to start".
    let config = Config { video_time: Duration::from_hours(1), ..Config::default() };
    let gateway = Embedded::new(config).expect("a gateway");
    let taken = [(), ()].map(|()| gateway.app().task_runner.schedule.free_place().expect("both places"));
    let task = submit(&gateway, "a kite", 3).await;
    assert_eq!((text(&task["status"]), status(&gateway, &task).await.as_str()), ("processing", "pending"));
    // A task that will fail is not encoded, and needs no encoder.
    assert_eq!(submit(&gateway, "[fail]", 3).await["status"], "processing");
    drop(taken);
    while status(&gateway, &task).await == "pending" {
        tokio::task::yield_now().await;
    }
    assert_eq!(status(&gateway, &task).await, "processing");
    gateway.app().task_runner.abandon().await;
    assert_eq!(gateway.app().task_runner.release().await.len(), 2);
    assert_eq!(status(&gateway, &task).await, "failed");
}

#[tokio::test]
async fn estimated_time_grows_with_duration_and_queue() {
    // 2.7.
    let gateway = Embedded::new(Config::default()).expect("a gateway");
    let _taken = [(), ()].map(|()| gateway.app().task_runner.schedule.free_place().expect("both places"));
    let mut estimates = Vec::new();
    for duration_s in [3, 15, 15, 15, 15] {
        let task = submit(&gateway, "a kite", duration_s).await;
        estimates.push(task["estimated_time"].as_u64().expect("whole seconds"));
    }
    assert!(estimates[0] > 0 && estimates[0] < estimates[1], "{estimates:?}");
    assert!(estimates.is_sorted() && estimates[1] < estimates[4], "{estimates:?}");
}

#[tokio::test]
async fn task_without_file_space_is_rejected_with_retry_after() {
    // Section 8: a stored file stays for its hour.
    let config = Config { max_file_bytes: 2_000_000, ..Config::default() };
    let gateway = Embedded::new(config).expect("a gateway");
    let _room = gateway.app().room_for_files(&"other".into(), 1_900_000).await.expect("room");
    let body = json!({ "model": "video_model_1", "prompt": "a kite", "duration": 3, "resolution": "720p" });
    let request = http::Request::post("/v1/videos/generations");
    let response = send(&gateway, request, &body.to_string()).await;
    assert_eq!((response.status().as_u16(), response.headers().contains_key("retry-after")), (503, true));
}

#[tokio::test]
async fn file_limit_of_a_key_holds_after_its_revocation() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = Some(folder.path().to_path_buf());
    let config = Config { data, max_percent_per_key: 100, max_file_bytes: 1_000, ..Config::default() };
    let gateway = Embedded::new(config).expect("a gateway");
    let app = gateway.app();
    let mut new = NewKey::new("limited");
    new.limits.file_bytes = Some(300);
    let key = app.access.registry.create(new).await.expect("a key").key;
    let most = async |id: &str| app.room_for_files(&id.into(), 0).await.expect("nothing").most();
    // Before it is in memory, while it is there, and after it has gone.
    assert_eq!(most(&key.id).await, 300);
    app.access.authenticator.refresh().await.expect("a store");
    assert_eq!(most(&key.id).await, 300);
    app.access.registry.revoke(&key.id).await.expect("revoked");
    app.access.authenticator.refresh().await.expect("a store");
    assert_eq!(most(&key.id).await, 300);
    // A name is not an id, and the configured key has no limits.
    assert_eq!((most("default").await, most("limited").await), (1_000, 1_000));
}
