//! The faults of a history with their times, also by what they are of.

use super::spans::Spans;
use crate::history::{Event, Fault, Line};

/// A fault, from its beginning to its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trouble {
    pub(super) fault: Fault,
    pub(super) from: u64,
    pub(super) to: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Troubles {
    all: Vec<Trouble>,
    by_kind: Vec<(Fault, Spans)>,
}

impl Troubles {
    pub(super) fn of(lines: &[Line]) -> Self {
        let mut all: Vec<Trouble> = Vec::new();
        for line in lines {
            let Event::Fault { fault, begins } = line.event else { continue };
            if begins {
                all.push(Trouble { fault, from: line.at, to: u64::MAX });
            } else if let Some(open) =
                all.iter_mut().rev().find(|one| one.fault == fault && one.to == u64::MAX)
            {
                open.to = line.at;
            }
        }
        let mut by_kind: Vec<(Fault, Vec<(u64, u64)>)> = Vec::new();
        for Trouble { fault, from, to } in &all {
            let kind = kind(*fault);
            match by_kind.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, times)) => times.push((*from, *to)),
                None => by_kind.push((kind, vec![(*from, *to)])),
            }
        }
        let by_kind = by_kind.into_iter().map(|(kind, times)| (kind, Spans::new(times))).collect();
        Self { all, by_kind }
    }

    /// All, in the order of their beginnings. To look for some of them at each call takes the square of a history's length:
    /// `of_kind` doesn't.
    pub(super) fn all(&self) -> &[Trouble] {
        &self.all
    }

    /// Those of a kind, grouped by what they are of.
    pub(super) fn of_kind(&self, is_of_kind: impl Fn(Fault) -> bool) -> impl Iterator<Item = &Spans> {
        self.by_kind.iter().filter(move |(kind, _)| is_of_kind(*kind)).map(|(_, spans)| spans)
    }
}

/// Faults of one kind differ only in what no rule looks at: by how much a clock is wrong.
fn kind(fault: Fault) -> Fault {
    match fault {
        Fault::Clock { node, .. } => Fault::Clock { node, by_ms: 0 },
        other => other,
    }
}
