//! How connections are made: the proxy, TLS and the number of connections to keep, for calls and downloads alike.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use gatewright_connect::{Pool, Settings};
use http::Uri;
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
    /// All connections use this proxy.
    Through(ProxyUrl),
}

/// A proxy's address. `Debug` and `Display` show neither user name nor password.
#[derive(Clone)]
pub(crate) struct ProxyUrl {
    url: Url,
    proxy: Box<gatewright_connect::Proxy>,
}

impl Connecting {
    /// Connections to the server of `target`, none of which is open yet.
    ///
    /// Errors (Configuration): TLS cannot be set up, or the server's address can't be sent.
    pub(crate) fn pool(&self, target: &Url) -> Result<Pool, Error> {
        let server = server(target)?;
        let proxy = match &self.proxy {
            Proxy::Direct => None,
            Proxy::Environment if is_this_machine(target) => None,
            Proxy::Environment => gatewright_connect::Proxy::of_system(&server),
            Proxy::Through(url) => Some((*url.proxy).clone()),
        };
        let uses_tls =
            target.scheme() == "https" || proxy.as_ref().is_some_and(gatewright_connect::Proxy::uses_tls);
        let mut tls = self.tls.config(uses_tls)?;
        tls.alpn_protocols.clear();
        let settings = Settings {
            connect_timeout: self.connect_timeout,
            max_idle: self.max_idle_connections,
            idle_timeout: self.idle_connection_timeout,
            keep_alive: Some(KEEP_ALIVE),
            ping: PING,
            proxy,
            is_reusable: |_, _| true,
        };
        Ok(Pool::new(server, tls, settings))
    }

    /// " through the proxy …" for messages, if one was given.
    pub(crate) fn through(&self) -> String {
        match &self.proxy {
            Proxy::Through(url) => format!(" through the proxy {url}"),
            Proxy::Environment | Proxy::Direct => String::new(),
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
        let proxy = gatewright_connect::Proxy::at(url.as_str()).ok_or_else(refuse)?;
        Ok(Self { url, proxy: Box::new(proxy) })
    }
}

impl fmt::Display for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&secret::redacted_url(&self.url))
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
    let proxy = gatewright_connect::Proxy::of_system(&server(target).ok()?)?;
    Url::parse(&proxy.address().to_string()).ok()
}

/// Scheme, host and port of a URL. Errors: Configuration.
pub(crate) fn server(target: &Url) -> Result<Uri, Error> {
    let authority = &target[Position::BeforeHost..Position::AfterPort];
    let server = format!("{}://{authority}", target.scheme()).parse();
    server.map_err(|error: http::uri::InvalidUri| {
        let message = format!("{authority:?} is not the address of a server");
        Error::new(ErrorKind::Configuration, message).with_source(error)
    })
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
    fn loopback_is_recognized_by_name_and_address() {
        for here in ["http://localhost:1", "http://a.localhost", "http://127.9.9.9", "https://[::1]:8080"] {
            assert!(is_this_machine(&Url::parse(here).expect(here)), "{here}");
        }
        for elsewhere in ["http://localhost.example", "http://10.0.0.1", "https://[2001:db8::1]"] {
            assert!(!is_this_machine(&Url::parse(elsewhere).expect(elsewhere)), "{elsewhere}");
        }
    }

    #[test]
    fn proxy_credentials_are_never_displayed() {
        let proxy = ProxyUrl::parse("http://amy:canary@proxy.example:3128").expect("a proxy");
        assert_eq!(
            format!("{proxy} {proxy:?}"),
            "http://redacted@proxy.example:3128/ http://redacted@proxy.example:3128/"
        );
    }

    #[test]
    fn invalid_proxy_url_is_rejected_without_quoting_it() {
        for text in ["", "canary", "ftp://amy:canary@h", "http://amy:canary@", "canary:3128"] {
            let error = ProxyUrl::parse(text).expect_err(text);
            assert_eq!(error.kind(), ErrorKind::Configuration);
            assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
        }
    }
}
