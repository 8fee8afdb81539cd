//! Video completion notifications (section 6): signed, tried again, and never sent to an address inside.
//!
//! Signing, retries and the delivery of failed tasks are ours: Standard Webhooks by [`gatewright::webhook`],
//! [`ATTEMPTS`] attempts, any 2xx acknowledges.

mod address;

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use gatewright::ErrorCode;
use gatewright::webhook::{ID_HEADER, SIGNATURE_HEADER, Secret, TIMESTAMP_HEADER};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use url::{Host, Url};
use uuid::Uuid;

use crate::auth::random_bytes;
use crate::config::Config;
use crate::error::ApiError;
use crate::files::unix_seconds;

/// How often a delivery is tried.
const ATTEMPTS: u32 = 5;
/// How long one attempt may take.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// A new random secret.
pub(crate) fn random_secret() -> Secret {
    Secret::from_bytes(random_bytes()).expect("32 bytes are enough")
}

/// A notification that was promised.
pub(crate) struct Delivery {
    url: Url,
    secret: Secret,
    backoff: Duration,
    allow_private: bool,
}

/// Takes a request's `webhook_url`, or says why not.
pub(crate) fn accept(url: &str, config: &Config, secret: &Secret) -> Result<Delivery, ApiError> {
    let refuse = |message: &str| ApiError::new(&ErrorCode::INVALID_VALUE, message).param("webhook_url");
    let allow_private = config.allow_private_webhooks;
    let url = Url::parse(url).map_err(|error| refuse(&format!("webhook_url is not a URL: {error}")))?;
    if url.scheme() != "https" && !(allow_private && url.scheme() == "http") {
        return Err(refuse("webhook_url must begin with https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refuse("webhook_url must not hold a user name or password"));
    }
    // The parser has already turned decimal, octal and hexadecimal hosts into addresses.
    let inside = match url.host() {
        None => return Err(refuse("webhook_url names no host")),
        Some(Host::Ipv4(address)) => !address::is_public(address.into()),
        Some(Host::Ipv6(address)) => !address::is_public(address.into()),
        Some(Host::Domain(name)) => address::is_local_name(name),
    };
    if inside && !allow_private {
        return Err(refuse("webhook_url leads to an address that is not public"));
    }
    Ok(Delivery { url, secret: secret.clone(), backoff: config.webhook_backoff, allow_private })
}

impl Delivery {
    /// Posts a task's record (2.7) until it is acknowledged or all attempts are used up.
    pub(crate) async fn send(&self, task: &str, record: &Value) {
        let id = format!("msg_{}", Uuid::new_v4().simple());
        let body = record.to_string();
        let mut pause = self.backoff;
        for attempt in 1..=ATTEMPTS {
            match self.attempt(&id, &body).await {
                Ok(()) => return tracing::debug!(task, attempt, "webhook delivered"),
                // Without the URL: its path and query may hold the receiver's secrets.
                Err(error) => tracing::warn!(task, attempt, error, "webhook not delivered"),
            }
            if attempt < ATTEMPTS {
                tokio::time::sleep(pause).await;
                pause = pause.saturating_mul(2);
            }
        }
    }

    async fn attempt(&self, id: &str, body: &str) -> Result<(), String> {
        // Resolved and vetted anew each time, and connected to what was vetted: a name that changes gets nowhere.
        let addresses = self.addresses().await?;
        let host = self.url.host_str().unwrap_or_default();
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls()?)
            .resolve_to_addrs(host, &addresses)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .timeout(ATTEMPT_TIMEOUT)
            .build()
            .map_err(|error| error.without_url().to_string())?;
        let timestamp = unix_seconds();
        let answer = client
            .post(self.url.clone())
            .header("content-type", "application/json")
            .header(ID_HEADER, id)
            .header(TIMESTAMP_HEADER, timestamp)
            .header(SIGNATURE_HEADER, self.secret.sign(id, timestamp, body.as_bytes()))
            .body(body.to_owned())
            .send()
            .await
            .map_err(|error| error.without_url().to_string())?;
        if answer.status().is_success() { Ok(()) } else { Err(format!("status {}", answer.status())) }
    }

    async fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let port = self.url.port_or_known_default().unwrap_or(443);
        let found: Vec<SocketAddr> = match self.url.host() {
            Some(Host::Ipv4(address)) => vec![(address, port).into()],
            Some(Host::Ipv6(address)) => vec![(address, port).into()],
            Some(Host::Domain(name)) => {
                let lookup =
                    tokio::time::timeout(ATTEMPT_TIMEOUT, tokio::net::lookup_host((name, port))).await;
                let found = lookup.map_err(|_| "the host's address was not found in time".to_owned())?;
                found.map_err(|error| format!("the host has no address: {error}"))?.collect()
            }
            None => Vec::new(),
        };
        let vetted: Vec<SocketAddr> =
            found.into_iter().filter(|found| self.allow_private || address::is_public(found.ip())).collect();
        if vetted.is_empty() { Err("the host has no public address".to_owned()) } else { Ok(vetted) }
    }
}

/// Shared by all deliveries: reading the system's roots takes some milliseconds.
static TLS: LazyLock<Result<ClientConfig, String>> = LazyLock::new(|| {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
});

fn tls() -> Result<ClientConfig, String> {
    TLS.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_that_lead_inside_are_refused() {
        let (config, secret) = (Config::default(), random_secret());
        for url in [
            "http://example.com/",
            "ftp://example.com/",
            "not a url",
            "https://user:pw@example.com/",
            "https://127.0.0.1/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://0177.0.0.1/",
            "https://localhost/",
            "https://gateway.localhost./",
            "https://10.1.2.3/",
            "https://169.254.169.254/latest/meta-data",
            "https://100.64.0.1/",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://[fd00::1]/",
            "https://[fe80::1]/",
            "https://[64:ff9b::7f00:1]/",
            "https://0.0.0.0/",
            "https://metadata.internal/",
        ] {
            assert!(accept(url, &config, &secret).is_err(), "{url}");
        }
        assert!(accept("https://example.com/hook?x=1", &config, &secret).is_ok());
        assert!(accept("https://[2606:4700::1111]/", &config, &secret).is_ok());
    }

    #[tokio::test]
    async fn a_name_that_resolves_inside_is_not_connected_to() {
        // Accepted by its looks, as a name that flips after submission would be.
        let url = Url::parse("https://localhost/").expect("a URL");
        let delivery =
            Delivery { url, secret: random_secret(), backoff: Duration::ZERO, allow_private: false };
        let error = delivery.attempt("msg_1", "{}").await.expect_err("inside");
        assert_eq!(error, "the host has no public address");
    }
}
