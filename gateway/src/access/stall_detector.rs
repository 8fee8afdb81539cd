//! A gateway that hung, for example because its system suspended it, has missed changes. Requests that waited for it
//! must not be judged by the old keys, so the first ones wait until the keys have been reloaded.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
    /// Whether it hung and the keys have not been reloaded since.
    hung: AtomicBool,
    read: Notify,
}

impl StallDetector {
    pub(super) fn new() -> Self {
        Self { alive: AtomicU64::new(monotonic_nanos()), hung: AtomicBool::default(), read: Notify::new() }
    }

    /// Records that the gateway is alive. Returns whether it hung and the keys have not been reloaded since.
    pub(super) fn beat(&self) -> bool {
        self.beat_at(monotonic_nanos())
    }

    fn beat_at(&self, now: u64) -> bool {
        let before = self.alive.swap(now, Ordering::Relaxed);
        if now.saturating_sub(before) > HUNG {
            self.hung.store(true, Ordering::Relaxed);
        }
        self.hung.load(Ordering::Relaxed)
    }

    /// Records that the keys were reloaded, or can't be, since the hang was detected.
    pub(super) fn is_over(&self) {
        self.hung.store(false, Ordering::Relaxed);
        self.read.notify_waiters();
    }

    /// Lets a request pass once the keys have been reloaded after a hang.
    pub(super) async fn pass(&self) {
        if !self.beat() {
            return;
        }
        let mut read = std::pin::pin!(self.read.notified());
        read.as_mut().enable();
        // It may have ended just before.
        if self.hung.load(Ordering::Relaxed) {
            _ = tokio::time::timeout(PATIENCE, read).await;
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
        assert!(!hanging.beat_at(start + HUNG / 2) && !hanging.beat_at(start + HUNG));
        assert!(hanging.beat_at(start + 3 * HUNG) && hanging.beat_at(start + 3 * HUNG + 1));
        let started = tokio::time::Instant::now();
        let read = async {
            tokio::time::sleep(PATIENCE / 2).await;
            hanging.is_over();
        };
        tokio::join!(hanging.pass(), read);
        assert_eq!(started.elapsed(), PATIENCE / 2);
        hanging.pass().await;
        assert_eq!(started.elapsed(), PATIENCE / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn unresponsive_store_delays_a_request_briefly() {
        let hanging = StallDetector::new();
        assert!(hanging.beat_at(monotonic_nanos() + 2 * HUNG));
        let started = tokio::time::Instant::now();
        hanging.pass().await;
        assert!(started.elapsed() <= PATIENCE + Duration::from_millis(1));
    }
}
