//! Requests with an `Idempotency-Key`: one carries each out, and its answer is there for those that repeat it. Whoever carries it
//! out has its lease. When that has run out, the next request gets another one, and the one before changes nothing any more: its
//! number is random, since the key may have been freed and taken again meanwhile.

use std::sync::Arc;
use std::time::Duration;

use super::Stored;
use super::leases::Lease;

/// Maximum number of answers of an operation in memory; the oldest are removed first.
pub(crate) const MOST_ANSWERS: usize = 1_000;
/// What answers may take on average, in bytes.
const ROOM_OF_ANSWER: usize = 8 * 1024;
/// Maximum size of the answers of an operation in memory, in bytes.
pub(crate) const MOST_ANSWER_BYTES: usize = MOST_ANSWERS * ROOM_OF_ANSWER;
/// What an answer takes beside its bytes: its table entries.
pub(crate) const ANSWER_OVERHEAD: usize = 512;

/// How long a lease that ran out is still known, unless the next one is taken: the answer of whoever holds it may be late.
pub(crate) const UNANSWERED_FOR: Duration = Duration::from_mins(5);

/// A request with an idempotency key.
#[derive(Debug, Clone)]
pub(crate) struct Keyed {
    /// Digest of the operation, the API key and the idempotency key, in hexadecimal digits.
    pub(crate) slot: String,
    pub(crate) operation: &'static str,
    /// Id of the API key.
    pub(crate) owner: Arc<str>,
    /// Digest of the request.
    pub(crate) fingerprint: [u8; 32],
}

/// What there was before a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reserved {
    /// Nothing: the request is to be carried out.
    First(Lease),
    /// Another request under the same key.
    Other,
    /// The same request, under way.
    UnderWay,
    /// The same request, and its answer.
    Answered(Vec<u8>),
}

/// Room for the answers of an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerRoom {
    /// How many there may be. All of them together may take 8 KiB each.
    pub(crate) answers: usize,
    /// How much of the room those of one API key may take.
    pub(crate) hundredths: u8,
}

/// The store of answers by idempotency keys. What time it is, the store says: the clocks of the processes that use it differ.
pub(crate) trait ReplayStore {
    /// Takes the lease of a request for some time, unless somebody has it, or the request is answered. `number`: a random one, which
    /// the lease has. Who asks again with it, since it did not hear what came of it, has that lease.
    fn reserve_as<'s>(&'s self, keyed: &'s Keyed, number: i64, lasts: Duration) -> Stored<'s, Reserved>;

    #[cfg(test)]
    fn reserve<'s>(&'s self, keyed: &'s Keyed, lasts: Duration) -> Stored<'s, Reserved> {
        self.reserve_as(keyed, rand::random(), lasts)
    }

    /// Keeps the answer to a request for some time. False if somebody else has taken the next lease, or this one is forgotten.
    /// Old answers give way, in a database some answers later, and while nobody waits.
    fn keep_answer<'s>(
        &'s self,
        lease: &'s Lease,
        answer: &'s [u8],
        lasts: Duration,
        room: AnswerRoom,
    ) -> Stored<'s, bool>;

    /// Frees a key that came to no answer.
    fn free_key<'s>(&'s self, lease: &'s Lease) -> Stored<'s, ()>;

    /// Renews the leases of requests under way: from now on, they last so long.
    fn renew_keys<'s>(&'s self, leases: &'s [Lease], last: Duration) -> Stored<'s, ()>;

    /// Forgets answers that have run out, and leases that did so [`UNANSWERED_FOR`] ago.
    fn forget_replays(&self) -> Stored<'_, ()>;

    /// Makes all of them so much older, for tests.
    #[cfg(test)]
    fn age_replays(&self, by: Duration) -> Stored<'_, ()>;
}

impl AnswerRoom {
    /// This room in memory, where it is bounded.
    pub(crate) fn in_memory(self) -> Self {
        Self { answers: self.answers.min(MOST_ANSWERS), ..self }
    }

    /// Answers of an operation, and bytes.
    pub(crate) fn of_all(self) -> (usize, usize) {
        (self.answers, self.answers.saturating_mul(ROOM_OF_ANSWER))
    }

    /// Those that one API key may have.
    pub(crate) fn of_key(self) -> (usize, usize) {
        let part = |most: usize| most.saturating_mul(usize::from(self.hundredths.min(100))) / 100;
        let (answers, bytes) = self.of_all();
        (part(answers), part(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_is_told_in_answers_has_8_kib_for_each_and_is_bounded_in_memory() {
        let room = AnswerRoom { answers: 10_000, hundredths: 50 };
        assert_eq!(room.of_all(), (10_000, 81_920_000));
        assert_eq!(room.of_key(), (5_000, 40_960_000));
        assert_eq!(room.in_memory().of_all(), (MOST_ANSWERS, MOST_ANSWER_BYTES));
        let small = AnswerRoom { answers: 10, hundredths: 100 };
        assert_eq!(small.in_memory().of_key(), (10, 81_920));
    }
}
