//! A gateway that stops while its database is silent (ours): its last writes wait at the same time, and nothing is lost.

use std::path::Path;
use std::time::Duration;

use gatewright_gateway::{ApiKey, Config, Gateway, StoreUrl};
use gatewright_test_stores::{Network, Postgres, Way};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::admin;
use crate::support::{KEY, Server, read, start_with};

/// The last writes, one after the other, would take more than twice as long.
const MAX_STOP: Duration = Duration::from_secs(9);
const PATIENCE: Duration = Duration::from_mins(1);

fn node(server: &Postgres, url: &str, folder: &Path) -> Config {
    Config {
        store: Some(StoreUrl::new(url).expect("an address")),
        key: Some(ApiKey::new(KEY).expect("a valid key")),
        data: Some(folder.to_owned()),
        shutdown_grace: Duration::ZERO,
        video_time: Duration::from_hours(1),
        ..super::node(server)
    }
}

async fn ask(url: &str, path: &str, body: Value) -> Value {
    let answer = Client::new().post(format!("{url}{path}")).bearer_auth(KEY).json(&body).send().await;
    let answer = answer.expect("an answer");
    assert!(answer.status().is_success(), "{path}: {answer:?}");
    answer.json().await.expect("JSON")
}

async fn requests(node: &Server) -> u64 {
    let (status, usage) = read(admin(node, Method::GET, "/usage?by=model")).await;
    assert_eq!(status, 200, "{usage}");
    let rows = usage["usage"].as_array().expect("rows");
    rows.iter().filter(|row| row["model"] == "model-sol").filter_map(|row| row["requests"].as_u64()).sum()
}

#[tokio::test]
async fn last_writes_wait_for_a_silent_database_at_the_same_time() {
    _ = rustls::crypto::ring::default_provider().install_default();
    let (server, network) = (Postgres::start(), Network::new());
    let folder = tempfile::tempdir().expect("a folder");
    let database = network.url_of(&server);
    let config = Config { listen: vec!["127.0.0.1:0".to_owned()], ..node(&server, &database, folder.path()) };
    let gateway = Gateway::bind(config).await.expect("a free port");
    let url = gateway.url();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(gateway.serve(async {
        _ = stopped.await;
    }));
    let video = json!({ "model": "video_model_3", "prompt": "a comet", "duration": 3, "resolution": "720p" });
    let video = ask(&url, "/v1/videos/generations", video).await;

    network.set(Way::Silent);
    let messages = json!([{ "role": "user", "content": "Say hi" }]);
    ask(&url, "/v1/chat/completions", json!({ "model": "model-sol", "messages": messages })).await;
    let response = ask(&url, "/v1/responses", json!({ "model": "model-sol", "input": "Say hi" })).await;

    // Only waiting takes time from here.
    tokio::time::pause();
    let started = Instant::now();
    stop.send(()).expect("the gateway runs");
    serving.await.expect("no panic");
    let took = started.elapsed();
    tokio::time::resume();
    assert!(took < MAX_STOP, "{took:?}");

    network.set(Way::Open);
    let next = start_with(node(&server, &database, folder.path())).await;
    let since = Instant::now();
    while requests(&next).await != 2 {
        assert!(since.elapsed() < PATIENCE, "the usage is lost");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let id = |one: &Value| one["id"].as_str().expect("an id").to_owned();
    let (status, found) = read(next.get(&format!("/v1/responses/{}", id(&response)))).await;
    assert_eq!((status, &found["id"]), (200, &response["id"]), "{found}");
    let (status, found) = read(next.get(&format!("/v1/videos/generations/{}", id(&video)))).await;
    assert!(status == 200 && found["status"] != "failed", "{found}");
}
