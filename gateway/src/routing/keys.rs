//! The keys of an upstream: the first one that isn't resting is used.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Which keys are resting, and until when.
#[derive(Debug)]
pub(crate) struct Keys {
    count: usize,
    /// Empty until a key has to rest.
    waiting: Mutex<Vec<Option<Instant>>>,
}

/// A key to use; none if the upstream needs none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chosen(pub(crate) Option<usize>);

impl Keys {
    pub(crate) fn new(count: usize) -> Self {
        Self { count, waiting: Mutex::default() }
    }

    /// The first key that isn't resting. Errors: when the first of them may be used again.
    pub(crate) fn choose(&self, now: Instant) -> Result<Chosen, Instant> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let until = |key: &usize| waiting.get(*key).copied().flatten().filter(|until| *until > now);
        // An upstream without keys may have to rest, too.
        let slots = 0..self.count.max(1);
        match slots.clone().find(|key| until(key).is_none()) {
            Some(key) => Ok(Chosen((self.count > 0).then_some(key))),
            None => Err(slots.filter_map(|key| until(&key)).min().unwrap_or(now)),
        }
    }

    /// A given key, if it exists and isn't resting; otherwise like [`choose`](Self::choose).
    pub(crate) fn prefer(&self, key: usize, now: Instant) -> Result<Chosen, Instant> {
        let is_free = {
            let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.get(key).copied().flatten().is_none_or(|until| until <= now)
        };
        if key < self.count && is_free { Ok(Chosen(Some(key))) } else { self.choose(now) }
    }

    /// The next key that isn't resting. None if there is none.
    pub(crate) fn after(&self, chosen: Chosen, now: Instant) -> Option<Chosen> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = |key: &usize| waiting.get(*key).copied().flatten().is_none_or(|until| until <= now);
        (chosen.0? + 1..self.count).find(is_free).map(|key| Chosen(Some(key)))
    }

    /// Rests a key until this time.
    pub(crate) fn wait(&self, chosen: Chosen, until: Instant) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let slots = self.count.max(1);
        waiting.resize(slots, None);
        if let Some(slot) = waiting.get_mut(chosen.0.unwrap_or(0)) {
            *slot = Some(slot.map_or(until, |before| before.max(until)));
        }
    }

    /// Number of resting keys.
    pub(crate) fn waiting(&self, now: Instant) -> usize {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.iter().flatten().filter(|until| **until > now).count()
    }

    /// Whether there is no more than one key.
    pub(crate) fn is_alone(&self) -> bool {
        self.count <= 1
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_first_key_that_need_not_wait_is_used() {
        let (keys, now) = (Keys::new(2), Instant::now());
        let second = Duration::from_secs(1);
        assert_eq!(keys.choose(now), Ok(Chosen(Some(0))));
        assert_eq!(keys.after(Chosen(Some(0)), now), Some(Chosen(Some(1))));
        assert_eq!(keys.after(Chosen(Some(1)), now), None);
        keys.wait(Chosen(Some(0)), now + 10 * second);
        assert_eq!(keys.choose(now), Ok(Chosen(Some(1))));
        keys.wait(Chosen(Some(1)), now + 5 * second);
        assert_eq!(keys.after(Chosen(Some(0)), now), None);
        assert_eq!(keys.choose(now), Err(now + 5 * second));
        assert_eq!((keys.waiting(now), keys.waiting(now + 5 * second)), (2, 1));
        assert_eq!(keys.choose(now + 5 * second), Ok(Chosen(Some(1))));
        assert_eq!(keys.choose(now + 10 * second), Ok(Chosen(Some(0))));
        // A shorter rest doesn't shorten a longer one.
        keys.wait(Chosen(Some(0)), now + 20 * second);
        keys.wait(Chosen(Some(0)), now + 15 * second);
        assert_eq!(keys.choose(now + 15 * second), Ok(Chosen(Some(1))));
    }

    #[test]
    fn a_preferred_key_is_used_unless_it_has_to_wait() {
        let (keys, now) = (Keys::new(2), Instant::now());
        assert_eq!(keys.prefer(1, now), Ok(Chosen(Some(1))));
        assert_eq!(keys.prefer(2, now), Ok(Chosen(Some(0))));
        keys.wait(Chosen(Some(1)), now + Duration::from_secs(1));
        assert_eq!(keys.prefer(1, now), Ok(Chosen(Some(0))));
        assert_eq!(Keys::new(0).prefer(0, now), Ok(Chosen(None)));
    }

    #[test]
    fn an_upstream_without_keys_can_wait_too() {
        let (keys, now) = (Keys::new(0), Instant::now());
        assert_eq!(keys.choose(now), Ok(Chosen(None)));
        let until = now + Duration::from_secs(1);
        keys.wait(Chosen(None), until);
        assert_eq!(keys.choose(now), Err(until));
        assert_eq!(keys.choose(until), Ok(Chosen(None)));
    }
}
