//! Secrets: the API key in a type that does not show it, where it comes from, and what else must not be shown.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue};
use url::Url;

use crate::error::{Error, ErrorKind};

/// An API key. Neither `Debug` nor any error shows it.
#[derive(Clone)]
pub(crate) struct ApiKey {
    /// Marked sensitive, so that the transport's own logs redact it, too.
    authorization: HeaderValue,
}

impl ApiKey {
    /// Errors: the key is empty, or holds what no header can carry. The message does not quote it.
    pub(crate) fn new(key: &str) -> Result<Self, Error> {
        let key = key.trim();
        if key.is_empty() {
            return Err(Error::new(ErrorKind::Configuration, "the API key is empty"));
        }
        let refuse = || {
            let message = "the API key holds characters other than printable ASCII";
            Error::new(ErrorKind::Configuration, message)
        };
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(refuse());
        }
        let mut authorization = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| refuse())?;
        authorization.set_sensitive(true);
        Ok(Self { authorization })
    }

    /// The value of the `Authorization` header (section 5).
    pub(crate) fn authorization(&self) -> HeaderValue {
        self.authorization.clone()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Where a client gets its key from when it is not one text for good: a file that rotates, a vault, a token service.
///
/// It is asked once per call; keeping the key between calls is its own affair. A function of this form is one, too.
pub trait ApiKeyProvider: Send + Sync {
    /// The key. `refresh`: the gateway has just refused the one given before (401), so that a new one is needed; it
    /// is asked so at most once per call, and the call is then tried once more.
    ///
    /// Errors: the call fails with it. One that is neither Configuration nor Authentication becomes the source of an
    /// Authentication error.
    fn api_key(&self, refresh: bool) -> BoxFuture<'_, Result<String, Error>>;
}

impl<F> ApiKeyProvider for F
where
    F: Fn(bool) -> BoxFuture<'static, Result<String, Error>> + Send + Sync,
{
    fn api_key(&self, refresh: bool) -> BoxFuture<'_, Result<String, Error>> {
        self(refresh)
    }
}

/// One key, or somebody to ask for it.
#[derive(Clone)]
pub(crate) enum KeySource {
    Fixed(ApiKey),
    Provider(Arc<dyn ApiKeyProvider>),
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fixed(_) => "[redacted]",
            Self::Provider(_) => "[provider]",
        })
    }
}

/// Asks a provider for the key.
pub(crate) async fn provided(provider: &dyn ApiKeyProvider, refresh: bool) -> Result<ApiKey, Error> {
    match provider.api_key(refresh).await {
        Ok(key) => ApiKey::new(&key),
        Err(error) if matches!(error.kind(), ErrorKind::Configuration | ErrorKind::Authentication) => {
            Err(error)
        }
        Err(error) => {
            let message = format!("the API key provider failed: {}", error.message());
            Err(Error::new(ErrorKind::Authentication, message).with_source(error))
        }
    }
}

/// Shown instead of a secret.
pub(crate) const REDACTED: &str = "[redacted]";
/// The same where brackets would be escaped.
const REDACTED_IN_URL: &str = "redacted";

/// Whether the value of a header or query parameter of this name is taken for a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words = ["auth", "cookie", "credential", "passw", "secret", "signature", "token"];
    words.iter().any(|word| name.contains(word)) || (name.ends_with("key") && name != "idempotency-key")
}

/// Headers as they may be shown.
pub(crate) struct RedactedHeaders<'a>(pub(crate) &'a HeaderMap);

impl fmt::Debug for RedactedHeaders<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.iter().map(|(name, value)| {
            let is_secret = value.is_sensitive() || is_secret_name(name.as_str());
            let value = if is_secret { REDACTED.into() } else { String::from_utf8_lossy(value.as_bytes()) };
            (name.as_str(), value)
        });
        f.debug_map().entries(shown).finish()
    }
}

/// An address as it may be shown: without the values of secret query parameters, without user and password.
pub(crate) fn redacted_url(url: &Url) -> String {
    let mut shown = url.clone();
    if !url.username().is_empty() || url.password().is_some() {
        // Neither fails for a URL that has them.
        let _ = shown.set_username(REDACTED_IN_URL);
        let _ = shown.set_password(None);
    }
    if url.query().is_some_and(|_| url.query_pairs().any(|(name, _)| is_secret_name(&name))) {
        let pairs = url.query_pairs().map(|(name, value)| {
            let value = if is_secret_name(&name) { REDACTED_IN_URL.into() } else { value };
            (name, value)
        });
        shown.query_pairs_mut().clear().extend_pairs(pairs);
    }
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_not_shown() {
        let key = ApiKey::new("sk-canary").expect("a key");
        assert_eq!(format!("{key:?}"), "[redacted]");
        assert!(!format!("{:?}", key.authorization()).contains("canary"));
        assert_eq!(key.authorization(), "Bearer sk-canary");
    }

    #[test]
    fn a_key_no_header_can_carry_is_refused_without_quoting_it() {
        for text in ["", "  ", "sk canary", "sk-canary\nx", "sk-canäry"] {
            let error = ApiKey::new(text).expect_err(text);
            assert_eq!(error.kind(), ErrorKind::Configuration);
            assert!(!error.to_string().contains("sk"), "{error}");
        }
    }
}
