//! Addresses only for health probes and metrics, with their own slots: probes get through even when all slots of the gateway
//! are taken.

#[cfg(test)]
use std::net::SocketAddr;
use std::sync::Arc;

use gatewright::ErrorCode;
use gatewright::operations::ErrorStyle;
use gatewright_config::Config;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::bind_error::BindError;
use super::client::Client;
use super::connection;
use super::connection_slots::ConnectionSlots;
use super::http1::{self, Service, Settings};
use super::listening::Listeners;
use super::{ACCEPT_PAUSE, operator};
use crate::app::App;
use crate::wire::{ApiError, Body, Response};

/// Maximum number of probe connections; beyond it, the connection that has been silent the longest is closed.
const MAX_PROBE_CONNECTIONS: usize = 64;

/// The sockets for probes.
pub(super) struct Probes {
    listening: Listeners,
}

impl Probes {
    /// `None` if the configuration has no address for probes.
    pub(super) async fn bind(config: &Config) -> Result<Option<Self>, BindError> {
        if config.health_listen.is_empty() {
            return Ok(None);
        }
        let listening = Listeners::at(config.health_listen.iter().map(|address| (address, false))).await?;
        Ok(Some(Self { listening }))
    }

    #[cfg(test)]
    pub(super) fn address(&self) -> SocketAddr {
        self.listening.address()
    }

    /// Answers probes until the set is dropped, even while the gateway drains: `/health/ready` reports that.
    pub(super) fn start(self, app: &Arc<App>, settings: &Settings) -> JoinSet<()> {
        let settings = Settings { draining: CancellationToken::new(), ..settings.clone() };
        let mut serving = JoinSet::new();
        serving.spawn(self.serve(Arc::clone(app), settings));
        serving
    }

    async fn serve(self, app: Arc<App>, settings: Settings) {
        for url in self.listening.urls() {
            tracing::info!(url, "listening for probes");
        }
        let places = ConnectionSlots::new(MAX_PROBE_CONNECTIONS);
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = self.listening.accept() => accepted,
                Some(_) = connections.join_next() => continue,
            };
            let Ok(accepted) = accepted.inspect_err(|error| tracing::warn!(%error, "probe not accepted"))
            else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let place = places.take().await;
            let (socket, peer) = connection::open(accepted.stream, app.config.write_timeout);
            let activity = Arc::clone(place.activity());
            let client = Client { presence: peer.presence().clone(), activity, is_tls: false };
            let (operator, settings) = (Operator(Arc::clone(&app)), settings.clone());
            connections.spawn(async move {
                tokio::select! {
                    biased;
                    ended = http1::serve(socket, operator, client, settings) => {
                        if let Err(error) = ended {
                            tracing::debug!(%error, "probe ended");
                        }
                    }
                    () = peer.gone() => {}
                    () = place.activity().evicted() => {}
                }
            });
        }
    }
}

/// Answers operator requests, and nothing else.
struct Operator(Arc<App>);

impl Service for Operator {
    async fn answer(&self, request: http::Request<Body>, _: Client) -> Response {
        let (mut head, _) = request.into_parts();
        let answered = operator::answer(&self.0, &mut head).unwrap_or_else(|| {
            let message = "this address only serves /health/live, /health/ready and /metrics";
            Err(ApiError::new(&ErrorCode::NOT_FOUND, message))
        });
        answered.unwrap_or_else(|error| error.into_response(ErrorStyle::Standard))
    }
}
