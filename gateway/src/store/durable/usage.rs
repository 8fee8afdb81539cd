//! What requests took, by day, key, model and upstream.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::Stored;
use crate::usage::{Day, ResolvedUsageQuery, Rows, Spent, UsageRow};

/// What a key spent today and this month.
pub(crate) type SpentByKey = HashMap<String, (Spent, Spent)>;

/// How long it is known after its last batch how far a writer has come.
pub(crate) const WRITER_KNOWN_FOR: Duration = Duration::from_hours(35 * 24);

/// Which rows are added. Whoever does not hear how adding them ended tells them again under the same number.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    /// Of the process: another one each time it starts.
    pub(crate) writer: Arc<str>,
    /// Grows from 1 with each batch of the writer.
    pub(crate) number: u64,
}

#[cfg(test)]
impl Batch {
    /// The first one of a new writer.
    pub(crate) fn first() -> Self {
        Self { writer: uuid::Uuid::new_v4().simple().to_string().into(), number: 1 }
    }
}

/// The store of usage. Sums do not overflow: they stay at the largest number.
pub(crate) trait UsageStore {
    /// Adds usage to what is kept. A batch that was added already, or that is older than that, changes nothing.
    fn add_usage<'s>(&'s self, batch: &'s Batch, rows: &'s Rows) -> Stored<'s, ()>;

    /// Reports usage, sorted, at most [`LONGEST_LIST`](super::LONGEST_LIST) rows and one more, which says that there are more.
    fn usage<'s>(&'s self, asked: &'s ResolvedUsageQuery) -> Stored<'s, Vec<UsageRow>>;

    /// What the keys spent on a day, and in its month until then.
    fn spent(&self, day: Day) -> Stored<'_, SpentByKey>;
}
