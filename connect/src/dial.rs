//! Opens a connection: DNS, TCP, the proxy, TLS, and the HTTP version that the server chose.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower_service::Service as _;

use crate::error::Error;
use crate::proxy::{Failure, Proxy};
use crate::request::Destination;
use crate::socket::Socket;
use crate::tcp::Tcp;

/// ALPN protocol name of HTTP/2.
const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// Number of unanswered keep-alive packets after which a connection is considered dead.
const KEEP_ALIVES: u32 = 3;
/// How long sent data may stay unacknowledged.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Opens connections to one server.
pub(crate) struct Dialer {
    tcp: HttpConnector,
    tls: TlsConnector,
    server: Uri,
    proxy: Option<Proxy>,
    /// TLS to the proxy itself, which speaks HTTP/1.1.
    proxy_tls: Option<TlsConnector>,
}

/// A new connection.
pub(crate) enum NewConnection {
    Http1(Socket),
    Http2(Socket),
}

impl Dialer {
    /// `keep_alive`: interval of TCP's keep-alive packets.
    pub(crate) fn new(
        server: Uri,
        mut tls: ClientConfig,
        keep_alive: Option<Duration>,
        proxy: Option<Proxy>,
    ) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(keep_alive);
        tcp.set_keepalive_interval(keep_alive);
        tcp.set_keepalive_retries(keep_alive.map(|_| KEEP_ALIVES));
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
        let proxy_tls = proxy.as_ref().filter(|proxy| proxy.uses_tls()).map(|_| {
            let mut tls = tls.clone();
            tls.alpn_protocols = vec![HTTP1.to_vec()];
            TlsConnector::from(Arc::new(tls))
        });
        tls.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
        Self { tcp, tls: TlsConnector::from(Arc::new(tls)), server, proxy, proxy_tls }
    }

    pub(crate) fn destination(&self) -> Destination<'_> {
        let forwarder = self.proxy.as_ref().filter(|proxy| proxy.forwards(&self.server));
        Destination { server: &self.server, forwarder }
    }

    pub(crate) fn server(&self) -> &Uri {
        &self.server
    }

    /// Whether the server may choose HTTP/2.
    pub(crate) fn is_tls(&self) -> bool {
        self.server.scheme_str() == Some("https")
    }

    pub(crate) async fn dial(&self) -> Result<NewConnection, Error> {
        self.open().await.map_err(Error::Connect)
    }

    async fn open(&self) -> Result<NewConnection, Failure> {
        let Some(proxy) = &self.proxy else {
            let tcp = self.connect(&self.server).await?;
            return self.secured(tcp, Socket::Plain, Socket::Tls).await;
        };
        let tcp = self.connect(proxy.address()).await?;
        if let Some(tls) = &self.proxy_tls {
            let tls = handshake(tls, proxy.address(), tcp).await?;
            if proxy.forwards(&self.server) {
                return Ok(NewConnection::Http1(Socket::Tls(Box::new(tls))));
            }
            let tunnel = proxy.tunnel(tls, &self.server).await?;
            return self.secured(tunnel, |tls| Socket::Tls(Box::new(tls)), Socket::TlsInTls).await;
        }
        if proxy.forwards(&self.server) {
            return Ok(NewConnection::Http1(Socket::Plain(tcp)));
        }
        let tunnel = proxy.tunnel(tcp, &self.server).await?;
        self.secured(tunnel, Socket::Plain, Socket::Tls).await
    }

    async fn connect(&self, address: &Uri) -> Result<Tcp, Failure> {
        Ok(Tcp::Driven(self.tcp.clone().call(address.clone()).await?.into_inner()))
    }

    /// Starts TLS if the server's scheme requires it. `plain` and `tls` make the socket.
    async fn secured<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        plain: impl FnOnce(S) -> Socket,
        tls: impl FnOnce(Box<TlsStream<S>>) -> Socket,
    ) -> Result<NewConnection, Failure> {
        if !self.is_tls() {
            return Ok(NewConnection::Http1(plain(stream)));
        }
        let agreed = handshake(&self.tls, &self.server, stream).await?;
        let is_http2 = agreed.get_ref().1.alpn_protocol() == Some(HTTP2);
        let socket = tls(Box::new(agreed));
        Ok(if is_http2 { NewConnection::Http2(socket) } else { NewConnection::Http1(socket) })
    }
}

/// Starts TLS. The certificate must be one for the host of `address`.
async fn handshake<S: AsyncRead + AsyncWrite + Unpin>(
    tls: &TlsConnector,
    address: &Uri,
    stream: S,
) -> Result<TlsStream<S>, Failure> {
    let host = address.host().unwrap_or_default();
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let name = ServerName::try_from(host.to_owned())?;
    Ok(tls.connect(name, stream).await?)
}

impl fmt::Debug for Dialer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Dialer").field("server", &self.server).finish_non_exhaustive()
    }
}
