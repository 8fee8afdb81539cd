//! Options of a client and of a call, from what JavaScript gave. Times in milliseconds; what is missing has the core's
//! default.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gatewright::{ClientBuilder, Error, time_of_seconds};
use napi_derive::napi;

use crate::callbacks::{Callbacks, JsApiKey, JsMiddleware, Stages};
use crate::error::misconfigured;

/// Options of a client. Lists of pairs are flat: name, value, name, value.
#[napi(object, object_to_js = false)]
pub struct ClientOptions {
    /// Bare host of the gateway.
    pub base_url: Option<String>,
    /// Bearer token.
    pub api_key: Option<String>,
    /// Whether the callback `apiKey` gives the token.
    pub asks_for_key: Option<bool>,
    /// Bounds a call as a whole.
    pub timeout_ms: Option<f64>,
    /// Bounds the making of a connection.
    pub connect_timeout_ms: Option<f64>,
    /// Bounds the time until the head of an answer.
    pub first_byte_timeout_ms: Option<f64>,
    /// Bounds the silence within an answer.
    pub idle_timeout_ms: Option<f64>,
    /// Bounds the time without an event of a stream.
    pub event_timeout_ms: Option<f64>,
    /// Attempts after the first one.
    pub max_retries: Option<f64>,
    /// Bounds the body of an answer, in bytes.
    pub max_body_bytes: Option<f64>,
    /// Most connections in use at a time.
    pub max_connections: Option<f64>,
    /// Bounds the wait for one of them.
    pub pool_timeout_ms: Option<f64>,
    /// Most connections kept for later.
    pub max_idle_connections: Option<f64>,
    /// Bounds how long they are kept.
    pub idle_connection_timeout_ms: Option<f64>,
    /// URL of a proxy for everything; empty for none, whatever the environment says.
    pub proxy: Option<String>,
    /// PEM file of further roots to trust.
    pub ca_bundle: Option<String>,
    /// PEM file of the client's own chain and key.
    pub client_certificate: Option<String>,
    /// Headers of every request.
    pub default_headers: Option<Vec<String>>,
    /// Query parameters of every request.
    pub default_query: Option<Vec<String>>,
    /// Middlewares, outermost first.
    pub middleware: Option<Vec<Stages>>,
    /// Whether requests for models of the catalog are checked before they are sent.
    pub validate: Option<bool>,
    /// What the client calls itself.
    pub user_agent: String,
}

impl ClientOptions {
    /// The client these options describe. `callbacks`: what middlewares and a key's function are called through.
    pub(crate) fn build(self, callbacks: Option<Callbacks>) -> Result<gatewright::Client, Error> {
        let mut options = gatewright::Client::builder().user_agent(self.user_agent);
        if let Some(callbacks) = callbacks.map(Arc::new) {
            if self.asks_for_key == Some(true) {
                options = options.api_key_provider(Arc::new(JsApiKey(Arc::clone(&callbacks))));
            }
            for (index, stages) in (0..).zip(self.middleware.unwrap_or_default()) {
                let callbacks = Arc::clone(&callbacks);
                options = options.middleware(Arc::new(JsMiddleware { callbacks, index, stages }));
            }
        }
        options = with(options, self.base_url, ClientBuilder::base_url);
        options = with(options, self.api_key, ClientBuilder::api_key);
        options = with(options, self.ca_bundle, ClientBuilder::ca_bundle);
        options = with(options, self.client_certificate, ClientBuilder::client_certificate);
        options = with(options, self.validate, ClientBuilder::validate);
        options = with(options, self.default_headers.map(pairs), ClientBuilder::default_headers);
        options = with(options, self.default_query.map(pairs), ClientBuilder::default_query);
        options =
            with(
                options,
                self.proxy,
                |options, url: String| {
                    if url.is_empty() { options.no_proxy() } else { options.proxy(url) }
                },
            );
        for (name, given, set) in [
            ("timeoutMs", self.timeout_ms, ClientBuilder::timeout as fn(_, _) -> _),
            ("connectTimeoutMs", self.connect_timeout_ms, ClientBuilder::connect_timeout),
            ("firstByteTimeoutMs", self.first_byte_timeout_ms, ClientBuilder::first_byte_timeout),
            ("idleTimeoutMs", self.idle_timeout_ms, ClientBuilder::idle_timeout),
            ("eventTimeoutMs", self.event_timeout_ms, ClientBuilder::event_timeout),
            ("poolTimeoutMs", self.pool_timeout_ms, ClientBuilder::pool_timeout),
            (
                "idleConnectionTimeoutMs",
                self.idle_connection_timeout_ms,
                ClientBuilder::idle_connection_timeout,
            ),
        ] {
            options = with(options, duration(name, given)?, set);
        }
        for (name, given, set) in [
            ("maxConnections", self.max_connections, ClientBuilder::max_connections as fn(_, _) -> _),
            ("maxIdleConnections", self.max_idle_connections, ClientBuilder::max_idle_connections),
            ("maxBodyBytes", self.max_body_bytes, ClientBuilder::max_body_bytes),
        ] {
            options = with(options, count(name, given)?.map(|count| count as usize), set);
        }
        options = with(options, count("maxRetries", self.max_retries)?, ClientBuilder::max_retries);
        options.build()
    }
}

