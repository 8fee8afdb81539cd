//! The proxy in front of a gateway: what it lets through, and where it is configured.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::client::legacy::connect::proxy::{SocksV4, SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;
use tower_service::Service;
use url::Url;

use super::connection::Connection;
use super::finding::{Finding, FindingLevel};
use crate::amount;

/// The URI type of the library.
type Uri = http::Uri;
type Error = Box<dyn std::error::Error + Send + Sync>;

/// The variables that name the proxy for a gateway, and those that bypass it.
pub(super) fn variables(gateway: &Url) -> String {
    let name = if gateway.scheme() == "https" { "HTTPS_PROXY" } else { "HTTP_PROXY" };
    format!("{name} or ALL_PROXY, or add {} to NO_PROXY", host(gateway))
}

pub(super) fn host(gateway: &Url) -> &str {
    gateway.host_str().unwrap_or_default()
}

/// Asks a proxy for a connection to the gateway. stream: to the proxy. Errors: it refuses.
pub(super) async fn tunnel(
    proxy: &Url,
    gateway: &Url,
    stream: Box<dyn Connection>,
    limit: Duration,
) -> Result<(Finding, Box<dyn Connection>), Finding> {
    let to = format!("{}:{}", host(gateway), gateway.port_or_known_default().unwrap_or(443));
    let fail = |why: String| {
        let advice = if why.contains("auth") {
            format!(
                "set a user name and password for the proxy: http://NAME:PASSWORD@HOST:PORT in {}",
                variables(gateway)
            )
        } else {
            format!("ask the proxy's administrator to allow {to}, or fix {}", variables(gateway))
        };
        Finding::new("tunnel", FindingLevel::Fail, format!("the proxy did not connect to {to}: {why}"))
            .advise(advice)
    };
    match timeout(limit, opened(proxy, gateway, stream)).await {
        Err(_) => Err(fail(format!("no answer within {}", amount::time(limit)))),
        Ok(Err(error)) => Err(fail(error.to_string())),
        Ok(Ok(stream)) => {
            let message = format!("the proxy connects to {to}");
            Ok((Finding::new("tunnel", FindingLevel::Ok, message), stream))
        }
    }
}

async fn opened(
    proxy: &Url,
    gateway: &Url,
    stream: Box<dyn Connection>,
) -> Result<Box<dyn Connection>, Error> {
    // Only names are resolved on the way, and only explicit ports are sent.
    let to = format!(
        "{}://{}:{}",
        gateway.scheme(),
        host(gateway),
        gateway.port_or_known_default().unwrap_or(443)
    );
    let to: Uri = to.parse()?;
    // The credentials are available only here.
    let found = Matcher::from_system().intercept(&to);
    let at: Uri = proxy.as_str().parse()?;
    let given = ReadyConnection(Some(TokioIo::new(stream)));
    let is_resolved_here = matches!(proxy.scheme(), "socks4" | "socks5");
    let stream = match proxy.scheme() {
        "socks5" | "socks5h" => {
            let socks = SocksV5::new(at, given).local_dns(is_resolved_here);
            let mut socks = match found.as_ref().and_then(Intercept::raw_auth) {
                Some((name, password)) => socks.with_auth(name.to_owned(), password.to_owned()),
                None => socks,
            };
            socks.call(to).await?
        }
        "socks4" | "socks4a" => SocksV4::new(at, given).local_dns(is_resolved_here).call(to).await?,
        _ => {
            let tunnel = Tunnel::new(at, given);
            let mut tunnel = match found.as_ref().and_then(Intercept::basic_auth) {
                Some(credentials) => tunnel.with_auth(credentials.clone()),
                None => tunnel,
            };
            tunnel.call(to).await?
        }
    };
    Ok(stream.into_inner())
}

/// The existing connection, for a library that opens its own.
struct ReadyConnection(Option<TokioIo<Box<dyn Connection>>>);

impl Service<Uri> for ReadyConnection {
    type Response = TokioIo<Box<dyn Connection>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let given = self.0.take().ok_or_else(|| io::Error::other("there is one connection"));
        Box::pin(async { given })
    }
}
