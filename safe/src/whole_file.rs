//! Atomic file writes: writes to a temporary file in the same folder, then renames it. Downloads, reports and evidence
//! are written this way. Knows nothing of where the bytes come from.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

/// A file that is being written. Dropping it removes the temporary file.
///
/// ```
/// use std::io::Write as _;
///
/// use gatewright_safe::whole_file::WholeFile;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("report.json");
/// let (mut file, whole) = WholeFile::begin(path.clone())?;
/// file.write_all(b"{}")?;
/// // Until then there is nothing in its place.
/// assert!(!path.exists());
/// whole.land(file, false)?;
/// assert_eq!(std::fs::read(&path)?, b"{}");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct WholeFile {
    temporary: TempPath,
    path: PathBuf,
}

impl WholeFile {
    /// Creates the temporary file for a path, which must not be a link. The permissions are those of the file that it
    /// replaces; a new file gets the default permissions.
    ///
    /// Errors: the folder is missing or not writable.
    ///
    /// ```
    /// use gatewright_safe::whole_file::WholeFile;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("report.json");
    /// drop(WholeFile::begin(path)?);
    /// assert_eq!(std::fs::read_dir(&folder)?.count(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn begin(path: PathBuf) -> io::Result<(File, Self)> {
        let replaced = std::fs::metadata(&path).ok().filter(Metadata::is_file);
        let make = |path: &Path| {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            // If only the owner may read the file, no other user may read the temporary file either, not even briefly.
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(
                &mut options,
                if replaced.is_some() { 0o600 } else { 0o666 },
            );
            options.open(path)
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".gatewright-").suffix(".part");
        let (file, temporary) = builder.make_in(folder_of(&path), make)?.into_parts();
        #[cfg(unix)]
        if let Some(replaced) = &replaced {
            use std::os::unix::fs::PermissionsExt as _;

            let mode = replaced.permissions().mode() & 0o777;
            // If the file system does not support permissions, the narrower ones stay.
            let _ = file.set_permissions(std::fs::Permissions::from_mode(mode));
        }
        Ok((file, Self { temporary, path }))
    }

    /// Renames the file that [`WholeFile::begin`] created to its final path, durably: it survives a power failure.
    /// overwrite: whether to replace a file that has appeared there meanwhile.
    ///
    /// ```
    /// use gatewright_safe::whole_file::WholeFile;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("report.json");
    /// let (file, whole) = WholeFile::begin(path.clone())?;
    /// std::fs::write(&path, "another one")?;
    /// assert!(whole.land(file, false).is_err());
    /// assert_eq!(std::fs::read(&path)?, b"another one");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn land(self, file: File, overwrite: bool) -> io::Result<()> {
        let Self { temporary, path } = self;
        file.sync_all()?;
        // Closed first: some systems cannot rename an open file.
        drop(file);
        let moved = if overwrite { temporary.persist(&path) } else { temporary.persist_noclobber(&path) };
        moved.map_err(|error| error.error)?;
        sync_folder(folder_of(&path))
    }
}

/// The folder of a path.
///
/// ```
/// use std::path::Path;
///
/// use gatewright_safe::whole_file::folder_of;
///
/// assert_eq!(folder_of(Path::new("reports/today.json")), Path::new("reports"));
/// assert_eq!(folder_of(Path::new("today.json")), Path::new("."));
/// ```
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the rename durable. Only Unix can open folders.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature as on unix")]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Writes bytes to a path through a temporary file. Writes directly to a path that is not a regular file (a pipe, a
/// device).
///
/// ```
/// use gatewright_safe::whole_file::write_file;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("report.json");
/// write_file(&path, b"{}")?;
/// assert_eq!(std::fs::read(&path)?, b"{}");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = target(path);
    if std::fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
        let mut file = std::fs::OpenOptions::new().write(true).open(&path)?;
        file.write_all(bytes)?;
        return file.flush();
    }
    let (mut file, whole) = begin(path)?;
    file.write_all(bytes)?;
    whole.land(file, true)
}

/// Checks whether a file could be written to this path now, without writing it.
///
/// ```
/// use gatewright_safe::whole_file::check_place;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("report.json");
/// check_place(&path)?;
/// assert!(!path.exists());
/// assert!(check_place(&folder.path().join("missing/report.json")).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn check_place(path: &Path) -> io::Result<()> {
    let path = target(path);
    match std::fs::metadata(&path) {
        Ok(found) if found.is_dir() => Err(io::Error::other("it is a folder")),
        Ok(found) if !found.is_file() => Ok(()),
        _ => begin(path).map(drop),
    }
}

