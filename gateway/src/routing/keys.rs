//! The keys of an upstream for one of its models: the first one that isn't resting is used. When a rest ends, one request at a time
//! probes the key, until one succeeds.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest time until a request probes a key, even if the upstream asks for a longer rest: it may apply to one client's request only.
const MAX_REST: Duration = Duration::from_mins(1);
/// When to ask again while a probe is in progress.
const PROBE_WAIT: Duration = Duration::from_secs(1);

/// Which keys are resting, and until when.
#[derive(Debug)]
pub(crate) struct RestingKeys {
    count: usize,
    /// Empty until a key has to rest.
    slots: Mutex<Vec<Slot>>,
}

/// Which requests may use a key.
#[derive(Debug, Clone, Copy, Default)]
enum Slot {
    #[default]
    Free,
    Resting {
        until: Instant,
        below: u64,
    },
    /// The rest has ended, and a probe is in progress.
    Probing {
        below: u64,
    },
}

/// A key to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SelectedKey {
    /// None if the upstream needs none.
    pub(crate) key: Option<usize>,
    /// Whether the request probes the key after a rest.
    is_probe: bool,
}

/// How long a key rests, and from which requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rest {
    pub(crate) until: Instant,
    /// The key still serves requests of fewer tokens than this: the upstream has some left. 0: it serves none.
    pub(crate) below: u64,
}

impl Slot {
    /// The state after a request of this many tokens chose the key, and whether the request probes it. Errors: when the key may be
    /// used.
    fn choose(self, tokens: u64, now: Instant) -> Result<(Self, bool), Instant> {
        match self {
            Self::Resting { below, .. } | Self::Probing { below } if tokens < below => Ok((self, false)),
            Self::Free => Ok((self, false)),
            Self::Resting { until, .. } if now < until => Err(until),
            Self::Resting { below, .. } => Ok((Self::Probing { below }, true)),
            Self::Probing { .. } => Err(now + PROBE_WAIT),
        }
    }

    /// `is_probe`: whether the request that the upstream rejected was the probe.
    fn rest(self, rest: Rest, is_probe: bool) -> Self {
        match self {
            Self::Probing { below } if !is_probe => Self::Probing { below: below.min(rest.below) },
            Self::Resting { until, below } => {
                Self::Resting { until: until.max(rest.until), below: below.min(rest.below) }
            }
            Self::Free | Self::Probing { .. } => Self::Resting { until: rest.until, below: rest.below },
        }
    }
}

