//! How connections are made: the proxy, TLS and the number of connections to keep. The only place that configures the
//! HTTP library, for calls and downloads alike.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use gatewright_connect::{Pool, Settings};
use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use url::{Host, Position, Url};

use crate::transport::secret;
use crate::transport::tls::Tls;
use crate::wire::error::{Error, ErrorKind};

/// Interval of keep-alive packets, so that a network that forgets quiet connections does not lose them.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Interval of pings of an HTTP/2 connection with requests, and how long each may take.
const PING: Duration = Duration::from_secs(30);

/// The options of a client that concern its connections.
#[derive(Debug, Clone)]
pub(crate) struct Connecting {
    pub(crate) connect_timeout: Duration,
    pub(crate) max_idle_connections: usize,
    pub(crate) idle_connection_timeout: Duration,
    pub(crate) proxy: Proxy,
    pub(crate) tls: Tls,
}

/// The proxy option; its address is parsed when the client is built.
#[derive(Clone, Default)]
pub(crate) enum ProxyOption {
    #[default]
    Environment,
    Direct,
    Through(String),
}

/// The route to the gateway.
#[derive(Debug, Clone, Default)]
pub(crate) enum Proxy {
    /// As set by HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY (or their lower-case forms). This machine is
    /// always reached directly.
    #[default]
    Environment,
    Direct,
    /// Everything goes through this proxy.
    Through(ProxyUrl),
}

/// A proxy's address. `Debug` and `Display` show neither user name nor password.
#[derive(Clone)]
pub(crate) struct ProxyUrl(Url);

impl Connecting {
    /// The HTTP library, configured to reach `target`: connections, proxy, TLS and nothing else.
    ///
    /// Errors (Configuration): the proxy cannot be used, or TLS cannot be set up.
    pub(crate) fn client_builder(&self, target: &Url) -> Result<reqwest::ClientBuilder, Error> {
        let builder = reqwest::Client::builder()
            .tls_backend_preconfigured(self.tls.config(self.may_use_tls(target))?)
            .connect_timeout(self.connect_timeout)
            .pool_max_idle_per_host(self.max_idle_connections)
            .pool_idle_timeout(self.idle_connection_timeout)
            .tcp_nodelay(true)
            // Only our own retries are made: they are counted, they pause, and the deadline bounds them.
            .retry(reqwest::retry::never());
        Ok(match &self.proxy {
            Proxy::Environment if !is_this_machine(target) => builder,
            Proxy::Environment | Proxy::Direct => builder.no_proxy(),
            Proxy::Through(url) => builder.proxy(url.proxy()?),
        })
    }

    /// Our own connections to `target`; none if there is a proxy.
    ///
    /// Errors (Configuration): TLS cannot be set up.
    pub(crate) fn pool(&self, target: &Url) -> Result<Option<Pool>, Error> {
        let Ok(server) = target[..Position::BeforePath].parse::<Uri>() else { return Ok(None) };
        let is_direct = match &self.proxy {
            Proxy::Direct => true,
            Proxy::Environment => {
                is_this_machine(target) || Matcher::from_system().intercept(&server).is_none()
            }
            Proxy::Through(_) => false,
        };
        if !is_direct {
            return Ok(None);
        }
        let mut tls = self.tls.config(target.scheme() == "https")?;
        tls.alpn_protocols.clear();
        let settings = Settings {
            connect_timeout: self.connect_timeout,
            max_idle: self.max_idle_connections,
            idle_timeout: self.idle_connection_timeout,
            keep_alive: Some(KEEP_ALIVE),
            ping: PING,
        };
        Ok(Some(Pool::new(server, tls, settings)))
    }

    /// " through the proxy …" for messages, if one was given.
    pub(crate) fn through(&self) -> String {
        match &self.proxy {
            Proxy::Through(url) => format!(" through the proxy {url}"),
            Proxy::Environment | Proxy::Direct => String::new(),
        }
    }

    fn may_use_tls(&self, target: &Url) -> bool {
        target.scheme() == "https"
            || match &self.proxy {
                // The environment's proxy may itself be reached over TLS.
                Proxy::Environment => !is_this_machine(target),
                Proxy::Direct => false,
                Proxy::Through(url) => url.0.scheme() == "https",
            }
    }
}

impl ProxyUrl {
    /// Errors (Configuration): it is not a proxy's address. The message does not quote it.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let refuse = || {
            let message = "the proxy cannot be used: set its address, such as http://proxy.example:3128, with \
                           http, https, socks4, socks4a, socks5 or socks5h";
            Error::new(ErrorKind::Configuration, message)
        };
        let url = Url::parse(text.trim()).map_err(|_| refuse())?;
        let is_known = matches!(url.scheme(), "http" | "https" | "socks4" | "socks4a" | "socks5" | "socks5h");
        if !is_known || !url.has_host() {
            return Err(refuse());
        }
        let proxy = Self(url);
        proxy.proxy()?;
        Ok(proxy)
    }

    fn proxy(&self) -> Result<reqwest::Proxy, Error> {
        // The library's error may quote the address, so it is not kept as a source.
        reqwest::Proxy::all(self.0.clone())
            .map_err(|_| Error::new(ErrorKind::Configuration, format!("the proxy {self} cannot be used")))
    }
}

impl fmt::Display for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&secret::redacted_url(&self.0))
    }
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The proxy for an address according to the environment variables, as a client interprets them, without the user name
/// and password it may need. For programs that explain a connection.
#[doc(hidden)]
pub fn environment_proxy(target: &Url) -> Option<Url> {
    if is_this_machine(target) {
        return None;
    }
    let server = target[..Position::BeforePath].parse::<Uri>().ok()?;
    let mut proxy = Url::parse(&Matcher::from_system().intercept(&server)?.uri().to_string()).ok()?;
    // Neither fails on an address that has a host.
    _ = proxy.set_username("");
    _ = proxy.set_password(None);
    Some(proxy)
}

/// Whether the host in a URL explicitly means this machine: `localhost` and its subdomains, 127.0.0.0/8, ::1.
pub(crate) fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_told_by_name_and_by_number() {
        for here in ["http://localhost:1", "http://a.localhost", "http://127.9.9.9", "https://[::1]:8080"] {
            assert!(is_this_machine(&Url::parse(here).expect(here)), "{here}");
        }
        for elsewhere in ["http://localhost.example", "http://10.0.0.1", "https://[2001:db8::1]"] {
            assert!(!is_this_machine(&Url::parse(elsewhere).expect(elsewhere)), "{elsewhere}");
        }
    }

    #[test]
    fn a_proxy_shows_neither_user_nor_password() {
        let proxy = ProxyUrl::parse("http://amy:canary@proxy.example:3128").expect("a proxy");
        assert_eq!(
            format!("{proxy} {proxy:?}"),
            "http://redacted@proxy.example:3128/ http://redacted@proxy.example:3128/"
        );
    }

    #[test]
    fn what_is_no_proxy_is_refused_without_being_quoted() {
        for text in ["", "canary", "ftp://amy:canary@h", "http://amy:canary@", "canary:3128"] {
            let error = ProxyUrl::parse(text).expect_err(text);
            assert_eq!(error.kind(), ErrorKind::Configuration);
            assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
        }
    }
}
