//! The spool: a folder for what the store did not accept in time, so that it survives a killed gateway.
//!
//! Each item is a separate file. It is completely on the disk before its content is acknowledged, and is removed once the
//! store has it. While the store answers, there are none. A starting process takes over the items of ended processes, in
//! order. An item's content is what the store would get, sealed if the store's is sealed. A digest keyed from the pepper
//! distinguishes it from files that are truncated, modified, foreign or renamed.
//!
//! A process may be killed after the store accepted an item and before its file is removed: the store then gets it again and
//! must tolerate that.

mod lock_file;
mod recovery;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use gatewright_system::clock::unix_millis;
use gatewright_system::crash;
use gatewright_system::disk::{UNFINISHED, private_file, private_folder, sync_folder};
use ring::hmac;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use uuid::Uuid;

pub use self::lock_file::ENDING as ENDING_OF_LOCKS;
use self::lock_file::LockFile;
pub use self::recovery::RecoveredEntry;

/// Format version of a file: this byte, the digest of its name and of the content, and the content.
const FORM: u8 = 1;
/// Bytes before an item's content.
const HEAD: usize = 1 + 32;
/// Maximum size of an item, in bytes.
const MAX_RECORD_BYTES: usize = 24 * 1024 * 1024;
/// Maximum number of items of a process, including those it takes over.
const MAX_ITEMS: usize = 2_000;
/// Maximum size of all of them, in bytes.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// How long an answer waits for the disk, which may hang. After that, no other answer waits for it.
const PATIENCE: Duration = Duration::from_secs(1);
/// Maximum number of concurrent writes. Further ones wait.
const MAX_WRITING: usize = 8;

/// A folder for what the store did not accept in time, so that it survives a killed gateway.
pub struct Spool {
    folder: PathBuf,
    /// Keys the digests of files.
    key: hmac::Key,
    /// The name of this process. Names sort by the start time of the processes.
    writer: String,
    /// Proves that the files with that name belong to this process. None until there is one.
    claim: Mutex<Option<LockFile>>,
    taken: Arc<Mutex<SpoolUsage>>,
    /// Items left behind by ended processes, until they are taken.
    inherited: Mutex<Vec<RecoveredEntry>>,
    writing: Arc<Semaphore>,
    /// Whether a write is so slow that others don't wait for it.
    is_slow: AtomicBool,
    /// Whether the log reports that items are only in memory.
    is_failing: AtomicBool,
}

/// The kind of an item's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// Changes of stored responses.
    Changes,
    /// The answer to a request with an idempotency key.
    Answer,
}

/// The space taken by the items of a process.
#[derive(Default)]
struct SpoolUsage {
    items: usize,
    bytes: usize,
    /// Number of items created.
    count: u64,
}

/// An item. Dropping it keeps its file; [removing](Self::remove) it deletes the file.
#[derive(Clone)]
pub struct SpoolEntry(Arc<EntryInner>);

struct EntryInner {
    path: PathBuf,
    bytes: usize,
    taken: Arc<Mutex<SpoolUsage>>,
    stage: Mutex<EntryState>,
    /// The claim of the process that left it: while this exists, no other process takes it over.
    _claim: Option<Arc<LockFile>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryState {
    /// Its file has no name yet.
    Unwritten,
    Written,
    Removed,
}

impl EntryKind {
    const ALL: [Self; 2] = [Self::Changes, Self::Answer];

    /// Extension of the file names.
    fn ending(self) -> &'static str {
        match self {
            Self::Changes => "changes",
            Self::Answer => "answer",
        }
    }
}

