//! What one process knows of idempotency keys: without asking the store, and while the store is away.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gatewright_system::clock::{millis, monotonic_millis};

use crate::traits::{ANSWER_OVERHEAD, AnswerQuota, KeyedRequest, Lease, ReplaySlot, UNANSWERED_FOR};

/// Value of the clock of [`now`] at process start, so that tests can backdate entries.
const BEGINNING_MS: u64 = 60 * 24 * 60 * 60 * 1000;

/// Milliseconds of a monotonic clock.
fn now() -> u64 {
    BEGINNING_MS + monotonic_millis()
}

/// Requests in progress, and the newest answers of each operation.
#[derive(Debug, Default)]
pub struct MemoryReplays(Mutex<ReplayState>);

#[derive(Debug, Default)]
struct ReplayState {
    requests: HashMap<String, PendingReplay>,
    /// The answers of operations, oldest first.
    shelves: HashMap<&'static str, Shelf>,
}

#[derive(Debug)]
struct PendingReplay {
    keyed: KeyedRequest,
    lease: i64,
    /// When it expires, in milliseconds of a monotonic clock.
    due: u64,
    /// `None` while it is in progress.
    answer: Option<Vec<u8>>,
}

#[derive(Debug, Default)]
struct Shelf {
    answers: VecDeque<ReplayAnswer>,
    taken: ReplayUsage,
    /// For each API key that has answers here.
    taken_by: HashMap<Arc<str>, ReplayUsage>,
}

/// The space that answers take.
#[derive(Debug, Default, Clone, Copy)]
struct ReplayUsage {
    answers: usize,
    bytes: usize,
}

#[derive(Debug)]
struct ReplayAnswer {
    slot: String,
    lease: i64,
    owner: Arc<str>,
    bytes: usize,
}

impl PendingReplay {
    fn reserved(&self, keyed: &KeyedRequest) -> ReplaySlot {
        if self.keyed.fingerprint != keyed.fingerprint {
            return ReplaySlot::Other;
        }
        self.answer.clone().map_or(ReplaySlot::UnderWay, ReplaySlot::Answered)
    }
}

impl ReplayState {
    /// The request that a key belongs to, unless it has expired.
    fn find(&self, slot: &str, now: u64) -> Option<&PendingReplay> {
        self.requests.get(slot).filter(|request| request.due > now)
    }

    /// The request of a lease, while it is in progress.
    fn under_way(&mut self, lease: &Lease) -> Option<&mut PendingReplay> {
        let request = self.requests.get_mut(&lease.id)?;
        (request.lease == lease.number && request.answer.is_none()).then_some(request)
    }

    fn shelve(&mut self, keyed: &KeyedRequest, lease: i64, bytes: usize, room: AnswerQuota) {
        let ReplayState { requests, shelves } = self;
        let place = shelves.entry(keyed.operation).or_default();
        let owner = Arc::clone(&keyed.owner);
        place.add(ReplayAnswer { slot: keyed.slot.clone(), lease, owner, bytes });
        let room = room.in_memory();
        while let Some(gone) = place.give_way(&keyed.owner, room) {
            // Its key may belong to another request by now.
            if requests.get(&gone.slot).is_some_and(|request| request.lease == gone.lease) {
                requests.remove(&gone.slot);
            }
        }
    }
}

impl Shelf {
    fn add(&mut self, answer: ReplayAnswer) {
        self.taken.add(answer.bytes);
        self.taken_by.entry(Arc::clone(&answer.owner)).or_default().add(answer.bytes);
        self.answers.push_back(answer);
    }

    /// Evicts the oldest answer if there are too many, or the owner's oldest if the owner has too many.
    fn give_way(&mut self, owner: &Arc<str>, room: AnswerQuota) -> Option<ReplayAnswer> {
        let at = if self.taken.is_over(room.of_all()) {
            0
        } else if self.taken_by.get(owner).is_some_and(|taken| taken.is_over(room.of_key())) {
            self.answers.iter().position(|answer| answer.owner == *owner)?
        } else {
            return None;
        };
        let gone = self.answers.remove(at)?;
        self.taken.remove(gone.bytes);
        if let Some(taken) = self.taken_by.get_mut(&gone.owner) {
            taken.remove(gone.bytes);
            if taken.answers == 0 {
                self.taken_by.remove(&gone.owner);
            }
        }
        Some(gone)
    }

