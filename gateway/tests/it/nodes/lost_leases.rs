//! A gateway that loses the store (3, 6): another one ends its task once, and it discovers that its lease is lost.

use std::time::{Duration, Instant};

use gatewright_gateway::{Config, StoreUrl};
use gatewright_test_stores::{Network, Postgres, Way};
use serde_json::{Value, json};
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

use super::shared_config::metric;
use super::{PATIENCE, node};
use crate::support::{Server, read, start_as};
use crate::webhooks::receiver;

const LEASE: Duration = Duration::from_secs(2);
/// Time for the takeover, the video and a busy machine.
const MARGIN: Duration = Duration::from_secs(10);
/// Much longer than the video file takes, which is recorded when it is complete.
const VIDEO_TIME: Duration = Duration::from_secs(6);
/// Longer than the response to a change takes to arrive from the store.
const CONFIRMATION_TIME: Duration = Duration::from_millis(500);

async fn count(store: &Postgres, what: &'static str) -> i64 {
    let mut connection = PgConnection::connect(&store.url()).await.expect("a connection");
    sqlx::query_scalar(what).fetch_one(&mut connection).await.expect("a count")
}

async fn files(store: &Postgres) -> i64 {
    count(store, "SELECT count(*) FROM files").await
}

/// Waits until a metric of a node has this value.
async fn until_metric(node: &Server, name: &str, expected: &str) {
    let started = Instant::now();
    while metric(node, name).await != expected {
        assert!(started.elapsed() < PATIENCE, "{name} does not become {expected}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn retrieve(node: &Server, task: &Value) -> Value {
    let id = task["id"].as_str().expect("an id");
    let (status, task) = read(node.get(&format!("/v1/videos/generations/{id}"))).await;
    assert_eq!(status, 200, "{task}");
    task
}

async fn loses_the_store(way: Way) {
    let (store, network) = (Postgres::start(), Network::new());
    let config = |url: &str, video_time| Config {
        store: Some(StoreUrl::new(url).expect("an address")),
        allow_private_webhooks: true,
        open_metrics: true,
        video_lease: LEASE,
        video_time,
        ..node(&store)
    };
    let one = start_as(config(&network.url_of(&store), VIDEO_TIME)).await;
    let (hook, mut received) = receiver(0).await;
    let body = json!({ "model": "video_model_3", "prompt": "a comet", "duration": 3, "resolution": "720p",
        "webhook_url": hook });
    let started = Instant::now();
    let task = one.ask("/v1/videos/generations", &body).await;
    while files(&store).await == 0 {
        assert!(started.elapsed() < VIDEO_TIME, "the file of the video is not recorded");
    }
    // The row appears before the node gets the confirmation; without it, the node would retry the recording.
    tokio::time::sleep(CONFIRMATION_TIME).await;
    network.set(way);
    let cut = Instant::now();
    assert!(started.elapsed() < VIDEO_TIME, "the machine is too slow");

    let other = start_as(config(&store.url(), Duration::from_millis(10))).await;
    let end = loop {
        let now = retrieve(&other, &task).await;
        if now["status"] != "pending" && now["status"] != "processing" {
            break now;
        }
        assert!(cut.elapsed() < LEASE + MARGIN, "the task is not taken over: {now}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(end["status"], "completed", "{end}");
    // The first node has made its video, too, and doesn't know about the takeover.
    until_metric(&one, "gatewright_store_waiting{kind=\"task_ends\"}", "1").await;
    assert_eq!(files(&store).await, 2);
    network.set(Way::Open);
    until_metric(&one, "gatewright_store_waiting{kind=\"task_ends\"}", "0").await;
    until_metric(&one, "gatewright_video_tasks", "0").await;

    // Both report the other node's result, and only its file exists.
    let started = Instant::now();
    while files(&store).await != 1 {
        assert!(started.elapsed() < PATIENCE, "the first node's file still counts");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let address = |task: &Value| {
        let url = task["output"]["url"].as_str().expect("an address");
        url.split_once("/files/").expect("of a file").1.to_owned()
    };
    let seen = retrieve(&one, &task).await;
    assert_eq!((&seen["status"], address(&seen)), (&end["status"], address(&end)));
    let (_, notice) = received.recv().await.expect("a notification");
    let notice: Value = serde_json::from_slice(&notice).expect("JSON");
    assert_eq!((&notice["id"], address(&notice)), (&task["id"], address(&end)));
    assert_eq!(count(&store, "SELECT count(*) FROM deliveries").await, 1);
    assert!(received.try_recv().is_err(), "it is delivered once");
}

#[tokio::test]
async fn task_lost_to_a_broken_store_connection_is_ended_by_another_node() {
    loses_the_store(Way::Broken).await;
}

#[tokio::test]
async fn task_lost_to_a_silent_store_is_ended_by_another_node() {
    loses_the_store(Way::Silent).await;
}
