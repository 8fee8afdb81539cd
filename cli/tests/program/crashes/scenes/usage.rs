//! Usage: what a client was answered counts once, whoever stops before the store has it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{SHORT, Scene, admin, client, text, told};
use crate::gateway::Serving;
use crate::webhooks::wait_until;

/// Usage is written within this time: twice a second.
const WRITTEN: Duration = Duration::from_millis(1_500);

/// A key that has asked once, at most.
struct Asked {
    id: String,
    is_answered: bool,
}

impl Asked {
    /// Makes a key. The request that it asks may be the one in which the gateway stops.
    fn new(gateway: &Serving, name: &str, begin: impl FnOnce()) -> Self {
        let made = told(admin(gateway, "POST", "/admin/keys", &json!({ "name": name })), 201);
        begin();
        let question = json!({ "model": "model-sol", "messages": [{ "role": "user", "content": "hello" }] });
        let answer = client(gateway, text(&made["secret"]), "POST", "/v1/chat/completions", &question);
        let is_answered = answer.map(|answer| told(Some(answer), 200)).is_some();
        Self { id: text(&made["key"]["id"]).to_owned(), is_answered }
    }
}

/// How many requests of a key are counted.
fn counted(gateway: &Serving, key: &str) -> u64 {
    let path = format!("/admin/usage?key={key}");
    let report = told(admin(gateway, "GET", &path, &Value::Null), 200);
    report["usage"].as_array().expect("rows").iter().filter_map(|row| row["requests"].as_u64()).sum()
}

impl Scene {
    /// Each request that was answered counts once, another one at most once.
    fn counts_once(&self, asked: &[Asked]) {
        // It begins with what the journals have of those that stopped.
        let last = self.serve("last", SHORT, &[]).expect("it starts");
        wait_until("what was answered counts", || {
            asked.iter().all(|one| !one.is_answered || counted(&last, &one.id) > 0)
        });
        // What counts twice might do so later.
        std::thread::sleep(WRITTEN);
        for (one, step) in asked.iter().zip(1..) {
            let counted = counted(&last, &one.id);
            assert!(counted == 1 || counted == 0 && !one.is_answered, "step {step}: {counted}");
        }
    }
}

pub(in super::super) fn usage_counts_once(scene: &Scene) {
    let mut asked = Vec::new();
    scene.at_each_step(15, |step| {
        let first = scene.stopping(step);
        asked.push(Asked::new(&first.serving, &format!("counted-{step}"), || first.begin()));
        // To ask whether it is written would be a step of its own.
        let since = Instant::now();
        first.end(|_| since.elapsed() > WRITTEN)
    });
    assert!(asked.iter().any(|one| one.is_answered) && asked.iter().any(|one| !one.is_answered));
    scene.counts_once(&asked);
}

/// A gateway is told to end, which removes its journal, and stops at a step.
#[cfg(unix)]
pub(in super::super) fn usage_counts_once_when_the_gateway_ends(scene: &Scene, least: u32) {
    let mut asked = Vec::new();
    // Whether each one that stopped when it was told to end has left its journal.
    let mut left = Vec::new();
    scene.at_each_step(least, |step| {
        let mut first = scene.stopping(step);
        asked.push(Asked::new(&first.serving, &format!("ended-{step}"), || first.begin()));
        if asked.last().is_none_or(|one| !one.is_answered) {
            return first.end(|_| false);
        }
        // It may stop before it hears of it, too: the answer was journaled.
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
    scene.counts_once(&asked);
}

/// A gateway is killed before the store has the usage, and the one that takes it over stops at a step.
pub(in super::super) fn usage_that_is_taken_over_counts_once(scene: &Scene) {
    let mut asked = Vec::new();
    scene.at_each_step(15, |step| {
        let killed = scene.serve("killed", SHORT, &[]).expect("it starts");
        asked.push(Asked::new(&killed, &format!("inherited-{step}"), || {}));
        assert!(asked.iter().all(|one| one.is_answered));
        drop(killed);
        let heir = scene.stopping(step);
        heir.begin();
        let since = Instant::now();
        heir.end(|_| since.elapsed() > WRITTEN)
    });
    scene.counts_once(&asked);
}
