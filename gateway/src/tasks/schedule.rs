//! Limits concurrent work in this process: encoders, polls of providers, downloads; and holds the estimates of video times.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use super::estimates::Estimates;
use crate::observe::Tally;

/// Maximum number of videos encoded at once: each occupies a processor. Other tasks stay pending.
const MAX_ENCODINGS: usize = 2;
/// Maximum number of concurrent polls of providers.
pub(crate) const MAX_LOOK_UPS: usize = 16;
/// Maximum number of concurrent downloads from providers.
const MAX_FETCHES: usize = 4;
/// Estimated time to encode a second of video.
const PACE: Duration = Duration::from_millis(100);

/// See the module.
pub(crate) struct Schedule {
    encoders: WorkSlots,
    /// For polls of providers, and for downloads of their files.
    pub(crate) look_ups: WorkSlots,
    pub(crate) fetches: WorkSlots,
    /// For videos at providers.
    pub(crate) estimates: Arc<Estimates>,
    /// Seconds of video that are queued or being encoded.
    ahead_s: Mutex<u32>,
}

/// Slots for one kind of work, and the number of those waiting for one.
pub(crate) struct WorkSlots {
    free: Arc<Semaphore>,
    waiting: Tally,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            encoders: WorkSlots::new(MAX_ENCODINGS),
            look_ups: WorkSlots::new(MAX_LOOK_UPS),
            fetches: WorkSlots::new(MAX_FETCHES),
            estimates: Arc::default(),
            ahead_s: Mutex::default(),
        }
    }
}

impl WorkSlots {
    fn new(most: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(most)), waiting: Tally::default() }
    }

    /// Waits for a slot.
    pub(crate) async fn acquire(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        let _waits = self.waiting.one();
        Arc::clone(&self.free).acquire_owned().await
    }
}

impl Schedule {
    /// Number of those waiting for a slot, by kind of work.
    pub(crate) fn waiting(&self) -> [(&'static str, usize); 3] {
        [("encoder", &self.encoders), ("look_up", &self.look_ups), ("fetch", &self.fetches)]
            .map(|(work, places)| (work, places.waiting.now()))
    }

    /// Estimated time until a video of this many seconds is encoded, including the queue.
    pub(crate) fn wait(&self, duration_s: u32) -> Duration {
        PACE * (*self.lock() / u32::try_from(MAX_ENCODINGS).unwrap_or(1) + duration_s)
    }

    /// A free encoder, if there is one.
    pub(crate) fn free_place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.encoders.free).try_acquire_owned().ok()
    }

    /// Waits for a free encoder.
    pub(crate) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.encoders.acquire().await.ok()
    }

    fn lock(&self) -> MutexGuard<'_, u32> {
        self.ahead_s.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A queued video: counts towards the queue until dropped.
pub(crate) struct QueuedVideo {
    schedule: Arc<Schedule>,
    duration_s: u32,
}

impl QueuedVideo {
    pub(crate) fn new(schedule: &Arc<Schedule>, duration_s: u32) -> Self {
        *schedule.lock() += duration_s;
        Self { schedule: Arc::clone(schedule), duration_s }
    }
}

impl Drop for QueuedVideo {
    fn drop(&mut self) {
        *self.schedule.lock() -= self.duration_s;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::poll;

    use super::*;

    #[tokio::test]
    async fn waiters_for_a_slot_are_counted() {
        let schedule = Schedule::default();
        let encoders = || schedule.waiting()[0];
        let taken = [(), ()].map(|()| schedule.free_place().expect("a place"));
        let (mut first, mut second) = (Box::pin(schedule.place()), Box::pin(schedule.place()));
        assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
        assert_eq!(encoders(), ("encoder", 2));
        drop(second);
        assert_eq!(encoders(), ("encoder", 1));
        drop(taken);
        assert!(first.await.is_some());
        assert_eq!(schedule.waiting(), [("encoder", 0), ("look_up", 0), ("fetch", 0)]);
    }
}
