//! Judges a history: finds each response that no order of events explains. Pure: lines in, violations out.
//!
//! What a client learned happened at some moment between its call and its response. So two observations whose times overlap may
//! be in either order, and of two that don't overlap, the first one is the earlier.

mod answers;
mod counting;
mod keys;
mod limits;
mod notifications;
mod reasons;
mod record;
mod repeats;
mod service;
mod spans;
mod tasks;
mod troubles;
mod usage;
mod videos;
mod work;

#[cfg(test)]
mod tests;

use std::fmt;

use self::record::Record;
use crate::history::Line;

/// A second, in the unit of histories.
const SECOND: u64 = 1_000_000;

/// What gateways promise beyond the specification.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Promises {
    /// Whether responses by `Idempotency-Key` are shared by gateways and outlive them.
    pub(crate) shared_replays: bool,
    /// Whether per-minute limits apply to all gateways together.
    pub(crate) shared_limits: bool,
}

/// A response that nothing explains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) rule: &'static str,
    pub(crate) why: String,
    /// Indices of the lines that show it.
    pub(crate) lines: Vec<usize>,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.rule, self.why)
    }
}

/// What was found, and how much of the usage was at risk.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) violations: Vec<Violation>,
    pub(crate) answered: Answered,
    /// How many calls, lines and faults the rules looked at.
    pub(crate) looked_at: u64,
}

/// Requests with a complete response, all of which count.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) requests: u64,
    /// Of these, requests whose usage may not have been in the store when their gateway ended.
    pub(crate) endangered: u64,
}

/// Judges a complete history.
pub(crate) fn check(lines: &[Line], promises: Promises) -> Verdict {
    let record = Record::of(lines);
    let mut violations = Vec::new();
    tasks::check(&record, &mut violations);
    repeats::check(&record, promises, &mut violations);
    notifications::check(&record, &mut violations);
    answers::check(&record, &mut violations);
    keys::check(&record, &mut violations);
    limits::check(&record, promises, &mut violations);
    videos::check(&record, &mut violations);
    reasons::check(&record, &mut violations);
    work::check(&record, &mut violations);
    service::check(&record, &mut violations);
    let answered = usage::check(&record, &mut violations);
    Verdict { violations, answered, looked_at: record.looked_at() }
}
