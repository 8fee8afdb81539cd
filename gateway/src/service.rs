//! The operations of the specification, each answered by its own module from the simulated provider.

use std::net::SocketAddr;
use std::sync::Arc;

use gatewright::operations::Operation;
use gatewright::webhook::Secret;
use http::{HeaderMap, header};

use crate::auth::{ApiKey, Gatekeeper};
use crate::call::{Call, Response};
use crate::config::Config;
use crate::error::ApiError;
use crate::files::Files;
use crate::generated::routes::Service;
use crate::idempotency::Answers;
use crate::responses::History;
use crate::simulator::budget::Budget;
use crate::videos::Tasks;
use crate::webhook::{self, Deliveries};
use crate::work::Workshop;
use crate::{chat, images, models, native, responses, videos};

/// The simulated provider and what it keeps between requests.
pub(crate) struct Provider {
    pub(crate) config: Config,
    pub(crate) key: ApiKey,
    pub(crate) gatekeeper: Gatekeeper,
    pub(crate) webhook_secret: Secret,
    pub(crate) deliveries: Arc<Deliveries>,
    pub(crate) answers: Arc<Answers>,
    pub(crate) files: Arc<Files>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) history: History,
    pub(crate) workshop: Workshop,
    /// Where images are drawn: each takes a processor for longer than other work does.
    pub(crate) studio: Workshop,
    address: SocketAddr,
}

impl Provider {
    /// `address`: what the gateway is bound to.
    pub(crate) fn new(config: Config, address: SocketAddr) -> Self {
        let webhook_secret = config.webhook_secret.clone().unwrap_or_else(webhook::random_secret);
        let deliveries =
            Deliveries::new(webhook_secret.clone(), config.webhook_backoff, config.allow_private_webhooks);
        let key = config.key.clone().unwrap_or_else(ApiKey::random);
        Self {
            gatekeeper: Gatekeeper::new(&key),
            key,
            webhook_secret,
            deliveries: Arc::new(deliveries),
            answers: Arc::default(),
            files: Arc::new(Files::new(config.max_file_bytes)),
            tasks: Arc::default(),
            history: History::default(),
            workshop: Workshop::default(),
            studio: Workshop::default(),
            config,
            address,
        }
    }

    /// Scheme, host and port for the addresses of files: the configured one, else what the client called.
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

/// An operation's answer, errors in the operation's own form.
fn finish(operation: &Operation, answer: Result<Response, ApiError>) -> Response {
    answer.unwrap_or_else(|error| error.into_response(operation.error_style))
}

/// An operation whose answer takes long work.
type Handler = fn(&Provider, &Call, &Budget) -> Result<Response, ApiError>;

/// The answer of such an operation.
async fn worked_out(provider: &Arc<Provider>, call: Call, handler: Handler) -> Response {
    let operation = call.operation;
    let worker = Arc::clone(provider);
    finish(operation, provider.workshop.work(move |budget| handler(&worker, &call, budget)).await)
}

impl Service for Arc<Provider> {
    async fn create_chat_completion(&self, call: Call) -> Response {
        worked_out(self, call, chat::create).await
    }

    async fn create_response(&self, call: Call) -> Response {
        worked_out(self, call, responses::create).await
    }

    async fn compact_response(&self, call: Call) -> Response {
        worked_out(self, call, responses::compact).await
    }

    async fn retrieve_response(&self, call: Call) -> Response {
        finish(call.operation, responses::retrieve(self, &call))
    }

    async fn delete_response(&self, call: Call) -> Response {
        finish(call.operation, responses::delete(self, &call))
    }

    async fn list_response_input_items(&self, call: Call) -> Response {
        worked_out(self, call, responses::list_input_items).await
    }

    async fn list_models(&self, _call: Call) -> Response {
        models::list()
    }

    async fn retrieve_model(&self, call: Call) -> Response {
        finish(call.operation, models::retrieve(&call))
    }

    async fn generate_content(&self, call: Call) -> Response {
        worked_out(self, call, native::generate).await
    }

    async fn stream_generate_content(&self, call: Call) -> Response {
        worked_out(self, call, native::stream).await
    }

    async fn count_tokens(&self, call: Call) -> Response {
        worked_out(self, call, native::count_tokens).await
    }

    async fn list_native_models(&self, call: Call) -> Response {
        finish(call.operation, models::list_native(&call))
    }

    async fn retrieve_native_model(&self, call: Call) -> Response {
        finish(call.operation, models::retrieve_native(&call))
    }

    async fn create_video(&self, call: Call) -> Response {
        finish(call.operation, videos::create(self, &call))
    }

    async fn retrieve_video(&self, call: Call) -> Response {
        finish(call.operation, videos::retrieve(self, &call))
    }

    async fn create_image(&self, call: Call) -> Response {
        finish(call.operation, images::create(self, &call).await)
    }
}
