//! An API key as it is issued, stored and displayed.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use gatewright::ApiKey;
use gatewright_system::random_bytes;
use serde::{Deserialize, Serialize, Serializer};
use uuid::Uuid;

use super::{InvalidMember, KeyLimits, Scopes};

/// Maximum length of a name, in bytes.
const MAX_NAME_CHARS: usize = 100;
/// Latest time of an expiry: the end of the year 9999, which every date format can write.
const LATEST: u64 = 253_402_300_799;

/// The name of the configuration's key in usage, logs and metrics. No other key may have it.
pub const CONFIGURED_KEY: &str = "default";
/// The name of the admin key in usage, logs and metrics, where clients use it. No other key may have it.
pub const ADMIN_KEY: &str = "admin";

/// The settings of a new key.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct NewKey {
    /// Its owner or purpose; unique among the keys that are not revoked.
    pub name: String,
    /// Its scopes. Default: everything is allowed.
    #[serde(default, deserialize_with = "super::null_is_default")]
    pub scopes: Scopes,
    /// Its limits. Default: none.
    #[serde(default, deserialize_with = "super::null_is_default")]
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
    pub fn check(&self, now: u64) -> Result<(), InvalidMember> {
        check_name(&self.name)?;
        check_expiry(self.expires, now)?;
        self.scopes.check()?;
        self.limits.check()
    }

    /// Creates the key, with the current time.
    pub fn issue(self, now: u64) -> Key {
        let Self { name, scopes, limits, expires } = self;
        let id = format!("key_{}", Uuid::new_v4().simple());
        Key { id, name, scopes, limits, created: now, expires, rotated: None, revoked: None }
    }
}

fn check_name(name: &str) -> Result<(), InvalidMember> {
    let fits = (1..=MAX_NAME_CHARS).contains(&name.len());
    if !fits || name.trim() != name || name.contains(char::is_control) {
        let message = format!(
            "must have 1 to {MAX_NAME_CHARS} bytes, no control characters and no leading or trailing space"
        );
        return Err(InvalidMember::new("name", message));
    }
    for (own, what) in [(CONFIGURED_KEY, "configured"), (ADMIN_KEY, "admin")] {
        if name == own {
            let message = format!("{own} is the name of the {what} key; choose another one");
            return Err(InvalidMember::new("name", message));
        }
    }
    Ok(())
}

fn check_expiry(expires: Option<u64>, now: u64) -> Result<(), InvalidMember> {
    if expires.is_some_and(|expires| expires <= now || expires > LATEST) {
        return Err(InvalidMember::new("expires", "must be a time in the future, in seconds since 1970"));
    }
    Ok(())
}

/// The expiry in an update that removes one.
const NEVER: u64 = 0;

/// Changes to a key. `None` leaves a member unchanged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct KeyUpdate {
    /// The new name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The new scopes, which replace all previous ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Scopes>,
    /// The new limits, which replace all previous ones. Previous usage counts against them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<KeyLimits>,
    /// The new expiry, in seconds since 1970; 0: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
}

impl KeyUpdate {
    /// Errors: a member breaks its rule.
    pub fn check(&self, now: u64) -> Result<(), InvalidMember> {
        if let Some(name) = &self.name {
            check_name(name)?;
        }
        if let Some(scopes) = &self.scopes {
            scopes.check()?;
        }
        if let Some(limits) = &self.limits {
            limits.check()?;
        }
        check_expiry(self.expires.filter(|expires| *expires != NEVER), now)
    }

    /// The expiry of a key whose present one is this.
    pub(crate) fn expiry(&self, present: Option<u64>) -> Option<u64> {
        match self.expires {
            None => present,
            Some(NEVER) => None,
            expires => expires,
        }
    }
}

/// A key as it is stored and displayed, without its secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Key {
    /// Identifies the key in usage and in commands; not a secret.
    pub id: String,
    /// The name set at creation or by the last update.
    pub name: String,
    /// What it may do.
    pub scopes: Scopes,
    /// How much it may do.
    pub limits: KeyLimits,
    /// Seconds since 1970.
    pub created: u64,
    /// When it expires, in seconds since 1970. From then on, it is rejected.
    pub expires: Option<u64>,
    /// When its current secret was issued, in seconds since 1970; `None` if it still has its first secret.
    pub rotated: Option<u64>,
    /// When it was revoked, in seconds since 1970. Since then, it is rejected.
    pub revoked: Option<u64>,
}

/// How to replace the secret of a key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Rotation {
    /// How long the old secret stays valid, in seconds, at most 30 days. Default: 0.
    #[serde(default, deserialize_with = "super::null_is_default")]
    pub overlap_s: u32,
}

impl Rotation {
    /// A rotation after which the old secret stays valid for this many seconds.
    pub fn with_overlap(overlap_s: u32) -> Self {
        Self { overlap_s }
    }

    /// Errors: the overlap is longer than 30 days.
    pub fn check(self) -> Result<(), InvalidMember> {
        const MAX_OVERLAP_S: u32 = 30 * 24 * 60 * 60;
        if self.overlap_s > MAX_OVERLAP_S {
            return Err(InvalidMember::new("overlap_s", format!("must be at most {MAX_OVERLAP_S}")));
        }
        Ok(())
    }
}

/// A key with its secret, which is shown only once: when the key is created or rotated.
#[derive(Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct IssuedKey {
    /// The secret that clients send.
    #[serde(serialize_with = "exposed", deserialize_with = "hidden")]
    pub secret: ApiKey,
    /// The key itself.
    pub key: Key,
}

impl IssuedKey {
    /// A key, and the secret that was made for it.
    pub fn new(secret: ApiKey, key: Key) -> Self {
        Self { secret, key }
    }
}

fn exposed<S: Serializer>(secret: &ApiKey, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose())
}

fn hidden<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<ApiKey, D::Error> {
    ApiKey::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

/// Generates a random 256-bit key.
#[expect(clippy::missing_panics_doc, reason = "base64 is visible ASCII")]
pub fn random_key() -> ApiKey {
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
    fn key_name_is_short_visible_text() {
        for name in ["ci", "Zoë's laptop", &"x".repeat(MAX_NAME_CHARS)] {
            assert_eq!(NewKey::new(name).check(0), Ok(()), "{name}");
        }
        for name in ["", " ci", "ci\n", "a\u{7}b", CONFIGURED_KEY, ADMIN_KEY, &"x".repeat(MAX_NAME_CHARS + 1)]
        {
            assert_eq!(NewKey::new(name).check(0).map_err(|error| error.member), Err("name"), "{name:?}");
        }
    }

    #[test]
    fn expiry_must_be_in_the_future() {
        for (expires, valid) in [(9, false), (10, false), (11, true), (LATEST, true), (LATEST + 1, false)] {
            let key = NewKey { expires: Some(expires), ..NewKey::new("ci") };
            assert_eq!(key.check(10).is_ok(), valid, "{expires}");
        }
    }

    #[test]
    fn debug_output_of_an_issued_key_hides_its_secret() {
        let issued = IssuedKey { secret: random_key(), key: NewKey::new("ci").issue(0) };
        assert!(!format!("{issued:?}").contains(issued.secret.expose()));
    }
}
