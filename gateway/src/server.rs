//! The server: accepts connections, applies their limits, and routes requests to operations.

mod admin;
mod bind_error;
mod body;
mod client;
mod connection;
mod connection_slots;
#[cfg(test)]
mod connection_slots_tests;
#[cfg(feature = "console")]
mod console;
mod control;
mod embedded;
mod head_error;
pub(crate) mod http1;
mod listening;
mod operator;
mod origins;
mod probes;
mod rate_headers;
mod request;
mod request_id;
mod route_match;
mod shared_config;
mod tls;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gatewright::ErrorCode;
use gatewright::webhook::Secret;
use gatewright_config::Config;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::bind_error::BindError;
pub use self::control::{Control, Reloaded};
pub use self::embedded::Embedded;
pub use self::route_match::{Match, match_route};

use self::client::Client;
use self::connection::{Peers, Socket};
use self::connection_slots::ConnectionSlots;
use self::http1::Settings;
use self::listening::{AcceptedConnection, Listeners};
use self::probes::Probes;
use self::tls::{Certificate, Handshakes};
use crate::access::ApiKey;
use crate::app::{Access, App, Storage};
use crate::node_registry::RegisteredNode;
use crate::observe::GaugeGuard;
#[cfg(feature = "console")]
use crate::sign_in::SignInKeys;
use crate::wire::ApiError;

/// Maximum number of refused connections that stay open for their clients to read the error.
const REFUSALS: usize = 64;
/// The `retry-after` for a client that holds too many connections.
const REFUSED_WAIT_S: u64 = 1;
/// Pause after a failed accept, for example when file descriptors run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A gateway that is bound to its addresses and ready to serve.
pub struct Gateway {
    listening: Listeners,
    probes: Option<Probes>,
    certificate: Option<Arc<Certificate>>,
    handshakes: Option<Handshakes>,
    embedded: Embedded,
}

impl Gateway {
    /// Binds the addresses. Connections queue from now on, until [`serve`](Self::serve) accepts them.
    pub async fn bind(config: Config) -> Result<Self, BindError> {
        let certificate = match &config.tls {
            Some(tls) => Some(Certificate::new(tls.read()?)),
            None => None,
        };
        let handshakes = match &certificate {
            Some(certificate) => Some(Handshakes::new(Arc::clone(certificate), config.header_timeout)?),
            None => None,
        };
        let listening = Listeners::bind(&config).await?;
        let probes = Probes::bind(&config).await?;
        let embedded = Embedded::at(config, listening.address())?;
        embedded.load().await?;
        embedded.follow();
        Ok(Self { listening, probes, certificate, handshakes, embedded })
    }

    /// The bound address, with the actual port if port 0 was configured; the first one of several.
    pub fn address(&self) -> SocketAddr {
        self.listening.address()
    }

    /// The base URL, such as `http://127.0.0.1:8080`; the first one of several.
    pub fn url(&self) -> String {
        self.urls().swap_remove(0)
    }

    /// The base URLs of all addresses.
    pub fn urls(&self) -> Vec<String> {
        self.listening.urls().collect()
    }

    /// Its configuration, with the upstreams and models in use.
    pub fn config(&self) -> Config {
        self.embedded.config()
    }

    /// Changes the gateway's configuration while it serves.
    pub fn control(&self) -> Control {
        Control { app: self.embedded.shared(), certificate: self.certificate.clone() }
    }

    /// The key that clients must send (section 5).
    pub fn key(&self) -> &ApiKey {
        self.embedded.key()
    }

    /// A code with which the console can sign in once, within a minute, with both keys of this gateway: the page reads it from its
    /// fragment, `#sign-in=CODE`. It replaces an earlier code.
    #[cfg(feature = "console")]
    pub fn sign_in_code(&self) -> String {
        let (client, admin) = (self.key().clone(), self.config().admin_key);
        self.embedded.shared().sign_in.begin(SignInKeys { client, admin })
    }

    /// The secret with which webhook receivers verify signatures.
    pub fn webhook_secret(&self) -> &Secret {
        self.embedded.webhook_secret()
    }

    /// Whether that secret was created at this start. A configured one, or one derived from an existing pepper, is
    /// already known.
    pub fn webhook_secret_is_new(&self) -> bool {
        self.embedded.webhook_secret_is_new()
    }

    /// Whether keys, usage, tasks and files survive the process.
    pub fn lasts(&self) -> bool {
        self.embedded.lasts()
    }

    /// Serves until `shutdown` resolves, then refuses connections, and gives requests, video tasks and notifications in
    /// progress the configured grace period to finish. Requests that remain are cut off. Tasks that remain continue when a
    /// gateway uses the same data folder again; without one, they end as failed: returns their ids.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) -> Vec<String> {
        let app = self.embedded.shared();
        let config = &app.config;
        let draining = CancellationToken::new();
        let settings = Settings { header_timeout: config.header_timeout, draining: draining.clone() };
        // Until this function returns.
        let _probing = self.probes.map(|probes| probes.start(&app, &settings));
        let connections = ConnectionServer { settings, embedded: self.embedded, handshakes: self.handshakes };
        let places = ConnectionSlots::new(config.max_connections);
        let peers = Peers::new(config.max_connections_per_peer);
        let refusals = Arc::new(Semaphore::new(REFUSALS));
        // Closes connections whose grace period is over, and tracks when all have ended.
        let (cut, open) = (CancellationToken::new(), TaskTracker::new());
        for url in self.listening.urls() {
            tracing::info!(url, "listening");
        }
        let listed = RegisteredNode::start(&app, self.listening.urls().collect());

