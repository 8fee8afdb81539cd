//! The client: built once, cheap to clone, safe to share. Its resources, with a method per operation, are
//! generated; the raw interface below them is here.

mod builder;
mod generated;
mod pages;
mod typed;

#[cfg(feature = "schemars")]
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::stream::RawStream;
use crate::transport::exchange::Transport;
use crate::transport::file_client::FileClient;
use crate::transport::generated::options::RequestOptions;
#[cfg(feature = "schemars")]
use crate::transport::idempotency::key_of_round;
use crate::transport::options::Call;
use crate::transport::response::RawResponse;
use crate::transport::secret::Secrets;
use crate::wire::error::Error;
use crate::wire::redact::Redactor;

pub use self::generated::builder::ClientBuilder;
pub use self::generated::resources;
pub use self::typed::TypedCall;

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
    downloads: Arc<FileClient>,
    options: Arc<RequestOptions>,
}

impl Client {
    /// A builder. Options that are not set come from the environment, then from the defaults.
    ///
    /// ```no_run
    /// # fn example() -> Result<(), gatewright::Error> {
    /// use std::time::Duration;
    ///
    /// let client = gatewright::Client::builder()
    ///     .base_url("https://gateway.example")
    ///     .timeout(Duration::from_secs(60))
    ///     .max_retries(4)
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// A client configured from the environment: [`BASE_URL_VARIABLE`](crate::BASE_URL_VARIABLE) (default
    /// [`DEFAULT_BASE_URL`](crate::DEFAULT_BASE_URL)) and
    /// [`API_KEY_VARIABLE`](crate::API_KEY_VARIABLE). Errors: as [`ClientBuilder::build`].
    ///
    /// ```no_run
    /// let client = gatewright::Client::from_env()?;
    /// println!("{}", client.base_url());
    /// # Ok::<(), gatewright::Error>(())
    /// ```
    pub fn from_env() -> Result<Self, Error> {
        Self::builder().build()
    }

    /// A client with other options over the same connections. Options that are not set keep their values.
    ///
    /// ```no_run
    /// # fn example(client: gatewright::Client) {
    /// use gatewright::RequestOptions;
    ///
    /// let once = client.with_options(RequestOptions { max_retries: Some(0), ..RequestOptions::default() });
    /// # }
    /// ```
    #[must_use]
    pub fn with_options(&self, options: RequestOptions) -> Self {
        let options = Arc::new(options.over(&self.options));
        Self { options, ..self.clone() }
    }

    /// This client for a round of a loop, counted from 0.
    #[cfg(feature = "schemars")]
    pub(crate) fn for_round(&self, round: usize) -> Cow<'_, Self> {
        match &self.options.idempotency_key {
            Some(key) if round > 0 => {
                let idempotency_key = Some(key_of_round(key, round));
                Cow::Owned(self.with_options(RequestOptions { idempotency_key, ..RequestOptions::default() }))
            }
            _ => Cow::Borrowed(self),
        }
    }

    /// The gateway's address, without a trailing slash.
    ///
    /// ```
    /// let client = gatewright::Client::builder().base_url("https://gateway.example/").api_key("my-key").build()?;
    /// assert_eq!(client.base_url(), "https://gateway.example");
    /// # Ok::<(), gatewright::Error>(())
    /// ```
    pub fn base_url(&self) -> &str {
        self.transport.base().as_str()
    }

    /// Sends a call and reads the whole response. A streaming switch in the body is turned off.
    ///
    /// Errors: every kind but StreamTruncated, Stream and TaskFailed.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::{Call, operations};
    ///
    /// let body = r#"{"model": "model-sol", "messages": [{"role": "user", "content": "Say hello."}]}"#;
    /// let response = client.call(Call::new(&operations::CREATE_CHAT_COMPLETION).body(body)).await?;
    /// println!("{}", String::from_utf8_lossy(&response.body));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn call(&self, mut call: Call) -> Result<RawResponse, Error> {
        let options = std::mem::take(&mut call.options).over(&self.options);
        self.transport.call(call, &options).await
    }

    /// Sends a call and opens the response as a stream. A streaming switch in the body is turned on.
    ///
    /// Errors: as [`Client::call`]; errors within the stream come from [`RawStream::next_batch`].
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::{Call, operations};
    ///
    /// let body = r#"{"model": "model-sol", "messages": [{"role": "user", "content": "Say hello."}]}"#;
    /// let mut stream = client.open(Call::new(&operations::CREATE_CHAT_COMPLETION).body(body)).await?;
    /// while let Some(events) = stream.next_batch().await? {
    ///     events.iter().for_each(|event| println!("{}", event.data));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn open(&self, mut call: Call) -> Result<RawStream, Error> {
        let options = std::mem::take(&mut call.options).over(&self.options);
        self.transport.open(call, &options).await.map(RawStream::new)
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    /// Knows the client's keys, for messages about a response's content.
    pub(crate) fn redactor(&self) -> Redactor {
        Secrets::known(self.transport.known_keys()).redactor()
    }

    pub(crate) fn downloads(&self) -> &FileClient {
        &self.downloads
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
