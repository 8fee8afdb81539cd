//! The client: built once, cheap to clone, safe to share. Resources with a method per operation hang on it
//! (generated); the raw front under them is here.

mod builder;

use std::fmt;
use std::sync::Arc;

use crate::error::Error;
use crate::files::FileClient;
use crate::operation::Operation;
use crate::options::{Call, RequestOptions};
use crate::redact::Redactor;
use crate::response::RawResponse;
use crate::secret::Secrets;
use crate::stream::RawStream;
use crate::transport::{Transport, TypedCall};

pub use self::builder::{
    API_KEY_VARIABLE, BASE_URL_VARIABLE, ClientBuilder, DEFAULT_CONNECT_TIMEOUT, DEFAULT_EVENT_TIMEOUT,
    DEFAULT_IDLE_CONNECTION_TIMEOUT, DEFAULT_IDLE_TIMEOUT, DEFAULT_MAX_BODY_BYTES, DEFAULT_MAX_CONNECTIONS,
    DEFAULT_MAX_IDLE_CONNECTIONS, DEFAULT_POOL_TIMEOUT, DEFAULT_TIMEOUT,
};

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
    files: Arc<FileClient>,
    options: Arc<RequestOptions>,
}

impl Client {
    /// A builder; what it is not told comes from the environment, then from the defaults.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// A client as the environment says: [`BASE_URL_VARIABLE`] (default
    /// [`DEFAULT_BASE_URL`](crate::DEFAULT_BASE_URL)) and
    /// [`API_KEY_VARIABLE`]. Errors: as [`ClientBuilder::build`].
    pub fn from_env() -> Result<Self, Error> {
        Self::builder().build()
    }

    /// This client with other options for the calls made through it; it shares the connections. What `options`
    /// leaves open stays as it is.
    #[must_use]
    pub fn with_options(&self, options: RequestOptions) -> Self {
        let options = Arc::new(options.over(&self.options));
        Self { options, ..self.clone() }
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

    /// Knows the client's keys, for what is said of an answer's content.
    pub(crate) fn redactor(&self) -> Redactor {
        Secrets::known(self.transport.known_keys()).redactor()
    }

    pub(crate) fn files(&self) -> &FileClient {
        &self.files
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
