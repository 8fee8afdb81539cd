//! The configuration that gateways share in a data folder.

use std::fs;
use std::time::{Duration, Instant};

use gatewright_gateway::{ApiKey, Config, Gateway, Sharing};
use reqwest::Method;
use serde_json::json;

use crate::support::{KEY, Server, read, start, start_with};

const ADMIN: &str = "gw-admin-77";
const PATIENCE: Duration = Duration::from_mins(1);

async fn push(node: &Server, document: &str) -> u16 {
    let request = node.bare(Method::POST, "/admin/config").bearer_auth(ADMIN);
    read(request.json(&json!({ "document": document }))).await.0
}

/// Waits until requests for a model get this status.
async fn until(node: &Server, model: &str, expected: u16) -> Duration {
    let body = json!({ "model": model, "messages": [{ "role": "user", "content": "Say hi" }] });
    let started = Instant::now();
    while node.refused("/v1/chat/completions", &body).await.0 != expected {
        assert!(started.elapsed() < PATIENCE, "{expected} does not come");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    started.elapsed()
}

#[tokio::test]
async fn gateways_of_one_folder_apply_revisions_and_secrets_without_restart() {
    let (upstream, folder) = (start().await, tempfile::tempdir().expect("a folder"));
    let config = || Config {
        data: Some(folder.path().join("data")),
        shared_config: Some(Sharing::new(folder.path())),
        admin_key: Some(ApiKey::new(ADMIN).expect("a valid key")),
        ..Config::default()
    };
    let (one, other) = (start_with(config()).await, start_with(config()).await);
    let key = folder.path().join("keys/up");
    fs::create_dir(folder.path().join("keys")).expect("made");
    fs::write(&key, "sk-wrong").expect("written");
    let document = format!(
        "[upstreams.up]\nkind = \"gatewright\"\nbase_url = \"{}\"\nkey = {{ file = \"keys/up\" }}\n[models.ours]\n\
         targets = [{{ upstream = \"up\", model = \"model-sol\" }}]\n",
        upstream.url
    );
    assert_eq!(push(&one, &document).await, 201);
    assert!(until(&other, "ours", 502).await < Duration::from_secs(2), "its key is rejected there");
    fs::write(&key, KEY).expect("written");
    for node in [&one, &other] {
        until(node, "ours", 200).await;
    }
    // The document is already in the database.
    assert!(!folder.path().join("data/shared-config.json").exists());
}

#[tokio::test]
async fn shared_config_requires_a_store() {
    let config = Config {
        listen: vec!["127.0.0.1:0".to_owned()],
        shared_config: Some(Sharing::new("")),
        ..Config::default()
    };
    let error = Gateway::bind(config).await.err().expect("a refusal").to_string();
    assert!(error.contains("store.shared_config needs a store"), "{error}");
}
