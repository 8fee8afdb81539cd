//! Polls until something is done, with a pause between polls, a deadline, and tolerance for a gateway that is
//! unavailable for a while. It does not know what it polls; see videos.rs.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use crate::transport::clock::{bounded, later};
use crate::transport::retry;
use crate::wire::error::{Error, ErrorKind};

/// Shortest pause: a shorter one would only put load on the gateway.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);

/// When to poll and when to give up. Polls immediately, then after each pause, and a last time at the deadline.
#[derive(Debug)]
pub(crate) struct Schedule {
    interval: Duration,
    timeout: Duration,
    deadline: Instant,
    /// When the next poll is due; none once the last one has been made.
    next: Option<Instant>,
    /// Whether the gateway has responded. Before that, a failure is more likely a wrong address than an outage.
    answered: bool,
    /// The error of the latest poll, if it is temporary.
    failure: Option<Error>,
}

impl Schedule {
    /// interval: pause between two polls. timeout: for all of them together.
    pub(crate) fn new(interval: Duration, timeout: Duration) -> Self {
        let now = Instant::now();
        Self {
            interval: bounded(interval).max(SHORTEST_INTERVAL),
            timeout: bounded(timeout),
            deadline: later(now, timeout),
            next: Some(now),
            answered: false,
            failure: None,
        }
    }

    /// The gateway is known to be reachable: a failed poll is an outage.
    pub(crate) fn assume_answered(&mut self) {
        self.answered = true;
    }

    /// The result of the next successful poll. May be dropped and called again.
    ///
    /// Polls that fail temporarily (no connection, a timeout, 408, 409, 429, 5xx except 501, each after the client's
    /// own retries) are repeated after a pause until the deadline; if the gateway asks for a longer pause, that one is
    /// used. Until the gateway has responded once, these errors are final like all others.
    ///
    /// Errors: the poll's own; Timeout if the deadline passes, with `what` in the message and the latest error as its
    /// source.
    pub(crate) async fn look_up<T, Look: Future<Output = Result<T, Error>>>(
        &mut self,
        what: &str,
        // Not AsyncFn: it cannot require that its futures are Send, and the bindings spawn this.
        look: impl Fn() -> Look,
    ) -> Result<T, Error> {
        while let Some(due) = self.next {
            sleep_until(due).await;
            // The last poll begins at the deadline and gets one more pause to finish.
            let is_last = due >= self.deadline;
            let by = if is_last { later(self.deadline, self.interval) } else { self.deadline };
            let outcome = timeout_at(by, look()).await;
            let pause = match &outcome {
                Ok(Err(error)) => error.retry_after().unwrap_or_default().max(self.interval),
                _ => self.interval,
            };
            self.next = (!is_last).then(|| later(Instant::now(), pause).min(self.deadline));
            match outcome {
                Ok(Ok(found)) => {
                    self.answered = true;
                    self.failure = None;
                    return Ok(found);
                }
                Ok(Err(error)) if self.answered && passes(&error) => self.failure = Some(error),
                Ok(Err(error)) => return Err(error),
                // It hung until the deadline; another poll would too.
                Err(_) => self.next = None,
            }
        }
        let mut message = format!("{what} is not done after {:?}", self.timeout);
        let Some(failure) = self.failure.take() else { return Err(Error::new(ErrorKind::Timeout, message)) };
        message.push_str("; the last look-up failed: ");
        message.push_str(failure.message());
        Err(Error::new(ErrorKind::Timeout, message).with_source(failure))
    }
}

