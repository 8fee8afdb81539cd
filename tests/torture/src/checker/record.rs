//! A history as the rules read it: calls with their responses, and faults with their times.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{SECOND, Violation};
use crate::clients;
use crate::history::{ALONE, Event, Fault, Line, Operation, Outcome};

/// The longest time that usage waits in memory before it is written: half a second, plus the write itself.
const UNWRITTEN: u64 = 2 * SECOND;
/// How long clients wait for a response.
const PATIENCE: u64 = clients::PATIENCE.as_secs() * SECOND;
/// How long gateways may take to use a restored store again.
pub(super) const RECONNECTING: u64 = 6 * SECOND;
/// A gateway that waits longer for its store continues without it, and does not try it again for some seconds.
const WAITS: u64 = SECOND;

/// A call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'h> {
    pub(super) line: usize,
    pub(super) began: u64,
    pub(super) node: usize,
    pub(super) key: &'h str,
    pub(super) operation: &'h Operation,
    pub(super) answer: Option<Answer<'h>>,
}

/// The end of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer<'h> {
    pub(super) line: usize,
    pub(super) at: u64,
    pub(super) outcome: &'h Outcome,
}

impl Call<'_> {
    /// The lines that show it.
    pub(super) fn lines(&self) -> Vec<usize> {
        std::iter::once(self.line).chain(self.answer.map(|answer| answer.line)).collect()
    }

    /// The status of a rejection.
    pub(super) fn refused(&self) -> Option<u16> {
        match self.answer?.outcome {
            Outcome::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// The ID of the response.
    pub(super) fn reported_id(&self) -> Option<&str> {
        match self.answer?.outcome {
            Outcome::Task { task } => Some(task["id"].as_str().unwrap_or_default()),
            Outcome::Text { id, .. } => Some(id),
            _ => None,
        }
    }

    /// Whether the client disconnected before the gateway sent anything.
    pub(super) fn gave_up(&self) -> bool {
        self.answer.is_some_and(|answer| {
            matches!(answer.outcome, Outcome::Lost { .. }) && answer.at.saturating_sub(self.began) >= PATIENCE
        })
    }

    /// Whether the gateway did what was requested.
    pub(super) fn succeeded(&self) -> bool {
        self.answer
            .is_some_and(|answer| !matches!(answer.outcome, Outcome::Refused { .. } | Outcome::Lost { .. }))
    }
}

/// A fault, from its beginning to its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trouble {
    pub(super) fault: Fault,
    pub(super) from: u64,
    pub(super) to: u64,
}

/// See the module.
pub(super) struct Record<'h> {
    pub(super) lines: &'h [Line],
    pub(super) calls: Vec<Call<'h>>,
    pub(super) troubles: Vec<Trouble>,
    /// When the upstream began and finished its response to each intent: none if it got more than one request, or did not finish.
    answering: HashMap<u64, Answering>,
}

/// How the upstream answered an intent.
#[derive(Debug, Clone, Copy, Default)]
struct Answering {
    begun: u64,
    times: u64,
    ended: Option<u64>,
}

impl<'h> Record<'h> {
    pub(super) fn of(lines: &'h [Line]) -> Self {
        let (mut calls, mut by_number) = (Vec::new(), HashMap::new());
        let mut troubles: Vec<Trouble> = Vec::new();
        let mut answering: HashMap<u64, Answering> = HashMap::new();
        for (number, line) in lines.iter().enumerate() {
            match &line.event {
                Event::Called { call, node, key, operation } => {
                    by_number.insert(*call, calls.len());
                    let (node, began) = (*node, line.at);
                    calls.push(Call { line: number, began, node, key, operation, answer: None });
                }
                Event::Answered { call, outcome } => {
                    let call = by_number.get(call).and_then(|place| calls.get_mut(*place));
                    if let Some(call) = call {
                        call.answer = Some(Answer { line: number, at: line.at, outcome });
                    }
                }
                Event::Begun { intent, .. } => {
                    let answering = answering.entry(*intent).or_default();
                    answering.begun = line.at;
                    answering.times += 1;
                }
                Event::Upstream { intent, whole: true, .. } => {
                    answering.entry(*intent).or_default().ended = Some(line.at);
                }
                Event::Fault { fault, begins: true } => {
                    troubles.push(Trouble { fault: *fault, from: line.at, to: u64::MAX });
                }
                Event::Fault { fault, begins: false } => {
                    let open =
                        troubles.iter_mut().rev().find(|one| one.fault == *fault && one.to == u64::MAX);
                    if let Some(open) = open {
                        open.to = line.at;
                    }
                }
                _ => {}
            }
        }
        Self { lines, calls, troubles, answering }
    }

    /// When the upstream started and finished answering an intent, if it got one request.
    pub(super) fn answering(&self, intent: u64) -> Option<(u64, u64)> {
        let answering = self.answering.get(&intent).filter(|one| one.times == 1)?;
        Some((answering.begun, answering.ended?))
    }

    /// The line after which there are no faults, and its time. None: the history ends before.
    pub(super) fn quiet(&self) -> Option<(usize, u64)> {
        let place = self.lines.iter().position(|line| matches!(line.event, Event::Quiet))?;
        Some((place, self.lines[place].at))
    }

    /// Whether a fault of a kind was active at some time between these two.
    pub(super) fn is_troubled(&self, from: u64, to: u64, of_kind: impl Fn(Fault) -> bool) -> bool {
        self.troubles.iter().any(|one| of_kind(one.fault) && one.from <= to && from <= one.to)
    }

