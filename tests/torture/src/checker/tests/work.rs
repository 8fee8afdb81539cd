//! How much work a history takes, in what the rules look at.

use super::*;
use crate::clients::{DEFAULT, DEFAULT_ALONE};

/// A fault each three seconds, of each kind that a rule asks for.
const FAULTS: [Fault; 9] = [
    Fault::Killed { node: 0 },
    Fault::Paused { node: 1 },
    Fault::Store,
    Fault::Cut { node: 2, whole: true, silent: true },
    Fault::Counters { hang: true },
    Fault::Stopped { node: 1 },
    Fault::Clock { node: ALONE, by_ms: 9_000 },
    Fault::Disk,
    Fault::Killed { node: ALONE },
];

/// A history of some seconds in which each rule has something to judge all the time.
fn history(seconds: u64) -> Script {
    let mut script = Script::default();
    for second in 0..seconds {
        let at = second * 1000;
        if second % 3 == 0 {
            let count = FAULTS.len() as u64;
            let fault = FAULTS[usize::try_from(second / 3 % count).expect("an index")];
            script.fault(fault, at + 50, at + 900);
        }
        for node in 0..=ALONE {
            let key = if node == ALONE { DEFAULT_ALONE } else { DEFAULT };
            // Some are slow.
            let takes = if second % 7 == 0 { 1_500 } else { 20 };
            script.answered((at, at + takes), (node, key), 1_000_000 + second * 10 + node as u64);
        }
        texts_with_a_key(&mut script, second);
        limited_key(&mut script, second);
        if second % 2 == 0 {
            videos(&mut script, second);
        }
    }
    script
}

/// A text that is requested with an idempotency key, again elsewhere, and again much later.
fn texts_with_a_key(script: &mut Script, second: u64) {
    let at = second * 1000;
    let mut request = |at: u64, node: usize, intent: u64| {
        let operation = Operation::Chat { intent, stream: false, once: Some(format!("once-{intent}")) };
        script.call((at, at + 10), (node, DEFAULT), operation, text(intent));
    };
    let intent = 2_000_000 + second;
    request(at, 0, intent);
    request(at + 300, 1, intent);
    request(at + 600, 2, 2_000_000 + second / 2);
    script.line(at + 5, Event::Begun { node: 0, intent, id: None }).upstream(at + 8, 0, intent);
}

/// A key whose budget is used up by one text, and that is revoked then.
fn limited_key(script: &mut Script, second: u64) {
    let (at, name) = (second * 1000, format!("key-{second}"));
    let limits = Limits {
        tokens_per_day: Some(1),
        cost_per_day: None,
        requests_per_minute: Some(100),
        tokens_per_minute: Some(10_000),
        concurrent_requests: Some(5),
    };
    let create = Operation::CreateKey { name: name.clone(), limits };
    script.call((at, at + 10), (0, "admin"), create, Outcome::Done);
    script.answered((at + 100, at + 150), (1, &name), 3_000_000 + second);
    let used_up = Outcome::Refused { status: 429, code: "insufficient_quota".to_owned() };
    script.chat((at + 200, at + 210), (2, &name), 4_000_000 + second, used_up);
    let revoke = Operation::RevokeKey { name: name.clone() };
    script.call((at + 500, at + 510), (0, "admin"), revoke, Outcome::Done);
    script.chat((at + 3_000, at + 3_010), (2, &name), 5_000_000 + second, refused(401));
}

/// A video that is made, and one that is never reported.
fn videos(script: &mut Script, second: u64) {
    // None has a large file.
    let (at, intent) = (second * 1000, 53 * (100_000 + second));
    let (id, end) = (format!("task-{second}"), if expected::fails(intent) { "failed" } else { "completed" });
    script.submit((at, at + 10), intent, reported(&id, "pending"));
    script.look_up((at + 300, at + 310), &id, reported(&id, end));
    script.delivered(at + 300, &format!("notice-{second}"), task(&id, end));
    if end == "completed" {
        script.fetch((at + 400, at + 410), &id, file(intent));
    }
    script.submit((at + 500, at + 510), 6_000_000 + second, lost());
}

#[test]
fn work_grows_with_the_history_and_not_with_its_square() {
    let looked_at = |seconds: u64| {
        let mut script = history(seconds);
        script.lines.sort_by_key(|line| line.at);
        let verdict = check(&script.lines, Promises { shared_replays: true, shared_limits: true });
        assert_eq!(verdict.violations.first(), None);
        verdict.looked_at
    };
    let (some, twice) = (looked_at(200), looked_at(400));
    assert!(twice < some * 22 / 10, "{some}, and {twice} for twice as much");
}
