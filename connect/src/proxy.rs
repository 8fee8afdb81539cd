//! Proxies between this machine and a server: HTTP and HTTPS proxies, which forward plain requests and tunnel the others
//! (CONNECT), and SOCKS proxies.

use std::error::Error as StdError;
use std::fmt;
use std::future::{Ready, ready};
use std::io;
use std::task::{Context, Poll};

use http::uri::{Authority, Parts, PathAndQuery, Scheme};
use http::{HeaderValue, Uri};
use hyper_util::client::legacy::connect::proxy::{SocksV4, SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tower_service::Service;

/// An error of a connection that is being opened.
pub(crate) type Failure = Box<dyn StdError + Send + Sync>;

/// The port of SOCKS proxies (RFC 1928).
const SOCKS_PORT: u16 = 1080;

/// A proxy. `Debug` shows neither user name nor password.
#[derive(Clone)]
pub struct Proxy {
    /// Scheme, host and port.
    address: Uri,
    credentials: Intercept,
    kind: ProxyKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProxyKind {
    Http,
    Https,
    /// Version 4 or 5.
    Socks {
        version: u8,
        /// Whether the proxy resolves names.
        resolves: bool,
    },
}

impl Proxy {
    /// The proxy at an address such as `http://user:password@proxy.example:3128`; the schemes are http, https, socks4,
    /// socks4a, socks5 and socks5h. `None`: the address isn't one of a proxy.
    pub fn at(address: &str) -> Option<Self> {
        // Without exceptions, it intercepts every server.
        let matcher = Matcher::builder().all(address.to_owned()).build();
        Self::new(matcher.intercept(&Uri::from_static("http://server"))?)
    }

    /// The proxy for a server by `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` (or their lower-case forms), or by
    /// the settings of macOS and Windows. `None`: the server is reached directly.
    pub fn of_system(server: &Uri) -> Option<Self> {
        Self::new(Matcher::from_system().intercept(server)?)
    }

    fn new(intercept: Intercept) -> Option<Self> {
        let (kind, port) = match intercept.uri().scheme_str()? {
            "http" => (ProxyKind::Http, 80),
            "https" => (ProxyKind::Https, 443),
            scheme => {
                let version = if scheme.starts_with("socks4") { 4 } else { 5 };
                let resolves = matches!(scheme, "socks4a" | "socks5h");
                (ProxyKind::Socks { version, resolves }, SOCKS_PORT)
            }
        };
        let address = with_port(intercept.uri(), port)?;
        Some(Self { address, credentials: intercept, kind })
    }

    /// Scheme, host and port, without user name and password.
    pub fn address(&self) -> &Uri {
        &self.address
    }

    /// Whether the connection to the proxy itself uses TLS.
    pub fn uses_tls(&self) -> bool {
        self.kind == ProxyKind::Https
    }

    /// Whether requests to the server are sent to the proxy, with the server's address in each, instead of through a tunnel.
    pub(crate) fn forwards(&self, server: &Uri) -> bool {
        matches!(self.kind, ProxyKind::Http | ProxyKind::Https) && server.scheme_str() == Some("http")
    }

    /// The credentials of forwarded requests.
    pub(crate) fn authorization(&self) -> Option<&HeaderValue> {
        self.credentials.basic_auth()
    }

    /// Opens a tunnel to the server. `socket`: a connection to the proxy.
    pub(crate) async fn tunnel<S>(&self, socket: S, server: &Uri) -> Result<S, Failure>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let usual = if server.scheme_str() == Some("https") { 443 } else { 80 };
        let server = with_port(server, usual).ok_or("the server's address is incomplete")?;
        let opened = Opened(Some(TokioIo::new(socket)));
        let address = self.address.clone();
        let socket = match self.kind {
            ProxyKind::Http | ProxyKind::Https => {
                let mut tunnel = Tunnel::new(address, opened);
                if let Some(authorization) = self.authorization() {
                    tunnel = tunnel.with_auth(authorization.clone());
                }
                tunnel.call(server).await?
            }
            ProxyKind::Socks { version: 4, resolves } => {
                let server = if resolves { server } else { resolved(&server, true).await? };
                SocksV4::new(address, opened).call(server).await?
            }
            ProxyKind::Socks { resolves, .. } => {
                let server = if resolves { server } else { resolved(&server, false).await? };
                let mut socks = SocksV5::new(address, opened);
                if let Some((user, password)) = self.credentials.raw_auth() {
                    socks = socks.with_auth(user.to_owned(), password.to_owned());
                }
                socks.call(server).await?
            }
        };
        Ok(socket.into_inner())
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Proxy").field("address", &self.address).finish_non_exhaustive()
    }
}

/// The same address with its port, or else this one, and without a path.
fn with_port(address: &Uri, port: u16) -> Option<Uri> {
    let port = address.port_u16().unwrap_or(port);
    let authority = Authority::try_from(format!("{}:{port}", address.host()?)).ok()?;
    parts(address.scheme().cloned()?, authority)
}

fn parts(scheme: Scheme, authority: Authority) -> Option<Uri> {
    let mut parts = Parts::default();
    parts.scheme = Some(scheme);
    parts.authority = Some(authority);
    parts.path_and_query = Some(PathAndQuery::from_static("/"));
    Uri::from_parts(parts).ok()
}

/// The same address with an IP address, for proxies that don't resolve names. `only_v4`: SOCKS 4 knows no others.
async fn resolved(server: &Uri, only_v4: bool) -> Result<Uri, Failure> {
    let host = server.host().unwrap_or_default();
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let mut found = tokio::net::lookup_host((host, server.port_u16().unwrap_or_default())).await?;
    let address = found.find(|address| address.is_ipv4() || !only_v4);
    let address =
        address.ok_or_else(|| io::Error::other("the host has no IPv4 address, which SOCKS 4 requires"))?;
    let authority = Authority::try_from(address.to_string())?;
    parts(server.scheme().cloned().unwrap_or(Scheme::HTTPS), authority)
        .ok_or_else(|| "the server's address is incomplete".into())
}

/// A connection that is already open, in the form that [`Tunnel`] and the SOCKS connectors take.
struct Opened<S>(Option<TokioIo<S>>);

impl<S> Service<Uri> for Opened<S> {
    type Response = TokioIo<S>;
    type Error = io::Error;
    type Future = Ready<io::Result<TokioIo<S>>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _proxy: Uri) -> Self::Future {
        ready(self.0.take().ok_or_else(|| io::Error::other("the connection is used already")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_address_requires_a_known_scheme_and_gets_its_default_port() {
        for (address, expected) in [
            ("http://proxy.example", "http://proxy.example:80/"),
            ("https://proxy.example", "https://proxy.example:443/"),
            ("http://amy:canary@proxy.example:3128/", "http://proxy.example:3128/"),
            ("socks5://[2001:db8::1]", "socks5://[2001:db8::1]:1080/"),
            ("socks4a://proxy.example:9", "socks4a://proxy.example:9/"),
        ] {
            let proxy = Proxy::at(address).expect(address);
            assert_eq!(proxy.address().to_string(), expected);
            assert!(!format!("{proxy:?}").contains("canary"), "{proxy:?}");
        }
        for address in ["", "ftp://proxy.example", "http://"] {
            assert!(Proxy::at(address).is_none(), "{address}");
        }
    }

    #[test]
    fn only_http_proxies_forward_and_only_plain_requests() {
        let (plain, tls) = (Uri::from_static("http://a.example"), Uri::from_static("https://a.example"));
        let forwards = |proxy: &str| {
            let proxy = Proxy::at(proxy).expect(proxy);
            (proxy.forwards(&plain), proxy.forwards(&tls))
        };
        assert_eq!(forwards("http://proxy.example"), (true, false));
        assert_eq!(forwards("https://proxy.example"), (true, false));
        assert_eq!(forwards("socks5h://proxy.example"), (false, false));
    }

    #[tokio::test]
    async fn host_name_is_resolved_for_proxies_that_do_not_resolve() {
        let server = Uri::from_static("http://localhost:8080/");
        assert_eq!(resolved(&server, true).await.expect("found").to_string(), "http://127.0.0.1:8080/");
        let server = Uri::from_static("https://[::1]:8443/");
        assert_eq!(resolved(&server, false).await.expect("found").to_string(), "https://[::1]:8443/");
        assert!(resolved(&server, true).await.is_err(), "SOCKS 4 has no such addresses");
    }
}
