//! What ended processes left in their journals before the store had it.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gatewright_store::Rows;
use gatewright_system::crash;
use gatewright_system::disk::UNFINISHED;

use super::line::{JournalLine, MAX_LINE_BYTES, VERSION, lines};
use super::{ENDING, HALF, HEAD, MAX_FILES, named};

/// Maximum number of bytes read from a file: a whole journal.
const MAX_BYTES: u64 = HEAD + 2 * HALF;
/// Maximum length of a process name.
const MAX_NAME_CHARS: usize = 64;
/// Maximum number of rows taken over at startup; further files wait for the next one.
const MAX_ROWS: usize = 100_000;
/// File extension of journals that are too old.
const LATE: &str = "late";

/// What one process left.
#[derive(Debug)]
pub(crate) struct RecoveredJournal {
    /// The name that it had.
    pub(crate) writer: Arc<str>,
    /// Rows by batch number. The store may already have the first batches.
    pub(crate) batches: BTreeMap<u64, Rows>,
    /// Locked, so that no other process takes it over.
    file: File,
    path: PathBuf,
}

impl RecoveredJournal {
    /// Reads the journals of ended processes in a folder. Removes those without usage, and leaves other files alone.
    ///
    /// `known_for`: how long the store remembers which batches it has. Older usage may already be stored: it is set aside for an
    /// operator to decide.
    pub(super) fn read(folder: &Path, known_for: Duration) -> Vec<Self> {
        let mut all = Vec::new();
        let Ok(files) = std::fs::read_dir(folder) else { return all };
        let mut rows = 0;
        for path in files.filter_map(|file| Some(file.ok()?.path())).take(2 * MAX_FILES) {
            let has = |ending| path.extension().is_some_and(|found| found == ending);
            if !has(ENDING) && !has(UNFINISHED) || rows > MAX_ROWS {
                continue;
            }
            match Self::of_file(&path, known_for) {
                Ok(Some(inherited)) => {
                    rows += inherited.batches.values().map(Rows::len).sum::<usize>();
                    all.push(inherited);
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(file = %path.display(), "skipping a usage journal: {error}");
                }
            }
        }
        all
    }

    /// None: its process is alive, or there is nothing left to do.
    fn of_file(path: &Path, known_for: Duration) -> io::Result<Option<Self>> {
        let mut file = OpenOptions::new().read(true).write(true).open(path)?;
        if file.try_lock().is_err() {
            return Ok(None);
        }
        let mut text = Vec::new();
        file.by_ref().take(MAX_BYTES).read_to_end(&mut text)?;
        let head = lines("", &text[..text.len().min(MAX_LINE_BYTES)]).next();
        let writer: Arc<str> = match head {
            Some(JournalLine::Journal(1..=VERSION, writer)) if is_name(&writer) => (&*writer).into(),
            Some(JournalLine::Journal(version, _)) => {
                return Err(io::Error::other(format!("its format {version} is unknown")));
            }
            // The process ended before the file was initialized.
            _ if text.iter().all(|byte| *byte == 0) => {
                crash::point();
                std::fs::remove_file(path)?;
                crash::point();
                return Ok(None);
            }
            _ => return Err(io::Error::other("it does not start like a journal")),
        };
        let batches = sums(&writer, &text);
        let inherited = Self { writer, batches, file, path: path.to_owned() };
        if inherited.batches.is_empty() {
            inherited.taken();
            return Ok(None);
        }
        let age = inherited.file.metadata()?.modified()?.elapsed().unwrap_or_default();
        if age > known_for {
            let aside = named(path.parent().unwrap_or(path), &inherited.writer, LATE);
            crash::point();
            std::fs::rename(path, &aside)?;
            crash::point();
            let (file, requests) = (aside.display(), inherited.requests());
            tracing::error!(%file, requests, "a usage journal is too old: it may already be in the store");
            return Ok(None);
        }
        Ok(Some(inherited))
    }

    /// The number of requests in it.
    pub(crate) fn requests(&self) -> u64 {
        self.batches.values().flat_map(Rows::values).map(|totals| totals.requests).sum()
    }

    /// Removes the file: the store has its usage.
    pub(crate) fn taken(self) {
        crash::point();
        let removed = std::fs::remove_file(&self.path);
        crash::point();
        if let Err(error) = removed {
            // The store remembers its batches, so nothing is counted twice.
            tracing::warn!(file = %self.path.display(), "a usage journal cannot be removed: {error}");
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME_CHARS && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The sums of a journal by batch: the newest complete sums, plus the requests after them.
fn sums(writer: &str, text: &[u8]) -> BTreeMap<u64, Rows> {
    let mut found = BTreeMap::<u64, u64>::new();
    let mut complete = BTreeMap::<u64, u64>::new();
    for line in lines(writer, text) {
        match line {
            JournalLine::Sum(entry) => *found.entry(entry.mark().part).or_default() += 1,
            JournalLine::Whole(part, count) => _ = complete.insert(part, count),
            _ => {}
        }
    }
    let is_whole = |(part, count): &(&u64, &u64)| found.get(part).copied().unwrap_or_default() == **count;
    let newest = complete.iter().rev().find(is_whole).map(|(part, _)| *part);
    let mut batches = BTreeMap::<u64, Rows>::new();
    for line in lines(writer, text) {
        let (entry, counts) = match line {
            JournalLine::Sum(entry) => {
                let counts = Some(entry.mark().part) == newest;
                (entry, counts)
            }
            JournalLine::Request(entry) => {
                let counts = newest.is_none_or(|newest| newest <= entry.mark().part);
                (entry, counts)
            }
            _ => continue,
        };
        let batch = entry.mark().batch;
        if let Some((place, totals)) = entry.read().filter(|_| counts) {
            batches.entry(batch).or_default().entry(place).or_default().add(&totals);
        }
    }
    batches
}
