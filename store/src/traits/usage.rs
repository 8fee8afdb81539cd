//! What requests consumed, by day, key, model and upstream.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::StoreFuture;
use crate::usage::{Day, ResolvedUsageQuery, Rows, Spent, UsageRow};

/// What a key spent today and this month.
pub type SpentByKey = HashMap<String, (Spent, Spent)>;

/// How long the store remembers a writer's progress after its last batch.
pub const WRITER_KNOWN_FOR: Duration = Duration::from_hours(35 * 24);

/// Identifies the rows being added. A writer that doesn't learn whether a batch was added sends it again
/// under the same number.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Id of the process: a new one each time it starts.
    pub writer: Arc<str>,
    /// Starts at 1 and grows with each batch of the writer.
    pub number: u64,
}

#[cfg(test)]
impl Batch {
    /// The first batch of a new writer.
    pub(crate) fn first() -> Self {
        Self { writer: uuid::Uuid::new_v4().simple().to_string().into(), number: 1 }
    }
}

/// The store of usage. Sums saturate instead of overflowing.
pub trait UsageStore {
    /// Adds usage to the stored totals. A batch that was already added, or is older than one that was, changes
    /// nothing.
    fn add_usage<'s>(&'s self, batch: &'s Batch, rows: &'s Rows) -> StoreFuture<'s, ()>;

    /// Reports usage, sorted, at most [`MAX_LISTED`](super::MAX_LISTED) rows plus one, which shows that there are more.
    fn usage<'s>(&'s self, query: &'s ResolvedUsageQuery) -> StoreFuture<'s, Vec<UsageRow>>;

    /// What each key spent on a day, and in its month up to that day.
    fn spent(&self, day: Day) -> StoreFuture<'_, SpentByKey>;
}
