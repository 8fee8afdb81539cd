//! A key as it is issued, kept and shown.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use gatewright::ApiKey;
use serde::{Deserialize, Serialize, Serializer};
use uuid::Uuid;

use super::{InvalidMember, KeyLimits, Scopes};
use crate::random::random_bytes;

/// Maximum length of a name, in bytes.
const LONGEST_NAME: usize = 100;
/// Latest time of an expiry: the end of the year 9999, which every date format can write.
const LATEST: u64 = 253_402_300_799;

/// The name of the configuration's key in usage, logs and metrics. No other key may have it.
pub(crate) const CONFIGURED_KEY: &str = "default";

/// What a new key is to be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct NewKey {
    /// Whom or what it is for; unique among the keys that are not revoked.
    pub name: String,
    /// What it may do. Default: everything.
    #[serde(default)]
    pub scopes: Scopes,
    /// How much it may do. Default: no limit.
    #[serde(default)]
    pub limits: KeyLimits,
    /// When it expires, in seconds since 1970. Default: never.
    #[serde(default)]
    pub expires: Option<u64>,
}

impl NewKey {
    /// A key that may do everything, without limits.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Errors: a member breaks its rule.
    pub(crate) fn check(&self, now: u64) -> Result<(), InvalidMember> {
        let fits = (1..=LONGEST_NAME).contains(&self.name.len());
        if !fits || self.name.trim() != self.name || self.name.contains(char::is_control) {
            let message = format!(
                "must have 1 to {LONGEST_NAME} bytes, no control characters and no leading or trailing space"
            );
            return Err(InvalidMember::new("name", message));
        }
        if self.name == CONFIGURED_KEY {
            let message = format!("{CONFIGURED_KEY} is the name of the configured key; choose another one");
            return Err(InvalidMember::new("name", message));
        }
        if self.expires.is_some_and(|expires| expires <= now || expires > LATEST) {
            return Err(InvalidMember::new("expires", "must be a time in the future, in seconds since 1970"));
        }
        self.scopes.check()?;
        self.limits.check()
    }

    /// The key itself, as of now.
    pub(crate) fn issue(self, now: u64) -> Key {
        let Self { name, scopes, limits, expires } = self;
        let id = format!("key_{}", Uuid::new_v4().simple());
        Key { id, name, scopes, limits, created: now, expires, rotated: None, revoked: None }
    }
}

/// A key as it is kept and shown, without its secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Key {
    /// Names the key in usage and in commands; no secret.
    pub id: String,
    /// As given when it was made.
    pub name: String,
    /// What it may do.
    pub scopes: Scopes,
    /// How much it may do.
    pub limits: KeyLimits,
    /// Seconds since 1970.
    pub created: u64,
    /// From then on it is refused, in seconds since 1970.
    pub expires: Option<u64>,
    /// When it got its present secret, in seconds since 1970; `None` for its first.
    pub rotated: Option<u64>,
    /// Since when it is refused, in seconds since 1970.
    pub revoked: Option<u64>,
}

/// How the secret of a key is replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Rotation {
    /// How long the old secret still works, in seconds, at most 30 days. Default: not at all.
    #[serde(default)]
    pub overlap_s: u32,
}

impl Rotation {
    /// The old secret works for so long.
    pub fn with_overlap(overlap_s: u32) -> Self {
        Self { overlap_s }
    }

    /// Errors: the overlap is longer than 30 days.
    pub(crate) fn check(self) -> Result<(), InvalidMember> {
        const LONGEST_S: u32 = 30 * 24 * 60 * 60;
        if self.overlap_s > LONGEST_S {
            return Err(InvalidMember::new("overlap_s", format!("must be at most {LONGEST_S}")));
        }
        Ok(())
    }
}

/// A key with its secret: shown once, when it is made or rotated.
#[derive(Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct IssuedKey {
    /// The secret that clients send.
    #[serde(serialize_with = "exposed", deserialize_with = "hidden")]
    pub secret: ApiKey,
    /// The rest.
    pub key: Key,
}

fn exposed<S: Serializer>(secret: &ApiKey, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose())
}

fn hidden<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<ApiKey, D::Error> {
    ApiKey::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

/// Generates a random 256-bit key.
pub(crate) fn random_key() -> ApiKey {
    ApiKey::new(format!("gw-{}", BASE64_URL_SAFE_NO_PAD.encode(random_bytes()))).expect("visible ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_keys_differ_and_have_256_bits() {
        let (one, other) = (random_key(), random_key());
        assert_ne!(one.expose(), other.expose());
        assert_eq!(one.expose().len(), "gw-".len() + 43);
    }

    #[test]
    fn a_name_is_short_visible_text() {
        for name in ["ci", "Zoë's laptop", &"x".repeat(LONGEST_NAME)] {
            assert_eq!(NewKey::new(name).check(0), Ok(()), "{name}");
        }
        for name in ["", " ci", "ci\n", "a\u{7}b", CONFIGURED_KEY, &"x".repeat(LONGEST_NAME + 1)] {
            assert_eq!(NewKey::new(name).check(0).map_err(|error| error.member), Err("name"), "{name:?}");
        }
    }

    #[test]
    fn an_expiry_lies_ahead() {
        for (expires, valid) in [(9, false), (10, false), (11, true), (LATEST, true), (LATEST + 1, false)] {
            let key = NewKey { expires: Some(expires), ..NewKey::new("ci") };
            assert_eq!(key.check(10).is_ok(), valid, "{expires}");
        }
    }

    #[test]
    fn the_debug_text_of_an_issued_key_hides_its_secret() {
        let issued = IssuedKey { secret: random_key(), key: NewKey::new("ci").issue(0) };
        assert!(!format!("{issued:?}").contains(issued.secret.expose()));
    }
}
