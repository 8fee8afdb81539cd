//! A minimum rate for bodies from upstreams. A body that drips would occupy memory, and keep its client waiting, for days.

use std::time::Duration;

use tokio::time::Instant;

/// Minimum rate, in bytes per second.
pub(crate) const MIN_RATE: usize = 8 * 1024;
/// Minimum time over which the rate is measured.
const MIN_WINDOW: Duration = Duration::from_mins(1);
/// How much of a pause counts: an upstream may be silent for its idle timeout.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// Measures the rate of a body.
pub(crate) struct Pace {
    window: Duration,
    /// When waiting for the next packet began.
    since: Instant,
    /// The time that the bytes took: of each pause, only its beginning.
    taken: Duration,
    bytes: usize,
}

impl Pace {
    /// `idle_timeout`: of the body. The rate is measured over at least as long.
    pub(crate) fn new(idle_timeout: Duration) -> Self {
        Self::over(idle_timeout.max(MIN_WINDOW))
    }

    fn over(window: Duration) -> Self {
        Self { window, since: Instant::now(), taken: Duration::ZERO, bytes: 0 }
    }

    /// Starts waiting for the next packet: from now on, the time counts.
    pub(crate) fn wait(&mut self) {
        self.since = Instant::now();
    }

    /// Counts bytes. True if the rate is too low.
    pub(crate) fn is_slow(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        self.taken += self.since.elapsed().min(MAX_PAUSE);
        if self.taken < self.window {
            return false;
        }
        let seconds = usize::try_from(self.taken.as_secs()).unwrap_or(usize::MAX);
        let is_slow = self.bytes < MIN_RATE.saturating_mul(seconds);
        *self = Self::over(self.window);
        is_slow
    }
}
