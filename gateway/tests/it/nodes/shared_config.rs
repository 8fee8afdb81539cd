//! The configuration that gateways share in Postgres.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use gatewright_gateway::{Config, Gateway, Sharing};
use gatewright_test_stores::Postgres;
use reqwest::Method;
use serde_json::{Value, json};

use super::{KNOWN, PATIENCE, admin, chat, listed, node};
use crate::support::{KEY, Server, read, send, start_with};

/// A gateway with its own folder for secret files.
fn sharing(store: &Postgres, folder: &Path) -> Config {
    Config { shared_config: Some(Sharing::new(folder)), open_metrics: true, ..node(store) }
}

/// A document whose upstream needs a secret from a file.
const WITH_SECRET: &str = "[upstreams.one]\nkind = \"simulator\"\n[upstreams.two]\nkind = \"chat\"\n\
                           base_url = \"https://two.example/v1\"\nkey = { file = \"keys/two\" }\n[models.second]\n\
                           targets = [{ upstream = \"one\", model = \"model-sol\" }]\n[models.third]\n\
                           targets = [{ upstream = \"two\" }]\n";

/// A document with one simulated model.
fn document(model: &str) -> String {
    format!(
        "[upstreams.one]\nkind = \"simulator\"\n[models.{model}]\ntargets = [{{ upstream = \"one\", model = \"model-sol\" }}]\n"
    )
}

async fn push(node: &Server, body: Value) -> (u16, Value) {
    read(admin(node, Method::POST, "/config").json(&body)).await
}

async fn models(node: &Server) -> Vec<String> {
    let (status, list) = read(node.get("/v1/models")).await;
    assert_eq!(status, 200, "{list}");
    let models = list["data"].as_array().expect("models").iter();
    models.map(|model| model["id"].as_str().expect("an id").to_owned()).collect()
}

