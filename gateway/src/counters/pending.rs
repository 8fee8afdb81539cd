//! Data to be reported to the server: tokens consumed, slots released, and slots still held.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use gatewright_store::{Spent, SpentSoFar};

/// Maximum number of unreported released slots, for all keys; the server learns of others when their lease expires.
const MAX_FREED: usize = 100_000;
/// Maximum number of slots reported at once.
pub(super) const MAX_REPORTED: usize = 1000;

#[derive(Debug, Default)]
pub(super) struct PendingUpdates {
    keys: HashMap<Arc<str>, KeyUpdates>,
    freed: usize,
}

#[derive(Debug, Default)]
struct KeyUpdates {
    news: UsageDelta,
    taken: BTreeSet<u64>,
    /// Slots whose renewal is in flight. It would retake a slot released in the meantime.
    renewing: BTreeSet<u64>,
    /// They stay here until the server has recorded them: each request reports them again.
    freed: BTreeSet<u64>,
}

/// Usage of a key that has not been reported to the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct UsageDelta {
    pub(super) tokens: u64,
    /// The limit of tokens per minute.
    pub(super) limit: u64,
    pub(super) spent: Option<SpentSince>,
}

/// What a key with a budget has spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SpentSince {
    /// On the day, since the last report to the server.
    pub(super) since: Spent,
    /// The total known to this gateway.
    pub(super) so_far: SpentSoFar,
}

/// One report about a key.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct KeyBatch {
    pub(super) key: Arc<str>,
    pub(super) news: UsageDelta,
    pub(super) freed: ReleasedSlots,
}

/// Released slots.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ReleasedSlots {
    /// No call in flight will retake them.
    pub(super) surely: Vec<u64>,
    /// They are reported again once their renewal has returned.
    pub(super) renewing: Vec<u64>,
}

impl PendingUpdates {
    pub(super) fn add_tokens(&mut self, key: &Arc<str>, limit: u64, tokens: u64) {
        let news = &mut self.keys.entry(Arc::clone(key)).or_default().news;
        (news.tokens, news.limit) = (news.tokens.saturating_add(tokens), limit);
    }

    /// A key with a budget spent something. `so_far`: the total including it.
    pub(super) fn add_spent(&mut self, key: &Arc<str>, spent: Spent, so_far: SpentSoFar) {
        let news = &mut self.keys.entry(Arc::clone(key)).or_default().news;
        let added = SpentSince { since: spent, so_far };
        news.spent = Some(match news.spent {
            Some(before) if before.so_far.day == so_far.day => before.and(added),
            // Unreported spending from before midnight reaches others through the store.
            Some(after) if after.so_far.day > so_far.day => after,
            _ => added,
        });
    }

    /// A slot is taken.
    pub(super) fn hold(&mut self, key: &Arc<str>, place: u64) {
        self.keys.entry(Arc::clone(key)).or_default().taken.insert(place);
    }

    /// A slot is released.
    pub(super) fn free(&mut self, key: &Arc<str>, place: u64) {
        let waiting = self.keys.entry(Arc::clone(key)).or_default();
        waiting.taken.remove(&place);
        if self.freed < MAX_FREED {
            waiting.freed.insert(place);
            self.freed += 1;
        }
        self.tidy(key);
    }

    /// Takes the unreported usage and the released slots of a key. The caller must report them from now on.
    pub(super) fn take(&mut self, key: &str) -> (UsageDelta, ReleasedSlots) {
        let Some(waiting) = self.keys.get_mut(key) else { return Default::default() };
        (std::mem::take(&mut waiting.news), waiting.freed())
    }

    /// The server has recorded that these slots are free.
    pub(super) fn forget_freed(&mut self, key: &str, freed: &ReleasedSlots) {
        let Some(waiting) = self.keys.get_mut(key) else { return };
        for place in &freed.surely {
            self.freed -= usize::from(waiting.freed.remove(place));
        }
        self.tidy(key);
    }

