//! A history as the rules read it: calls with their responses, and faults with their times.

use std::cell::Cell;
use std::collections::HashMap;

use serde_json::{Value, json};

use super::spans::Spans;
use super::troubles::{Trouble, Troubles};
use super::{SECOND, Violation};
use crate::clients;
use crate::history::{ALONE, Event, Fault, Line, Operation, Outcome};

/// How many nodes there are.
pub(super) const NODES: usize = ALONE + 1;
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

/// See the module.
pub(super) struct Record<'h> {
    lines: &'h [Line],
    calls: Vec<Call<'h>>,
    troubles: Troubles,
    /// The calls that each node was so slow to answer that it may have given up on its store, from their beginnings to their ends.
    slow: [Spans; NODES],
    /// When what each node knew may not have been in the store when it ended.
    unwritten: [Spans; NODES],
    /// The line after which there are no faults.
    quiet: Option<usize>,
    /// When the upstream began and finished its response to each intent: none if it got more than one request, or did not finish.
    answering: HashMap<u64, Answering>,
    /// See `looked_at`.
    looked_at: Cell<u64>,
}

/// How the upstream answered an intent.
#[derive(Debug, Clone, Copy, Default)]
struct Answering {
    started: u64,
    times: u64,
    ended: Option<u64>,
}

