//! Who counted a call: a process of its node, and perhaps the counters for all nodes.

use super::SECOND;
use super::record::{Call, NODES, Record};
use super::spans::Spans;
use crate::history::{ALONE, Fault};

/// Gateways use restored counters within this time plus a pause. After a loss, that is the first pause; each time a
/// connection doesn't last, it doubles, up to the longest.
const RECONNECTING: u64 = 2_500_000;
const FIRST_PAUSE: u64 = SECOND / 2;
const MAX_PAUSE: u64 = 4 * SECOND;
/// After a connection that lasted this long, the first pause applies again.
const LASTING: u64 = 10 * SECOND;

/// Who counts calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Counting {
    /// A process of a node, by the number of earlier restarts.
    Process { node: usize, starts: usize },
    /// The counters, by the number of times they were away. The standalone node has none.
    Together { since: usize },
}

/// Who counts when, by the faults of a history.
pub(super) struct Counters {
    nodes: [Node; NODES],
    /// When the counters were back, in order.
    restored: Vec<u64>,
}

/// What is known of a node.
struct Node {
    /// When its processes were started again, in order.
    starts: Vec<u64>,
    /// From when to when it was being replaced. A call that begins meanwhile gets to the old process or to the new one, which
    /// listens before its start is recorded.
    restarts: Spans,
    /// For each fault that keeps it from the counters: when it began, and when the node uses them again after it and those before.
    hindered: Vec<(u64, u64)>,
}

impl Counters {
    pub(super) fn of(record: &Record<'_>) -> Self {
        let nodes = std::array::from_fn(|node| {
            let is_end = |fault| matches!(fault, Fault::Killed { node: of } | Fault::Stopped { node: of } if of == node);
            let restarts = record.troubles().filter(|one| is_end(one.fault)).map(|one| (one.from, one.to));
            Node {
                starts: ends(record, is_end),
                restarts: Spans::new(restarts.collect()),
                hindered: hindered(record, node),
            }
        });
        Self { nodes, restored: ends(record, |fault| matches!(fault, Fault::Counters { .. })) }
    }

    /// The process of a node that got a call; none if it was being replaced.
    pub(super) fn process(&self, call: &Call<'_>) -> Option<Counting> {
        let node = self.nodes.get(call.node)?;
        let is_replaced = node.restarts.overlap(call.began, call.began);
        let starts = up_to(&node.starts, call.began);
        (!is_replaced).then_some(Counting::Process { node: call.node, starts })
    }

    /// What counted a call for all nodes; none if its node may have decided alone: the counters were away, or it was just started,
    /// resumed or cut off, or has none.
    pub(super) fn together(&self, call: &Call<'_>) -> Option<Counting> {
        if call.node == ALONE {
            return None;
        }
        let (end, node) = (call.answer?.at, self.nodes.get(call.node)?);
        let started = node.hindered.partition_point(|(from, _)| *from <= end);
        let back = node.hindered[..started].last().map_or(0, |(_, back)| *back);
        (call.began >= back).then(|| Counting::Together { since: up_to(&self.restored, call.began) })
    }
}

/// When faults of a kind ended, in order.
fn ends(record: &Record<'_>, is_of_kind: impl Fn(Fault) -> bool) -> Vec<u64> {
    let mut ends: Vec<u64> =
        record.troubles().filter(|one| is_of_kind(one.fault)).map(|one| one.to).collect();
    ends.sort_unstable();
    ends
}

/// How many of these are not later than a moment.
fn up_to(moments: &[u64], moment: u64) -> usize {
    moments.partition_point(|one| *one <= moment)
}

/// See `Node`.
fn hindered(record: &Record<'_>, node: usize) -> Vec<(u64, u64)> {
    let hindering =
        record.troubles().filter(|one| is_without_counters(node, one.fault) || is_of_node(one.fault, node));
    let (mut back, mut pause) = (0_u64, FIRST_PAUSE);
    let each = hindering.map(|one| {
        // The pauses grow with each loss: the connection began at some time before `back`.
        pause =
            if one.from < back.saturating_add(LASTING) { (pause * 2).min(MAX_PAUSE) } else { FIRST_PAUSE };
        back = back.max(one.to.saturating_add(pause + RECONNECTING));
        (one.from, back)
    });
    each.collect()
}

/// Whether a fault prevents a node from sending what it knows to the counters, or from learning it.
pub(super) fn is_of_node(fault: Fault, of: usize) -> bool {
    match fault {
        Fault::Killed { node }
        | Fault::Stopped { node }
        | Fault::Paused { node }
        | Fault::Cut { node, whole: true, .. } => node == of,
        _ => false,
    }
}

/// Whether a node counts by itself during a fault.
pub(super) fn is_without_counters(node: usize, fault: Fault) -> bool {
    node != ALONE && matches!(fault, Fault::Counters { .. })
}
