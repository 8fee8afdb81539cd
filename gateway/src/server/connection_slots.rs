//! Connection slots. When all are taken, the connection that has been silent for the longest time is closed for a new one:
//! silent connections, which need no key, lock nobody out.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// How long a new connection waits for the one being closed for it before another one is closed.
const EVICTION_PAUSE: Duration = Duration::from_millis(50);
/// In [`Activity::silent_since`]: a request is in progress.
const BUSY: u64 = u64::MAX;
/// In [`Activity::silent_since`]: the connection is being closed for a new one.
const EVICTED: u64 = u64::MAX - 1;

/// The activity of a connection. The connection updates it with single atomic operations; only a full gateway reads
/// it.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Microseconds from the start of the gateway, or [`BUSY`] or [`EVICTED`].
    silent_since: AtomicU64,
    has_had_request: AtomicBool,
    evicted: Notify,
    started: Clock,
}

/// Measures from the start of the gateway.
#[derive(Debug, Clone, Copy)]
struct Clock(Instant);

impl Default for Clock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock {
    fn now(self) -> u64 {
        u64::try_from(self.0.elapsed().as_micros()).unwrap_or(EVICTED).min(EVICTED - 1)
    }
}

impl Activity {
    fn new(started: Clock) -> Arc<Self> {
        Arc::new(Self { silent_since: AtomicU64::new(started.now()), started, ..Self::default() })
    }

    /// The head of a request is complete. From now on, the connection is not closed for another one.
    pub(super) fn begin_request(&self) {
        self.silent_since.store(BUSY, Ordering::Release);
        self.has_had_request.store(true, Ordering::Relaxed);
    }

    /// The response is sent: the connection waits for its next request.
    pub(super) fn end_request(&self) {
        self.silent_since.store(self.started.now(), Ordering::Release);
    }

    /// Resolves when the connection must make room. A request that began at the same moment is served.
    pub(super) async fn evicted(&self) {
        loop {
            self.evicted.notified().await;
            if self.silent_since.load(Ordering::Acquire) == EVICTED {
                return;
            }
        }
    }

    /// The order in which silent connections are closed: those without a request first, then by the start of their
    /// silence. `None`: it is not silent.
    fn rank(&self) -> Option<(bool, u64)> {
        let since = self.silent_since.load(Ordering::Acquire);
        (since < EVICTED).then(|| (self.has_had_request.load(Ordering::Relaxed), since))
    }

    /// Closes the connection, unless it has started a request in the meantime.
    fn evict(&self, since: u64) -> bool {
        let evicts =
            self.silent_since.compare_exchange(since, EVICTED, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if evicts {
            self.evicted.notify_one();
        }
        evicts
    }
}

/// All slots of a gateway.
pub(super) struct ConnectionSlots {
    free: Arc<Semaphore>,
    started: Clock,
    taken: Mutex<OpenSlots>,
}

#[derive(Default)]
struct OpenSlots {
    next_id: u64,
    by_id: HashMap<u64, Arc<Activity>>,
}

/// The slot of a connection, until it is dropped.
pub(super) struct ConnectionSlot {
    places: Arc<ConnectionSlots>,
    id: u64,
    activity: Arc<Activity>,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionSlots {
    pub(super) fn new(max_connections: usize) -> Arc<Self> {
        let (started, taken) = (Clock::default(), Mutex::default());
        Arc::new(Self { free: Arc::new(Semaphore::new(max_connections)), started, taken })
    }

    /// Takes a slot for a new connection. If there is none, closes the connection that has been silent for the longest time;
    /// if all connections have a request in progress, waits for the first of these to end.
    pub(super) async fn take(self: &Arc<Self>) -> ConnectionSlot {
        loop {
            let mut permit = Arc::clone(&self.free).try_acquire_owned().ok();
            if permit.is_none() {
                self.evict_one();
                let freed = Arc::clone(&self.free).acquire_owned();
                permit = tokio::time::timeout(EVICTION_PAUSE, freed).await.ok().and_then(Result::ok);
            }
            if let Some(permit) = permit {
                let activity = Activity::new(self.started);
                let mut taken = self.taken();
                let id = taken.next_id;
                taken.next_id += 1;
                taken.by_id.insert(id, Arc::clone(&activity));
                drop(taken);
                return ConnectionSlot { places: Arc::clone(self), id, activity, _permit: permit };
            }
        }
    }

    fn evict_one(&self) {
        let taken = self.taken();
        let silent = taken.by_id.values().filter_map(|activity| Some((activity.rank()?, activity)));
        let longest = silent.min_by_key(|(rank, _)| *rank);
        if let Some(((_, since), activity)) = longest
            && activity.evict(since)
        {
            tracing::debug!("closed an idle connection: all connection slots are in use");
        }
    }

    fn taken(&self) -> MutexGuard<'_, OpenSlots> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionSlot {
    pub(super) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.places.taken().by_id.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the connection is being closed for another one.
    async fn is_evicted(place: &ConnectionSlot) -> bool {
        tokio::time::timeout(Duration::from_millis(10), place.activity.evicted()).await.is_ok()
    }

    #[tokio::test]
    async fn unused_connection_is_evicted_before_an_idle_one() {
        let places = ConnectionSlots::new(3);
        let (idle, silent, busy) = (places.take().await, places.take().await, places.take().await);
        idle.activity.begin_request();
        idle.activity.end_request();
        busy.activity.begin_request();
        places.evict_one();
        assert!(!is_evicted(&idle).await && !is_evicted(&busy).await);
        assert!(is_evicted(&silent).await);
        places.evict_one();
        assert!(is_evicted(&idle).await);
        places.evict_one();
        assert!(!is_evicted(&busy).await, "its request is in progress");
    }

    #[tokio::test]
    async fn request_that_begins_during_eviction_is_served() {
        let places = ConnectionSlots::new(1);
        let place = places.take().await;
        places.evict_one();
        place.activity.begin_request();
        assert!(!is_evicted(&place).await);
        place.activity.end_request();
        assert!(!is_evicted(&place).await, "the earlier eviction is void");
    }

    #[tokio::test]
    async fn new_connection_waits_while_all_others_are_busy() {
        let places = ConnectionSlots::new(1);
        let place = places.take().await;
        place.activity.begin_request();
        let waited = tokio::time::timeout(EVICTION_PAUSE * 3, places.take()).await;
        assert!(waited.is_err() && !is_evicted(&place).await);
        place.activity.end_request();
        let taking = places.take();
        let closing = async {
            place.activity.evicted().await;
            drop(place);
        };
        let (_next, ()) = tokio::join!(taking, closing);
    }
}
