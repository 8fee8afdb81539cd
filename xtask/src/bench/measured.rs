//! Rows and their measurements.

use super::figures::Samples;
use super::installs::Ours;
use super::rows::{Row, Way};

/// One way of a row, with one build of ours.
pub(super) struct Turn<'a> {
    pub(super) way: &'a Way,
    pub(super) ours: &'a Ours,
    /// Its name in the table.
    pub(super) name: String,
    pub(super) samples: Samples,
}

/// A row being measured.
pub(super) struct Measured<'a> {
    pub(super) row: &'static Row,
    pub(super) turns: Vec<Turn<'a>>,
}

impl Measured<'_> {
    /// The measurements of a way.
    pub(super) fn of(&self, name: &str) -> Option<&Samples> {
        self.turns.iter().find(|turn| turn.name == name).map(|turn| &turn.samples)
    }
}
