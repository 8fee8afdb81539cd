//! Backups of a data folder in use: they contain everything reported to clients before they started, including usage.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::{gatewright, keys, output_of, run, text};
use crate::gateway::Serving;
use crate::http::{ask, download};
use crate::webhooks::wait_until;

/// The key of the configuration, used for images and videos.
const KEY: &str = "k";
/// The number of concurrent clients.
const CLIENTS: usize = 2;
/// How many results each client gets before a backup begins.
const ROUNDS: usize = 5;

/// What was reported to clients.
#[derive(Debug, Clone, Default)]
struct Reported {
    /// Responses to requests with the created key.
    answers: u64,
    responses: Vec<String>,
    images: Vec<String>,
    tasks: Vec<String>,
}

fn post(gateway: &Serving, key: &str, path: &str, body: &Value) -> Value {
    let answer = ask(&gateway.url, ("POST", path), key, "", &body.to_string()).expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.document);
    answer.document
}

fn chat(gateway: &Serving, secret: &str) {
    let message = json!({ "role": "user", "content": "hello" });
    let question = json!({ "model": "model-sol", "messages": [message] });
    post(gateway, secret, "/v1/chat/completions", &question);
}

/// Requests one of each, and records the results.
fn client(gateway: &Serving, secret: &str, reported: &Mutex<Reported>) {
    let post = |key: &str, path: &str, body: Value| post(gateway, key, path, &body);
    let note = |noted: &mut dyn FnMut(&mut Reported)| noted(&mut reported.lock().expect("no panic"));
    let of = |value: &Value| value.as_str().expect("a text").to_owned();
    let response = post(secret, "/v1/responses", json!({ "model": "model-sol", "input": "say hello" }));
    note(&mut |reported| {
        reported.answers += 1;
        reported.responses.push(of(&response["id"]));
    });
    chat(gateway, secret);
    note(&mut |reported| reported.answers += 1);
    let film = json!({ "model": "video_model_3", "prompt": "a comet", "duration": 3, "resolution": "720p" });
    let task = post(KEY, "/v1/videos/generations", film);
    note(&mut |reported| reported.tasks.push(of(&task["id"])));
    let image = json!({ "model": "image_model_2", "prompt": "a cat", "size": "256x256" });
    let image = of(&post(KEY, "/v1/images/generations", image)["data"][0]["url"]);
    let path = image.find("/files/").expect("an address of a file");
    note(&mut |reported| reported.images.push(image[path..].to_owned()));
}

/// How many requests of a key a data folder has counted.
fn counted(data: &Path) -> u64 {
    let output = run(&["usage", "--key", "ci", "--format", "json", "--data", text(data)]);
    let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    rows.as_array().expect("rows").iter().filter_map(|row| row["requests"].as_u64()).sum()
}

/// Starts a gateway with a copy, and checks that everything reported is there. Returns how many requests it has counted.
fn restored(copy: &Path, secret: &str, all: &Reported) -> u64 {
    assert!(output_of(&["store", "check", "--data", text(copy)]).contains("the store is sound"));
    // It has taken over the journals when it is ready.
    let gateway = serve(copy);
    let counted = counted(copy);
    let get = |key: &str, path: &str| ask(&gateway.url, ("GET", path), key, "", "").expect("an answer");
    for id in &all.responses {
        assert_eq!(get(secret, &format!("/v1/responses/{id}")).document["status"], "completed", "{id}");
    }
    for id in &all.tasks {
        assert_eq!(get(KEY, &format!("/v1/videos/generations/{id}")).status, 200, "{id}");
    }
    for path in &all.images {
        let (status, image) = download(&gateway.url, path).expect("a complete file");
        assert!(status == 200 && !image.is_empty(), "{path}: {status}");
    }
    counted
}

/// A gateway that doesn't finish any videos during the test.
fn serve(data: &Path) -> Serving {
    let config = data.with_extension("toml");
    let name = data.file_name().and_then(|name| name.to_str()).expect("a name");
    let text = format!("[store]\ndata = \"{name}\"\n[simulator]\nvideo_time = \"1h\"\n");
    std::fs::write(&config, text).expect("written");
    Serving::start(&["--config", config.to_str().expect("a path"), "--key", KEY], None)
}

/// A gateway was killed while its database was away, and has not been started since.
#[test]
fn backup_contains_writes_waiting_for_the_database() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let (database, away) = (data.join("gatewright.db"), data.join("away"));
    let gateway = serve(&data);
    std::fs::rename(&database, &away).expect("taken");
    let response =
        post(&gateway, KEY, "/v1/responses", &json!({ "model": "model-sol", "input": "say hello" }));
    drop(gateway);
    std::fs::rename(&away, &database).expect("put back");
    output_of(&["store", "backup", text(&copy), "--data", text(&data)]);
    std::fs::remove_dir_all(&data).expect("it is gone");

    let gateway = serve(&copy);
    let path = format!("/v1/responses/{}", response["id"].as_str().expect("an id"));
    let get = || ask(&gateway.url, ("GET", &path), KEY, "", "").expect("an answer");
    wait_until("the database is read", || get().status != 503);
    assert_eq!(get().document["output"], response["output"]);
}

#[test]
fn backup_contains_everything_reported_before_it_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name);
    let (data, under_load, afterwards) = (place("data"), place("under-load"), place("afterwards"));
    let gateway = serve(&data);
    let mut create = gatewright();
    create.args(["keys", "create", "ci", "--json", "--data", text(&data)]);
    let issued: Value = serde_json::from_slice(&create.output().expect("it runs").stdout).expect("a key");
    let secret = issued["secret"].as_str().expect("a secret");
    wait_until("the gateway knows of the key", || {
        ask(&gateway.url, ("GET", "/v1/models"), secret, "", "").is_some_and(|answer| answer.status == 200)
    });

    let (all, is_over) = (Mutex::new(Reported::default()), AtomicBool::new(false));
    let before = std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    client(&gateway, secret, &all);
                }
            });
        }
        let noted = || all.lock().expect("no panic").clone();
        wait_until("clients got enough responses", || noted().images.len() >= CLIENTS * ROUNDS);
        let before = noted();
        output_of(&["store", "backup", text(&under_load), "--data", text(&data)]);
        is_over.store(true, Ordering::Relaxed);
        before
    });
    let mut all = all.into_inner().expect("no panic");
    for _ in 0..ROUNDS {
        chat(&gateway, secret);
        all.answers += 1;
    }
    // When killed immediately, it leaves usage in its journal that the database does not have.
    drop(gateway);
    output_of(&["store", "backup", text(&afterwards), "--data", text(&data)]);

    let counted = restored(&under_load, secret, &before);
    assert!((before.answers..=all.answers).contains(&counted), "{before:?}, {counted} of {}", all.answers);
    assert_eq!(restored(&afterwards, secret, &all), all.answers);
    // Usage has grown since the first backup.
    let issued = |data: &Path| {
        let mut keys = keys(data);
        for key in keys.as_array_mut().expect("a list") {
            key.as_object_mut().expect("a key").remove("usage_this_month").expect("its usage");
        }
        keys
    };
    assert_eq!(issued(&under_load), issued(&data));
}