    /// When a node's store became usable again, after it was away or cut off, at some time between these two.
    pub(super) fn store_was_back(&self, node: usize, from: u64, to: u64) -> Option<u64> {
        let away = self.troubles.iter().filter(|one| is_without_store(node, one.fault));
        let away = away.map(|one| (one.from, one.to.saturating_add(RECONNECTING)));
        away.filter(|(begun, back)| *begun <= to && from <= *back).map(|(_, back)| back).max()
    }

    /// Whether a node used its store during a call: a node that finds it unavailable doesn't try again for some seconds.
    pub(super) fn used_the_store(&self, call: &Call<'_>) -> bool {
        let Some(answer) = call.answer else { return false };
        let from = call.began.saturating_sub(RECONNECTING);
        self.store_was_back(call.node, call.began, answer.at).is_none()
            && !self.is_troubled(from, answer.at, |fault| fault == Fault::Paused { node: call.node })
    }

    /// Whether the node of a call was so slow, then or shortly before, that it may have given up on its store.
    pub(super) fn was_slow(&self, call: &Call<'_>) -> bool {
        let Some(answer) = call.answer else { return true };
        let since = call.began.saturating_sub(RECONNECTING);
        self.calls.iter().filter(|other| other.node == call.node && other.began <= answer.at).any(|other| {
            let ended = other.answer.map_or(u64::MAX, |answer| answer.at);
            ended >= since && ended - other.began > WAITS
        })
    }

    /// Whether what a node knew at a time may not have been in the store when it ended: a killed gateway has not written the last
    /// of it, and a gateway writes nothing while its store is away or it hangs. A gateway that shuts down writes what it knows,
    /// if the store is available.
    pub(super) fn may_be_unwritten(&self, node: usize, at: u64) -> bool {
        self.troubles.iter().any(|end| match end.fault {
            Fault::Killed { node: of } if of == node => {
                let unwritten = end.from.saturating_sub(UNWRITTEN);
                (self.unwritten_since(node, unwritten, end.from)..=end.from).contains(&at)
            }
            Fault::Stopped { node: of } if of == node => {
                let unwritten = self.unwritten_since(node, end.from, end.to);
                unwritten < end.from && (unwritten..=end.to).contains(&at)
            }
            _ => false,
        })
    }

    /// When the node's process started that has what an earlier process reported at a time and left in its spool, because the
    /// store was away. None: no process had to.
    pub(super) fn was_taken_over(&self, node: usize, at: u64, until: u64) -> Option<u64> {
        let ends = self.troubles.iter().filter(|one| one.from <= until && at <= one.to);
        let ends = ends.filter(
            |one| matches!(one.fault, Fault::Killed { node: of } | Fault::Stopped { node: of } if of == node),
        );
        ends.map(|one| one.to).max().filter(|_| self.may_be_unwritten(node, at))
    }

    /// Whether a node's spool had no room for what it reported at a time, and its process ended.
    pub(super) fn is_lost_with_its_process(&self, node: usize, at: u64) -> bool {
        node == ALONE
            && self.may_be_unwritten(node, at)
            && self.is_troubled(at.saturating_sub(WAITS), at, |fault| fault == Fault::Disk)
    }

    /// The time since which a node's data may be unwritten: at most `since`, and earlier if a fault began while data was
    /// unwritten.
    fn unwritten_since(&self, node: usize, mut since: u64, until: u64) -> u64 {
        loop {
            let before = self.troubles.iter().filter(|one| {
                let back = match one.fault {
                    Fault::Paused { node: of } if of == node => one.to,
                    fault if is_without_store(node, fault) => one.to.saturating_add(RECONNECTING),
                    _ => return false,
                };
                one.from <= until && since <= back
            });
            match before.map(|one| one.from.saturating_sub(UNWRITTEN)).min() {
                Some(wider) if wider < since => since = wider,
                _ => return since,
            }
        }
    }
}

/// Whether a node cannot use its store during a fault.
fn is_without_store(node: usize, fault: Fault) -> bool {
    match fault {
        Fault::Disk => node == ALONE,
        Fault::Store => node != ALONE,
        Fault::Cut { node: of, .. } => of == node,
        _ => false,
    }
}

/// A task object as every observer must see it: without the host of the file's URL, which is the node's, and without the estimate
/// in the response to the submission.
pub(super) fn essence(task: &Value) -> Value {
    let mut output = task["output"].clone();
    if let Some(url) = output["url"].as_str() {
        let path = url.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
        output["url"] = json!(path.map_or(url, |(_, path)| path));
    }
    json!({ "id": task["id"], "status": task["status"], "created": task["created"], "output": output,
        "error": task["error"] })
}

/// How far a task is: a state comes after those with lower numbers. None: it is not a state of section 3.
pub(super) fn rank(task: &Value) -> Option<u8> {
    match task["status"].as_str()? {
        "pending" => Some(0),
        // The response to a submission, the only one with an estimate, always says processing; the task may still have to wait.
        "processing" if !task["estimated_time"].is_null() => Some(0),
        "processing" => Some(1),
        "completed" | "failed" => Some(2),
        _ => None,
    }
}

/// Whether a task has ended.
pub(super) fn is_final(task: &Value) -> bool {
    rank(task) == Some(2)
}

/// Adds a violation.
pub(super) fn report(
    violations: &mut Vec<Violation>,
    rule: &'static str,
    why: impl Into<String>,
    lines: impl IntoIterator<Item = usize>,
) {
    let mut lines: Vec<usize> = lines.into_iter().collect();
    lines.sort_unstable();
    violations.push(Violation { rule, why: why.into(), lines });
}
