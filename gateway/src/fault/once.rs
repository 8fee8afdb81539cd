//! Remembers the requests that have failed once, so that they succeed when they come again.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::{Mutex, PoisonError};

/// Maximum number of requests that are remembered; the oldest is forgotten, and fails once more.
const MOST: usize = 1000;

/// Digests of the requests that have failed and not come again.
#[derive(Debug, Default)]
pub(crate) struct FailedOnce {
    digests: RandomState,
    failed: Mutex<VecDeque<u64>>,
}

impl FailedOnce {
    /// Whether a request has to fail: it comes for the first time, or has come again since it failed.
    pub(crate) fn is_new(&self, request: impl Hash) -> bool {
        let digest = self.digests.hash_one(request);
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = failed.iter().position(|known| *known == digest) {
            failed.remove(place);
            return false;
        }
        if failed.len() == MOST {
            failed.pop_front();
        }
        failed.push_back(digest);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_fail_every_other_time_each_on_its_own_and_the_oldest_is_forgotten() {
        let failed = FailedOnce::default();
        let told = ["a", "b", "a", "a", "b"].map(|request| failed.is_new(request));
        assert_eq!(told, [true, true, false, true, false]);
        assert!((0..MOST).all(|number| failed.is_new(number)));
        assert!(failed.is_new("a"), "it was forgotten");
        assert_eq!(failed.failed.into_inner().expect("no panic").len(), MOST);
    }
}
