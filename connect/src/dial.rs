//! Opens a connection: name, TCP, TLS, and which version of HTTP the server chose.

use std::time::Duration;

use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::{Connection as _, HttpConnector};
use rustls::ClientConfig;
use tower_service::Service as _;

use crate::error::Error;
use crate::socket::Socket;

/// Keep-alive packets without an answer after which a connection is given up.
const KEEP_ALIVES: u32 = 3;
/// How long what was sent may stay without an acknowledgement.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Opens connections to one server.
#[derive(Debug, Clone)]
pub(crate) struct Dialer {
    connector: HttpsConnector<HttpConnector>,
    server: Uri,
}

/// A new connection.
pub(crate) enum Dialed {
    Http1(Socket),
    Http2(Socket),
}

impl Dialer {
    /// `keep_alive`: interval of TCP's keep-alive packets.
    pub(crate) fn new(server: Uri, tls: ClientConfig, keep_alive: Option<Duration>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(keep_alive);
        tcp.set_keepalive_interval(keep_alive);
        tcp.set_keepalive_retries(keep_alive.map(|_| KEEP_ALIVES));
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(tcp);
        Self { connector, server }
    }

    pub(crate) fn server(&self) -> &Uri {
        &self.server
    }

    /// Whether the server may choose HTTP/2.
    pub(crate) fn is_tls(&self) -> bool {
        self.server.scheme_str() == Some("https")
    }

    pub(crate) async fn dial(&self) -> Result<Dialed, Error> {
        let stream = self.connector.clone().call(self.server.clone()).await.map_err(Error::Connect)?;
        let is_http2 = stream.connected().is_negotiated_h2();
        let socket = match stream {
            MaybeHttpsStream::Http(tcp) => Socket::Plain(tcp.into_inner()),
            MaybeHttpsStream::Https(tls) => Socket::Tls(Box::new(tls.into_inner())),
        };
        Ok(if is_http2 { Dialed::Http2(socket) } else { Dialed::Http1(socket) })
    }
}
