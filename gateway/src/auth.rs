//! The API key (section 5): where it may come from, how it is compared, how a request without it is refused.
//!
//! Beside the `Authorization` header of the specification, the native protocol's `x-goog-api-key` header and `key`
//! query parameter are taken (ours: its clients send no other).

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use gatewright::ErrorCode;
use http::{HeaderMap, header};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::error::ApiError;

/// Header of the native protocol that carries the key.
pub(crate) const NATIVE_KEY_HEADER: &str = "x-goog-api-key";
/// Query parameter of the native protocol that carries the key.
pub(crate) const KEY_PARAMETER: &str = "key";

/// Whether a request is one of the native protocol's clients, whatever its path: its key comes their way alone.
pub(crate) fn is_native(headers: &HeaderMap) -> bool {
    headers.contains_key(NATIVE_KEY_HEADER) && !headers.contains_key(header::AUTHORIZATION)
}

/// An API key. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Takes a key as it is. Errors: it is empty or holds anything but visible ASCII, which no header could carry.
    pub fn new(key: impl Into<String>) -> Result<Self, InvalidKey> {
        let key = key.into();
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidKey);
        }
        Ok(Self(key))
    }

    /// A new random key of 256 bits.
    pub(crate) fn random() -> Self {
        Self(format!("gw-{}", BASE64_URL_SAFE_NO_PAD.encode(random_bytes())))
    }

    /// The key itself, to be shown to its owner alone.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiKey(redacted)")
    }
}

/// A key was empty or held something else than visible ASCII. Does not quote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an API key must be one or more visible ASCII characters")]
pub struct InvalidKey;

/// Compares keys by their digests under a random pepper, in constant time.
pub(crate) struct Gatekeeper {
    pepper: hmac::Key,
    digest: hmac::Tag,
}

impl Gatekeeper {
    pub(crate) fn new(key: &ApiKey) -> Self {
        let pepper = hmac::Key::new(hmac::HMAC_SHA256, &random_bytes());
        let digest = hmac::sign(&pepper, key.0.as_bytes());
        Self { pepper, digest }
    }

    /// Lets a request in or says why not. Takes the key out of headers and query, so that nothing further on can log
    /// it or pass it on.
    pub(crate) fn admit(
        &self,
        headers: &mut HeaderMap,
        query: &mut Vec<(String, String)>,
    ) -> Result<(), ApiError> {
        let bearer = headers.remove(header::AUTHORIZATION);
        let native = headers.remove(NATIVE_KEY_HEADER);
        let parameter = query.iter().position(|(name, _)| name == KEY_PARAMETER).map(|at| query.remove(at).1);
        let presented = match (&bearer, &native, &parameter) {
            (Some(value), ..) => {
                let value = value.as_bytes();
                let (scheme, key) = value.split_at(value.len().min("Bearer ".len()));
                if !scheme.eq_ignore_ascii_case(b"Bearer ") {
                    return Err(ApiError::new(
                        &ErrorCode::INVALID_API_KEY,
                        "the Authorization header must have the form \"Bearer <API_KEY>\" (5)",
                    ));
                }
                key.trim_ascii()
            }
            (None, Some(value), _) => value.as_bytes(),
            (None, None, Some(value)) => value.as_bytes(),
            (None, None, None) => b"",
        };
        if presented.is_empty() {
            return Err(ApiError::new(
                &ErrorCode::MISSING_API_KEY,
                "no API key was sent; send the header \"Authorization: Bearer <API_KEY>\" (5)",
            ));
        }
        hmac::verify(&self.pepper, presented, self.digest.as_ref()).map_err(|_| {
            // Clients look for the first words.
            ApiError::new(
                &ErrorCode::INVALID_API_KEY,
                "Incorrect API key provided: it is not one of this gateway (5)",
            )
        })
    }
}

/// 256 bits from the system.
pub(crate) fn random_bytes() -> [u8; 32] {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).expect("the system has a source of random numbers");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_never_shows_in_debug_output() {
        let key = ApiKey::new("gw-canary").expect("visible ASCII");
        assert!(!format!("{key:?}").contains("canary"));
    }

    #[test]
    fn random_keys_differ_and_have_256_bits() {
        let (one, other) = (ApiKey::random(), ApiKey::random());
        assert_ne!(one.expose(), other.expose());
        assert_eq!(one.expose().len(), "gw-".len() + 43);
    }
}
