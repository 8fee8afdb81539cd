//! TLS for client connections. The certificate can be replaced while connections are open.

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

/// Timeout of a handshake, unless the timeout for request heads is shorter.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The certificate in use.
pub(super) struct Certificate(ArcSwap<CertifiedKey>);

impl Certificate {
    pub(super) fn new(certificate: Arc<CertifiedKey>) -> Arc<Self> {
        Arc::new(Self(ArcSwap::new(certificate)))
    }

    /// Uses another certificate from the next handshake on.
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

/// Performs the handshakes.
#[derive(Clone)]
pub(super) struct Handshakes {
    acceptor: TlsAcceptor,
    patience: Duration,
}

impl Handshakes {
    /// Errors: the TLS library fails to initialize.
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

    /// Performs the handshake of a connection, with a timeout.
    pub(super) async fn shake(&self, socket: Socket) -> io::Result<TlsStream<Socket>> {
        match tokio::time::timeout(self.patience, self.acceptor.accept(socket)).await {
            Ok(done) => done,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the TLS handshake took too long")),
        }
    }
}
