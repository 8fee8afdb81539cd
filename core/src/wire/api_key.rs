//! The API key, in a type that does not show it. Clients, gateways and the check kit use it.

use std::fmt;

use http::HeaderValue;

/// An API key: visible ASCII. `Debug` does not show it.
///
/// ```
/// use gatewright::ApiKey;
///
/// let key = ApiKey::trimmed("my-key\n")?;
/// assert_eq!(key.expose(), "my-key");
/// assert_eq!(format!("{key:?}"), "[redacted]");
/// # Ok::<(), gatewright::InvalidKey>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// Why a text is not an API key. Does not quote the text.
///
/// ```
/// use gatewright::{ApiKey, InvalidKey};
///
/// assert_eq!(ApiKey::new("").unwrap_err(), InvalidKey::Empty);
/// assert_eq!(ApiKey::new("my key").unwrap_err(), InvalidKey::Characters);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidKey {
    /// The text is empty.
    Empty,
    /// The text contains characters that a header cannot carry.
    Characters,
}

impl fmt::Display for InvalidKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Empty => "the API key is empty",
            Self::Characters => "the API key contains characters other than printable ASCII",
        })
    }
}

impl std::error::Error for InvalidKey {}

impl ApiKey {
    /// Takes a key as it is. Errors: it is empty or contains characters that a header cannot carry.
    ///
    /// ```
    /// use gatewright::ApiKey;
    ///
    /// assert_eq!(ApiKey::new("my-key")?.expose(), "my-key");
    /// assert!(ApiKey::new("my-key\n").is_err());
    /// # Ok::<(), gatewright::InvalidKey>(())
    /// ```
    pub fn new(key: impl Into<String>) -> Result<Self, InvalidKey> {
        let key = key.into();
        if key.is_empty() {
            return Err(InvalidKey::Empty);
        }
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidKey::Characters);
        }
        Ok(Self(key))
    }

    /// Takes a key without surrounding white space, such as the newline that editors append. Errors: those of
    /// [`ApiKey::new`].
    ///
    /// ```
    /// let key = gatewright::ApiKey::trimmed("  my-key\n")?;
    /// assert_eq!(key.expose(), "my-key");
    /// # Ok::<(), gatewright::InvalidKey>(())
    /// ```
    pub fn trimmed(key: &str) -> Result<Self, InvalidKey> {
        Self::new(key.trim())
    }

    /// The key itself. Show it only to its owner.
    ///
    /// ```
    /// let key = gatewright::ApiKey::new("my-key")?;
    /// assert_eq!(format!("{key:?} is {}", key.expose()), "[redacted] is my-key");
    /// # Ok::<(), gatewright::InvalidKey>(())
    /// ```
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The value of the `Authorization` header, marked sensitive so that the transport's own logs redact it too.
    #[doc(hidden)]
    pub fn authorization(&self) -> HeaderValue {
        let mut value =
            HeaderValue::try_from(format!("Bearer {}", self.0)).expect("visible ASCII is a header's value");
        value.set_sensitive(true);
        value
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_redacted_in_debug_output() {
        let key = ApiKey::trimmed(" sk-canary\n").expect("a key");
        assert_eq!(format!("{key:?}"), "[redacted]");
        assert!(!format!("{:?}", key.authorization()).contains("canary"));
        assert_eq!(key.authorization(), "Bearer sk-canary");
    }

    #[test]
    fn key_invalid_in_a_header_is_rejected_without_quoting_it() {
        for text in ["", "  ", "sk canary", "sk-\u{0}canary", "sk-canäry"] {
            let error = ApiKey::trimmed(text).expect_err("rejected").to_string();
            assert!(!error.contains("sk"), "{error}");
        }
        assert_eq!(ApiKey::new(" sk "), Err(InvalidKey::Characters), "as it is");
    }
}
