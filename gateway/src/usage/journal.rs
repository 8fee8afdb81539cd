//! The journal of usage: a file that has what the store does not have yet, so that it outlives a gateway that is killed.
//!
//! Each request is written into it before the end of its answer is sent, so that it survives the process. It survives the
//! machine, too, once the file is synced, which is done beside requests, twice a second, while the store takes nothing. The
//! journal has two halves, of which one is written to. Whenever the store has taken usage, or that half
//! fills up, the other one begins with the sums of all that the store does not have, and is written to from then on. So a
//! journal does not grow, however long the store is away. Its room is taken when it is made: a disk that gets full later,
//! which also keeps SQLite from writing, does not matter.

mod inherited;
mod line;

use std::fs::{File, TryLockError as Locked};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

pub(crate) use self::inherited::Inherited;
use self::line::{LONGEST, Line, framed};
use super::{Mark, Place, Rows, Totals};
use crate::crash;
use crate::disk::{UNFINISHED, private_file, private_folder};

/// Bytes before the first half: room for the line that says what the file is.
const HEAD: u64 = LONGEST as u64;
/// Bytes of a half: some 16,000 requests, or as many sums.
const HALF: u64 = 2 * 1024 * 1024;
/// In which pieces the room is taken. Of larger ones, Linux makes larger pages of its cache, and each later write to such a
/// page takes several times as long.
const PIECE: usize = 16 * 1024;
/// Maximum number of journals in a folder: each process that was killed while the store was away leaves one.
const MOST_FILES: usize = 256;
/// How long a request waits for another one that writes. It takes microseconds, unless the disk hangs: then nobody waits.
const PATIENCE: Duration = Duration::from_millis(100);
/// Pause between two attempts to make a file.
const PAUSE: Duration = Duration::from_secs(5);

/// Ending of the names of journals.
const ENDING: &str = "journal";

/// See the module.
#[derive(Debug)]
pub(crate) struct Journal {
    folder: PathBuf,
    writer: Arc<str>,
    state: Mutex<State>,
    /// Whether a write takes so long that others do not wait for it.
    is_slow: AtomicBool,
    /// Whether sums of all should be written soon.
    wants_sums: AtomicBool,
    /// Told when half of a half is full: there is not much time until it is.
    filling: Notify,
    /// Requests that could not be written since the start.
    missed: AtomicU64,
    /// Whether the log says so.
    is_missing: AtomicBool,
    /// Whether somebody waits for the disk.
    is_syncing: AtomicBool,
}

#[derive(Debug)]
enum State {
    /// The file cannot be made until now. With the time of the next attempt.
    Missing(Instant),
    Open(Open),
    /// The store has all.
    Ended,
}

#[derive(Debug)]
struct Open {
    /// Its position is where the next line goes. Locked, so that others see that its process lives.
    file: File,
    path: PathBuf,
    /// 0 or 1.
    half: u64,
    /// Bytes that are written in the half.
    used: u64,
}

