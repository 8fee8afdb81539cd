//! Usage survives a gateway that is killed.

use std::path::Path;

use serde_json::{Value, json};

use crate::gateway::Serving;
use crate::run;
use crate::webhooks::wait_until;

fn serve(folder: &Path) -> Serving {
    Serving::start(&["--data", text(folder), "--key", "k", "--open-metrics"], None)
}

fn text(folder: &Path) -> &str {
    folder.to_str().expect("a path")
}

/// Sends one request, and returns the tokens that the response reports.
fn ask(gateway: &Serving) -> u64 {
    let body = json!({ "model": "model-sol", "messages": [{ "role": "user", "content": "How are you?" }] });
    let answer = gateway.call("POST", "/v1/chat/completions", &body.to_string());
    answer["usage"]["total_tokens"].as_u64().expect("a number")
}

/// The requests and tokens that the store has counted.
fn counted(folder: &Path) -> (u64, u64) {
    let output = run(&["usage", "--data", text(folder), "--json"]);
    let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = rows.as_array().expect("rows").iter();
    let sum = |names: &[&str]| {
        rows.clone().flat_map(|row| names.iter().map(|name| row[*name].as_u64().expect("a number"))).sum()
    };
    (sum(&["requests"]), sum(&["input_tokens", "output_tokens"]))
}

/// The usage journals in a data folder.
fn journals(folder: &Path) -> usize {
    std::fs::read_dir(folder.join("usage")).expect("a folder").count()
}

#[test]
fn killed_gateway_has_counted_each_response() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut answered = (0, 0);
    for _ in 0..3 {
        let gateway = serve(folder.path());
        // Leftover usage is counted before it is ready.
        assert_eq!(counted(folder.path()), answered);
        for _ in 0..5 {
            answered = (answered.0 + 1, answered.1 + ask(&gateway));
        }
        // It is killed when dropped.
        drop(gateway);
    }
    let last = serve(folder.path());
    assert_eq!((counted(folder.path()), journals(folder.path())), (answered, 1));
    #[cfg(unix)]
    last.log();
    #[cfg(unix)]
    assert_eq!((counted(folder.path()), journals(folder.path())), (answered, 0));
}

#[test]
fn gateway_killed_while_its_store_is_away_has_counted_each_response() {
    let folder = tempfile::tempdir().expect("a folder");
    let [database, away] = ["gatewright.db", "away.db"].map(|name| folder.path().join(name));
    let gateway = serve(folder.path());
    let mut answered = (1, ask(&gateway));
    wait_until("the first request is in the store", || counted(folder.path()) == answered);
    // A program that has the file open notices that it is gone.
    std::fs::rename(&database, &away).expect("renamed");
    for _ in 0..5 {
        answered = (answered.0 + 1, answered.1 + ask(&gateway));
    }
    drop(gateway);
    std::fs::rename(&away, &database).expect("renamed");
    assert_eq!(counted(folder.path()).0, 1);
    let gateway = serve(folder.path());
    assert_eq!(counted(folder.path()), answered);
    // However often it restarts, it counts nothing twice.
    drop(gateway);
    drop(serve(folder.path()));
    assert_eq!(counted(folder.path()), answered);
}
