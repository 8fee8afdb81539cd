//! Space for files: the space taken by the files of all gateways that share the store, and the space promised to work in
//! progress in this process. One key takes at most its share and its own limit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gatewright_store::{FileKind, FileName, FileRecord, FileTotals, StoredFile};

use super::GeneratedFiles;
use super::failure::store_unavailable;
use super::refusal::{BoundCheck, ExceededBound};
use crate::wire::ApiError;

/// Maximum number of files.
const MAX_FILES: u64 = 100_000;
/// Space reserved at a time while the size of a file is unknown, in bytes.
const STEP: u64 = 4 * 1024 * 1024;

/// Space reserved for work in progress of one API key. Released when dropped.
pub(crate) struct FileReservation {
    pub(super) files: Arc<GeneratedFiles>,
    most: KeyFileQuota,
    promised: PendingReservation,
}

/// How much the files of one API key may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyFileQuota {
    /// As a share of the total.
    pub(crate) percent: u8,
    /// The key's own limit, if it has one.
    pub(crate) bytes: Option<u64>,
}

/// Space promised to work in progress, in bytes.
#[derive(Default)]
pub(super) struct PendingReservations(Mutex<PendingTotals>);

#[derive(Default)]
struct PendingTotals {
    all: u64,
    /// By the id of the API key.
    own: HashMap<Arc<str>, u64>,
}

/// A promise. Withdrawn when dropped.
struct PendingReservation {
    files: Arc<GeneratedFiles>,
    owner: Arc<str>,
    bytes: u64,
}

impl PendingReservations {
    fn lock(&self) -> MutexGuard<'_, PendingTotals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingReservation {
    /// Also returns the totals promised so far, including this one: overall, and to its API key.
    fn new(files: &Arc<GeneratedFiles>, owner: &Arc<str>, bytes: u64) -> (Self, u64, u64) {
        let mut promised = files.promises.lock();
        promised.all = promised.all.saturating_add(bytes);
        let own = promised.own.entry(Arc::clone(owner)).or_default();
        *own = own.saturating_add(bytes);
        let (own, all) = (*own, promised.all);
        drop(promised);
        (Self { files: Arc::clone(files), owner: Arc::clone(owner), bytes }, all, own)
    }

    /// Merges another promise to the same key into this one.
    fn join(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    fn take_back(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let mut promised = self.files.promises.lock();
        promised.all = promised.all.saturating_sub(bytes);
        if let Some(own) = promised.own.get_mut(&self.owner) {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                promised.own.remove(&self.owner);
            }
        }
    }
}

impl Drop for PendingReservation {
    fn drop(&mut self) {
        self.take_back();
    }
}

impl KeyFileQuota {
    /// All the space there is.
    #[cfg(test)]
    pub(crate) const ALL: Self = Self::part(100);

    /// A share of the total, without a limit of the key.
    #[cfg(test)]
    pub(crate) const fn part(percent: u8) -> Self {
        Self { percent, bytes: None }
    }
}

impl GeneratedFiles {
    /// Promises space for files of about `bytes` before the work that produces them.
    ///
    /// Errors: there is no room until files expire, with the seconds until then; the store does not answer.
    pub(crate) async fn reserve(
        self: &Arc<Self>,
        owner: &Arc<str>,
        most: KeyFileQuota,
        bytes: u64,
    ) -> Result<FileReservation, ApiError> {
        let (promised, ..) = PendingReservation::new(self, owner, 0);
        let mut room = FileReservation { files: Arc::clone(self), most, promised };
        room.grow(bytes).await?;
        Ok(room)
    }

    #[cfg(test)]
    pub(super) fn promised(&self) -> (u64, usize) {
        let promised = self.promises.lock();
        (promised.all, promised.own.len())
    }
}

impl FileReservation {
    /// The size of the largest file that could ever be stored.
    pub(crate) fn most(&self) -> u64 {
        let part = self.part().bytes;
        self.most.bytes.map_or(part, |limit| limit.min(part))
    }

    /// Whether that size comes from the key's own limit.
    pub(crate) fn is_limited(&self) -> bool {
        self.most.bytes.is_some_and(|limit| limit < self.part().bytes)
    }

    /// Reserves more as a file's bytes arrive, to `bytes` in total and some in advance, so that the store is not queried
    /// for each packet. Errors: see [`GeneratedFiles::reserve`].
    pub(super) async fn claim(&mut self, bytes: u64) -> Result<(), ApiError> {
        let ahead = bytes.next_multiple_of(STEP).min(self.most());
        if bytes <= self.promised.bytes || ahead > bytes && self.grow(ahead).await.is_ok() {
            return Ok(());
        }
        self.grow(bytes).await
    }

