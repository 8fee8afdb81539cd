//! Asks a store that may be away: within a bounded time, and for a while not at all once it gave no answer. So what can go on
//! without it goes on.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::durable::StoreError;

/// How long a request waits for the store.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long the store is not asked after it gave no answer.
const REST: Duration = Duration::from_secs(5);

/// See the module.
pub(super) struct Asking {
    /// What follows when it is away, for the log.
    consequence: &'static str,
    /// Until when it is not asked.
    resting: Mutex<Option<Instant>>,
}

impl Asking {
    pub(super) fn new(consequence: &'static str) -> Self {
        Self { consequence, resting: Mutex::default() }
    }

    /// What the store answers in time. None while it does not.
    pub(super) async fn ask<T>(&self, operation: impl Future<Output = Result<T, StoreError>>) -> Option<T> {
        if self.rests() {
            return None;
        }
        match tokio::time::timeout(PATIENCE, operation).await {
            Ok(Ok(answer)) => {
                self.works();
                return Some(answer);
            }
            Ok(Err(error)) => self.fails(&error.to_string()),
            Err(_) => self.fails(&format!("the store gave no answer within {PATIENCE:?}")),
        }
        None
    }

    /// Waits for one of a few places to ask from. None: there is none in time, of which the store knows nothing, or it rests.
    pub(super) async fn place<'p>(&self, places: &'p Semaphore) -> Option<SemaphorePermit<'p>> {
        if self.rests() {
            return None;
        }
        tokio::time::timeout(PATIENCE, places.acquire()).await.ok()?.ok()
    }

    /// Whether the store is not asked now.
    pub(super) fn rests(&self) -> bool {
        self.lock().is_some_and(|until| Instant::now() < until)
    }

    pub(super) fn works(&self) {
        if self.lock().take().is_some() {
            tracing::info!("the store works again");
        }
    }

    pub(super) fn fails(&self, why: &str) {
        if self.lock().replace(Instant::now() + REST).is_none() {
            tracing::warn!("{why}: {}", self.consequence);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