/// Waits until a gateway lists these models. Returns the time it took.
async fn until_models(node: &Server, expected: &[&str]) -> Duration {
    let started = Instant::now();
    while models(node).await != expected {
        assert!(started.elapsed() < PATIENCE, "{expected:?} do not come: {:?}", models(node).await);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    started.elapsed()
}

async fn history(node: &Server) -> Value {
    let (status, history) = read(admin(node, Method::GET, "/config/history")).await;
    assert_eq!(status, 200, "{history}");
    history
}

async fn until_in_use(node: &Server, revision: u64) {
    let started = Instant::now();
    while history(node).await["in_use"] != revision {
        assert!(started.elapsed() < PATIENCE, "revision {revision} does not come into use");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn readiness(node: &Server) -> (u16, Value) {
    let (status, ready) = read(node.bare(Method::GET, "/health/ready")).await;
    (status, ready["status"].clone())
}

/// A metric, by name and labels.
pub(super) async fn metric(node: &Server, name: &str) -> String {
    let text = send(node.bare(Method::GET, "/metrics")).await.text().await.expect("a text");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} in:\n{text}")).to_owned()
}

#[tokio::test]
async fn pushed_revision_reaches_all_nodes_within_two_seconds() {
    let (store, folder) = (Postgres::start(), tempfile::tempdir().expect("a folder"));
    let config = || sharing(&store, folder.path());
    let (one, other) = (start_with(config()).await, start_with(config()).await);
    for node in [&one, &other] {
        assert_eq!(readiness(node).await, (503, json!("unconfigured")));
        assert_eq!(models(node).await, [""; 0]);
        assert_eq!(read(admin(node, Method::GET, "/config")).await.0, 404);
    }
    for round in 1..=3 {
        let model = format!("model-{round}");
        let pushed = push(&one, json!({ "document": document(&model), "by": "ada" })).await;
        assert_eq!(pushed, (201, json!({ "revision": round, "new": true, "warnings": [] })));
        assert_eq!(models(&one).await, [&*model], "before the push returns");
        let known = until_models(&other, &[&model]).await;
        eprintln!("a revision is in use after {known:?}");
        assert!(known < KNOWN);
    }
    until_in_use(&other, 3).await;
    assert_eq!(readiness(&other).await.0, 200);
    // Pushing the same document again changes nothing.
    let (status, again) = push(&other, json!({ "document": document("model-3") })).await;
    assert_eq!((status, &again["revision"], &again["new"]), (200, &json!(3), &json!(false)));
    // A push based on an outdated revision is rejected.
    let (status, late) = push(&other, json!({ "document": document("late"), "after": 2 })).await;
    assert_eq!((status, &late["error"]["param"]), (400, &json!("after")), "{late}");
    let (status, found) = read(admin(&other, Method::GET, "/config?revision=2")).await;
    assert_eq!((status, &found["document"], &found["by"]), (200, &json!(document("model-2")), &json!("ada")));
    // Rolled back to an earlier revision by the other node.
    let pushed = push(&other, json!({ "repeats": 1 })).await;
    assert_eq!(pushed.1["revision"], 4, "{pushed:?}");
    assert!(until_models(&one, &["model-1"]).await < KNOWN);
    let newest = &history(&one).await["revisions"][0];
    assert_eq!((&newest["revision"], &newest["repeats"]), (&json!(4), &json!(1)));
}

#[tokio::test]
async fn unusable_revision_is_rejected_and_the_current_one_kept() {
    let (store, folder) = (Postgres::start(), tempfile::tempdir().expect("a folder"));
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("one/keys")).expect("made");
    fs::create_dir_all(at("other/keys")).expect("made");
    fs::write(at("one/keys/two"), "sk-canary-9").expect("written");
    let one = start_with(sharing(&store, &at("one"))).await;
    let other = start_with(sharing(&store, &at("other"))).await;
    assert_eq!(push(&one, json!({ "document": document("first") })).await.0, 201);
    until_models(&other, &["first"]).await;

    let (status, pushed) = push(&one, json!({ "document": WITH_SECRET })).await;
    assert_eq!((status, &pushed["revision"]), (201, &json!(2)), "{pushed}");
    assert_eq!(models(&one).await, ["second", "third"]);
    let started = Instant::now();
    let refused = loop {
        let seen = history(&other).await;
        if seen["refused"].is_object() {
            break seen;
        }
        assert!(started.elapsed() < PATIENCE, "it is not rejected");
        tokio::time::sleep(Duration::from_millis(2)).await;
    };
    assert!(started.elapsed() < KNOWN);
    assert_eq!((&refused["in_use"], &refused["refused"]["revision"]), (&json!(1), &json!(2)));
    let why = refused["refused"]["why"].as_str().expect("words");
    assert!(
        why.starts_with("revision 2:6:1: upstreams.two.key: the file ") && why.contains("does not exist"),
        "{why}"
    );
    assert_eq!(models(&other).await, ["first"]);
    let body = json!({ "model": "first", "messages": [{ "role": "user", "content": "Say hi" }] });
    assert_eq!(other.refused("/v1/chat/completions", &body).await.0, 200);
    assert_eq!(metric(&other, "gatewright_config_revision").await, "1");
    assert_eq!(metric(&other, "gatewright_config_refused").await, "2");
    assert_eq!(metric(&one, "gatewright_config_refused").await, "0");
    let started = Instant::now();
    loop {
        let mut used: Vec<_> = listed(&one).await.iter().map(|node| node["config"].as_u64()).collect();
        used.sort_unstable();
        if used == [Some(1), Some(2)] {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "{used:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    // A node that cannot use a document applies none of it, and the error contains no secret.
    let (status, error) = push(&other, json!({ "document": format!("# more\n{WITH_SECRET}") })).await;
    assert_eq!((status, &error["error"]["param"]), (400, &json!("document")), "{error}");
    let literal = WITH_SECRET.replace("{ file = \"keys/two\" }", "\"sk-canary-9\"");
    let (status, error) = push(&one, json!({ "document": literal })).await;
    let message = error["error"]["message"].as_str().expect("words");
    assert_eq!(status, 400);
    assert!(
        message.contains("document:6:7: upstreams.two.key: a secret must not be written in the file"),
        "{message}"
    );
    assert!(!message.contains("canary"), "{message}");
    assert_eq!(history(&one).await["revisions"].as_array().map(Vec::len), Some(2));

    assert_eq!(push(&other, json!({ "repeats": 1 })).await.1["revision"], 3);
    assert!(until_models(&one, &["first"]).await < KNOWN);
    let seen = history(&other).await;
    assert_eq!((&seen["in_use"], &seen["refused"]), (&json!(3), &Value::Null));
}

#[tokio::test]
async fn unusable_newest_revision_requires_a_cached_one_to_start() {
    let (store, folder) = (Postgres::start(), tempfile::tempdir().expect("a folder"));
    let data = folder.path().join("data");
    let lasting = || Config { data: Some(data.clone()), ..sharing(&store, folder.path()) };
    let one = start_with(lasting()).await;
    assert_eq!(push(&one, json!({ "document": document("first") })).await.0, 201);
    drop(one);
    let key = folder.path().join("keys");
    fs::create_dir(&key).expect("made");
    fs::write(key.join("two"), "sk-canary-9").expect("written");
    let other = start_with(sharing(&store, folder.path())).await;
    assert_eq!(push(&other, json!({ "document": WITH_SECRET })).await.0, 201);
    fs::remove_file(key.join("two")).expect("removed");

    let config = Config { listen: vec!["127.0.0.1:0".to_owned()], ..sharing(&store, folder.path()) };
    let error = Gateway::bind(config).await.err().expect("a refusal").to_string();
    assert!(error.contains("revision 2:6:1: upstreams.two.key: "), "{error}");
    let again = start_with(lasting()).await;
    assert_eq!(
        (models(&again).await, history(&again).await["in_use"].clone()),
        (vec!["first".to_owned()], json!(1))
    );
}

#[tokio::test]
async fn node_started_without_the_store_uses_its_cached_revision() {
    let (mut store, folder) = (Postgres::start(), tempfile::tempdir().expect("a folder"));
    let lasting =
        |name: &str| Config { data: Some(folder.path().join(name)), ..sharing(&store, folder.path()) };
    let (knowing, new) = (lasting("knowing"), lasting("new"));
    let before = start_with(knowing.clone()).await;
    assert_eq!(push(&before, json!({ "document": document("first") })).await.0, 201);
    drop(before);
    store.stop();
    let again = start_with(knowing).await;
    assert_eq!((models(&again).await, readiness(&again).await.0), (vec!["first".to_owned()], 200));
    assert_eq!(chat_with(&again, "first").await, 200);
    let new = start_with(new).await;
    assert_eq!((models(&new).await, readiness(&new).await.0), (Vec::new(), 503));
    store.resume();
    until_in_use(&new, 1).await;
    assert_eq!((models(&new).await, readiness(&new).await.0), (vec!["first".to_owned()], 200));
    // A node with a cached revision follows the store from then on.
    assert_eq!(push(&new, json!({ "document": document("second") })).await.0, 201);
    until_models(&again, &["second"]).await;
}

async fn chat_with(node: &Server, model: &str) -> u16 {
    let body = json!({ "model": model, "messages": [{ "role": "user", "content": "Say hi" }] });
    node.refused("/v1/chat/completions", &body).await.0
}

#[tokio::test]
async fn node_with_its_own_configuration_ignores_shared_revisions() {
    let (store, folder) = (Postgres::start(), tempfile::tempdir().expect("a folder"));
    let (own, sharing) = (start_with(node(&store)).await, start_with(sharing(&store, folder.path())).await);
    let before = models(&own).await;
    assert_eq!(
        push(&own, json!({ "document": document("first") })).await.0,
        201,
        "it may push for other nodes"
    );
    until_models(&sharing, &["first"]).await;
    assert_eq!((models(&own).await, history(&own).await["in_use"].clone()), (before, Value::Null));
    assert_eq!(chat(&own, KEY).await.0, 200);
}
