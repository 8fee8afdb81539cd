//! What a killed gateway leaves to the next one with the same data folder.

use std::path::Path;
use std::time::Duration;

use gatewright_gateway::{ApiKey, Config, Gateway, Kind};
use reqwest::Client;
use serde_json::{Value, json};
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::support::KEY;
use crate::upstream_videos::{config, request, video, whole_file};
use crate::upstreams::{Scripted, upstream};
use crate::webhooks::receiver;

/// A gateway with its own runtime. Dropping it kills it: it sends nothing more and releases nothing.
struct Mortal {
    url: String,
    runtime: Option<Runtime>,
}

impl Mortal {
    async fn start(config: Config, data: &Path) -> Self {
        _ = rustls::crypto::ring::default_provider().install_default();
        let config = Config {
            listen: vec!["127.0.0.1:0".to_owned()],
            key: Some(ApiKey::new(KEY).expect("a valid key")),
            data: Some(data.to_path_buf()),
            video_lease: Duration::from_millis(600),
            ..config
        };
        let runtime = Runtime::new().expect("threads");
        let started = runtime.spawn(async move {
            let gateway = Gateway::bind(config).await.expect("a free port");
            let url = gateway.url();
            tokio::spawn(gateway.serve(std::future::pending()));
            url
        });
        Self { url: started.await.expect("no panic"), runtime: Some(runtime) }
    }

    async fn call(&self, path: &str, body: Option<&Value>) -> Value {
        let url = format!("{}{path}", self.url);
        let client = Client::builder().no_proxy().build().expect("a client");
        let request = match body {
            Some(body) => client.post(url).json(body),
            None => client.get(url),
        };
        request.bearer_auth(KEY).send().await.expect("an answer").json().await.expect("JSON")
    }

    /// Waits until a task has ended.
    async fn ended(&self, task: &Value) -> Value {
        let path = format!("/v1/videos/generations/{}", task["id"].as_str().expect("an id"));
        let waiting = async {
            loop {
                let task = self.call(&path, None).await;
                if task["status"] == "completed" || task["status"] == "failed" {
                    return task;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), waiting).await.expect("it ends")
    }
}

impl Drop for Mortal {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn database_file_is_complete_after_shutdown() {
    _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().expect("a folder");
    let config = Config {
        listen: vec!["127.0.0.1:0".to_owned()],
        key: Some(ApiKey::new(KEY).expect("a valid key")),
        data: Some(folder.path().to_path_buf()),
        ..Config::default()
    };
    let gateway = Gateway::bind(config).await.expect("a free port");
    let url = format!("{}/v1/responses", gateway.url());
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(gateway.serve(async {
        _ = stopped.await;
    }));
    let client = Client::builder().no_proxy().build().expect("a client");
    let body = json!({ "model": "model-sol", "input": "count to 3", "store": true });
    let answer = client.post(url).bearer_auth(KEY).json(&body).send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
    drop(stop);
    _ = serving.await.expect("no panic");

