//! Several gateways in separate processes, on one Postgres server. `cargo xtask test nodes` runs these.

mod balancer;
mod outage;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use gatewright_test_stores::Postgres;
use serde_json::Value;

use crate::gateway::Serving;
use crate::gatewright;
use crate::http::download;
use crate::webhooks::{Listening, SECRET, submission, wait_until};

/// 32 bytes in base64.
const PEPPER: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
const LEASE: Duration = Duration::from_secs(1);

/// A gateway whose simulated videos take some time.
fn node(folder: &Path, store: &Postgres, name: &str, video_time: &str) -> Serving {
    try_node(folder, store, name, video_time, &[]).expect("it starts")
}

/// The same with other variables. None if it stops before it is ready.
fn try_node(
    folder: &Path,
    store: &Postgres,
    name: &str,
    video_time: &str,
    more: &[(&str, &str)],
) -> Option<Serving> {
    let config = folder.join(format!("{name}.toml"));
    let text = format!(
        "[store]\nurl = {{ env = \"NODE_STORE\" }}\npepper = {{ env = \"NODE_PEPPER\" }}\n\
         [videos]\nlease = \"{}ms\"\n[simulator]\nvideo_time = \"{video_time}\"\n\
         [webhooks]\nallow_private = true\n",
        LEASE.as_millis()
    );
    std::fs::write(&config, text).expect("written");
    let url = store.url();
    let variables =
        [("NODE_STORE", url.as_str()), ("NODE_PEPPER", PEPPER), ("GATEWRIGHT_WEBHOOK_SECRET", SECRET)];
    let arguments = ["--config", config.to_str().expect("a path"), "--key", "k"];
    Serving::try_start(&arguments, &[&variables, more].concat())
}

/// A gateway accepts a task and hangs, and another one ends the task. Returns what the first one logs when it resumes.
fn comes_back(video_time: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Postgres::start();
    let mut listening = Listening::of_all();
    let hung = node(folder.path(), &store, "hung", video_time);
    let mut body: Value = serde_json::from_str(&submission(&listening.url)).expect("JSON");
    body["prompt"] = "[fail: nobody films this]".into();
    let task = hung.call("POST", "/v1/videos/generations", &body.to_string());
    hung.signal("-STOP");
    let task = task["id"].as_str().expect("an id").to_owned();
    let other = node(folder.path(), &store, "other", "50ms");
    let path = format!("/v1/videos/generations/{task}");
    wait_until("the end is reported", || listening.has_reported(&task));
    let ended = other.call("GET", &path, "");
    assert_eq!(ended["status"], "failed", "{ended}");

    hung.signal("-CONT");
    // Longer than it needs to try to end the task, and to renew its lease.
    std::thread::sleep(2 * LEASE);
    assert_eq!(hung.call("GET", &path, ""), ended);
    let mut list = gatewright();
    list.args(["webhooks", "list", "--json", "--store"]);
    list.env("GATEWRIGHT_SERVE_STORE_URL", store.url()).env("GATEWRIGHT_SERVE_PEPPER", PEPPER);
    let listed: Value = serde_json::from_slice(&list.output().expect("it runs").stdout).expect("JSON");
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    hung.log()
}

/// 3: a gateway that hangs loses its tasks to another one. It notices when it resumes.
#[test]
fn hung_node_loses_its_lease_and_notices() {
    let log = comes_back("1h");
    assert!(log.contains("another gateway took over the video task"), "{log}");
}

/// 3: it may be about to end the task itself.
#[test]
fn node_that_resumes_too_late_does_nothing_twice() {
    let log = comes_back("500ms");
    assert!(!log.contains("panicked"), "{log}");
}

/// 3: leases expire by the store's clock, whatever a gateway's clock says.
#[test]
fn dead_node_with_a_clock_hours_ahead_loses_its_tasks_to_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Postgres::start();
    let mut listening = Listening::of_all();
    let clock = folder.path().join("clock");
    std::fs::write(&clock, "7200000").expect("written");
    let wrong = [("GATEWRIGHT_CLOCK_FROM", clock.to_str().expect("a path"))];
    let ahead = try_node(folder.path(), &store, "ahead", "1h", &wrong).expect("it starts");
    let task = ahead.call("POST", "/v1/videos/generations", &submission(&listening.url));
    let task = task["id"].as_str().expect("an id").to_owned();
    drop(ahead);
    let other = node(folder.path(), &store, "other", "50ms");
    wait_until("the end is reported", || listening.has_reported(&task));
    let ended = other.call("GET", &format!("/v1/videos/generations/{task}"), "");
    assert_eq!(ended["status"], "completed", "{ended}");
}

