//! Sends notifications of finished videos (section 6): signed, and never to a private address.
//!
//! Signing and the delivery of failed tasks are ours: Standard Webhooks by [`gatewright::webhook`], any 2xx acknowledges.
//! Concurrent attempts (with one connection each) and name lookups are limited.

use std::error::Error as _;
use std::sync::OnceLock;
use std::time::Duration;

use gatewright::limits::Rules;
use gatewright::webhook::{ID_HEADER, SIGNATURE_HEADER, Secret, TIMESTAMP_HEADER};
use gatewright::{ErrorCode, limits};
use gatewright_store::Notice;
use gatewright_system::clock::unix_seconds;
use rustls::ClientConfig;
use url::Url;

use super::ssrf_guard::GuardedResolver;
use crate::wire::ApiError;

/// Timeout of one attempt, including the name lookup.
pub(super) const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);

/// Makes delivery attempts.
pub(super) struct Sender {
    /// The current secret first. Earlier ones also sign, until receivers know the current one.
    secrets: Vec<Secret>,
    allow_private: bool,
    /// Created at the first attempt: reading the system's roots takes some milliseconds.
    client: OnceLock<Result<reqwest::Client, String>>,
}

impl Sender {
    /// `allow_private`: see [`Config`](crate::Config).
    pub(super) fn new(secrets: Vec<Secret>, allow_private: bool) -> Self {
        Self { secrets, allow_private, client: OnceLock::new() }
    }

    /// Accepts or rejects the `webhook_url` of a request.
    pub(super) fn check(&self, url: &str) -> Result<(), ApiError> {
        let refuse = |why: String| {
            ApiError::new(&ErrorCode::INVALID_VALUE, format!("webhook_url {why}")).param("webhook_url")
        };
        limits::check_webhook_url(url, Rules::default().private_webhooks(self.allow_private))
            .map_err(refuse)?;
        Url::parse(url).map(drop).map_err(|error| refuse(format!("is not a URL: {error}")))
    }

    /// Posts a notification once. Errors: it is not acknowledged; without the URL, whose path and query may contain
    /// the receiver's secrets.
    pub(super) async fn attempt(&self, notice: &Notice) -> Result<(), String> {
        // Another process accepted it, perhaps under other rules; and an IP address as host is never looked up.
        let rules = Rules::default().private_webhooks(self.allow_private);
        limits::check_webhook_url(&notice.url, rules).map_err(|why| format!("the address {why}"))?;
        let (timestamp, body) = (unix_seconds(), notice.body.as_bytes());
        let signed = self.secrets.iter().map(|secret| secret.sign(&notice.id, timestamp, body));
        let signatures = signed.collect::<Vec<_>>().join(" ");
        let answer = self
            .client()?
            .post(&notice.url)
            .header("content-type", "application/json")
            .header(ID_HEADER, &notice.id)
            .header(TIMESTAMP_HEADER, timestamp)
            .header(SIGNATURE_HEADER, signatures)
            .body(notice.body.clone())
            .send()
            .await
            .map_err(reason)?;
        if answer.status().is_success() { Ok(()) } else { Err(format!("status {}", answer.status())) }
    }

    /// The shared HTTP client: connects only to vetted addresses, follows no redirects and keeps no connections.
    fn client(&self) -> Result<&reqwest::Client, String> {
        let make = || client_with(GuardedResolver::new(self.allow_private)?);
        self.client.get_or_init(make).as_ref().map_err(Clone::clone)
    }
}