impl Spool {
    /// Opens the spool of a data folder, and reads what ended processes left in it. Creates nothing yet. `key`:
    /// keys the
    /// digests of files; it is the same for all processes that share the folder.
    pub fn open(folder: &Path, key: [u8; 32]) -> Arc<Self> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        let taken = Arc::default();
        let inherited = RecoveredEntry::read(folder, &key, &taken);
        Arc::new(Self {
            folder: folder.to_owned(),
            key,
            writer: format!("{:012x}{}", unix_millis(), Uuid::new_v4().simple()),
            claim: Mutex::default(),
            taken,
            inherited: Mutex::new(inherited),
            writing: Arc::new(Semaphore::new(MAX_WRITING)),
            is_slow: AtomicBool::new(false),
            is_failing: AtomicBool::new(false),
        })
    }

    /// Items left behind by ended processes, in order. The caller then owns them.
    pub fn inherited(&self, kind: EntryKind) -> Vec<RecoveredEntry> {
        lock(&self.inherited).extract_if(.., |one| one.kind == kind).collect()
    }

    /// Whether the latest item is on the disk.
    pub fn works(&self) -> bool {
        !self.is_failing.load(Ordering::Relaxed)
    }

    /// Writes an item. Returns once it is on the disk, or soon if that takes too long. None: it stays in memory, which is
    /// logged. Not cancel-safe: call it from a spawned task.
    pub async fn keep(self: &Arc<Self>, kind: EntryKind, content: impl Into<Bytes>) -> Option<SpoolEntry> {
        let content = content.into();
        let Some(entry) = self.begin(kind, HEAD + content.len()) else {
            self.fails(&"it is full");
            return None;
        };
        let Some(place) = self.place().await else {
            self.fails(&"its disk does not respond");
            return None;
        };
        let (spool, item) = (Arc::clone(self), entry.clone());
        let writing = spawn_blocking(move || {
            let written = spool.write(&item.0, &content);
            spool.is_slow.store(false, Ordering::Relaxed);
            drop(place);
            written
        });
        match timeout(PATIENCE, writing).await {
            Ok(Ok(Ok(()))) => {
                if self.is_failing.swap(false, Ordering::Relaxed) {
                    tracing::info!("pending writes are spooled to disk again");
                }
                Some(entry)
            }
            Ok(Ok(Err(error))) => {
                self.fails(&error);
                entry.remove().await;
                None
            }
            Ok(Err(error)) => {
                self.fails(&error);
                None
            }
            // It may still be written, and is removed in time in any case.
            Err(_) => {
                self.is_slow.store(true, Ordering::Relaxed);
                self.fails(&"its disk does not respond");
                Some(entry)
            }
        }
    }

    /// Reserves space for an item. `None`: no space is left.
    fn begin(&self, kind: EntryKind, bytes: usize) -> Option<SpoolEntry> {
        let mut taken = lock(&self.taken);
        if bytes > MAX_RECORD_BYTES || taken.items >= MAX_ITEMS || taken.bytes + bytes > MAX_BYTES {
            return None;
        }
        taken.count += 1;
        let name = format!("{}.{:012}.{}", self.writer, taken.count, kind.ending());
        drop(taken);
        Some(SpoolEntry::new(self.folder.join(name), bytes, &self.taken, EntryState::Unwritten, None))
    }

    /// A slot for writing. None: the disk seems to hang.
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        let writing = Arc::clone(&self.writing);
        if self.is_slow.load(Ordering::Relaxed) {
            return writing.try_acquire_owned().ok();
        }
        timeout(PATIENCE, writing.acquire_owned()).await.ok()?.ok()
    }

    fn write(&self, item: &EntryInner, content: &[u8]) -> io::Result<()> {
        self.claim()?;
        let unfinished = unfinished(&item.path);
        let written = self.write_at(&unfinished, item, content);
        if written.is_err() {
            _ = std::fs::remove_file(unfinished);
        }
        written
    }

    fn write_at(&self, unfinished: &Path, item: &EntryInner, content: &[u8]) -> io::Result<()> {
        crash::point();
        let mut file = create(unfinished)?;
        crash::point();
        file.write_all(&[FORM])?;
        file.write_all(digest(&self.key, &item.path, content).as_ref())?;
        file.write_all(content)?;
        crash::point();
        file.sync_data()?;
        crash::point();
        let mut stage = lock(&item.stage);
        if *stage == EntryState::Removed {
            return std::fs::remove_file(unfinished);
        }
        std::fs::rename(unfinished, &item.path)?;
        *stage = EntryState::Written;
        drop(stage);
        crash::point();
        sync_folder(&self.folder)?;
        crash::point();
        Ok(())
    }

    /// Creates the folder, and claims the files of this process.
    fn claim(&self) -> io::Result<()> {
        let mut claim = lock(&self.claim);
        if claim.is_none() {
            create_folder(&self.folder)?;
            *claim = Some(LockFile::make(&self.folder, &self.writer)?);
        }
        Ok(())
    }

    fn fails(&self, why: &dyn std::fmt::Display) {
        if !self.is_failing.swap(true, Ordering::Relaxed) {
            let folder = self.folder.display();
            tracing::warn!(%folder, "pending writes are only in memory, and lost if the gateway is killed: {why}");
        }
    }
}

impl SpoolEntry {
    fn new(
        path: PathBuf,
        bytes: usize,
        taken: &Arc<Mutex<SpoolUsage>>,
        stage: EntryState,
        claim: Option<Arc<LockFile>>,
    ) -> Self {
        let mut counted = lock(taken);
        counted.items += 1;
        counted.bytes += bytes;
        drop(counted);
        Self(Arc::new(EntryInner {
            path,
            bytes,
            taken: Arc::clone(taken),
            stage: Mutex::new(stage),
            _claim: claim,
        }))
    }

    /// The store has it, or it is no longer needed: removes its file.
    pub async fn remove(&self) {
        Self::remove_all(vec![self.clone()]).await;
    }

    /// The same for several. Doesn't wait for a disk that hangs.
    pub async fn remove_all(items: Vec<Self>) {
        if !items.is_empty() {
            let removing = spawn_blocking(move || items.iter().for_each(|item| item.0.remove()));
            _ = timeout(PATIENCE, removing).await;
        }
    }
}

impl EntryInner {
    fn remove(&self) {
        let mut stage = lock(&self.stage);
        if std::mem::replace(&mut *stage, EntryState::Removed) != EntryState::Written {
            return;
        }
        crash::point();
        let removed = std::fs::remove_file(&self.path);
        crash::point();
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let file = self.path.display();
                tracing::warn!(%file, "the next start would write this file to the store again; remove the file: {error}");
            }
            _ => {}
        }
    }
}

impl Drop for EntryInner {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        taken.items -= 1;
        taken.bytes -= self.bytes;
    }
}

/// Proves that an item was written under this name by a holder of the pepper.
fn digest(key: &hmac::Key, path: &Path, content: &[u8]) -> hmac::Tag {
    let mut digest = hmac::Context::with_key(key);
    // No name contains a line break.
    digest.update(path.file_name().unwrap_or_default().as_encoded_bytes());
    digest.update(b"\n");
    digest.update(content);
    digest.sign()
}

fn unfinished(path: &Path) -> PathBuf {
    path.with_added_extension(UNFINISHED)
}

/// Creates a file with access for its owner only.
fn create(path: &Path) -> io::Result<File> {
    private_file().write(true).create(true).truncate(true).open(path)
}

/// Creates a folder with access for its owner only, if it is missing; but not the data folder, which may be away
/// and come back.
fn create_folder(folder: &Path) -> io::Result<()> {
    crash::point();
    match private_folder().create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => crash::point(),
    }
    folder.parent().map_or(Ok(()), sync_folder)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
