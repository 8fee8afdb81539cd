//! Uses the newest revision of the shared configuration from the start on.

use std::sync::{Arc, Weak};
use std::time::Duration;

use gatewright_config::offered;
use gatewright_store::{StoreError, StoredRevision};
use gatewright_system::supervise;

use super::bind_error::BindError;
use crate::app::App;
use crate::shared::Shared;

/// How often the store is polled for the newest revision, if it doesn't notify of changes.
const PAUSE: Duration = Duration::from_millis(500);
/// Minimum interval between two reads.
const LEAST_PAUSE: Duration = Duration::from_millis(100);
/// How often a revision that can't be used is retried: what it lacks may have appeared on this machine.
const RETRY: Duration = Duration::from_secs(30);

/// Uses the newest revision before requests are served. Without one, a gateway serves no model until there is
/// one.
///
/// `store_answers`: whether the store has just answered. Errors: this gateway can't use the newest revision, and has
/// used no other.
pub(super) async fn load(app: &Arc<App>, store_answers: bool) -> Result<(), BindError> {
    let Some(shared) = &app.live.shared else { return Ok(()) };
    let why = match if store_answers { look(app, shared).await.err() } else { None } {
        Some(error) => format!("{error}: it will be loaded later"),
        None if !store_answers => "the store does not respond: it will be loaded later".to_owned(),
        None if shared.in_use().is_some() => return Ok(()),
        None => match shared.refused() {
            Some(refused) if use_copy(app).await => {
                tracing::warn!("{}: not used", refused.why);
                return Ok(());
            }
            Some(refused) => return Err(BindError::SharedConfig(refused.why)),
            None => "the store has none; publish one with gatewright config push".to_owned(),
        },
    };
    if !use_copy(app).await {
        tracing::warn!(
            "the shared configuration: {why}; until then, the gateway has no models and is not ready"
        );
    }
    Ok(())
}

/// Follows the store from now on. Ends when the gateway is dropped. Needs a Tokio runtime.
pub(super) fn start(app: &Arc<App>) {
    if app.live.shared.is_some() {
        let alive = Arc::downgrade(app);
        supervise("shared configuration", PAUSE, move || follow(Weak::clone(&alive)));
    }
}

/// Uses a revision that was just added, before that is confirmed. If the store doesn't answer now, it is used when it
/// does.
pub(super) async fn refresh(app: &Arc<App>) {
    if let Some(shared) = &app.live.shared
        && let Err(error) = look(app, shared).await
    {
        tracing::warn!("{error}: a change to the shared configuration has not taken effect yet");
    }
}

async fn follow(alive: Weak<App>) {
    while let Some(app) = alive.upgrade() {
        let Some(shared) = &app.live.shared else { return };
        if let Err(error) = look(&app, shared).await {
            // The task that follows the keys logs that the store is away.
            tracing::debug!("{error}: changes to the shared configuration are not seen");
        }
        if shared.files_have_changed() {
            use_again(&app, shared).await;
        }
        // Combines changes in quick succession into one read.
        tokio::time::sleep(LEAST_PAUSE).await;
        let is_requested = tokio::select! {
            () = app.storage.store.config_changed() => false,
            () = shared.again.notified() => true,
            () = tokio::time::sleep(PAUSE.saturating_sub(LEAST_PAUSE)) => false,
        };
        if is_requested {
            use_again(&app, shared).await;
        }
    }
}

/// Looks for a revision other than the one in use, and uses it.
async fn look(app: &Arc<App>, shared: &Shared) -> Result<(), StoreError> {
    let _turn = shared.turn.lock().await;
    // If the store was emptied, the configuration stays.
    let Some(newest) = app.storage.store.config_revisions(1).await?.into_iter().next() else { return Ok(()) };
    let is_in_use = shared.in_use().is_some_and(|in_use| in_use.revision == newest);
    let is_refused =
        shared.refused().is_some_and(|refused| refused.revision == newest && refused.at.elapsed() < RETRY);
    if is_in_use || is_refused {
        return Ok(());
    }
    // Without a document, it was just removed, and there is a newer one.
    if let Some(document) = app.storage.store.config_document(newest.number).await? {
        use_revision(app, newest, document).await;
    }
    Ok(())
}

/// Reads the revision in use again, with its secrets.
async fn use_again(app: &Arc<App>, shared: &Shared) {
    let _turn = shared.turn.lock().await;
    if let Some(in_use) = shared.in_use() {
        use_revision(app, in_use.revision.clone(), in_use.document.clone()).await;
    }
}

/// Uses the last one in use, if it is known. Returns whether it is now in use.
async fn use_copy(app: &Arc<App>) -> bool {
    let Some(shared) = &app.live.shared else { return false };
    let reading = Arc::clone(app);
    let stored =
        tokio::task::spawn_blocking(move || reading.live.shared.as_ref().and_then(Shared::stored_copy)).await;
    let Ok(Some((revision, document))) = stored else { return false };
    let number = revision.number;
    use_revision(app, revision, document).await;
    let is_used = shared.in_use().is_some();
    if is_used {
        tracing::warn!(
            "using revision {number} of the shared configuration, the last one known, until a later one is available"
        );
    }
    is_used
}

/// Uses a revision, or reports why it can't be used; then nothing changes.
async fn use_revision(app: &Arc<App>, revision: StoredRevision, document: String) {
    let (using, number) = (Arc::clone(app), revision.number);
    let tried = revision.clone();
    let used = tokio::task::spawn_blocking(move || {
        let Some(shared) = &using.live.shared else { return Ok((0, 0)) };
        let read = shared.read(&tried, &document)?;
        using.route(&read.upstreams, &read.models).map_err(|error| error.to_string())?;
        for warning in &read.warnings {
            tracing::warn!("{warning}");
        }
        let counts = (read.upstreams.len(), read.models.len());
        shared.used(&tried, &document, read);
        Ok(counts)
    });
    // After a panic, too, the previous one stays in use.
    match used.await.unwrap_or_else(|_| Err("the gateway failed to read it".to_owned())) {
        Ok((upstreams, models)) => tracing::info!(
            "using revision {number} of the shared configuration: {}",
            offered(upstreams, models)
        ),
        Err(why) => {
            if app.live.shared.as_ref().is_some_and(|shared| shared.refuse(&revision, &why)) {
                tracing::warn!(
                    "{why}\nrejected revision {number} of the shared configuration: the current one stays in use"
                );
            }
        }
    }
}