        let drained = async {
            shutdown.await;
            app.draining.store(true, Ordering::Relaxed);
            tokio::time::sleep(config.drain_delay).await;
        };
        tokio::pin!(drained);
        loop {
            let accepted = tokio::select! {
                () = &mut drained => break,
                accepted = self.listening.accept() => accepted,
            };
            let AcceptedConnection { stream, peer, is_tls } = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "connection not accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let Some(held) = peers.hold(peer.ip()) else {
                // A TLS client couldn't read the error before the handshake.
                if !is_tls {
                    connection::refuse(stream, too_many(config.max_connections_per_peer), &refusals);
                }
                continue;
            };
            let place = tokio::select! {
                () = &mut drained => break,
                place = places.take() => place,
            };
            let (socket, peer) = connection::open(stream, config.write_timeout);
            let activity = Arc::clone(place.activity());
            let client = Client { presence: peer.presence().clone(), activity, is_tls };
            // Boxed: a task would reserve space for it twice, before and while it is polled.
            let connection = Box::pin(connections.serve(socket, client));
            let present = GaugeGuard::new(&app.telemetry.metrics.connections);
            let (cut, is_open) = (cut.child_token(), open.token());
            tokio::spawn(async move {
                let is_cut = tokio::select! {
                    biased;
                    ended = connection => {
                        if let Err(error) = ended {
                            tracing::debug!(%error, "connection ended");
                        }
                        false
                    }
                    () = peer.gone() => {
                        tracing::debug!("the client disconnected");
                        false
                    }
                    () = cut.cancelled() => true,
                    // Nothing is left to send, so a silent client need not be waited for.
                    () = place.activity().evicted() => true,
                };
                drop(is_open);
                if !is_cut {
                    peer.close().await;
                }
                drop((place, held, present));
            });
        }
        // New clients are refused, instead of waiting for an answer that never comes.
        drop(self.listening);
        let ended = async {
            draining.cancel();
            open.close();
            open.wait().await;
            app.task_runner.ended().await;
            app.webhooks.outbox.settled(app.storage.lasting).await;
        };
        if tokio::time::timeout(config.shutdown_grace, ended).await.is_err() {
            tracing::warn!("requests or video tasks in progress were abandoned");
        }
        // What abandoned requests consumed is recorded below.
        cut.cancel();
        open.wait().await;
        record_rest(&app, listed).await
    }
}

/// Abandons the remaining video tasks, and writes what the store doesn't have yet. Returns the ids of the tasks that ended as
/// failed.
async fn record_rest(app: &App, listed: RegisteredNode) -> Vec<String> {
    app.task_runner.abandon().await;
    // Each waits for a store that is silent, and none for another.
    let (unfinished, (), (), ()) = tokio::join!(
        app.task_runner.release(),
        record_usage(&app.access),
        record_history(&app.storage),
        listed.end()
    );
    if let Err(error) = app.storage.store.checkpoint().await {
        tracing::warn!("{error}: a copy of the database must include the file that ends in -wal");
    }
    for task in &unfinished {
        tracing::warn!(task, "marked as failed: the gateway stopped");
    }
    unfinished
}

/// The error for a peer that has its maximum number of connections.
fn too_many(max_connections: usize) -> ApiError {
    let message = format!("this address has {max_connections} open connections already; close some first");
    ApiError::new(&ErrorCode::TOO_MANY_CONNECTIONS, message).retry_after(REFUSED_WAIT_S)
}

/// Records in the store what the last requests consumed.
async fn record_usage(access: &Access) {
    if let Err(error) = access.writer.finish().await {
        let becomes =
            if access.ledger.journal().is_some() { "will be written at the next start" } else { "is lost" };
        tracing::warn!("{error}: the usage of the last requests {becomes}");
    }
}

/// Records in the store what the last requests left behind of stored responses.
async fn record_history(storage: &Storage) {
    if let Err(error) = storage.history_keeper.finish().await {
        let becomes = if storage.history_keeper.is_spooled() {
            "will be written at the next start"
        } else {
            "are lost"
        };
        tracing::warn!("{error}: the last stored responses {becomes}");
    }
}

/// Serves the connections.
struct ConnectionServer {
    settings: Settings,
    embedded: Embedded,
    handshakes: Option<Handshakes>,
}

impl ConnectionServer {
    /// Serves a connection to its end.
    fn serve(&self, socket: Socket, client: Client) -> impl Future<Output = io::Result<()>> + use<> {
        let (settings, embedded) = (self.settings.clone(), self.embedded.clone());
        let handshakes = self.handshakes.clone().filter(|_| client.is_tls);
        async move {
            match handshakes {
                None => http1::serve(socket, embedded, client, settings).await,
                // Boxed, so that a connection without TLS needs no space for it.
                Some(handshakes) => {
                    let secured = async {
                        let socket = handshakes.shake(socket).await?;
                        http1::serve(socket, embedded, client, settings).await
                    };
                    Box::pin(secured).await
                }
            }
        }
    }
}
