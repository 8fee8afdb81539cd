//! The server of counters that gateways share, and its address, which may contain a password.

use std::fmt;
use std::time::Duration;

use redis::{Client, ConnectionInfo, IntoConnectionInfo as _};
use url::Url;

/// A Redis or Valkey server with counters that several gateways share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterServer {
    /// Its address.
    pub url: CountersUrl,
    /// How long a request waits for it; after that, the gateway's own limits apply until it answers again. Default: 50 ms.
    pub timeout: Duration,
    /// How long the concurrent requests of a gateway that died still count. Default: 30 s.
    pub lease: Duration,
}

impl CounterServer {
    /// The server at this address, with the defaults.
    pub fn new(url: CountersUrl) -> Self {
        Self { url, timeout: Duration::from_millis(50), lease: Duration::from_secs(30) }
    }
}

/// The address of a Redis or Valkey server: `redis://user:password@host:6379/0`, or `rediss://…` with TLS. `Debug` and
/// `Display` show it without user and password.
#[derive(Clone, PartialEq, Eq)]
pub struct CountersUrl(Url);

/// A text that is not the address of a Redis or Valkey server. Explains what is wrong without quoting the
/// text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidCountersUrl(&'static str);

const FORM: InvalidCountersUrl =
    InvalidCountersUrl("must have the form redis://user:password@host:6379/0, or rediss://… for TLS");

impl CountersUrl {
    /// Parses an address. Errors: it has another format.
    pub fn new(text: &str) -> Result<Self, InvalidCountersUrl> {
        let url = Url::parse(text).map_err(|_| FORM)?;
        if !matches!(url.scheme(), "redis" | "rediss") || url.host().is_none() {
            return Err(FORM);
        }
        // A fragment would disable certificate checks.
        if url.query().is_some() || url.fragment().is_some() {
            return Err(InvalidCountersUrl("must not have a query or a fragment"));
        }
        let url = Self(url);
        url.info().map(|_| url)
    }

    fn info(&self) -> Result<ConnectionInfo, InvalidCountersUrl> {
        self.0.clone().into_connection_info().map_err(|_| FORM)
    }

    /// Does not connect yet. Errors: the address can't be used.
    pub fn client(&self) -> Result<Client, InvalidCountersUrl> {
        Client::open(self.info()?).map_err(|_| FORM)
    }

    /// Whether the connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.0.scheme() == "rediss"
    }

    /// The address with user and password.
    pub fn as_url(&self) -> &Url {
        &self.0
    }
}

impl fmt::Display for CountersUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}://{}", self.0.scheme(), self.0.host_str().unwrap_or_default())?;
        if let Some(port) = self.0.port() {
            write!(formatter, ":{port}")?;
        }
        formatter.write_str(self.0.path().trim_end_matches('/'))
    }
}

impl fmt::Debug for CountersUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_url_display_hides_credentials() {
        for (text, expected) in [
            ("redis://gateway:hush%21@cache.example:6380/2", "redis://cache.example:6380/2"),
            ("rediss://:hush@cache.example", "rediss://cache.example"),
            ("redis://[::1]:6379/", "redis://[::1]:6379"),
        ] {
            let url = CountersUrl::new(text).expect(text);
            assert_eq!((url.to_string(), format!("{url:?}")), (expected.to_owned(), expected.to_owned()));
        }
    }

    #[test]
    fn counters_url_error_does_not_quote_the_url() {
        for text in [
            "hush",
            "http://hush@host",
            "redis:///hush",
            "redis://:hush@host/database",
            "rediss://:hush@host/#insecure",
            "redis://:hush@host/?protocol=resp3",
            "redis+unix:///run/hush",
        ] {
            let error = CountersUrl::new(text).expect_err(text).to_string();
            assert!(!error.contains("hush"), "{error}");
        }
    }
}
