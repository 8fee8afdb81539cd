//! Operations on a whole store: migrates it to this version, checks it for damage, copies it, and moves its contents.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, Write};
use std::path::Path;

use gatewright_store::ENDING_OF_LOCKS;
use gatewright_system::crash;
use gatewright_system::disk::{UNFINISHED, private_file, private_folder, sync_folder};

use super::data::{DATABASE, FILES, InvalidData, JOURNALS, PEPPER, SPOOL, unusable};
use super::registry::{Registry, RegistryError};

/// `ERROR_LOCK_VIOLATION` of Windows.
const LOCKED: i32 = 33;

impl Registry {
    /// Migrates the tables to this version, as a gateway does when it starts. Returns the version.
    pub async fn migrate(&self) -> Result<i64, RegistryError> {
        Ok(self.store().migrate().await?)
    }

    /// Checks for damage: of the database, of unreadable rows, and, if the `files` are in the data folder, of files that
    /// are
    /// recorded but missing. Returns the findings.
    pub async fn damage(&self, files: bool) -> Result<Vec<String>, RegistryError> {
        let mut found = self.store().damage().await?;
        if !files {
            return Ok(found);
        }
        for file in self.data.missing_files().await? {
            found.push(format!("the file {file} is recorded and has not expired, but is missing"));
        }
        Ok(found)
    }

    /// Writes the whole contents of the database as lines of JSON, from one snapshot. Returns the number of rows. The pepper
    /// and the contents of files are not included.
    pub async fn export(&self, out: &mut (dyn Write + Send)) -> Result<u64, RegistryError> {
        let mut write = |line: &str| out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n"));
        Ok(self.store().export(&mut write).await?)
    }

    /// Reads an [`export`](Self::export), all or nothing. Returns the number of rows. Errors: the database already contains
    /// rows.
    pub async fn import(&self, input: &mut (dyn BufRead + Send)) -> Result<u64, RegistryError> {
        Ok(self.store().import(input).await?)
    }

    /// Copies a data folder, which gateways may use meanwhile, into a new one. It gets its name once it
    /// is complete: an
    /// aborted copy leaves a folder with the extension `unfinished`.
    pub async fn backup(&self, from: &Path, to: &Path) -> Result<(), RegistryError> {
        if to.symlink_metadata().is_ok() {
            return Err(unusable(to)(io::ErrorKind::AlreadyExists.into()).into());
        }
        let mut name =
            to.file_name().ok_or_else(|| unusable(to)(io::ErrorKind::InvalidInput.into()))?.to_owned();
        name.push(".unfinished");
        let unfinished = to.with_file_name(name);
        crash::point();
        private_folder()
            .create(&unfinished)
            .map_err(|error| unusable(&unfinished)(explain_leftover(error)))?;
        crash::point();
        if let Err(error) = self.copy(from, &unfinished).await {
            // A partial copy is useless.
            _ = fs::remove_dir_all(&unfinished);
            return Err(error);
        }
        crash::point();
        fs::rename(&unfinished, to).map_err(unusable(to))?;
        crash::point();
        to.parent().map_or(Ok(()), sync_folder).map_err(unusable(to))?;
        Ok(())
    }

    /// Copies a data folder into an empty one.
    async fn copy(&self, from: &Path, to: &Path) -> Result<(), RegistryError> {
        // Copied before the database, which records what it already has of them: whatever it gets in the
        // meantime counts once.
        for waiting in [JOURNALS, SPOOL] {
            copy_waiting(&from.join(waiting), &to.join(waiting))?;
        }
        let database = to.join(DATABASE);
        private_file().write(true).create_new(true).open(&database).map_err(unusable(&database))?;
        crash::point();
        self.store().copy_to(&database).await?;
        crash::point();
        synced(&database).map_err(unusable(&database))?;
        let pepper = from.join(PEPPER);
        copied(&pepper, &to.join(PEPPER)).map_err(unusable(&pepper))?;
        crash::point();
        // Copied after the database: everything it refers to exists, unless it has expired.
        let (files, copies) = (from.join(FILES), to.join(FILES));
        private_folder().create(&copies).map_err(unusable(&copies))?;
        for entry in fs::read_dir(&files).map_err(unusable(&files))? {
            let entry = entry.map_err(unusable(&files))?;
            if !entry.file_type().is_ok_and(|kind| kind.is_file()) {
                continue;
            }
            match copied(&entry.path(), &copies.join(entry.file_name())) {
                // It has just expired.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(unusable(&entry.path())(error).into()),
                Ok(()) => crash::point(),
            }
        }
        // Innermost first, so that after a power failure no folder lists anything that is not on the disk.
        for folder in [&copies, to] {
            sync_folder(folder).map_err(unusable(folder))?;
        }
        Ok(())
    }
}

/// Copies data waiting for the store: the usage journals, or the spool. Their processes keep writing. The two halves of a
/// journal are overwritten in turn: if part of the older half is overwritten while it is read, the store has it by then.
fn copy_waiting(from: &Path, to: &Path) -> Result<(), InvalidData> {
    let files = match fs::read_dir(from) {
        // No data has had to wait for the store yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(unusable(from))?,
    };
    private_folder().create(to).map_err(unusable(to))?;
    for entry in files {
        let (name, file) = entry.map(|entry| (entry.file_name(), entry.path())).map_err(unusable(from))?;
        // Unfinished files and locks contain nothing.
        if file.extension().is_none_or(|ending| ending == UNFINISHED || ending == ENDING_OF_LOCKS) {
            continue;
        }
        match copied_with_time(&file, &to.join(name)) {
            // The store has all of it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // Windows doesn't let a process read what another process has locked. The store will have it within
            // a moment.
            Err(error) if cfg!(windows) && error.raw_os_error() == Some(LOCKED) => {}
            Err(error) => return Err(unusable(&file)(error)),
            Ok(()) => crash::point(),
        }
    }
    sync_folder(to).map_err(unusable(to))
}

/// Why the folder for a backup can't be created yet.
fn explain_leftover(error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::AlreadyExists {
        return error;
    }
    io::Error::new(
        error.kind(),
        "left behind by an interrupted backup: remove it, unless a backup is running",
    )
}

/// Copies a file and its modification time, and syncs it to the disk.
fn copied_with_time(from: &Path, to: &Path) -> io::Result<()> {
    let changed = fs::metadata(from)?.modified()?;
    fs::copy(from, to)?;
    let copy = OpenOptions::new().append(true).open(to)?;
    copy.set_modified(changed)?;
    copy.sync_all()
}

/// Copies a file, and syncs it to the disk.
fn copied(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    synced(to)
}

/// Syncs a file to the disk.
fn synced(file: &Path) -> io::Result<()> {
    OpenOptions::new().append(true).open(file)?.sync_all()
}
