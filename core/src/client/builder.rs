//! What a client can be told, and what holds when it is told nothing.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Client;
use crate::base_url::{BaseUrl, DEFAULT_BASE_URL};
use crate::clock::{Clock, SystemClock, bounded};
use crate::error::{Error, ErrorKind};
use crate::log;
use crate::middleware::Middleware;
use crate::options::RequestOptions;
use crate::panics::may_panic_on_purpose;
use crate::retry::DEFAULT_MAX_RETRIES;
use crate::secret::{ApiKey, ApiKeyProvider, KeySource, KnownKeys};
use crate::tls::{CA_BUNDLE_VARIABLE, Tls};
use crate::transport::{Connecting, Proxy, ProxyUrl, Settings, Transport, check_default_headers};

/// Environment variable with the gateway's address.
pub const BASE_URL_VARIABLE: &str = "GATEWRIGHT_BASE_URL";
/// Environment variable with the API key.
pub const API_KEY_VARIABLE: &str = "GATEWRIGHT_API_KEY";

/// Total deadline of a call over all its attempts, unless told otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(10);
/// Time to connect, unless told otherwise.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time without a byte of an answer that has begun, unless told otherwise.
pub const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_mins(2);
/// Time without an event of a stream, unless told otherwise: keep-alive comments do not count.
pub const DEFAULT_EVENT_TIMEOUT: Duration = Duration::from_mins(10);
/// Bound on the body of an answer, in bytes, unless told otherwise: ten large images in base64 fit.
pub const DEFAULT_MAX_BODY_BYTES: usize = 256 * 1024 * 1024;
/// Bound on the requests of a client that are under way at once, unless told otherwise.
pub const DEFAULT_MAX_CONNECTIONS: usize = 1000;
/// Time a request waits for its turn when so many are under way, unless told otherwise.
pub const DEFAULT_POOL_TIMEOUT: Duration = Duration::from_mins(1);
/// Bound on the connections kept open for later requests, unless told otherwise.
pub const DEFAULT_MAX_IDLE_CONNECTIONS: usize = 100;
/// Time an unused connection is kept open, unless told otherwise.
pub const DEFAULT_IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(90);

/// Builds a [`Client`].
#[derive(Clone, Default)]
#[must_use]
pub struct ClientBuilder {
    base_url: Option<String>,
    api_key: Option<String>,
    api_key_provider: Option<Arc<dyn ApiKeyProvider>>,
    timeout: Option<Duration>,
    connect_timeout: Option<Duration>,
    first_byte_timeout: Option<Duration>,
    idle_timeout: Option<Duration>,
    event_timeout: Option<Duration>,
    max_retries: Option<u32>,
    max_body_bytes: Option<usize>,
    max_connections: Option<usize>,
    pool_timeout: Option<Duration>,
    max_idle_connections: Option<usize>,
    idle_connection_timeout: Option<Duration>,
    proxy: ProxyOption,
    ca_bundle: Option<PathBuf>,
    client_certificate: Option<PathBuf>,
    default_headers: Vec<(String, String)>,
    default_query: Vec<(String, String)>,
    middleware: Vec<Arc<dyn Middleware>>,
    clock: Option<Arc<dyn Clock>>,
    telemetry: bool,
    validate: bool,
    user_agent: Option<String>,
}

/// What was said about a proxy; its address is read when the client is built.
#[derive(Clone, Default)]
enum ProxyOption {
    #[default]
    Environment,
    Direct,
    Through(String),
}

impl ClientBuilder {
    /// The gateway's address: its bare host; a trailing `/v1` or `/v1beta` is dropped. Default:
    /// [`BASE_URL_VARIABLE`], else [`DEFAULT_BASE_URL`].
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// The API key. Default: [`API_KEY_VARIABLE`].
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// Who to ask for the API key, once per call and once more where the gateway refuses it (401).
    pub fn api_key_provider(mut self, provider: Arc<dyn ApiKeyProvider>) -> Self {
        self.api_key_provider = Some(provider);
        self
    }

