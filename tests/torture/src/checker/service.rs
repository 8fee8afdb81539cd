//! The service is back after the last fault: every node does all its work, reports the end of every task, and serves its file.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::record::{Call, Record, is_final, report};
use super::{SECOND, Violation, tasks};
use crate::history::{ALONE, Operation, Outcome};
use crate::load;

/// After this time without a fault nothing is excused.
const BACK: u64 = load::BACK.as_secs() * SECOND;

pub(super) fn check(record: &Record<'_>, violations: &mut Vec<Violation>) {
    let Some((line, quiet)) = record.quiet() else { return };
    let late: Vec<&Call<'_>> = record.calls().filter(|call| call.began >= quiet + BACK).collect();
    for call in &late {
        answers(call, quiet, violations);
    }
    for node in 0..=ALONE {
        for (what, is_it) in SERVICES {
            if !late.iter().any(|call| call.node == node && call.succeeded() && is_it(call.operation)) {
                let why = format!("node {node} {what} no more after the faults");
                report(violations, "every node serves", why, [line]);
            }
        }
    }
    tells_ends(record, &late, line, violations);
    gives_files(record, &late, line, violations);
}

/// What a node does, and the calls for it.
type Service = (&'static str, fn(&Operation) -> bool);

/// What every node does.
const SERVICES: [Service; 4] = [
    ("answers texts", |operation| matches!(operation, Operation::Chat { .. })),
    ("takes videos on", |operation| matches!(operation, Operation::Submit { .. })),
    ("finds stored responses", |operation| matches!(operation, Operation::Retrieve { .. })),
    ("reports tasks", |operation| matches!(operation, Operation::LookUp { .. })),
];

/// No call fails for a reason that is not the client's, whatever its key.
fn answers(call: &Call<'_>, quiet: u64, violations: &mut Vec<Violation>) {
    let became = match call.answer.map(|answer| answer.outcome) {
        None => "is not answered".to_owned(),
        Some(Outcome::Lost { why }) => format!("is lost ({why})"),
        Some(Outcome::Refused { status, .. }) if *status >= 500 => format!("is refused with {status}"),
        Some(_) => return,
    };
    let (key, node, later) = (call.key, call.node, (call.began - quiet) / 1000);
    let why = format!("a call of {key} at node {node} {became}, {later} ms after the last fault");
    report(violations, "service is back", why, call.lines());
}

/// Every node of its store reports the end of a task.
fn tells_ends(record: &Record<'_>, late: &[&Call<'_>], line: usize, violations: &mut Vec<Violation>) {
    let mut look_ups: HashMap<(&str, usize), &Call<'_>> = HashMap::new();
    for call in late {
        let Operation::LookUp { task } = call.operation else { continue };
        // The last one: calls are in the order in which they began.
        look_ups.insert((task, call.node), call);
    }
    for (id, submission) in tasks::accepted(record) {
        for node in nodes_with(submission.node) {
            let look_up = look_ups.get(&(id, node));
            let outcome = look_up.and_then(|call| call.answer).map(|answer| answer.outcome);
            if !matches!(outcome, Some(Outcome::Task { task }) if is_final(task)) {
                let lines = submission.lines().into_iter().chain([line]);
                let lines = lines.chain(look_up.into_iter().flat_map(|call| call.lines()));
                let why = format!("node {node} does not tell the end of {id} after the faults");
                report(violations, "every node reports the end", why, lines);
            }
        }
    }
}

/// Every node of its store serves the file of a completed task, which exists and is not only recorded.
fn gives_files(record: &Record<'_>, late: &[&Call<'_>], line: usize, violations: &mut Vec<Violation>) {
    let (mut completed, mut given) = (HashSet::new(), HashMap::new());
    for call in record.calls() {
        if let Some(Outcome::Task { task }) = call.answer.map(|answer| answer.outcome)
            && task["status"] == "completed"
        {
            completed.insert(task["id"].as_str().unwrap_or_default());
        }
    }
    for call in late {
        if let Operation::Fetch { task } = call.operation {
            // The last one, as above.
            given.insert((task.as_str(), call.node), call.succeeded());
        }
    }
    let end = record.end().map_or(0, |(_, line)| line.at);
    for (id, submission) in tasks::accepted(record) {
        if !completed.contains(id) || tasks::may_have_expired(submission, end) {
            continue;
        }
        for node in nodes_with(submission.node).filter(|node| given.get(&(id, *node)) != Some(&true)) {
            let why = format!("node {node} does not give the file of {id} after the faults");
            let lines = submission.lines().into_iter().chain([line]);
            report(violations, "every node gives the file", why, lines);
        }
    }
}

/// The nodes that share a node's store.
fn nodes_with(node: usize) -> Range<usize> {
    if node == ALONE { ALONE..ALONE + 1 } else { 0..ALONE }
}
