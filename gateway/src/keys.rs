//! What a key is: who it was issued to, what it may do and how much. Independent of where keys are stored.

mod digest;
mod issued;
mod limits;
mod scopes;

pub(crate) use self::digest::Digest;
pub(crate) use self::issued::{CONFIGURED_KEY, random_key};
pub use self::issued::{IssuedKey, Key, NewKey, Rotation};
pub use self::limits::KeyLimits;
pub use self::scopes::Scopes;

/// An invalid member of a key. The text names the member and what it must be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{member}: {message}")]
pub struct InvalidMember {
    /// As in the JSON format: `limits.requests_per_minute`.
    pub member: &'static str,
    /// What is wrong with it.
    pub message: String,
}

impl InvalidMember {
    fn new(member: &'static str, message: impl Into<String>) -> Self {
        Self { member, message: message.into() }
    }
}
