//! How many there are of something just now, for whoever asks. Costs an addition, and no lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// See the module. Copies count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally(Arc<AtomicUsize>);

/// One of those that are counted, as long as it lives.
#[derive(Debug)]
pub(crate) struct Counted(Tally);

impl Tally {
    pub(crate) fn one(&self) -> Counted {
        self.0.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone())
    }

    pub(crate) fn now(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
