//! Texts: each response matches its own request, is complete, and has the usage of the upstream that made it; and stored
//! responses can be found.

use std::collections::HashMap;

use super::record::{Call, RECONNECTING, Record, report};
use super::{SECOND, Violation};
use crate::expected;
use crate::history::{Event, Fault, Operation, Outcome};

/// Other nodes know of a response that was reported before it was written within this time: changes are written twice a second.
const KNOWN: u64 = 2 * SECOND;

pub(super) fn check(record: &Record<'_>, violations: &mut Vec<Violation>) {
    let given = given(record);
    let mut stored: HashMap<u64, Vec<&Call<'_>>> = HashMap::new();
    for call in record.calls() {
        let (Operation::Chat { intent, .. }
        | Operation::Respond { intent, .. }
        | Operation::Retrieve { intent, .. }) = call.operation
        else {
            continue;
        };
        if let Operation::Respond { .. } = call.operation {
            stored.entry(*intent).or_default().push(call);
        }
        let Some(answer) = call.answer else { continue };
        if let Outcome::Text { text, input, output, .. } = answer.outcome {
            if *text != expected::text(*intent) {
                let why = format!("intent {intent} got the text of another, or a part");
                report(violations, "answer is right", why, call.lines());
            }
            if (*input, *output) != expected::tokens(*intent) {
                let why = format!("intent {intent} has a usage that the upstream did not report");
                report(violations, "usage is correct", why, call.lines());
            }
            if given.get(intent).is_none_or(|given| *given > answer.at) {
                let why = format!("no upstream has answered intent {intent}");
                report(violations, "answer has a source", why, call.lines());
            }
        }
    }
    for call in record.calls() {
        let Operation::Retrieve { intent, id } = call.operation else { continue };
        let is_reported = |other: &&&Call<'_>| other.reported_id() == Some(id);
        let creations = stored.get(intent).map(Vec::as_slice).unwrap_or_default();
        if let Some(creation) =
            creations.iter().filter(is_reported).min_by_key(|other| other.answer.map(|one| one.at))
        {
            retrieved(record, *intent, creations, creation, call, violations);
        }
    }
}

/// When the upstream first gave a complete response to each intent.
fn given(record: &Record<'_>) -> HashMap<u64, u64> {
    let mut given = HashMap::new();
    for (_, line) in record.lines() {
        if let Event::Upstream { intent, whole: true, .. } = line.event {
            given.entry(intent).or_insert(line.at);
        }
    }
    given
}

/// A stored response is reported once it is written: from then on all nodes find it. One that was reported while its node could
/// not reach its store is found once it is written, by the next process of its node if that was killed before. `creations`:
/// the calls that requested it; one before the reported one may have created it.
fn retrieved(
    record: &Record<'_>,
    intent: u64,
    creations: &[&Call<'_>],
    creation: &Call<'_>,
    call: &Call<'_>,
    violations: &mut Vec<Violation>,
) {
    let Some(created) = creation.answer else { return };
    if call.refused() != Some(404) || call.began <= created.at {
        return;
    }
    let mut makers = creations.iter().filter(|maker| maker.began <= created.at);
    if !makers.any(|maker| may_be_unknown(record, maker, call)) {
        let lines = creation.lines().into_iter().chain(call.lines());
        report(violations, "response stays", format!("the response to intent {intent} is not found"), lines);
    }
}

/// Whether a response that one call made may be missing from the store when another call asks for it.
fn may_be_unknown(record: &Record<'_>, maker: &Call<'_>, call: &Call<'_>) -> bool {
    let Some(made) = maker.answer else { return true };
    let hung = |fault| matches!(fault, Fault::Paused { node } if node == maker.node);
    let was_written = record.used_the_store(maker) && !record.was_slow(maker);
    !was_written
        && (call.began <= made.at + KNOWN
            || record.is_lost_with_its_process(maker.node, made.at)
            || record
                .was_taken_over(maker.node, made.at, call.began)
                .is_some_and(|started| call.began <= started.saturating_add(RECONNECTING + KNOWN))
            || record
                .store_was_back(maker.node, made.at, call.began)
                .is_some_and(|back| call.began <= back.saturating_add(KNOWN))
            || record.is_troubled(made.at, call.began, hung))
}
