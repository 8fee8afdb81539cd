//! Operations on a store that may be unavailable: each has a time limit, and after a failure the store is not used until a
//! background task finds it healthy again. Requests that can do without the store continue.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep, timeout};

use super::traits::{DurableStore, StoreError, StoreFuture};

/// Maximum time that a request waits for the store.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long the store is left alone after a failure: longer each time, unless it worked for [`LONG`] in
/// between.
const SHORTEST_REST: Duration = Duration::from_millis(500);
const MAX_REST: Duration = Duration::from_secs(5);
/// How long the store must work before earlier failures no longer count.
const LONG: Duration = Duration::from_secs(10);

/// Whether a store is usable: each operation has a time limit, and after a failure the store is left alone until a background task
/// finds that it works.
pub struct StoreHealth {
    probe: Probe,
    /// The consequence of its absence, for the log.
    consequence: &'static str,
    state: Arc<Mutex<HealthState>>,
}

/// Asks the store something. None: nobody uses it any more.
type Probe = Arc<dyn Fn() -> Option<StoreFuture<'static, ()>> + Send + Sync>;

#[derive(Default)]
struct HealthState {
    rests: bool,
    /// The previous rest, and when it ended.
    last: Option<(Duration, Instant)>,
}

impl StoreHealth {
    /// A store that works. `consequence`: what its absence means, for the log.
    pub fn new(store: &Arc<dyn DurableStore>, consequence: &'static str) -> Self {
        let store = Arc::downgrade(store);
        Self::probed_by(consequence, move || {
            let store = store.upgrade()?;
            Some(Box::pin(async move { store.revision().await.map(drop) }))
        })
    }

    fn probed_by(
        consequence: &'static str,
        probe: impl Fn() -> Option<StoreFuture<'static, ()>> + Send + Sync + 'static,
    ) -> Self {
        Self { probe: Arc::new(probe), consequence, state: Arc::default() }
    }

    /// The result of an operation, if the store answers in time. None while it is unavailable.
    pub async fn ask<T>(&self, operation: impl Future<Output = Result<T, StoreError>>) -> Option<T> {
        if self.rests() {
            return None;
        }
        match timeout(PATIENCE, operation).await {
            Ok(Ok(answer)) => return Some(answer),
            Ok(Err(error)) => self.fails(&error.to_string()),
            Err(_) => self.fails(&format!("the store did not respond within {PATIENCE:?}")),
        }
        None
    }

    /// Waits for one of a few slots for operations. None: no slot is free in time (not the store's fault), or the store is
    /// being left alone.
    pub async fn place<'p>(&self, places: &'p Semaphore) -> Option<SemaphorePermit<'p>> {
        if self.rests() {
            return None;
        }
        timeout(PATIENCE, places.acquire()).await.ok()?.ok()
    }

    /// Whether the store is being left alone: operations are skipped.
    pub fn rests(&self) -> bool {
        lock(&self.state).rests
    }

    /// Marks the store as unavailable until a background task finds it healthy. Must be called within a Tokio runtime.
    pub fn fails(&self, why: &str) {
        let mut state = lock(&self.state);
        if std::mem::replace(&mut state.rests, true) {
            return;
        }
        let rest = state.last.filter(|(_, ended)| ended.elapsed() < LONG);
        let rest = rest.map_or(SHORTEST_REST, |(before, _)| (before * 2).min(MAX_REST));
        drop(state);
        tracing::warn!("{why}: {}", self.consequence);
        let (probe, state) = (Arc::clone(&self.probe), Arc::clone(&self.state));
        Handle::current().spawn(attempt(probe, state, rest));
    }
}

async fn attempt(probe: Probe, state: Arc<Mutex<HealthState>>, rest: Duration) {
    loop {
        sleep(rest).await;
        let Some(works) = probe() else { return };
        if let Ok(Ok(())) = timeout(PATIENCE, works).await {
            *lock(&state) = HealthState { rests: false, last: Some((rest, Instant::now())) };
            tracing::info!("the store works again");
            return;
        }
    }
}

fn lock(state: &Mutex<HealthState>) -> MutexGuard<'_, HealthState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::future::{Ready, ready};

    use super::*;

    fn healthy() -> StoreHealth {
        StoreHealth::probed_by("nothing follows", || Some(Box::pin(ready(Ok(())))))
    }

    fn failed() -> Ready<Result<(), StoreError>> {
        ready(Err(StoreError::Failed("it is away".to_owned())))
    }

    /// How long the store is left alone after a failure.
    async fn rest(health: &StoreHealth) -> Duration {
        assert_eq!(health.ask(failed()).await, None);
        let started = Instant::now();
        while health.ask(async { Ok(()) }).await.is_none() {
            sleep(Duration::from_millis(10)).await;
        }
        started.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn store_rests_longer_after_repeated_failures() {
        let health = healthy();
        assert_eq!(health.ask(async { Ok(1) }).await, Some(1));
        let mut rests = Vec::new();
        for _ in 0..6 {
            rests.push(rest(&health).await);
        }
        assert!(
            rests[0] < Duration::from_millis(600) && rests[5] < Duration::from_millis(5_100),
            "{rests:?}"
        );
        assert!(rests.is_sorted() && rests[1] > rests[0] && rests[4] > rests[1] * 3, "{rests:?}");
        sleep(LONG).await;
        assert!(rest(&health).await < Duration::from_millis(600));
    }

    #[tokio::test(start_paused = true)]
    async fn timeout_counts_as_a_failure() {
        let health = healthy();
        assert_eq!(health.ask(std::future::pending::<Result<(), _>>()).await, None);
        assert!(health.rests());
        // The operation is not run.
        assert_eq!(health.ask(async { unreachable!("it rests") }).await, None::<()>);
    }
}