    /// Everything to report, except slots still held.
    pub(super) fn batches(&mut self) -> Vec<KeyBatch> {
        let mut batches = Vec::new();
        for (key, waiting) in &mut self.keys {
            let (news, freed) = (std::mem::take(&mut waiting.news), waiting.freed());
            if !news.is_empty() || !freed.is_empty() {
                batches.push(KeyBatch { key: Arc::clone(key), news, freed });
            }
        }
        self.keys.retain(|_, waiting| !waiting.is_empty());
        batches
    }

    /// The keys with slots held. No renewal may be in flight.
    pub(super) fn holding(&mut self) -> Vec<Arc<str>> {
        let mut holding = Vec::new();
        for (key, waiting) in &mut self.keys {
            // An abandoned renewal is no longer in flight.
            waiting.renewing.clear();
            if !waiting.taken.is_empty() {
                holding.push(Arc::clone(key));
            }
        }
        holding
    }

    /// Held slots of a key from `first` on, to be renewed in one call; see [`Self::renewed`].
    pub(super) fn renew(&mut self, key: &str, first: u64) -> Vec<u64> {
        let Some(waiting) = self.keys.get_mut(key) else { return Vec::new() };
        let taken: Vec<u64> = waiting.taken.range(first..).copied().take(MAX_REPORTED).collect();
        waiting.renewing.extend(&taken);
        taken
    }

    /// The renewal of the key's slots has returned.
    pub(super) fn renewed(&mut self, key: &str) {
        if let Some(waiting) = self.keys.get_mut(key) {
            waiting.renewing.clear();
        }
    }

    fn tidy(&mut self, key: &str) {
        if self.keys.get(key).is_some_and(KeyUpdates::is_empty) {
            self.keys.remove(key);
        }
    }
}

impl UsageDelta {
    fn is_empty(&self) -> bool {
        self.tokens == 0 && self.spent.is_none()
    }
}

impl SpentSince {
    /// Merges two amounts of the same day. Their order doesn't show which one is more complete.
    fn and(self, other: Self) -> Self {
        let (so_far, others) = (self.so_far, other.so_far);
        let (today, month) = (so_far.today.max(others.today), so_far.month.max(others.month));
        Self { since: self.since.and(other.since), so_far: SpentSoFar { today, month, ..so_far } }
    }
}

impl ReleasedSlots {
    pub(super) fn is_empty(&self) -> bool {
        self.surely.is_empty() && self.renewing.is_empty()
    }

    pub(super) fn places(&self) -> impl Iterator<Item = u64> {
        self.surely.iter().chain(&self.renewing).copied()
    }
}

impl KeyUpdates {
    fn freed(&self) -> ReleasedSlots {
        let some = self.freed.iter().copied().take(MAX_REPORTED);
        let (renewing, surely) = some.partition(|place| self.renewing.contains(place));
        ReleasedSlots { surely, renewing }
    }

