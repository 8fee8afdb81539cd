//! Why there is no key.

use std::time::Duration;

/// Maximum time for a source to provide a key.
pub(super) const MAX_TIME: Duration = Duration::from_secs(30);
/// Maximum size of a key, in bytes.
pub(super) const MAX_KEY_BYTES: usize = 16 * 1024;

/// Why there is no key, as reported to clients. The fields of a variant are only for the log: they name files and hosts. Neither
/// message nor fields quote what a program printed, what a file contains, or what a token server sent as a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::upstream) enum NoKey {
    #[error("the program that prints its key did not start")]
    NotStarted,
    #[error("its key did not arrive within {MAX_TIME:?}")]
    TooLong,
    #[error("the program that prints its key failed")]
    Failed,
    #[error(
        "the program that prints its key printed no key: it must be a line of visible ASCII of at most {MAX_KEY_BYTES} bytes"
    )]
    NotAKey,
    #[error("the file with its key cannot be used; see the gateway's log")]
    File(String),
    #[error("its credentials cannot be used; see the gateway's log")]
    Credentials(String),
    #[error("the token server returned no access token; see the gateway's log")]
    NoToken(String),
}

impl NoKey {
    /// The full reason, for operators.
    pub(super) fn detail(&self) -> String {
        match self {
            Self::File(detail) | Self::Credentials(detail) | Self::NoToken(detail) => detail.clone(),
            _ => self.to_string(),
        }
    }
}

/// A key, without its trailing line break. `None`: it isn't valid.
pub(super) fn key_in(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    let key = text.trim_end_matches(['\r', '\n']);
    let is_key =
        !key.is_empty() && key.len() <= MAX_KEY_BYTES && key.bytes().all(|byte| byte.is_ascii_graphic());
    is_key.then(|| key.to_owned())
}
