//! What operators do with a whole store: bring it to this version, look for damage, copy it, and move what it holds.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, Write};
use std::path::Path;

use super::data::{DATABASE, FILES, InvalidData, JOURNALS, PEPPER, SPOOL, unusable};
use super::registry::{Registry, RegistryError};
use crate::crash;
use crate::disk::{UNFINISHED, private_file, private_folder, sync_folder};
use crate::store::ENDING_OF_LOCKS;

/// `ERROR_LOCK_VIOLATION` of Windows.
const LOCKED: i32 = 33;

impl Registry {
    /// Brings the tables to this version, as a gateway does when it starts. Returns the version.
    pub async fn migrate(&self) -> Result<i64, RegistryError> {
        Ok(self.store().migrate().await?)
    }

    /// Looks for damage: of the database, of rows that cannot be read, and, where `files` lie in the data folder, of those that are
    /// recorded and missing. Returns what there is.
    pub async fn damage(&self, files: bool) -> Result<Vec<String>, RegistryError> {
        let mut found = self.store().damage().await?;
        if !files {
            return Ok(found);
        }
        for file in self.data.missing_files().await? {
            found.push(format!("the file {file} is recorded, has not expired, and is not in its place"));
        }
        Ok(found)
    }

    /// Writes all that the database holds as lines of JSON, as of one moment. Returns the number of rows. The pepper and the
    /// contents of files are not among them.
    pub async fn export(&self, out: &mut (dyn Write + Send)) -> Result<u64, RegistryError> {
        let mut write = |line: &str| out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n"));
        Ok(self.store().export(&mut write).await?)
    }

    /// Reads what [`export`](Self::export) has written, all or nothing. Returns the number of rows. Errors: the database holds rows.
    pub async fn import(&self, input: &mut (dyn BufRead + Send)) -> Result<u64, RegistryError> {
        Ok(self.store().import(input).await?)
    }

    /// Copies a data folder, which gateways may use meanwhile, into another one that is not there yet. It gets its name once it is
    /// whole: what a copy leaves that was stopped has the ending `unfinished`.
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
            .map_err(|error| unusable(&unfinished)(told_of_another(error)))?;
        crash::point();
        if let Err(error) = self.copy(from, &unfinished).await {
            // A part is of no use.
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
        // Before the database, which knows what it has of them: what it gets meanwhile counts once.
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
        // After the database: what it refers to is there unless it has expired.
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
        // Innermost first: a power cut leaves no folder that names what is not on the disk.
        for folder in [&copies, to] {
            sync_folder(folder).map_err(unusable(folder))?;
        }
        Ok(())
    }
}

/// Copies what waits for the store: the journals of usage, or the spool. Their processes go on writing. Two halves of a journal are
/// overwritten in turn: what of the older one is overwritten while it is read, the store has by then.
fn copy_waiting(from: &Path, to: &Path) -> Result<(), InvalidData> {
    let files = match fs::read_dir(from) {
        // Nothing has waited yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(unusable(from))?,
    };
    private_folder().create(to).map_err(unusable(to))?;
    for entry in files {
        let (name, file) = entry.map(|entry| (entry.file_name(), entry.path())).map_err(unusable(from))?;
        // Nothing is in one that is being made, nor in a lock.
        if file.extension().is_none_or(|ending| ending == UNFINISHED || ending == ENDING_OF_LOCKS) {
            continue;
        }
        match copied_with_time(&file, &to.join(name)) {
            // The store has all of it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // Windows lets nobody read what another process has locked. The store has it within a moment.
            Err(error) if cfg!(windows) && error.raw_os_error() == Some(LOCKED) => {}
            Err(error) => return Err(unusable(&file)(error)),
            Ok(()) => crash::point(),
        }
    }
    sync_folder(to).map_err(unusable(to))
}

/// Why there can be no folder for a backup yet.
fn told_of_another(error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::AlreadyExists {
        return error;
    }
    io::Error::new(error.kind(), "a backup that was stopped has left it: remove it, unless one is under way")
}

/// Copies a file and the time of its last change, to the disk.
fn copied_with_time(from: &Path, to: &Path) -> io::Result<()> {
    let changed = fs::metadata(from)?.modified()?;
    fs::copy(from, to)?;
    let copy = OpenOptions::new().append(true).open(to)?;
    copy.set_modified(changed)?;
    copy.sync_all()
}

/// Copies a file, to the disk.
fn copied(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    synced(to)
}

/// Has a file written to the disk.
fn synced(file: &Path) -> io::Result<()> {
    OpenOptions::new().append(true).open(file)?.sync_all()
}