    /// Reserves more, up to `bytes` in total. Errors: see [`GeneratedFiles::reserve`].
    pub(crate) async fn grow(&mut self, bytes: u64) -> Result<(), ApiError> {
        let more = bytes.saturating_sub(self.promised.bytes);
        if more == 0 {
            return Ok(());
        }
        // Promise first, then check: files that others store in between are counted twice rather than not at
        // all.
        let (promise, all, own) = PendingReservation::new(&self.files, &self.promised.owner, more);
        self.judge(all, own, more).await?;
        self.promised.join(promise);
        Ok(())
    }

    /// Stores files for `lifetime` from now: all of them, or none.
    ///
    /// Errors: they are larger than the reservation, and there is no room for the rest; they can't be written.
    pub(crate) async fn keep(
        mut self,
        kind: FileKind,
        contents: Vec<Vec<u8>>,
        lifetime: Duration,
    ) -> Result<Vec<StoredFile>, ApiError> {
        let bytes = |contents: &Vec<u8>| u64::try_from(contents.len()).unwrap_or(u64::MAX);
        self.grow(contents.iter().map(bytes).sum()).await?;
        let mut written = Vec::with_capacity(contents.len());
        for contents in contents {
            let (name, bytes) = (FileName::random(kind), bytes(&contents));
            written.push((name.clone(), bytes));
            if let Err(failure) = self.files.contents.write(&name, contents).await {
                self.files.forget(&written).await;
                return Err(failure.unwritten());
            }
        }
        let expires = self.record(&written, lifetime).await?;
        Ok(written.into_iter().map(|(name, _)| StoredFile { name, expires }).collect())
    }

    /// Records written files, which replace the space reserved for them. Returns when they expire, by the store's clock.
    pub(super) async fn record(
        &mut self,
        written: &[(FileName, u64)],
        lifetime: Duration,
    ) -> Result<u64, ApiError> {
        let owner = &self.promised.owner;
        let record = |(name, bytes): &(FileName, u64)| FileRecord {
            name: name.clone(),
            owner: Arc::clone(owner),
            bytes: *bytes,
        };
        let records: Vec<_> = written.iter().map(record).collect();
        // If this fails, they may have been recorded anyway. Those that were not are removed by a later sweep.
        let added = self.files.store.add_files(&records, lifetime).await;
        let expires = added.map_err(|error| store_unavailable(&error))?;
        let bytes = records.iter().map(|record| record.bytes).sum();
        self.files.counts.add(owner, FileTotals { files: records.len() as u64, bytes });
        // Only now: the reservation counted for them until they were recorded.
        self.promised.take_back();
        Ok(expires)
    }

    /// The share of the total that the key's files may take.
    fn part(&self) -> FileTotals {
        let percent = u64::from(self.most.percent.min(100));
        // These products can't overflow.
        let of = |most: u64| most / 100 * percent + most % 100 * percent / 100;
        FileTotals { files: of(MAX_FILES), bytes: of(self.files.max_bytes) }
    }

    /// Checks that there is room for everything promised, overall and to the key. `more`: the part promised to this
    /// request.
    async fn judge(&self, all: u64, own: u64, more: u64) -> Result<(), ApiError> {
        let owner = &self.promised.owner;
        if let Some(taken) = self.files.counts.fresh(owner)
            && self.bounds(taken, all, own, more).all(|full| full.is_plentiful())
        {
            return Ok(());
        }
        let mut swept = false;
        loop {
            let started = Instant::now();
            let taken =
                self.files.store.taken_by_files(owner).await.map_err(|error| store_unavailable(&error))?;
            self.files.counts.note(owner, started, taken);
            let Some(full) = self.bounds(taken, all, own, more).find(BoundCheck::is_full) else {
                return Ok(());
            };
            if swept {
                return Err(full.refusal(&self.files).await);
            }
            // Removing expired files frees space immediately, no matter which gateway removes them.
            self.files.remove_expired().await.map_err(|error| store_unavailable(&error))?;
            swept = true;
        }
    }

    /// The limits to check: for all files and for the key's, including the promises to both.
    fn bounds(
        &self,
        taken: (FileTotals, FileTotals),
        all: u64,
        own: u64,
        more: u64,
    ) -> impl Iterator<Item = BoundCheck<'_>> {
        let owner = &*self.promised.owner;
        let most = FileTotals { files: MAX_FILES, bytes: self.files.max_bytes };
        let whole = BoundCheck { bound: ExceededBound::All, taken: taken.0, promised: all, more, most };
        let of_key = |bound, most| BoundCheck { bound, taken: taken.1, promised: own, more, most };
        let part = of_key(ExceededBound::Part(owner), self.part());
        let limit = self.most.bytes.map(|bytes| FileTotals { files: u64::MAX, bytes });
        let limit = limit.map(|most| of_key(ExceededBound::Limit(owner), most));
        // The key's limit comes first: it applies no matter how much space others leave.
        limit.into_iter().chain([whole, part])
    }
}
