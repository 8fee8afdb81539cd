//! The keys in memory: a snapshot that requests read without a lock, replaced as a whole when a key changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use crate::clock::unix_seconds;
use crate::keys::Digest;
use crate::store::{KeyRecord, SpentByKey};
use crate::usage::{Account, Caller, Day, Ledger, Spending};

/// Id of the key of the configuration.
const CONFIGURED: &str = "default";

/// See the module.
#[derive(Debug)]
pub(super) struct Keyring {
    entries: ArcSwap<HashMap<Digest, Entry>>,
    /// The accounts by id of the key: a key keeps its account when it changes.
    accounts: Mutex<HashMap<String, Arc<Account>>>,
    /// The key of the configuration, which needs no store.
    configured: (Digest, Caller),
    ledger: Arc<Ledger>,
}

#[derive(Debug, Clone)]
struct Entry {
    caller: Caller,
    /// From then on the secret is refused, in seconds since 1970.
    until: Option<u64>,
}

/// What is known of a secret.
#[derive(Debug)]
pub(super) enum Found {
    Valid(Caller),
    Expired,
    Unknown,
}

impl Keyring {
    pub(super) fn new(configured: Digest, ledger: &Arc<Ledger>) -> Self {
        let caller = Caller::unlimited(CONFIGURED, ledger);
        let entry = Entry { caller: caller.clone(), until: None };
        Self {
            entries: ArcSwap::from_pointee(HashMap::from([(configured, entry)])),
            accounts: Mutex::default(),
            configured: (configured, caller),
            ledger: Arc::clone(ledger),
        }
    }

    /// The key that a secret belongs to.
    pub(super) fn find(&self, digest: Digest) -> Found {
        let entries = self.entries.load();
        match entries.get(&digest) {
            None => Found::Unknown,
            Some(Entry { until: Some(until), .. }) if *until <= unix_seconds() => Found::Expired,
            Some(Entry { caller, .. }) => Found::Valid(caller.clone()),
        }
    }

    /// Whether all of these keys have an account.
    pub(super) fn knows(&self, records: &[KeyRecord]) -> bool {
        let accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        records.iter().all(|record| accounts.contains_key(&record.key.id))
    }

    /// Replaces the keys. `spent`: what those without an account spent before, as of `day`.
    pub(super) fn replace(&self, records: Vec<KeyRecord>, spent: &SpentByKey, day: Day) {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut entries, mut kept) = (HashMap::new(), HashMap::new());
        for KeyRecord { key, digest, old } in records {
            let account = accounts.remove(&key.id).unwrap_or_else(|| {
                let (today, month) = spent.get(&key.id).copied().unwrap_or_default();
                Arc::new(Account::new(Spending::since(day, today, month)))
            });
            kept.insert(key.id.clone(), Arc::clone(&account));
            let caller =
                Caller::new(key.id.into(), key.scopes, key.limits, account, Arc::clone(&self.ledger));
            if let Some((old, until)) = old {
                let until = key.expires.map_or(until, |expires| expires.min(until));
                entries.insert(old, Entry { caller: caller.clone(), until: Some(until) });
            }
            entries.insert(digest, Entry { caller, until: key.expires });
        }
        let (digest, caller) = &self.configured;
        entries.insert(*digest, Entry { caller: caller.clone(), until: None });
        *accounts = kept;
        self.entries.store(Arc::new(entries));
    }
}
