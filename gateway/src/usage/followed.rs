//! Responses that an upstream generates in the background, while the gateway polls it for their usage.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// Maximum number of responses polled at once. Beyond that, the usage is estimated.
const MAX_RESPONSES: usize = 1_000;
/// How long the deletion of a response waits until the gateway has read its usage.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct FollowedResponses(Mutex<Followed>);

#[derive(Debug, Default)]
struct Followed {
    by_id: HashMap<String, Arc<PollSignals>>,
    /// How many responses of each API key are followed.
    of_keys: HashMap<Arc<str>, usize>,
    count: usize,
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
    /// Id of the API key.
    owner: Arc<str>,
    signals: Arc<PollSignals>,
}

impl FollowedResponses {
    fn lock(&self) -> MutexGuard<'_, Followed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signals(&self, id: &str) -> Option<Arc<PollSignals>> {
        self.lock().by_id.get(id).map(Arc::clone)
    }

    /// Begins to follow a response. `owner`: the id of its API key, and `percent`: the part of all places that this key may use.
    /// `None`: there are too many.
    pub(crate) fn follow(
        self: &Arc<Self>,
        id: &str,
        owner: &Arc<str>,
        percent: u8,
    ) -> Option<FollowedResponse> {
        let mut followed = self.lock();
        let of_key = followed.of_keys.get(owner).copied().unwrap_or_default();
        if followed.count >= MAX_RESPONSES || of_key >= MAX_RESPONSES * usize::from(percent) / 100 {
            return None;
        }
        let signals = Arc::<PollSignals>::default();
        followed.by_id.insert(id.to_owned(), Arc::clone(&signals));
        followed.of_keys.insert(Arc::clone(owner), of_key + 1);
        followed.count += 1;
        let (id, owner) = (id.to_owned(), Arc::clone(owner));
        Some(FollowedResponse { followed: Arc::clone(self), id, owner, signals })
    }

    /// Waits until the upstream has been polled once more for a response that is followed, within a bound. For one that is about to be
    /// deleted: afterwards, nobody can tell its usage.
    pub(crate) async fn poll_now(&self, id: &str) {
        let Some(signals) = self.signals(id) else { return };
        let done = signals.done.notified();
        // From here on, `done` gets each signal; it may have ended before.
        if self.signals(id).is_none() {
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
        let mut followed = self.followed.lock();
        // Another upstream may have used the same id since.
        if followed.by_id.get(&self.id).is_some_and(|signals| Arc::ptr_eq(signals, &self.signals)) {
            followed.by_id.remove(&self.id);
        }
        followed.count -= 1;
        if let Entry::Occupied(mut of_key) = followed.of_keys.entry(Arc::clone(&self.owner)) {
            *of_key.get_mut() -= 1;
            if *of_key.get() == 0 {
                of_key.remove();
            }
        }
        drop(followed);
        self.polled();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl FollowedResponses {
        fn follow_any(self: &Arc<Self>, id: &str) -> Option<FollowedResponse> {
            self.follow(id, &"key".into(), 100)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn deletion_waits_for_one_more_poll_or_the_end() {
        let followed = Arc::<FollowedResponses>::default();
        followed.poll_now("unknown").await;
        for ends in [false, true] {
            let response = followed.follow_any("resp_1").expect("a place");
            let started = tokio::time::Instant::now();
            let poll = async {
                response.wanted().await;
                tokio::time::sleep(Duration::from_secs(1)).await;
                if ends { drop(response) } else { response.polled() }
            };
            tokio::join!(followed.poll_now("resp_1"), poll);
            assert_eq!(started.elapsed(), Duration::from_secs(1));
        }
        let silent = followed.follow_any("resp_1").expect("a place");
        let started = tokio::time::Instant::now();
        followed.poll_now("resp_1").await;
        assert_eq!(started.elapsed(), MAX_WAIT);
        drop(silent);
        let left = followed.lock();
        assert!(left.by_id.is_empty() && left.of_keys.is_empty() && left.count == 0);
    }

    #[tokio::test(start_paused = true)]
    async fn response_with_the_id_of_another_one_is_still_followed_after_the_other_ends() {
        let followed = Arc::<FollowedResponses>::default();
        let (one, other) = (
            followed.follow_any("resp_1").expect("a place"),
            followed.follow_any("resp_1").expect("a place"),
        );
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
        let all: Vec<_> = (0..MAX_RESPONSES).map(|id| followed.follow_any(&id.to_string())).collect();
        assert!(all.iter().all(Option::is_some) && followed.follow_any("another").is_none());
        drop(all);
        assert!(followed.follow_any("another").is_some());
    }

    #[test]
    fn key_leaves_places_for_responses_of_other_keys() {
        let followed = Arc::<FollowedResponses>::default();
        let follow = |owner: &str, id: usize| followed.follow(&format!("{owner}-{id}"), &owner.into(), 50);
        let mut greedy: Vec<_> = (0..MAX_RESPONSES).map_while(|id| follow("greedy", id)).collect();
        assert_eq!(greedy.len(), MAX_RESPONSES / 2);
        let other = follow("other", 0);
        assert!(other.is_some() && follow("greedy", MAX_RESPONSES).is_none());
        greedy.pop();
        assert!(follow("greedy", MAX_RESPONSES).is_some());
    }
}
