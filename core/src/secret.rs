//! The API key, in a type that does not show it.

use std::fmt;

use http::HeaderValue;

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
