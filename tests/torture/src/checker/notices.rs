//! Section 6: each end is told at least once where somebody is to be told, under one id, signed, and as it is.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Violation;
use super::record::{Record, essence, is_final, report};
use crate::history::{Asked, Got, What};

/// An attempt that reached its receiver.
struct Told<'h> {
    line: usize,
    id: &'h str,
    acknowledged: bool,
    task: &'h Value,
}

pub(super) fn check(record: &Record<'_>, violations: &mut Vec<Violation>) {
    let mut told: BTreeMap<&str, Vec<Told<'_>>> = BTreeMap::new();
    for (line, one) in record.lines.iter().enumerate() {
        let What::Delivered { id, problem, acknowledged, task } = &one.what else { continue };
        if let Some(problem) = problem {
            report(violations, "notification is signed", problem.clone(), [line]);
        }
        if !is_final(task) {
            report(violations, "notification is of an end", format!("{} is not over", task["id"]), [line]);
        }
        let attempt = Told { line, id, acknowledged: *acknowledged, task };
        told.entry(task["id"].as_str().unwrap_or_default()).or_default().push(attempt);
    }
    for (task, attempts) in &told {
        let first = &attempts[0];
        for other in &attempts[1..] {
            if other.id != first.id {
                let why = format!("{task} was told as {} and as {}", first.id, other.id);
                report(violations, "notification has one id", why, [first.line, other.line]);
            }
            if essence(other.task) != essence(first.task) {
                let why = format!("{task} was told in two ways");
                report(violations, "notification is the end", why, [first.line, other.line]);
            }
        }
    }
    for call in &record.calls {
        let Asked::Submit { told: true, .. } = call.asked else { continue };
        let Some(Got::Task { task }) = call.answer.map(|answer| answer.got) else { continue };
        let id = task["id"].as_str().unwrap_or_default();
        if !told.get(id).is_some_and(|attempts| attempts.iter().any(|attempt| attempt.acknowledged)) {
            report(violations, "notification arrives", format!("the end of {id} was not told"), call.lines());
        }
    }
}