/// 3, 8: files expire, and tasks time out, by the store's clock.
#[test]
fn node_with_a_clock_hours_off_removes_no_files_and_ends_no_foreign_tasks() {
    for by in ["7200000", "-7200000"] {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Postgres::start();
        let (clock, data) = (folder.path().join("clock"), folder.path().join("data"));
        std::fs::write(&clock, by).expect("written");
        let shared = ("GATEWRIGHT_SERVE_DATA", data.to_str().expect("a path"));
        let wrong = [shared, ("GATEWRIGHT_CLOCK_FROM", clock.to_str().expect("a path"))];
        let start = |name, video_time, more: &[(&str, &str)]| {
            try_node(folder.path(), &store, name, video_time, more).expect("it starts")
        };
        let draw = |node: &Serving| {
            let body = r#"{"model":"image_model_2","prompt":"a comet","size":"256x256"}"#;
            let drawn = node.call("POST", "/v1/images/generations", body);
            drawn["data"][0]["url"].as_str().unwrap_or_else(|| panic!("{drawn}")).to_owned()
        };
        let dies = start("dies", "1h", &[shared]);
        let body = r#"{"model":"video_model_3","prompt":"a comet","duration":3,"resolution":"720p"}"#;
        let task = dies.call("POST", "/v1/videos/generations", body);
        let mut files = vec![draw(&dies)];
        drop(dies);

        // It looks for expired files when it starts.
        let wrong = start("wrong", "50ms", &wrong);
        let path = format!("/v1/videos/generations/{}", task["id"].as_str().expect("an id"));
        let is_under_way =
            |task: &Value| ["pending", "processing"].map(Value::from).contains(&task["status"]);
        wait_until("the task ends", || !is_under_way(&wrong.call("GET", &path, "")));
        let ended = wrong.call("GET", &path, "");
        assert_eq!(ended["status"], "completed", "{by}: {ended}");
        files.push(draw(&wrong));

        // So does the next one, whose clock is right.
        let right = start("right", "50ms", &[shared]);
        std::thread::sleep(LEASE);
        files.push(right.call("GET", &path, "")["output"]["url"].as_str().expect("an address").to_owned());
        for file in files {
            let path = &file[file.find("/files/").expect("a file of the gateway")..];
            let (status, bytes) = download(&right.url, path).expect("a complete file");
            assert!(status == 200 && !bytes.is_empty(), "{by}: {path}: {status}");
        }
    }
}

/// A request that waited for a gateway that hung is checked against the current keys.
#[test]
fn key_revoked_while_a_node_hung_is_rejected_when_it_resumes() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Postgres::start();
    let node = node(folder.path(), &store, "node", "50ms");
    let keys = |arguments: &[&str]| -> Value {
        let mut keys = gatewright();
        keys.arg("keys").args(arguments).args(["--json", "--store"]);
        keys.env("GATEWRIGHT_SERVE_STORE_URL", store.url()).env("GATEWRIGHT_SERVE_PEPPER", PEPPER);
        serde_json::from_slice(&keys.output().expect("it runs").stdout).expect("JSON")
    };
    for round in 0..3 {
        let name = format!("ci-{round}");
        let issued = keys(&["create", &name]);
        let secret = issued["secret"].as_str().expect("a secret");
        let models = || {
            let mut models = gatewright();
            models.args(["models"]).env("GATEWRIGHT_BASE_URL", &node.url).env("GATEWRIGHT_API_KEY", secret);
            models.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
        };
        wait_until("the key is known", || models().wait().expect("an end").success());
        node.signal("-STOP");
        keys(&["revoke", &name]);
        let mut waiting: Vec<_> = (0..8).map(|_| models()).collect();
        std::thread::sleep(Duration::from_secs(3));
        node.signal("-CONT");
        for request in &mut waiting {
            assert!(!request.wait().expect("an end").success(), "round {round}");
        }
    }
}
