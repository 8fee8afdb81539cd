//! The records of files in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use gatewright_system::clock::{unix_millis, unix_seconds};

use super::{MemoryStore, done};
use crate::file_name::FileName;
use crate::traits::{ExpiringFile, FileRecord, FileStore, FileTotals, StoreFuture};

/// By expiry first.
pub(super) type Records = BTreeMap<(u64, FileName), FileRecord>;

impl MemoryStore {
    fn records(&self) -> MutexGuard<'_, Records> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whatever their current expiry.
fn remove<'n>(records: &mut Records, names: impl Iterator<Item = &'n FileName>) {
    let names: BTreeSet<&FileName> = names.collect();
    records.retain(|(_, name), _| !names.contains(name));
}

impl FileStore for MemoryStore {
    fn clock(&self) -> StoreFuture<'_, u64> {
        done(unix_millis())
    }

    fn add_files<'s>(&'s self, files: &'s [FileRecord], lifetime: Duration) -> StoreFuture<'s, u64> {
        let mut records = self.records();
        let expires = unix_seconds().saturating_add(lifetime.as_secs());
        remove(&mut records, files.iter().map(|file| &file.name));
        records.extend(files.iter().map(|file| ((expires, file.name.clone()), file.clone())));
        done(expires)
    }

    fn taken_by_files<'s>(&'s self, owner: &'s str) -> StoreFuture<'s, (FileTotals, FileTotals)> {
        let (mut all, mut own) = (FileTotals::default(), FileTotals::default());
        for file in self.records().values() {
            let of_owner = (*file.owner == *owner).then_some(&mut own);
            for taken in [Some(&mut all), of_owner].into_iter().flatten() {
                taken.files += 1;
                taken.bytes += file.bytes;
            }
        }
        done((all, own))
    }

    fn first_to_expire<'s>(
        &'s self,
        owner: Option<&'s str>,
        most: u32,
    ) -> StoreFuture<'s, Vec<ExpiringFile>> {
        let (records, now) = (self.records(), unix_seconds());
        let selected = records.iter().filter(|(_, file)| owner.is_none_or(|owner| *file.owner == *owner));
        let selected = selected.take(usize::try_from(most).unwrap_or(usize::MAX));
        let expiring = selected.map(|((expires, _), file)| ExpiringFile {
            file: file.clone(),
            left: expires.saturating_sub(now),
        });
        done(expiring.collect())
    }

    fn has_file<'s>(&'s self, name: &'s FileName) -> StoreFuture<'s, bool> {
        done(self.records().keys().any(|(_, other)| other == name))
    }

    fn remove_files<'s>(&'s self, names: &'s [FileName]) -> StoreFuture<'s, ()> {
        remove(&mut self.records(), names.iter());
        done(())
    }
}
