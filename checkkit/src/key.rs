//! The API key, in a type that does not show it.

use std::fmt;

use http::HeaderValue;

/// Most characters of a key: what the redaction of evidence can look ahead.
const MAX_KEY_CHARS: usize = 4096;

/// The key that the kit's requests carry. `Debug` does not show it, and no report, evidence or message holds it.
#[derive(Clone)]
pub struct ApiKey(String);

impl ApiKey {
    /// Takes a key, without white space around it.
    ///
    /// Errors: it is empty, too long, or holds what no header can carry; the message does not quote it.
    pub fn new(key: &str) -> Result<Self, String> {
        let key = key.trim();
        if key.is_empty() {
            return Err("the API key is empty".to_owned());
        }
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("the API key holds characters other than printable ASCII".to_owned());
        }
        if key.len() > MAX_KEY_CHARS {
            return Err(format!("the API key is longer than {MAX_KEY_CHARS} characters"));
        }
        Ok(Self(key.to_owned()))
    }

    /// The value of the `Authorization` header (section 5).
    pub(crate) fn authorization(&self) -> HeaderValue {
        let mut value =
            HeaderValue::try_from(format!("Bearer {}", self.0)).expect("printable ASCII is a header's value");
        value.set_sensitive(true);
        value
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
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
    fn key_is_not_shown() {
        let key = ApiKey::new(" sk-canary\n").expect("a key");
        assert_eq!(format!("{key:?}"), "[redacted]");
        assert!(!format!("{:?}", key.authorization()).contains("canary"));
        assert_eq!(key.authorization(), "Bearer sk-canary");
    }

    #[test]
    fn key_no_header_can_carry_is_refused_without_quoting_it() {
        for text in ["", "  ", "sk canary", "sk-\u{0}canary", "sk-canäry", &"sk".repeat(3000)] {
            let error = ApiKey::new(text).expect_err("refused");
            assert!(!error.contains("sk"), "{error}");
        }
    }
}
