//! Usage of texts: the store counts what the upstream answered, even if a gateway was killed, except for truncated responses,
//! which are estimated.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::record::{Call, Record, report};
use super::{Answered, Violation};
use crate::expected::{self, TEXT};
use crate::history::Event;

/// The most tokens that a gateway estimates for a response that it did not see completely, beyond those that the upstream would
/// have reported.
const ESTIMATE: u64 = 200;

/// Requests, input and output tokens, and money, in billionths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sums {
    requests: u64,
    input: u64,
    output: u64,
    cost: u64,
}

impl Sums {
    fn add(&mut self, (input, output): (u64, u64)) {
        self.requests += 1;
        self.input += input;
        self.output += output;
        self.cost += expected::cost((input, output));
    }

    fn members(self) -> [(&'static str, u64); 4] {
        [
            ("requests", self.requests),
            ("input tokens", self.input),
            ("output tokens", self.output),
            ("billionths", self.cost),
        ]
    }
}

/// What is known of the usage of a key.
#[derive(Debug, Default)]
struct ExpectedUsage {
    /// What clients received completely.
    answered: Sums,
    /// Of these, requests that may not have been in the store when their gateway ended.
    endangered: u64,
    /// The most that may be counted besides.
    uncertain: Sums,
    lines: Vec<usize>,
}

pub(super) fn check(record: &Record<'_>, violations: &mut Vec<Violation>) -> Answered {
    let seen = seen_by_upstream(record);
    let mut known: BTreeMap<&str, ExpectedUsage> = BTreeMap::new();
    let mut calls: BTreeMap<u64, Vec<&Call<'_>>> = BTreeMap::new();
    for call in record.calls() {
        if let Some(intent) = call.operation.text() {
            calls.entry(intent).or_default().push(call);
        }
    }
    for (intent, calls) in &calls {
        let times = seen.get(intent).copied().unwrap_or_default();
        known.entry(calls[0].key).or_default().add(record, calls, *intent, times);
    }
    let mut answered = Answered::default();
    let mut has_rows = false;
    for (line, one) in record.lines() {
        let Event::Counted { key, model, requests, input, output, cost, .. } = &one.event else { continue };
        if model != TEXT {
            continue;
        }
        has_rows = true;
        let counted = Sums { requests: *requests, input: *input, output: *output, cost: *cost };
        let known = known.remove(key.as_str()).unwrap_or_default();
        compare(key, counted, &known, line, violations, &mut answered);
    }
    if has_rows && let Some((last, _)) = record.end() {
        // A key without a row has used nothing.
        for (key, known) in known {
            compare(key, Sums::default(), &known, last, violations, &mut answered);
        }
    }
    answered
}

/// How often the upstream got a request for each intent.
pub(super) fn seen_by_upstream(record: &Record<'_>) -> HashMap<u64, u64> {
    let mut seen = HashMap::new();
    for (_, line) in record.lines() {
        if let Event::Upstream { intent, .. } = line.event {
            *seen.entry(intent).or_default() += 1;
        }
    }
    seen
}

impl ExpectedUsage {
    /// `calls`: those with one intent. A repeated response doesn't count again. `times`: how often the upstream got a request.
    fn add(&mut self, record: &Record<'_>, calls: &[&Call<'_>], intent: u64, times: u64) {
        let mut reported = HashSet::new();
        for call in calls {
            if !call.reported_id().is_some_and(|id| reported.insert(id)) {
                continue;
            }
            self.answered.add(expected::tokens(intent));
            let at = call.answer.map(|answer| answer.at).unwrap_or_default();
            if record.may_be_unwritten(call.node, at) {
                self.endangered += 1;
                self.lines.extend(call.lines());
            }
        }
        for _ in 0..uncertain(calls, reported.len() as u64, times) {
            self.uncertain.add(estimated(intent));
        }
    }
}

/// How often calls with one intent may count in addition to complete responses. `times`: how often the upstream got a request.
fn uncertain(calls: &[&Call<'_>], reported: u64, times: u64) -> u64 {
    // Once a gateway has started a request, it counts by an estimate, even if its client disconnects before the upstream reads
    // it.
    let left = calls.iter().filter(|call| call.gave_up()).count() as u64;
    times.max(reported + left) - reported
}

/// The most input and output tokens that count for a truncated response.
fn estimated(intent: u64) -> (u64, u64) {
    let (input, output) = expected::tokens(intent);
    (input + ESTIMATE, output + ESTIMATE)
}

/// The most input and output tokens that a call used. `seen`: how often the upstream got a request for each intent.
pub(super) fn most(call: &Call<'_>, seen: &HashMap<u64, u64>) -> (u64, u64) {
    let Some(intent) = call.operation.text() else { return (0, 0) };
    let (mut input, mut output) = if call.succeeded() { expected::tokens(intent) } else { (0, 0) };
    let times = seen.get(&intent).copied().unwrap_or_default();
    for _ in 0..uncertain(&[call], call.succeeded().into(), times) {
        let estimated = estimated(intent);
        (input, output) = (input + estimated.0, output + estimated.1);
    }
    (input, output)
}

fn compare(
    key: &str,
    counted: Sums,
    known: &ExpectedUsage,
    line: usize,
    violations: &mut Vec<Violation>,
    answered: &mut Answered,
) {
    let members = counted.members().into_iter().zip(known.answered.members());
    for (((name, counted), (_, answered)), (_, uncertain)) in members.zip(known.uncertain.members()) {
        if !(answered..=answered + uncertain).contains(&counted) {
            let why = format!(
                "{key}: the store counts {counted} {name}; clients know of {answered}, and up to {uncertain} more were cut \
                 short"
            );
            report(violations, "usage is counted", why, known.lines.iter().copied().chain([line]));
        }
    }
    answered.requests += known.answered.requests;
    answered.endangered += known.endangered;
}
