//! Caches the latest count of the space taken by files. Counting gets slower the more files there are, so the store counts
//! again only if space is scarce, or once a second if it is plentiful.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gatewright_store::FileTotals;

/// How long a count is valid. It doesn't include files that other gateways store in the meantime.
const FRESH: Duration = Duration::from_secs(1);

/// By the id of the API key.
#[derive(Default)]
pub(super) struct Counts(Mutex<HashMap<Arc<str>, KeyFileCount>>);

struct KeyFileCount {
    since: Instant,
    all: FileTotals,
    own: FileTotals,
}

impl Counts {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, KeyFileCount>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The space taken by all files and by those of an API key, if it was counted recently.
    pub(super) fn fresh(&self, owner: &str) -> Option<(FileTotals, FileTotals)> {
        let counts = self.lock();
        let count = counts.get(owner).filter(|count| count.since.elapsed() < FRESH)?;
        Some((count.all, count.own))
    }

    /// Caches a count.
    pub(super) fn note(&self, owner: &Arc<str>, since: Instant, (all, own): (FileTotals, FileTotals)) {
        let mut counts = self.lock();
        counts.retain(|_, count| count.since.elapsed() < FRESH);
        counts.insert(Arc::clone(owner), KeyFileCount { since, all, own });
    }

    /// Adds files stored since the count.
    pub(super) fn add(&self, owner: &str, files: FileTotals) {
        for (key, count) in &mut *self.lock() {
            count.all = count.all.with(files);
            if **key == *owner {
                count.own = count.own.with(files);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(files: u64, bytes: u64) -> FileTotals {
        FileTotals { files, bytes }
    }

    #[test]
    fn count_is_cached_for_a_second_including_additions() {
        let (counts, one, other) = (Counts::default(), Arc::from("one"), Arc::from("other"));
        let stale = Instant::now().checked_sub(FRESH).expect("an uptime of a second");
        counts.note(&one, stale, (taken(3, 30), taken(1, 10)));
        assert_eq!(counts.fresh(&one), None);
        // Long enough for a busy machine.
        let ahead = Instant::now() + Duration::from_mins(1);
        counts.note(&one, ahead, (taken(3, 30), taken(1, 10)));
        counts.note(&other, ahead, (taken(3, 30), taken(2, 20)));
        counts.add(&one, taken(2, 5));
        assert_eq!(counts.fresh(&one), Some((taken(5, 35), taken(3, 15))));
        assert_eq!(counts.fresh(&other), Some((taken(5, 35), taken(2, 20))));
        assert_eq!(counts.lock().len(), 2, "the stale one is gone");
    }
}
