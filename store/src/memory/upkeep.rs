//! Memory needs no upkeep: it ends with the process.

use std::future;
use std::io::BufRead;
use std::path::Path;

use super::MemoryStore;
use crate::traits::{Lines, StoreError, StoreFuture, UpkeepStore};

fn refused<'s, T: Send + 's>() -> StoreFuture<'s, T> {
    Box::pin(future::ready(Err(StoreError::Failed(
        "the store is in memory, and is lost with the process".to_owned(),
    ))))
}

impl UpkeepStore for MemoryStore {
    fn migrate(&self) -> StoreFuture<'_, i64> {
        refused()
    }

    fn damage(&self) -> StoreFuture<'_, Vec<String>> {
        refused()
    }

    fn checkpoint(&self) -> StoreFuture<'_, ()> {
        Box::pin(future::ready(Ok(())))
    }

    fn export<'s>(&'s self, _lines: Lines<'s>) -> StoreFuture<'s, u64> {
        refused()
    }

    fn import<'s>(&'s self, _lines: &'s mut (dyn BufRead + Send)) -> StoreFuture<'s, u64> {
        refused()
    }

    fn copy_to<'s>(&'s self, _file: &'s Path) -> StoreFuture<'s, ()> {
        refused()
    }

    #[cfg(test)]
    fn columns(&self) -> StoreFuture<'_, Vec<String>> {
        refused()
    }
}
