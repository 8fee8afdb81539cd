//! The load of an upstream, and its limits: concurrent requests and requests per minute.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_mins(1);

/// The load of an upstream.
#[derive(Debug, Default)]
pub(crate) struct Load {
    running: AtomicUsize,
    minute: Mutex<Option<Minute>>,
}

#[derive(Debug, Clone, Copy)]
struct Minute {
    began: Instant,
    requests: u32,
}

/// A request in progress, counted until dropped.
#[derive(Debug)]
pub(crate) struct Permit(Arc<Load>);

impl Load {
    /// Number of requests in progress.
    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// Admits a request. Errors: when to ask again.
    pub(crate) fn admit(
        self: &Arc<Self>,
        max_concurrent: Option<usize>,
        max_requests_per_minute: Option<u32>,
        now: Instant,
    ) -> Result<Permit, Instant> {
        let permit = Permit(Arc::clone(self));
        let running = self.running.fetch_add(1, Ordering::Relaxed);
        if max_concurrent.is_some_and(|most| running >= most) {
            return Err(now + Duration::from_secs(1));
        }
        if let Some(most) = max_requests_per_minute {
            let mut minute = self.minute.lock().unwrap_or_else(PoisonError::into_inner);
            let current = minute.get_or_insert(Minute { began: now, requests: 0 });
            if now.saturating_duration_since(current.began) >= MINUTE {
                *current = Minute { began: now, requests: 0 };
            }
            if current.requests >= most {
                return Err(current.began + MINUTE);
            }
            current.requests += 1;
        }
        Ok(permit)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_requests_are_limited_per_upstream() {
        let (load, now) = (Arc::new(Load::default()), Instant::now());
        let first = load.admit(Some(2), None, now).expect("a place");
        let _second = load.admit(Some(2), None, now).expect("a place");
        assert!(load.admit(Some(2), None, now).is_err());
        drop(first);
        assert!(load.admit(Some(2), None, now).is_ok());
    }

    #[test]
    fn requests_per_minute_are_limited_per_upstream() {
        let (load, now) = (Arc::new(Load::default()), Instant::now());
        for _ in 0..3 {
            assert!(load.admit(None, Some(3), now).is_ok());
        }
        assert_eq!(load.admit(None, Some(3), now).expect_err("full"), now + MINUTE);
        assert!(load.admit(None, Some(3), now + MINUTE).is_ok());
    }
}
