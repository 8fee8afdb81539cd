//! The usage journal: a file with the usage that the store doesn't have yet, so that it survives if the gateway is killed.
//!
//! Each request is written to it before the end of its answer is sent, so it survives the process. It also survives the machine
//! once the file is synced, which happens in the background after each write that the store did not accept. The journal has two
//! halves, one of which is being written. Whenever the store has accepted usage, or that half fills up, the other half starts
//! with the sums of everything that the store doesn't have, and is written from then on. So a journal doesn't grow, however
//! long the store is unavailable. Its space is allocated when it is created, so a disk that fills up later, which also keeps
//! SQLite from writing, doesn't matter.

mod line;
mod recovery;

use std::fs::{File, TryLockError as Locked};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use gatewright_store::{Rows, Totals, UsageKey};
use gatewright_system::crash;
use gatewright_system::disk::{UNFINISHED, private_file, private_folder, sync_folder};
use tokio::sync::Notify;

use self::line::{JournalLine, MAX_LINE_BYTES, framed};
pub(crate) use self::recovery::RecoveredJournal;

/// Bytes before the first half: space for the line that identifies the file.
const HEAD: u64 = MAX_LINE_BYTES as u64;
/// Bytes of a half: about 11,000 requests, or as many sums.
const HALF: u64 = 2 * 1024 * 1024;
/// Chunk size for allocating the space. For larger chunks, Linux uses larger page cache pages, and each later write to such a
/// page takes several times as long.
const PIECE: usize = 16 * 1024;
/// Maximum number of journals in a folder: each process killed while the store was unavailable leaves one.
const MAX_FILES: usize = 256;
/// How long a request waits for a concurrent write. Writes take microseconds, unless the disk hangs: then requests don't wait.
const PATIENCE: Duration = Duration::from_millis(100);
/// Pause between two attempts to create a file.
const PAUSE: Duration = Duration::from_secs(5);

/// File extension of journals.
const ENDING: &str = "journal";

/// Which usage is reported together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UsageGroup {
    /// Number of the batch in which the store gets it.
    pub(crate) batch: u64,
    /// Incremented whenever the journal starts over with the sums so far.
    pub(crate) part: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Journal {
    folder: PathBuf,
    writer: Arc<str>,
    state: Mutex<JournalState>,
    /// Whether a write is so slow that others don't wait for it.
    is_slow: AtomicBool,
    /// Whether the sums should be written soon.
    wants_sums: AtomicBool,
    /// Notified when half of a half is used, and it will be full soon.
    filling: Notify,
    /// Requests that couldn't be written since the start.
    missed: AtomicU64,
    /// Whether this has been logged.
    is_missing: AtomicBool,
    /// Whether a sync is in progress.
    is_syncing: AtomicBool,
}

#[derive(Debug)]
enum JournalState {
    /// The file can't be created yet. With the time of the next attempt.
    Missing(Instant),
    Open(JournalFile),
    /// The store has everything.
    Ended,
}

#[derive(Debug)]
struct JournalFile {
    /// Positioned where the next line goes. Locked, to show others that its process is alive.
    file: File,
    path: PathBuf,
    /// 0 or 1.
    half: u64,
    /// Bytes used in the half.
    used: u64,
}

impl Journal {
    /// Opens the journal of a process in a folder, which is created with access for its owner only. `writer`: the name of the
    /// process in the store, without characters that aren't allowed in file names. If the file can't be created, this is retried.
    pub(crate) fn open(folder: &Path, writer: &Arc<str>) -> Self {
        let journal = Self {
            folder: folder.to_owned(),
            writer: Arc::clone(writer),
            state: Mutex::new(JournalState::Missing(Instant::now())),
            is_slow: AtomicBool::new(false),
            wants_sums: AtomicBool::new(false),
            filling: Notify::new(),
            missed: AtomicU64::new(0),
            is_missing: AtomicBool::new(false),
            is_syncing: AtomicBool::new(false),
        };
        journal.write_sums(|| (0, Vec::new()));
        journal
    }

    /// What ended processes left in a folder before the store had it. See [`RecoveredJournal::read`].
    pub(crate) fn inherited(folder: &Path, known_for: Duration) -> Vec<RecoveredJournal> {
        RecoveredJournal::read(folder, known_for)
    }

