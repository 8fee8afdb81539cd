//! The file of a gateway that runs in this process.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{EXTENSION, LOCK_EXTENSION, RunningGateway, folders, remove};

/// Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct Registration {
    file: PathBuf,
    /// Locked as long as the process runs.
    _lock: File,
}

impl Registration {
    /// Writes the file to the first folder that can have it. Errors: none can.
    pub(crate) fn new(gateway: &RunningGateway) -> io::Result<Self> {
        let mut refused = io::Error::other("there is no home folder");
        for folder in folders() {
            match Self::in_folder(&folder, gateway) {
                Ok(registration) => return Ok(registration),
                Err(error) => {
                    refused = io::Error::new(error.kind(), format!("{}: {error}", folder.display()));
                }
            }
        }
        Err(refused)
    }

    fn in_folder(folder: &Path, gateway: &RunningGateway) -> io::Result<Self> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
        // The id of a process is used again, also after a restart of the machine.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        let file = folder.join(format!("{}-{now}.{EXTENSION}", gateway.process));
        // Locked before the file is there: a process that finds the file finds the lock.
        let lock = private().open(file.with_extension(LOCK_EXTENSION))?;
        lock.lock()?;
        let registration = Self { file, _lock: lock };
        let beside = registration.file.with_extension("new");
        let written = private()
            .open(&beside)
            .and_then(|mut new| new.write_all(&serde_json::to_vec(gateway).expect("plain values")))
            .and_then(|()| std::fs::rename(&beside, &registration.file));
        if written.is_err() {
            let _ = std::fs::remove_file(&beside);
        }
        written.map(|()| registration)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        remove(&self.file);
    }
}

/// Creates a file that only this user can read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
