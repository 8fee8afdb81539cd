//! Admits requests: finds the key in the request and in memory, and rejects what the key may not do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gatewright::operations::Operation;
use gatewright::{ApiKey, ErrorCode};
use gatewright_store::{Day, Digest, DurableStore, SpentByKey, StoreError};
use gatewright_system::random_bytes;
use http::HeaderMap;
use tokio::sync::Mutex;

use super::data::Data;
use super::keyring::{Configured, KeyLookup, Keyring};
use super::presented::PresentedKey;
use super::refusal::operation_refused;
use super::stall_detector::StallDetector;
use crate::counters::SharedCounters;
use crate::usage::{Caller, Ledger};
use crate::wire::ApiError;

/// When to retry while the keys can't be read.
const UNREADABLE_WAIT_S: u64 = 1;

/// See the module. No request waits for the store here.
pub(crate) struct Authenticator {
    data: Data,
    keyring: Keyring,
    /// Placeholder if there is no key: matches no secret.
    nobody: Digest,
    /// Whether the store's keys have been read at least once.
    read: AtomicBool,
    /// The revision of the keys in memory. Held while they are replaced.
    revision: Mutex<Option<i64>>,
    hanging: StallDetector,
}

/// Which keys of the configuration have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConfiguredKeyChanges {
    pub(crate) key: bool,
    pub(crate) admin: bool,
}

/// The user of the console.
#[cfg(feature = "console")]
#[derive(Debug)]
pub(crate) enum Principal {
    /// With the admin key.
    Admin,
    /// With a key for clients.
    Client(Caller),
}

impl Authenticator {
    /// `key`: the configured key. `admin`: the key of `/admin`, if it is served. `counters`: shared between gateways.
    pub(crate) fn new(
        data: Data,
        key: &ApiKey,
        admin: Option<&ApiKey>,
        ledger: &Arc<Ledger>,
        counters: Option<Arc<SharedCounters>>,
    ) -> Self {
        let digest = |key: &ApiKey| data.pepper.digest(key.expose().as_bytes());
        let configured = Configured { key: digest(key), admin: admin.map(digest) };
        let keyring = Keyring::new(configured, ledger, counters);
        let read = AtomicBool::new(!data.lasting);
        let (revision, hanging) = (Mutex::new(None), StallDetector::new());
        Self { data, keyring, nobody: Digest(random_bytes()), read, revision, hanging }
    }

    /// Adopts both keys of a changed configuration. The previous keys are rejected from now on. `key`: `None` if the
    /// configuration no longer has one; then nothing replaces it.
    pub(crate) fn configure(&self, key: Option<&ApiKey>, admin: Option<&ApiKey>) -> ConfiguredKeyChanges {
        let digest = |key: &ApiKey| self.data.pepper.digest(key.expose().as_bytes());
        let new = Configured { key: key.map_or(self.nobody, digest), admin: admin.map(digest) };
        let old = self.keyring.configure(new);
        ConfiguredKeyChanges { key: old.key != new.key, admin: old.admin != new.admin }
    }

    /// Detects whether the gateway hung, and makes requests wait for the keys.
    pub(super) fn hanging(&self) -> &StallDetector {
        &self.hanging
    }

    /// Lets a request pass, after the keys have been reloaded if the gateway hung.
    pub(crate) async fn pass(&self) {
        self.hanging.pass().await;
    }

    /// Finds the key of a request, and removes it from the headers and the query. The admin key may call every operation, but isn't
    /// accepted in a query, because it could end up in logs (decision 0082).
    ///
    /// Errors: there is no key, it is not one of this gateway's, or it may not call the operation.
    pub(crate) fn admit(
        &self,
        operation: &Operation,
        headers: &mut HeaderMap,
        query: &mut Vec<(String, String)>,
    ) -> Result<Caller, ApiError> {
        let presented = PresentedKey::take(headers, query);
        // Clients match on the first words.
        let incorrect = |why: &str| {
            ApiError::new(&ErrorCode::INVALID_API_KEY, format!("Incorrect API key provided: {why}"))
        };
        match self.keyring.find(self.data.pepper.digest(presented.key()?)) {
            KeyLookup::Admin(_) if presented.is_in_query() => {
                Err(incorrect("the admin key is accepted in a header only"))
            }
            KeyLookup::Admin(caller) => Ok(caller),
            KeyLookup::Valid(caller) if caller.scopes().allow_operation(operation) => Ok(caller),
            KeyLookup::Valid(_) => Err(operation_refused(operation)),
            KeyLookup::Expired => Err(incorrect("it has expired")),
            // The key may be one that could not be read yet.
            KeyLookup::Unknown if !self.read.load(Ordering::Relaxed) => Err(ApiError::new(
                &ErrorCode::SERVER_IS_OVERLOADED,
                "the gateway has not loaded its API keys yet; try again soon",
            )
            .retry_after(UNREADABLE_WAIT_S)),
            KeyLookup::Unknown => Err(incorrect("it is not a key of this gateway")),
        }
    }

