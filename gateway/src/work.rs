//! Long work, off the runtime's threads: for a limited number of concurrent requests, and none for a client that has
//! disconnected.

use std::sync::Arc;

use gatewright::ErrorCode;
use gatewright_simulator::budget::Budget;
use tokio::sync::Semaphore;

use crate::wire::ApiError;

/// The pool for long work, shared by its clones.
#[derive(Debug, Clone)]
pub(crate) struct BlockingPool {
    places: Arc<Semaphore>,
}

impl Default for BlockingPool {
    /// One place per processor.
    fn default() -> Self {
        Self::of(std::thread::available_parallelism().map_or(2, Into::into))
    }
}

impl BlockingPool {
    /// `places`: maximum number of concurrent jobs.
    pub(crate) fn of(places: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(places)) }
    }

    /// Runs work on its own thread once there is a free place, with the budget of one request. Dropping the future, for
    /// example when the client disconnects, ends the work at its next step. A panic of the work is resumed here.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Budget) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let failed = || ApiError::new(&ErrorCode::SERVER_ERROR, "the gateway is shutting down");
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| failed())?;
        let budget = Budget::new();
        let _waiting = budget.waiting();
        // The place is released when the work has ended, not when its caller stops waiting.
        let done = tokio::task::spawn_blocking(move || {
            let done = work(&budget);
            drop(place);
            done
        });
        done.await.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(failed()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt as _;

    use super::*;

    /// Works until the budget reports that the client is gone.
    fn work_until_left(budget: &Budget) {
        while budget.work(0).is_ok() {
            std::thread::yield_now();
        }
    }

    #[tokio::test]
    async fn work_stops_and_frees_its_slot_when_the_client_disconnects() {
        let blocking_pool = BlockingPool::of(1);
        let started = Arc::new(AtomicUsize::new(0));
        let beginning = Arc::clone(&started);
        let mut waiting = Box::pin(blocking_pool.work(move |budget| {
            beginning.fetch_add(1, Ordering::SeqCst);
            work_until_left(budget);
            Ok(())
        }));
        while started.load(Ordering::SeqCst) == 0 {
            assert!((&mut waiting).now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        assert_eq!(blocking_pool.places.available_permits(), 0);
        drop(waiting);
        // If the work did not end, it would keep the only slot, and this would wait forever.
        assert_eq!(blocking_pool.work(|_| Ok(7)).await.ok(), Some(7));
    }

    #[tokio::test]
    async fn concurrent_work_is_limited_to_the_slots() {
        let blocking_pool = BlockingPool::of(2);
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let works = (0..20).map(|_| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            blocking_pool.work(move |_| {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::yield_now();
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            })
        });
        let done = futures_util::future::join_all(works).await;
        assert!(done.iter().all(Result::is_ok));
        assert!((1..=2).contains(&most.load(Ordering::SeqCst)));
    }

    #[tokio::test]
    async fn panic_in_the_work_propagates_to_the_caller() {
        let blocking_pool = BlockingPool::default();
        let work = blocking_pool.work::<()>(|_| panic!("on purpose"));
        let caught = std::panic::AssertUnwindSafe(work).catch_unwind().await;
        assert!(caught.is_err());
        assert_eq!(blocking_pool.work(|_| Ok(7)).await.ok(), Some(7));
    }
}
