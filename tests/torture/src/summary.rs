//! What a history contains, in numbers, for those who write a run down.

use std::collections::BTreeMap;
use std::fmt;

use crate::history::{Event, Fault, Line, Outcome};

/// See the module.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    calls: u64,
    /// The responses to them, by outcome.
    outcomes: BTreeMap<&'static str, u64>,
    notifications: u64,
    /// How often each fault began, and for how many microseconds it lasted at most.
    faults: BTreeMap<&'static str, (u64, u64)>,
}

impl Summary {
    pub(crate) fn of(lines: &[Line]) -> Self {
        let (mut summary, mut open) = (Self::default(), Vec::<(Fault, u64)>::new());
        for line in lines {
            match &line.event {
                Event::Called { .. } => summary.calls += 1,
                Event::Answered { outcome, .. } => {
                    *summary.outcomes.entry(name_of(outcome)).or_default() += 1;
                }
                Event::Delivered { .. } => summary.notifications += 1,
                Event::Fault { fault, begins: true } => {
                    summary.faults.entry(kind_of(*fault)).or_default().0 += 1;
                    open.push((*fault, line.at));
                }
                Event::Fault { fault, begins: false } => {
                    if let Some(place) = open.iter().position(|(started, _)| started == fault) {
                        let (_, since) = open.swap_remove(place);
                        let longest = &mut summary.faults.entry(kind_of(*fault)).or_default().1;
                        *longest = (*longest).max(line.at - since);
                    }
                }
                _ => {}
            }
        }
        summary
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} calls:", self.calls)?;
        for (name, count) in &self.outcomes {
            write!(formatter, " {count} {name},")?;
        }
        write!(formatter, " and {} notifications\nfaults:", self.notifications)?;
        let mut before = "";
        for (kind, (count, longest)) in &self.faults {
            let tenths = longest / 100_000;
            write!(formatter, "{before} {count} × {kind} (up to {}.{} s)", tenths / 10, tenths % 10)?;
            before = ",";
        }
        Ok(())
    }
}

fn name_of(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Text { .. } => "texts",
        Outcome::Task { .. } => "tasks",
        Outcome::File { .. } => "files",
        Outcome::Done => "changes of keys",
        Outcome::Refused { status: 500.., .. } => "refused with 5xx",
        Outcome::Refused { .. } => "refused with 4xx",
        Outcome::Lost { .. } => "lost",
    }
}

fn kind_of(fault: Fault) -> &'static str {
    match fault {
        Fault::Killed { .. } => "killed",
        Fault::Stopped { .. } => "stopped",
        Fault::Paused { .. } => "hung",
        Fault::Cut { whole: false, .. } => "cut off from the database",
        Fault::Cut { whole: true, .. } => "cut off",
        Fault::Clock { .. } => "clock wrong",
        Fault::Store => "database away",
        Fault::Counters { hang: false } => "counters away",
        Fault::Counters { hang: true } => "counters hung",
        Fault::Bucket => "bucket refused",
        Fault::BucketAway { hang: false } => "bucket away",
        Fault::BucketAway { hang: true } => "bucket hung",
        Fault::Disk => "disk full",
        Fault::Receiver => "receiver refused",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Operation;

    #[test]
    fn summary_counts_calls_outcomes_and_faults() {
        let at = |at: u64, event: Event| Line { at, event };
        let fault = Fault::Killed { node: 1 };
        let operation = Operation::LookUp { task: "a".to_owned() };
        let lines = [
            at(0, Event::Called { call: 1, node: 0, key: "k".to_owned(), operation }),
            at(1, Event::Fault { fault, begins: true }),
            at(
                2,
                Event::Answered { call: 1, outcome: Outcome::Refused { status: 503, code: String::new() } },
            ),
            at(1_500_001, Event::Fault { fault, begins: false }),
            at(1_500_002, Event::Fault { fault: Fault::Killed { node: 0 }, begins: true }),
        ];
        assert_eq!(
            Summary::of(&lines).to_string(),
            "1 calls: 1 refused with 5xx, and 0 notifications\nfaults: 2 × killed (up to 1.5 s)"
        );
    }
}
