//! Times on the command line.

use std::time::Duration;

/// Reads a number of seconds, such as 0.5.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "must be a number of seconds".to_owned())
}
