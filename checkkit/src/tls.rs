//! TLS for the kit, over HTTP/1.1: trusts the same roots as the client.

use std::path::Path;
use std::sync::Arc;

use rustls::ClientConfig;

/// Errors: the file cannot be read or holds no certificate, or the TLS library refuses to start.
pub(crate) fn client_config(ca_bundle: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let roots = gatewright_trust::roots(ca_bundle).map_err(|error| {
        format!("the CA bundle {} cannot be used: {error}", ca_bundle.unwrap_or(Path::new("")).display())
    })?;
    Ok(Arc::new(gatewright_trust::client()?.with_root_certificates(roots).with_no_client_auth()))
}