impl Journal {
    /// Opens the journal of a process in a folder, which is created for its owner alone. `writer`: the name of the process
    /// as the store knows it, without characters that file names cannot have. A file that cannot be made is tried again.
    pub(crate) fn open(folder: &Path, writer: &Arc<str>) -> Self {
        let journal = Self {
            folder: folder.to_owned(),
            writer: Arc::clone(writer),
            state: Mutex::new(State::Missing(Instant::now())),
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

    /// What processes left in a folder that ended before the store had it. See [`Inherited::read`].
    pub(crate) fn inherited(folder: &Path, known_for: Duration) -> Vec<Inherited> {
        Inherited::read(folder, known_for)
    }

    /// Writes what a request took.
    pub(super) fn add(&self, mark: Mark, place: &Place, totals: &Totals) {
        let Some(line) = framed(&self.writer, &Line::request(mark, place, totals)) else {
            return self.miss(totals, &"a name in it is too long");
        };
        let Some(mut state) = self.enter() else { return self.miss(totals, &"its disk does not answer") };
        let State::Open(open) = &mut *state else {
            drop(state);
            return self.miss(totals, &"its file cannot be made");
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

    /// Whether the journal wants the sums of all that the store does not have: it is filling up, or lacks something.
    pub(crate) fn wants_sums(&self) -> bool {
        self.wants_sums.load(Ordering::Relaxed)
    }

    /// Waits until half of its room is used, since it was waited for last.
    pub(crate) async fn fills(&self) {
        self.filling.notified().await;
    }

    /// Begins anew with the sums of all that the store does not have. `sums`: gives them by the number of their batch, and the
    /// part that requests belong to from then on; no request is written meanwhile.
    pub(crate) fn write_sums<'r>(&self, sums: impl FnOnce() -> (u64, Vec<(u64, &'r Rows)>)) {
        let missed = self.missed.load(Ordering::Relaxed);
        if let Err(error) = self.make() {
            self.wants_sums.store(true, Ordering::Relaxed);
            return self.warn(&error);
        }
        let Some(mut state) = self.enter() else { return };
        let State::Open(open) = &mut *state else { return };
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

    /// Makes the file, if it is not there and its time has come. Requests do not wait meanwhile: they miss it, as before.
    fn make(&self) -> io::Result<()> {
        match self.enter().as_deref_mut() {
            Some(State::Missing(next)) if *next <= Instant::now() => *next = Instant::now() + PAUSE,
            _ => return Ok(()),
        }
        let made = Open::make(&self.folder, &self.writer)?;
        match self.enter().as_deref_mut() {
            Some(state @ State::Missing(_)) => *state = State::Open(made),
            _ => _ = std::fs::remove_file(made.path),
        }
        Ok(())
    }

    fn lines_of(&self, part: u64, sums: &[(u64, &Rows)]) -> io::Result<Vec<u8>> {
        let mut lines = Vec::new();
        let mut count = 0;
        for (batch, rows) in sums {
            for (place, totals) in *rows {
                let line = framed(&self.writer, &Line::sum(Mark { batch: *batch, part }, place, totals));
                lines.extend(line.ok_or_else(|| io::Error::other("a name in it is too long"))?);
                count += 1;
                if lines.len() as u64 > HALF {
                    return Err(full());
                }
            }
        }
        lines.extend(framed(&self.writer, &Line::Whole(part, count)).unwrap_or_default());
        Ok(lines)
    }

    /// Waits until what was written is on the disk. Requests do not wait for it, and a second call at the same time does nothing.
    pub(crate) fn sync(&self) {
        if self.is_syncing.swap(true, Ordering::AcqRel) {
            return;
        }
        let file = match self.enter().as_deref() {
            Some(State::Open(open)) => open.file.try_clone().ok(),
            _ => None,
        };
        if let Some(Err(error)) = file.map(|file| file.sync_data()) {
            tracing::debug!("the journal of usage is not on the disk: {error}");
        }
        self.is_syncing.store(false, Ordering::Release);
    }

    /// The store has all: removes the file.
    pub(crate) fn end(&self) {
        if let Some(mut state) = self.enter()
            && let State::Open(open) = std::mem::replace(&mut *state, State::Ended)
        {
            // A file without usage is removed by the next process, too.
            crash::point();
            _ = std::fs::remove_file(open.path);
            crash::point();
        }
    }

    /// Requests that could not be written since the start.
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
            tracing::warn!(%folder, "usage is not journaled, and lost if the gateway is killed before the store has it: {why}");
        }
    }

    /// Waits until nobody else writes. None: a write takes so long that its disk seems to hang.
    fn enter(&self) -> Option<MutexGuard<'_, State>> {
        let mut begun = None;
        loop {
            match self.state.try_lock() {
                Ok(state) => return Some(state),
                Err(TryLockError::Poisoned(state)) => return Some(state.into_inner()),
                Err(TryLockError::WouldBlock) => {}
            }
            if self.is_slow.load(Ordering::Relaxed) {
                return None;
            }
            if begun.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                self.is_slow.store(true, Ordering::Relaxed);
                return None;
            }
            std::thread::yield_now();
        }
    }
}

impl Open {
    /// Makes the file, with all its room. It gets its name once it is whole and locked: others remove what nobody holds.
    fn make(folder: &Path, writer: &str) -> io::Result<Self> {
        crash::point();
        private_folder().recursive(true).create(folder)?;
        crash::point();
        if std::fs::read_dir(folder)?.count() >= MOST_FILES {
            return Err(io::Error::other("the folder is full of journals that the store has not taken"));
        }
        let (path, unfinished) = (named(folder, writer, ENDING), named(folder, writer, UNFINISHED));
        let mut options = private_file();
        options.write(true).create(true).truncate(true);
        let made = options.open(&unfinished).and_then(|mut file| {
            file.try_lock().map_err(|locked| match locked {
                Locked::Error(error) => error,
                Locked::WouldBlock => io::Error::other("another process holds its file"),
            })?;
            crash::point();
            let head = framed("", &Line::Journal(line::VERSION, writer.into())).ok_or_else(full)?;
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
            // What is there of it is overwritten.
            self.file.seek(SeekFrom::Start(HEAD + self.half * HALF + self.used))?;
            return Err(error);
        }
        self.used += lines.len() as u64;
        Ok(())
    }

    /// Goes on with the other half, which begins with these lines. Where that fails, the half stays as it was.
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
    io::Error::new(io::ErrorKind::StorageFull, "it is full until the store takes usage")
}

#[cfg(test)]
mod tests;
