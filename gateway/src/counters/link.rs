//! The single connection to the server; calls on it are pipelined. The first call that fails or takes too long drops it, so
//! that no further request waits; a task reconnects.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use gatewright_config::{CountersUrl, InvalidCountersUrl};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError, RedisResult};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::scripts::{Scripts, probe};

/// Timeout for connecting and for the first replies.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pause before reconnecting.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest pause after a loss. The pause grows while connections are short-lived: a server that is slow now and then
/// delays only the
/// requests of one moment in four seconds, and limits are shared again that soon after it recovers.
const MAX_PAUSE: Duration = Duration::from_secs(4);
/// Losing a connection that lasted this long doesn't mean that the server is slow.
const LASTING: Duration = Duration::from_secs(10);

pub(super) struct Link {
    client: Client,
    /// The address without user and password.
    place: String,
    present: ArcSwapOption<MultiplexedConnection>,
    lost: Notify,
    /// Wakes the task that reports to the server everything it may have lost.
    back: Notify,
    losses: AtomicU64,
    scripts: Scripts,
    /// How long a request waits for a reply.
    timeout: Duration,
}

impl Link {
    pub(super) fn new(url: &CountersUrl, timeout: Duration) -> Result<Self, InvalidCountersUrl> {
        let (client, place, present) = (url.client()?, url.to_string(), ArcSwapOption::empty());
        let (lost, back, losses, scripts) = Default::default();
        Ok(Self { client, place, present, lost, back, losses, scripts, timeout })
    }

    /// The connection; `None` while the server is away.
    pub(super) fn get(&self) -> Option<Arc<MultiplexedConnection>> {
        self.present.load_full()
    }

    /// Waits for a new connection.
    pub(super) async fn is_back(&self) {
        self.back.notified().await;
    }

    pub(super) fn losses(&self) -> u64 {
        self.losses.load(Ordering::Relaxed)
    }

    /// Drops a connection, unless that has already happened.
    pub(super) fn lose(&self, connection: &Arc<MultiplexedConnection>, why: &str) {
        let current = self.present.load();
        if current.as_ref().is_none_or(|current| !Arc::ptr_eq(current, connection)) {
            return;
        }
        let before = self.present.compare_and_swap(&current, None);
        if before.as_ref().is_some_and(|before| Arc::ptr_eq(before, connection)) {
            self.losses.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(
                "the counters at {} failed: {why}; each gateway now enforces limits alone",
                self.place
            );
            self.lost.notify_one();
        }
    }
}

/// Connects, and reconnects when the connection is lost.
pub(super) async fn keep(link: Arc<Link>) {
    let (mut is_logged, mut pause) = (false, PAUSE);
    loop {
        if link.present.load().is_none() {
            match connect(&link).await {
                Ok(connection) => {
                    link.present.store(Some(connection));
                    tracing::info!(
                        "limits are enforced across all gateways that share the counters at {}",
                        link.place
                    );
                    is_logged = true;
                    link.back.notify_one();
                }
                Err(why) => warn_once(&mut is_logged, &link.place, &why),
            }
        }
        if link.present.load().is_none() {
            sleep(PAUSE).await;
            continue;
        }
        let since = Instant::now();
        link.lost.notified().await;
        // Otherwise a server that is slow now and then would delay requests after each reconnect.
        let wait = if since.elapsed() < LASTING { pause } else { PAUSE };
        pause = (wait * 2).min(MAX_PAUSE);
        sleep(wait).await;
    }
}

/// Logs that there has been no connection since the start. A lost connection has already been logged.
fn warn_once(is_logged: &mut bool, place: &str, why: &str) {
    if !*is_logged {
        tracing::warn!(
            "the counters at {place} are not available yet: {why}; each gateway enforces limits alone"
        );
        *is_logged = true;
    }
}

/// A connection on which the server replies as fast as requests need. Errors: why there is no connection.
async fn connect(link: &Link) -> Result<Arc<MultiplexedConnection>, String> {
    let connection = timeout(PATIENCE, open(&link.client)).await;
    let connection = connection.map_err(|_| "it does not respond")?.map_err(|error| explained(&error))?;
    for call in link.scripts.trial() {
        let answered = timeout(link.timeout, call.call(&connection)).await;
        answered.map_err(|_| "it does not respond in time")?.map_err(|error| explained(&error))?;
    }
    Ok(connection)
}

async fn open(client: &Client) -> RedisResult<Arc<MultiplexedConnection>> {
    // The caller limits the time.
    let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
    let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
    probe(&mut connection).await?;
    Ok(Arc::new(connection))
}

/// Why a call failed, without any text of the server's except its error code.
pub(super) fn explained(error: &RedisError) -> String {
    let code =
        error.code().filter(|code| code.len() < 32 && code.bytes().all(|byte| byte.is_ascii_uppercase()));
    match code {
        Some(code) => format!("{} ({code})", error.category()),
        None => error.category().to_owned(),
    }
}