/// Whether two paths are the same file, existing or not, so that writing one would replace the other. Paths to a pipe
/// or a device never count as the same, since nothing is replaced there.
///
/// ```
/// use gatewright_safe::whole_file::same_place;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("report.json");
/// assert!(same_place(&path, &folder.path().join("./report.json")));
/// assert!(!same_place(&path, &folder.path().join("other.json")));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn same_place(one: &Path, other: &Path) -> bool {
    let one = target(one);
    one == target(other) && std::fs::metadata(&one).map_or(true, |found| found.is_file())
}

/// Errors name the missing folder.
fn begin(path: PathBuf) -> io::Result<(File, WholeFile)> {
    let folder = folder_of(&path).to_owned();
    WholeFile::begin(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            io::Error::new(error.kind(), format!("there is no folder {}", folder.display()))
        }
        _ => error,
    })
}

/// The target of a link, so that the link itself stays; for a new file, the canonical path of its folder plus its name.
fn target(path: &Path) -> PathBuf {
    let new = || Some(std::fs::canonicalize(folder_of(path)).ok()?.join(path.file_name()?));
    std::fs::canonicalize(path).ok().or_else(new).unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_replaced_without_leftovers() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("report.json");
        for text in ["first", "second"] {
            write_file(&path, text.as_bytes()).expect("written");
            assert_eq!(std::fs::read_to_string(&path).expect("read"), text);
        }
        assert_eq!(std::fs::read_dir(&folder).expect("listed").count(), 1);
    }

    #[test]
    fn missing_folder_or_folder_as_target_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        for path in [folder.path().join("missing/report.json"), folder.path().to_owned()] {
            assert!(check_place(&path).is_err());
            assert!(write_file(&path, b"x").is_err());
        }
        assert!(check_place(&folder.path().join("report.json")).is_ok());
        assert_eq!(std::fs::read_dir(&folder).expect("listed").count(), 0);
    }

    #[test]
    fn missing_folder_error_names_the_folder_not_the_temporary_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = folder.path().join("missing");
        let expected = format!("there is no folder {}", missing.display());
        for error in [check_place(&missing.join("r.json")), write_file(&missing.join("r.json"), b"x")] {
            assert_eq!(error.expect_err("no folder").to_string(), expected);
        }
    }

    #[test]
    fn same_place_recognizes_aliases_and_links() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("report.json");
        let roundabout = folder.path().join(".").join("report.json");
        for _ in ["before it is there", "after"] {
            assert!(same_place(&path, &roundabout));
            assert!(!same_place(&path, &folder.path().join("other.json")));
            std::fs::write(&path, "x").expect("written");
        }
        #[cfg(unix)]
        {
            let link = folder.path().join("latest.json");
            std::os::unix::fs::symlink(&path, &link).expect("linked");
            assert!(same_place(&path, &link));
            assert!(!same_place(Path::new("/dev/null"), Path::new("/dev/null")));
        }
    }

    #[cfg(unix)]
    #[test]
    fn writing_through_a_link_or_device_preserves_it() {
        use std::os::unix::fs::FileTypeExt as _;

        let folder = tempfile::tempdir().expect("a folder");
        let (path, link) = (folder.path().join("report.json"), folder.path().join("latest.json"));
        write_file(&path, b"old").expect("written");
        std::os::unix::fs::symlink(&path, &link).expect("linked");
        write_file(&link, b"new").expect("written");
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&path).expect("read"), b"new");
        write_file(Path::new("/dev/null"), b"x").expect("written");
        let null = std::fs::metadata("/dev/null").expect("there");
        assert!(null.file_type().is_char_device());
    }

    /// Simulates a full disk.
    #[cfg(target_os = "linux")]
    #[test]
    fn full_disk_is_an_error() {
        assert!(check_place(Path::new("/dev/full")).is_ok());
        let error = write_file(Path::new("/dev/full"), b"x").expect_err("full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}

#[cfg(all(test, unix))]
mod permissions {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
    }

    #[test]
    fn replaced_file_keeps_its_permissions_as_does_its_temporary_copy() {
        let folder = tempfile::tempdir().expect("a folder");
        for permissions in [0o600, 0o640, 0o666, 0o444] {
            let path = folder.path().join(format!("{permissions:o}"));
            std::fs::write(&path, "old").expect("written");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(permissions)).expect("set");
            let (mut file, whole) = WholeFile::begin(path.clone()).expect("started");
            assert_eq!(mode(&whole.temporary), permissions);
            file.write_all(b"new").expect("written");
            whole.land(file, true).expect("landed");
            assert_eq!((mode(&path), std::fs::read(&path).expect("read")), (permissions, b"new".to_vec()));
        }
    }

    #[test]
    fn new_file_has_default_permissions() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, other) = (folder.path().join("new"), folder.path().join("other"));
        File::create(&other).expect("made");
        let (file, whole) = WholeFile::begin(path.clone()).expect("started");
        whole.land(file, false).expect("landed");
        assert_eq!(mode(&path), mode(&other));
    }
}
