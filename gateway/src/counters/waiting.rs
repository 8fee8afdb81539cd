//! What the server has to be told of: tokens that were taken, places that are free again, and those that are still taken.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Maximum number of places that are free and of which the server does not know, of all keys; of others it learns when their
/// lease ends.
const MOST_FREED: usize = 100_000;
/// Maximum number of places that are told of at once.
const MOST_TOLD: usize = 1000;

#[derive(Debug, Default)]
pub(super) struct Waiting {
    keys: HashMap<Arc<str>, OfKey>,
    freed: usize,
}

#[derive(Debug, Default)]
struct OfKey {
    tokens: u64,
    /// The limit of tokens a minute.
    limit: u64,
    taken: BTreeSet<u64>,
    /// They stay here until the server knows of them: whoever asks next tells it, too.
    freed: BTreeSet<u64>,
}

/// What is told of a key at once.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) key: Arc<str>,
    pub(super) tokens: u64,
    pub(super) limit: u64,
    pub(super) freed: Vec<u64>,
    pub(super) taken: Vec<u64>,
}

impl Waiting {
    pub(super) fn add_tokens(&mut self, key: &Arc<str>, limit: u64, tokens: u64) {
        let waiting = self.keys.entry(Arc::clone(key)).or_default();
        (waiting.tokens, waiting.limit) = (waiting.tokens.saturating_add(tokens), limit);
    }

    /// A place is taken.
    pub(super) fn hold(&mut self, key: &Arc<str>, place: u64) {
        self.keys.entry(Arc::clone(key)).or_default().taken.insert(place);
    }

    /// A place is free.
    pub(super) fn free(&mut self, key: &Arc<str>, place: u64) {
        let waiting = self.keys.entry(Arc::clone(key)).or_default();
        waiting.taken.remove(&place);
        if self.freed < MOST_FREED {
            waiting.freed.insert(place);
            self.freed += 1;
        }
        self.tidy(key);
    }

    /// The tokens of a key that the server does not know of, from now on the caller's to tell; and places that are free.
    pub(super) fn take(&mut self, key: &str) -> (u64, Vec<u64>) {
        let Some(waiting) = self.keys.get_mut(key) else { return (0, Vec::new()) };
        (std::mem::take(&mut waiting.tokens), waiting.freed.iter().copied().take(MOST_TOLD).collect())
    }

    /// The server knows that these places are free.
    pub(super) fn told(&mut self, key: &str, freed: &[u64]) {
        let Some(waiting) = self.keys.get_mut(key) else { return };
        for place in freed {
            self.freed -= usize::from(waiting.freed.remove(place));
        }
        self.tidy(key);
    }

    /// All that there is to tell. `renew`: also the places that are taken.
    pub(super) fn batches(&mut self, renew: bool) -> Vec<Batch> {
        let mut batches = Vec::new();
        for (key, waiting) in &mut self.keys {
            let freed = waiting.freed.iter().copied().take(MOST_TOLD).collect();
            let (key, tokens, limit) = (Arc::clone(key), std::mem::take(&mut waiting.tokens), waiting.limit);
            let batch = Batch { key: Arc::clone(&key), tokens, limit, freed, taken: Vec::new() };
            if batch.tokens > 0 || !batch.freed.is_empty() {
                batches.push(batch);
            }
            let taken: Vec<u64> = waiting.taken.iter().copied().filter(|_| renew).collect();
            let renewals = taken.chunks(MOST_TOLD);
            batches.extend(renewals.map(|taken| Batch {
                key: Arc::clone(&key),
                taken: taken.to_vec(),
                ..Batch::default()
            }));
        }
        self.keys.retain(|_, waiting| !waiting.is_empty());
        batches
    }

    fn tidy(&mut self, key: &str) {
        if self.keys.get(key).is_some_and(OfKey::is_empty) {
            self.keys.remove(key);
        }
    }
}

impl OfKey {
    fn is_empty(&self) -> bool {
        self.tokens == 0 && self.taken.is_empty() && self.freed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_free_is_told_of_until_the_server_knows() {
        let (mut waiting, key) = (Waiting::default(), Arc::from("k"));
        waiting.hold(&key, 1);
        waiting.hold(&key, 2);
        assert_eq!(waiting.batches(false), []);
        waiting.free(&key, 1);
        let freed = Batch { key: Arc::clone(&key), freed: vec![1], ..Batch::default() };
        let taken = Batch { key: Arc::clone(&key), taken: vec![2], ..Batch::default() };
        assert_eq!(waiting.batches(true), [freed, taken]);
        assert_eq!(waiting.take(&key), (0, vec![1]));
        waiting.told(&key, &[1]);
        waiting.told(&key, &[1]);
        assert_eq!(waiting.take(&key), (0, Vec::new()));
        waiting.free(&key, 2);
        waiting.told(&key, &[2]);
        assert!(waiting.keys.is_empty() && waiting.freed == 0);
    }

    #[test]
    fn tokens_are_told_of_once() {
        let (mut waiting, key) = (Waiting::default(), Arc::from("k"));
        waiting.add_tokens(&key, 100, 3);
        waiting.add_tokens(&key, 100, 4);
        assert_eq!(waiting.take(&key), (7, Vec::new()));
        assert_eq!(waiting.batches(true), []);
        waiting.add_tokens(&key, 100, 5);
        let batch = Batch { key: Arc::clone(&key), tokens: 5, limit: 100, ..Batch::default() };
        assert_eq!(waiting.batches(false), [batch]);
        assert!(waiting.keys.is_empty());
    }

    #[test]
    fn places_that_nobody_can_be_told_of_are_forgotten() {
        let (mut waiting, key) = (Waiting::default(), Arc::from("k"));
        for place in 0..MOST_FREED as u64 + 10 {
            waiting.hold(&key, place);
            waiting.free(&key, place);
        }
        assert_eq!(waiting.freed, MOST_FREED);
        let told = waiting.batches(true).pop().expect("places");
        assert_eq!(told.freed.len(), MOST_TOLD);
    }
}
