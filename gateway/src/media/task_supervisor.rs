//! The gateway's background task for video tasks: renews the leases of this gateway's tasks, and takes over abandoned
//! ones.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use gatewright_system::supervise;
use tokio::time::Instant;

use super::videos;
use crate::app::App;

/// Pause after a panic.
const PAUSE: Duration = Duration::from_secs(1);
/// How often tasks that ended long ago are deleted.
const FORGETTING: Duration = Duration::from_mins(1);

/// Starts the background task. It ends when the gateway is gone. Needs a Tokio runtime.
pub(crate) fn start(app: &Arc<App>) {
    let app = Arc::downgrade(app);
    supervise("video tasks", PAUSE, move || attend(Weak::clone(&app)));
}

async fn attend(app: Weak<App>) {
    let mut forget = Instant::now();
    while let Some(app) = app.upgrade() {
        let pause = app.task_runner.renew_leases().await;
        loop {
            let is_draining = app.draining.load(Ordering::Relaxed);
            let resumed = if is_draining { Vec::new() } else { app.task_runner.resume().await };
            if resumed.is_empty() {
                break;
            }
            for (resumed, lease) in resumed {
                videos::resume(&app, resumed, lease);
            }
        }
        if Instant::now() >= forget {
            app.task_runner.forget().await;
            app.webhooks.outbox.forget().await;
            forget = Instant::now() + FORGETTING;
        }
        drop(app);
        tokio::time::sleep(pause).await;
    }
}