    /// Total deadline of a call over all its attempts and pauses; of a stream, until its head has arrived, and from
    /// then on the longest silence, unless `idle_timeout` is given. Default [`DEFAULT_TIMEOUT`].
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Time to connect, per attempt. Default [`DEFAULT_CONNECT_TIMEOUT`].
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = Some(timeout);
        self
    }

    /// Time until the head of the answer, per attempt: from its place in the pool on, connecting included. Default:
    /// as long as the call may take.
    pub fn first_byte_timeout(mut self, timeout: Duration) -> Self {
        self.first_byte_timeout = Some(timeout);
        self
    }

    /// Time without a byte of an answer that has begun. Default [`DEFAULT_IDLE_TIMEOUT`], or the `timeout` where that
    /// is shorter.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = Some(timeout);
        self
    }

    /// Time without an event of a stream; keep-alive comments do not count. Default [`DEFAULT_EVENT_TIMEOUT`].
    pub fn event_timeout(mut self, timeout: Duration) -> Self {
        self.event_timeout = Some(timeout);
        self
    }

    /// Tries after the first. Default [`DEFAULT_MAX_RETRIES`].
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.max_retries = Some(retries);
        self
    }

    /// Bound on the body of an answer, and on the memory of the document that a stream amounts to, in bytes. Default
    /// [`DEFAULT_MAX_BODY_BYTES`].
    pub fn max_body_bytes(mut self, bytes: usize) -> Self {
        self.max_body_bytes = Some(bytes);
        self
    }

    /// Bound on the requests under way at once, streams that are being read among them; over HTTP/1.1 each has a
    /// connection of its own. Default [`DEFAULT_MAX_CONNECTIONS`].
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = Some(connections);
        self
    }

    /// Time a request waits for its turn when `max_connections` are under way; then it fails with PoolTimeout. The
    /// call's deadline bounds it, too. Default [`DEFAULT_POOL_TIMEOUT`].
    pub fn pool_timeout(mut self, timeout: Duration) -> Self {
        self.pool_timeout = Some(timeout);
        self
    }

    /// Bound on the connections kept open for later requests; 0 keeps none. Default
    /// [`DEFAULT_MAX_IDLE_CONNECTIONS`].
    pub fn max_idle_connections(mut self, connections: usize) -> Self {
        self.max_idle_connections = Some(connections);
        self
    }

    /// Time an unused connection is kept open. Default [`DEFAULT_IDLE_CONNECTION_TIMEOUT`].
    pub fn idle_connection_timeout(mut self, timeout: Duration) -> Self {
        self.idle_connection_timeout = Some(timeout);
        self
    }

    /// A proxy for everything, with user and password in its address where it wants them: `http://`, `https://`,
    /// `socks5://` and the like. Default: as HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY say; a gateway on this
    /// machine (`localhost`, 127.0.0.0/8, `::1`) is then reached directly.
    pub fn proxy(mut self, url: impl Into<String>) -> Self {
        self.proxy = ProxyOption::Through(url.into());
        self
    }

    /// No proxy, whatever the environment says.
    pub fn no_proxy(mut self) -> Self {
        self.proxy = ProxyOption::Direct;
        self
    }

    /// A PEM file with certificate authorities to trust beside the platform's and the bundled ones. Default:
    /// [`CA_BUNDLE_VARIABLE`].
    pub fn ca_bundle(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca_bundle = Some(path.into());
        self
    }

    /// A PEM file with the certificate chain and the private key to show to servers that ask for them.
    pub fn client_certificate(mut self, path: impl Into<PathBuf>) -> Self {
        self.client_certificate = Some(path.into());
        self
    }

    /// Headers of every call, beside the client's own; one of the same name replaces it. The options of a call
    /// replace these in turn.
    pub fn default_headers<N: Into<String>, V: Into<String>>(
        mut self,
        headers: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        self.default_headers = headers.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        self
    }

    /// Query parameters of every call, beside the operation's own. Those in the options of a call replace the ones
    /// of the same name.
    pub fn default_query<N: Into<String>, V: Into<String>>(
        mut self,
        query: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        self.default_query = query.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        self
    }

    /// Adds code that runs around every attempt, inside of what was added before.
    pub fn middleware(mut self, middleware: Arc<dyn Middleware>) -> Self {
        self.middleware.push(middleware);
        self
    }

    /// Time and chance of the retry policy, for tests. Default [`SystemClock`].
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Whether the span of a call (crate `tracing`) carries OpenTelemetry's attributes for generative AI, for which
    /// bodies are looked into. Off by default.
    pub fn telemetry(mut self, telemetry: bool) -> Self {
        self.telemetry = telemetry;
        self
    }

    /// Whether requests for models of the catalog are checked before they are sent: against the rules of the
    /// specification, the limits of the model and the endpoint that serves it. Answers are checked for the members that
    /// 2.7 and 2.11 promise. Off by default. Never checked are requests for other models, and what
    /// [`crate::limits::check`] leaves to the gateway.
    pub fn validate(mut self, validate: bool) -> Self {
        self.validate = validate;
        self
    }

    /// What the client calls itself, for front ends. Default `gatewright/` and the version.
    pub fn user_agent(mut self, user_agent: impl Into<String>) -> Self {
        self.user_agent = Some(user_agent.into());
        self
    }

    /// Builds the client. Connects to nothing.
    ///
    /// Errors (Configuration): the base URL or the proxy cannot be read, the key is missing, given twice or cannot
    /// be sent, a certificate file cannot be read, a header cannot be sent, `max_connections` is 0.
    pub fn build(self) -> Result<Client, Error> {
        may_panic_on_purpose!(Build);
        let base = self.base_url.or_else(|| variable(BASE_URL_VARIABLE));
        let base = BaseUrl::parse(base.as_deref().unwrap_or(DEFAULT_BASE_URL))?;
        let key = key_source(self.api_key, self.api_key_provider)?;
        check_default_headers(&self.default_headers)?;
        let ca_bundle = self.ca_bundle.or_else(|| variable(CA_BUNDLE_VARIABLE).map(PathBuf::from));
        let time = |given: Option<Duration>, default| given.map_or(default, bounded);
        let connecting = Connecting {
            connect_timeout: time(self.connect_timeout, DEFAULT_CONNECT_TIMEOUT),
            max_idle_connections: self.max_idle_connections.unwrap_or(DEFAULT_MAX_IDLE_CONNECTIONS),
            idle_connection_timeout: time(self.idle_connection_timeout, DEFAULT_IDLE_CONNECTION_TIMEOUT),
            proxy: match self.proxy {
                ProxyOption::Environment => Proxy::Environment,
                ProxyOption::Direct => Proxy::Direct,
                ProxyOption::Through(url) => Proxy::Through(ProxyUrl::parse(&url)?),
            },
            tls: Tls::new(ca_bundle, self.client_certificate)?,
        };
        let known_keys = Arc::new(KnownKeys::default());
        if let KeySource::Fixed(key) = &key {
            known_keys.remember(key);
        }
        let mut middleware = self.middleware;
        // Innermost, where what is logged is what is sent.
        middleware.extend(log::from_environment(&known_keys).map(|log| Arc::new(log) as Arc<dyn Middleware>));
        let settings = Settings {
            timeout: time(self.timeout, DEFAULT_TIMEOUT),
            first_byte_timeout: self.first_byte_timeout.map(bounded),
            idle_timeout: self.idle_timeout.map(bounded),
            event_timeout: time(self.event_timeout, DEFAULT_EVENT_TIMEOUT),
            max_retries: self.max_retries.unwrap_or(DEFAULT_MAX_RETRIES),
            max_body_bytes: self.max_body_bytes.unwrap_or(DEFAULT_MAX_BODY_BYTES),
            max_connections: self.max_connections.unwrap_or(DEFAULT_MAX_CONNECTIONS),
            pool_timeout: time(self.pool_timeout, DEFAULT_POOL_TIMEOUT),
            validate: self.validate,
            user_agent: self
                .user_agent
                .unwrap_or_else(|| concat!("gatewright/", env!("CARGO_PKG_VERSION")).to_owned()),
            connecting,
            known_keys,
            middleware,
            clock: self.clock.unwrap_or_else(|| Arc::new(SystemClock)),
            telemetry: self.telemetry,
        };
        let transport = Arc::new(Transport::new(base, key, settings)?);
        let options = RequestOptions {
            extra_headers: self.default_headers,
            extra_query: self.default_query,
            ..RequestOptions::default()
        };
        Ok(Client { transport, files: Arc::default(), options: Arc::new(options) })
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("base_url", &self.base_url)
            .field("api_key", &self.api_key.as_ref().map(|_| "[redacted]"))
            .finish_non_exhaustive()
    }
}

fn key_source(key: Option<String>, provider: Option<Arc<dyn ApiKeyProvider>>) -> Result<KeySource, Error> {
    let key = match (key, provider) {
        (Some(_), Some(_)) => {
            let message = "there are an API key and a provider of one: give either";
            return Err(Error::new(ErrorKind::Configuration, message));
        }
        (None, Some(provider)) => return Ok(KeySource::Provider(provider)),
        (key, None) => key.or_else(|| variable(API_KEY_VARIABLE)),
    };
    let key = key.ok_or_else(|| {
        let message = format!("there is no API key: set {API_KEY_VARIABLE} or give one");
        Error::new(ErrorKind::Configuration, message)
    })?;
    ApiKey::new(&key).map(KeySource::Fixed)
}

/// A variable of the environment; an empty one counts as unset.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}
