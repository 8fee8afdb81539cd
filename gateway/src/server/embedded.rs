//! A gateway without a socket.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use gatewright::webhook::Secret;
use gatewright_config::{Config, is_origin};
use tower::util::BoxCloneSyncService;
use tower::{Layer as _, ServiceExt as _};

use super::bind_error::BindError;
use super::client::Client;
use super::http1::Service;
use super::origins::cors;
use super::request::answer;
use super::shared_config;
use crate::access::{ApiKey, Data, RegistryError};
use crate::app::App;
use crate::batches;
use crate::counters::SharedCounters;
use crate::media;
use crate::wire::{Body, Response};

/// A gateway without a socket, for programs that call it in their own process.
#[derive(Clone)]
pub struct Embedded {
    app: Arc<App>,
    /// Answers CORS requests, if web pages of other origins may call the gateway, before they reach the
    /// gateway.
    origins: Option<BoxCloneSyncService<http::Request<Body>, Response, Infallible>>,
}

impl Embedded {
    /// Creates a gateway with this configuration; settings for connections have no effect. Needs a Tokio runtime.
    pub fn new(config: Config) -> Result<Self, BindError> {
        let embedded = Self::at(config, SocketAddr::from(([127, 0, 0, 1], 0)))?;
        embedded.follow();
        Ok(embedded)
    }

    pub(super) fn at(config: Config, address: SocketAddr) -> Result<Self, BindError> {
        if let Some(public) = config.public_url.as_ref().filter(|public| !is_origin(public)) {
            return Err(BindError::PublicUrl(public.clone()));
        }
        let cors = cors(&config.allowed_origins)?;
        let mut data = Data::open(config.data.as_deref(), config.store.as_ref(), config.pepper.as_ref())?;
        if let Some(bucket) = &config.files {
            data.keep_files_in(bucket)?;
        } else if config.store.is_some() {
            tracing::warn!(
                "gateways that share a store do not serve each other's files without a bucket: configure files"
            );
        }
        if config.store.is_some() && config.counters.is_none() {
            tracing::warn!(
                "without a counter server, each gateway enforces the limits of keys alone: configure counters"
            );
        }
        if config.store.is_some() && config.data.is_none() {
            tracing::warn!(
                "usage that is not in the database yet is lost if the gateway is killed: configure store.data, a folder of \
                    its own"
            );
        }
        let counters = config.counters.as_ref().map(SharedCounters::start).transpose()?.map(Arc::new);
        if config.shared_config.is_some() && !data.lasting {
            let message = "store.shared_config needs a store: configure store.url or store.data";
            return Err(BindError::SharedConfig(message.to_owned()));
        }
        let app = Arc::new(App::new(config, data, counters, address)?);
        media::start(&app);
        batches::start(&app);
        let origins = cors.map(|cors| {
            let app = Arc::clone(&app);
            let behind = move |request: http::Request<Body>| {
                let app = Arc::clone(&app);
                async move {
                    let client = request.extensions().get::<Client>().cloned().unwrap_or_default();
                    Ok(answer(&app, request, client).await)
                }
            };
            BoxCloneSyncService::new(cors.layer(tower::service_fn(behind)))
        });
        Ok(Self { app, origins })
    }

    /// Handles a request. The response always has a status; its body may be a stream.
    pub async fn answer(&self, request: http::Request<impl Into<Body>>) -> Response {
        Service::answer(self, request.map(Into::into), Client::default()).await
    }

    /// The key that requests must carry (section 5).
    pub fn key(&self) -> &ApiKey {
        &self.app.access.key
    }

    /// Loads the keys, so that they are valid from the first request on. If the store doesn't answer, loading is
    /// retried while requests are served.
    ///
    /// Errors: the parts of the store don't belong together, or the store rejects the gateway.
    pub(super) async fn load(&self) -> Result<(), BindError> {
        let checked = self.app.access.registry.check().await;
        let answers = checked.is_ok();
        match checked {
            Err(RegistryError::Data(invalid)) => return Err(invalid.into()),
            Err(error) => tracing::warn!("{error}: the keys will be loaded later"),
            Ok(()) => {
                // First, because it counts in the budgets of the keys.
                if let Err(error) = self.app.access.writer.write().await {
                    tracing::warn!("{error}: usage will be written later");
                }
                if let Err(error) = self.app.access.authenticator.refresh().await {
                    tracing::warn!("{error}: the keys will be loaded later");
                }
            }
        }
        shared_config::load(&self.app, answers).await
    }

    /// Follows changes of the shared configuration.
    pub(super) fn follow(&self) {
        shared_config::start(&self.app);
    }

    /// The configuration, with the upstreams and models in use.
    pub(super) fn config(&self) -> Config {
        let config = self.app.config.clone();
        let Some(shared) = &self.app.live.shared else { return config };
        let (upstreams, models) = shared
            .in_use()
            .map_or_else(Default::default, |in_use| (in_use.upstreams.clone(), in_use.models.clone()));
        Config { upstreams, models, ..config }
    }

    pub(super) fn shared(&self) -> Arc<App> {
        Arc::clone(&self.app)
    }

    pub(super) fn lasts(&self) -> bool {
        self.app.storage.lasting
    }

    pub(super) fn webhook_secret(&self) -> &Secret {
        &self.app.webhooks.secret
    }

    pub(super) fn webhook_secret_is_new(&self) -> bool {
        self.app.webhooks.secret_is_new
    }

    #[cfg(test)]
    pub(crate) fn app(&self) -> &Arc<App> {
        &self.app
    }
}

impl Service for Embedded {
    async fn answer(&self, mut request: http::Request<Body>, client: Client) -> Response {
        // Boxed: a connection has no room for them while it waits or sends.
        let Some(origins) = &self.origins else {
            return Box::pin(answer(&self.app, request, client)).await;
        };
        request.extensions_mut().insert(client);
        match Box::pin(origins.clone().oneshot(request)).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}