    /// Writes what a request consumed.
    pub(super) fn add(&self, mark: UsageGroup, place: &UsageKey, totals: &Totals) {
        let Some(line) = framed(&self.writer, &JournalLine::request(mark, place, totals)) else {
            return self.miss(totals, &"a name in it is too long");
        };
        let Some(mut state) = self.enter() else { return self.miss(totals, &"its disk does not respond") };
        let JournalState::Open(open) = &mut *state else {
            drop(state);
            return self.miss(totals, &"its file cannot be created");
        };
        let written = open.write(&line);
        let is_filling = open.used > HALF / 2;
        drop(state);
        self.is_slow.store(false, Ordering::Relaxed);
        if is_filling && !self.wants_sums.swap(true, Ordering::Relaxed) {
            self.filling.notify_one();
        }
        if let Err(error) = written {
            self.miss(totals, &error);
        }
    }

    /// Whether the journal needs the sums of everything that the store doesn't have: it is filling up, or is incomplete.
    pub(crate) fn wants_sums(&self) -> bool {
        self.wants_sums.load(Ordering::Relaxed)
    }

    /// Waits until half of the space is used since the last wait.
    pub(crate) async fn fills(&self) {
        self.filling.notified().await;
    }

    /// Starts the other half with the sums of everything that the store doesn't have. `sums`: returns them by batch number, and
    /// the part that later requests belong to; no request is written meanwhile.
    pub(crate) fn write_sums<'r>(&self, sums: impl FnOnce() -> (u64, Vec<(u64, &'r Rows)>)) {
        let missed = self.missed.load(Ordering::Relaxed);
        if let Err(error) = self.make() {
            self.wants_sums.store(true, Ordering::Relaxed);
            return self.warn(&error);
        }
        let Some(mut state) = self.enter() else { return };
        let JournalState::Open(open) = &mut *state else { return };
        let (part, sums) = sums();
        let written = self.lines_of(part, &sums).and_then(|lines| open.begin(&lines));
        drop(state);
        self.is_slow.store(false, Ordering::Relaxed);
        if let Err(error) = written {
            return self.warn(&error);
        }
        let lacks_none = self.missed.load(Ordering::Relaxed) == missed;
        self.wants_sums.store(!lacks_none, Ordering::Relaxed);
        if lacks_none && self.is_missing.swap(false, Ordering::Relaxed) {
            tracing::info!("usage is journaled again");
        }
    }

    /// Creates the file if it doesn't exist and an attempt is due. Requests don't wait for it: they stay unjournaled meanwhile.
    fn make(&self) -> io::Result<()> {
        match self.enter().as_deref_mut() {
            Some(JournalState::Missing(next)) if *next <= Instant::now() => *next = Instant::now() + PAUSE,
            _ => return Ok(()),
        }
        let made = JournalFile::make(&self.folder, &self.writer)?;
        match self.enter().as_deref_mut() {
            Some(state @ JournalState::Missing(_)) => *state = JournalState::Open(made),
            _ => _ = std::fs::remove_file(made.path),
        }
        Ok(())
    }

    fn lines_of(&self, part: u64, sums: &[(u64, &Rows)]) -> io::Result<Vec<u8>> {
        let mut lines = Vec::new();
        let mut count = 0;
        for (batch, rows) in sums {
            for (place, totals) in *rows {
                let line = framed(
                    &self.writer,
                    &JournalLine::sum(UsageGroup { batch: *batch, part }, place, totals),
                );
                lines.extend(line.ok_or_else(|| io::Error::other("a name in it is too long"))?);
                count += 1;
                if lines.len() as u64 > HALF {
                    return Err(full());
                }
            }
        }
        lines.extend(framed(&self.writer, &JournalLine::Whole(part, count)).unwrap_or_default());
        Ok(lines)
    }

    /// Waits until everything written is on disk. Requests don't wait for it, and a concurrent second call does nothing.
    pub(crate) fn sync(&self) {
        if self.is_syncing.swap(true, Ordering::AcqRel) {
            return;
        }
        let file = match self.enter().as_deref() {
            Some(JournalState::Open(open)) => open.file.try_clone().ok(),
            _ => None,
        };
        if let Some(Err(error)) = file.map(|file| file.sync_data()) {
            tracing::debug!("the usage journal is not on disk: {error}");
        }
        self.is_syncing.store(false, Ordering::Release);
    }

    /// Removes the file: the store has everything.
    pub(crate) fn end(&self) {
        if let Some(mut state) = self.enter()
            && let JournalState::Open(open) = std::mem::replace(&mut *state, JournalState::Ended)
        {
            // A file without usage is also removed by the next process.
            crash::point();
            _ = std::fs::remove_file(open.path);
            crash::point();
        }
    }

    /// Requests that couldn't be written since the start.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    fn miss(&self, totals: &Totals, why: &dyn std::fmt::Display) {
        self.missed.fetch_add(totals.requests, Ordering::Relaxed);
        self.wants_sums.store(true, Ordering::Relaxed);
        self.warn(why);
    }

    fn warn(&self, why: &dyn std::fmt::Display) {
        if !self.is_missing.swap(true, Ordering::Relaxed) {
            let folder = self.folder.display();
            tracing::warn!(%folder, "usage is not journaled, and is lost if the gateway is killed before it is stored: {why}");
        }
    }

    /// Waits for concurrent writes. None: a write takes so long that the disk seems to hang.
    fn enter(&self) -> Option<MutexGuard<'_, JournalState>> {
        let mut started = None;
        loop {
            match self.state.try_lock() {
                Ok(state) => return Some(state),
                Err(TryLockError::Poisoned(state)) => return Some(state.into_inner()),
                Err(TryLockError::WouldBlock) => {}
            }
            if self.is_slow.load(Ordering::Relaxed) {
                return None;
            }
            if started.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                self.is_slow.store(true, Ordering::Relaxed);
                return None;
            }
            std::thread::yield_now();
        }
    }
}

