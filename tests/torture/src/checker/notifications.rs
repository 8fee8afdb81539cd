//! Section 6: each end is delivered at least once if a receiver was named, with one ID, signed, and with the right contents. It
//! is delivered again only for a reason: after a rejection, or if a fault prevented a gateway from recording the acknowledgment.
//! So the number of attempts is at most the number of rejections and such faults, plus one.

use std::collections::BTreeMap;

use serde_json::Value;

use super::record::{Record, essence, is_final, report};
use super::{SECOND, Violation};
use crate::history::{ALONE, Event, Fault, Operation, Outcome};

/// A gateway records the result of an attempt within this time.
const NOTED: u64 = 2 * SECOND;
/// For at least this long no other gateway makes an attempt: an attempt has a lease of 30 s, and may use ten of them.
const HELD: u64 = 20 * SECOND;
/// The shortest pause after a rejection: a fifth less than the nodes' configured pause.
const PAUSE: u64 = 160_000;

/// An attempt that reached its receiver.
struct Delivery<'h> {
    line: usize,
    at: u64,
    node: usize,
    id: &'h str,
    acknowledged: bool,
    task: &'h Value,
}

pub(super) fn check(record: &Record<'_>, violations: &mut Vec<Violation>) {
    let mut delivered: BTreeMap<&str, Vec<Delivery<'_>>> = BTreeMap::new();
    for (line, one) in record.lines() {
        let Event::Delivered { node, id, problem, acknowledged, task } = &one.event else { continue };
        if let Some(problem) = problem {
            report(violations, "notification is signed", problem.clone(), [line]);
        }
        if !is_final(task) {
            report(violations, "notification is of an end", format!("{} is not over", task["id"]), [line]);
        }
        let (at, node) = (one.at, *node);
        let attempt = Delivery { line, at, node, id, acknowledged: *acknowledged, task };
        delivered.entry(task["id"].as_str().unwrap_or_default()).or_default().push(attempt);
    }
    for (task, attempts) in &delivered {
        let first = &attempts[0];
        for other in &attempts[1..] {
            if other.id != first.id {
                let why = format!("{task} was delivered as {} and as {}", first.id, other.id);
                report(violations, "notification has one id", why, [first.line, other.line]);
            }
            if essence(other.task) != essence(first.task) {
                let why = format!("{task} was delivered with two contents");
                report(violations, "notification is the end", why, [first.line, other.line]);
            }
        }
        for pair in attempts.windows(2).filter(|pair| pair[0].id == pair[1].id) {
            again(record, task, &pair[0], &pair[1], violations);
        }
    }
    for call in record.calls() {
        let Operation::Submit { notifies: true, .. } = call.operation else { continue };
        let Some(Outcome::Task { task }) = call.answer.map(|answer| answer.outcome) else { continue };
        let id = task["id"].as_str().unwrap_or_default();
        if !delivered.get(id).is_some_and(|attempts| attempts.iter().any(|attempt| attempt.acknowledged)) {
            report(
                violations,
                "notification arrives",
                format!("the end of {id} was not delivered"),
                call.lines(),
            );
        }
    }
}

/// The reason for an attempt is an earlier attempt, so each reason explains only one attempt.
fn again(
    record: &Record<'_>,
    task: &str,
    before: &Delivery<'_>,
    again: &Delivery<'_>,
    violations: &mut Vec<Violation>,
) {
    let since = again.at - before.at;
    let later = format!("{task} is delivered again after {} ms", since / 1000);
    let lines = [before.line, again.line];
    if before.acknowledged && !may_be_unnoted(record, before) {
        let why = format!("{later}, though node {} had its acknowledgement", before.node);
        return report(violations, "notification is delivered once", why, lines);
    }
    let least = if before.acknowledged { HELD } else { PAUSE };
    if since < least && !clock_was_wrong(record, before.node, before.at, again.at) {
        let why = format!("{later}, and {} ms are the least", least / 1000);
        report(violations, "notification waits", why, lines);
    }
}

/// Whether the gateway of an attempt may not have recorded the acknowledgment: it ended, or could not use its store. While it
/// hung, it wrote nothing.
fn may_be_unnoted(record: &Record<'_>, attempt: &Delivery<'_>) -> bool {
    let Delivery { at, node, .. } = *attempt;
    let mut noted = at + NOTED;
    for (from, to) in record.hung(node, at) {
        if from > noted {
            break;
        }
        noted = noted.max(to.saturating_add(NOTED));
    }
    let is_end =
        |fault| matches!(fault, Fault::Killed { node: of } | Fault::Stopped { node: of } if of == node);
    record.is_troubled(at, noted, is_end)
        || record.store_was_back(node, at, noted).is_some()
        || clock_was_wrong(record, node, at, noted)
}

/// Whether the clock that a node uses for its leases and pauses was wrong, shortly before or between these times: that of the
/// node with SQLite. The others use the clock of the database.
fn clock_was_wrong(record: &Record<'_>, node: usize, from: u64, to: u64) -> bool {
    let is_wrong = |fault| matches!(fault, Fault::Clock { node: ALONE, .. });
    node == ALONE && record.is_troubled(from.saturating_sub(NOTED), to, is_wrong)
}
