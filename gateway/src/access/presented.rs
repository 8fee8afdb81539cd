//! The key in a request (section 5).
//!
//! Accepts the `Authorization` header of the specification, and what clients of other protocols send instead (ours): the
//! header and the query parameter of each protocol's `HttpBinding`.

use gatewright::ErrorCode;
use gatewright_protocol::HttpBinding;
use gatewright_protocol::conversation::Protocol;
use http::{HeaderMap, HeaderValue, header};

use crate::wire::ApiError;

/// Whether a request comes from a native client, whatever its path: only native clients send the key this way.
pub(crate) fn is_native(headers: &HeaderMap) -> bool {
    let own = Protocol::Native.binding().key_header;
    own.is_some_and(|own| headers.contains_key(own)) && !headers.contains_key(header::AUTHORIZATION)
}

/// How the protocols of clients use HTTP.
fn bindings() -> impl Iterator<Item = &'static HttpBinding> {
    Protocol::OF_CLIENTS.into_iter().map(Protocol::binding)
}

/// The key of a request, removed from it so that later code can't log it or pass it on.
pub(super) struct PresentedKey {
    bearer: Option<HeaderValue>,
    other: Option<HeaderValue>,
    parameter: Option<String>,
}

impl PresentedKey {
    pub(super) fn take(headers: &mut HeaderMap, query: &mut Vec<(String, String)>) -> Self {
        let (mut other, mut parameter) = (None, None);
        for binding in bindings() {
            if let Some(name) = binding.key_header {
                // Each is removed; the last protocol's counts.
                other = headers.remove(name).or(other);
            }
        }
        query.retain_mut(|(name, value)| {
            let is_key = bindings().any(|binding| binding.key_parameter == Some(name.as_str()));
            if is_key && parameter.is_none() {
                parameter = Some(std::mem::take(value));
            }
            !is_key
        });
        Self { bearer: headers.remove(header::AUTHORIZATION), other, parameter }
    }

    /// Whether the key is in the query, from where it may end up in logs.
    pub(super) fn is_in_query(&self) -> bool {
        self.bearer.is_none() && self.other.is_none() && self.parameter.is_some()
    }

    /// Errors: the request has no key, or an `Authorization` header in another format.
    pub(super) fn key(&self) -> Result<&[u8], ApiError> {
        let key = match (&self.bearer, &self.other, &self.parameter) {
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
        if key.is_empty() {
            return Err(ApiError::new(
                &ErrorCode::MISSING_API_KEY,
                "no API key was sent; send the header \"Authorization: Bearer <API_KEY>\"",
            ));
        }
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_removed_from_the_request() {
        let mut headers = HeaderMap::new();
        for name in ["authorization", "x-goog-api-key", "x-api-key"] {
            headers.append(name, HeaderValue::from_static("Bearer one"));
            headers.append(name, HeaderValue::from_static("Bearer other"));
        }
        headers.insert("accept", HeaderValue::from_static("*/*"));
        let parameter = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut query = vec![parameter("key", "a"), parameter("alt", "sse"), parameter("key", "b")];
        let presented = PresentedKey::take(&mut headers, &mut query);
        assert_eq!(presented.key().ok(), Some(&b"one"[..]));
        assert_eq!((headers.len(), query), (1, vec![parameter("alt", "sse")]));
    }
}
