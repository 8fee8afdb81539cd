//! Answers that the store did not accept: they wait for it within bounds, and one task hands them over. Evicted answers are
//! replayed only by this process.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use gatewright_store::{
    ANSWER_OVERHEAD, AnswerQuota, KeyedRequest, Lease, MAX_ANSWER_BYTES, MAX_ANSWERS, ReplaySlot, SpoolEntry,
    StoreError,
};

use super::{LEASE, PAUSE, Replays};

/// An answer in the form that the store gets.
pub(super) struct PendingAnswer {
    pub(super) keyed: KeyedRequest,
    /// Number of its lease in the store, which may have granted it late.
    pub(super) number: i64,
    /// None if the answer was made while the store was away.
    pub(super) lease: Option<Lease>,
    pub(super) answer: Vec<u8>,
    pub(super) expires: Instant,
    /// The space for it and the other answers of its operation.
    pub(super) room: AnswerQuota,
    /// Its item in the spool, if there is one.
    pub(super) spooled: OnceLock<SpoolEntry>,
}

/// See the module.
#[derive(Default)]
pub(super) struct PendingAnswers {
    answers: VecDeque<Arc<PendingAnswer>>,
    bytes: usize,
    /// Whether a task is handing them to the store.
    is_written: bool,
}

impl PendingAnswer {
    fn size(&self) -> usize {
        ANSWER_OVERHEAD + self.answer.len()
    }

    /// It no longer needs to survive this process.
    pub(super) async fn forget(&self) {
        if let Some(entry) = self.spooled.get() {
            entry.remove().await;
        }
    }
}

impl PendingAnswers {
    /// Returns the answers evicted for it: the oldest.
    fn add(&mut self, late: PendingAnswer) -> Vec<Arc<PendingAnswer>> {
        self.bytes += late.size();
        self.answers.push_back(Arc::new(late));
        let mut gone = Vec::new();
        while self.answers.len() > MAX_ANSWERS || self.bytes > MAX_ANSWER_BYTES {
            let first = self.answers.iter().min_by_key(|late| late.expires).cloned();
            let Some(first) = first else { break };
            self.remove(&first);
            gone.push(first);
        }
        gone
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    pub(super) fn has(&self, late: &Arc<PendingAnswer>) -> bool {
        self.answers.iter().any(|other| Arc::ptr_eq(other, late))
    }

    /// An answer that is not in the spool.
    pub(super) fn unspooled(&self) -> Option<Arc<PendingAnswer>> {
        self.answers.iter().find(|late| late.spooled.get().is_none()).cloned()
    }

    fn remove(&mut self, late: &Arc<PendingAnswer>) {
        if let Some(at) = self.answers.iter().position(|other| Arc::ptr_eq(other, late)) {
            self.answers.remove(at);
            self.bytes -= late.size();
        }
    }

    /// The next answer to be written. It moves to the end, so that one that the store never accepts doesn't block the
    /// others.
    fn next(&mut self) -> Option<Arc<PendingAnswer>> {
        let next = self.answers.pop_front()?;
        self.answers.push_back(Arc::clone(&next));
        Some(next)
    }
}

impl Replays {
    /// Number of answers waiting for the store.
    pub(crate) fn unwritten(&self) -> usize {
        self.waiting().answers.len()
    }

    /// Hands an answer to the store once it is back.
    pub(super) fn keep_later(self: &Arc<Self>, late: PendingAnswer) {
        let mut waiting = self.waiting();
        let gone = waiting.add(late);
        let starts = !std::mem::replace(&mut waiting.is_written, true);
        drop(waiting);
        for late in gone {
            tracing::debug!(
                "the answer for an idempotency key stays in this process: too many wait for the store"
            );
            self.let_go(&late);
            tokio::spawn(async move { late.forget().await });
        }
        if starts {
            tokio::spawn(write(Arc::downgrade(self)));
        }
    }

