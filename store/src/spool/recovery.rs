//! Items in the spool left behind by ended processes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::{Arc, Mutex};

use gatewright_system::crash;
use gatewright_system::disk::UNFINISHED;
use ring::hmac;

use super::lock_file::{self, LockFile};
use super::{
    EntryKind, EntryState, FORM, HEAD, MAX_BYTES, MAX_ITEMS, MAX_RECORD_BYTES, SpoolEntry, SpoolUsage,
    digest, lock,
};

/// Maximum length of a process's name.
const MAX_NAME_CHARS: usize = 64;
/// Maximum number of names in a folder that are examined: more than a process creates.
const MAX_NAMES: usize = 4 * MAX_ITEMS;

/// An item that a process left behind.
pub struct RecoveredEntry {
    pub(super) kind: EntryKind,
    /// What the store would have got.
    pub content: Vec<u8>,
    /// Its file, which is to be removed once the store has the content.
    pub entry: SpoolEntry,
}

/// The kind of a file, judged by its name.
enum SpoolFile {
    Item(EntryKind),
    /// A file that was being written.
    Unfinished,
    Lock,
    UnfinishedLock,
}

impl RecoveredEntry {
    /// Reads what ended processes left in a folder: the oldest first, within bounds. Files that don't belong to the spool
    /// are left alone.
    pub(super) fn read(folder: &Path, key: &hmac::Key, taken: &Arc<Mutex<SpoolUsage>>) -> Vec<Self> {
        let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
        let files =
            files.filter_map(Result::ok).filter(|file| file.file_type().is_ok_and(|kind| kind.is_file()));
        let names = files.filter_map(|file| file.file_name().into_string().ok()).take(MAX_NAMES);
        let mut writers = BTreeMap::<String, Vec<(String, SpoolFile)>>::new();
        for name in names {
            match parsed(&name) {
                Some((_, SpoolFile::UnfinishedLock)) => remove_unlocked(&folder.join(name)),
                Some((writer, what)) => {
                    writers.entry(writer.to_owned()).or_default().push((name, what));
                }
                None => {}
            }
        }
        let mut all = Vec::new();
        for (writer, mut names) in writers {
            let Some(claim) = LockFile::take_over(folder, &writer).map(Arc::new) else { continue };
            names.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
            for (name, what) in names {
                let path = folder.join(name);
                match what {
                    SpoolFile::Item(kind) => all.extend(Self::of_file(&path, kind, key, taken, &claim)),
                    SpoolFile::Unfinished => {
                        crash::point();
                        _ = std::fs::remove_file(&path);
                        crash::point();
                    }
                    // It is removed with the claim.
                    SpoolFile::Lock | SpoolFile::UnfinishedLock => {}
                }
            }
        }
        all
    }

    /// None: it is left alone.
    fn of_file(
        path: &Path,
        kind: EntryKind,
        key: &hmac::Key,
        taken: &Arc<Mutex<SpoolUsage>>,
        claim: &Arc<LockFile>,
    ) -> Option<Self> {
        match read(path, key, taken) {
            Ok(content) => {
                let bytes = HEAD + content.len();
                let entry = SpoolEntry::new(
                    path.to_owned(),
                    bytes,
                    taken,
                    EntryState::Written,
                    Some(Arc::clone(claim)),
                );
                Some(Self { kind, content, entry })
            }
            Err(error) => {
                tracing::warn!(file = %path.display(), "skipping a spool file: {error}");
                None
            }
        }
    }

    /// Its content is unknown.
    pub fn leave(&self, why: &str) {
        let file = self.entry.0.path.display();
        tracing::warn!(%file, "skipping a spool file: {why}");
    }
}

/// An item's content.
fn read(path: &Path, key: &hmac::Key, taken: &Mutex<SpoolUsage>) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let bytes = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    if bytes > MAX_RECORD_BYTES {
        return Err(io::Error::other("it is too long"));
    }
    let room = lock(taken);
    if room.items >= MAX_ITEMS || room.bytes + bytes > MAX_BYTES {
        return Err(io::Error::other("there are too many; the next start will take it over"));
    }
    drop(room);
    let mut content = Vec::with_capacity(bytes);
    file.take(MAX_RECORD_BYTES as u64).read_to_end(&mut content)?;
    if content.first().is_some_and(|form| *form != FORM) {
        return Err(io::Error::other("its format is unknown"));
    }
    let Some((head, rest)) = content.split_at_checked(HEAD) else {
        return Err(io::Error::other("it is truncated"));
    };
    // Constant time isn't needed: a process that can write here can't measure it.
    if digest(key, path, rest).as_ref() != &head[1..] {
        return Err(io::Error::other("it was modified, or written with another pepper or name"));
    }
    content.drain(..HEAD);
    Ok(content)
}

/// The process that a file belongs to. None: it doesn't belong to the spool.
fn parsed(name: &str) -> Option<(&str, SpoolFile)> {
    let (writer, rest) = name.split_once('.')?;
    let is_writer = (1..=MAX_NAME_CHARS).contains(&writer.len())
        && writer.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_writer {
        return None;
    }
    let (rest, is_unfinished) = match rest.strip_suffix(UNFINISHED).and_then(|rest| rest.strip_suffix('.')) {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    if rest == lock_file::ENDING {
        return Some((writer, if is_unfinished { SpoolFile::UnfinishedLock } else { SpoolFile::Lock }));
    }
    let (number, ending) = rest.split_once('.')?;
    let kind = EntryKind::ALL.into_iter().find(|kind| kind.ending() == ending)?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some((writer, if is_unfinished { SpoolFile::Unfinished } else { SpoolFile::Item(kind) }))
}

/// A lock that was being created when its process ended.
fn remove_unlocked(path: &Path) {
    if File::open(path).is_ok_and(|file| file.try_lock().is_ok()) {
        crash::point();
        _ = std::fs::remove_file(path);
        crash::point();
    }
}
