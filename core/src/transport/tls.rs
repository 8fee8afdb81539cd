//! TLS of the client. The crate `gatewright-trust` decides whom it trusts; this file sets the certificate that it
//! presents.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use gatewright_trust::BundleError;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{CertificateError, ClientConfig, RootCertStore};

use crate::wire::error::{Error, ErrorKind};

/// For clients without TLS options of their own.
static WITH_ROOTS: LazyLock<Result<ClientConfig, String>> = LazyLock::new(|| {
    finish(gatewright_trust::client()?.with_root_certificates(default_roots()?).with_no_client_auth())
});

/// For clients that use only plain HTTP: trusts no certificate and reads no files.
static WITHOUT_ROOTS: LazyLock<Result<ClientConfig, String>> = LazyLock::new(|| {
    finish(gatewright_trust::client()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
});

/// Whom a client trusts, and the certificate that it presents. `Debug` shows neither the key nor the hundreds of roots.
#[derive(Clone, Default)]
pub(crate) struct Tls {
    /// None if there is nothing beyond the defaults.
    own: Option<ClientConfig>,
}

impl Tls {
    /// Reads the files now, so that a wrong path is reported when the client is built.
    ///
    /// ca_bundle: certificates to trust in addition to the platform's and the bundled ones. client_certificate: the
    /// chain and the private key to present to servers that ask. Both are PEM.
    ///
    /// Errors (Configuration): a file cannot be read or does not hold what it should.
    pub(crate) fn new(ca_bundle: Option<&Path>, client_certificate: Option<PathBuf>) -> Result<Self, Error> {
        if ca_bundle.is_none() && client_certificate.is_none() {
            return Ok(Self::default());
        }
        let roots = roots(ca_bundle)?;
        let builder = gatewright_trust::client().map_err(refused)?.with_root_certificates(roots);
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

    /// The TLS configuration. uses_tls: whether any of the connections uses TLS.
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

fn default_roots() -> Result<RootCertStore, String> {
    gatewright_trust::roots(None).map_err(|error| error.to_string())
}

#[expect(clippy::unnecessary_wraps, reason = "ends chains that may fail before")]
fn finish(mut config: ClientConfig) -> Result<ClientConfig, String> {
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn unreadable(what: &str, file: &impl fmt::Display, error: std::io::Error) -> Error {
    let message = format!("{what} {file} cannot be read: {error}");
    Error::new(ErrorKind::Configuration, message).with_source(error)
}

fn roots(ca_bundle: Option<&Path>) -> Result<RootCertStore, Error> {
    gatewright_trust::roots(ca_bundle).map_err(|error| {
        let file = ca_bundle.unwrap_or(Path::new("")).display();
        match error {
            BundleError::Unreadable(error) => unreadable("CA bundle", &file, error),
            other => refused(format!("CA bundle {file}: {other}")),
        }
    })
}

fn read_identity(path: &Path) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Error> {
    const WHAT: &str = "client certificate";
    let pem = std::fs::read(path).map_err(|error| unreadable(WHAT, &path.display(), error))?;
    // The PEM parser's messages may quote the file's content, and this file holds a key: none of them is passed on.
    let refuse =
        |why: &str| Error::new(ErrorKind::Configuration, format!("{WHAT} {}: {why}", path.display()));
    let chain = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|_| refuse("its certificates cannot be read as PEM"))?;
    if chain.is_empty() {
        return Err(refuse("there is no certificate in it: put the chain and the key in one PEM file"));
    }
    let key = PrivateKeyDer::from_pem_slice(&pem)
        .map_err(|_| refuse("there is no private key in it: put the chain and the key in one PEM file"))?;
    Ok((chain, key))
}

/// What a person can do about a failed handshake; none if the error is of another kind.
pub(crate) fn way_out(error: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    match find(error)? {
        rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => Some(
            "the authority that signed its certificate is not trusted: set the CA bundle (option or GATEWRIGHT_CA_BUNDLE) to \
                a PEM file with that authority",
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
        ) => Some("it requires a client certificate that it trusts: set one (PEM, chain and key)"),
        _ => None,
    }
}

/// Finds the TLS library's error among the causes of another error.
fn find<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a rustls::Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // An I/O error does not expose what it wraps in the chain of sources.
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        cause = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    None
}
