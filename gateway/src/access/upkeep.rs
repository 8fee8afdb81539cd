//! What operators do with a whole store: bring it to this version, look for damage, copy it, and move what it holds.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, Write};
use std::path::Path;

use super::data::{DATABASE, FILES, InvalidData, PEPPER};
use super::registry::{Registry, RegistryError};

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

    /// Copies a data folder, which gateways may use meanwhile, into another one that is not there yet.
    pub async fn backup(&self, from: &Path, to: &Path) -> Result<(), RegistryError> {
        let unusable = |place: &Path| {
            let place = place.display().to_string();
            move |source: io::Error| RegistryError::Data(InvalidData::Unusable { place, source })
        };
        fs::create_dir(to).map_err(unusable(to))?;
        private(to, 0o700).map_err(unusable(to))?;
        let database = to.join(DATABASE);
        OpenOptions::new().write(true).create_new(true).open(&database).map_err(unusable(&database))?;
        private(&database, 0o600).map_err(unusable(&database))?;
        self.store().copy_to(&database).await?;
        synced(&database).map_err(unusable(&database))?;
        let pepper = from.join(PEPPER);
        copied(&pepper, &to.join(PEPPER)).map_err(unusable(&pepper))?;
        // After the database: what it refers to is there unless it has expired.
        let (files, copies) = (from.join(FILES), to.join(FILES));
        fs::create_dir(&copies).map_err(unusable(&copies))?;
        private(&copies, 0o700).map_err(unusable(&copies))?;
        for entry in fs::read_dir(&files).map_err(unusable(&files))? {
            let entry = entry.map_err(unusable(&files))?;
            if !entry.file_type().is_ok_and(|kind| kind.is_file()) {
                continue;
            }
            match copied(&entry.path(), &copies.join(entry.file_name())) {
                // It has just expired.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(unusable(&entry.path())(error)),
                Ok(()) => {}
            }
        }
        // Innermost first: a power cut leaves no folder that names what is not on the disk.
        for folder in [Some(copies.as_path()), Some(to), to.parent()].into_iter().flatten() {
            folder_synced(folder).map_err(unusable(folder))?;
        }
        Ok(())
    }
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

/// Has the names in a folder written to the disk.
#[cfg(unix)]
fn folder_synced(folder: &Path) -> io::Result<()> {
    // The parent of a bare name.
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn folder_synced(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Lets nobody but the owner at a place.
#[cfg(unix)]
fn private(place: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(place, std::os::unix::fs::PermissionsExt::from_mode(mode))
}

#[cfg(not(unix))]
fn private(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}
