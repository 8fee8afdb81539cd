//! TLS of the client: rustls with ring, trusting the platform's roots and the bundled ones together.

use std::sync::{Arc, LazyLock};

use rustls::{ClientConfig, RootCertStore};

use crate::error::{Error, ErrorKind};

/// Shared by all clients of the process: reading the platform's roots takes some milliseconds.
static WITH_ROOTS: LazyLock<Result<ClientConfig, String>> = LazyLock::new(|| {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    // A machine without readable roots of its own still has the bundled ones; single unreadable ones are skipped.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    config(roots)
});

/// For clients that only talk plain HTTP: trusts nobody and reads nothing.
static WITHOUT_ROOTS: LazyLock<Result<ClientConfig, String>> =
    LazyLock::new(|| config(RootCertStore::empty()));

/// The configuration for a base URL of either scheme. Errors: the TLS library refuses to start (Configuration).
pub(crate) fn client_config(is_https: bool) -> Result<ClientConfig, Error> {
    let config = if is_https { &*WITH_ROOTS } else { &*WITHOUT_ROOTS };
    config.clone().map_err(|message| Error::new(ErrorKind::Configuration, message))
}

fn config(roots: RootCertStore) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
