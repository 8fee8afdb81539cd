//! Time and chance as the retry policy sees them. A test that brings its own of both runs through pauses, deadlines
//! and jitter without sleeping.

use std::fmt;
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::BoxFuture;

/// What a client asks the time, waits with and draws lots from. [`SystemClock`] unless
/// [`ClientBuilder::clock`](crate::ClientBuilder::clock) says otherwise.
///
/// It governs the pauses between attempts and the deadline over them; the timeouts of sockets stay real.
pub trait Clock: fmt::Debug + Send + Sync {
    /// A reading that never goes back.
    fn now(&self) -> Instant;

    /// The time of day, for a `retry-after` that is a date.
    fn system_time(&self) -> SystemTime;

    /// Waits so long.
    fn sleep(&self, pause: Duration) -> BoxFuture<'_, ()>;

    /// A number in 0..1, for jitter.
    fn random(&self) -> f64;
}

/// The machine's own time and chance.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn system_time(&self) -> SystemTime {
        SystemTime::now()
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(pause))
    }

    fn random(&self) -> f64 {
        rand::random()
    }
}
