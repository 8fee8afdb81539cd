//! The current time, as responses state it and as limits measure it.

use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

/// Seconds since 1970.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Whole seconds, at least one.
pub(crate) fn whole_seconds(time: Duration) -> u64 {
    time.as_millis().div_ceil(1000).max(1).try_into().unwrap_or(u64::MAX)
}

/// Nanoseconds on a clock that only goes forward, since some time before the first request.
pub(crate) fn monotonic_nanos() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos().try_into().unwrap_or(u64::MAX)
}

/// Milliseconds since 1970.
pub(crate) fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_millis().try_into().unwrap_or(u64::MAX)
}
