//! The keys in memory: a snapshot that requests read without a lock, replaced as a whole when a key changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use gatewright_store::{ADMIN_KEY, CONFIGURED_KEY, Day, Digest, KeyLimits, KeyRecord, SpentByKey};
use gatewright_system::clock::unix_seconds;

use crate::counters::SharedCounters;
use crate::usage::{Account, Caller, Ledger, Spending};

/// See the module.
#[derive(Debug)]
pub(super) struct Keyring {
    keys: ArcSwap<KeySet>,
    /// The accounts by key id: a key keeps its account when it changes. Held while keys are replaced.
    accounts: Mutex<HashMap<String, Arc<Account>>>,
    /// The caller with the configured key, whichever key that is.
    configured: Caller,
    /// The caller with the admin key, whichever key that is.
    admin: Caller,
    ledger: Arc<Ledger>,
    /// Shared between gateways.
    counters: Option<Arc<SharedCounters>>,
}

/// A snapshot of all keys.
#[derive(Debug)]
struct KeySet {
    stored: Arc<HashMap<Digest, KeyringEntry>>,
    /// The same keys by id, including expired ones.
    by_id: Arc<HashMap<Arc<str>, Caller>>,
    configured: Configured,
}

/// The configured keys, which need no store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Configured {
    pub(super) key: Digest,
    /// The key of `/admin`, if it is served.
    pub(super) admin: Option<Digest>,
}

#[derive(Debug, Clone)]
struct KeyringEntry {
    caller: Caller,
    /// When the secret expires, in seconds since 1970.
    until: Option<u64>,
}

/// The result of looking up a secret.
#[derive(Debug)]
pub(super) enum KeyLookup {
    Valid(Caller),
    /// The admin key, used as a client.
    Admin(Caller),
    Expired,
    Unknown,
}

impl Keyring {
    pub(super) fn new(
        configured: Configured,
        ledger: &Arc<Ledger>,
        counters: Option<Arc<SharedCounters>>,
    ) -> Self {
        Self {
            keys: ArcSwap::from_pointee(KeySet { stored: Arc::default(), by_id: Arc::default(), configured }),
            accounts: Mutex::default(),
            configured: Caller::unlimited(CONFIGURED_KEY, ledger),
            admin: Caller::unlimited(ADMIN_KEY, ledger),
            ledger: Arc::clone(ledger),
            counters,
        }
    }

    /// The key that a secret belongs to.
    pub(super) fn find(&self, digest: Digest) -> KeyLookup {
        let keys = self.keys.load();
        if keys.configured.admin == Some(digest) {
            return KeyLookup::Admin(self.admin.clone());
        }
        if digest == keys.configured.key {
            return KeyLookup::Valid(self.configured.clone());
        }
        match keys.stored.get(&digest) {
            None => KeyLookup::Unknown,
            Some(KeyringEntry { until: Some(until), .. }) if *until <= unix_seconds() => KeyLookup::Expired,
            Some(KeyringEntry { caller, .. }) => KeyLookup::Valid(caller.clone()),
        }
    }

    /// The configured keys.
    pub(super) fn configured(&self) -> Configured {
        self.keys.load().configured
    }

    /// Replaces both configured keys at once, and returns the previous ones.
    pub(super) fn configure(&self, configured: Configured) -> Configured {
        let _replacing = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = self.keys.load();
        let (stored, by_id) = (Arc::clone(&keys.stored), Arc::clone(&keys.by_id));
        self.keys.swap(Arc::new(KeySet { stored, by_id, configured })).configured
    }

    /// The limits of a key, by its id. `None`: no active key in memory has it.
    pub(super) fn limits(&self, id: &str) -> Option<KeyLimits> {
        if let Some(own) = [&self.configured, &self.admin].into_iter().find(|own| &**own.id() == id) {
            return Some(*own.limits());
        }
        self.keys.load().by_id.get(id).map(|caller| *caller.limits())
    }

    /// The caller with a key, by its id; one without limits if no active key in memory has it.
    pub(super) fn caller(&self, id: &str) -> Caller {
        let own = [&self.configured, &self.admin].into_iter().find(|own| &**own.id() == id).cloned();
        let stored = || self.keys.load().by_id.get(id).cloned();
        own.or_else(stored).unwrap_or_else(|| Caller::unlimited(id, &self.ledger))
    }

    /// Whether there are keys besides the configured one.
    pub(super) fn has_others(&self) -> bool {
        !self.keys.load().stored.is_empty()
    }

    /// Whether all of these keys have an account.
    pub(super) fn knows(&self, records: &[KeyRecord]) -> bool {
        let accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        records.iter().all(|record| accounts.contains_key(&record.key.id))
    }

    /// Whether a key has a budget.
    pub(super) fn has_budgets(&self) -> bool {
        self.keys.load().stored.values().any(|entry| entry.caller.limits().have_budget())
    }

    /// Adopts what the keys have spent as of `day`, in any process.
    pub(super) fn follow(&self, spent: &SpentByKey, day: Day) {
        let accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, spent) in spent {
            if let Some(account) = accounts.get(id) {
                account.follow(day, *spent);
            }
        }
    }

    /// Replaces the store's keys. `spent`: what keys without an account have spent before, as of `day`.
    pub(super) fn replace(&self, records: Vec<KeyRecord>, spent: &SpentByKey, day: Day) {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut entries, mut current, mut by_id) = (HashMap::new(), HashMap::new(), HashMap::new());
        for KeyRecord { key, digest, old } in records {
            let account = accounts.remove(&key.id).unwrap_or_else(|| {
                let (today, month) = spent.get(&key.id).copied().unwrap_or_default();
                Arc::new(Account::new(Spending::since(day, today, month)))
            });
            current.insert(key.id.clone(), Arc::clone(&account));
            let (ledger, counters) = (Arc::clone(&self.ledger), self.counters.clone());
            let caller = Caller::new(key.id.into(), key.scopes, key.limits, account, ledger, counters);
            if let Some((old, until)) = old {
                let until = key.expires.map_or(until, |expires| expires.min(until));
                entries.insert(old, KeyringEntry { caller: caller.clone(), until: Some(until) });
            }
            by_id.insert(Arc::clone(caller.id()), caller.clone());
            entries.insert(digest, KeyringEntry { caller, until: key.expires });
        }
        *accounts = current;
        let configured = self.configured();
        let (stored, by_id) = (Arc::new(entries), Arc::new(by_id));
        self.keys.store(Arc::new(KeySet { stored, by_id, configured }));
    }
}
