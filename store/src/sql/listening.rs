//! Postgres notifications about changes, whichever gateway makes them.

use std::sync::Arc;
use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions};
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

/// The channel that the trigger on the keys table notifies.
const KEYS: &str = "gatewright_keys";
/// The channel that the trigger on the shared configuration notifies.
const CONFIG: &str = "gatewright_config";
/// Pause before the next attempt to listen.
const PAUSE: Duration = Duration::from_secs(1);

/// A task that listens, on its own connection, until this is dropped.
#[derive(Debug)]
pub(super) struct NotificationListener {
    changes: Arc<ChangeNotify>,
    _task: AbortOnDropHandle<()>,
}

/// The waiters for each channel.
#[derive(Debug, Default)]
struct ChangeNotify {
    keys: Notify,
    config: Notify,
}

impl ChangeNotify {
    /// `None`: anything may have changed.
    fn notify(&self, channel: Option<&str>) {
        if channel.is_none_or(|channel| channel == KEYS) {
            self.keys.notify_one();
        }
        if channel.is_none_or(|channel| channel == CONFIG) {
            self.config.notify_one();
        }
    }
}

impl NotificationListener {
    /// Needs a Tokio runtime.
    pub(super) fn start(url: &Url) -> Result<Self, sqlx::Error> {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_lazy_with(PgConnectOptions::from_url(url)?);
        let changes = Arc::<ChangeNotify>::default();
        let task = tokio::spawn(listen(pool, Arc::clone(&changes)));
        Ok(Self { changes, _task: AbortOnDropHandle::new(task) })
    }

    /// Waits until keys may have changed since the last call. At most one task waits at a time.
    pub(super) async fn keys(&self) {
        self.changes.keys.notified().await;
    }

    /// The same for the shared configuration.
    pub(super) async fn config(&self) {
        self.changes.config.notified().await;
    }
}

async fn listen(pool: PgPool, changes: Arc<ChangeNotify>) {
    loop {
        if let Err(error) = follow(&pool, &changes).await {
            // The users of the store report that it is away.
            tracing::debug!("change notifications are unavailable: {error}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn follow(pool: &PgPool, changes: &ChangeNotify) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen_all([KEYS, CONFIG]).await?;
    // Earlier changes went unnoticed. The same holds after a lost connection, which ends the wait without a notification.
    changes.notify(None);
    loop {
        let notification = listener.try_recv().await?;
        changes.notify(notification.as_ref().map(sqlx::postgres::PgNotification::channel));
    }
}