    /// Keeps only answers that still belong to a request.
    fn retain(&mut self, holds: impl Fn(&ReplayAnswer) -> bool) {
        for answer in std::mem::take(self).answers.into_iter().filter(holds) {
            self.add(answer);
        }
    }
}

impl ReplayUsage {
    fn add(&mut self, bytes: usize) {
        self.answers += 1;
        self.bytes += bytes;
    }

    fn remove(&mut self, bytes: usize) {
        self.answers -= 1;
        self.bytes -= bytes;
    }

    fn is_over(self, (answers, bytes): (usize, usize)) -> bool {
        self.answers > answers || self.bytes > bytes
    }
}

impl MemoryReplays {
    fn lock(&self) -> MutexGuard<'_, ReplayState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`ReplayStore::reserve_as`](crate::ReplayStore::reserve_as), with a new number.
    pub fn reserve(&self, keyed: &KeyedRequest, lasts: Duration) -> ReplaySlot {
        let (now, mut state) = (now(), self.lock());
        let due = now.saturating_add(millis(lasts));
        if let Some(request) = state.find(&keyed.slot, now) {
            return request.reserved(keyed);
        }
        let lease = rand::random();
        state
            .requests
            .insert(keyed.slot.clone(), PendingReplay { keyed: keyed.clone(), lease, due, answer: None });
        ReplaySlot::First(Lease { id: keyed.slot.clone(), number: lease })
    }

    /// As [`ReplayStore::keep_answer`](crate::ReplayStore::keep_answer).
    pub fn keep_answer(&self, lease: &Lease, answer: &[u8], lasts: Duration, room: AnswerQuota) -> bool {
        let mut state = self.lock();
        let due = now().saturating_add(millis(lasts));
        let Some(request) = state.under_way(lease) else { return false };
        (request.answer, request.due) = (Some(answer.to_vec()), due);
        let keyed = request.keyed.clone();
        state.shelve(&keyed, lease.number, ANSWER_OVERHEAD + answer.len(), room);
        true
    }

    /// As [`ReplayStore::free_key`](crate::ReplayStore::free_key).
    pub fn free_key(&self, lease: &Lease) {
        let mut state = self.lock();
        if state.under_way(lease).is_some() {
            state.requests.remove(&lease.id);
        }
    }

    /// As [`ReplayStore::renew_keys`](crate::ReplayStore::renew_keys).
    pub fn renew_keys(&self, leases: &[Lease], last: Duration) {
        let mut state = self.lock();
        let due = now().saturating_add(millis(last));
        for lease in leases {
            if let Some(request) = state.under_way(lease) {
                request.due = due;
            }
        }
    }

