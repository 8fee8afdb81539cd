//! Polls a connection again at once where it has woken itself.
//!
//! The HTTP library wakes its own task while it is being polled, once a request: whoever takes the body tells the reader of
//! the socket that there is room. The runtime would put the task at the end of its queue and wake another thread to help,
//! which costs more than the rest of a short request.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;
use tokio::task::coop::has_budget_remaining;

/// How often a connection is polled again before others get their turn.
const MOST: u32 = 16;

const IDLE: u8 = 0;
const POLLED: u8 = 1;
/// Woken while it is being polled.
const AGAIN: u8 = 2;

/// A connection that is polled in rounds.
pub(super) struct Rounds<F> {
    connection: F,
    bell: Arc<Bell>,
    waker: Waker,
}

/// Wakes the task, except while it is being polled.
#[derive(Default)]
struct Bell {
    state: AtomicU8,
    task: AtomicWaker,
}

impl<F> Rounds<F> {
    pub(super) fn of(connection: F) -> Self {
        let bell = Arc::new(Bell::default());
        Self { connection, waker: Waker::from(Arc::clone(&bell)), bell }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.compare_exchange(POLLED, AGAIN, Ordering::AcqRel, Ordering::Acquire) == Err(IDLE) {
            self.task.wake();
        }
    }
}

impl<F: Future + Unpin> Future for Rounds<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Self { connection, bell, waker } = self.get_mut();
        bell.task.register(context.waker());
        for _ in 0..MOST {
            bell.state.store(POLLED, Ordering::Release);
            if let Poll::Ready(output) = Pin::new(&mut *connection).poll(&mut Context::from_waker(waker)) {
                return Poll::Ready(output);
            }
            if bell.state.swap(IDLE, Ordering::AcqRel) != AGAIN {
                return Poll::Pending;
            }
            if !has_budget_remaining() {
                break;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Polls once a future that wakes itself `times` times. Returns how often it was polled and how often its task was woken.
    fn polled(times: usize) -> (usize, usize) {
        let count = Arc::new(Count::default());
        let mut polls = 0;
        let connection = std::future::poll_fn(|context: &mut Context<'_>| {
            polls += 1;
            if polls <= times {
                context.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        });
        let waker = Waker::from(Arc::clone(&count));
        assert!(Pin::new(&mut Rounds::of(connection)).poll(&mut Context::from_waker(&waker)).is_pending());
        (polls, count.0.load(Ordering::Relaxed))
    }

    #[test]
    fn one_that_wakes_itself_is_polled_again_without_its_task() {
        assert_eq!(polled(3), (4, 0));
    }

    #[test]
    fn one_that_never_stops_lets_others_have_their_turn() {
        assert_eq!(polled(usize::MAX), (MOST as usize, 1));
    }

    #[test]
    fn one_that_waits_is_woken_through_its_task() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut kept = None;
        let connection = std::future::poll_fn(|context: &mut Context<'_>| {
            kept = Some(context.waker().clone());
            Poll::<()>::Pending
        });
        assert!(Pin::new(&mut Rounds::of(connection)).poll(&mut Context::from_waker(&waker)).is_pending());
        kept.expect("a waker").wake();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
    }
}
