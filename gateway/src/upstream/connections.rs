//! The connections to an upstream: HTTP/1.1 or HTTP/2 as the upstream chooses, over TLS or plain.

use std::error::Error;
use std::sync::LazyLock;
use std::time::Duration;

use gatewright_connect::{Pool, Settings};
use http::Uri;
use rustls::ClientConfig;

/// How long an unused connection stays open: less than what servers and balancers keep it for.
const IDLE: Duration = Duration::from_secs(50);
/// Maximum number of unused connections to an upstream that stay open: a crowd of requests would leave as many.
const MOST_IDLE: usize = 256;
/// Interval of keep-alive packets, so that a network that forgets quiet connections does not lose them.
const KEEP_ALIVE: Duration = Duration::from_mins(1);
/// Interval of pings of an HTTP/2 connection with requests, and how long each may take.
const PING: Duration = Duration::from_secs(30);
/// What clients learn of a failure of TLS.
const TLS_FAILED: &str = "TLS failed; the log of the gateway says why";
/// Maximum length of a reason, in characters.
const MOST_REASON: usize = 300;

/// Shared by all upstreams, sessions included.
static TLS: LazyLock<Result<ClientConfig, String>> = LazyLock::new(|| {
    let roots = gatewright_trust::roots(None).map_err(|error| error.to_string())?;
    Ok(gatewright_trust::client()?.with_root_certificates(roots).with_no_client_auth())
});

/// A pool without connections. Errors: TLS cannot be set up.
pub(super) fn open(server: Uri, connect_timeout: Duration) -> Result<Pool, String> {
    let settings = Settings {
        connect_timeout,
        max_idle: MOST_IDLE,
        idle_timeout: IDLE,
        keep_alive: Some(KEEP_ALIVE),
        ping: PING,
    };
    Ok(Pool::new(server, TLS.clone()?, settings))
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
