//! No key takes more than it may, but for what was in flight.

use std::collections::HashMap;

use super::record::{Call, Record, Trouble, report};
use super::{Promises, SECOND, Violation};
use crate::expected;
use crate::history::{Asked, Fault};

/// After this time what one node spends counts on all: it is written twice a second and read every second.
const COUNTED: u64 = 5 * SECOND;
/// Within this time gateways use counters that are back.
const RECONNECTING: u64 = 3 * SECOND;
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

/// Who counts calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Counting {
    /// A process of a node, by how often that had been started anew before.
    Process { node: usize, starts: usize },
    /// The counters, since they were away so often.
    Together { since: usize },
}

/// A limit a minute holds for each process, and for all together where they count together.
fn paces(
    record: &Record<'_>,
    name: &str,
    limit: u64,
    calls: &[&Call<'_>],
    promises: Promises,
    violations: &mut Vec<Violation>,
) {
    let mut counted: HashMap<Counting, Vec<&Call<'_>>> = HashMap::new();
    for call in calls {
        let process = Counting::Process { node: call.node, starts: starts(record, call) };
        let together = if promises.shared_limits { together(record, call) } else { None };
        for counting in [Some(process), together].into_iter().flatten() {
            counted.entry(counting).or_default().push(call);
        }
    }
    for calls in counted.into_values() {
        if let Some((why, lines)) = outpaces(limit, calls) {
            return report(violations, "limit a minute holds", format!("{name} is accepted {why}"), lines);
        }
    }
}

/// A limit a minute refills evenly, and all of a minute may be used at once: between any two moments there are as many
/// calls as that, at most. A call was counted at some moment between its beginning and its end.
fn outpaces(limit: u64, mut calls: Vec<&Call<'_>>) -> Option<(String, Vec<usize>)> {
    calls.sort_by_key(|call| call.began);
    for (place, first) in calls.iter().enumerate() {
        for (more, last) in calls[place..].iter().enumerate() {
            let Some(end) = last.answer.map(|answer| answer.at) else { continue };
            let time = end.saturating_sub(first.began);
            let most = limit + limit * time / MINUTE + 1;
            let within =
                calls[place..].iter().filter(|call| call.answer.is_some_and(|answer| answer.at <= end));
            if more as u64 >= most && within.count() as u64 > most {
                let why = format!("more than {most} times in {} ms", time / 1000);
                return Some((why, first.lines().into_iter().chain(last.lines()).collect()));
            }
        }
    }
    None
}

/// How often the node of a call had been started anew before.
fn starts(record: &Record<'_>, call: &Call<'_>) -> usize {
    let ends = record.troubles.iter().filter(|one| match one.fault {
        Fault::Killed { node } | Fault::Stopped { node } => node == call.node && one.to <= call.began,
        _ => false,
    });
    ends.count()
}

/// What counted a call for all nodes; none if its node may have judged alone: the counters were away, or it had just been
/// started or woken.
fn together(record: &Record<'_>, call: &Call<'_>) -> Option<Counting> {
    let end = call.answer?.at;
    let from = call.began.saturating_sub(RECONNECTING);
    let is_hindered = |fault| match fault {
        Fault::Counters { .. } => true,
        Fault::Killed { node } | Fault::Stopped { node } | Fault::Paused { node } => node == call.node,
        _ => false,
    };
    if record.is_troubled(from, end, is_hindered) {
        return None;
    }
    let away = |one: &&Trouble| matches!(one.fault, Fault::Counters { .. }) && one.to <= call.began;
    Some(Counting::Together { since: record.troubles.iter().filter(away).count() })
}
