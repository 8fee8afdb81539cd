//! Asks again and again until something is done, with a pause between and a deadline over all.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::catalog::VIDEO_POLL_INTERVAL_S;
use crate::error::{Error, ErrorKind};

/// Deadline of a wait, unless told otherwise.
pub const DEFAULT_WAIT_TIMEOUT: Duration = Duration::from_mins(30);
/// Shorter pauses are lengthened to this: they would only load the gateway.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);

/// How to wait for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitOptions {
    /// Pause between two look-ups. Default 5 s (section 3).
    pub interval: Duration,
    /// Deadline over all look-ups. Default [`DEFAULT_WAIT_TIMEOUT`].
    pub timeout: Duration,
}

impl Default for WaitOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(u64::from(VIDEO_POLL_INTERVAL_S)),
            timeout: DEFAULT_WAIT_TIMEOUT,
        }
    }
}

/// What a look-up found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress<T> {
    Done(T),
    /// Not yet, whatever it is called.
    UnderWay,
}

/// Looks up at once, then after each pause, and a last time at the deadline.
///
/// Errors: the look-up's own; Timeout where the deadline passes, with `what` in the message.
pub(crate) async fn until_done<T, Look: Future<Output = Result<Progress<T>, Error>>>(
    what: &str,
    options: WaitOptions,
    // Not AsyncFnMut: whether the futures of one are Send cannot be said, and the bindings spawn this.
    mut look_up: impl FnMut() -> Look,
) -> Result<T, Error> {
    let deadline = Instant::now() + options.timeout;
    let interval = options.interval.max(SHORTEST_INTERVAL);
    let mut last_look = false;
    loop {
        // The last look-up begins at the deadline: it gets one more pause to end in.
        let by = if last_look { deadline + interval } else { deadline };
        match timeout_at(by, look_up()).await {
            Ok(Ok(Progress::Done(found))) => return Ok(found),
            Ok(Ok(Progress::UnderWay)) if !last_look => {}
            Ok(Err(error)) => return Err(error),
            Ok(Ok(Progress::UnderWay)) | Err(_) => {
                let message = format!("{what} is not done after {:?}", options.timeout);
                return Err(Error::new(ErrorKind::Timeout, message));
            }
        }
        let remaining = deadline.saturating_duration_since(Instant::now());
        last_look = remaining <= interval;
        sleep(interval.min(remaining)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn wait(
        interval_s: u64,
        timeout_s: u64,
        done_after: u32,
    ) -> (Result<u32, ErrorKind>, u32, Duration) {
        let options = WaitOptions {
            interval: Duration::from_secs(interval_s),
            timeout: Duration::from_secs(timeout_s),
        };
        let (started, mut looks) = (Instant::now(), 0);
        let found = until_done("the task", options, || {
            looks += 1;
            std::future::ready(Ok(if looks > done_after {
                Progress::Done(looks)
            } else {
                Progress::UnderWay
            }))
        })
        .await;
        (found.map_err(|error| error.kind()), looks, started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn it_looks_at_once_and_then_after_each_pause() {
        assert_eq!(wait(5, 60, 0).await, (Ok(1), 1, Duration::ZERO));
        assert_eq!(wait(5, 60, 3).await, (Ok(4), 4, Duration::from_secs(15)));
    }

    #[tokio::test(start_paused = true)]
    async fn it_looks_a_last_time_at_the_deadline_and_gives_up() {
        assert_eq!(wait(5, 12, 100).await, (Err(ErrorKind::Timeout), 4, Duration::from_secs(12)));
        assert_eq!(wait(5, 12, 3).await, (Ok(4), 4, Duration::from_secs(12)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_up_that_hangs_does_not_outlast_the_deadline() {
        let options = WaitOptions { timeout: Duration::from_secs(7), ..WaitOptions::default() };
        let started = Instant::now();
        let hung = until_done("the task", options, std::future::pending::<Result<Progress<()>, Error>>);
        assert_eq!(hung.await.expect_err("a timeout").kind(), ErrorKind::Timeout);
        assert_eq!(started.elapsed(), Duration::from_secs(7));
    }
}
