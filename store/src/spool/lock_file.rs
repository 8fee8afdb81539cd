//! Ownership of a process's files: they are its own while it lives, as shown by a locked file; after that, they belong to
//! the process that locks it.

use std::fs::{File, TryLockError as Locked};
use std::io;
use std::path::{Path, PathBuf};

use gatewright_system::crash;

use super::{create, unfinished};

/// Extension of its name.
pub const ENDING: &str = "lock";

/// See the module. The file is removed when this is dropped.
pub(super) struct LockFile {
    /// Locked.
    _file: File,
    path: PathBuf,
}

impl LockFile {
    /// For this process. The file gets its name once it is locked, because others remove unlocked ones.
    pub(super) fn make(folder: &Path, writer: &str) -> io::Result<Self> {
        let path = named(folder, writer);
        let unfinished = unfinished(&path);
        crash::point();
        let file = create(&unfinished)?;
        file.try_lock().map_err(|locked| match locked {
            Locked::Error(error) => error,
            Locked::WouldBlock => io::Error::other("another process has locked it"),
        })?;
        crash::point();
        std::fs::rename(&unfinished, &path)?;
        crash::point();
        Ok(Self { _file: file, path })
    }

    /// For a process that has ended. None: it is alive, or another one has taken over its files.
    pub(super) fn take_over(folder: &Path, writer: &str) -> Option<Self> {
        let path = named(folder, writer);
        // The lock file may be gone even though there are files.
        let file = create(&path).ok()?;
        file.try_lock().ok()?;
        Some(Self { _file: file, path })
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        crash::point();
        _ = std::fs::remove_file(&self.path);
        crash::point();
    }
}

fn named(folder: &Path, writer: &str) -> PathBuf {
    folder.join(format!("{writer}.{ENDING}"))
}
