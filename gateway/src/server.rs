//! The server: accepts connections, applies their limits, and routes requests to operations.

mod bind_error;
mod body;
mod connection;
mod embedded;
mod head_error;
mod origins;
mod request;
mod request_id;

use std::future::Future;
use std::io;
use std::io::ErrorKind::{ConnectionAborted, ConnectionReset};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gatewright::ErrorCode;
use gatewright::webhook::Secret;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub use self::bind_error::BindError;
pub use self::embedded::Embedded;

use self::connection::Peers;
use crate::access::ApiKey;
use crate::config::Config;
use crate::wire::ApiError;

/// Maximum number of refused connections that stay open for their clients to read the error.
const REFUSALS: usize = 64;
/// The `retry-after` for a client that holds too many connections.
const REFUSED_WAIT_S: u64 = 1;
/// Pause after a failed accept, for example when file descriptors run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A gateway that is bound to an address and ready to serve.
pub struct Gateway {
    listener: TcpListener,
    address: SocketAddr,
    embedded: Embedded,
}

impl Gateway {
    /// Binds the address. Connections queue from now on, until [`serve`](Self::serve) accepts them.
    pub async fn bind(config: Config) -> Result<Self, BindError> {
        let failed = |source| BindError::Listen { listen: config.listen.clone(), source };
        let listener = TcpListener::bind(&config.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let embedded = Embedded::at(config, address)?;
        Ok(Self { listener, address, embedded })
    }

    /// The bound address, with the actual port if port 0 was configured.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL, such as `http://127.0.0.1:8080`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The key that clients must send (section 5).
    pub fn key(&self) -> &ApiKey {
        self.embedded.key()
    }

    /// The secret that receivers of webhooks verify signatures with.
    pub fn webhook_secret(&self) -> &Secret {
        self.embedded.webhook_secret()
    }

    /// Serves until `shutdown` resolves, then gives requests, video tasks and notifications in progress the configured
    /// grace period to finish. Tasks that remain end as failed; returns their ids.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) -> Vec<String> {
        let (app, router) = self.embedded.into_parts();
        let config = &app.config;
        let mut server = http1::Builder::new();
        // A half-closed client still gets its response; `server/connection.rs` detects clients that have gone.
        server.timer(TokioTimer::new()).header_read_timeout(config.header_timeout).half_close(true);
        let graceful = GracefulShutdown::new();
        let permits = Arc::new(Semaphore::new(config.max_connections));
        let peers = Peers::new(config.max_connections_per_peer);
        let refusals = Arc::new(Semaphore::new(REFUSALS));
        tracing::info!(address = %self.address, "listening");

        tokio::pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                () = &mut shutdown => break,
                accepted = accept(&self.listener, &permits) => accepted,
            };
            let (stream, address, permit) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "connection not accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let Some(held) = peers.hold(address.ip()) else {
                let most = config.max_connections_per_peer;
                let message = format!("this address has {most} open connections already; close some first");
                let error =
                    ApiError::new(&ErrorCode::TOO_MANY_CONNECTIONS, message).retry_after(REFUSED_WAIT_S);
                connection::refuse(stream, error, &refusals);
                continue;
            };
            let (socket, peer) = connection::open(stream, config.write_timeout);
            let connection =
                server.serve_connection(TokioIo::new(socket), TowerToHyperService::new(router.clone()));
            let connection = graceful.watch(connection);
            tokio::spawn(async move {
                tokio::select! {
                    ended = connection => if let Err(error) = ended {
                        tracing::debug!(%error, "connection ended");
                    },
                    () = peer.gone() => tracing::debug!("the client has gone"),
                }
                peer.close().await;
                drop((permit, held));
            });
        }
        let ended = async {
            graceful.shutdown().await;
            app.tasks.ended().await;
        };
        if tokio::time::timeout(config.shutdown_grace, ended).await.is_err() {
            tracing::warn!("requests or video tasks in progress were abandoned");
        }
        let unfinished = app.tasks.stop().await;
        for task in &unfinished {
            tracing::warn!(task, "ended as failed: the gateway stopped");
        }
        unfinished
    }
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits).acquire_owned().await.map_err(io::Error::other)?;
    loop {
        let (stream, address) = match listener.accept().await {
            // A client that left the queue must not delay the next one.
            Err(error) if matches!(error.kind(), ConnectionAborted | ConnectionReset) => continue,
            accepted => accepted?,
        };
        // Without it, every event of a stream may wait 40 ms for the acknowledgement of the previous one. Fails if the
        // client has gone, which the connection then detects.
        _ = stream.set_nodelay(true);
        return Ok((stream, address, permit));
    }
}