    fn is_empty(&self) -> bool {
        self.news.is_empty() && self.taken.is_empty() && self.freed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surely(places: &[u64]) -> ReleasedSlots {
        ReleasedSlots { surely: places.to_vec(), renewing: Vec::new() }
    }

    #[test]
    fn released_slot_is_reported_until_acknowledged() {
        let (mut waiting, key) = (PendingUpdates::default(), Arc::from("k"));
        waiting.hold(&key, 1);
        waiting.hold(&key, 2);
        assert_eq!(waiting.batches(), []);
        waiting.free(&key, 1);
        let freed = KeyBatch { key: Arc::clone(&key), freed: surely(&[1]), ..KeyBatch::default() };
        assert_eq!(waiting.batches(), [freed]);
        assert_eq!(waiting.take(&key), (UsageDelta::default(), surely(&[1])));
        waiting.forget_freed(&key, &surely(&[1]));
        waiting.forget_freed(&key, &surely(&[1]));
        assert_eq!(waiting.take(&key), Default::default());
        waiting.free(&key, 2);
        waiting.forget_freed(&key, &surely(&[2]));
        assert!(waiting.keys.is_empty() && waiting.freed == 0);
    }

    #[test]
    fn slot_released_during_renewal_is_reported_again() {
        let (mut waiting, key) = (PendingUpdates::default(), Arc::from("k"));
        for place in 1..=3 {
            waiting.hold(&key, place);
        }
        waiting.free(&key, 3);
        assert_eq!(waiting.holding(), [Arc::clone(&key)]);
        assert_eq!(waiting.renew(&key, 0), [1, 2]);
        waiting.free(&key, 1);
        // A request reports it at once, but the renewal may arrive later.
        let (_, freed) = waiting.take(&key);
        assert_eq!(freed, ReleasedSlots { surely: vec![3], renewing: vec![1] });
        waiting.renewed(&key);
        waiting.forget_freed(&key, &freed);
        assert_eq!(waiting.take(&key), (UsageDelta::default(), surely(&[1])));
        assert_eq!(waiting.renew(&key, 2), [2]);
        assert!(waiting.renew(&key, 3).is_empty());
        waiting.forget_freed(&key, &surely(&[1]));
        waiting.free(&key, 2);
        // An abandoned renewal never returns.
        assert!(waiting.holding().is_empty());
        assert_eq!(waiting.take(&key), (UsageDelta::default(), surely(&[2])));
    }

    #[test]
    fn tokens_are_reported_once() {
        let (mut waiting, key) = (PendingUpdates::default(), Arc::from("k"));
        waiting.add_tokens(&key, 100, 3);
        waiting.add_tokens(&key, 100, 4);
        let news = |tokens| UsageDelta { tokens, limit: 100, spent: None };
        assert_eq!(waiting.take(&key), (news(7), ReleasedSlots::default()));
        assert_eq!(waiting.batches(), []);
        waiting.add_tokens(&key, 100, 5);
        let batch = KeyBatch { key: Arc::clone(&key), news: news(5), ..KeyBatch::default() };
        assert_eq!(waiting.batches(), [batch]);
        assert!(waiting.keys.is_empty());
    }

    #[test]
    fn spending_accumulates_within_a_day() {
        let (mut waiting, key) = (PendingUpdates::default(), Arc::from("k"));
        let so_far = |day: &str, tokens| {
            let sum = Spent { tokens, cost: 0 };
            SpentSoFar { day: day.parse().expect("a day"), today: sum, month: sum }
        };
        let one = Spent { tokens: 1, cost: 5 };
        let mut add = |so_far| {
            waiting.add_spent(&key, one, so_far);
            waiting.keys[&key].news.spent
        };
        let (before, after) = (so_far("2026-07-30", 10), so_far("2026-07-31", 3));
        assert_eq!(add(before), Some(SpentSince { since: one, so_far: before }));
        // The one counted first may arrive last.
        let twice = Spent { tokens: 2, cost: 10 };
        assert_eq!(add(so_far("2026-07-30", 9)), Some(SpentSince { since: twice, so_far: before }));
        assert_eq!(add(after), Some(SpentSince { since: one, so_far: after }));
        assert_eq!(add(before), Some(SpentSince { since: one, so_far: after }));
        let news =
            UsageDelta { spent: Some(SpentSince { since: one, so_far: after }), ..UsageDelta::default() };
        assert_eq!(waiting.batches(), [KeyBatch { key: Arc::clone(&key), news, ..KeyBatch::default() }]);
        assert!(waiting.keys.is_empty());
    }

    #[test]
    fn unreported_released_slots_are_bounded() {
        let (mut waiting, key) = (PendingUpdates::default(), Arc::from("k"));
        for place in 0..MAX_FREED as u64 + 10 {
            waiting.hold(&key, place);
            waiting.free(&key, place);
        }
        assert_eq!(waiting.freed, MAX_FREED);
        let batch = waiting.batches().pop().expect("places");
        assert_eq!(batch.freed.surely.len(), MAX_REPORTED);
    }
}
