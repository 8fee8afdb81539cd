//! The gateway's background task for batches: takes over those that no process follows, and removes expired files.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use gatewright_store::ObjectLease;
use gatewright_system::supervise;

use super::follow::{self, FollowedBatch};
use super::{operations, provider_of, simulated};
use crate::app::App;
use crate::storage::ObjectRecord;

/// Pause after a panic.
const PAUSE: Duration = Duration::from_secs(1);

/// Starts the background task. It ends when the gateway is gone. Needs a Tokio runtime.
pub(crate) fn start(app: &Arc<App>) {
    let app = Arc::downgrade(app);
    supervise("batches", PAUSE, move || attend(Weak::clone(&app)));
}

async fn attend(app: Weak<App>) {
    while let Some(app) = app.upgrade() {
        if app.storage.lasting && !app.draining.load(Ordering::Relaxed) {
            for (record, lease) in
                app.storage.objects.resume(follow::lease(&app, app.config.batch_poll)).await
            {
                resume(&app, record, lease);
            }
        }
        app.storage.objects.forget().await;
        let pause = app.config.video_lease;
        drop(app);
        tokio::time::sleep(pause).await;
    }
}

fn resume(app: &Arc<App>, record: ObjectRecord, lease: ObjectLease) {
    let caller = app.access.authenticator.caller_of(&lease.owner);
    let (Ok(provider), Some(requests)) = (provider_of(app, &record), &record.requests) else {
        // It is tried again when the lease expires: the provider may be configured again.
        tracing::warn!(upstream = record.upstream, "a batch waits for its provider, which is not configured");
        return;
    };
    if provider.is_simulator() {
        return simulated::resume(app, caller, record, lease);
    }
    let charge = operations::charge(app, caller.clone(), &provider, requests);
    follow::start(app, FollowedBatch { provider, record, lease, caller, charge });
}
