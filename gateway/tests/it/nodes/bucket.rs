//! Three gateways that share a database, counters and a bucket.

use std::time::Instant;

use gatewright_gateway::{Config, CounterServer, CountersUrl};
use gatewright_test_stores::{Bucket, Postgres, Redis};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{PATIENCE, create, node, until};
use crate::bucket::place_in;
use crate::support::{Server, read, send, start_with};
use crate::videos::finished;

const IMAGES: &str = "/v1/images/generations";
const VIDEOS: &str = "/v1/videos/generations";

/// The gateways and what they share.
struct Cluster {
    _store: Postgres,
    _counters: Redis,
    files: Bucket,
    _folder: TempDir,
    nodes: [Server; 3],
}

impl Cluster {
    async fn start() -> Self {
        let (store, counters) = (Postgres::start(), Redis::start());
        let folder = tempfile::tempdir().expect("a folder");
        let files = Bucket::start(folder.path());
        let started = async || {
            let mut server = CounterServer::new(CountersUrl::new(&counters.url()).expect("an address"));
            server.timeout = PATIENCE;
            start_with(Config { files: Some(place_in(&files)), counters: Some(server), ..node(&store) }).await
        };
        let nodes = [started().await, started().await, started().await];
        for node in &nodes {
            let first_poll = Instant::now();
            while read(node.bare(Method::GET, "/health/ready")).await.1["limits"] != "shared" {
                assert!(first_poll.elapsed() < PATIENCE, "the counters are not reachable");
            }
        }
        Self { _store: store, _counters: counters, files, _folder: folder, nodes }
    }

    /// Downloads a file from every gateway; one of them issued the URL.
    async fn served(&self, url: &Value) -> Vec<u8> {
        let url = url.as_str().expect("an address");
        let path = self.nodes.iter().find_map(|node| url.strip_prefix(&node.url)).expect("of a gateway");
        let mut all = Vec::new();
        for node in &self.nodes {
            let response = send(node.bare(Method::GET, path)).await;
            assert_eq!(response.status(), 200, "{}{path}", node.url);
            all.push(response.bytes().await.expect("a file").to_vec());
        }
        assert!(all.iter().all(|file| *file == all[0]));
        all.swap_remove(0)
    }
}

/// 3: a task submitted to one gateway is looked up on another, and every gateway serves the file at the URL of section 4.
#[tokio::test]
async fn files_made_on_one_gateway_are_served_by_all() {
    let cluster = Cluster::start().await;
    for node in &cluster.nodes {
        let body = json!({ "model": "image_model_2", "prompt": "a kite", "size": "256x256" });
        let answer = node.ask(IMAGES, &body).await;
        assert!(cluster.served(&answer["data"][0]["url"]).await.starts_with(b"\x89PNG"));
    }
    let [one, other, _] = &cluster.nodes;
    let body = json!({ "model": "video_model_1", "prompt": "a river", "duration": 3, "resolution": "720p" });
    let task = one.ask(VIDEOS, &body).await;
    let task = finished(other, &task["id"]).await;
    assert_eq!(&cluster.served(&task["output"]["url"]).await[4..8], b"ftyp");
    assert_eq!(cluster.files.objects().len(), 4, "none is stored elsewhere");
}

#[tokio::test]
async fn per_minute_limit_holds_across_three_gateways() {
    let cluster = Cluster::start().await;
    let key =
        create(&cluster.nodes[0], json!({ "name": "ci", "limits": { "requests_per_minute": 100 } })).await;
    for node in &cluster.nodes[1..] {
        until(node, &key, 200).await;
    }
    let started = Instant::now();
    let requests = (0..180).map(|number| {
        let node = &cluster.nodes[number % 3];
        let body = json!({ "model": "model-sol", "messages": [{ "role": "user", "content": "Say hi" }] });
        read(node.bare(Method::POST, "/v1/chat/completions").bearer_auth(&key).json(&body))
    });
    let mut granted = 0;
    for (status, answer) in futures_util::future::join_all(requests).await {
        match status {
            200 => granted += 1,
            status => assert_eq!(status, 429, "{answer}"),
        }
    }
    // Five requests refill in three seconds.
    let most = 100 + started.elapsed().as_secs() * 5 / 3 + 2;
    assert!((100..=most).contains(&granted), "{granted} of 180 in {:?}", started.elapsed());
}
