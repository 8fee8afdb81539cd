//! Webhooks for finished videos (section 6): signed, retried, and never sent to a private address.
//!
//! Signing, retries and the delivery of failed tasks are ours: Standard Webhooks by [`gatewright::webhook`],
//! [`ATTEMPTS`] attempts, any 2xx acknowledges. Pending notifications, concurrent attempts (with one connection each)
//! and name lookups are limited.

use std::error::Error as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gatewright::limits::Rules;
use gatewright::webhook::{ID_HEADER, SIGNATURE_HEADER, Secret, TIMESTAMP_HEADER};
use gatewright::{ErrorCode, limits};
use rustls::ClientConfig;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use url::Url;
use uuid::Uuid;

use super::names::{MOST_ATTEMPTS, Names};
use crate::clock::unix_seconds;
use crate::random::random_bytes;
use crate::wire::ApiError;

/// Maximum number of attempts.
const ATTEMPTS: u32 = 5;
/// Timeout of one attempt, including the name lookup.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of pending notifications; beyond it, a task with a `webhook_url` is refused.
const MOST_PROMISED: usize = 1_000;
/// The `retry-after` of a refused task.
const RETRY_AFTER_S: u64 = 10;

/// A new random secret.
pub(crate) fn random_secret() -> Secret {
    Secret::from_bytes(random_bytes()).expect("32 bytes are enough")
}

/// Sends notifications.
pub(crate) struct Deliveries {
    secret: Secret,
    backoff: Duration,
    allow_private: bool,
    promised: Arc<Semaphore>,
    attempts: Semaphore,
    /// Created at the first attempt: reading the system's roots takes some milliseconds.
    client: OnceLock<Result<reqwest::Client, String>>,
}

/// A pending notification.
pub(crate) struct Delivery {
    deliveries: Arc<Deliveries>,
    url: Url,
    _promise: OwnedSemaphorePermit,
}

impl Deliveries {
    /// `backoff`: pause before the second attempt. `allow_private`: see [`Config`](crate::Config).
    pub(crate) fn new(secret: Secret, backoff: Duration, allow_private: bool) -> Self {
        Self {
            secret,
            backoff,
            allow_private,
            promised: Arc::new(Semaphore::new(MOST_PROMISED)),
            attempts: Semaphore::new(MOST_ATTEMPTS),
            client: OnceLock::new(),
        }
    }

    /// Accepts or refuses the `webhook_url` of a request.
    pub(crate) fn accept(self: &Arc<Self>, url: &str) -> Result<Delivery, ApiError> {
        let refuse = |why: String| {
            ApiError::new(&ErrorCode::INVALID_VALUE, format!("webhook_url {why}")).param("webhook_url")
        };
        limits::check_webhook_url(url, Rules::default().private_webhooks(self.allow_private))
            .map_err(refuse)?;
        let url = Url::parse(url).map_err(|error| refuse(format!("is not a URL: {error}")))?;
        let promise = Arc::clone(&self.promised).try_acquire_owned().map_err(|_| {
            let message = format!("{MOST_PROMISED} notifications are pending already");
            ApiError::new(&ErrorCode::SERVER_IS_OVERLOADED, message).retry_after(RETRY_AFTER_S)
        })?;
        Ok(Delivery { deliveries: Arc::clone(self), url, _promise: promise })
    }

    /// The shared HTTP client: connects only to vetted addresses, follows no redirects and keeps no connections.
    fn client(&self) -> Result<&reqwest::Client, String> {
        let make = || client_with(Names::new(self.allow_private)?);
        self.client.get_or_init(make).as_ref().map_err(Clone::clone)
    }
}

impl Delivery {
    /// Posts the task object (2.7) until it is acknowledged or all attempts are used up.
    pub(crate) async fn send(&self, task: &str, record: &Value) {
        let id = format!("msg_{}", Uuid::new_v4().simple());
        let body = record.to_string();
        let mut pause = self.deliveries.backoff;
        for attempt in 1..=ATTEMPTS {
            match self.attempt(&id, &body).await {
                Ok(()) => return tracing::debug!(task, attempt, "webhook delivered"),
                // Without the URL: its path and query may hold secrets of the receiver.
                Err(error) => tracing::warn!(task, attempt, error, "webhook not delivered"),
            }
            if attempt < ATTEMPTS {
                tokio::time::sleep(pause).await;
                pause = pause.saturating_mul(2);
            }
        }
    }

