//! A gateway that hung, for example because its system suspended it, has missed changes. Requests that waited for it
//! must not be judged by the old keys, so the first ones wait until the keys have been reloaded.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gatewright_system::clock::monotonic_nanos;
use tokio::sync::Notify;

/// How often the gateway records that it is alive.
pub(super) const BEAT: Duration = Duration::from_millis(250);
/// Interval between two of these records that counts as a hang, in nanoseconds.
const HUNG: u64 = 1_000_000_000;
/// How long a request waits for the keys at most. A store that doesn't answer blocks no request: the keys in memory
/// remain valid.
const PATIENCE: Duration = Duration::from_secs(2);

/// See the module.
#[derive(Debug)]
pub(super) struct StallDetector {
    /// When the gateway was last known to be alive, in nanoseconds on a clock that continues while it hangs.
    alive: AtomicU64,
    /// How often it has hung.
    hangs: AtomicU64,
    /// How often it had hung when the keys in memory were requested.
    covered: AtomicU64,
    read: Notify,
}

impl StallDetector {
    pub(super) fn new() -> Self {
        Self {
            alive: AtomicU64::new(monotonic_nanos()),
            hangs: AtomicU64::default(),
            covered: AtomicU64::default(),
            read: Notify::new(),
        }
    }

    /// Records that the gateway is alive. Returns how often it has hung.
    pub(super) fn beat(&self) -> u64 {
        self.beat_at(monotonic_nanos())
    }

    fn beat_at(&self, now: u64) -> u64 {
        let before = self.alive.swap(now, Ordering::Relaxed);
        if now.saturating_sub(before) > HUNG {
            self.hangs.fetch_add(1, Ordering::Relaxed);
        }
        self.hangs.load(Ordering::Relaxed)
    }

    /// Records that the keys were reloaded, or can't be. `hangs`: how often the gateway had hung when they were requested. It may have hung
    /// again since, and then they are too old for the requests that waited meanwhile.
    pub(super) fn reloaded(&self, hangs: u64) {
        if self.covered.fetch_max(hangs, Ordering::Relaxed) < hangs {
            self.read.notify_waiters();
        }
    }

    /// Lets a request pass once the keys have been reloaded after a hang.
    pub(super) async fn pass(&self) {
        let hangs = self.beat();
        if self.covered.load(Ordering::Relaxed) < hangs {
            _ = tokio::time::timeout(PATIENCE, self.covers(hangs)).await;
        }
    }

    async fn covers(&self, hangs: u64) {
        loop {
            let mut read = std::pin::pin!(self.read.notified());
            read.as_mut().enable();
            // They may have been reloaded just before.
            if self.covered.load(Ordering::Relaxed) >= hangs {
                return;
            }
            read.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn request_after_a_stall_waits_for_the_key_refresh() {
        let hanging = StallDetector::new();
        let start = monotonic_nanos();
        assert_eq!([start + HUNG / 2, start + HUNG].map(|now| hanging.beat_at(now)), [0, 0]);
        assert_eq!([start + 3 * HUNG, start + 3 * HUNG + 1].map(|now| hanging.beat_at(now)), [1, 1]);
        let started = tokio::time::Instant::now();
        let read = async {
            tokio::time::sleep(PATIENCE / 2).await;
            hanging.reloaded(1);
        };
        tokio::join!(hanging.pass(), read);
        assert_eq!(started.elapsed(), PATIENCE / 2);
        hanging.pass().await;
        assert_eq!(started.elapsed(), PATIENCE / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn request_after_a_second_stall_waits_for_keys_that_were_requested_after_it() {
        let hanging = StallDetector::new();
        let start = monotonic_nanos();
        let requested = hanging.beat_at(start + 2 * HUNG);
        assert_eq!(hanging.beat_at(start + 4 * HUNG), 2);
        let started = tokio::time::Instant::now();
        let read = async {
            // The store's answer is from before the second stall.
            hanging.reloaded(requested);
            tokio::time::sleep(PATIENCE / 2).await;
            hanging.reloaded(2);
        };
        tokio::join!(hanging.pass(), read);
        assert_eq!(started.elapsed(), PATIENCE / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn unresponsive_store_delays_a_request_briefly() {
        let hanging = StallDetector::new();
        assert_eq!(hanging.beat_at(monotonic_nanos() + 2 * HUNG), 1);
        let started = tokio::time::Instant::now();
        hanging.pass().await;
        assert!(started.elapsed() <= PATIENCE + Duration::from_millis(1));
    }
}
