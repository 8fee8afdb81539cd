//! Keys, usage, file records and answers by idempotency key in memory, until the process ends.

mod configs;
mod files;
mod nodes;
mod replays;
mod tasks;
mod upkeep;

use std::collections::{BTreeMap, HashMap};
use std::future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gatewright_system::clock::monotonic_millis;

use self::files::Records;
pub use self::replays::MemoryReplays;
use super::traits::{
    AddKeyError, Batch, CopyChange, CopyStore, DurableStore, KeyRecord, KeyStore, LocationChange,
    LocationStore, MAX_KEYS, MAX_LISTED, NameTaken, ResponseLocation, SpentByKey, StoreError, StoreFuture,
    StoredCopy, UsageStore,
};
use crate::keys::{Digest, Key, KeyUpdate};
use crate::usage::{Day, ResolvedUsageQuery, Rows, Spent, Totals, UsageKey, UsageRow};

/// Maximum number of usage rows; those of the oldest days are removed first.
const MAX_ROWS: usize = 100_000;

/// A store in memory, until the process ends.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<MemoryState>,
    queues: tasks::Queues,
    files: Mutex<Records>,
    nodes: Mutex<nodes::Nodes>,
    configs: Mutex<configs::Configs>,
    answers: MemoryReplays,
}

impl DurableStore for MemoryStore {}

#[derive(Debug, Default)]
struct MemoryState {
    revision: i64,
    /// The oldest first. Revoked keys are removed: nothing else bounds their number.
    keys: Vec<KeyRecord>,
    /// By day first, so that the oldest can be removed.
    usage: BTreeMap<(Day, [String; 3]), Totals>,
    /// The last batch of each usage writer. A process has one.
    batches: HashMap<Arc<str>, u64>,
}

impl MemoryStore {
    fn lock(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Value of the clock of [`now`] at process start, so that tests can backdate entries.
const BEGINNING_MS: u64 = 60 * 24 * 60 * 60 * 1000;

/// Milliseconds of a monotonic clock.
fn now() -> u64 {
    BEGINNING_MS + monotonic_millis()
}

fn done<'s, T: Send + 's>(value: T) -> StoreFuture<'s, T> {
    Box::pin(future::ready(Ok::<T, StoreError>(value)))
}

impl MemoryState {
    fn change(&mut self, id: &str) -> Option<&mut KeyRecord> {
        let record = self.keys.iter_mut().find(|record| record.key.id == id)?;
        self.revision += 1;
        Some(record)
    }
}

impl KeyStore for MemoryStore {
    fn revision(&self) -> StoreFuture<'_, i64> {
        done(self.lock().revision)
    }

    fn pepper_check(&self, check: Digest) -> StoreFuture<'_, Digest> {
        done(check)
    }

    fn keys_in_use(&self) -> StoreFuture<'_, Vec<KeyRecord>> {
        done(self.lock().keys.clone())
    }

    fn list_keys(&self, _revoked: bool) -> StoreFuture<'_, Vec<Key>> {
        done(self.lock().keys.iter().rev().take(MAX_LISTED).map(|record| record.key.clone()).collect())
    }

    fn find_key<'s>(&'s self, name: &'s str) -> StoreFuture<'s, Option<Key>> {
        let state = self.lock();
        let by = |matches: fn(&Key) -> &str| state.keys.iter().find(|record| matches(&record.key) == name);
        done(by(|key| &key.id).or_else(|| by(|key| &key.name)).map(|record| record.key.clone()))
    }

    fn add_key(&self, record: KeyRecord) -> StoreFuture<'_, Result<(), AddKeyError>> {
        let mut state = self.lock();
        if state.keys.len() >= MAX_KEYS {
            return done(Err(AddKeyError::Full));
        }
        if state.keys.iter().any(|other| other.key.name == record.key.name) {
            return done(Err(AddKeyError::NameTaken));
        }
        state.revision += 1;
        state.keys.push(record);
        done(Ok(()))
    }

    fn update_key<'s>(
        &'s self,
        id: &'s str,
        update: KeyUpdate,
    ) -> StoreFuture<'s, Result<Option<Key>, NameTaken>> {
        let mut state = self.lock();
        if let Some(name) = &update.name
            && state.keys.iter().any(|other| other.key.name == *name && other.key.id != id)
        {
            return done(Err(NameTaken));
        }
        done(Ok(state.change(id).map(|KeyRecord { key, .. }| {
            key.expires = update.expiry(key.expires);
            let KeyUpdate { name, scopes, limits, .. } = update;
            key.name = name.unwrap_or_else(|| std::mem::take(&mut key.name));
            key.scopes = scopes.unwrap_or_else(|| std::mem::take(&mut key.scopes));
            key.limits = limits.unwrap_or(key.limits);
            key.clone()
        })))
    }

    fn rotate_key<'s>(
        &'s self,
        id: &'s str,
        digest: Digest,
        now: u64,
        old_until: Option<u64>,
    ) -> StoreFuture<'s, Option<Key>> {
        done(self.lock().change(id).map(|record| {
            record.old = old_until.map(|until| (record.digest, until));
            record.digest = digest;
            record.key.rotated = Some(now);
            record.key.clone()
        }))
    }

    fn revoke_key<'s>(&'s self, id: &'s str, now: u64) -> StoreFuture<'s, Option<Key>> {
        let mut state = self.lock();
        let Some(at) = state.keys.iter().position(|record| record.key.id == id) else { return done(None) };
        state.revision += 1;
        let key = state.keys.remove(at).key;
        done(Some(Key { revoked: Some(now), ..key }))
    }
}

