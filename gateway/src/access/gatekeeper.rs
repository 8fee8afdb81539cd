//! Checks the API key (section 5): finds it in the request, compares it, and refuses requests without it.
//!
//! Accepts the `Authorization` header of the specification, and the `x-goog-api-key` header and `key` query parameter of
//! the native protocol (ours: native clients send nothing else).

use gatewright::{ApiKey, ErrorCode};
use http::{HeaderMap, header};
use ring::hmac;

use crate::random::random_bytes;
use crate::wire::ApiError;

/// Header of the native protocol that carries the key.
pub(crate) const NATIVE_KEY_HEADER: &str = "x-goog-api-key";
/// Query parameter of the native protocol that carries the key.
pub(crate) const KEY_PARAMETER: &str = "key";

/// Whether a request comes from a native client, whatever its path: only native clients send the key this way.
pub(crate) fn is_native(headers: &HeaderMap) -> bool {
    headers.contains_key(NATIVE_KEY_HEADER) && !headers.contains_key(header::AUTHORIZATION)
}

/// Compares digests of keys with a random pepper, in constant time.
pub(crate) struct Gatekeeper {
    pepper: hmac::Key,
    digest: hmac::Tag,
}

impl Gatekeeper {
    pub(crate) fn new(key: &ApiKey) -> Self {
        let pepper = hmac::Key::new(hmac::HMAC_SHA256, &random_bytes());
        let digest = hmac::sign(&pepper, key.expose().as_bytes());
        Self { pepper, digest }
    }

    /// Admits or refuses a request. Removes the key from the headers and the query, so that later code cannot log it
    /// or pass it on.
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
                        "the Authorization header must have the form \"Bearer <API_KEY>\"",
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
                "no API key was sent; send the header \"Authorization: Bearer <API_KEY>\"",
            ));
        }
        hmac::verify(&self.pepper, presented, self.digest.as_ref()).map_err(|_| {
            // Clients match on the first words.
            ApiError::new(
                &ErrorCode::INVALID_API_KEY,
                "Incorrect API key provided: it is not one of this gateway",
            )
        })
    }
}
