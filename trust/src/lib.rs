//! TLS trust for all outgoing connections: those of the client, the check kit and the gateway's webhooks. Uses rustls
//! with ring, and trusts the platform's roots, the bundled roots and the caller's CA bundle together.
//!
//! It has no stable interface: it is a part of the crate `gatewright` and of the gateway, which are what people use.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};

/// Shared by the whole process: reading the platform's roots takes some milliseconds.
static ROOTS: LazyLock<RootCertStore> = LazyLock::new(|| {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    // A machine without readable roots still has the bundled ones. Unreadable certificates are skipped.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
});

/// Why a CA bundle cannot be used. The text continues a message that names the file.
#[derive(Debug)]
#[non_exhaustive]
pub enum BundleError {
    /// The file cannot be read.
    Unreadable(io::Error),
    /// The file holds no usable certificate.
    Unusable(String),
}

impl fmt::Display for BundleError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(formatter, "it cannot be read: {error}"),
            Self::Unusable(why) => formatter.write_str(why),
        }
    }
}

impl std::error::Error for BundleError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable(error) => Some(error),
            Self::Unusable(_) => None,
        }
    }
}

/// The platform's roots and the bundled ones, plus those of a PEM file if one is given.
///
/// Errors: the file cannot be read, or holds no usable certificate.
pub fn roots(ca_bundle: Option<&Path>) -> Result<RootCertStore, BundleError> {
    let mut roots = ROOTS.clone();
    if let Some(path) = ca_bundle {
        let pem = std::fs::read(path).map_err(BundleError::Unreadable)?;
        add(&mut roots, &pem).map_err(BundleError::Unusable)?;
    }
    Ok(roots)
}

fn add(roots: &mut RootCertStore, pem: &[u8]) -> Result<(), String> {
    let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let certificates = certificates.map_err(|error| format!("it cannot be read as PEM: {error}"))?;
    // Old bundles hold certificates that rustls cannot use; the usable ones are enough.
    match roots.add_parsable_certificates(certificates) {
        (0, 0) => Err("there is no certificate in it: use a PEM file".to_owned()),
        (0, skipped) => Err(format!("none of its {skipped} certificates can be used")),
        _ => Ok(()),
    }
}

/// Starts a client configuration with the safe TLS versions.
///
/// Errors: the TLS library refuses to start.
pub fn client() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundled_roots_do_not_depend_on_the_machine() {
        assert!(roots(None).expect("no file to read").len() >= webpki_roots::TLS_SERVER_ROOTS.len());
    }

    #[test]
    fn bundle_without_certificates_is_rejected_with_the_reason() {
        let missing = roots(Some(Path::new("/no/such/file"))).expect_err("no such file");
        assert!(matches!(missing, BundleError::Unreadable(_)), "{missing}");
        let mut store = RootCertStore::empty();
        let text = add(&mut store, b"not PEM").expect_err("no certificate");
        assert_eq!(text, "there is no certificate in it: use a PEM file");
        let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(add(&mut store, broken).expect_err("unusable"), "none of its 1 certificates can be used");
    }
}
