//! What a gateway that dies leaves to the next one with the same data folder.

use std::path::Path;
use std::time::Duration;

use gatewright_gateway::{ApiKey, Config, Gateway, Kind};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::KEY;
use crate::upstreams::{Scripted, upstream};
use crate::videos_of_upstreams::{config, request, video, whole_file};
use crate::webhooks::receiver;

/// A gateway with a runtime of its own. Dropped, it is dead at once: it says nothing any more, and gives nothing back.
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
async fn a_video_of_an_upstream_is_followed_by_the_next_gateway() {
    // 3: a task that was accepted comes to one end.
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
    assert_eq!(task["status"], "pending", "{task}");
    drop(first);

    let second = Mortal::start(config(), folder.path()).await;
    assert_eq!(second.ended(&task).await["status"], "completed");
    let (_, told) = received.recv().await.expect("a notification");
    let told: Value = serde_json::from_slice(&told).expect("JSON");
    assert_eq!((&told["id"], &told["status"]), (&task["id"], &json!("completed")));
    let submissions = provider.seen().iter().filter(|request| request.line.starts_with("POST ")).count();
    assert_eq!(submissions, 1, "it is made once");
}

#[tokio::test(flavor = "multi_thread")]
async fn gateways_that_share_a_store_leave_their_tasks_to_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = |video_time| Config { video_time, allow_private_webhooks: true, ..Config::default() };
    let first = Mortal::start(config(Duration::from_hours(1)), folder.path()).await;
    let second = Mortal::start(config(Duration::from_millis(10)), folder.path()).await;
    let body = json!({ "model": "video_model_3", "prompt": "[fail]" });
    let task = first.call("/v1/videos/generations", Some(&body)).await;
    // Both know it, and the one that works on it keeps it for more than its lease.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let path = format!("/v1/videos/generations/{}", task["id"].as_str().expect("an id"));
    assert_eq!(second.call(&path, None).await["status"], "processing");
    drop(first);
    assert_eq!(second.ended(&task).await["status"], "failed");
}
