//! A lock-free limit per minute: a token bucket that starts full and refills evenly.
//!
//! The state is a single number, the time at which the bucket is full again (the generic cell rate algorithm). Tokens consumed
//! unconditionally, because their number wasn't known in advance, may leave a debt; requests wait until it is paid.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The time in which an empty bucket refills.
const MINUTE: u64 = 60_000_000_000;
/// Maximum duration of a debt, so that one huge answer doesn't block a key for a day.
const MAX_DEBT: u64 = 60 * MINUTE;

/// The remainder of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Remaining {
    /// How much may be used immediately.
    pub(crate) remaining: u64,
    /// Time until the bucket is full.
    pub(crate) full: Duration,
}

/// The bucket of one limit. `now`: nanoseconds of a monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    full_at: AtomicU64,
}

impl Meter {
    /// Consumes one of `limit` per minute. Errors: none is left; the time until one is available.
    pub(crate) fn take(&self, limit: u64, now: u64) -> Result<(), Duration> {
        let (one, most) = (cost(1, limit), MINUTE);
        let mut wait = 0;
        let taken = self.full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |full_at| {
            let then = full_at.max(now) + one;
            wait = (then - now).saturating_sub(most);
            (wait == 0).then_some(then)
        });
        taken.map(drop).map_err(|_| Duration::from_nanos(wait))
    }

    /// Consumes `count` unconditionally (may go into debt).
    pub(crate) fn add(&self, count: u64, limit: u64, now: u64) {
        let cost = cost(count, limit);
        let add = |full_at: u64| Some(full_at.max(now).saturating_add(cost).min(now + MINUTE + MAX_DEBT));
        // Always succeeds.
        _ = self.full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// The remainder.
    pub(crate) fn left(&self, limit: u64, now: u64) -> Remaining {
        let used = self.full_at.load(Ordering::Relaxed).saturating_sub(now);
        let free = u128::from(MINUTE.saturating_sub(used)) * u128::from(limit) / u128::from(MINUTE);
        Remaining { remaining: u64::try_from(free).unwrap_or(limit), full: Duration::from_nanos(used) }
    }

    /// Time until the bucket is full.
    pub(crate) fn used(&self, now: u64) -> Duration {
        Duration::from_nanos(self.full_at.load(Ordering::Relaxed).saturating_sub(now))
    }

    /// Adopts what others report: at `now`, it took this long until the bucket was full. Usage only grows.
    pub(crate) fn follow(&self, used: Duration, now: u64) {
        let used = u64::try_from(used.as_nanos()).unwrap_or(u64::MAX).min(MINUTE + MAX_DEBT);
        self.full_at.fetch_max(now.saturating_add(used), Ordering::Relaxed);
    }

    /// The time until at least one is left; `None` if one is.
    pub(crate) fn wait(&self, limit: u64, now: u64) -> Option<Duration> {
        let used = self.full_at.load(Ordering::Relaxed).saturating_sub(now);
        let wait = used.saturating_add(cost(1, limit)).saturating_sub(MINUTE);
        (wait > 0).then_some(Duration::from_nanos(wait))
    }
}

/// The time in which `count` of a limit refill.
fn cost(count: u64, limit: u64) -> u64 {
    let cost = u128::from(count) * u128::from(MINUTE) / u128::from(limit.max(1));
    u64::try_from(cost).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn full_minute_may_be_used_at_once_and_refills_evenly() {
        let meter = Meter::default();
        let now = 5 * SECOND;
        for used in 0..6 {
            assert_eq!(meter.left(6, now).remaining, 6 - used);
            assert_eq!(meter.take(6, now), Ok(()));
        }
        assert_eq!(meter.take(6, now), Err(Duration::from_secs(10)));
        assert_eq!(meter.left(6, now), Remaining { remaining: 0, full: Duration::from_mins(1) });
        assert_eq!(meter.take(6, now + 9 * SECOND), Err(Duration::from_secs(1)));
        assert_eq!(meter.take(6, now + 10 * SECOND), Ok(()));
        let later = now + 600 * SECOND;
        assert_eq!(meter.left(6, later), Remaining { remaining: 6, full: Duration::ZERO });
    }

    #[test]
    fn limit_that_does_not_divide_a_minute_is_fully_usable() {
        for limit in [1, 7, 59, 61, 1_000_003] {
            let (meter, now) = (Meter::default(), SECOND);
            let taken = (0..limit.min(100)).filter(|_| meter.take(limit, now).is_ok()).count() as u64;
            assert_eq!(taken, limit.min(100), "{limit}");
            if limit <= 100 {
                assert!(meter.take(limit, now).is_err_and(|wait| !wait.is_zero()), "{limit}");
            }
        }
    }

    #[test]
    fn usage_of_other_gateways_is_adopted_and_never_decreases() {
        let (meter, now) = (Meter::default(), 100 * SECOND);
        meter.follow(Duration::from_secs(30), now);
        assert_eq!((meter.used(now), meter.left(6, now).remaining), (Duration::from_secs(30), 3));
        meter.follow(Duration::from_secs(10), now + SECOND);
        assert_eq!(meter.used(now), Duration::from_secs(30));
        meter.follow(Duration::MAX, now);
        assert_eq!(meter.used(now), Duration::from_mins(61));
    }

    #[test]
    fn unrequested_usage_becomes_a_debt_capped_at_one_hour() {
        let meter = Meter::default();
        assert_eq!(meter.wait(1000, 0), None);
        meter.add(999, 1000, 0);
        assert_eq!((meter.left(1000, 0).remaining, meter.wait(1000, 0)), (1, None));
        meter.add(1001, 1000, 0);
        assert_eq!(meter.left(1000, 0).remaining, 0);
        assert_eq!(meter.wait(1000, 0), Some(Duration::from_millis(60_060)));
        meter.add(u64::MAX, 1, 0);
        assert_eq!(meter.wait(1, 0), Some(Duration::from_mins(61)));
    }
}