impl JournalFile {
    /// Creates the file and allocates its space. It gets its name once it is complete and locked, because others remove unlocked
    /// files.
    fn make(folder: &Path, writer: &str) -> io::Result<Self> {
        crash::point();
        private_folder().recursive(true).create(folder)?;
        crash::point();
        if std::fs::read_dir(folder)?.count() >= MAX_FILES {
            return Err(io::Error::other("the folder is full of journals that are not stored yet"));
        }
        let (path, unfinished) = (named(folder, writer, ENDING), named(folder, writer, UNFINISHED));
        let mut options = private_file();
        options.write(true).create(true).truncate(true);
        let made = options.open(&unfinished).and_then(|mut file| {
            file.try_lock().map_err(|locked| match locked {
                Locked::Error(error) => error,
                Locked::WouldBlock => io::Error::other("another process has locked its file"),
            })?;
            crash::point();
            let head = framed("", &JournalLine::Journal(line::VERSION, writer.into())).ok_or_else(full)?;
            let piece = [0; PIECE];
            for _ in 0..(HEAD + 2 * HALF).div_ceil(PIECE as u64) {
                file.write_all(&piece)?;
            }
            file.rewind()?;
            crash::point();
            file.write_all(&head)?;
            crash::point();
            std::fs::rename(&unfinished, &path)?;
            crash::point();
            // Otherwise a power failure might lose the journal, whatever of it is synced later.
            for folder in [Some(folder), folder.parent()].into_iter().flatten() {
                sync_folder(folder)?;
            }
            Ok(file)
        });
        match made {
            Ok(file) => Ok(Self { file, path, half: 1, used: HALF }),
            Err(error) => {
                _ = std::fs::remove_file(unfinished);
                Err(error)
            }
        }
    }

    /// Writes lines at the end of the half.
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.used + lines.len() as u64 > HALF {
            return Err(full());
        }
        crash::point();
        let written = self.file.write_all(lines);
        crash::point();
        if let Err(error) = written {
            // A partial write will be overwritten.
            self.file.seek(SeekFrom::Start(HEAD + self.half * HALF + self.used))?;
            return Err(error);
        }
        self.used += lines.len() as u64;
        Ok(())
    }

    /// Switches to the other half, which starts with these lines. If that fails, the current half stays in use.
    fn begin(&mut self, lines: &[u8]) -> io::Result<()> {
        let before = (self.half, self.used);
        self.file.seek(SeekFrom::Start(HEAD + (1 - self.half) * HALF))?;
        (self.half, self.used) = (1 - self.half, 0);
        let written = self.write(lines);
        if written.is_err() {
            (self.half, self.used) = before;
            self.file.seek(SeekFrom::Start(HEAD + self.half * HALF + self.used))?;
        }
        written
    }
}

fn named(folder: &Path, writer: &str, ending: &str) -> PathBuf {
    folder.join(format!("{writer}.{ending}"))
}

fn full() -> io::Error {
    io::Error::new(io::ErrorKind::StorageFull, "it is full until usage is stored")
}

#[cfg(test)]
mod tests;
