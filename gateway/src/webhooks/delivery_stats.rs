//! The notifications that this process knows without querying the store: those it attempted, and the outcomes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gatewright_store::{DeliveryOutcome, MAX_NOTICES};
use gatewright_system::clock::millis;

use super::sender::ATTEMPT_TIMEOUT;
use crate::observe::{Tally, TallyGuard};

/// How long no other gateway attempts a notification in progress: longer than an attempt.
pub(super) const LEASE: Duration = Duration::from_secs(3 * ATTEMPT_TIMEOUT.as_secs());

/// See the module.
#[derive(Default)]
pub(super) struct DeliveryStats {
    sending: Tally,
    /// When notifications whose last attempt failed here are due, by id, in milliseconds of a monotonic clock.
    again: Mutex<HashMap<String, u64>>,
    delivered: AtomicUsize,
    dead: AtomicUsize,
}

impl DeliveryStats {
    /// Starts an attempt; it lasts until the returned value is dropped.
    pub(super) fn sends(&self, id: &str) -> TallyGuard {
        self.again().remove(id);
        self.sending.one()
    }

    /// Records the outcome of an attempt. `now`: in milliseconds of the same clock.
    pub(super) fn note(&self, id: &str, attempted: &DeliveryOutcome, now: u64) {
        match attempted {
            DeliveryOutcome::Delivered => _ = self.delivered.fetch_add(1, Ordering::Relaxed),
            DeliveryOutcome::Dead { .. } => _ = self.dead.fetch_add(1, Ordering::Relaxed),
            DeliveryOutcome::Again { after, .. } => {
                let due = now.saturating_add(millis(*after));
                let mut again = self.again();
                // Other gateways of the store take over some of them: those that stay here must not accumulate.
                if again.len() >= MAX_NOTICES {
                    again.retain(|_, other| !is_overdue(*other, due));
                }
                if again.len() < MAX_NOTICES {
                    again.insert(id.to_owned(), due);
                }
            }
        }
    }

    /// Number of notifications in each state at a time.
    pub(super) fn states(&self, now: u64) -> [(&'static str, usize); 4] {
        let mut again = self.again();
        again.retain(|_, due| !is_overdue(*due, now));
        [
            ("sending", self.sending.now()),
            ("retrying", again.len()),
            ("delivered", self.delivered.load(Ordering::Relaxed)),
            ("dead", self.dead.load(Ordering::Relaxed)),
        ]
    }

    fn again(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.again.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a notification not retried here must have been retried elsewhere, or no longer exists.
fn is_overdue(due: u64, now: u64) -> bool {
    due.saturating_add(millis(LEASE)) < now
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(after: u64) -> DeliveryOutcome {
        DeliveryOutcome::Again { after: Duration::from_millis(after), problem: "refused".to_owned() }
    }

    /// Number of notifications being sent, waiting for a retry, delivered and given up.
    fn counts(known: &DeliveryStats, now: u64) -> [usize; 4] {
        known.states(now).map(|(_, count)| count)
    }

    #[test]
    fn notification_is_in_one_state_at_a_time() {
        let known = DeliveryStats::default();
        let sends = known.sends("a");
        assert_eq!(counts(&known, 0), [1, 0, 0, 0]);
        known.note("a", &again(5), 0);
        drop(sends);
        assert_eq!(counts(&known, 0), [0, 1, 0, 0]);
        drop(known.sends("a"));
        known.note("a", &DeliveryOutcome::Delivered, 0);
        known.note("b", &DeliveryOutcome::Dead { problem: "refused".to_owned() }, 0);
        assert_eq!(counts(&known, 0), [0, 0, 1, 1]);
    }

    #[test]
    fn retries_taken_by_others_are_forgotten_and_state_is_bounded() {
        let known = DeliveryStats::default();
        for number in 0..=MAX_NOTICES {
            known.note(&number.to_string(), &again(1), 0);
        }
        assert_eq!(counts(&known, 1)[1], MAX_NOTICES);
        let later = 2 + millis(LEASE);
        known.note("later", &again(2), millis(LEASE));
        assert_eq!(known.again().len(), 1);
        assert_eq!(counts(&known, later)[1], 1);
        assert_eq!(counts(&known, 2 * later)[1], 0);
    }
}
