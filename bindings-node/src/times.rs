//! Times as JavaScript numbers.

use std::time::Duration;

pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
