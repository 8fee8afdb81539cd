//! Opens a connection: DNS, TCP, TLS, and the HTTP version that the server chose.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;
use tower_service::Service as _;

use crate::error::Error;
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
}

/// A new connection.
pub(crate) enum NewConnection {
    Http1(Socket),
    Http2(Socket),
}

impl Dialer {
    /// `keep_alive`: interval of TCP's keep-alive packets.
    pub(crate) fn new(server: Uri, mut tls: ClientConfig, keep_alive: Option<Duration>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(keep_alive);
        tcp.set_keepalive_interval(keep_alive);
        tcp.set_keepalive_retries(keep_alive.map(|_| KEEP_ALIVES));
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
        tls.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
        Self { tcp, tls: TlsConnector::from(Arc::new(tls)), server }
    }

    pub(crate) fn server(&self) -> &Uri {
        &self.server
    }

    /// Whether the server may choose HTTP/2.
    pub(crate) fn is_tls(&self) -> bool {
        self.server.scheme_str() == Some("https")
    }

    pub(crate) async fn dial(&self) -> Result<NewConnection, Error> {
        let connected = self.tcp.clone().call(self.server.clone()).await;
        let tcp = Tcp::Driven(connected.map_err(|error| Error::Connect(error.into()))?.into_inner());
        if !self.is_tls() {
            return Ok(NewConnection::Http1(Socket::Plain(tcp)));
        }
        let name = self.name().map_err(|error| Error::Connect(error.into()))?;
        let agreed = self.tls.connect(name, tcp).await;
        let tls = agreed.map_err(|error| Error::Connect(io::Error::other(error).into()))?;
        let is_http2 = tls.get_ref().1.alpn_protocol() == Some(HTTP2);
        let socket = Socket::Tls(Box::new(tls));
        Ok(if is_http2 { NewConnection::Http2(socket) } else { NewConnection::Http1(socket) })
    }

    /// The name that the server's certificate must match.
    fn name(&self) -> Result<ServerName<'static>, rustls::pki_types::InvalidDnsNameError> {
        let host = self.server.host().unwrap_or_default();
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        ServerName::try_from(host.to_owned())
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Dialer").field("server", &self.server).finish_non_exhaustive()
    }
}
