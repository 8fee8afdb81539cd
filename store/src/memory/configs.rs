//! The configuration that gateways share, in memory.

use std::sync::{MutexGuard, PoisonError};

use super::{MemoryStore, done};
use crate::traits::{ConfigStore, MAX_REVISIONS, NewConfig, StoreFuture, StoredRevision};

/// The revisions and their documents, the oldest first.
pub(super) type Configs = Vec<(StoredRevision, String)>;

impl MemoryStore {
    fn configs_mut(&self) -> MutexGuard<'_, Configs> {
        self.configs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConfigStore for MemoryStore {
    fn config_revisions(&self, most: usize) -> StoreFuture<'_, Vec<StoredRevision>> {
        done(self.configs_mut().iter().rev().take(most).map(|(revision, _)| revision.clone()).collect())
    }

    fn config_document(&self, number: u64) -> StoreFuture<'_, Option<String>> {
        let configs = self.configs_mut();
        let found = configs.iter().find(|(revision, _)| revision.number == number);
        done(found.map(|(_, document)| document.clone()))
    }

    fn add_config<'s>(&'s self, new: NewConfig<'s>, after: Option<u64>) -> StoreFuture<'s, Option<u64>> {
        let mut configs = self.configs_mut();
        let newest = configs.last().map_or(0, |(revision, _)| revision.number);
        if after.is_some_and(|after| after != newest) {
            return done(None);
        }
        let NewConfig { made, author, repeats, document } = new;
        let revision = StoredRevision { number: newest + 1, made, author: author.to_owned(), repeats };
        configs.push((revision, document.to_owned()));
        let beyond = configs.len().saturating_sub(MAX_REVISIONS);
        configs.drain(..beyond);
        done(Some(newest + 1))
    }
}
