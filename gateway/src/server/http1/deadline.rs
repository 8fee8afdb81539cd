//! A time limit that begins anew with each request and costs a timer only where a request takes long.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// When a wait is over. The timer of an earlier wait goes on and is set anew where it ends too soon.
pub(super) struct Deadline {
    limit: Duration,
    /// Set while something is waited for.
    until: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, until: None, timer: None }
    }

    /// The limit of further waits.
    pub(super) fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// What was waited for has come.
    pub(super) fn met(&mut self) {
        self.until = None;
    }

    /// Resolves when the wait, which begins now if none goes on, has taken too long.
    pub(super) fn poll_missed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // A limit beyond all times is none.
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
