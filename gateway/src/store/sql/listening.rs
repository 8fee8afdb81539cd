//! What Postgres tells of changes, whichever gateway makes them.

use std::sync::Arc;
use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions};
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

/// What the trigger of the table of keys notifies.
const KEYS: &str = "gatewright_keys";
/// How long to wait until the next attempt to listen.
const PAUSE: Duration = Duration::from_secs(1);

/// A task that listens, with a connection of its own, until this is dropped.
#[derive(Debug)]
pub(super) struct Listening {
    keys: Arc<Notify>,
    _task: AbortOnDropHandle<()>,
}

impl Listening {
    /// Needs a Tokio runtime.
    pub(super) fn start(url: &Url) -> Result<Self, sqlx::Error> {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_lazy_with(PgConnectOptions::from_url(url)?);
        let keys = Arc::<Notify>::default();
        let task = tokio::spawn(listen(pool, Arc::clone(&keys)));
        Ok(Self { keys, _task: AbortOnDropHandle::new(task) })
    }

    /// Waits until keys may have changed since the last time. One waits at a time.
    pub(super) async fn keys(&self) {
        self.keys.notified().await;
    }
}

async fn listen(pool: PgPool, keys: Arc<Notify>) {
    loop {
        if let Err(error) = follow(&pool, &keys).await {
            // Whoever uses the store says that it is away.
            tracing::debug!("nobody tells of changed keys: {error}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn follow(pool: &PgPool, keys: &Notify) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(KEYS).await?;
    loop {
        // Also at the beginning, and after a connection that was lost: what changed before was told to nobody.
        keys.notify_one();
        listener.try_recv().await?;
    }
}
