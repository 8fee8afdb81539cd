//! The clock and the randomness of the retry policy. A test can replace both and run through pauses, deadlines and
//! jitter without sleeping.

use std::fmt;
use std::ops::Add;
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::BoxFuture;

/// The longest wait, 30 years: longer than any process lives, and within the range of every clock. Longer times from a
/// caller or a gateway are reduced to it.
///
/// ```
/// use gatewright::{MAX_TIME, time_of_seconds};
///
/// assert_eq!(MAX_TIME.as_secs() / (365 * 24 * 3600), 30);
/// assert_eq!(time_of_seconds(1e30), Some(MAX_TIME));
/// ```
pub const MAX_TIME: Duration = Duration::from_hours(30 * 365 * 24);

/// Converts seconds to a duration of at most [`MAX_TIME`], which infinity also becomes. None for NaN, negative
/// values and values that round to zero nanoseconds.
///
/// ```
/// use std::time::Duration;
///
/// use gatewright::{MAX_TIME, time_of_seconds};
///
/// assert_eq!(time_of_seconds(1.5), Some(Duration::from_millis(1500)));
/// assert_eq!(time_of_seconds(f64::INFINITY), Some(MAX_TIME));
/// assert_eq!(time_of_seconds(-1.0), None);
/// ```
pub fn time_of_seconds(seconds: f64) -> Option<Duration> {
    if seconds >= MAX_TIME.as_secs_f64() {
        return Some(MAX_TIME);
    }
    Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero())
}

/// Limits a time from outside to one that can be waited for.
pub(crate) fn bounded(time: Duration) -> Duration {
    time.min(MAX_TIME)
}

/// A point in time plus a duration. Never overflows, unlike a plain sum.
pub(crate) fn later<I: Add<Duration, Output = I>>(from: I, by: Duration) -> I {
    from + bounded(by)
}

/// The source of time, pauses and random numbers of a client. [`SystemClock`] unless
/// [`ClientBuilder::clock`](crate::ClientBuilder::clock) sets another.
///
/// It controls the pauses between attempts and the deadline over them; socket timeouts use real time.
///
/// ```
/// use std::time::{Duration, Instant, SystemTime};
///
/// use gatewright::{BoxFuture, Client, Clock};
///
/// /// Retries without waiting, for tests.
/// #[derive(Debug)]
/// struct Hurried;
///
/// impl Clock for Hurried {
///     fn now(&self) -> Instant {
///         Instant::now()
///     }
///     fn system_time(&self) -> SystemTime {
///         SystemTime::now()
///     }
///     fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
///         Box::pin(async {})
///     }
///     fn random(&self) -> f64 {
///         0.5
///     }
/// }
///
/// let client = Client::builder().api_key("my-key").clock(std::sync::Arc::new(Hurried)).build()?;
/// # Ok::<(), gatewright::Error>(())
/// ```
pub trait Clock: fmt::Debug + Send + Sync {
    /// A monotonic reading.
    ///
    /// ```
    /// use gatewright::{Clock, SystemClock};
    ///
    /// let start = SystemClock.now();
    /// assert!(SystemClock.now() >= start);
    /// ```
    fn now(&self) -> Instant;

    /// The time of day, for a `retry-after` that is a date.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    ///
    /// use gatewright::{Clock, SystemClock};
    ///
    /// let retry_at = SystemClock.system_time() + Duration::from_secs(2);
    /// assert!(retry_at > SystemTime::now());
    /// ```
    fn system_time(&self) -> SystemTime;

    /// Waits for a duration.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use std::time::Duration;
    ///
    /// use gatewright::{Clock, SystemClock};
    ///
    /// let start = SystemClock.now();
    /// SystemClock.sleep(Duration::from_millis(5)).await;
    /// assert!(SystemClock.now() - start >= Duration::from_millis(5));
    /// # });
    /// ```
    fn sleep(&self, pause: Duration) -> BoxFuture<'_, ()>;

    /// A random number in 0..1, for jitter. Values outside are clamped; NaN counts as 0.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use gatewright::{Clock, SystemClock};
    ///
    /// let pause = Duration::from_secs(4).mul_f64(SystemClock.random());
    /// assert!(pause <= Duration::from_secs(4));
    /// ```
    fn random(&self) -> f64;
}

/// The system's clocks and random numbers.
///
/// ```
/// use gatewright::{Clock, SystemClock};
///
/// let before = SystemClock.now();
/// assert!(SystemClock.now() >= before);
/// assert!((0.0..1.0).contains(&SystemClock.random()));
/// ```
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
        fastrand::f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_convert_to_a_bounded_duration_or_none() {
        assert_eq!(time_of_seconds(1.5), Some(Duration::from_millis(1500)));
        for long in [f64::INFINITY, f64::MAX, 1e22, MAX_TIME.as_secs_f64()] {
            assert_eq!(time_of_seconds(long), Some(MAX_TIME), "{long}");
        }
        for none in [f64::NAN, f64::NEG_INFINITY, -1.0, -0.0, 0.0, 1e-12] {
            assert_eq!(time_of_seconds(none), None, "{none}");
        }
    }

    #[test]
    fn adding_durations_never_overflows() {
        let (std, tokio) = (Instant::now(), tokio::time::Instant::now());
        assert_eq!(later(std, Duration::MAX), std + MAX_TIME);
        assert_eq!(later(later(tokio, Duration::MAX), Duration::MAX), tokio + 2 * MAX_TIME);
    }
}
