//! Builds a client from its options. `spec/options.json` describes the options and their defaults; the setters are
//! generated.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::Client;
use super::generated::builder::ClientBuilder;
use crate::transport::base_url::BaseUrl;
use crate::transport::clock::SystemClock;
use crate::transport::connecting::{Connecting, Proxy, ProxyOption, ProxyUrl};
use crate::transport::exchange::{Settings, Transport, check_default_headers};
use crate::transport::generated::options::{
    API_KEY_VARIABLE, BASE_URL_VARIABLE, CA_BUNDLE_VARIABLE, DEFAULT_BASE_URL, RequestOptions,
};
use crate::transport::log;
use crate::transport::middleware::Middleware;
use crate::transport::secret::{ApiKeyProvider, KeySource, KnownKeys, read_key};
use crate::transport::tls::Tls;
use crate::wire::error::{Error, ErrorKind};
use crate::wire::panics::may_panic_on_purpose;

impl ClientBuilder {
    /// Builds the client. Opens no connection.
    ///
    /// Errors (Configuration): the base URL or the proxy cannot be parsed; the key is missing, given twice or cannot be
    /// sent; a certificate file cannot be read; a header cannot be sent; `max_connections` is 0.
    ///
    /// ```
    /// use gatewright::{Client, ErrorKind};
    ///
    /// let client = Client::builder().base_url("https://gateway.example").api_key("my-key").build()?;
    /// let error = Client::builder().base_url("no URL").api_key("my-key").build().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Configuration);
    /// # Ok::<(), gatewright::Error>(())
    /// ```
    pub fn build(self) -> Result<Client, Error> {
        self.build_saying(", or pass one to the builder: `.api_key(…)`")
    }

    /// Like [`build`](Self::build), for front ends whose users don't call a builder. way: how users set a key in
    /// their language. If there is no key, the error message ends with it, after "set GATEWRIGHT_API_KEY".
    #[doc(hidden)]
    pub fn build_saying(self, way: &str) -> Result<Client, Error> {
        may_panic_on_purpose!(Build);
        let settled = self.settled();
        let base = self.base_url.or_else(|| variable(BASE_URL_VARIABLE));
        let base = BaseUrl::parse(base.as_deref().unwrap_or(DEFAULT_BASE_URL))?;
        let key = key_source(self.api_key, self.api_key_provider, way)?;
        check_default_headers(&self.default_headers)?;
        let ca_bundle = self.ca_bundle.or_else(|| variable(CA_BUNDLE_VARIABLE).map(PathBuf::from));
        let connecting = Connecting {
            connect_timeout: settled.connect_timeout,
            max_idle_connections: settled.max_idle_connections,
            idle_connection_timeout: settled.idle_connection_timeout,
            proxy: match self.proxy {
                ProxyOption::Environment => Proxy::Environment,
                ProxyOption::Direct => Proxy::Direct,
                ProxyOption::Through(url) => Proxy::Through(ProxyUrl::parse(&url)?),
            },
            tls: Tls::new(ca_bundle.as_deref(), self.client_certificate)?,
        };
        let known_keys = Arc::new(KnownKeys::default());
        if let KeySource::Fixed(key) = &key {
            known_keys.remember(key);
        }
        let mut middleware = self.middleware;
        // Innermost, so that the log shows what is sent.
        middleware.extend(log::from_environment(&known_keys).map(|log| Arc::new(log) as Arc<dyn Middleware>));
        let settings = Settings {
            settled,
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
        Ok(Client { transport, downloads: Arc::default(), options: Arc::new(options) })
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

fn key_source(
    key: Option<String>,
    provider: Option<Arc<dyn ApiKeyProvider>>,
    way: &str,
) -> Result<KeySource, Error> {
    let key = match (key, provider) {
        (Some(_), Some(_)) => {
            let message = "both an API key and an API key provider are set: set only one";
            return Err(Error::new(ErrorKind::Configuration, message));
        }
        (None, Some(provider)) => return Ok(KeySource::Provider(provider)),
        (key, None) => key.or_else(|| variable(API_KEY_VARIABLE)),
    };
    let key = key.ok_or_else(|| {
        let message = format!("there is no API key: set {API_KEY_VARIABLE}{way}");
        Error::new(ErrorKind::Configuration, message)
    })?;
    read_key(&key).map(KeySource::Fixed)
}

/// An environment variable; an empty one counts as unset.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}
