//! The spool: a folder with what the store did not take in time, so that it outlives a gateway that is killed.
//!
//! An item is a file of its own. It is whole and on the disk before anybody is told what it holds, and it is removed once the store
//! has it. While the store answers, there are none. A process that starts takes over the items of those that have ended, in
//! their order. What an item holds is what the store would get, sealed where that is sealed. A digest with a key made of the
//! pepper tells it from what is cut, changed, foreign, or has the name of another one.
//!
//! A process may be killed after the store took an item and before its file is removed: the store gets it once more then, and has
//! to bear that.

mod claim;
mod inherited;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use ring::hmac;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use uuid::Uuid;

use self::claim::Claim;
pub(crate) use self::claim::ENDING as ENDING_OF_LOCKS;
pub(super) use self::inherited::Inherited;
use crate::clock::unix_millis;
use crate::crash;
use crate::disk::{UNFINISHED, private_file, private_folder, sync_folder};

/// Form of a file: this byte, the digest of its name and of what follows, and that.
const FORM: u8 = 1;
/// Bytes before what an item holds.
const HEAD: usize = 1 + 32;
/// Maximum size of an item, in bytes.
const LONGEST: usize = 24 * 1024 * 1024;
/// Maximum number of items of a process, and of those that it takes over.
const MOST_ITEMS: usize = 2_000;
/// Maximum size of them all, in bytes.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// How long an answer waits for the disk, which may hang. Then nobody else waits for it.
const PATIENCE: Duration = Duration::from_secs(1);
/// How many write at once. Further ones wait for these.
const MOST_WRITING: usize = 8;

/// See the module.
pub(crate) struct Spool {
    folder: PathBuf,
    /// Makes the digests of files.
    key: hmac::Key,
    /// The name of this process. Names sort by the time at which processes began.
    writer: String,
    /// That the files of that name are its own. None until there is one.
    claim: Mutex<Option<Claim>>,
    taken: Arc<Mutex<Taken>>,
    /// What processes left that have ended, until somebody asks for it.
    inherited: Mutex<Vec<Inherited>>,
    writing: Arc<Semaphore>,
    /// Whether a write takes so long that others do not wait for it.
    is_slow: AtomicBool,
    /// Whether the log says that items are in memory alone.
    is_failing: AtomicBool,
}

/// What an item holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Changes of stored responses.
    Changes,
    /// The answer to a request with an idempotency key.
    Answer,
}

/// What the items of a process take.
#[derive(Default)]
struct Taken {
    items: usize,
    bytes: usize,
    /// How many there have been.
    count: u64,
}

/// An item. Its file stays where it is dropped, and goes where it is [removed](Self::remove).
#[derive(Clone)]
pub(super) struct Kept(Arc<Item>);

struct Item {
    path: PathBuf,
    bytes: usize,
    taken: Arc<Mutex<Taken>>,
    stage: Mutex<Stage>,
    /// That of the process which left it: as long as it is here, nobody else takes it over.
    _claim: Option<Arc<Claim>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its file has no name yet.
    Unwritten,
    Written,
    Removed,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Changes, Self::Answer];

    /// Ending of the names of files.
    fn ending(self) -> &'static str {
        match self {
            Self::Changes => "changes",
            Self::Answer => "answer",
        }
    }
}