impl UsageStore for MemoryStore {
    fn add_usage<'s>(&'s self, batch: &'s Batch, rows: &'s Rows) -> StoreFuture<'s, ()> {
        let mut state = self.lock();
        let last = state.batches.entry(Arc::clone(&batch.writer)).or_default();
        if batch.number <= *last {
            return done(());
        }
        *last = batch.number;
        for (UsageKey { day, key, model, upstream }, totals) in rows {
            let names = [key, model, upstream].map(ToString::to_string);
            state.usage.entry((*day, names)).or_default().add(totals);
        }
        while state.usage.len() > MAX_ROWS {
            state.usage.pop_first();
        }
        done(())
    }

    fn usage<'s>(&'s self, query: &'s ResolvedUsageQuery) -> StoreFuture<'s, Vec<UsageRow>> {
        let state = self.lock();
        let by = query.by;
        let mut groups = BTreeMap::<[Option<String>; 4], Totals>::new();
        for ((day, [key, model, upstream]), totals) in &state.usage {
            let within = (query.from..=query.to).contains(day);
            if !within || query.key.as_ref().is_some_and(|wanted| wanted != key) {
                continue;
            }
            let group = [
                by.day.then(|| day.to_string()),
                by.key.then(|| key.clone()),
                by.model.then(|| model.clone()),
                by.upstream.then(|| upstream.clone()),
            ];
            groups.entry(group).or_default().add(totals);
        }
        let name_of = |id: &String| state.keys.iter().find(|record| record.key.id == *id);
        let rows = groups.into_iter().take(MAX_LISTED + 1).map(|([day, key, model, upstream], totals)| {
            let name = key.as_ref().and_then(name_of).map(|record| record.key.name.clone());
            UsageRow::new([day, key, name, model, upstream], &totals)
        });
        done(rows.collect())
    }

    fn spent(&self, day: Day) -> StoreFuture<'_, SpentByKey> {
        let mut spent = SpentByKey::new();
        for ((on, [key, ..]), totals) in
            self.lock().usage.iter().filter(|((on, _), _)| (day.month()..=day).contains(on))
        {
            let (today, month) = spent.entry(key.clone()).or_default();
            let more = Spent { tokens: totals.input.saturating_add(totals.output), cost: totals.cost };
            month.add(more);
            if *on == day {
                today.add(more);
            }
        }
        done(spent)
    }
}

/// The history has them in memory already.
impl LocationStore for MemoryStore {
    fn places(&self) -> StoreFuture<'_, Vec<ResponseLocation>> {
        done(Vec::new())
    }

    fn place<'s>(&'s self, _owner: &'s str, _id: &'s str) -> StoreFuture<'s, Option<ResponseLocation>> {
        done(None)
    }

    fn change_places<'s>(&'s self, _changes: &'s [LocationChange]) -> StoreFuture<'s, ()> {
        done(())
    }
}

/// The history has them in memory already.
impl CopyStore for MemoryStore {
    fn copy<'s>(&'s self, _owner: &'s str, _id: &'s str, _known: Option<i64>) -> StoreFuture<'s, StoredCopy> {
        done(StoredCopy::None)
    }

    fn change_copies<'s>(&'s self, _changes: &'s [CopyChange]) -> StoreFuture<'s, ()> {
        done(())
    }

    fn forget_copies(&self, _kept_before: u64, _percent: u8) -> StoreFuture<'_, ()> {
        done(())
    }
}
