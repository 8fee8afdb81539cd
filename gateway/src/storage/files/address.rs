//! Signed URLs of files: every gateway with the same key can verify them, and neither signing nor verifying needs a
//! lookup.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use gatewright::ErrorCode;
use gatewright_store::{FileName, StoredFile};
use gatewright_system::clock::unix_seconds;
use ring::hmac;

use super::PREFIX;
use crate::wire::ApiError;

/// Signs the URLs.
pub(super) struct Signer(hmac::Key);

impl Signer {
    pub(super) fn new(key: hmac::Key) -> Self {
        Self(key)
    }

    /// Path and query of a file.
    pub(super) fn address(&self, StoredFile { name, expires }: &StoredFile) -> String {
        let signature = hmac::sign(&self.0, signed_text(name.as_str(), *expires).as_bytes());
        format!("{PREFIX}{name}?exp={expires}&sig={}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }

    /// The file of a URL, by its name and query. Errors: the signature is invalid, or the file has expired.
    pub(super) fn read(&self, name: &str, query: &[(String, String)]) -> Result<FileName, ApiError> {
        let parameter = |name| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let unsigned =
            || ApiError::new(&ErrorCode::INVALID_SIGNATURE, "the signature of this file URL is not valid");
        let expires: u64 = parameter("exp").and_then(|value| value.parse().ok()).ok_or_else(unsigned)?;
        let signature = parameter("sig")
            .and_then(|value| BASE64_URL_SAFE_NO_PAD.decode(value).ok())
            .ok_or_else(unsigned)?;
        // The signature covers the name, so this rejects every name that was never issued, including dots and slashes.
        hmac::verify(&self.0, signed_text(name, expires).as_bytes(), &signature).map_err(|_| unsigned())?;
        if expires <= unix_seconds() {
            return Err(ApiError::new(&ErrorCode::FILE_EXPIRED, "the URL of this file has expired"));
        }
        name.parse().map_err(|_| unsigned())
    }
}

fn signed_text(name: &str, expires: u64) -> String {
    format!("{name}\n{expires}")
}