fn client_with(names: GuardedResolver) -> Result<reqwest::Client, String> {
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

    use gatewright_system::random_bytes;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    fn sender(allow_private: bool) -> Sender {
        Sender::new(vec![Secret::from_bytes(random_bytes()).expect("a secret")], allow_private)
    }

    fn notice(url: &str) -> Notice {
        let text = str::to_owned;
        Notice { id: text("msg_1"), task: text("a"), owner: text("key"), url: text(url), body: text("{}") }
    }

    #[tokio::test]
    async fn name_resolving_to_an_internal_address_is_not_connected() {
        // Accepted by its form, as a name that changes its address after submission would be.
        let sender = sender(false);
        let names = GuardedResolver::with(false, |_| Ok(vec![([127, 0, 0, 1], 0).into()])).expect("threads");
        sender.client.set(client_with(names)).expect("none yet");
        let error = sender.attempt(&notice("https://inside.example.com/")).await.expect_err("inside");
        assert_eq!(error, "the host has no public address");
    }

    #[tokio::test]
    async fn urls_accepted_by_another_process_are_validated_again() {
        for url in ["http://example.com/", "https://127.0.0.1/", "https://[::1]/", "https://localhost/", "x"]
        {
            let error = sender(false).attempt(&notice(url)).await.expect_err(url);
            assert!(error.starts_with("the address "), "{url}: {error}");
        }
    }

    static LOOKED_UP: AtomicUsize = AtomicUsize::new(0);

    #[expect(clippy::unnecessary_wraps, reason = "the type of a look-up, which may fail")]
    fn this_machine(name: &str) -> io::Result<Vec<SocketAddr>> {
        assert_eq!(name, "receiver.example");
        LOOKED_UP.fetch_add(1, Ordering::SeqCst);
        Ok(vec![([127, 0, 0, 1], 0).into()])
    }

    #[tokio::test]
    async fn each_attempt_resolves_once_and_connects_to_the_vetted_address() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let deliver = |allow_private: bool, scheme: &str| {
            let sender = sender(allow_private);
            let names = GuardedResolver::with(allow_private, this_machine).expect("threads");
            sender.client.set(client_with(names)).expect("none yet");
            (sender, notice(&format!("{scheme}://receiver.example:{port}/")))
        };
        // No other resolver knows the name, so the connection must have used the vetted address.
        let (open, message) = deliver(true, "http");
        for attempt in 1..=3 {
            let receive = async {
                let (mut socket, _) = listener.accept().await.expect("a connection");
                let mut request = vec![0; 4096];
                let count = socket.read(&mut request).await.expect("a request");
                socket.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.expect("answered");
                String::from_utf8_lossy(&request[..count]).to_ascii_lowercase()
            };
            let (sent, request) = tokio::join!(open.attempt(&message), receive);
            sent.expect("delivered");
            assert!(request.contains(&format!("host: receiver.example:{port}")), "{request}");
            assert_eq!(LOOKED_UP.load(Ordering::SeqCst), attempt);
        }
        let (vetted, message) = deliver(false, "https");
        let error = vetted.attempt(&message).await.expect_err("inside");
        assert_eq!(error, "the host has no public address");
        let nobody = tokio::time::timeout(Duration::from_millis(100), listener.accept()).await;
        assert!(nobody.is_err(), "somebody connected");
    }

    /// A receiver may have certificates for many names: the client hello must name the right one.
    #[tokio::test]
    async fn client_hello_names_the_receiver() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let sender = sender(true);
        let names = GuardedResolver::with(true, |_| Ok(vec![([127, 0, 0, 1], 0).into()])).expect("threads");
        sender.client.set(client_with(names)).expect("none yet");
        let message = notice(&format!("https://receiver.example:{port}/"));
        let receive = async {
            let (mut socket, _) = listener.accept().await.expect("a connection");
            let mut acceptor = rustls::server::Acceptor::default();
            loop {
                let mut bytes = [0; 4096];
                let count = socket.read(&mut bytes).await.expect("a greeting");
                assert!(count > 0, "it ended");
                acceptor.read_tls(&mut &bytes[..count]).expect("room");
                if let Some(accepted) = acceptor.accept().map_err(|(error, _)| error).expect("a greeting") {
                    break accepted.client_hello().server_name().map(str::to_owned);
                }
            }
        };
        let (sent, name) = tokio::join!(sender.attempt(&message), receive);
        assert_eq!(name.as_deref(), Some("receiver.example"));
        sent.expect_err("it showed no certificate");
    }
}
