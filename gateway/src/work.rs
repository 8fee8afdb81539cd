//! Long work, away from the runtime's threads: a bounded number of requests at once, and none for a client that has
//! gone.

use std::sync::Arc;

use gatewright::ErrorCode;
use tokio::sync::Semaphore;

use crate::error::ApiError;
use crate::simulator::budget::Budget;

/// Where long work is done.
#[derive(Debug)]
pub(crate) struct Workshop {
    places: Arc<Semaphore>,
}

impl Default for Workshop {
    /// As many places as there are processors.
    fn default() -> Self {
        let places = std::thread::available_parallelism().map_or(2, Into::into);
        Self { places: Arc::new(Semaphore::new(places)) }
    }
}

impl Workshop {
    /// Does work on a thread of its own once there is a place, with the budget of one request. Dropping the future, as
    /// happens when the client goes, ends the work at its next step. A panic of the work goes on here.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Budget) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let failed = || ApiError::new(&ErrorCode::SERVER_ERROR, "the gateway is shutting down");
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| failed())?;
        let budget = Budget::new();
        let _waiting = budget.waiting();
        // The place is given back when the work has ended, not when nobody waits for it any longer.
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
