//! The gateway's certificate.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

/// Maximum size of a PEM file, in bytes.
const MAX_PEM_BYTES: u64 = 1024 * 1024;

/// Addresses served with TLS, and their certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsConfig {
    /// Addresses to listen on; port 0 picks a free port.
    pub listen: Vec<String>,
    /// PEM file with the certificate and its intermediates.
    pub certificate: PathBuf,
    /// PEM file of its private key.
    pub key: PathBuf,
}

impl TlsConfig {
    /// TLS at these addresses.
    pub fn new(listen: Vec<String>, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { listen, certificate: certificate.into(), key: key.into() }
    }

    /// Reads certificate and key. Errors: one of them can't be read, or they don't belong together.
    pub fn read(&self) -> Result<Arc<CertifiedKey>, TlsError> {
        let failed =
            |path: &Path, why: String| TlsError { path: path.to_owned(), why, is_absent: !path.exists() };
        let pem = read(&self.certificate).map_err(|why| failed(&self.certificate, why))?;
        let chain = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain
            .ok_or_else(|| failed(&self.certificate, "it has no certificate in PEM format".to_owned()))?;
        let pem = read(&self.key).map_err(|why| failed(&self.key, why))?;
        let key = PrivateKeyDer::from_pem_slice(&pem)
            .map_err(|_| failed(&self.key, "it has no private key in PEM format".to_owned()))?;
        CertifiedKey::from_der(chain, key, &ring::default_provider())
            .map(Arc::new)
            .map_err(|error| failed(&self.key, format!("it does not match the certificate: {error}")))
    }
}

/// Why a certificate can't be used.
#[derive(Debug)]
pub struct TlsError {
    path: PathBuf,
    why: String,
    is_absent: bool,
}

impl TlsError {
    /// Whether the key's file is at fault rather than the certificate.
    pub(super) fn is_of_key(&self, tls: &TlsConfig) -> bool {
        self.path == tls.key
    }

    /// Whether the file does not exist.
    pub(super) fn is_absent(&self) -> bool {
        self.is_absent
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the file {} cannot be used: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for TlsError {}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    use std::io::Read as _;

    let mut pem = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(MAX_PEM_BYTES + 1).read_to_end(&mut pem).map_err(|error| error.to_string())?;
    if pem.len() as u64 > MAX_PEM_BYTES {
        return Err(format!("it is larger than {MAX_PEM_BYTES} bytes"));
    }
    Ok(pem)
}
