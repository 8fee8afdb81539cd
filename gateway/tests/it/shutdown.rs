//! What a gateway that is told to stop still does, and what it gives up (3, 6).

use std::time::Duration;

use gatewright_gateway::{ApiKey, Config, Gateway};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::support::KEY;
use crate::webhooks::receiver;

/// A gateway, what stops it, and the task it was given, whose end `hook` is told.
async fn with_task(
    hook: &str,
    grace: Duration,
    video_time: Duration,
) -> (JoinHandle<Vec<String>>, oneshot::Sender<()>, Value) {
    // Another test of this process may have been first.
    _ = rustls::crypto::ring::default_provider().install_default();
    let config = Config {
        listen: vec!["127.0.0.1:0".to_owned()],
        key: Some(ApiKey::new(KEY).expect("a valid key")),
        allow_private_webhooks: true,
        shutdown_grace: grace,
        video_time,
        ..Config::default()
    };
    let gateway = Gateway::bind(config).await.expect("a free port");
    let url = gateway.url();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(gateway.serve(async {
        _ = stopped.await;
    }));
    let body = json!({
        "model": "video_model_3", "prompt": "a comet", "duration": 3, "resolution": "720p", "webhook_url": hook,
    });
    let request = Client::new().post(format!("{url}/v1/videos/generations")).bearer_auth(KEY).json(&body);
    let task: Value = request.send().await.expect("an answer").json().await.expect("JSON");
    (serving, stop, task)
}

#[tokio::test]
async fn tasks_in_progress_end_and_their_notifications_go_out() {
    let (hook, mut received) = receiver(0).await;
    let (grace, video_time) = (Duration::from_mins(1), Duration::from_millis(500));
    let (serving, stop, task) = with_task(&hook, grace, video_time).await;
    stop.send(()).expect("the gateway runs");
    let unfinished = serving.await.expect("no panic");
    assert!(unfinished.is_empty(), "{unfinished:?}");
    // It has stopped: whatever it had to say has been said.
    let (_, record) = received.try_recv().expect("a notification");
    let record: Value = serde_json::from_slice(&record).expect("JSON");
    assert_eq!((&record["id"], &record["status"]), (&task["id"], &json!("completed")));
}

#[tokio::test]
async fn what_does_not_end_within_the_grace_is_told() {
    let (hook, _received) = receiver(0).await;
    let (grace, video_time) = (Duration::from_millis(200), Duration::from_hours(1));
    let (serving, stop, task) = with_task(&hook, grace, video_time).await;
    stop.send(()).expect("the gateway runs");
    let unfinished = tokio::time::timeout(Duration::from_secs(30), serving).await.expect("it did not stop");
    assert_eq!(json!(unfinished.expect("no panic")), json!([task["id"]]));
}
