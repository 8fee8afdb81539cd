//! Video completion notifications (section 6): signed, tried again, and never sent to an address inside.
//!
//! Signing, retries and the delivery of failed tasks are ours: Standard Webhooks by [`gatewright::webhook`],
//! [`ATTEMPTS`] attempts, any 2xx acknowledges.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use gatewright::limits::Rules;
use gatewright::webhook::{ID_HEADER, SIGNATURE_HEADER, Secret, TIMESTAMP_HEADER};
use gatewright::{ErrorCode, limits};
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
    let refuse = |why: String| {
        ApiError::new(&ErrorCode::INVALID_VALUE, format!("webhook_url {why}")).param("webhook_url")
    };
    let allow_private = config.allow_private_webhooks;
    limits::check_webhook_url(url, Rules::default().private_webhooks(allow_private)).map_err(refuse)?;
    let url = Url::parse(url).map_err(|error| refuse(format!("is not a URL: {error}")))?;
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
            found.into_iter().filter(|found| self.allow_private || limits::is_public(found.ip())).collect();
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
