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

/// Writes each count once: [`Totals`], and what goes over all of its members in their order.
macro_rules! totals {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// Sums over requests.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Totals {
            $($(#[$doc])+ pub $name: u64,)+
        }

        /// Number of counts in [`Totals`].
        pub(crate) const COUNTS: usize = [$(stringify!($name)),+].len();

        impl Totals {
            /// Adds other totals.
            pub fn add(&mut self, other: &Self) {
                $(self.$name = self.$name.saturating_add(other.$name);)+
            }

            /// The counts, in the order of the members.
            pub fn counts(&self) -> [u64; COUNTS] {
                [$(self.$name),+]
            }

            /// The inverse of [`counts`](Self::counts).
            pub fn of([$($name),+]: [u64; COUNTS]) -> Self {
                Self { $($name),+ }
            }
        }
    };
}

totals! {
    /// Requests that an upstream answered.
    requests,
    /// Requests whose answer was sent completely.
    complete,
    /// Requests whose usage is an estimate, wholly or in part.
    estimated,
    /// Input tokens, including those of the next two.
    input,
    /// Tokens read from a cache.
    cached,
    /// Tokens written to a cache.
    cache_write,
    /// Output tokens, including those of the next.
    output,
    /// Reasoning tokens.
    reasoning,
    /// In billionths of the currency, excluding unpriced requests.
    cost,
    /// Requests whose cost is unknown because there is no price.
    unpriced,
    /// Requests that failed: the response had a status of 400 or more, or was a stream that ended in an error.
    failed,
    /// Requests whose answer was sent completely, and whose times are in the next two.
    timed,
    /// Milliseconds from the head of a request until its answer began.
    first_byte_ms,
    /// Milliseconds from the head of a request until its answer was complete.
    latency_ms,
}

/// Totals by place.
pub type Rows = HashMap<UsageKey, Totals>;