/// Whether an error is temporary.
fn passes(error: &Error) -> bool {
    let failure = retry::Failure {
        kind: error.kind(),
        code: error.code(),
        error_type: error.error_type(),
        headers: error.headers(),
    };
    retry::is_retryable(failure)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Pause and deadline.
    fn options(interval_s: u64, timeout_s: u64) -> (Duration, Duration) {
        (Duration::from_secs(interval_s), Duration::from_secs(timeout_s))
    }

    /// Polls until `done` accepts the number of the poll. Returns that number or the error, and the time taken.
    async fn wait(
        (interval, timeout): (Duration, Duration),
        answered: bool,
        look: impl Fn(u32) -> Result<bool, Error>,
    ) -> (Result<u32, Error>, u32, Duration) {
        let (started, looks) = (Instant::now(), Cell::new(0));
        let mut schedule = Schedule::new(interval, timeout);
        schedule.answered = answered;
        let outcome = loop {
            let found = schedule.look_up("the task", || {
                looks.set(looks.get() + 1);
                std::future::ready(look(looks.get()))
            });
            match found.await {
                Ok(true) => break Ok(looks.get()),
                Ok(false) => {}
                Err(error) => break Err(error),
            }
        };
        (outcome, looks.get(), started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn polls_immediately_then_after_each_interval() {
        let (found, _, elapsed) = wait(options(5, 60), false, |_| Ok(true)).await;
        assert_eq!((found.expect("done"), elapsed), (1, Duration::ZERO));
        let (found, _, elapsed) = wait(options(5, 60), false, |look| Ok(look == 4)).await;
        assert_eq!((found.expect("done"), elapsed), (4, Duration::from_secs(15)));
    }

    #[tokio::test(start_paused = true)]
    async fn polls_once_more_at_the_deadline_then_times_out() {
        let (found, looks, elapsed) = wait(options(5, 12), false, |_| Ok(false)).await;
        assert_eq!(found.expect_err("too late").kind(), ErrorKind::Timeout);
        assert_eq!((looks, elapsed), (4, Duration::from_secs(12)));
        let (found, ..) = wait(options(5, 12), false, |look| Ok(look == 4)).await;
        assert_eq!(found.expect("done at the deadline"), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn hanging_poll_is_cut_off_at_the_deadline() {
        let started = Instant::now();
        let (interval, timeout) = options(5, 7);
        let mut schedule = Schedule::new(interval, timeout);
        let hung = schedule.look_up("the task", std::future::pending::<Result<(), Error>>);
        let error = hung.await.expect_err("a timeout");
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert_eq!(started.elapsed(), Duration::from_secs(7));
    }

    #[tokio::test(start_paused = true)]
    async fn polling_survives_outage_shorter_than_the_deadline() {
        let outage = |look| match look {
            1 | 5 => Ok(look == 5),
            2 => Err(Error::new(ErrorKind::Connection, "refused")),
            3 => Err(Error::new(ErrorKind::InternalServer, "503")),
            _ => Err(Error::new(ErrorKind::Timeout, "no answer")),
        };
        let (found, _, elapsed) = wait(options(5, 60), false, outage).await;
        assert_eq!((found.expect("done"), elapsed), (5, Duration::from_secs(20)));
    }

    #[tokio::test(start_paused = true)]
    async fn timeout_after_an_outage_mentions_the_last_failure() {
        let outage = |look| match look {
            1 => Ok(false),
            _ => Err(Error::new(ErrorKind::Connection, "refused")),
        };
        let (found, looks, elapsed) = wait(options(5, 12), false, outage).await;
        let error = found.expect_err("too late");
        assert_eq!((error.kind(), looks, elapsed), (ErrorKind::Timeout, 4, Duration::from_secs(12)));
        assert!(error.message().ends_with("the last look-up failed: refused"), "{error}");
        assert!(std::error::Error::source(&error).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn wait_ends_if_the_gateway_has_never_responded() {
        let refuse = |_| Err(Error::new(ErrorKind::Connection, "refused"));
        let (found, looks, elapsed) = wait(options(5, 60), false, refuse).await;
        assert_eq!(found.expect_err("at once").kind(), ErrorKind::Connection);
        assert_eq!((looks, elapsed), (1, Duration::ZERO));
        let (found, looks, _) = wait(options(5, 60), true, refuse).await;
        assert_eq!((found.expect_err("after the deadline").kind(), looks), (ErrorKind::Timeout, 13));
    }

    #[tokio::test(start_paused = true)]
    async fn permanent_failure_ends_polling() {
        let spent = || Error::new(ErrorKind::RateLimit, "no credit").with_code("insufficient_quota");
        for make in [|| Error::new(ErrorKind::NotFound, "no such task"), spent] {
            let (found, looks, _) = wait(options(5, 60), true, |_| Err(make())).await;
            assert_eq!((found.expect_err("final").kind(), looks), (make().kind(), 1));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn maximum_durations_do_not_overflow() {
        let busy = |look| match look {
            1 => Err(Error::new(ErrorKind::RateLimit, "busy").with_retry_after(Some(Duration::MAX))),
            _ => Ok(true),
        };
        let (_, looks, elapsed) = wait(options(5, 60), true, busy).await;
        assert_eq!((looks, elapsed), (2, Duration::from_mins(1)));
        for options in [options(u64::MAX, 60), options(5, u64::MAX), options(u64::MAX, u64::MAX)] {
            let (found, ..) = wait(options, true, |_| Ok(true)).await;
            assert_eq!(found.expect("done"), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn retry_after_lengthens_the_polling_interval() {
        let busy = |look| match look {
            1 => {
                Err(Error::new(ErrorKind::RateLimit, "busy").with_retry_after(Some(Duration::from_secs(30))))
            }
            _ => Ok(true),
        };
        let (_, looks, elapsed) = wait(options(5, 60), true, busy).await;
        assert_eq!((looks, elapsed), (2, Duration::from_secs(30)));
    }
}
