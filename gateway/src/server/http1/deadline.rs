//! A timeout that restarts with each request and needs a timer only if a request takes long.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// When a wait times out. The timer of an earlier wait keeps running and is reset if it fires too soon.
pub(super) struct Deadline {
    limit: Duration,
    /// Set while waiting.
    until: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, until: None, timer: None }
    }

    /// The timeout of further waits.
    pub(super) fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// The wait is over.
    pub(super) fn met(&mut self) {
        self.until = None;
    }

    /// Resolves when the wait, which starts now if there is none, has taken too long.
    pub(super) fn poll_missed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // A timeout too long to represent means no timeout.
        let Some(until) = self.until.or_else(|| Instant::now().checked_add(self.limit)) else {
            return Poll::Pending;
        };
        self.until = Some(until);
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
        loop {
            ready!(timer.as_mut().poll(context));
            if timer.deadline() >= until {
                return Poll::Ready(());
            }
            timer.as_mut().reset(until);
        }
    }
}
