//! The pool of connections to an upstream: HTTP/1.1 or HTTP/2 as the upstream chooses, over TLS or plain.

use std::error::Error;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tower::Service;

/// How long an unused connection stays open: less than what servers and balancers keep it for.
const IDLE: Duration = Duration::from_secs(50);
/// Maximum number of unused connections to an upstream that stay open: each takes some 20 KB, and a crowd of requests would
/// leave as many.
const MOST_IDLE: usize = 256;
/// Interval of keep-alive packets, so that a network that forgets quiet connections does not lose them.
const KEEP_ALIVE: Duration = Duration::from_mins(1);
/// Interval of pings of an HTTP/2 connection with requests, and how long each may take.
const PING: Duration = Duration::from_secs(30);
/// What clients learn of a failure of TLS.
const TLS_FAILED: &str = "TLS failed; the log of the gateway says why";
/// Maximum length of a reason, in characters.
const MOST_REASON: usize = 300;

pub(super) type Connections = Client<Connector, Full<Bytes>>;
type BoxError = Box<dyn Error + Send + Sync>;

/// Shared by all upstreams, sessions included.
static TLS: LazyLock<Result<ClientConfig, String>> = LazyLock::new(|| {
    let roots = gatewright_trust::roots(None).map_err(|error| error.to_string())?;
    Ok(gatewright_trust::client()?.with_root_certificates(roots).with_no_client_auth())
});

/// A pool without connections. Errors: TLS cannot be set up.
pub(super) fn open(connect_timeout: Duration) -> Result<Connections, String> {
    let tls = TLS.clone()?;
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEP_ALIVE));
    let https = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_all_versions()
        .wrap_connector(tcp);
    let connector = Connector { https, timeout: connect_timeout };
    Ok(Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(MOST_IDLE)
        .http2_keep_alive_interval(PING)
        .http2_keep_alive_timeout(PING)
        .http2_adaptive_window(true)
        .build(connector))
}

/// Connects within a time that includes the look-up of the name and the TLS handshake.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    https: HttpsConnector<HttpConnector>,
    timeout: Duration,
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.https.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (connecting, timeout) = (self.https.call(uri), self.timeout);
        Box::pin(async move {
            match tokio::time::timeout(timeout, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(format!("no connection within {timeout:?}").into()),
            }
        })
    }
}

/// Why there is no answer.
pub(super) struct Reason {
    /// The root cause, for operators.
    pub(super) whole: String,
    /// The same for clients, without what a certificate says: it names hosts.
    pub(super) told: String,
}

/// The root cause of a failure.
pub(super) fn reason(error: &(dyn Error + 'static)) -> Reason {
    let (mut cause, mut is_tls) = (error, is_of_tls(error));
    while let Some(inner) = cause.source() {
        is_tls |= is_of_tls(inner);
        cause = inner;
    }
    let text: String = cause.to_string().chars().take(MOST_REASON).collect();
    let whole = gatewright::visible::visible(&text).into_owned();
    let told = if is_tls { TLS_FAILED.to_owned() } else { whole.clone() };
    Reason { whole, told }
}

fn is_of_tls(error: &(dyn Error + 'static)) -> bool {
    // Errors of the system do not tell of an error within them by `source`.
    let within = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    error.is::<rustls::Error>() || within.is_some_and(|inner| is_of_tls(inner))
}