/// The builder with a value set where there is one.
fn with<T>(
    builder: ClientBuilder,
    value: Option<T>,
    set: impl FnOnce(ClientBuilder, T) -> ClientBuilder,
) -> ClientBuilder {
    match value {
        Some(value) => set(builder, value),
        None => builder,
    }
}

/// Options of one call, or of all calls of a client.
#[napi(object, object_to_js = false)]
pub struct RequestOptions {
    /// Bounds the call as a whole.
    pub timeout_ms: Option<f64>,
    /// Bounds the time until the head of the answer.
    pub first_byte_timeout_ms: Option<f64>,
    /// Bounds the silence within the answer.
    pub idle_timeout_ms: Option<f64>,
    /// Bounds the time without an event.
    pub event_timeout_ms: Option<f64>,
    /// Attempts after the first one.
    pub max_retries: Option<f64>,
    /// Headers beside the client's own.
    pub headers: Option<Vec<String>>,
    /// Query parameters that the operation does not know.
    pub query: Option<Vec<String>>,
    /// JSON object of members added to the body.
    pub body: Option<String>,
    /// The key that makes attempts one and the same.
    pub idempotency_key: Option<String>,
    /// Whether the request is checked before it is sent.
    pub validate: Option<bool>,
}

impl RequestOptions {
    pub(crate) fn into_core(self) -> Result<gatewright::RequestOptions, Error> {
        let extra_body = self
            .body
            .map(|body| {
                serde_json::from_str(&body)
                    .map_err(|error| misconfigured(format!("extraBody is no JSON object: {error}")))
            })
            .transpose()?;
        Ok(gatewright::RequestOptions {
            timeout: duration("timeoutMs", self.timeout_ms)?,
            first_byte_timeout: duration("firstByteTimeoutMs", self.first_byte_timeout_ms)?,
            idle_timeout: duration("idleTimeoutMs", self.idle_timeout_ms)?,
            event_timeout: duration("eventTimeoutMs", self.event_timeout_ms)?,
            max_retries: count("maxRetries", self.max_retries)?,
            extra_headers: self.headers.map(pairs).unwrap_or_default(),
            extra_query: self.query.map(pairs).unwrap_or_default(),
            extra_body,
            idempotency_key: self.idempotency_key,
            validate: self.validate,
        })
    }
}

/// One call. Lists of pairs are flat: name, value, name, value.
#[napi(object, object_to_js = false)]
pub struct Call {
    /// Id of the operation.
    pub operation: String,
    /// Path parameters.
    pub path: Vec<String>,
    /// Query parameters.
    pub query: Vec<String>,
    /// Header parameters.
    pub headers: Vec<String>,
    /// JSON document.
    pub body: Option<String>,
    /// Options of this call.
    pub options: Option<RequestOptions>,
}

impl Call {
    pub(crate) fn into_core(self) -> Result<gatewright::Call, Error> {
        let operation = gatewright::operations::by_id(&self.operation)
            .ok_or_else(|| misconfigured(format!("no operation is called {}", self.operation)))?;
        let mut options = self.options.map(RequestOptions::into_core).transpose()?.unwrap_or_default();
        // An option of the same name as a parameter is the later word.
        options.extra_headers.splice(0..0, pairs(self.headers));
        Ok(gatewright::Call {
            operation,
            path: pairs(self.path),
            query: pairs(self.query),
            body: self.body.map(Bytes::from),
            options,
        })
    }
}

/// Pairs from a flat list.
pub(crate) fn pairs(flat: Vec<String>) -> Vec<(String, String)> {
    let mut words = flat.into_iter();
    std::iter::from_fn(|| Some((words.next()?, words.next()?))).collect()
}

/// A duration from the milliseconds JavaScript gave; infinity means no limit.
pub(crate) fn duration(name: &str, milliseconds: Option<f64>) -> Result<Option<Duration>, Error> {
    milliseconds
        .map(|value| {
            time_of_seconds(value / 1000.0).ok_or_else(|| {
                misconfigured(format!("{name} is a number of milliseconds above 0, not {value}"))
            })
        })
        .transpose()
}

/// A count from the number JavaScript gave, which may be anything.
fn count(name: &str, number: Option<f64>) -> Result<Option<u32>, Error> {
    number
        .map(|value| {
            let whole = value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range")]
            whole.then_some(value as u32).ok_or_else(|| {
                misconfigured(format!("{name}: {value} is no count; give a whole number from 0"))
            })
        })
        .transpose()
}