    /// As [`ReplayStore::forget_replays`](crate::ReplayStore::forget_replays).
    pub fn forget(&self) {
        let (now, mut state) = (now(), self.lock());
        let ReplayState { requests, shelves } = &mut *state;
        let unanswered = now.saturating_sub(millis(UNANSWERED_FOR));
        requests.retain(|_, request| request.due > if request.answer.is_some() { now } else { unanswered });
        for shelf in shelves.values_mut() {
            let holds = |answer: &ReplayAnswer| {
                requests.get(&answer.slot).is_some_and(|request| request.lease == answer.lease)
            };
            shelf.retain(holds);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::replays::keyed;

    const ANSWERS: usize = 16;
    const WHILE: Duration = Duration::from_mins(10);

    impl MemoryReplays {
        fn age(&self, by: Duration) {
            for request in self.lock().requests.values_mut() {
                request.due = request.due.saturating_sub(millis(by));
            }
        }

        fn first(&self, slot: &str, owner: &str) -> Lease {
            match self.reserve(&keyed(slot, owner), WHILE) {
                ReplaySlot::First(lease) => lease,
                other => panic!("{slot}: {other:?}"),
            }
        }

        fn answer(&self, slot: &str, owner: &str, answer: &[u8], percent: u8) {
            let lease = self.first(slot, owner);
            assert!(self.keep_answer(&lease, answer, WHILE, AnswerQuota { answers: ANSWERS, percent }));
        }

        fn has(&self, slot: &str) -> bool {
            self.lock().requests.contains_key(slot)
        }
    }

    #[test]
    fn key_is_reserved_once_and_replays_its_answer_until_it_expires() {
        let replays = MemoryReplays::default();
        let lease = replays.first("a", "key");
        assert_eq!(replays.reserve(&keyed("a", "key"), WHILE), ReplaySlot::UnderWay);
        let other = KeyedRequest { fingerprint: [8; 32], ..keyed("a", "key") };
        assert_eq!(replays.reserve(&other, WHILE), ReplaySlot::Other);
        let room = AnswerQuota { answers: ANSWERS, percent: 100 };
        assert!(replays.keep_answer(&lease, b"made", WHILE, room));
        assert!(!replays.keep_answer(&lease, b"again", WHILE, room));
        // A key that is answered is no longer freed.
        replays.free_key(&lease);
        assert_eq!(replays.reserve(&keyed("a", "key"), WHILE), ReplaySlot::Answered(b"made".to_vec()));
        replays.age(WHILE);
        replays.first("a", "key");
    }

    #[test]
    fn expired_lease_changes_nothing_after_the_next_one() {
        let replays = MemoryReplays::default();
        let before = replays.first("a", "key");
        replays.age(WHILE / 2);
        replays.renew_keys(std::slice::from_ref(&before), WHILE);
        replays.age(WHILE / 2);
        assert_eq!(replays.reserve(&keyed("a", "key"), WHILE), ReplaySlot::UnderWay);
        replays.age(WHILE);
        let next = replays.first("a", "key");
        replays.free_key(&before);
        let room = AnswerQuota { answers: ANSWERS, percent: 100 };
        assert!(!replays.keep_answer(&before, b"late", WHILE, room));
        assert!(replays.keep_answer(&next, b"made", WHILE, room));
    }

    #[test]
    fn oldest_answers_are_evicted_by_count_bytes_and_share_of_a_key() {
        let replays = MemoryReplays::default();
        replays.answer("other", "other", b"x", 25);
        for number in 0..=4 {
            replays.answer(&number.to_string(), "key", b"x", 25);
        }
        assert!(replays.has("other") && !replays.has("0") && replays.has("1"));
        for number in 5..=ANSWERS {
            replays.answer(&number.to_string(), "key", b"x", 100);
        }
        assert!(!replays.has("other") && replays.has("1"));
        let (_, bytes) = AnswerQuota { answers: ANSWERS, percent: 100 }.of_all();
        replays.answer("large", "key", &vec![b'x'; bytes - ANSWER_OVERHEAD], 100);
        assert!(replays.has("large") && !replays.has(&ANSWERS.to_string()));
        assert_eq!(replays.lock().requests.len(), 1);
    }

    #[test]
    fn expired_answers_and_long_expired_leases_are_forgotten() {
        let replays = MemoryReplays::default();
        let late = replays.first("late", "key");
        replays.answer("answered", "key", b"x", 100);
        replays.age(WHILE);
        replays.forget();
        assert!(replays.has("late") && !replays.has("answered"));
        assert!(replays.lock().shelves["create_video"].answers.is_empty());
        // Nobody has taken the key meanwhile.
        assert!(replays.keep_answer(&late, b"x", WHILE, AnswerQuota { answers: ANSWERS, percent: 100 }));
        replays.first("lost", "key");
        replays.age(WHILE + UNANSWERED_FOR);
        replays.forget();
        assert!(replays.lock().requests.is_empty());
    }
}
