//! The current time for responses and limits.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Environment variable with the path of a file that contains the clock's error in milliseconds, so that tests see
/// its effects. In debug builds only.
const VARIABLE: &str = "GATEWRIGHT_CLOCK_FROM";
/// How often the file is read.
const PAUSE: Duration = Duration::from_millis(50);

/// Seconds since 1970.
pub fn unix_seconds() -> u64 {
    unix_millis() / 1000
}

/// Whole seconds, at least one.
pub fn whole_seconds(time: Duration) -> u64 {
    time.as_millis().div_ceil(1000).max(1).try_into().unwrap_or(u64::MAX)
}

/// Nanoseconds on a monotonic clock, since some time before the first request.
pub fn monotonic_nanos() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos().try_into().unwrap_or(u64::MAX)
}

/// Milliseconds on the same clock.
pub fn monotonic_millis() -> u64 {
    monotonic_nanos() / 1_000_000
}

/// Milliseconds since 1970.
pub fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = since.as_millis().try_into().unwrap_or(u64::MAX);
    u64::saturating_add_signed(now, wrong_by())
}

/// The clock's error in milliseconds, as set by tests.
pub fn wrong_by() -> i64 {
    if cfg!(debug_assertions) { set_by_tests() } else { 0 }
}

fn set_by_tests() -> i64 {
    static BY: LazyLock<&AtomicI64> = LazyLock::new(|| {
        let by: &AtomicI64 = Box::leak(Box::default());
        if let Some(place) = std::env::var_os(VARIABLE) {
            let read = move || {
                let by = std::fs::read_to_string(&place).ok().and_then(|text| text.trim().parse().ok());
                by.unwrap_or_default()
            };
            by.store(read(), Ordering::Relaxed);
            std::thread::spawn(move || {
                loop {
                    std::thread::sleep(PAUSE);
                    by.store(read(), Ordering::Relaxed);
                }
            });
        }
        by
    });
    BY.load(Ordering::Relaxed)
}

/// Whole milliseconds of a time.
pub fn millis(time: Duration) -> u64 {
    time.as_millis().try_into().unwrap_or(u64::MAX)
}
