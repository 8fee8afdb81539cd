//! Removes files that have expired, and what a process that ended left: files that were written and never known, and
//! parts of files. Several gateways may sweep at the same time: what one has removed, another does not miss. The clock of one of them
//! may be wrong: what has expired, the store says.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};

use super::Files;
use super::contents::Found;
use super::failure::Failure;
use crate::clock::unix_millis;
use crate::store::durable::StoreError;
use crate::store::file_name::FileName;
use crate::supervised::supervise;

/// How often expired files are looked for, a fifth more or less, so that not all gateways do it at the same time.
const PAUSE: Duration = Duration::from_secs(10);
/// In how many turns what was left over is looked for once.
const TURNS: u32 = 30;
/// Maximum number of files removed in a turn.
const MOST_A_TURN: u32 = 200;
/// Maximum number of files looked at in a turn that looks for what was left over.
const MOST_LOOKED_AT: usize = 2_000;
/// How many files are removed at once.
const AT_ONCE: usize = 8;
/// Nobody is still at work on what has not been written to for so long, nor will make it known.
pub(super) const LEFT: Duration = Duration::from_hours(1);

/// Why a turn ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unswept {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Contents(#[from] Failure),
}

/// Where the last turn that looked for what was left over stopped.
pub(super) type Listing = Option<BoxStream<'static, Result<Found, Failure>>>;

/// Starts the sweeping, until the files are gone. Needs a Tokio runtime.
pub(super) fn start(files: &Arc<Files>) {
    let files = Arc::downgrade(files);
    supervise("files", PAUSE, move || follow(Weak::clone(&files)));
}

async fn follow(files: Weak<Files>) {
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
        // Where there is more to remove, it does not wait for long.
        let pause = if swept.is_ok_and(|is_done| !is_done) { PAUSE / 10 } else { PAUSE };
        tokio::time::sleep(pause.mul_f64(rand::random_range(0.8..1.2))).await;
    }
}

impl Files {
    /// One turn. True if all that has expired is removed.
    async fn turn(&self, with_left_over: bool, listing: &mut Listing) -> Result<bool, Unswept> {
        let removed = self.remove_expired().await?;
        if with_left_over {
            self.remove_left_over(LEFT, MOST_LOOKED_AT, listing).await?;
        }
        Ok(removed < usize::try_from(MOST_A_TURN).unwrap_or(usize::MAX))
    }

    /// Removes files that have expired, the oldest first, as many as a turn may. Returns how many.
    pub(super) async fn remove_expired(&self) -> Result<usize, StoreError> {
        let first = self.store.first_to_expire(None, MOST_A_TURN).await?;
        let expired = first.into_iter().filter(|one| one.left == 0).map(|one| one.file.name);
        // What is in them goes first: a file that cannot be removed goes on taking its room.
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

    /// Removes what nobody has written to for so long and nobody knows, of the next `most` files.
    pub(super) async fn remove_left_over(
        &self,
        left: Duration,
        most: usize,
        listing: &mut Listing,
    ) -> Result<(), Unswept> {
        // Old by the clock of the store as well as by that of this machine, which may be that of the folder: a wrong one removes
        // nothing that another gateway is writing.
        let now = unix_millis().min(self.store.clock().await?);
        let before = Duration::from_millis(now).saturating_sub(left);
        let removed = self.contents.remove_unfinished(before, most).await?;
        if removed > 0 {
            tracing::info!(removed, "files that were never finished are removed");
        }
        let mut rest = listing.take().unwrap_or_else(|| self.contents.list());
        for _ in 0..most {
            // At the end, the next turn begins anew.
            let Some(found) = rest.next().await else { return Ok(()) };
            let Found { name, written } = found?;
            if written <= before.as_secs() && !self.store.has_file(&name).await? && self.remove(&name).await {
                tracing::info!(%name, "a file that nobody was told of is removed");
            }
        }
        *listing = Some(rest);
        Ok(())
    }

    /// Removes a file that is known here alone before it expires. If that fails, it expires.
    pub(crate) async fn discard(&self, name: FileName) {
        if self.remove(&name).await
            && let Err(error) = self.store.remove_files(&[name]).await
        {
            tracing::warn!("{error}: a file that nobody was told of counts until it expires");
        }
    }

    /// Removes files that were written and are not to be known, as far as possible.
    pub(super) async fn forget(&self, written: &[(FileName, u64)]) {
        for (name, _) in written {
            self.remove(name).await;
        }
    }

    /// Removes what is in a file. False if that fails; the log says why.
    async fn remove(&self, name: &FileName) -> bool {
        let removed = self.contents.remove(name).await;
        if let Err(failure) = &removed {
            tracing::warn!("{failure}: a file is not removed");
        }
        removed.is_ok()
    }
}
