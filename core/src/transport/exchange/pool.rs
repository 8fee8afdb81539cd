//! Limits how many requests may be in progress at once, and how long a call waits for its turn. The HTTP library limits
//! only idle connections.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::wire::error::{Error, ErrorKind};

/// Permits for a number of requests, granted in the order of the calls.
#[derive(Debug)]
pub(crate) struct Pool {
    turns: Arc<Semaphore>,
    max_connections: usize,
    timeout: Duration,
}

/// A request's place in the pool, released when dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    _turn: OwnedSemaphorePermit,
}

impl Pool {
    /// Errors (Configuration): the size of the pool is zero or too large to count.
    pub(crate) fn new(max_connections: usize, timeout: Duration) -> Result<Self, Error> {
        if max_connections == 0 || max_connections > Semaphore::MAX_PERMITS {
            let message = format!(
                "max_connections must be from 1 to {}, not {max_connections}",
                Semaphore::MAX_PERMITS
            );
            return Err(Error::new(ErrorKind::Configuration, message));
        }
        Ok(Self { turns: Arc::new(Semaphore::new(max_connections)), max_connections, timeout })
    }

    /// Waits for a turn, at most for the pool's timeout or `remaining`, whichever is shorter.
    ///
    /// Errors: no place became free in time (PoolTimeout).
    pub(crate) async fn lease(&self, remaining: Duration) -> Result<Lease, Error> {
        if let Ok(turn) = Arc::clone(&self.turns).try_acquire_owned() {
            return Ok(Lease { _turn: turn });
        }
        let limit = self.timeout.min(remaining);
        let waited = tokio::time::timeout(limit, Arc::clone(&self.turns).acquire_owned()).await;
        let turn = waited.map_err(|_| self.too_late(remaining))?.expect("the semaphore is never closed");
        Ok(Lease { _turn: turn })
    }

    /// The error for a wait that ended with the pool's timeout or, if that came first, with the call's deadline, which
    /// was `remaining` away.
    fn too_late(&self, remaining: Duration) -> Error {
        let end = if remaining < self.timeout {
            format!("before the call's deadline (timeout), which left {remaining:?}")
        } else {
            format!("within {:?} (pool_timeout)", self.timeout)
        };
        let message = format!(
            "none of the client's {} connections (max_connections) became free {end}: close finished streams, send fewer \
                concurrent requests, or raise one of the two limits",
            self.max_connections
        );
        Error::new(ErrorKind::PoolTimeout, message)
    }
}
