//! TLS of the client: rustls with ring, trusting the platform's roots, the bundled ones and a bundle of the
//! caller's together.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{CertificateError, ClientConfig, RootCertStore};

use crate::error::{Error, ErrorKind};

/// Environment variable with the path of a CA bundle.
pub const CA_BUNDLE_VARIABLE: &str = "GATEWRIGHT_CA_BUNDLE";

/// Shared by all clients of the process: reading the platform's roots takes some milliseconds.
static ROOTS: LazyLock<RootCertStore> = LazyLock::new(|| {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    // A machine without readable roots of its own still has the bundled ones; single unreadable ones are skipped.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
});

/// For clients that are told nothing of their own.
static WITH_ROOTS: LazyLock<Result<ClientConfig, String>> =
    LazyLock::new(|| finish(builder()?.with_root_certificates(ROOTS.clone()).with_no_client_auth()));

/// For clients that only talk plain HTTP: trusts nobody and reads nothing.
static WITHOUT_ROOTS: LazyLock<Result<ClientConfig, String>> =
    LazyLock::new(|| finish(builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth()));

/// Whom a client trusts, and as whom it shows itself. `Debug` shows neither the key nor the hundreds of roots.
#[derive(Clone, Default)]
pub(crate) struct Tls {
    /// None where there is nothing beyond the defaults.
    own: Option<ClientConfig>,
}

impl Tls {
    /// Reads the files now, so that a wrong path is told when the client is built.
    ///
    /// ca_bundle: certificates to trust beside the platform's and the bundled ones. client_certificate: the chain
    /// and the private key to show to servers that ask. Both PEM.
    ///
    /// Errors (Configuration): a file cannot be read or does not hold what it should.
    pub(crate) fn new(
        ca_bundle: Option<PathBuf>,
        client_certificate: Option<PathBuf>,
    ) -> Result<Self, Error> {
        if ca_bundle.is_none() && client_certificate.is_none() {
            return Ok(Self::default());
        }
        let mut roots = ROOTS.clone();
        if let Some(path) = ca_bundle {
            add_bundle(&mut roots, &path)?;
        }
        let builder = builder().map_err(refused)?.with_root_certificates(roots);
        let config = match client_certificate {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let (chain, key) = read_identity(&path)?;
                builder.with_client_auth_cert(chain, key).map_err(|error| {
                    let message = format!("client certificate {}: {error}", path.display());
                    Error::new(ErrorKind::Configuration, message).with_source(error)
                })?
            }
        };
        Ok(Self { own: Some(finish(config).map_err(refused)?) })
    }

    /// The configuration for connections of which some use TLS, or none.
    ///
    /// Errors: the TLS library refuses to start (Configuration).
    pub(crate) fn config(&self, uses_tls: bool) -> Result<ClientConfig, Error> {
        match &self.own {
            Some(own) => Ok(own.clone()),
            None if uses_tls => WITH_ROOTS.clone().map_err(refused),
            None => WITHOUT_ROOTS.clone().map_err(refused),
        }
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.own.is_some() { "[own certificates]" } else { "[default]" })
    }
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::Configuration, message)
}

fn builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))
}

#[expect(clippy::unnecessary_wraps, reason = "ends chains that begin with builder()")]
fn finish(mut config: ClientConfig) -> Result<ClientConfig, String> {
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn read(what: &str, path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|error| {
        let message = format!("{what} {} cannot be read: {error}", path.display());
        Error::new(ErrorKind::Configuration, message).with_source(error)
    })
}

fn add_bundle(roots: &mut RootCertStore, path: &Path) -> Result<(), Error> {
    const WHAT: &str = "CA bundle";
    let pem = read(WHAT, path)?;
    let refuse =
        |why: String| Error::new(ErrorKind::Configuration, format!("{WHAT} {}: {why}", path.display()));
    let certificates = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let certificates = certificates.map_err(|error| refuse(format!("it cannot be read as PEM: {error}")))?;
    // Bundles collected over the years hold certificates that this library cannot use: the others count.
    let (added, skipped) = roots.add_parsable_certificates(certificates);
    match (added, skipped) {
        (0, 0) => Err(refuse("there is no certificate in it: a PEM file is needed".to_owned())),
        (0, skipped) => Err(refuse(format!("none of its {skipped} certificates can be used"))),
        _ => Ok(()),
    }
}

fn read_identity(path: &Path) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Error> {
    const WHAT: &str = "client certificate";
    let pem = read(WHAT, path)?;
    // The PEM reader's own messages may quote what they stumble on, and this file holds a key: none is passed on.
    let refuse =
        |why: &str| Error::new(ErrorKind::Configuration, format!("{WHAT} {}: {why}", path.display()));
    let chain = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|_| refuse("its certificates cannot be read as PEM"))?;
    if chain.is_empty() {
        return Err(refuse("there is no certificate in it: the chain and the key go into one PEM file"));
    }
    let key = PrivateKeyDer::from_pem_slice(&pem)
        .map_err(|_| refuse("there is no private key in it: the chain and the key go into one PEM file"))?;
    Ok((chain, key))
}

/// What a person can do about a handshake that failed; none where the error is of another kind.
pub(crate) fn way_out(error: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    match find(error)? {
        rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => Some(
            "who signed its certificate is not trusted: name a PEM file with that authority as the CA bundle \
             (option or GATEWRIGHT_CA_BUNDLE)",
        ),
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => Some("its certificate is for another host: check the base URL"),
        rustls::Error::AlertReceived(
            rustls::AlertDescription::CertificateRequired
            | rustls::AlertDescription::BadCertificate
            | rustls::AlertDescription::UnknownCA
            | rustls::AlertDescription::CertificateUnknown
            | rustls::AlertDescription::AccessDenied,
        ) => Some("it asks for a client certificate that it trusts: give one (PEM, chain and key)"),
        _ => None,
    }
}

/// The TLS library's error among the causes of another.
fn find<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a rustls::Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // An I/O error hides what it wraps from the chain of sources.
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        cause = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    None
}
