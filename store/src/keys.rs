//! API keys: who a key was issued to, its scopes and its limits. Independent of where keys are stored.

mod digest;
mod issued;
mod limits;
mod scopes;

use serde::{Deserialize, Deserializer};

pub use self::digest::Digest;
pub use self::issued::{ADMIN_KEY, CONFIGURED_KEY, IssuedKey, Key, KeyUpdate, NewKey, Rotation, random_key};
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

/// Reads null as the default: a member that may be left out may be null.
pub fn null_is_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
