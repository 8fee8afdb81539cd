//! Creates, lists, rotates and revokes keys, and reports their usage, for operators.

use std::path::Path;

use gatewright::webhook::Secret;
use gatewright_store::{
    AddKeyError, Day, DurableStore, InvalidMember, IssuedKey, Key, KeyRecord, KeyUpdate, MAX_KEYS,
    MAX_LISTED, NameTaken, NewKey, Rotation, StoreError, StoreUrl, UsageQuery, UsageRow, random_key,
};
use gatewright_system::clock::unix_seconds;

use super::data::{Data, InvalidData};
use gatewright_store::Pepper;

/// The keys and the usage of a data folder, or of a gateway.
#[derive(Clone)]
pub struct Registry {
    pub(super) data: Data,
}

/// Why the registry rejected an action.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// A member of a key or a query is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidMember),
    /// Another active key has the name.
    #[error("another key has the name {0:?}; revoke it first, or choose another name")]
    NameTaken(String),
    /// No active key has this id or name.
    #[error("there is no active key {0:?}")]
    NotFound(String),
    /// No notification has this id.
    #[error("there is no notification {0:?}; it never existed, or was delivered long ago")]
    NoNotification(String),
    /// The maximum number of keys that the gateway keeps in memory is reached.
    #[error("there are {MAX_KEYS} active keys already; revoke some first")]
    Full,
    /// A shared configuration document is invalid: a line for each problem, with its place.
    #[error("{0}")]
    InvalidConfig(String),
    /// Another revision of the shared configuration is the newest.
    #[error("revision {after} is no longer the newest: the configuration was changed meanwhile")]
    ConfigChanged {
        /// The revision that was expected.
        after: u64,
    },
    /// There is no such revision of the shared configuration. `None`: there are no revisions.
    #[error("there is no revision{} of the shared configuration", .0.map(|number| format!(" {number}")).unwrap_or_default())]
    NoRevision(Option<u64>),
    /// The data folder or the server can't be used.
    #[error(transparent)]
    Data(#[from] InvalidData),
    /// The store is locked, missing or broken.
    #[error("{0}")]
    Store(String),
}

impl From<StoreError> for RegistryError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.to_string())
    }
}

impl Registry {
    pub(crate) fn new(data: Data) -> Self {
        Self { data }
    }

    pub(crate) fn store(&self) -> &dyn DurableStore {
        &*self.data.store
    }

    /// Checks that the parts of the store belong together.
    ///
    /// Errors: they don't, or the store doesn't answer.
    pub(crate) async fn check(&self) -> Result<(), RegistryError> {
        Ok(self.data.check().await??)
    }

    /// Opens a data folder, which a running gateway may use at the same time: it sees a change within a second. Needs a
    /// Tokio runtime.
    pub async fn open(folder: &Path) -> Result<Self, RegistryError> {
        let registry = Self::new(Data::open(Some(folder), None, None)?);
        registry.check().await?;
        Ok(registry)
    }

    /// Opens the store of several gateways, which may use it at the same time. Needs a Tokio runtime.
    pub async fn open_server(url: &StoreUrl, pepper: &Pepper) -> Result<Self, RegistryError> {
        let registry = Self::new(Data::open(None, Some(url), Some(pepper))?);
        registry.check().await?;
        Ok(registry)
    }

    /// The secret that signs webhooks of the gateways with this pepper, unless another one is configured.
    pub fn webhook_secret(&self) -> Secret {
        self.data.webhook_secret()
    }

    /// Creates a key. The secret is returned only here.
    pub async fn create(&self, new: NewKey) -> Result<IssuedKey, RegistryError> {
        let now = unix_seconds();
        new.check(now)?;
        let (secret, key) = (random_key(), new.issue(now));
        let digest = self.data.pepper.digest(secret.expose().as_bytes());
        match self.data.store.add_key(KeyRecord { key: key.clone(), digest, old: None }).await? {
            Ok(()) => Ok(IssuedKey::new(secret, key)),
            Err(AddKeyError::NameTaken) => Err(RegistryError::NameTaken(key.name)),
            Err(AddKeyError::Full) => Err(RegistryError::Full),
        }
    }

    /// The newest keys first, at most 10,000. `revoked`: includes revoked keys.
    pub async fn list(&self, revoked: bool) -> Result<Vec<Key>, RegistryError> {
        Ok(self.data.store.list_keys(revoked).await?)
    }

    /// The key with this id, or the active one with this name.
    pub async fn show(&self, name: &str) -> Result<Key, RegistryError> {
        let found = self.data.store.find_key(name).await?;
        found.ok_or_else(|| RegistryError::NotFound(name.to_owned()))
    }

    /// Replaces the members of a key that the update has.
    pub async fn update(&self, name: &str, update: KeyUpdate) -> Result<Key, RegistryError> {
        update.check(unix_seconds())?;
        let id = self.show(name).await?.id;
        let renamed = update.name.clone().unwrap_or_default();
        match self.data.store.update_key(&id, update).await? {
            Ok(Some(key)) => Ok(key),
            Ok(None) => Err(RegistryError::NotFound(name.to_owned())),
            Err(NameTaken) => Err(RegistryError::NameTaken(renamed)),
        }
    }

    /// Replaces the secret of a key; the new one is returned only here.
    pub async fn rotate(&self, name: &str, rotation: Rotation) -> Result<IssuedKey, RegistryError> {
        rotation.check()?;
        let id = self.show(name).await?.id;
        let (secret, now) = (random_key(), unix_seconds());
        let digest = self.data.pepper.digest(secret.expose().as_bytes());
        let old_until = (rotation.overlap_s > 0).then(|| now + u64::from(rotation.overlap_s));
        let rotated = self.data.store.rotate_key(&id, digest, now, old_until).await?;
        let key = rotated.ok_or_else(|| RegistryError::NotFound(name.to_owned()))?;
        Ok(IssuedKey::new(secret, key))
    }

    /// Revokes a key. Requests in progress end as usual.
    pub async fn revoke(&self, name: &str) -> Result<Key, RegistryError> {
        let id = self.show(name).await?.id;
        let revoked = self.data.store.revoke_key(&id, unix_seconds()).await?;
        revoked.ok_or_else(|| RegistryError::NotFound(name.to_owned()))
    }

    /// Reports usage, sorted by the columns that identify its rows. A running gateway stores usage within a
    /// second.
    pub async fn usage(&self, query: UsageQuery) -> Result<Vec<UsageRow>, RegistryError> {
        let invalid = |(member, message)| InvalidMember { member, message };
        let mut resolved = query.read(Day::today()).map_err(invalid)?;
        if let Some(name) = &resolved.key
            && let Some(key) = self.data.store.find_key(name).await?
        {
            resolved.key = Some(key.id);
        }
        let rows = self.data.store.usage(&resolved).await?;
        if rows.len() > MAX_LISTED {
            let message =
                format!("the report has more than {MAX_LISTED} rows; request fewer days, or a single key");
            return Err(InvalidMember { member: "by", message }.into());
        }
        Ok(rows)
    }
}
