//! No key exceeds its limits, except by requests in flight.

use std::collections::HashMap;

use super::counting::{Counters, Counting, is_of_node, is_without_counters};
use super::record::{Call, Record, report};
use super::usage;
use super::{Promises, SECOND, Violation};
use crate::expected::{self, UNIT};
use crate::history::{ALONE, Fault, Limits, Operation, Outcome};

/// After this time one node's spending counts on all nodes, through the store: it is written twice a second and read every
/// second.
const COUNTED: u64 = 5 * SECOND;
/// After this time a response's usage counts for all nodes: it is sent immediately, alongside the requests.
const REPORTED_WITHIN: u64 = 2 * SECOND;
/// How a call is rejected whose key has used up its budget.
const USED_UP: &str = "insufficient_quota";
/// A minute.
const MINUTE: u64 = 60 * SECOND;

pub(super) fn check(record: &Record<'_>, promises: Promises, violations: &mut Vec<Violation>) {
    let mut calls: HashMap<&str, Vec<&Call<'_>>> = HashMap::new();
    for call in record.calls() {
        calls.entry(call.key).or_default().push(call);
    }
    let (seen, counters) = (usage::seen_by_upstream(record), Counters::of(record));
    let is_accepted =
        |call: &&&Call<'_>| matches!(call.operation, Operation::Chat { .. }) && call.succeeded();
    for call in record.calls() {
        let Operation::CreateKey { name, limits } = call.operation else { continue };
        let calls = calls.get(name.as_str()).map(Vec::as_slice).unwrap_or_default();
        for budget in budgets(limits) {
            starves(name, &budget, calls, &seen, violations);
        }
        let calls: Vec<&Call<'_>> = calls.iter().filter(is_accepted).copied().collect();
        for budget in budgets(limits) {
            spends(record, name, &budget, &calls, violations);
            for calls in counted(&counters, &calls, promises) {
                if let Some((why, lines)) = overspends(record, &budget, calls) {
                    report(violations, budget.rules.0, format!("{name} {why}"), lines);
                    break;
                }
            }
        }
        let rules: [(&'static str, Option<u64>, Rule); 3] = [
            ("limit a minute holds", limits.requests_per_minute, outpaces),
            ("tokens a minute hold", limits.tokens_per_minute, takes_more),
            ("requests at once hold", limits.concurrent_requests, crowds),
        ];
        for (rule, limit, broken) in rules {
            let Some(limit) = limit else { continue };
            for calls in counted(&counters, &calls, promises) {
                if let Some((why, lines)) = broken(record, limit, calls) {
                    report(violations, rule, format!("{name} is accepted {why}"), lines);
                    break;
                }
            }
        }
    }
}

/// What a key may spend in a day.
struct Budget {
    /// The rule that no more is spent, and the one that all of it may be.
    rules: (&'static str, &'static str),
    most: u64,
    /// What is spent.
    of: &'static str,
    /// How much of it these input and output tokens are.
    spent: fn((u64, u64)) -> u64,
}

fn budgets(limits: &Limits) -> impl Iterator<Item = Budget> {
    let tokens = limits.tokens_per_day.map(|most| Budget {
        rules: ("budget holds", "budget is there"),
        most,
        of: "tokens",
        spent: |(input, output)| input + output,
    });
    let money = limits.cost_per_day.map(|most| Budget {
        rules: ("budget in money holds", "budget in money is there"),
        most: most * UNIT,
        of: "billionths",
        spent: expected::cost,
    });
    tokens.into_iter().chain(money)
}

/// No call is rejected for a budget while everything that may have been spent, including truncated responses, is below it.
/// `calls`: those with the key, in the order in which they began.
fn starves(
    name: &str,
    budget: &Budget,
    calls: &[&Call<'_>],
    seen: &HashMap<u64, u64>,
    violations: &mut Vec<Violation>,
) {
    let spent = Spent::of(calls.iter().map(|call| (call.began, (budget.spent)(usage::most(call, seen)))));
    for call in calls {
        let Some(answer) = call.answer else { continue };
        if !matches!(answer.outcome, Outcome::Refused { code, .. } if code == USED_UP) {
            continue;
        }
        let spent = spent.up_to(answer.at);
        if spent < budget.most {
            let Budget { rules, most, of, .. } = budget;
            let why = format!("{name} has spent {spent} of {most} {of} at most, and is refused for it");
            return report(violations, rules.1, why, call.lines());
        }
    }
}

/// What was spent by when.
struct Spent {
    /// Moments in order, and what was spent up to each of them.
    sums: Vec<(u64, u64)>,
}

impl Spent {
    /// `each`: moments, and what was spent at each of them.
    fn of(each: impl Iterator<Item = (u64, u64)>) -> Self {
        let mut sums: Vec<(u64, u64)> = each.collect();
        sums.sort_unstable_by_key(|(at, _)| *at);
        let mut sum = 0;
        for (_, spent) in &mut sums {
            sum += *spent;
            *spent = sum;
        }
        Self { sums }
    }

    fn up_to(&self, moment: u64) -> u64 {
        let count = self.sums.partition_point(|(at, _)| *at <= moment);
        self.sums[..count].last().map_or(0, |(_, sum)| *sum)
    }
}

/// No call is accepted when the whole budget was spent long enough ago.
fn spends(
    record: &Record<'_>,
    name: &str,
    budget: &Budget,
    calls: &[&Call<'_>],
    violations: &mut Vec<Violation>,
) {
    let spent_of = |call: &Call<'_>| tokens(call).map_or(0, budget.spent);
    let ended = calls.iter().filter_map(|call| Some((call.answer?.at, spent_of(call))));
    let all_spent = Spent::of(ended);
    for call in calls {
        let before = call.began.saturating_sub(COUNTED);
        if all_spent.up_to(before) < budget.most {
            continue;
        }
        // A node that could not reach its store, or was just started or resumed, does not know everything. One that is cut off,
        // or hangs, in the middle of a transaction blocks those of others.
        let is_hindered = |fault| match fault {
            Fault::Killed { node }
            | Fault::Stopped { node }
            | Fault::Paused { node }
            | Fault::Cut { node, .. } => (node == ALONE) == (call.node == ALONE),
            _ => false,
        };
        if record.is_troubled(before, call.began, is_hindered)
            || record.store_was_back(call.node, before, call.began).is_some()
        {
            continue;
        }
        let counted = calls.iter().filter(|other| {
            let ended = other.answer.map(|answer| answer.at);
            let is_written =
                |at| record.store_was_back(other.node, at, before).is_none_or(|back| back <= before);
            ended.is_some_and(|at| at <= before && is_written(at) && !record.may_be_unwritten(other.node, at))
        });
        let (mut spent, mut last) = (0, None);
        for other in counted {
            spent += spent_of(other);
            last = Some(other.line);
        }
        if spent >= budget.most {
            let Budget { rules, most, of, .. } = budget;
            let why = format!("{name} has spent {spent} of {most} {of}, and is accepted");
            return report(violations, rules.0, why, call.lines().into_iter().chain(last));
        }
    }
}

/// A rule for calls that were counted in one place: why a limit does not hold, and the lines that show it.
type Rule = fn(&Record<'_>, u64, Vec<&Call<'_>>) -> Option<(String, Vec<usize>)>;

/// The calls that were counted in one place: by each process, and by all together where they count together.
fn counted<'r, 'h>(
    counters: &Counters,
    calls: &[&'r Call<'h>],
    promises: Promises,
) -> impl Iterator<Item = Vec<&'r Call<'h>>> + use<'r, 'h> {
    let mut counted: HashMap<Counting, Vec<&Call<'_>>> = HashMap::new();
    for call in calls {
        let together = if promises.shared_limits { counters.together(call) } else { None };
        for counting in [counters.process(call), together].into_iter().flatten() {
            counted.entry(counting).or_default().push(call);
        }
    }
    counted.into_values()
}

/// A per-minute limit refills evenly, and a full minute's worth may be used at once: that is the maximum number of calls between
/// any two moments, plus the refill. A call was counted at some moment between its beginning and its end.
fn outpaces(_: &Record<'_>, limit: u64, mut calls: Vec<&Call<'_>>) -> Option<(String, Vec<usize>)> {
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

/// A token limit refills in the same way. The usage of a response is known when it ends, so calls are accepted until everything
/// is used up, and then rejected.
fn takes_more(record: &Record<'_>, limit: u64, mut calls: Vec<&Call<'_>>) -> Option<(String, Vec<usize>)> {
    calls.sort_by_key(|call| call.began);
    let known = |call: &&Call<'_>| {
        let took = tokens(call).map_or(0, |(input, output)| input + output);
        Some((call.began, reported(record, call)?, took))
    };
    let known: Vec<(u64, u64, u64)> = calls.iter().filter_map(known).collect();
    for call in &calls {
        let Some(end) = call.answer.map(|answer| answer.at) else { continue };
        let mut took = 0;
        for (since, reported, tokens) in known.iter().rev() {
            if *reported > call.began {
                continue;
            }
            took += tokens;
            let most = limit + limit * (end - since) / MINUTE + 1;
            if took > most {
                let why = format!("after {took} of {most} tokens in {} ms", (end - since) / 1000);
                return Some((why, call.lines()));
            }
        }
    }
    None
}

/// When a call's usage counts for all nodes; none if it may not have been reported.
fn reported(record: &Record<'_>, call: &Call<'_>) -> Option<u64> {
    let ended = call.answer?.at;
    let reported = ended + REPORTED_WITHIN;
    let is_lost = |fault| is_of_node(fault, call.node) || is_without_counters(call.node, fault);
    (!record.is_troubled(ended, reported, is_lost)).then_some(reported)
}

/// The input and output tokens that a text used.
fn tokens(call: &Call<'_>) -> Option<(u64, u64)> {
    let Operation::Chat { intent, .. } = call.operation else { return None };
    Some(expected::tokens(*intent))
}

/// For a budget that is counted in one place, no call is accepted once responses have used all of it.
fn overspends(
    record: &Record<'_>,
    budget: &Budget,
    mut calls: Vec<&Call<'_>>,
) -> Option<(String, Vec<usize>)> {
    calls.sort_by_key(|call| call.began);
    let known =
        calls.iter().filter_map(|call| Some((reported(record, call)?, (budget.spent)(tokens(call)?))));
    let known = Spent::of(known);
    calls.iter().find_map(|call| {
        let spent = known.up_to(call.began);
        let why = || {
            format!("spent {spent} of {} {}, as was reported before, and is accepted", budget.most, budget.of)
        };
        (spent >= budget.most).then(|| (why(), call.lines()))
    })
}

/// A call holds a slot while the upstream answers it.
fn crowds(record: &Record<'_>, limit: u64, calls: Vec<&Call<'_>>) -> Option<(String, Vec<usize>)> {
    let mut times: Vec<(u64, u64, &Call<'_>)> = Vec::new();
    for call in calls {
        let Operation::Chat { intent, .. } = call.operation else { continue };
        if let Some((started, ended)) = record.answering(*intent) {
            times.push((started, ended, call));
        }
    }
    for (started, _, _) in &times {
        let at_once = times.iter().filter(|(from, to, _)| from <= started && started < to);
        let at_once: Vec<&Call<'_>> = at_once.map(|(_, _, call)| *call).collect();
        if at_once.len() as u64 > limit {
            let lines = at_once.iter().flat_map(|call| call.lines()).collect();
            return Some((format!("{} times at once", at_once.len()), lines));
        }
    }
    None
}
