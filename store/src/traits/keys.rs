//! API keys, without their secrets.

use std::pin::Pin;

use super::StoreFuture;
use crate::keys::{Digest, Key, KeyUpdate};

/// Maximum number of keys that are not revoked: all of them are in memory.
pub const MAX_KEYS: usize = 100_000;

/// A key with the digest that its secret is recognized by.
#[derive(Debug, Clone)]
pub struct KeyRecord {
    /// The key.
    pub key: Key,
    /// The digest of its secret.
    pub digest: Digest,
    /// The digest of the previous secret, and how long it remains valid, in seconds since 1970.
    pub old: Option<(Digest, u64)>,
}

/// Why a key was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddKeyError {
    /// Another active key has the name.
    NameTaken,
    /// There are [`MAX_KEYS`] already.
    Full,
}

/// Why a key was not renamed: another active key has the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameTaken;

/// The store of keys.
pub trait KeyStore {
    /// A number that changes whenever a key changes, in any process.
    fn revision(&self) -> StoreFuture<'_, i64>;

    /// Waits until another process may have changed keys. A store without notifications waits forever, so callers must
    /// also poll the revision. At most one task waits at a time.
    fn keys_changed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    /// Stores the check of the pepper if there is none yet. Returns the stored one.
    fn pepper_check(&self, check: Digest) -> StoreFuture<'_, Digest>;

    /// The keys that are not revoked.
    fn keys_in_use(&self) -> StoreFuture<'_, Vec<KeyRecord>>;

    /// The newest keys first, at most [`MAX_LISTED`](super::MAX_LISTED). `revoked`: includes revoked keys.
    fn list_keys(&self, revoked: bool) -> StoreFuture<'_, Vec<Key>>;

    /// The key with this id, or the active one with this name.
    fn find_key<'s>(&'s self, name: &'s str) -> StoreFuture<'s, Option<Key>>;

    /// Adds a key. Errors: its name is taken, or there are too many.
    fn add_key(&self, record: KeyRecord) -> StoreFuture<'_, Result<(), AddKeyError>>;

    /// Replaces the members of an active key that the update has, all at once. Returns the key, if there is one.
    fn update_key<'s>(
        &'s self,
        id: &'s str,
        update: KeyUpdate,
    ) -> StoreFuture<'s, Result<Option<Key>, NameTaken>>;

    /// Replaces the secret of an active key; the present one remains valid until `old_until`. Returns the key, if
    /// there is one.
    fn rotate_key<'s>(
        &'s self,
        id: &'s str,
        digest: Digest,
        now: u64,
        old_until: Option<u64>,
    ) -> StoreFuture<'s, Option<Key>>;

    /// Revokes an active key. Returns the key, if there is one.
    fn revoke_key<'s>(&'s self, id: &'s str, now: u64) -> StoreFuture<'s, Option<Key>>;
}