impl RestingKeys {
    pub(crate) fn new(count: usize) -> Self {
        Self { count, slots: Mutex::default() }
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first of these keys that isn't resting. `tokens`: of the request. Errors: when the first of them may be used.
    fn first(
        &self,
        keys: impl IntoIterator<Item = usize>,
        tokens: u64,
        now: Instant,
    ) -> Result<SelectedKey, Instant> {
        let mut slots = self.slots();
        let mut earliest: Option<Instant> = None;
        for key in keys {
            match slots.get(key).copied().unwrap_or_default().choose(tokens, now) {
                Ok((slot, is_probe)) => {
                    if let Some(known) = slots.get_mut(key) {
                        *known = slot;
                    }
                    return Ok(SelectedKey { key: (self.count > 0).then_some(key), is_probe });
                }
                Err(until) => earliest = Some(earliest.map_or(until, |other| other.min(until))),
            }
        }
        Err(earliest.unwrap_or(now))
    }

    /// The first key that isn't resting. `tokens`: of the request. Errors: when the first of them may be used again.
    pub(crate) fn choose(&self, tokens: u64, now: Instant) -> Result<SelectedKey, Instant> {
        // An upstream without keys may have to rest, too.
        self.first(0..self.count.max(1), tokens, now)
    }

    /// A given key, if it exists and isn't resting; otherwise like [`choose`](Self::choose).
    pub(crate) fn prefer(&self, key: usize, tokens: u64, now: Instant) -> Result<SelectedKey, Instant> {
        let preferred = (key < self.count).then_some(key);
        self.first(preferred.into_iter().chain(0..self.count.max(1)), tokens, now)
    }

    /// The next key that isn't resting. None if there is none.
    pub(crate) fn after(&self, chosen: SelectedKey, tokens: u64, now: Instant) -> Option<SelectedKey> {
        self.first(chosen.key? + 1..self.count, tokens, now).ok()
    }

    /// Rests a key.
    pub(crate) fn rest(&self, chosen: SelectedKey, rest: Rest, now: Instant) {
        let mut slots = self.slots();
        slots.resize(self.count.max(1), Slot::Free);
        let rest = Rest { until: rest.until.min(now + MAX_REST), ..rest };
        if let Some(slot) = slots.get_mut(chosen.key.unwrap_or(0)) {
            *slot = slot.rest(rest, chosen.is_probe);
        }
    }

    /// The upstream accepted a request with this key.
    pub(crate) fn succeeded(&self, chosen: SelectedKey) {
        self.end_probe(chosen, |_| Slot::Free);
    }

    /// The request ended without revealing whether the key works: the next request probes it.
    pub(crate) fn abandoned(&self, chosen: SelectedKey, now: Instant) {
        self.end_probe(chosen, |below| Slot::Resting { until: now, below });
    }

    fn end_probe(&self, chosen: SelectedKey, end: impl FnOnce(u64) -> Slot) {
        if !chosen.is_probe {
            return;
        }
        if let Some(slot) = self.slots().get_mut(chosen.key.unwrap_or(0))
            && let Slot::Probing { below } = *slot
        {
            *slot = end(below);
        }
    }

    /// Number of resting keys.
    pub(crate) fn waiting(&self, now: Instant) -> usize {
        let waits = |slot: &&Slot| match slot {
            Slot::Free => false,
            Slot::Resting { until, .. } => *until > now,
            Slot::Probing { .. } => true,
        };
        self.slots().iter().filter(waits).count()
    }

    /// Whether there is at most one key.
    pub(crate) fn is_alone(&self) -> bool {
        self.count <= 1
    }
}

impl SelectedKey {
    /// The same key, whose probe has an outcome.
    pub(crate) fn probed(self) -> Self {
        Self { is_probe: false, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    /// Tokens of a request.
    const TOKENS: u64 = 1_000;

    fn chosen(key: usize) -> SelectedKey {
        SelectedKey { key: Some(key), is_probe: false }
    }

    fn probe(key: usize) -> SelectedKey {
        SelectedKey { key: Some(key), is_probe: true }
    }

    fn rest(until: Instant) -> Rest {
        Rest { until, below: 0 }
    }

    #[test]
    fn first_key_that_is_not_resting_is_chosen() {
        let (keys, now) = (RestingKeys::new(2), Instant::now());
        let choose = |now| keys.choose(TOKENS, now);
        assert_eq!(choose(now), Ok(chosen(0)));
        assert_eq!(keys.after(chosen(0), TOKENS, now), Some(chosen(1)));
        assert_eq!(keys.after(chosen(1), TOKENS, now), None);
        keys.rest(chosen(0), rest(now + 10 * SECOND), now);
        assert_eq!(choose(now), Ok(chosen(1)));
        keys.rest(chosen(1), rest(now + 5 * SECOND), now);
        assert_eq!(keys.after(chosen(0), TOKENS, now), None);
        assert_eq!(choose(now), Err(now + 5 * SECOND));
        assert_eq!((keys.waiting(now), keys.waiting(now + 5 * SECOND)), (2, 1));
        // A shorter rest doesn't shorten a longer one.
        keys.rest(chosen(0), rest(now + 20 * SECOND), now);
        keys.rest(chosen(0), rest(now + 15 * SECOND), now);
        assert_eq!(choose(now + 15 * SECOND), Ok(probe(1)));
        assert_eq!(choose(now + 20 * SECOND), Ok(probe(0)));
    }

    #[test]
    fn rested_key_is_probed_by_one_request_at_a_time() {
        let (keys, now) = (RestingKeys::new(1), Instant::now());
        keys.rest(chosen(0), rest(now + 5 * SECOND), now);
        let later = now + 5 * SECOND;
        assert_eq!(keys.choose(TOKENS, later), Ok(probe(0)));
        assert_eq!(keys.choose(TOKENS, later), Err(later + PROBE_WAIT));
        assert_eq!(keys.waiting(later), 1);
        // Without an outcome, the next request is the probe.
        keys.abandoned(probe(0), later);
        assert_eq!(keys.choose(TOKENS, later), Ok(probe(0)));
        // Requests from before the rest decide nothing.
        keys.succeeded(chosen(0));
        keys.rest(chosen(0), rest(later + 50 * SECOND), later);
        assert_eq!(keys.choose(TOKENS, later), Err(later + PROBE_WAIT));
        // It rests again if the probe fails, and is free if it succeeds.
        keys.rest(probe(0), rest(later + 5 * SECOND), later);
        assert_eq!(keys.choose(TOKENS, later), Err(later + 5 * SECOND));
        let last = later + 5 * SECOND;
        assert_eq!(keys.choose(TOKENS, last), Ok(probe(0)));
        keys.succeeded(probe(0));
        assert_eq!([keys.choose(TOKENS, last), keys.choose(TOKENS, last)], [Ok(chosen(0)); 2]);
    }

    #[test]
    fn key_rest_is_capped_at_one_minute() {
        let (keys, now) = (RestingKeys::new(1), Instant::now());
        keys.rest(chosen(0), rest(now + 3600 * SECOND), now);
        assert_eq!(keys.choose(TOKENS, now), Err(now + MAX_REST));
        assert_eq!(keys.choose(TOKENS, now + MAX_REST), Ok(probe(0)));
    }

    #[test]
    fn smaller_requests_use_the_remaining_tokens() {
        let (keys, now) = (RestingKeys::new(1), Instant::now());
        let until = now + 5 * SECOND;
        keys.rest(chosen(0), Rest { until, below: 100 }, now);
        assert_eq!(keys.choose(99, now), Ok(chosen(0)));
        assert_eq!(keys.choose(100, now), Err(until));
        // Also while a large one probes.
        assert_eq!(keys.choose(100, until), Ok(probe(0)));
        assert_eq!(keys.choose(99, until), Ok(chosen(0)));
        // One that is rejected, too, leaves less.
        keys.rest(chosen(0), Rest { until, below: 10 }, until);
        assert_eq!((keys.choose(10, until).is_err(), keys.choose(9, until)), (true, Ok(chosen(0))));
    }

    #[test]
    fn preferred_key_is_used_unless_it_is_resting() {
        let (keys, now) = (RestingKeys::new(2), Instant::now());
        assert_eq!(keys.prefer(1, TOKENS, now), Ok(chosen(1)));
        assert_eq!(keys.prefer(2, TOKENS, now), Ok(chosen(0)));
        keys.rest(chosen(1), rest(now + SECOND), now);
        assert_eq!(keys.prefer(1, TOKENS, now), Ok(chosen(0)));
        assert_eq!(
            RestingKeys::new(0).prefer(0, TOKENS, now),
            Ok(SelectedKey { key: None, is_probe: false })
        );
    }

    #[test]
    fn upstream_without_keys_can_rest() {
        let (keys, now) = (RestingKeys::new(0), Instant::now());
        let none = SelectedKey { key: None, is_probe: false };
        assert_eq!(keys.choose(TOKENS, now), Ok(none));
        let until = now + SECOND;
        keys.rest(none, rest(until), now);
        assert_eq!(keys.choose(TOKENS, now), Err(until));
        assert_eq!(keys.choose(TOKENS, until), Ok(SelectedKey { key: None, is_probe: true }));
    }
}
