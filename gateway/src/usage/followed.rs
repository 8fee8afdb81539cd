//! Responses that an upstream generates in the background, while the gateway polls it for their usage.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Maximum number of responses polled at once. Beyond that, the usage is estimated.
const MAX_RESPONSES: usize = 1_000;
/// How long the deletion of a response waits until the gateway has read its usage.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// See the module.
#[derive(Debug)]
pub(crate) struct FollowedResponses {
    places: Arc<Semaphore>,
    by_id: Mutex<HashMap<String, Arc<PollSignals>>>,
}

/// Signals between the task that polls for a response and a request that deletes it.
#[derive(Debug, Default)]
struct PollSignals {
    wanted: Notify,
    done: Notify,
}

/// A response that is followed until this is dropped.
#[derive(Debug)]
pub(crate) struct FollowedResponse {
    followed: Arc<FollowedResponses>,
    id: String,
    signals: Arc<PollSignals>,
    _place: OwnedSemaphorePermit,
}

impl Default for FollowedResponses {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(MAX_RESPONSES)), by_id: Mutex::default() }
    }
}

impl FollowedResponses {
    fn by_id(&self) -> MutexGuard<'_, HashMap<String, Arc<PollSignals>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to follow a response. `None`: there are too many.
    pub(crate) fn follow(self: &Arc<Self>, id: &str) -> Option<FollowedResponse> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let signals = Arc::<PollSignals>::default();
        self.by_id().insert(id.to_owned(), Arc::clone(&signals));
        Some(FollowedResponse { followed: Arc::clone(self), id: id.to_owned(), signals, _place: place })
    }

    /// Waits until the upstream has been polled once more for a response that is followed, within a bound. For one that is about to be
    /// deleted: afterwards, nobody can tell its usage.
    pub(crate) async fn poll_now(&self, id: &str) {
        let Some(signals) = self.by_id().get(id).map(Arc::clone) else { return };
        let done = signals.done.notified();
        // From here on, `done` gets each signal; it may have ended before.
        if !self.by_id().contains_key(id) {
            return;
        }
        signals.wanted.notify_one();
        _ = tokio::time::timeout(MAX_WAIT, done).await;
    }
}

impl FollowedResponse {
    /// Waits until somebody wants a poll at once.
    pub(crate) async fn wanted(&self) {
        self.signals.wanted.notified().await;
    }

    /// The upstream has been polled.
    pub(crate) fn polled(&self) {
        self.signals.done.notify_waiters();
    }
}

impl Drop for FollowedResponse {
    fn drop(&mut self) {
        let mut by_id = self.followed.by_id();
        // Another upstream may have used the same id since.
        if by_id.get(&self.id).is_some_and(|signals| Arc::ptr_eq(signals, &self.signals)) {
            by_id.remove(&self.id);
        }
        drop(by_id);
        self.polled();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn deletion_waits_for_one_more_poll_or_the_end() {
        let followed = Arc::<FollowedResponses>::default();
        followed.poll_now("unknown").await;
        for ends in [false, true] {
            let response = followed.follow("resp_1").expect("a place");
            let started = tokio::time::Instant::now();
            let poll = async {
                response.wanted().await;
                tokio::time::sleep(Duration::from_secs(1)).await;
                if ends { drop(response) } else { response.polled() }
            };
            tokio::join!(followed.poll_now("resp_1"), poll);
            assert_eq!(started.elapsed(), Duration::from_secs(1));
        }
        let silent = followed.follow("resp_1").expect("a place");
        let started = tokio::time::Instant::now();
        followed.poll_now("resp_1").await;
        assert_eq!(started.elapsed(), MAX_WAIT);
        drop(silent);
        assert!(followed.by_id().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn response_with_the_id_of_another_one_is_still_followed_after_the_other_ends() {
        let followed = Arc::<FollowedResponses>::default();
        let (one, other) =
            (followed.follow("resp_1").expect("a place"), followed.follow("resp_1").expect("a place"));
        drop(one);
        let started = tokio::time::Instant::now();
        let poll = async {
            other.wanted().await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            other.polled();
        };
        tokio::join!(followed.poll_now("resp_1"), poll);
        assert_eq!(started.elapsed(), Duration::from_secs(1));
    }

    #[test]
    fn number_of_followed_responses_is_bounded() {
        let followed = Arc::<FollowedResponses>::default();
        let all: Vec<_> = (0..MAX_RESPONSES).map(|id| followed.follow(&id.to_string())).collect();
        assert!(all.iter().all(Option::is_some) && followed.follow("another").is_none());
        drop(all);
        assert!(followed.follow("another").is_some());
    }
}
