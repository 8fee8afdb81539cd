//! Files at URLs that an upstream returns, outside its own origin: fetched only from public addresses, without a key
//! and without redirects.

use std::sync::OnceLock;
use std::time::Duration;

use gatewright::limits::{self, Rules};

use super::sender::{reason, tls};
use super::ssrf_guard::GuardedResolver;

/// Timeout for connecting, and then for the response's head.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Fetches files.
pub(crate) struct Fetcher {
    allow_private: bool,
    /// Created with the first file.
    client: OnceLock<Result<reqwest::Client, String>>,
}

impl Fetcher {
    /// `allow_private`: see [`Config`](crate::Config).
    pub(crate) fn new(allow_private: bool) -> Self {
        Self { allow_private, client: OnceLock::new() }
    }

    /// Opens a file and waits for the response's head. Errors: the address is not public, or there is no response; without
    /// the URL, which may contain secrets.
    pub(crate) async fn open(&self, url: &str) -> Result<http::Response<reqwest::Body>, String> {
        limits::check_webhook_url(url, Rules::default().private_webhooks(self.allow_private))
            .map_err(|why| format!("the address of the file {why}"))?;
        self.ask(url).await
    }

    async fn ask(&self, url: &str) -> Result<http::Response<reqwest::Body>, String> {
        let request = self.client()?.get(url).send();
        match tokio::time::timeout(2 * TIMEOUT, request).await {
            Ok(answer) => answer.map(Into::into).map_err(reason),
            Err(_) => Err("it did not start to respond in time".to_owned()),
        }
    }

    fn client(&self) -> Result<&reqwest::Client, String> {
        let make = || {
            reqwest::Client::builder()
                .tls_backend_preconfigured(tls()?)
                .dns_resolver(GuardedResolver::new(self.allow_private)?)
                .redirect(reqwest::redirect::Policy::none())
                .no_proxy()
                .pool_max_idle_per_host(0)
                .connect_timeout(TIMEOUT)
                .build()
                .map_err(reason)
        };
        self.client.get_or_init(make).as_ref().map_err(Clone::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn internal_addresses_are_not_fetched() {
        let fetcher = Fetcher::new(false);
        for url in [
            "https://127.0.0.1/a",
            "https://[::1]/a",
            "https://0x7f.1/a",
            "http://example.com/a",
            "file:///a",
        ] {
            let error = fetcher.open(url).await.expect_err(url);
            assert!(error.starts_with("the address of the file "), "{url}: {error}");
        }
        // Accepted by its form, as a name that resolves to an internal address would be.
        let error = fetcher.ask("https://localhost/a").await.expect_err("inside");
        assert_eq!(error, "the host has no public address");
    }
}
