//! Requests with an `Idempotency-Key`: one is executed, and repeated ones get its answer. The process that executes it holds
//! its lease. When the lease expires, the next request gets a new one, and the old lease can no longer change anything: lease
//! numbers are random, since the key may have been freed and taken again in the meantime.

use std::sync::Arc;
use std::time::Duration;

use super::StoreFuture;
use super::leases::Lease;

/// Maximum number of answers per operation in memory; the oldest are removed first.
pub const MAX_ANSWERS: usize = 1_000;
/// Average space per answer, in bytes.
const ROOM_OF_ANSWER: usize = 8 * 1024;
/// Maximum size of the answers per operation in memory, in bytes.
pub const MAX_ANSWER_BYTES: usize = MAX_ANSWERS * ROOM_OF_ANSWER;
/// Overhead of an answer in addition to its bytes: its table entries.
pub const ANSWER_OVERHEAD: usize = 512;

/// How long an expired lease is still known, unless the next one is taken: the answer of its holder may be late.
pub(crate) const UNANSWERED_FOR: Duration = Duration::from_mins(5);

/// A request with an idempotency key.
#[derive(Debug, Clone)]
pub struct KeyedRequest {
    /// Digest of the operation, the API key and the idempotency key, in hex.
    pub slot: String,
    /// Id of the operation.
    pub operation: &'static str,
    /// Id of the API key.
    pub owner: Arc<str>,
    /// Digest of the request.
    pub fingerprint: [u8; 32],
}

/// The state of a request in the store.
#[derive(Debug, PartialEq, Eq)]
pub enum ReplaySlot {
    /// Nothing: execute the request.
    First(Lease),
    /// Another request with the same key.
    Other,
    /// The same request, in progress.
    UnderWay,
    /// The same request, and its answer.
    Answered(Vec<u8>),
}

/// Space for the answers of an operation.
#[derive(Debug, Clone, Copy)]
pub struct AnswerQuota {
    /// Maximum number of answers. All of them together may take 8 KiB each.
    pub answers: usize,
    /// The share of it that the answers of one API key may take.
    pub percent: u8,
}

/// The store of answers by idempotency key. The store's clock counts, because the clocks of the processes that use it
/// differ.
pub trait ReplayStore {
    /// Takes the lease of a request for some time, unless another process holds it or the request is answered. `number`: a random
    /// number, which becomes the lease's. A caller that repeats the call with it, because it got no reply, gets the same
    /// lease.
    fn reserve_as<'s>(
        &'s self,
        keyed: &'s KeyedRequest,
        number: i64,
        lasts: Duration,
    ) -> StoreFuture<'s, ReplaySlot>;

    /// As [`reserve_as`](Self::reserve_as), with a new number.
    #[cfg(test)]
    fn reserve<'s>(&'s self, keyed: &'s KeyedRequest, lasts: Duration) -> StoreFuture<'s, ReplaySlot> {
        self.reserve_as(keyed, rand::random(), lasts)
    }

    /// Stores the answer to a request for some time. False if another process has taken the next lease, or this one has been
    /// removed. Old answers are evicted; in a database only after some more answers, and in the background.
    fn keep_answer<'s>(
        &'s self,
        lease: &'s Lease,
        answer: &'s [u8],
        lasts: Duration,
        room: AnswerQuota,
    ) -> StoreFuture<'s, bool>;

    /// Frees a key whose request got no answer.
    fn free_key<'s>(&'s self, lease: &'s Lease) -> StoreFuture<'s, ()>;

    /// Renews the leases of requests in progress: they now last this long.
    fn renew_keys<'s>(&'s self, leases: &'s [Lease], last: Duration) -> StoreFuture<'s, ()>;

    /// Removes expired answers, and leases that expired `UNANSWERED_FOR` ago.
    fn forget_replays(&self) -> StoreFuture<'_, ()>;

    /// Makes all of them older by this much, for tests.
    #[cfg(test)]
    fn age_replays(&self, by: Duration) -> StoreFuture<'_, ()>;
}

impl AnswerQuota {
    /// This space, limited to what is allowed in memory.
    pub(crate) fn in_memory(self) -> Self {
        Self { answers: self.answers.min(MAX_ANSWERS), ..self }
    }

    /// Maximum answers of an operation, and their bytes.
    pub(crate) fn of_all(self) -> (usize, usize) {
        (self.answers, self.answers.saturating_mul(ROOM_OF_ANSWER))
    }

    /// The part of it that one API key may take.
    pub(crate) fn of_key(self) -> (usize, usize) {
        let part = |most: usize| most.saturating_mul(usize::from(self.percent.min(100))) / 100;
        let (answers, bytes) = self.of_all();
        (part(answers), part(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_quota_has_8_kib_per_answer_and_is_bounded_in_memory() {
        let room = AnswerQuota { answers: 10_000, percent: 50 };
        assert_eq!(room.of_all(), (10_000, 81_920_000));
        assert_eq!(room.of_key(), (5_000, 40_960_000));
        assert_eq!(room.in_memory().of_all(), (MAX_ANSWERS, MAX_ANSWER_BYTES));
        let small = AnswerQuota { answers: 10, percent: 100 };
        assert_eq!(small.in_memory().of_key(), (10, 81_920));
    }
}
