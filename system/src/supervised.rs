//! Tasks that live as long as the gateway: a panic doesn't end them.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::task::JoinHandle;

/// Runs a task until it ends. A panic is logged, and the task restarts after a pause. Needs a Tokio runtime.
pub fn supervise<F>(
    task: &'static str,
    pause: Duration,
    mut begin: impl FnMut() -> F + Send + 'static,
) -> JoinHandle<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    tokio::spawn(async move {
        // State that the task shares with others is behind locks that survive a panic; the rest is recreated.
        while AssertUnwindSafe(async { begin().await }).catch_unwind().await.is_err() {
            // The panic message went to standard error.
            tracing::error!(task, "a task of the gateway panicked; restarting it");
            tokio::time::sleep(pause).await;
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn panicking_task_is_restarted_until_it_ends() {
        let (started, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let (count, end) = (Arc::clone(&started), Arc::clone(&ended));
        supervise("test", Duration::ZERO, move || {
            let (time, end) = (count.fetch_add(1, Ordering::SeqCst), Arc::clone(&end));
            // Even before the task waits.
            assert!(time > 0, "on purpose");
            async move {
                tokio::task::yield_now().await;
                assert!(time > 1, "on purpose");
                end.notify_one();
            }
        });
        tokio::time::timeout(Duration::from_mins(1), ended.notified()).await.expect("it is restarted");
        assert_eq!(started.load(Ordering::SeqCst), 3);
    }
}
