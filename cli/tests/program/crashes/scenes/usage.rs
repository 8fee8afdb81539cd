//! Usage: an answered request counts once, whichever gateway stops before the store has it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{SHORT, Scene, admin, client, document_of, text};
use crate::gateway::Serving;
use crate::webhooks::wait_until;

/// Usage is written within this time: twice a second.
const WRITTEN: Duration = Duration::from_millis(1_500);

/// A key that was used for one request at most.
struct KeyedRequest {
    id: String,
    is_answered: bool,
}

impl KeyedRequest {
    /// Creates a key. The gateway may stop during the request that uses it.
    fn new(gateway: &Serving, name: &str, begin: impl FnOnce()) -> Self {
        let made = document_of(admin(gateway, "POST", "/admin/keys", &json!({ "name": name })), 201);
        begin();
        let question = json!({ "model": "model-sol", "messages": [{ "role": "user", "content": "hello" }] });
        let answer = client(gateway, text(&made["secret"]), "POST", "/v1/chat/completions", &question);
        let is_answered = answer.map(|answer| document_of(Some(answer), 200)).is_some();
        Self { id: text(&made["key"]["id"]).to_owned(), is_answered }
    }
}

/// How many requests of a key are counted.
fn counted(gateway: &Serving, key: &str) -> u64 {
    let path = format!("/admin/usage?key={key}");
    let report = document_of(admin(gateway, "GET", &path, &Value::Null), 200);
    report["usage"].as_array().expect("rows").iter().filter_map(|row| row["requests"].as_u64()).sum()
}

impl Scene {
    /// Each answered request counts once, any other at most once.
    fn counts_once(&self, requests: &[KeyedRequest]) {
        // It begins by taking over the journals of the gateways that stopped.
        let last = self.serve("last", SHORT, &[]).expect("it starts");
        wait_until("what was answered counts", || {
            requests.iter().all(|one| !one.is_answered || counted(&last, &one.id) > 0)
        });
        // A duplicate might be counted only later.
        std::thread::sleep(WRITTEN);
        for (one, step) in requests.iter().zip(1..) {
            let counted = counted(&last, &one.id);
            assert!(counted == 1 || counted == 0 && !one.is_answered, "step {step}: {counted}");
        }
    }
}

pub(in super::super) fn usage_counts_once(scene: &Scene) {
    let mut requests = Vec::new();
    scene.at_each_step(15, |step| {
        let first = scene.stopping(step);
        requests.push(KeyedRequest::new(&first.serving, &format!("counted-{step}"), || first.begin()));
        // Checking whether it has been written would add a step.
        let since = Instant::now();
        first.end(|_| since.elapsed() > WRITTEN)
    });
    assert!(requests.iter().any(|one| one.is_answered) && requests.iter().any(|one| !one.is_answered));
    scene.counts_once(&requests);
}

/// A gateway is shut down, which removes its journal, and stops at a step.
#[cfg(unix)]
pub(in super::super) fn usage_counts_once_when_the_gateway_shuts_down(scene: &Scene, least: u32) {
    let mut requests = Vec::new();
    // Whether each gateway that stopped during shutdown left its journal.
    let mut left = Vec::new();
    scene.at_each_step(least, |step| {
        let mut first = scene.stopping(step);
        requests.push(KeyedRequest::new(&first.serving, &format!("ended-{step}"), || first.begin()));
        if requests.last().is_none_or(|one| !one.is_answered) {
            return first.end(|_| false);
        }
        // It may also stop before it receives the signal: the response was journaled.
        first.serving.signal("-TERM");
        let has_stopped = !first.serving.child.wait().expect("it was started").success();
        let journals = std::fs::read_dir(scene.folder.path().join("data/usage")).expect("a folder").count();
        if has_stopped {
            left.push(journals);
        } else {
            assert_eq!(journals, 0, "the store has all");
        }
        has_stopped
    });
    // Before and after it is removed.
    assert!(left.starts_with(&[1]) && left.ends_with(&[1, 0]), "{left:?}");
    scene.counts_once(&requests);
}

/// A gateway is killed before the store has the usage, and the gateway that takes over stops at a step.
pub(in super::super) fn usage_taken_over_counts_once(scene: &Scene) {
    let mut requests = Vec::new();
    scene.at_each_step(15, |step| {
        let killed = scene.serve("killed", SHORT, &[]).expect("it starts");
        requests.push(KeyedRequest::new(&killed, &format!("inherited-{step}"), || {}));
        assert!(requests.iter().all(|one| one.is_answered));
        drop(killed);
        let heir = scene.stopping(step);
        heir.begin();
        let since = Instant::now();
        heir.end(|_| since.elapsed() > WRITTEN)
    });
    scene.counts_once(&requests);
}
