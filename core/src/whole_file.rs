//! Files that are in their place whole or not at all: written to a temporary one beside it, then renamed. Downloads land so,
//! and the check kit's reports. Knows nothing of where the bytes come from.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempPath;

/// A file in the making. Dropping it removes what has been written.
#[derive(Debug)]
pub struct WholeFile {
    temporary: TempPath,
    place: PathBuf,
}

impl WholeFile {
    /// Makes the temporary file for a place, which is no link. What is there already gives it its permissions; a new
    /// file has those of any other.
    ///
    /// Errors: the folder is missing or not writable.
    pub fn begin(place: PathBuf) -> io::Result<(File, Self)> {
        let replaced = std::fs::metadata(&place).ok().filter(Metadata::is_file);
        let make = |path: &Path| {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            // Of a file that nobody else may read, no moment's copy may be read either.
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(
                &mut options,
                if replaced.is_some() { 0o600 } else { 0o666 },
            );
            options.open(path)
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".gatewright-").suffix(".part");
        let (file, temporary) = builder.make_in(folder_of(&place), make)?.into_parts();
        #[cfg(unix)]
        if let Some(replaced) = &replaced {
            use std::os::unix::fs::PermissionsExt as _;

            let mode = replaced.permissions().mode() & 0o777;
            // Where the file system has no permissions to keep, the narrower ones stay.
            let _ = file.set_permissions(std::fs::Permissions::from_mode(mode));
        }
        Ok((file, Self { temporary, place }))
    }

    /// Puts the file, as [`WholeFile::begin`] gave it, in its place, so that it is there even after a power failure.
    /// overwrite: whether what has come there meanwhile is replaced.
    pub fn land(self, file: File, overwrite: bool) -> io::Result<()> {
        let Self { temporary, place } = self;
        file.sync_all()?;
        // Closed first: some systems do not rename what is open.
        drop(file);
        let moved = if overwrite { temporary.persist(&place) } else { temporary.persist_noclobber(&place) };
        moved.map_err(|error| error.error)?;
        sync_folder(folder_of(&place))
    }
}

/// The folder a place is in.
pub fn folder_of(place: &Path) -> &Path {
    place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the renaming last. Only unix opens folders.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature as on unix")]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(place: &Path) -> u32 {
        std::fs::metadata(place).expect("it is there").permissions().mode() & 0o7777
    }

    #[test]
    fn a_replaced_file_keeps_its_permissions_and_no_copy_of_it_has_wider_ones() {
        let folder = tempfile::tempdir().expect("a folder");
        for kept in [0o600, 0o640, 0o666, 0o444] {
            let place = folder.path().join(format!("{kept:o}"));
            std::fs::write(&place, "old").expect("written");
            std::fs::set_permissions(&place, std::fs::Permissions::from_mode(kept)).expect("set");
            let (mut file, whole) = WholeFile::begin(place.clone()).expect("begun");
            assert_eq!(mode(&whole.temporary), kept);
            file.write_all(b"new").expect("written");
            whole.land(file, true).expect("landed");
            assert_eq!((mode(&place), std::fs::read(&place).expect("read")), (kept, b"new".to_vec()));
        }
    }

    #[test]
    fn a_new_file_has_the_permissions_of_any_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let (place, other) = (folder.path().join("new"), folder.path().join("other"));
        File::create(&other).expect("made");
        let (file, whole) = WholeFile::begin(place.clone()).expect("begun");
        whole.land(file, false).expect("landed");
        assert_eq!(mode(&place), mode(&other));
    }
}