impl<'h> Record<'h> {
    pub(super) fn of(lines: &'h [Line]) -> Self {
        let (mut calls, mut by_number) = (Vec::new(), HashMap::new());
        let mut answering: HashMap<u64, Answering> = HashMap::new();
        let mut quiet = None;
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
                    answering.started = line.at;
                    answering.times += 1;
                }
                Event::Upstream { intent, whole: true, .. } => {
                    answering.entry(*intent).or_default().ended = Some(line.at);
                }
                Event::Quiet => quiet = quiet.or(Some(number)),
                _ => {}
            }
        }
        let slow = slow(&calls);
        let looked_at = Cell::new((lines.len() + calls.len()) as u64);
        let (troubles, unwritten) = (Troubles::of(lines), Default::default());
        let mut record = Self { lines, calls, troubles, slow, unwritten, quiet, answering, looked_at };
        record.unwritten = std::array::from_fn(|node| record.unwritten_at(node));
        record
    }

    /// How many calls, lines and groups of faults the rules have looked at: a measure of their work.
    pub(super) fn looked_at(&self) -> u64 {
        self.looked_at.get()
    }

    fn looks_at(&self, count: u64) {
        self.looked_at.set(self.looked_at.get() + count);
    }

    /// All calls, in the order in which they began. A rule that looks through them for each call, task or key takes the square of
    /// a history's length: it groups them first.
    pub(super) fn calls(&self) -> impl Iterator<Item = &Call<'h>> {
        self.calls.iter().inspect(|_| self.looks_at(1))
    }

    /// All lines with their numbers, in order.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &'h Line)> {
        self.lines.iter().enumerate().inspect(|_| self.looks_at(1))
    }

    /// The last line, and its number.
    pub(super) fn end(&self) -> Option<(usize, &'h Line)> {
        self.lines.iter().enumerate().next_back()
    }

    /// All faults, in the order of their beginnings.
    pub(super) fn troubles(&self) -> impl Iterator<Item = &Trouble> {
        self.troubles.all().iter().inspect(|_| self.looks_at(1))
    }

    fn troubles_of(&self, is_of_kind: impl Fn(Fault) -> bool) -> impl Iterator<Item = &Spans> {
        self.troubles.of_kind(is_of_kind).inspect(|_| self.looks_at(1))
    }

    /// When the upstream started and finished answering an intent, if it got one request.
    pub(super) fn answering(&self, intent: u64) -> Option<(u64, u64)> {
        let answering = self.answering.get(&intent).filter(|one| one.times == 1)?;
        Some((answering.started, answering.ended?))
    }

    /// The line after which there are no faults, and its time. None: the history ends before.
    pub(super) fn quiet(&self) -> Option<(usize, u64)> {
        self.quiet.map(|place| (place, self.lines[place].at))
    }

    /// Whether a fault of a kind was active at some time between these two.
    pub(super) fn is_troubled(&self, from: u64, to: u64, is_of_kind: impl Fn(Fault) -> bool) -> bool {
        self.troubles_of(is_of_kind).any(|spans| spans.overlap(from, to))
    }

    /// When a node's store became usable again, after it was away or cut off, at some time between these two.
    pub(super) fn store_was_back(&self, node: usize, from: u64, to: u64) -> Option<u64> {
        let away = self.troubles_of(|fault| is_without_store(node, fault));
        let ends = away.filter_map(|spans| spans.last_end(from.saturating_sub(RECONNECTING), to));
        ends.max().map(|end| end.saturating_add(RECONNECTING))
    }

    /// When a node hung, at a time or later, in order.
    pub(super) fn hung(&self, node: usize, since: u64) -> impl Iterator<Item = (u64, u64)> {
        let hung = self.troubles_of(move |fault| fault == Fault::Paused { node });
        hung.flat_map(move |spans| spans.ending_after(since)).inspect(|_| self.looks_at(1))
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
        self.looks_at(1);
        self.slow.get(call.node).is_some_and(|slow| slow.overlap(since, answer.at))
    }

    /// Whether what a node knew at a time may not have been in the store when it ended: a killed gateway has not written the last
    /// of it, and a gateway writes nothing while its store is away or it hangs. A gateway that shuts down writes what it knows,
    /// if the store is available.
    pub(super) fn may_be_unwritten(&self, node: usize, at: u64) -> bool {
        self.looks_at(1);
        self.unwritten.get(node).is_some_and(|unwritten| unwritten.overlap(at, at))
    }

    /// When that is, for each end of a node.
    fn unwritten_at(&self, node: usize) -> Spans {
        let unwritten = self.troubles().filter_map(|end| match end.fault {
            Fault::Killed { node: of } if of == node => {
                let unwritten = end.from.saturating_sub(UNWRITTEN);
                Some((self.unwritten_since(node, unwritten, end.from), end.from))
            }
            Fault::Stopped { node: of } if of == node => {
                let unwritten = self.unwritten_since(node, end.from, end.to);
                (unwritten < end.from).then_some((unwritten, end.to))
            }
            _ => None,
        });
        Spans::new(unwritten.collect())
    }

    /// When the node's process started that has what an earlier process reported at a time and left in its spool, because the
    /// store was away. None: no process had to.
    pub(super) fn was_taken_over(&self, node: usize, at: u64, until: u64) -> Option<u64> {
        let ends = self.troubles_of(
            |fault| matches!(fault, Fault::Killed { node: of } | Fault::Stopped { node: of } if of == node),
        );
        let last = ends.filter_map(|spans| spans.last_end(at, until)).max();
        last.filter(|_| self.may_be_unwritten(node, at))
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
            let hung = self.troubles_of(|fault| fault == Fault::Paused { node });
            let hung = hung.filter_map(|spans| spans.first_begin(since, until));
            let away = self.troubles_of(|fault| is_without_store(node, fault));
            let away = away.filter_map(|spans| spans.first_begin(since.saturating_sub(RECONNECTING), until));
            match hung.chain(away).min().map(|started| started.saturating_sub(UNWRITTEN)) {
                Some(wider) if wider < since => since = wider,
                _ => return since,
            }
        }
    }
}

/// The calls that each node took longer to answer than it waits for its store, from their beginnings to their ends.
fn slow(calls: &[Call<'_>]) -> [Spans; NODES] {
    let mut slow: [Vec<(u64, u64)>; NODES] = Default::default();
    for call in calls {
        let ended = call.answer.map_or(u64::MAX, |answer| answer.at);
        if ended - call.began > WAITS
            && let Some(slow) = slow.get_mut(call.node)
        {
            slow.push((call.began, ended));
        }
    }
    slow.map(Spans::new)
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
