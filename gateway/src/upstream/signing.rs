//! Signs requests by AWS Signature Version 4.

use std::fmt;
use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use aws_smithy_runtime_api::client::identity::Identity;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, header};

/// Signs requests with one set of credentials, for one service of one region.
pub(super) struct RequestSigner {
    identity: Identity,
    region: String,
    service: String,
}

/// Why a request cannot be signed. Never quotes a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum SigningError {
    #[error("a signed header is not visible ASCII")]
    Header,
    #[error("the address of the request cannot be signed")]
    Address,
}

/// Without the credentials.
impl fmt::Debug for RequestSigner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RequestSigner")
            .field("region", &self.region)
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}

impl RequestSigner {
    pub(super) fn new(credentials: Credentials, region: &str, service: &str) -> Self {
        Self { identity: credentials.into(), region: region.to_owned(), service: service.to_owned() }
    }

    /// Adds the signature, the time and the session token to the headers of a request.
    pub(super) fn sign(
        &self,
        request: &mut http::Request<Bytes>,
        now: SystemTime,
    ) -> Result<(), SigningError> {
        let params = SigningParams::builder()
            .identity(&self.identity)
            .region(&self.region)
            .name(&self.service)
            .time(now)
            // The defaults encode each segment of the path twice, as every service but S3 expects.
            .settings(SigningSettings::default())
            .build()
            .map_err(|_| SigningError::Address)?
            .into();
        let mut signed_headers = Vec::new();
        for (name, value) in request.headers() {
            if is_signed(name) {
                signed_headers.push((name.as_str(), value.to_str().map_err(|_| SigningError::Header)?));
            }
        }
        let address = request.uri().to_string();
        let signable = SignableRequest::new(
            request.method().as_str(),
            address,
            signed_headers.into_iter(),
            SignableBody::Bytes(request.body()),
        )
        .map_err(|_| SigningError::Address)?;
        let (instructions, _) = sign(signable, &params).map_err(|_| SigningError::Address)?.into_parts();
        for (name, text) in instructions.headers() {
            let name = HeaderName::try_from(name).map_err(|_| SigningError::Header)?;
            let mut value = HeaderValue::try_from(text).map_err(|_| SigningError::Header)?;
            value.set_sensitive(name != "x-amz-date");
            request.headers_mut().insert(name, value);
        }
        Ok(())
    }
}

/// Whether the signature covers a header: what a proxy on the way may change is left out.
fn is_signed(name: &HeaderName) -> bool {
    name == header::HOST || name == header::CONTENT_TYPE || name.as_str().starts_with("x-amz-")
}

#[cfg(test)]
mod tests;