impl Spool {
    /// Opens the spool of a data folder, and reads what processes left in it that have ended. Nothing is created yet. `key`: makes the
    /// digests of files, the same for all that share the folder.
    pub(crate) fn open(folder: &Path, key: [u8; 32]) -> Arc<Self> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        let taken = Arc::default();
        let inherited = Inherited::read(folder, &key, &taken);
        Arc::new(Self {
            folder: folder.to_owned(),
            key,
            writer: format!("{:012x}{}", unix_millis(), Uuid::new_v4().simple()),
            claim: Mutex::default(),
            taken,
            inherited: Mutex::new(inherited),
            writing: Arc::new(Semaphore::new(MOST_WRITING)),
            is_slow: AtomicBool::new(false),
            is_failing: AtomicBool::new(false),
        })
    }

    /// What processes left that have ended, in its order. Whoever asks has it from then on.
    pub(super) fn inherited(&self, kind: Kind) -> Vec<Inherited> {
        lock(&self.inherited).extract_if(.., |one| one.kind == kind).collect()
    }

    /// Whether what it got last is on the disk.
    pub(super) fn works(&self) -> bool {
        !self.is_failing.load(Ordering::Relaxed)
    }

    /// Writes an item. Returns when it is on the disk, or soon if that takes too long. None: it stays in memory, and the log says
    /// so. Whoever no longer waits for it loses it: it is to be called from a task that ends.
    pub(super) async fn keep(self: &Arc<Self>, kind: Kind, content: impl Into<Bytes>) -> Option<Kept> {
        let content = content.into();
        let Some(kept) = self.begin(kind, HEAD + content.len()) else {
            self.fails(&"there is no room for more");
            return None;
        };
        let Some(place) = self.place().await else {
            self.fails(&"its disk does not answer");
            return None;
        };
        let (spool, item) = (Arc::clone(self), kept.clone());
        let writing = spawn_blocking(move || {
            let written = spool.write(&item.0, &content);
            spool.is_slow.store(false, Ordering::Relaxed);
            drop(place);
            written
        });
        match timeout(PATIENCE, writing).await {
            Ok(Ok(Ok(()))) => {
                if self.is_failing.swap(false, Ordering::Relaxed) {
                    tracing::info!("what waits for the store is on the disk again");
                }
                Some(kept)
            }
            Ok(Ok(Err(error))) => {
                self.fails(&error);
                kept.remove().await;
                None
            }
            Ok(Err(error)) => {
                self.fails(&error);
                None
            }
            // It may be there later, and is removed in time all the same.
            Err(_) => {
                self.is_slow.store(true, Ordering::Relaxed);
                self.fails(&"its disk does not answer");
                Some(kept)
            }
        }
    }

    /// Takes room for an item. None: there is none.
    fn begin(&self, kind: Kind, bytes: usize) -> Option<Kept> {
        let mut taken = lock(&self.taken);
        if bytes > LONGEST || taken.items >= MOST_ITEMS || taken.bytes + bytes > MOST_BYTES {
            return None;
        }
        taken.count += 1;
        let name = format!("{}.{:012}.{}", self.writer, taken.count, kind.ending());
        drop(taken);
        Some(Kept::new(self.folder.join(name), bytes, &self.taken, Stage::Unwritten, None))
    }

    /// A place to write from. None: the disk seems to hang.
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        let writing = Arc::clone(&self.writing);
        if self.is_slow.load(Ordering::Relaxed) {
            return writing.try_acquire_owned().ok();
        }
        timeout(PATIENCE, writing.acquire_owned()).await.ok()?.ok()
    }

    fn write(&self, item: &Item, content: &[u8]) -> io::Result<()> {
        self.claim()?;
        let unfinished = unfinished(&item.path);
        let written = self.write_at(&unfinished, item, content);
        if written.is_err() {
            _ = std::fs::remove_file(unfinished);
        }
        written
    }

    fn write_at(&self, unfinished: &Path, item: &Item, content: &[u8]) -> io::Result<()> {
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
        if *stage == Stage::Removed {
            return std::fs::remove_file(unfinished);
        }
        std::fs::rename(unfinished, &item.path)?;
        *stage = Stage::Written;
        drop(stage);
        crash::point();
        sync_folder(&self.folder)?;
        crash::point();
        Ok(())
    }

    /// Makes the folder, and makes it known that files of this process are its own.
    fn claim(&self) -> io::Result<()> {
        let mut claim = lock(&self.claim);
        if claim.is_none() {
            create_folder(&self.folder)?;
            *claim = Some(Claim::make(&self.folder, &self.writer)?);
        }
        Ok(())
    }

    fn fails(&self, why: &dyn std::fmt::Display) {
        if !self.is_failing.swap(true, Ordering::Relaxed) {
            let folder = self.folder.display();
            tracing::warn!(%folder, "what waits for the store is in memory alone, and lost if the gateway is killed: {why}");
        }
    }
}

impl Kept {
    fn new(
        path: PathBuf,
        bytes: usize,
        taken: &Arc<Mutex<Taken>>,
        stage: Stage,
        claim: Option<Arc<Claim>>,
    ) -> Self {
        let mut counted = lock(taken);
        counted.items += 1;
        counted.bytes += bytes;
        drop(counted);
        Self(Arc::new(Item {
            path,
            bytes,
            taken: Arc::clone(taken),
            stage: Mutex::new(stage),
            _claim: claim,
        }))
    }

    /// The store has it, or nobody wants it any more: removes its file.
    pub(super) async fn remove(&self) {
        Self::remove_all(vec![self.clone()]).await;
    }

    /// The same of several. A disk that hangs is not waited for.
    pub(super) async fn remove_all(items: Vec<Self>) {
        if !items.is_empty() {
            let removing = spawn_blocking(move || items.iter().for_each(|item| item.0.remove()));
            _ = timeout(PATIENCE, removing).await;
        }
    }
}

impl Item {
    fn remove(&self) {
        let mut stage = lock(&self.stage);
        if std::mem::replace(&mut *stage, Stage::Removed) != Stage::Written {
            return;
        }
        crash::point();
        let removed = std::fs::remove_file(&self.path);
        crash::point();
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let file = self.path.display();
                tracing::warn!(%file, "what the store has would go to it again at the next start; remove the file: {error}");
            }
            _ => {}
        }
    }
}

impl Drop for Item {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        taken.items -= 1;
        taken.bytes -= self.bytes;
    }
}

/// What proves that an item was written for this name, by somebody with the pepper.
fn digest(key: &hmac::Key, path: &Path, content: &[u8]) -> hmac::Tag {
    let mut digest = hmac::Context::with_key(key);
    // No name has the end of a line.
    digest.update(path.file_name().unwrap_or_default().as_encoded_bytes());
    digest.update(b"\n");
    digest.update(content);
    digest.sign()
}

fn unfinished(path: &Path) -> PathBuf {
    path.with_added_extension(UNFINISHED)
}

/// Creates a file for its owner alone.
fn create(path: &Path) -> io::Result<File> {
    private_file().write(true).create(true).truncate(true).open(path)
}

/// Creates a folder for its owner alone, if it is missing; not the data folder, which may be away and come back.
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
