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

use self::files::Records;
pub(crate) use self::replays::Answers;
use super::durable::{
    Batch, CopyChange, CopyStore, FoundCopy, KeyRecord, KeyStore, LONGEST_LIST, MOST_KEYS, NotAdded,
    PlaceStore, SpentByKey, Store, StoreError, Stored, UsageStore,
};
use super::history;
use crate::clock::monotonic_millis;
use crate::keys::{Digest, Key};
use crate::usage::{Day, Place, ResolvedUsageQuery, Rows, Spent, Totals, UsageRow};

/// Maximum number of usage rows; those of the oldest days are removed first.
const MOST_ROWS: usize = 100_000;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct MemoryStore {
    kept: Mutex<Kept>,
    queues: tasks::Queues,
    files: Mutex<Records>,
    nodes: Mutex<nodes::Nodes>,
    configs: Mutex<configs::Configs>,
    answers: Answers,
}

impl Store for MemoryStore {}

#[derive(Debug, Default)]
struct Kept {
    revision: i64,
    /// The oldest first. Revoked keys are removed: nothing else bounds their number.
    keys: Vec<KeyRecord>,
    /// By day first, so that the oldest can be removed.
    usage: BTreeMap<(Day, [String; 3]), Totals>,
    /// The last batch of each usage writer. A process has one.
    batches: HashMap<Arc<str>, u64>,
}

impl MemoryStore {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Value of the clock of [`now`] at process start, so that tests can backdate entries.
const BEGINNING_MS: u64 = 60 * 24 * 60 * 60 * 1000;

/// Milliseconds of a monotonic clock.
fn now() -> u64 {
    BEGINNING_MS + monotonic_millis()
}

fn done<'s, T: Send + 's>(value: T) -> Stored<'s, T> {
    Box::pin(future::ready(Ok::<T, StoreError>(value)))
}

impl Kept {
    fn change(&mut self, id: &str) -> Option<&mut KeyRecord> {
        let record = self.keys.iter_mut().find(|record| record.key.id == id)?;
        self.revision += 1;
        Some(record)
    }
}

impl KeyStore for MemoryStore {
    fn revision(&self) -> Stored<'_, i64> {
        done(self.lock().revision)
    }

    fn pepper_check(&self, check: Digest) -> Stored<'_, Digest> {
        done(check)
    }

    fn keys_in_use(&self) -> Stored<'_, Vec<KeyRecord>> {
        done(self.lock().keys.clone())
    }

    fn list_keys(&self, _revoked: bool) -> Stored<'_, Vec<Key>> {
        done(self.lock().keys.iter().rev().take(LONGEST_LIST).map(|record| record.key.clone()).collect())
    }

    fn find_key<'s>(&'s self, name: &'s str) -> Stored<'s, Option<Key>> {
        let kept = self.lock();
        let by = |matches: fn(&Key) -> &str| kept.keys.iter().find(|record| matches(&record.key) == name);
        done(by(|key| &key.id).or_else(|| by(|key| &key.name)).map(|record| record.key.clone()))
    }

    fn add_key(&self, record: KeyRecord) -> Stored<'_, Result<(), NotAdded>> {
        let mut kept = self.lock();
        if kept.keys.len() >= MOST_KEYS {
            return done(Err(NotAdded::Full));
        }
        if kept.keys.iter().any(|other| other.key.name == record.key.name) {
            return done(Err(NotAdded::NameTaken));
        }
        kept.revision += 1;
        kept.keys.push(record);
        done(Ok(()))
    }

    fn rotate_key<'s>(
        &'s self,
        id: &'s str,
        digest: Digest,
        now: u64,
        old_until: Option<u64>,
    ) -> Stored<'s, Option<Key>> {
        done(self.lock().change(id).map(|record| {
            record.old = old_until.map(|until| (record.digest, until));
            record.digest = digest;
            record.key.rotated = Some(now);
            record.key.clone()
        }))
    }

    fn revoke_key<'s>(&'s self, id: &'s str, now: u64) -> Stored<'s, Option<Key>> {
        let mut kept = self.lock();
        let Some(at) = kept.keys.iter().position(|record| record.key.id == id) else { return done(None) };
        kept.revision += 1;
        let key = kept.keys.remove(at).key;
        done(Some(Key { revoked: Some(now), ..key }))
    }
}

impl UsageStore for MemoryStore {
    fn add_usage<'s>(&'s self, batch: &'s Batch, rows: &'s Rows) -> Stored<'s, ()> {
        let mut kept = self.lock();
        let last = kept.batches.entry(Arc::clone(&batch.writer)).or_default();
        if batch.number <= *last {
            return done(());
        }
        *last = batch.number;
        for (Place { day, key, model, upstream }, totals) in rows {
            let names = [key, model, upstream].map(ToString::to_string);
            kept.usage.entry((*day, names)).or_default().add(totals);
        }
        while kept.usage.len() > MOST_ROWS {
            kept.usage.pop_first();
        }
        done(())
    }

    fn usage<'s>(&'s self, asked: &'s ResolvedUsageQuery) -> Stored<'s, Vec<UsageRow>> {
        let kept = self.lock();
        let by = asked.by;
        let mut groups = BTreeMap::<[Option<String>; 4], Totals>::new();
        for ((day, [key, model, upstream]), totals) in &kept.usage {
            let within = (asked.from..=asked.to).contains(day);
            if !within || asked.key.as_ref().is_some_and(|asked| asked != key) {
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
        let name_of = |id: &String| kept.keys.iter().find(|record| record.key.id == *id);
        let rows = groups.into_iter().take(LONGEST_LIST + 1).map(|([day, key, model, upstream], totals)| {
            let name = key.as_ref().and_then(name_of).map(|record| record.key.name.clone());
            UsageRow::new([day, key, name, model, upstream], &totals)
        });
        done(rows.collect())
    }

    fn spent(&self, day: Day) -> Stored<'_, SpentByKey> {
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
impl PlaceStore for MemoryStore {
    fn places(&self) -> Stored<'_, Vec<history::Place>> {
        done(Vec::new())
    }

    fn place<'s>(&'s self, _owner: &'s str, _id: &'s str) -> Stored<'s, Option<history::Place>> {
        done(None)
    }

    fn change_places<'s>(&'s self, _changes: &'s [history::Change]) -> Stored<'s, ()> {
        done(())
    }
}

/// The history has them in memory already.
impl CopyStore for MemoryStore {
    fn copy<'s>(&'s self, _owner: &'s str, _id: &'s str, _known: Option<i64>) -> Stored<'s, FoundCopy> {
        done(FoundCopy::None)
    }

    fn change_copies<'s>(&'s self, _changes: &'s [CopyChange]) -> Stored<'s, ()> {
        done(())
    }

    fn forget_copies(&self, _kept_before: u64, _hundredths: u8) -> Stored<'_, ()> {
        done(())
    }
}