    async fn attempt(&self, id: &str, body: &str) -> Result<(), String> {
        let _turn = self.deliveries.attempts.acquire().await.map_err(|error| error.to_string())?;
        let timestamp = unix_seconds();
        let answer = self
            .deliveries
            .client()?
            .post(self.url.clone())
            .header("content-type", "application/json")
            .header(ID_HEADER, id)
            .header(TIMESTAMP_HEADER, timestamp)
            .header(SIGNATURE_HEADER, self.deliveries.secret.sign(id, timestamp, body.as_bytes()))
            .body(body.to_owned())
            .send()
            .await
            .map_err(reason)?;
        if answer.status().is_success() { Ok(()) } else { Err(format!("status {}", answer.status())) }
    }
}

fn client_with(names: Names) -> Result<reqwest::Client, String> {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls()?)
        .dns_resolver(names)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .pool_max_idle_per_host(0)
        .timeout(ATTEMPT_TIMEOUT)
        .build()
        .map_err(reason)
}

/// The root cause, without the URL.
pub(super) fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        reason = inner.to_string();
        source = inner.source();
    }
    reason
}

pub(super) fn tls() -> Result<ClientConfig, String> {
    let roots = gatewright_trust::roots(None).map_err(|error| error.to_string())?;
    Ok(gatewright_trust::client()?.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::SocketAddr;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    fn deliveries() -> Arc<Deliveries> {
        Arc::new(Deliveries::new(random_secret(), Duration::ZERO, false))
    }

    #[tokio::test]
    async fn a_name_that_resolves_inside_is_not_connected_to() {
        // Accepted by its looks, as a name that flips after submission would be.
        let mut delivery = deliveries().accept("https://example.com/").expect("a public name");
        delivery.url = Url::parse("https://localhost/").expect("a URL");
        let error = delivery.attempt("msg_1", "{}").await.expect_err("inside");
        assert_eq!(error, "the host has no public address");
    }

    static LOOKED_UP: AtomicUsize = AtomicUsize::new(0);

    #[expect(clippy::unnecessary_wraps, reason = "the type of a look-up, which may fail")]
    fn this_machine(name: &str) -> io::Result<Vec<SocketAddr>> {
        assert_eq!(name, "receiver.example");
        LOOKED_UP.fetch_add(1, Ordering::SeqCst);
        Ok(vec![([127, 0, 0, 1], 0).into()])
    }

    #[tokio::test]
    async fn each_attempt_looks_the_name_up_once_and_connects_to_what_was_vetted() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let deliver = |allow_private: bool, scheme: &str| {
            let deliveries = Deliveries::new(random_secret(), Duration::ZERO, allow_private);
            let names = Names::with(allow_private, this_machine).expect("threads");
            deliveries.client.set(client_with(names)).expect("none yet");
            Arc::new(deliveries).accept(&format!("{scheme}://receiver.example:{port}/")).expect("a name")
        };
        // No other resolver knows the name: who connects has used the address that was vetted.
        let open = deliver(true, "http");
        for attempt in 1..=3 {
            let receive = async {
                let (mut socket, _) = listener.accept().await.expect("a connection");
                let mut request = vec![0; 4096];
                let count = socket.read(&mut request).await.expect("a request");
                socket.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.expect("answered");
                String::from_utf8_lossy(&request[..count]).to_ascii_lowercase()
            };
            let (sent, request) = tokio::join!(open.attempt("msg_1", "{}"), receive);
            sent.expect("delivered");
            assert!(request.contains(&format!("host: receiver.example:{port}")), "{request}");
            assert_eq!(LOOKED_UP.load(Ordering::SeqCst), attempt);
        }
        let vetted = deliver(false, "https");
        let error = vetted.attempt("msg_1", "{}").await.expect_err("inside");
        assert_eq!(error, "the host has no public address");
        let nobody = tokio::time::timeout(Duration::from_millis(100), listener.accept()).await;
        assert!(nobody.is_err(), "somebody connected");
    }

    #[test]
    fn no_more_notifications_are_promised_than_can_be_kept_in_mind() {
        let deliveries = deliveries();
        let accept = || deliveries.accept("https://example.com/");
        let mut promised: Vec<Delivery> = (0..MOST_PROMISED).map_while(|_| accept().ok()).collect();
        assert_eq!(promised.len(), MOST_PROMISED);
        let refused = accept().err().expect("too many");
        let refused = refused.into_response(gatewright::operations::ErrorStyle::Standard);
        assert_eq!((refused.status().as_u16(), refused.headers().contains_key("retry-after")), (503, true));
        promised.pop();
        assert!(accept().is_ok());
    }
}
