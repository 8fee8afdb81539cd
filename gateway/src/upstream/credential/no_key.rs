//! Why there is no key.

use std::time::Duration;

/// Longest time in which a source gives a key.
pub(super) const MAX_TIME: Duration = Duration::from_secs(30);
/// Maximum size of a key, in bytes.
pub(super) const MAX_KEY_BYTES: usize = 16 * 1024;

/// Why there is no key, as clients learn it. What a variant holds is for the log alone: it names files and hosts. Neither quotes
/// what a program printed, a file holds or a token server sent as a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::upstream) enum NoKey {
    #[error("the program that prints its key did not start")]
    NotStarted,
    #[error("its key did not come within {MAX_TIME:?}")]
    TooLong,
    #[error("the program that prints its key failed")]
    Failed,
    #[error(
        "the program that prints its key printed no key: a line of visible ASCII of at most {MAX_KEY_BYTES} bytes"
    )]
    NotAKey,
    #[error("the file with its key cannot be used; the log of the gateway says why")]
    File(String),
    #[error("its credentials cannot be used; the log of the gateway says why")]
    Credentials(String),
    #[error("the token server gave no access token; the log of the gateway says why")]
    NoToken(String),
}

impl NoKey {
    /// The whole reason, for operators.
    pub(super) fn detail(&self) -> String {
        match self {
            Self::File(detail) | Self::Credentials(detail) | Self::NoToken(detail) => detail.clone(),
            _ => self.to_string(),
        }
    }
}

/// A key, without the line break behind it. `None`: it is none.
pub(super) fn key_in(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    let key = text.trim_end_matches(['\r', '\n']);
    let is_key =
        !key.is_empty() && key.len() <= MAX_KEY_BYTES && key.bytes().all(|byte| byte.is_ascii_graphic());
    is_key.then(|| key.to_owned())
}