    /// Hands one of them to the store. False if the store doesn't accept it.
    async fn write(&self, late: &Arc<PendingAnswer>) -> bool {
        let lasts = late.expires.saturating_duration_since(Instant::now());
        if !lasts.is_zero() {
            if self.health.rests() {
                return false;
            }
            match self.hand_over(late, lasts).await {
                Ok(true) => {}
                Ok(false) => return false,
                Err(error) => {
                    tracing::debug!("{error}: the answer for an idempotency key is not stored yet");
                    return false;
                }
            }
        }
        self.let_go(late);
        self.waiting().remove(late);
        late.forget().await;
        true
    }
}

impl Replays {
    /// If another gateway has answered the key in the meantime, the answer stays in this process only. False while the key is
    /// held by another gateway, or by one that died before it handed over its answer.
    async fn hand_over(&self, late: &PendingAnswer, lasts: Duration) -> Result<bool, StoreError> {
        if let Some(lease) = &late.lease
            && self.store.keep_answer(lease, &late.answer, lasts, late.room).await?
        {
            return Ok(true);
        }
        // The lease may be gone by now, and the key free.
        match self.store.reserve_as(&late.keyed, late.number, LEASE).await? {
            ReplaySlot::First(lease) => self.store.keep_answer(&lease, &late.answer, lasts, late.room).await,
            ReplaySlot::UnderWay => Ok(false),
            ReplaySlot::Other | ReplaySlot::Answered(_) => Ok(true),
        }
    }

    fn let_go(&self, late: &PendingAnswer) {
        if let Some(lease) = &late.lease {
            self.held().remove(lease);
        }
    }
}

/// Ends when nothing waits, or the replays are dropped.
async fn write(replays: Weak<Replays>) {
    while let Some(replays) = replays.upgrade() {
        let next = {
            let mut waiting = replays.waiting();
            let next = waiting.next();
            waiting.is_written = next.is_some();
            next
        };
        let Some(late) = next else { return };
        if !replays.write(&late).await {
            replays.spool_others().await;
            drop((replays, late));
            tokio::time::sleep(PAUSE).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    fn late(number: u64, bytes: usize) -> PendingAnswer {
        static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);
        let slot = number.to_string();
        let keyed =
            KeyedRequest { slot, operation: "create_video", owner: "key".into(), fingerprint: [0; 32] };
        PendingAnswer {
            keyed,
            number: 0,
            lease: None,
            answer: vec![b'x'; bytes],
            expires: *FIRST + Duration::from_secs(number),
            room: AnswerQuota { answers: MAX_ANSWERS, percent: 100 },
            spooled: OnceLock::new(),
        }
    }

    fn ids(answers: &[Arc<PendingAnswer>]) -> Vec<&str> {
        answers.iter().map(|late| late.keyed.slot.as_str()).collect()
    }

    #[test]
    fn pending_answers_are_bounded_and_the_oldest_are_evicted() {
        let mut waiting = PendingAnswers::default();
        for number in 0..MAX_ANSWERS as u64 {
            assert!(waiting.add(late(number, 1)).is_empty());
        }
        // Earlier attempts don't make an answer any younger.
        assert_eq!(waiting.next().expect("one").keyed.slot, "0");
        assert_eq!(ids(&waiting.add(late(5_000, 1))), ["0"]);
        assert_eq!(
            (waiting.answers.len(), waiting.bytes),
            (MAX_ANSWERS, MAX_ANSWERS * (ANSWER_OVERHEAD + 1))
        );
        let gone = waiting.add(late(5_001, MAX_ANSWER_BYTES - ANSWER_OVERHEAD));
        assert_eq!(gone.len(), MAX_ANSWERS);
        let left = waiting.next().expect("one");
        assert_eq!((left.keyed.slot.as_str(), waiting.bytes), ("5001", MAX_ANSWER_BYTES));
        waiting.remove(&left);
        waiting.remove(&left);
        assert!(waiting.next().is_none() && waiting.bytes == 0);
    }
}
