//! Texts: each answer is that to its own question, whole, with the usage of the upstream that gave it; and what is
//! stored is found again.

use std::collections::HashMap;

use super::record::{Call, RECONNECTING, Record, report};
use super::{SECOND, Violation};
use crate::expected;
use crate::history::{Asked, Fault, Got, What};

/// Within this time other nodes know of a response that was told before it was written: changes are written twice a second.
const KNOWN: u64 = 2 * SECOND;
/// A node that waits longer for its store tells a response before it is written, and does not ask for some seconds.
const PATIENCE: u64 = SECOND;

pub(super) fn check(record: &Record<'_>, violations: &mut Vec<Violation>) {
    let given = given(record);
    let mut stored: HashMap<u64, &Call<'_>> = HashMap::new();
    for call in &record.calls {
        let (Asked::Chat { intent, .. } | Asked::Respond { intent } | Asked::Retrieve { intent }) =
            call.asked
        else {
            continue;
        };
        let Some(answer) = call.answer else { continue };
        if let Got::Text { text, input, output } = answer.got {
            if *text != expected::text(*intent) {
                let why = format!("intent {intent} got the text of another, or a part");
                report(violations, "answer is right", why, call.lines());
            }
            if (*input, *output) != expected::tokens(*intent) {
                let why = format!("intent {intent} is told a usage that the upstream did not tell");
                report(violations, "usage is told", why, call.lines());
            }
            if given.get(intent).is_none_or(|given| *given > answer.at) {
                let why = format!("no upstream has answered intent {intent}");
                report(violations, "answer has a source", why, call.lines());
            }
            if let Asked::Respond { .. } = call.asked {
                stored.insert(*intent, call);
            }
        }
    }
    for call in &record.calls {
        if let Asked::Retrieve { intent } = call.asked
            && let Some(creation) = stored.get(intent)
        {
            retrieved(record, *intent, creation, call, violations);
        }
    }
}

/// When the upstream first gave a whole answer to each intent.
fn given(record: &Record<'_>) -> HashMap<u64, u64> {
    let mut given = HashMap::new();
    for line in record.lines {
        if let What::Upstream { intent, whole: true, .. } = line.what {
            given.entry(intent).or_insert(line.at);
        }
    }
    given
}

/// A stored response is told once it is written: from then on all nodes find it. One that was told while its node did not get at
/// its store is found when it is written, unless its node was killed before.
fn retrieved(
    record: &Record<'_>,
    intent: u64,
    creation: &Call<'_>,
    call: &Call<'_>,
    violations: &mut Vec<Violation>,
) {
    let Some(created) = creation.answer else { return };
    if call.refused() != Some(404) || call.began <= created.at {
        return;
    }
    let hung = |fault| matches!(fault, Fault::Paused { node } if node == creation.node);
    let was_written = record.asked_the_store(creation) && !was_slow(record, creation);
    let is_excused = !was_written
        && (call.began <= created.at + KNOWN
            || record.may_be_unwritten(creation.node, created.at)
            || record
                .store_was_back(creation.node, created.at, call.began)
                .is_some_and(|back| call.began <= back + KNOWN)
            || record.is_troubled(created.at, call.began, hung));
    if !is_excused {
        let lines = creation.lines().into_iter().chain(call.lines());
        report(violations, "response stays", format!("the response to intent {intent} is not found"), lines);
    }
}

/// Whether the node of a call was so slow, then or shortly before, that it may have given its store up.
fn was_slow(record: &Record<'_>, call: &Call<'_>) -> bool {
    let Some(answer) = call.answer else { return true };
    let since = call.began.saturating_sub(RECONNECTING);
    record.calls.iter().filter(|other| other.node == call.node && other.began <= answer.at).any(|other| {
        let ended = other.answer.map_or(u64::MAX, |answer| answer.at);
        ended >= since && ended - other.began > PATIENCE
    })
}