    let copied = folder.path().join("copy.db");
    std::fs::copy(folder.path().join("gatewright.db"), &copied).expect("a copy of the file alone");
    let options = SqliteConnectOptions::new().filename(&copied);
    let mut copy = SqliteConnection::connect_with(&options).await.expect("a database");
    let count: i64 =
        sqlx::query_scalar("SELECT count(*) FROM copies").fetch_one(&mut copy).await.expect("a table");
    assert_eq!(count, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn upstream_video_is_resumed_by_the_next_gateway() {
    // 3: an accepted task ends exactly once.
    let folder = tempfile::tempdir().expect("a folder");
    let provider =
        Scripted::start([video("queued"), video("in_progress"), video("completed"), whole_file()]).await;
    let config = || config(vec![upstream("one", Kind::Chat, &provider.url)], None);
    let (hook, mut received) = receiver(0).await;
    let mut body = request();
    body["webhook_url"] = json!(hook);
    let first =
        Mortal::start(Config { video_poll: Duration::from_hours(1), ..config() }, folder.path()).await;
    let task = first.call("/v1/videos/generations", Some(&body)).await;
    assert_eq!(task["status"], "processing", "{task}");
    drop(first);

    let second = Mortal::start(config(), folder.path()).await;
    assert_eq!(second.ended(&task).await["status"], "completed");
    let (_, notification) = received.recv().await.expect("a notification");
    let notification: Value = serde_json::from_slice(&notification).expect("JSON");
    assert_eq!((&notification["id"], &notification["status"]), (&task["id"], &json!("completed")));
    let submissions = provider.seen().iter().filter(|request| request.line.starts_with("POST ")).count();
    assert_eq!(submissions, 1, "it is submitted once");
}

#[tokio::test(flavor = "multi_thread")]
async fn gateways_sharing_a_store_do_not_steal_live_tasks() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = |video_time| Config { video_time, allow_private_webhooks: true, ..Config::default() };
    let first = Mortal::start(config(Duration::from_hours(1)), folder.path()).await;
    let second = Mortal::start(config(Duration::from_millis(10)), folder.path()).await;
    let body = json!({ "model": "video_model_3", "prompt": "[fail]" });
    let task = first.call("/v1/videos/generations", Some(&body)).await;
    // Both see the task, and the working gateway keeps it for longer than its lease.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let path = format!("/v1/videos/generations/{}", task["id"].as_str().expect("an id"));
    assert_eq!(second.call(&path, None).await["status"], "processing");
    drop(first);
    assert_eq!(second.ended(&task).await["status"], "failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_gateway_leaves_responses_and_answers_to_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let before = Mortal::start(Config::default(), folder.path()).await;
    let body = json!({ "model": "model-sol", "input": "Say apples" });
    let keyed = async |gateway: &Mortal| {
        let client = Client::builder().no_proxy().build().expect("a client");
        let url = format!("{}/v1/responses", gateway.url);
        let request = client.post(url).bearer_auth(KEY).header("idempotency-key", "k").json(&body);
        request.send().await.expect("an answer").json::<Value>().await.expect("JSON")
    };
    let first = keyed(&before).await;
    drop(before);
    let next = Mortal::start(Config::default(), folder.path()).await;
    assert_eq!(keyed(&next).await, first);
    let path = format!("/v1/responses/{}", first["id"].as_str().expect("an id"));
    assert_eq!(next.call(&path, None).await, first);
    let going_on = json!({ "model": "model-sol", "input": "Say pears", "previous_response_id": first["id"] });
    assert_eq!(next.call("/v1/responses", Some(&going_on)).await["status"], "completed");
    // The conversation is not readable there.
    for file in crate::support::files_of(folder.path()) {
        let bytes = std::fs::read(file).expect("a file");
        assert!(!bytes.windows(6).any(|part| part == b"apples"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn video_is_polled_only_at_the_server_that_makes_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let provider = Scripted::start([video("queued"), video("completed"), whole_file()]).await;
    let other = Scripted::start([video("completed"), whole_file()]).await;
    let config = |provider: &Scripted| Config {
        video_timeout: Duration::from_secs(3),
        ..config(vec![upstream("one", Kind::Chat, &provider.url)], None)
    };
    let first =
        Mortal::start(Config { video_poll: Duration::from_hours(1), ..config(&provider) }, folder.path())
            .await;
    let task = first.call("/v1/videos/generations", Some(&request())).await;
    drop(first);
    // Neither the key nor the video id is sent to another server, although the upstream's name is the same.
    let second = Mortal::start(config(&other), folder.path()).await;
    let ended = second.ended(&task).await;
    let message = ended["error"]["message"].as_str().expect("a message");
    assert!(ended["status"] == "failed" && message.contains("another base_url or kind"), "{ended}");
    assert_eq!(other.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn task_with_an_unreadable_payload_fails_and_notifies() {
    let folder = tempfile::tempdir().expect("a folder");
    let (hook, mut received) = receiver(0).await;
    let config =
        || Config { video_time: Duration::from_hours(1), allow_private_webhooks: true, ..Config::default() };
    let first = Mortal::start(config(), folder.path()).await;
    let body = json!({ "model": "video_model_3", "prompt": "[fail]", "webhook_url": hook });
    let task = first.call("/v1/videos/generations", Some(&body)).await;
    drop(first);
    let options = SqliteConnectOptions::new().filename(folder.path().join("gatewright.db"));
    let options = options.busy_timeout(Duration::from_secs(20));
    let mut database = SqliteConnection::connect_with(&options).await.expect("a connection");
    let spoil = "UPDATE tasks SET errand = json_remove(errand, '$.maker')";
    sqlx::query(spoil).execute(&mut database).await.expect("changed");
    database.close().await.expect("closed");

    let second = Mortal::start(config(), folder.path()).await;
    assert_eq!(second.ended(&task).await["status"], "failed");
    let (_, notification) = received.recv().await.expect("a notification");
    let notification: Value = serde_json::from_slice(&notification).expect("JSON");
    assert_eq!((&notification["id"], &notification["status"]), (&task["id"], &json!("failed")));
}

/// 3: a resumed task doesn't get ahead of its upstream, because its state would have to move backward later.
#[tokio::test(flavor = "multi_thread")]
async fn resumed_video_stays_pending_while_its_upstream_queues_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let provider = Scripted::start([video("queued"), video("queued")]).await;
    let config = || Config {
        video_poll: Duration::from_hours(1),
        ..config(vec![upstream("one", Kind::Chat, &provider.url)], None)
    };
    let first = Mortal::start(config(), folder.path()).await;
    let task = first.call("/v1/videos/generations", Some(&request())).await;
    drop(first);
    let second = Mortal::start(config(), folder.path()).await;
    // Longer than the first gateway's lease.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let path = format!("/v1/videos/generations/{}", task["id"].as_str().expect("an id"));
    assert_eq!(second.call(&path, None).await["status"], "pending");
}
