//! How long this machine made a thread wait that was ready to run. The rules allow gateways fractions of a second: on a machine
//! that stalls for longer, a violation says nothing about them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// How long the thread sleeps at a time.
const SLEEP: Duration = Duration::from_millis(20);

/// A thread that sleeps repeatedly for a moment, and records by how much it wakes up late.
pub(crate) struct Stalls {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Stalls {
    pub(crate) fn watch() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_over);
        let thread = spawn(move || {
            let mut longest = Duration::ZERO;
            while !flag.load(Ordering::Relaxed) {
                let before = Instant::now();
                sleep(SLEEP);
                longest = longest.max(before.elapsed().saturating_sub(SLEEP));
            }
            longest
        });
        Self { is_over, thread }
    }

    /// Stops watching. Returns the longest stall.
    pub(crate) fn longest(self) -> Duration {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("the thread doesn't panic")
    }
}
