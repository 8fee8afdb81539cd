//! Removes expired files, and leftovers of processes that have ended: files that were written but never recorded, and
//! partial files. Several gateways may sweep at the same time: a file already removed is not an error. Expiry uses the
//! store's clock, because the clock of one of them may be wrong.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use gatewright_store::{FileName, StoreError};
use gatewright_system::clock::unix_millis;
use gatewright_system::supervise;

use super::GeneratedFiles;
use super::contents::FileEntry;
use super::failure::FileError;

/// Interval between sweeps for expired files, plus or minus a fifth so that gateways don't all sweep at the same
/// time.
const PAUSE: Duration = Duration::from_secs(10);
/// Every how many turns leftovers are looked for.
const TURNS: u32 = 30;
/// Maximum number of files removed in a turn.
const MAX_A_TURN: u32 = 200;
/// Maximum number of files examined in a turn that looks for leftovers.
const MAX_LOOKED_AT: usize = 2_000;
/// How many files are removed concurrently.
const AT_ONCE: usize = 8;
/// A file not written to for this long is no longer being worked on, and won't be recorded any more.
pub(super) const LEFT: Duration = Duration::from_hours(1);

/// Why a turn ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum SweepError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Contents(#[from] FileError),
}

/// Where the last search for leftovers stopped.
pub(super) type Listing = Option<BoxStream<'static, Result<FileEntry, FileError>>>;

/// Starts sweeping, until the files are dropped. Needs a Tokio runtime.
pub(super) fn start(files: &Arc<GeneratedFiles>) {
    let files = Arc::downgrade(files);
    supervise("files", PAUSE, move || follow(Weak::clone(&files)));
}

async fn follow(files: Weak<GeneratedFiles>) {
    let (mut turn, mut listing, mut failing) = (0_u32, None, false);
    while let Some(files) = files.upgrade() {
        let swept = files.turn(turn.is_multiple_of(TURNS), &mut listing).await;
        drop(files);
        match &swept {
            Err(error) if !failing => tracing::warn!("{error}: expired files are not removed"),
            Ok(_) if failing => tracing::info!("expired files are removed again"),
            _ => {}
        }
        failing = swept.is_err();
        turn = turn.wrapping_add(1);
        // If there is more to remove, it continues soon.
        let pause = if swept.is_ok_and(|is_done| !is_done) { PAUSE / 10 } else { PAUSE };
        tokio::time::sleep(pause.mul_f64(rand::random_range(0.8..1.2))).await;
    }
}

impl GeneratedFiles {
    /// One turn. True if all expired files are removed.
    async fn turn(&self, with_left_over: bool, listing: &mut Listing) -> Result<bool, SweepError> {
        let removed = self.remove_expired().await?;
        if with_left_over {
            self.remove_left_over(LEFT, MAX_LOOKED_AT, listing).await?;
        }
        Ok(removed < usize::try_from(MAX_A_TURN).unwrap_or(usize::MAX))
    }

    /// Removes expired files, the oldest first, as many as a turn may. Returns how many.
    pub(super) async fn remove_expired(&self) -> Result<usize, StoreError> {
        let first = self.store.first_to_expire(None, MAX_A_TURN).await?;
        let expired = first.into_iter().filter(|one| one.left == 0).map(|one| one.file.name);
        // Contents are removed first: a file that can't be removed still takes up space.
        let removed: Vec<_> = stream::iter(expired)
            .map(async |name| self.remove(&name).await.then_some(name))
            .buffer_unordered(AT_ONCE)
            .filter_map(std::future::ready)
            .collect()
            .await;
        if !removed.is_empty() {
            self.store.remove_files(&removed).await?;
        }
        Ok(removed.len())
    }

    /// Removes files, among the next `most`, that are not recorded and were last written to at least `left`
    /// ago.
    pub(super) async fn remove_left_over(
        &self,
        left: Duration,
        most: usize,
        listing: &mut Listing,
    ) -> Result<(), SweepError> {
        // Uses the earlier of the store's clock and this machine's, which may be the folder's: a wrong clock then never
        // removes a file that another gateway is still writing.
        let now = unix_millis().min(self.store.clock().await?);
        let before = Duration::from_millis(now).saturating_sub(left);
        let removed = self.contents.remove_unfinished(before, most).await?;
        if removed > 0 {
            tracing::info!(removed, "removed unfinished files");
        }
        let mut rest = listing.take().unwrap_or_else(|| self.contents.list());
        for _ in 0..most {
            // At the end of the list, the next turn starts over.
            let Some(found) = rest.next().await else { return Ok(()) };
            let FileEntry { name, written } = found?;
            if written <= before.as_secs() && !self.store.has_file(&name).await? && self.remove(&name).await {
                tracing::info!(%name, "removed an unreferenced file");
            }
        }
        *listing = Some(rest);
        Ok(())
    }

    /// Removes a file that only this process knows, before it expires. If that fails, it expires.
    pub(crate) async fn discard(&self, name: FileName) {
        if self.remove(&name).await
            && let Err(error) = self.store.remove_files(&[name]).await
        {
            tracing::warn!("{error}: an unreferenced file counts until it expires");
        }
    }

    /// Removes files that were written but won't be recorded, as far as possible.
    pub(super) async fn forget(&self, written: &[(FileName, u64)]) {
        for (name, _) in written {
            self.remove(name).await;
        }
    }

    /// Removes a file's contents. False if that fails; the reason is logged.
    async fn remove(&self, name: &FileName) -> bool {
        let removed = self.contents.remove(name).await;
        if let Err(failure) = &removed {
            tracing::warn!("{failure}: a file is not removed");
        }
        removed.is_ok()
    }
}
