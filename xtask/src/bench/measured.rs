//! Rows and their measurements.

use super::figures::Samples;
use super::installs::OurPackages;
use super::rows::{BenchRow, Contender};

/// One way of a row, with one build of ours.
pub(super) struct BenchCase<'a> {
    pub(super) way: &'a Contender,
    pub(super) ours: &'a OurPackages,
    /// Its name in the table.
    pub(super) name: String,
    pub(super) samples: Samples,
}

/// A row being measured.
pub(super) struct Measured<'a> {
    pub(super) row: &'static BenchRow,
    pub(super) turns: Vec<BenchCase<'a>>,
}

impl Measured<'_> {
    /// The measurements of a way.
    pub(super) fn of(&self, name: &str) -> Option<&Samples> {
        self.turns.iter().find(|turn| turn.name == name).map(|turn| &turn.samples)
    }
}
