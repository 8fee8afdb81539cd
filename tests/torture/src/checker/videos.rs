//! Usage of videos: the store counts one request for each video that the upstream accepted, whatever happened to the gateway that
//! requested it. The tokens of a video are not reported, so it costs none, and no money.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::record::{Call, Record, report};
use super::{SECOND, Violation};
use crate::expected::FILM;
use crate::history::{Event, Fault, Operation, Outcome};

/// A running gateway learns that the upstream has accepted a video, and writes it into its journal, within this time.
const NOTICED_WITHIN: u64 = SECOND;

/// What is known of the videos of a key.
#[derive(Debug, Default)]
struct ExpectedVideos {
    /// Those that the upstream accepted.
    films: u64,
    /// Of these, those that count: all except those whose gateway was killed before it can have learned of them.
    certain: u64,
    /// Of these, those that count as answered completely: a gateway that stops, hangs or loses its lease abandons some.
    complete: u64,
    /// Submissions that may count although the upstream has not read them.
    started: u64,
    /// The lines of what is not certain.
    lines: Vec<usize>,
}

pub(super) fn check(record: &Record<'_>, violations: &mut Vec<Violation>) {
    let mut known = known(record);
    let mut last = None;
    for (line, one) in record.lines() {
        let Event::Counted { key, model, requests, complete, input, output, cost, .. } = &one.event else {
            continue;
        };
        last = Some(line);
        if model != FILM {
            continue;
        }
        let known = known.remove(key.as_str()).unwrap_or_default();
        compare(key, *requests, *complete, &known, line, violations);
        if (*input, *output, *cost) != (0, 0, 0) {
            let why = format!(
                "{key}: videos take {input} and {output} tokens and {cost} billionths, and no client knows of any"
            );
            report(violations, "videos take no tokens", why, [line]);
        }
    }
    if let Some(line) = last {
        // A key without a row has used nothing.
        for (key, known) in known {
            compare(key, 0, 0, &known, line, violations);
        }
    }
}

/// What is known, by key.
fn known<'h>(record: &Record<'h>) -> BTreeMap<&'h str, ExpectedVideos> {
    let mut submissions: HashMap<(usize, u64), Vec<&Call<'h>>> = HashMap::new();
    for call in record.calls() {
        if let Operation::Submit { intent, .. } = call.operation {
            submissions.entry((call.node, *intent)).or_default().push(call);
        }
    }
    let mut known: BTreeMap<&str, ExpectedVideos> = BTreeMap::new();
    let mut filmed = HashSet::new();
    for (line, one) in record.lines() {
        let Event::Filmed { node, intent } = one.event else { continue };
        let submissions = submissions.get(&(node, intent)).map(Vec::as_slice).unwrap_or_default();
        // Another rule finds a video that was not requested from this node.
        let Some(call) = submissions.iter().rev().find(|call| call.began <= one.at) else { continue };
        filmed.insert(call.line);
        let known = known.entry(call.key).or_default();
        known.films += 1;
        if is_unheard(record, call, one.at) {
            known.lines.extend(call.lines().into_iter().chain([line]));
            continue;
        }
        known.certain += 1;
        known.complete += u64::from(!is_left(record, call));
    }
    for call in submissions.into_values().flatten() {
        // Once a gateway has started a request, it counts, even if the gateway abandons it.
        if !filmed.contains(&call.line) && is_left(record, call) {
            let known = known.entry(call.key).or_default();
            known.started += 1;
            known.lines.extend(call.lines());
        }
    }
    known
}

/// Whether the gateway of a submission was killed before it can have learned that the upstream accepted the video. While it hung,
/// it learned nothing.
fn is_unheard(record: &Record<'_>, call: &Call<'_>, filmed: u64) -> bool {
    // A gateway that has responded has learned of it.
    if call.answer.is_some_and(|answer| !matches!(answer.outcome, Outcome::Lost { .. })) {
        return false;
    }
    let mut known_by = filmed.saturating_add(NOTICED_WITHIN);
    for (from, to) in record.hung(call.node, filmed) {
        if from > known_by {
            break;
        }
        known_by = known_by.saturating_add(to - from.max(filmed));
    }
    // The fault is recorded before it happens: data in transit may arrive after that.
    record.is_troubled(filmed, known_by, |fault| fault == Fault::Killed { node: call.node })
}

/// Whether a gateway may have abandoned a submission: it stopped, or its lease expired because it hung or could not reach its
/// store. A gateway that has reported a task, or rejected the submission as the client's fault, has not.
fn is_left(record: &Record<'_>, call: &Call<'_>) -> bool {
    let Some(answer) = call.answer else { return true };
    if call.succeeded() || call.refused().is_some_and(|status| status < 500) {
        return false;
    }
    let is_of_node = |fault| match fault {
        Fault::Stopped { node } | Fault::Paused { node } => node == call.node,
        _ => false,
    };
    record.is_troubled(call.began, answer.at, is_of_node)
        || record.store_was_back(call.node, call.began, answer.at).is_some()
}

fn compare(
    key: &str,
    requests: u64,
    complete: u64,
    known: &ExpectedVideos,
    line: usize,
    violations: &mut Vec<Violation>,
) {
    let ExpectedVideos { films, certain, complete: whole, started, lines } = known;
    if !(*certain..=films + started).contains(&requests) || !(*whole..=*films).contains(&complete) {
        let why = format!(
            "{key}: the store counts {requests} videos, {complete} of them whole; the upstream made {films}, of which {certain} \
             were known to the gateway and {whole} cannot have been left, and {started} more were started"
        );
        report(violations, "videos are counted", why, lines.iter().copied().chain([line]));
    }
}
