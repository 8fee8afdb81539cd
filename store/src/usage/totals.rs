//! Usage totals, and their grouping.

use std::collections::HashMap;
use std::sync::Arc;

use super::Day;

/// What usage is grouped by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UsageKey {
    /// The day, in UTC.
    pub day: Day,
    /// Id of the key.
    pub key: Arc<str>,
    /// The configured model; empty: of failed requests whose model is not known.
    pub model: Arc<str>,
    /// The upstream that answered, or that failed; empty: none did.
    pub upstream: Arc<str>,
}

/// Sums over requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests that an upstream answered.
    pub requests: u64,
    /// Requests whose answer was sent completely.
    pub complete: u64,
    /// Requests whose usage is an estimate, wholly or in part.
    pub estimated: u64,
    /// Input tokens, including those of the next two.
    pub input: u64,
    /// Tokens read from a cache.
    pub cached: u64,
    /// Tokens written to a cache.
    pub cache_write: u64,
    /// Output tokens, including those of the next.
    pub output: u64,
    /// Reasoning tokens.
    pub reasoning: u64,
    /// In billionths of the currency, excluding unpriced requests.
    pub cost: u64,
    /// Requests whose cost is unknown because there is no price.
    pub unpriced: u64,
    /// Requests that failed: the response had a status of 400 or more, or was a stream that ended in an error.
    pub failed: u64,
    /// Requests whose answer was sent completely, and whose times are in the next two.
    pub timed: u64,
    /// Milliseconds from the head of a request until its answer began.
    pub first_byte_ms: u64,
    /// Milliseconds from the head of a request until its answer was complete.
    pub latency_ms: u64,
}

/// Number of counts in [`Totals`].
pub(crate) const COUNTS: usize = 14;

impl Totals {
    /// Adds other totals.
    pub fn add(&mut self, other: &Self) {
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
            (&mut self.failed, other.failed),
            (&mut self.timed, other.timed),
            (&mut self.first_byte_ms, other.first_byte_ms),
            (&mut self.latency_ms, other.latency_ms),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more);
        }
    }

    /// The counts, in the order of the members.
    pub fn counts(&self) -> [u64; COUNTS] {
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
            failed,
            timed,
            first_byte_ms,
            latency_ms,
        } = *self;
        [
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
            failed,
            timed,
            first_byte_ms,
            latency_ms,
        ]
    }

    /// The inverse of [`counts`](Self::counts).
    pub fn of(counts: [u64; COUNTS]) -> Self {
        let [
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
            failed,
            timed,
            first_byte_ms,
            latency_ms,
        ] = counts;
        Self {
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
            failed,
            timed,
            first_byte_ms,
            latency_ms,
        }
    }
}

/// Totals by place.
pub type Rows = HashMap<UsageKey, Totals>;
