//! The connections to an upstream: HTTP/1.1 or HTTP/2 as the upstream chooses, with or without TLS.

use std::error::Error;
use std::sync::LazyLock;
use std::time::Duration;

use gatewright_connect::{Pool, Settings};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode, Uri};
use rustls::ClientConfig;

/// How long an idle connection stays open: shorter than the idle timeouts of servers and load balancers.
const IDLE: Duration = Duration::from_secs(50);
/// Maximum number of idle connections to an upstream: a burst of requests would leave as many.
const MAX_IDLE: usize = 256;
/// Interval of TCP keep-alives, so that networks don't drop idle connections.
const KEEP_ALIVE: Duration = Duration::from_mins(1);
/// Interval of pings on an HTTP/2 connection with requests, and timeout of each.
const PING: Duration = Duration::from_secs(30);
/// The message to clients about a TLS failure.
const TLS_FAILED: &str = "TLS failed; see the gateway's log";
/// Maximum length of a reason, in characters.
const MAX_REASON: usize = 300;

/// Shared by all upstreams, including TLS sessions.
static TLS: LazyLock<Result<ClientConfig, String>> = LazyLock::new(|| {
    let roots = gatewright_trust::roots(None).map_err(|error| error.to_string())?;
    Ok(gatewright_trust::client()?.with_root_certificates(roots).with_no_client_auth())
});

/// A pool without connections. Errors: TLS can't be set up.
pub(super) fn open(server: Uri, connect_timeout: Duration) -> Result<Pool, String> {
    let settings = Settings {
        connect_timeout,
        max_idle: MAX_IDLE,
        idle_timeout: IDLE,
        keep_alive: Some(KEEP_ALIVE),
        ping: PING,
        proxy: None,
        is_reusable: is_of_a_provider,
    };
    Ok(Pool::new(server, TLS.clone()?, settings))
}

/// Whether a head is one that providers send. Another is that of a page or of nothing at all, often from something between: if a
/// second response follows it, the next request on the connection would get that.
fn is_of_a_provider(status: StatusCode, headers: &HeaderMap) -> bool {
    let is_page = headers.get(CONTENT_TYPE).is_some_and(|kind| {
        let begins = |with: &[u8]| {
            kind.as_bytes().get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with))
        };
        begins(b"text/") && !begins(b"text/event-stream")
    });
    !is_page && !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// Why there is no answer.
pub(super) struct Reason {
    /// The root cause, for operators.
    pub(super) whole: String,
    /// The same for clients, without certificate details, which contain host names.
    pub(super) for_clients: String,
}

/// The root cause of a failure.
pub(super) fn reason(error: &(dyn Error + 'static)) -> Reason {
    let (mut cause, mut is_tls) = (error, is_of_tls(error));
    while let Some(inner) = cause.source() {
        is_tls |= is_of_tls(inner);
        cause = inner;
    }
    let text: String = cause.to_string().chars().take(MAX_REASON).collect();
    let whole = gatewright::visible::visible(&text).into_owned();
    let for_clients = if is_tls { TLS_FAILED.to_owned() } else { whole.clone() };
    Reason { whole, for_clients }
}

fn is_of_tls(error: &(dyn Error + 'static)) -> bool {
    // I/O errors don't expose their inner error through `source`.
    let within = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    error.is::<rustls::Error>() || within.is_some_and(|inner| is_of_tls(inner))
}
