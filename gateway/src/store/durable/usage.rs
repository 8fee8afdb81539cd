//! What requests took, by day, key, model and upstream.

use std::collections::HashMap;

use super::Stored;
use crate::usage::{Asked, Day, Rows, Spent, UsageRow};

/// What a key spent today and this month.
pub(crate) type SpentByKey = HashMap<String, (Spent, Spent)>;

/// The store of usage. Sums do not overflow: they stay at the largest number.
pub(crate) trait UsageStore {
    /// Adds usage to what is kept.
    fn add_usage<'s>(&'s self, rows: &'s Rows) -> Stored<'s, ()>;

    /// Reports usage, sorted, at most [`LONGEST_LIST`](super::LONGEST_LIST) rows and one more, which says that there are more.
    fn usage<'s>(&'s self, asked: &'s Asked) -> Stored<'s, Vec<UsageRow>>;

    /// What the keys spent on a day, and in its month until then.
    fn spent(&self, day: Day) -> Stored<'_, SpentByKey>;
}
