//! The state that all requests of a gateway share: configuration, access control and stores.

use std::net::SocketAddr;
use std::sync::Arc;

use gatewright::webhook::Secret;
use http::{HeaderMap, header};

use crate::access::{ApiKey, Gatekeeper, random_key};
use crate::config::Config;
use crate::outgoing::{Deliveries, random_secret};
use crate::store::{Files, History, Replays, Tasks};
use crate::work::Workshop;

/// The state of a gateway, without its socket.
pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) key: ApiKey,
    pub(crate) gatekeeper: Gatekeeper,
    pub(crate) webhook_secret: Secret,
    pub(crate) deliveries: Arc<Deliveries>,
    pub(crate) replays: Arc<Replays>,
    pub(crate) files: Arc<Files>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) history: History,
    pub(crate) workshop: Workshop,
    /// The workers that draw images: an image takes a processor for longer than other work.
    pub(crate) studio: Workshop,
    address: SocketAddr,
}

impl App {
    /// `address`: the address that the gateway is bound to.
    pub(crate) fn new(config: Config, address: SocketAddr) -> Self {
        let webhook_secret = config.webhook_secret.clone().unwrap_or_else(random_secret);
        let deliveries =
            Deliveries::new(webhook_secret.clone(), config.webhook_backoff, config.allow_private_webhooks);
        let key = config.key.clone().unwrap_or_else(random_key);
        Self {
            gatekeeper: Gatekeeper::new(&key),
            key,
            webhook_secret,
            deliveries: Arc::new(deliveries),
            replays: Arc::default(),
            files: Arc::new(Files::new(config.max_file_bytes)),
            tasks: Arc::default(),
            history: History::default(),
            workshop: Workshop::default(),
            studio: Workshop::default(),
            config,
            address,
        }
    }

    /// Scheme, host and port for file URLs: as configured, else from the `Host` header.
    pub(crate) fn public_url(&self, headers: &HeaderMap) -> String {
        if let Some(public) = &self.config.public_url {
            return public.trim_end_matches('/').to_owned();
        }
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let authority = host.and_then(|host| host.parse::<http::uri::Authority>().ok());
        match authority.filter(|authority| !authority.as_str().contains('@')) {
            Some(authority) => format!("http://{authority}"),
            None => format!("http://{}", self.address),
        }
    }
}
