//! TLS of client connections. The certificate can be replaced while connections are open.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::connection::Socket;

/// Longest time of a handshake, if that for the headers of a request is not shorter.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The certificate in use.
pub(super) struct Certificate(ArcSwap<CertifiedKey>);

impl Certificate {
    pub(super) fn new(certificate: Arc<CertifiedKey>) -> Arc<Self> {
        Arc::new(Self(ArcSwap::new(certificate)))
    }

    /// Shows another certificate from the next handshake on.
    pub(super) fn replace(&self, certificate: Arc<CertifiedKey>) {
        self.0.store(certificate);
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Certificate")
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

/// Does the handshakes.
#[derive(Clone)]
pub(super) struct Handshakes {
    acceptor: TlsAcceptor,
    patience: Duration,
}

impl Handshakes {
    /// Errors: the TLS library refuses to start.
    pub(super) fn new(
        certificate: Arc<Certificate>,
        header_timeout: Duration,
    ) -> Result<Self, rustls::Error> {
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth();
        let mut config = config.with_cert_resolver(certificate);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), patience: HANDSHAKE.min(header_timeout) })
    }

    /// Does the handshake of a connection, in bounded time.
    pub(super) async fn shake(&self, socket: Socket) -> io::Result<TlsStream<Socket>> {
        match tokio::time::timeout(self.patience, self.acceptor.accept(socket)).await {
            Ok(done) => done,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the TLS handshake took too long")),
        }
    }
}
