//! TLS of the kit: rustls with ring over HTTP/1.1, trusting the platform's roots, the bundled ones, and those of a
//! file that the caller names.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// Errors: the file cannot be read or holds no certificate, or the TLS library refuses to start.
pub(crate) fn client_config(ca_bundle: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    // A machine without readable roots of its own still has the bundled ones; single unreadable ones are skipped.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_bundle {
        let refuse = |why: String| format!("the CA bundle {} cannot be used: {why}", path.display());
        let certificates = CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| refuse(error.to_string()))?;
        if roots.add_parsable_certificates(certificates).0 == 0 {
            return Err(refuse("it holds no certificate".to_owned()));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
