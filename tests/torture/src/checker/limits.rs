//! No key takes more than it may, but for what was in flight.

use std::collections::HashMap;

use super::record::{Call, Record, report};
use super::{Promises, SECOND, Violation};
use crate::expected;
use crate::history::{Asked, Fault};

/// After this time what one node spends counts on all: it is written twice a second and read every five.
const COUNTED: u64 = 8 * SECOND;
/// A minute.
const MINUTE: u64 = 60 * SECOND;

pub(super) fn check(record: &Record<'_>, promises: Promises, violations: &mut Vec<Violation>) {
    let mut calls: HashMap<&str, Vec<&Call<'_>>> = HashMap::new();
    for call in &record.calls {
        if matches!(call.asked, Asked::Chat { .. }) && call.succeeded() {
            calls.entry(call.key).or_default().push(call);
        }
    }
    for call in &record.calls {
        let Asked::CreateKey { name, tokens_per_day, requests_per_minute } = call.asked else { continue };
        let Some(calls) = calls.get(name.as_str()) else { continue };
        if let Some(budget) = tokens_per_day {
            spends(record, name, *budget, calls, violations);
        }
        if let Some(limit) = requests_per_minute {
            paces(record, name, *limit, calls, promises, violations);
        }
    }
}

/// No call is accepted when what was spent long enough ago is the whole budget.
fn spends(
    record: &Record<'_>,
    name: &str,
    budget: u64,
    calls: &[&Call<'_>],
    violations: &mut Vec<Violation>,
) {
    for call in calls {
        let before = call.began.saturating_sub(COUNTED);
        // A node that could not ask its store, or has just been started or woken, does not know all.
        let is_hindered =
            |fault| matches!(fault, Fault::Killed { .. } | Fault::Stopped { .. } | Fault::Paused { .. });
        if record.is_troubled(before, call.began, is_hindered)
            || record.store_was_back(call.node, before, call.began).is_some()
        {
            continue;
        }
        let counted = calls.iter().filter(|other| {
            let ended = other.answer.map(|answer| answer.at);
            ended.is_some_and(|at| at <= before && !record.may_be_lost(other.node, at))
        });
        let (mut spent, mut last) = (0, None);
        for other in counted {
            let Asked::Chat { intent, .. } = other.asked else { continue };
            let (input, output) = expected::tokens(*intent);
            spent += input + output;
            last = Some(other.line);
        }
        if spent >= budget {
            let why = format!("{name} has spent {spent} of {budget} tokens, and is accepted");
            return report(violations, "budget holds", why, call.lines().into_iter().chain(last));
        }
    }
}

/// A limit a minute refills evenly, and all of a minute may be used at once: between any two moments there are as many
/// calls as that, at most. A call was counted at some moment between its beginning and its end.
fn paces(
    record: &Record<'_>,
    name: &str,
    limit: u64,
    calls: &[&Call<'_>],
    promises: Promises,
    violations: &mut Vec<Violation>,
) {
    let mut counted: HashMap<(usize, usize), Vec<&Call<'_>>> = HashMap::new();
    for call in calls {
        let process = if promises.shared_limits { (0, 0) } else { (call.node, process(record, call)) };
        counted.entry(process).or_default().push(call);
    }
    for mut calls in counted.into_values() {
        calls.sort_by_key(|call| call.began);
        for (place, first) in calls.iter().enumerate() {
            for (more, last) in calls[place..].iter().enumerate() {
                let Some(end) = last.answer.map(|answer| answer.at) else { continue };
                let time = end.saturating_sub(first.began);
                let most = limit + limit * time / MINUTE + 1;
                let within =
                    calls[place..].iter().filter(|call| call.answer.is_some_and(|answer| answer.at <= end));
                if more as u64 >= most && within.count() as u64 > most {
                    let why = format!("{name} is accepted more than {most} times in {} ms", time / 1000);
                    let lines = first.lines().into_iter().chain(last.lines());
                    return report(violations, "limit a minute holds", why, lines);
                }
            }
        }
    }
}

/// How often the node of a call had been started anew before.
fn process(record: &Record<'_>, call: &Call<'_>) -> usize {
    let ends = record.troubles.iter().filter(|one| match one.fault {
        Fault::Killed { node } | Fault::Stopped { node } => node == call.node && one.to <= call.began,
        _ => false,
    });
    ends.count()
}
