//! Usage totals, and their grouping.

use std::collections::HashMap;
use std::sync::Arc;

use super::Day;

/// What usage is grouped by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct UsageKey {
    pub(crate) day: Day,
    /// Id of the key.
    pub(crate) key: Arc<str>,
    pub(crate) model: Arc<str>,
    pub(crate) upstream: Arc<str>,
}

/// Sums over requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) requests: u64,
    /// Requests whose answer was sent completely.
    pub(crate) complete: u64,
    /// Requests whose usage is an estimate, wholly or in part.
    pub(crate) estimated: u64,
    /// Input tokens, including those of the next two.
    pub(crate) input: u64,
    pub(crate) cached: u64,
    pub(crate) cache_write: u64,
    /// Output tokens, including those of the next.
    pub(crate) output: u64,
    pub(crate) reasoning: u64,
    /// In billionths of the currency, excluding unpriced requests.
    pub(crate) cost: u64,
    /// Requests whose cost is unknown because there is no price.
    pub(crate) unpriced: u64,
}

impl Totals {
    pub(crate) fn add(&mut self, other: &Self) {
        let sums = [
            (&mut self.requests, other.requests),
            (&mut self.complete, other.complete),
            (&mut self.estimated, other.estimated),
            (&mut self.input, other.input),
            (&mut self.cached, other.cached),
            (&mut self.cache_write, other.cache_write),
            (&mut self.output, other.output),
            (&mut self.reasoning, other.reasoning),
            (&mut self.cost, other.cost),
            (&mut self.unpriced, other.unpriced),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more);
        }
    }

    /// The counts, in the order of the members.
    pub(crate) fn counts(&self) -> [u64; 10] {
        let Self {
            requests,
            complete,
            estimated,
            input,
            cached,
            cache_write,
            output,
            reasoning,
            cost,
            unpriced,
        } = *self;
        [requests, complete, estimated, input, cached, cache_write, output, reasoning, cost, unpriced]
    }

    /// The inverse of [`counts`](Self::counts).
    pub(crate) fn of(counts: [u64; 10]) -> Self {
        let [requests, complete, estimated, input, cached, cache_write, output, reasoning, cost, unpriced] =
            counts;
        Self { requests, complete, estimated, input, cached, cache_write, output, reasoning, cost, unpriced }
    }
}

/// Totals by place.
pub(crate) type Rows = HashMap<UsageKey, Totals>;

/// Which usage is reported together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UsageGroup {
    /// Number of the batch in which the store gets it.
    pub(crate) batch: u64,
    /// Incremented whenever the journal starts over with the sums so far.
    pub(crate) part: u64,
}
