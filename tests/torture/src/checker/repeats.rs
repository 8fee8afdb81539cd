//! Idempotency keys: a repeated request with the same key gets the original response, and is not executed again. A gateway
//! without its store knows only its own responses, which reach the store soon after it is back.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem::{Discriminant, discriminant};

use super::record::{Call, Record, report};
use super::{Promises, SECOND, Violation};
use crate::history::{Event, Fault, Line, Operation};

/// For at least this long a key waits for a gateway that has died: its lease is 30 s, and is taken before the request to the
/// upstream.
const LEASE: u64 = 25 * SECOND;
/// A restored store has the responses that were reported without it within this time.
const HANDED_OVER: u64 = 6 * SECOND;
/// How many responses a process keeps in memory for each operation; then it knows only what the store has.
const MAX_IN_MEMORY: usize = 1_000;

/// When calls with a key began, in order, by their node and operation.
type KeyedCalls = HashMap<(usize, Discriminant<Operation>), Vec<u64>>;

pub(super) fn check(record: &Record<'_>, promises: Promises, violations: &mut Vec<Violation>) {
    let mut calls: BTreeMap<&str, Vec<&Call<'_>>> = BTreeMap::new();
    for call in record.calls() {
        if let Some(once) = call.operation.once() {
            calls.entry(once).or_default().push(call);
        }
    }
    let mut keyed_calls = KeyedCalls::new();
    for call in calls.values().flatten() {
        keyed_calls.entry((call.node, discriminant(call.operation))).or_default().push(call.began);
    }
    for times in keyed_calls.values_mut() {
        times.sort_unstable();
    }
    let mut upstream_calls: HashMap<u64, Vec<UpstreamCall<'_>>> = HashMap::new();
    for (line, Line { at, event }) in record.lines() {
        let (node, intent, id) = match event {
            Event::Begun { node, intent, id } => (*node, *intent, id.as_deref()),
            Event::Filmed { node, intent } => (*node, *intent, None),
            _ => continue,
        };
        upstream_calls.entry(intent).or_default().push(UpstreamCall { line, at: *at, node, id });
    }
    for (once, calls) in calls {
        let (Operation::Chat { intent, .. }
        | Operation::Respond { intent, .. }
        | Operation::Submit { intent, .. }) = calls[0].operation
        else {
            continue;
        };
        let upstream_calls = upstream_calls.get(intent).map(Vec::as_slice).unwrap_or_default();
        let key = Key { record, promises, once, calls: &calls, keyed_calls: &keyed_calls, upstream_calls };
        key.has_one_answer(violations);
        // The rules for tasks judge how many videos the upstream makes.
        if calls[0].operation.text().is_some() {
            key.is_requested_once(violations);
        }
    }
}

/// The upstream starts to answer a node, or accepts its video.
#[derive(Debug, Clone, Copy)]
struct UpstreamCall<'h> {
    line: usize,
    at: u64,
    node: usize,
    /// The ID of the response, if it is known: the ID of a video's task is the node's.
    id: Option<&'h str>,
}

/// What is known of an idempotency key.
struct Key<'r, 'h> {
    record: &'r Record<'h>,
    promises: Promises,
    once: &'r str,
    calls: &'r [&'r Call<'h>],
    /// Those of all keys.
    keyed_calls: &'r KeyedCalls,
    /// How often the upstream got a request.
    upstream_calls: &'r [UpstreamCall<'h>],
}

impl Key<'_, '_> {
    /// No client gets a different response, nor an "in progress" once a response was reported.
    fn has_one_answer(&self, violations: &mut Vec<Violation>) {
        // Which process reported each response first. Later, its gateway has the response in memory, whatever the store knows.
        let mut firsts: Vec<&Call<'_>> = Vec::new();
        let mut known = HashSet::new();
        for (place, call) in self.calls.iter().enumerate() {
            let is_first = call.reported_id().is_some_and(|id| known.insert(id));
            for before in &self.calls[..place] {
                let Some(id) = before.reported_id() else { continue };
                let is_own = self.has_made(before)
                    && self.is_one_process(before, call)
                    && self.is_in_memory(before, call);
                let is_known = is_own
                    || firsts.iter().any(|first| std::ptr::eq(*first, *before))
                        && (is_first || call.reported_id().is_none())
                        && self.is_shared(before, call);
                if !is_known {
                    continue;
                }
                let lines = before.lines().into_iter().chain(call.lines());
                if let Some(other) = call.reported_id().filter(|other| *other != id) {
                    let why = format!("{:?} has two answers, {id} and {other}", self.once);
                    return report(violations, "repeated once", why, lines);
                }
                let is_over = before.answer.is_some_and(|answer| answer.at < call.began);
                let has_it = is_own || self.both_used_the_store(before, call);
                if call.refused() == Some(409) && is_over && has_it && !self.is_beside_another(call) {
                    let why =
                        format!("{:?} has the answer {id}, and is reported to be in progress", self.once);
                    return report(violations, "answer stays", why, lines);
                }
            }
            if is_first {
                firsts.push(call);
            }
        }
    }

