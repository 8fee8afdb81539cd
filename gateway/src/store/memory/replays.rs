//! Answers by idempotency keys in memory.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{MemoryStore, done, now};
use crate::clock::millis;
use crate::store::durable::{
    ANSWER_OVERHEAD, AnswerRoom, Keyed, Lease, ReplayStore, Reserved, Stored, UNANSWERED_FOR,
};

/// Requests under way, and the newest answers of each operation.
#[derive(Debug, Default)]
pub(crate) struct Answers(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    requests: HashMap<String, Request>,
    /// The answers of operations, oldest first.
    shelves: HashMap<&'static str, Shelf>,
}

#[derive(Debug)]
struct Request {
    keyed: Keyed,
    lease: i64,
    /// Until when it holds, in milliseconds of a clock that only goes forward.
    due: u64,
    /// `None` while it is under way.
    answer: Option<Vec<u8>>,
}

#[derive(Debug, Default)]
struct Shelf {
    answers: VecDeque<Answer>,
    bytes: usize,
}

#[derive(Debug)]
struct Answer {
    slot: String,
    lease: i64,
    owner: Arc<str>,
    bytes: usize,
}

impl Request {
    fn reserved(&self, keyed: &Keyed) -> Reserved {
        if self.keyed.fingerprint != keyed.fingerprint {
            return Reserved::Other;
        }
        self.answer.clone().map_or(Reserved::UnderWay, Reserved::Answered)
    }
}

impl Kept {
    /// The request that a key stands for, unless it has run out.
    fn find(&self, slot: &str, now: u64) -> Option<&Request> {
        self.requests.get(slot).filter(|request| request.due > now)
    }

    /// The request of a lease, while it is under way.
    fn under_way(&mut self, lease: &Lease) -> Option<&mut Request> {
        let request = self.requests.get_mut(&lease.id)?;
        (request.lease == lease.number && request.answer.is_none()).then_some(request)
    }

    fn shelve(&mut self, keyed: &Keyed, lease: i64, bytes: usize, room: AnswerRoom) {
        let Kept { requests, shelves } = self;
        let place = shelves.entry(keyed.operation).or_default();
        let owner = Arc::clone(&keyed.owner);
        place.answers.push_back(Answer { slot: keyed.slot.clone(), lease, owner, bytes });
        place.bytes += bytes;
        let room = room.in_memory();
        let ((count, bytes), (own_count, own_bytes)) = (room.of_all(), room.of_key());
        loop {
            let own = || place.answers.iter().filter(|answer| answer.owner == keyed.owner);
            let goes = if place.answers.len() > count || place.bytes > bytes {
                Some(0)
            } else if own().count() > own_count || own().map(|answer| answer.bytes).sum::<usize>() > own_bytes
            {
                place.answers.iter().position(|answer| answer.owner == keyed.owner)
            } else {
                None
            };
            let Some(gone) = goes.and_then(|at| place.answers.remove(at)) else { return };
            place.bytes -= gone.bytes;
            // Its key may stand for another request by now.
            if requests.get(&gone.slot).is_some_and(|request| request.lease == gone.lease) {
                requests.remove(&gone.slot);
            }
        }
    }
}

impl Answers {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn reserve(&self, keyed: &Keyed, lasts: Duration) -> Reserved {
        let (now, mut kept) = (now(), self.lock());
        let due = now.saturating_add(millis(lasts));
        if let Some(request) = kept.find(&keyed.slot, now) {
            return request.reserved(keyed);
        }
        let lease = rand::random();
        kept.requests.insert(keyed.slot.clone(), Request { keyed: keyed.clone(), lease, due, answer: None });
        Reserved::First(Lease { id: keyed.slot.clone(), number: lease })
    }

    pub(crate) fn keep_answer(
        &self,
        lease: &Lease,
        answer: &[u8],
        lasts: Duration,
        room: AnswerRoom,
    ) -> bool {
        let mut kept = self.lock();
        let due = now().saturating_add(millis(lasts));
        let Some(request) = kept.under_way(lease) else { return false };
        (request.answer, request.due) = (Some(answer.to_vec()), due);
        let keyed = request.keyed.clone();
        kept.shelve(&keyed, lease.number, ANSWER_OVERHEAD + answer.len(), room);
        true
    }

    pub(crate) fn free_key(&self, lease: &Lease) {
        let mut kept = self.lock();
        if kept.under_way(lease).is_some() {
            kept.requests.remove(&lease.id);
        }
    }

    pub(crate) fn renew_keys(&self, leases: &[Lease], last: Duration) {
        let mut kept = self.lock();
        let due = now().saturating_add(millis(last));
        for lease in leases {
            if let Some(request) = kept.under_way(lease) {
                request.due = due;
            }
        }
    }

    pub(crate) fn forget(&self) {
        let (now, mut kept) = (now(), self.lock());
        let Kept { requests, shelves } = &mut *kept;
        let unanswered = now.saturating_sub(millis(UNANSWERED_FOR));
        requests.retain(|_, request| request.due > if request.answer.is_some() { now } else { unanswered });
        for shelf in shelves.values_mut() {
            let holds = |answer: &Answer| {
                requests.get(&answer.slot).is_some_and(|request| request.lease == answer.lease)
            };
            shelf.answers.retain(holds);
            shelf.bytes = shelf.answers.iter().map(|answer| answer.bytes).sum();
        }
    }
}

#[cfg(test)]
impl Answers {
    fn age(&self, by: Duration) {
        for request in self.lock().requests.values_mut() {
            request.due = request.due.saturating_sub(millis(by));
        }
    }
}

impl ReplayStore for MemoryStore {
    fn reserve<'s>(&'s self, keyed: &'s Keyed, lasts: Duration) -> Stored<'s, Reserved> {
        done(self.answers.reserve(keyed, lasts))
    }

    fn keep_answer<'s>(
        &'s self,
        lease: &'s Lease,
        answer: &'s [u8],
        lasts: Duration,
        room: AnswerRoom,
    ) -> Stored<'s, bool> {
        done(self.answers.keep_answer(lease, answer, lasts, room))
    }

    fn free_key<'s>(&'s self, lease: &'s Lease) -> Stored<'s, ()> {
        self.answers.free_key(lease);
        done(())
    }

    fn renew_keys<'s>(&'s self, leases: &'s [Lease], last: Duration) -> Stored<'s, ()> {
        self.answers.renew_keys(leases, last);
        done(())
    }

    fn forget_replays(&self) -> Stored<'_, ()> {
        self.answers.forget();
        done(())
    }

    #[cfg(test)]
    fn age_replays(&self, by: Duration) -> Stored<'_, ()> {
        self.answers.age(by);
        done(())
    }
}