    /// On whose account work continues that a key began, by its id. The key may be revoked since: what it began counts.
    pub(crate) fn caller_of(&self, id: &str) -> Caller {
        self.keyring.caller(id)
    }

    /// Whether there are keys besides the configured one.
    pub(crate) fn has_other_keys(&self) -> bool {
        self.keyring.has_others()
    }

    /// How many bytes of generated files a key may have at once, by its id; `None`: only limited by the available space.
    /// Queries the store only for a key that is revoked or has not been read yet, because its videos may still be in
    /// progress.
    pub(crate) async fn file_bytes(&self, id: &str) -> Result<Option<u64>, StoreError> {
        if let Some(limits) = self.keyring.limits(id) {
            return Ok(limits.file_bytes);
        }
        let key = self.data.store.find_key(id).await?.filter(|key| key.id == id);
        Ok(key.and_then(|key| key.limits.file_bytes))
    }

    /// Whether there is an admin key.
    pub(crate) fn has_admin(&self) -> bool {
        self.keyring.configured().admin.is_some()
    }

    /// Admits a request with the admin key in a header. The key is not accepted in a query, because it could
    /// end up in logs.
    ///
    /// Errors: the key is missing or wrong.
    pub(crate) fn admit_admin(&self, headers: &mut HeaderMap) -> Result<(), ApiError> {
        let presented = PresentedKey::take(headers, &mut Vec::new());
        let key = presented.key()?;
        match self.keyring.configured().admin {
            Some(admin) if self.data.pepper.verify(key, admin) => Ok(()),
            _ => Err(ApiError::new(
                &ErrorCode::INVALID_API_KEY,
                "Incorrect API key provided: this operation requires the admin key",
            )),
        }
    }

    /// Admits a console request with any key in a header, whatever the key may do.
    ///
    /// Errors: the key is missing or not one of this gateway's.
    #[cfg(feature = "console")]
    pub(crate) fn admit_any(&self, headers: &mut HeaderMap) -> Result<Principal, ApiError> {
        let presented = PresentedKey::take(headers, &mut Vec::new());
        let key = presented.key()?;
        match self.keyring.find(self.data.pepper.digest(key)) {
            KeyLookup::Admin(_) => Ok(Principal::Admin),
            KeyLookup::Valid(caller) => Ok(Principal::Client(caller)),
            KeyLookup::Expired | KeyLookup::Unknown => Err(ApiError::new(
                &ErrorCode::INVALID_API_KEY,
                "Incorrect API key provided: it is not a key of this gateway, or it has expired",
            )),
        }
    }

    /// Reads the spending of the keys, if one of them has a budget and other processes may spend, too.
    pub(crate) async fn follow_spending(&self) -> Result<(), StoreError> {
        if !self.data.lasting || !self.keyring.has_budgets() {
            return Ok(());
        }
        let day = Day::today();
        self.keyring.follow(&self.data.store.spent(day).await?, day);
        Ok(())
    }

    /// The store of the keys.
    pub(super) fn store(&self) -> &Arc<dyn DurableStore> {
        &self.data.store
    }

    /// Reads the keys again if they have changed.
    pub(crate) async fn refresh(&self) -> Result<(), StoreError> {
        let store = &self.data.store;
        let mut known = self.revision.lock().await;
        // Read first, so that a change made while the keys are read is noticed next time.
        let revision = store.revision().await?;
        if *known == Some(revision) {
            return Ok(());
        }
        let (records, day) = (store.keys_in_use().await?, Day::today());
        let spent = if self.keyring.knows(&records) { SpentByKey::new() } else { store.spent(day).await? };
        self.keyring.replace(records, &spent, day);
        *known = Some(revision);
        self.read.store(true, Ordering::Relaxed);
        Ok(())
    }
}
