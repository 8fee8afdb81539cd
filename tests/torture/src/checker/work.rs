//! A run did something: a service that rejects everything breaks no promise, and is useless.

use std::collections::{BTreeMap, HashSet};

use super::record::{Call, Record, is_final, report};
use super::{SECOND, Violation};
use crate::history::{ALONE, Event, Operation, Outcome};

/// What is done in a run, and the longest average interval in seconds between two of its kind: two busy cores do six times as
/// much, or more.
const LEAST: [(&str, u64); 8] = [
    (TEXTS, 1),
    (RETRIEVED, 10),
    (FILES, 10),
    (MADE, 15),
    (REVOKED, 45),
    (COMPLETED, 5),
    (FAILED, 30),
    (NOTICES, 5),
];
/// The same for the texts of each node.
const TEXTS_OF_NODE: u64 = 5;
/// The same for work with the node that shares nothing, which is not counted above.
const LEAST_ALONE: [(&str, u64); 3] = [(RETRIEVED, 45), (MADE, 45), (REVOKED, 45)];

const TEXTS: &str = "texts are answered";
const RETRIEVED: &str = "stored responses are found";
const FILES: &str = "files are read";
const MADE: &str = "keys are made";
const REVOKED: &str = "keys are revoked";
const COMPLETED: &str = "videos are completed";
const FAILED: &str = "failures are reported";
const NOTICES: &str = "notifications are acknowledged";
const EACH: &str = "every node works";
const ALONE_WORKS: &str = "the node alone works";

/// What counts is done while there are faults. A history that ends before they do is not that of a run.
pub(super) fn check(record: &Record<'_>, violations: &mut Vec<Violation>) {
    let Some((line, quiet)) = record.quiet() else { return };
    // Until the first call, gateways were started.
    let started = record.calls().next().map_or(0, |call| call.began);
    let seconds = quiet.saturating_sub(started) / SECOND;
    let done = done(record, quiet);
    for (rule, each) in LEAST {
        let (done, least) = (done.get(rule).copied().unwrap_or_default(), seconds / each);
        if done < least {
            report(violations, rule, format!("{done} in {seconds} s, and {least} is the least"), [line]);
        }
    }
    for node in 0..=ALONE {
        let of_node = |call: &&Call<'_>| call.node == node && kind(call, quiet) == Some(TEXTS);
        let (done, least) = (record.calls().filter(of_node).count() as u64, seconds / TEXTS_OF_NODE);
        if done < least {
            let why = format!("node {node} answered {done} texts in {seconds} s, and {least} is the least");
            report(violations, EACH, why, [line]);
        }
    }
    alone(record, (line, quiet), seconds, violations);
}

/// Judges the node that shares nothing.
fn alone(record: &Record<'_>, (line, quiet): (usize, u64), seconds: u64, violations: &mut Vec<Violation>) {
    for (what, each) in LEAST_ALONE {
        let is_it = |call: &&Call<'_>| call.node == ALONE && kind(call, quiet) == Some(what);
        let (done, least) = (record.calls().filter(is_it).count() as u64, seconds / each);
        if done < least {
            let why = format!("{what}: {done} in {seconds} s, and {least} is the least");
            report(violations, ALONE_WORKS, why, [line]);
        }
    }
}

/// How often each thing was done until a time.
fn done(record: &Record<'_>, until: u64) -> BTreeMap<&'static str, u64> {
    let mut done = BTreeMap::new();
    for call in record.calls() {
        let Some(kind) = kind(call, until) else { continue };
        let is_apart = call.node == ALONE && LEAST_ALONE.iter().any(|(apart, _)| *apart == kind);
        *done.entry(kind).or_default() += u64::from(!is_apart);
    }
    // An end counts once, however often it was reported.
    let mut ends = HashSet::new();
    for call in record.calls() {
        if let Some(answer) = call.answer
            && let Outcome::Task { task } = answer.outcome
            && answer.at <= until
            && is_final(task)
        {
            let kind = if task["status"] == "failed" { FAILED } else { COMPLETED };
            ends.insert((kind, task["id"].as_str()));
        }
    }
    for (_, line) in record.lines().filter(|(_, line)| line.at <= until) {
        if let Event::Delivered { acknowledged: true, task, .. } = &line.event {
            ends.insert((NOTICES, task["id"].as_str()));
        }
    }
    for (kind, _) in ends {
        *done.entry(kind).or_default() += 1;
    }
    done
}

/// What a call has done, if it was over by a time.
fn kind(call: &Call<'_>, until: u64) -> Option<&'static str> {
    let answer = call.answer.filter(|answer| answer.at <= until)?;
    match (call.operation, answer.outcome) {
        (Operation::Chat { .. } | Operation::Respond { .. }, Outcome::Text { .. }) => Some(TEXTS),
        (Operation::Retrieve { .. }, Outcome::Text { .. }) => Some(RETRIEVED),
        (Operation::Fetch { .. }, Outcome::File { .. }) => Some(FILES),
        (Operation::CreateKey { .. }, Outcome::Done) => Some(MADE),
        (Operation::RevokeKey { .. }, Outcome::Done) => Some(REVOKED),
        _ => None,
    }
}
