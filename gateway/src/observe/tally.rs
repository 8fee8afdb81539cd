//! Counts how many of something exist right now. Costs an addition and no lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// See the module. Copies share the count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally(Arc<AtomicUsize>);

/// One counted item, for as long as it lives.
#[derive(Debug)]
pub(crate) struct TallyGuard(Tally);

impl Tally {
    pub(crate) fn one(&self) -> TallyGuard {
        self.0.fetch_add(1, Ordering::Relaxed);
        TallyGuard(self.clone())
    }

    pub(crate) fn now(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for TallyGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