    /// The upstream gets another request only if a fault explains it.
    fn is_requested_once(&self, violations: &mut Vec<Violation>) {
        for pair in self.upstream_calls.windows(2) {
            let (Some(before), Some(call)) = (self.call_of(pair[0]), self.call_of(pair[1])) else {
                continue;
            };
            if self.may_ask_again((before, pair[0].at), (call, pair[1].at)) {
                continue;
            }
            let later = (pair[1].at - pair[0].at) / 1000;
            let why = format!("the upstream gets {:?} again, {later} ms later", self.once);
            let lines = before.lines().into_iter().chain(call.lines());
            return report(violations, "requested once", why, lines.chain(pair.iter().map(|one| one.line)));
        }
    }

    /// The call for which a node sent a request to the upstream: the last one there that was not rejected because another one is
    /// in progress.
    fn call_of(&self, upstream_call: UpstreamCall<'_>) -> Option<&Call<'_>> {
        let is_it = |call: &&&Call<'_>| {
            let ended = call.answer.map_or(u64::MAX, |answer| answer.at);
            let was_there =
                call.node == upstream_call.node && (call.began..=ended).contains(&upstream_call.at);
            was_there && call.refused() != Some(409)
        };
        self.calls.iter().rev().find(is_it).copied()
    }

    /// Whether a call may send a request to the upstream after another call has done so, at these times.
    fn may_ask_again(&self, (before, operation): (&Call<'_>, u64), (call, again): (&Call<'_>, u64)) -> bool {
        if !self.is_one_process(before, call) && !self.is_shared(before, call) {
            return true;
        }
        let (node, ended) = (before.node, before.answer.map_or(u64::MAX, |answer| answer.at));
        let met = |fault| self.record.is_troubled(operation, ended, |one| one == fault);
        let is_free =
            met(Fault::Stopped { node }) || met(Fault::Killed { node }) && again - operation >= LEASE;
        // A client that disconnects releases the key.
        before.gave_up() || before.reported_id().is_none() && is_free
    }

    /// Whether its node got another request with the same key at the same time, which is in progress while the store is queried.
    fn is_beside_another(&self, call: &Call<'_>) -> bool {
        let ended = |one: &Call<'_>| one.answer.map_or(u64::MAX, |answer| answer.at);
        let mut others = self.calls.iter().filter(|other| other.line != call.line && other.node == call.node);
        others.any(|other| other.began <= ended(call) && call.began <= ended(other))
    }

    /// Whether the response to a call was made by the process that reported it: responses from the store are not cached.
    fn has_made(&self, call: &Call<'_>) -> bool {
        let answered_at = call.answer.map_or(0, |answer| answer.at);
        let is_it = |one: &UpstreamCall<'_>| {
            one.node == call.node
                && one.at <= answered_at
                && one.id.is_none_or(|id| call.reported_id() == Some(id))
                && !self.is_gone(call.node, one.at, answered_at)
        };
        self.upstream_calls.iter().any(is_it)
    }

    /// Whether one process of a gateway got both calls.
    fn is_one_process(&self, before: &Call<'_>, call: &Call<'_>) -> bool {
        let Some(answer) = call.answer else { return false };
        before.node == call.node && !self.is_gone(call.node, before.began, answer.at)
    }

    /// Whether a process has got too few calls since an earlier one to have forgotten its response.
    fn is_in_memory(&self, before: &Call<'_>, call: &Call<'_>) -> bool {
        let times = self.keyed_calls.get(&(call.node, discriminant(call.operation)));
        let up_to = |at: u64| times.map_or(0, |times| times.partition_point(|time| *time <= at));
        up_to(call.began) - up_to(before.began) < MAX_IN_MEMORY
    }

    /// Whether a node ended between two times.
    fn is_gone(&self, node: usize, from: u64, to: u64) -> bool {
        let is_end =
            |fault| matches!(fault, Fault::Killed { node: of } | Fault::Stopped { node: of } if of == node);
        self.record.is_troubled(from, to, is_end)
    }

    /// Whether a call finds in the store what another call has left there.
    fn is_shared(&self, before: &Call<'_>, call: &Call<'_>) -> bool {
        self.promises.shared_replays
            && (self.both_used_the_store(before, call)
                || self.used_the_store(call) && self.was_handed_over(before, call))
    }

    fn both_used_the_store(&self, before: &Call<'_>, call: &Call<'_>) -> bool {
        self.promises.shared_replays && self.used_the_store(before) && self.used_the_store(call)
    }

    fn used_the_store(&self, call: &Call<'_>) -> bool {
        self.record.used_the_store(call) && !self.record.was_slow(call)
    }

    /// Whether the store has a response that was reported without it when a call begins: the store was back long enough before,
    /// and so was the gateway if it was killed; it did not hang meanwhile, and no other gateway has called the upstream in
    /// between.
    fn was_handed_over(&self, before: &Call<'_>, call: &Call<'_>) -> bool {
        let (Some(answer), Some(_)) = (before.answer, before.reported_id()) else { return false };
        let node = before.node;
        let back = self.record.store_was_back(node, before.began, call.began).unwrap_or(answer.at);
        let next = self.record.was_taken_over(node, answer.at, call.began).unwrap_or(answer.at);
        let until = back.max(next).max(answer.at).saturating_add(HANDED_OVER);
        let hung = |fault| fault == Fault::Paused { node };
        let is_other = |one: &UpstreamCall<'_>| one.node != node && (before.began..=until).contains(&one.at);
        call.began > until
            && !self.record.is_lost_with_its_process(node, answer.at)
            && !self.record.is_troubled(before.began, call.began, hung)
            && !self.upstream_calls.iter().any(is_other)
    }
}
