//! The client: built once, cheap to clone, safe to share. Resources with a method per operation hang on it
//! (generated); the raw front under them is here.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::base_url::{BaseUrl, DEFAULT_BASE_URL};
use crate::error::{Error, ErrorKind};
use crate::operation::Operation;
use crate::options::{Call, RequestOptions};
use crate::response::RawResponse;
use crate::retry::DEFAULT_MAX_RETRIES;
use crate::secret::ApiKey;
use crate::stream::RawStream;
use crate::transport::{Settings, Transport, TypedCall};

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

/// A client of one gateway, with one key and one pool of connections. Clones share them.
///
/// ```no_run
/// # async fn example() -> Result<(), gatewright::Error> {
/// let client = gatewright::Client::from_env()?;
/// for model in &client.models().list().await?.data {
///     println!("{}", model.id);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    transport: Arc<Transport>,
    options: Arc<RequestOptions>,
}

impl Client {
    /// A builder; what it is not told comes from the environment, then from the defaults.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// A client as the environment says: [`BASE_URL_VARIABLE`] (default [`DEFAULT_BASE_URL`]) and
    /// [`API_KEY_VARIABLE`]. Errors: as [`ClientBuilder::build`].
    pub fn from_env() -> Result<Self, Error> {
        Self::builder().build()
    }

    /// This client with other options for the calls made through it; it shares the connections. What `options`
    /// leaves open stays as it is.
    #[must_use]
    pub fn with_options(&self, options: RequestOptions) -> Self {
        let options = Arc::new(options.over(&self.options));
        Self { transport: Arc::clone(&self.transport), options }
    }

    /// The gateway's address, without a trailing slash.
    pub fn base_url(&self) -> &str {
        self.transport.base().as_str()
    }

    /// Sends a call and reads its answer whole. Where the operation's body has a streaming switch it is off.
    ///
    /// Errors: every kind but StreamTruncated, Stream and TaskFailed.
    pub async fn call(&self, mut call: Call) -> Result<RawResponse, Error> {
        call.options = call.options.over(&self.options);
        self.transport.call(call).await
    }

    /// Sends a call and opens its answer as a stream. Where the operation's body has a streaming switch it is on.
    ///
    /// Errors: as [`Client::call`]; those of the stream itself come from [`RawStream::next_batch`].
    pub async fn open(&self, mut call: Call) -> Result<RawStream, Error> {
        call.options = call.options.over(&self.options);
        self.transport.open(call).await
    }

    /// A call through the generated client, for the generated resources.
    pub(crate) fn typed_call(
        &self,
        operation: &'static Operation,
        path: &[(&str, &str)],
    ) -> Result<TypedCall, Error> {
        TypedCall::new(self, operation, path)
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    pub(crate) fn options(&self) -> &RequestOptions {
        &self.options
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("transport", &self.transport).finish_non_exhaustive()
    }
}

/// Builds a [`Client`].
#[derive(Clone, Default)]
#[must_use]
pub struct ClientBuilder {
    base_url: Option<String>,
    api_key: Option<String>,
    timeout: Option<Duration>,
    connect_timeout: Option<Duration>,
    idle_timeout: Option<Duration>,
    event_timeout: Option<Duration>,
    max_retries: Option<u32>,
    max_body_bytes: Option<usize>,
    validate: bool,
    user_agent: Option<String>,
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

    /// Total deadline of a call over all its attempts and pauses; of a stream, until its head has arrived. Default
    /// [`DEFAULT_TIMEOUT`].
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Time to connect, per attempt. Default [`DEFAULT_CONNECT_TIMEOUT`].
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = Some(timeout);
        self
    }

    /// Time without a byte of an answer that has begun. Default [`DEFAULT_IDLE_TIMEOUT`].
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

    /// Bound on the body of an answer, in bytes. Default [`DEFAULT_MAX_BODY_BYTES`].
    pub fn max_body_bytes(mut self, bytes: usize) -> Self {
        self.max_body_bytes = Some(bytes);
        self
    }

    /// Whether requests for models of the catalog are checked against their limits before they are sent. Off by
    /// default; requests for other models are never checked.
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
    /// Errors (Configuration): the base URL cannot be read, the key is missing or cannot be sent.
    pub fn build(self) -> Result<Client, Error> {
        let base = self.base_url.or_else(|| variable(BASE_URL_VARIABLE));
        let base = BaseUrl::parse(base.as_deref().unwrap_or(DEFAULT_BASE_URL))?;
        let key = self.api_key.or_else(|| variable(API_KEY_VARIABLE)).ok_or_else(|| {
            let message = format!("there is no API key: set {API_KEY_VARIABLE} or give one");
            Error::new(ErrorKind::Configuration, message)
        })?;
        let settings = Settings {
            timeout: self.timeout.unwrap_or(DEFAULT_TIMEOUT),
            connect_timeout: self.connect_timeout.unwrap_or(DEFAULT_CONNECT_TIMEOUT),
            idle_timeout: self.idle_timeout.unwrap_or(DEFAULT_IDLE_TIMEOUT),
            event_timeout: self.event_timeout.unwrap_or(DEFAULT_EVENT_TIMEOUT),
            max_retries: self.max_retries.unwrap_or(DEFAULT_MAX_RETRIES),
            max_body_bytes: self.max_body_bytes.unwrap_or(DEFAULT_MAX_BODY_BYTES),
            validate: self.validate,
            user_agent: self
                .user_agent
                .unwrap_or_else(|| concat!("gatewright/", env!("CARGO_PKG_VERSION")).to_owned()),
        };
        let transport = Arc::new(Transport::new(base, ApiKey::new(&key)?, settings)?);
        Ok(Client { transport, options: Arc::default() })
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

/// A variable of the environment; an empty one counts as unset.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}
