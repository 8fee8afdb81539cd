//! Files and folders: for their owner alone, and there after a power cut.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;

/// Ending of the names of files that are being made.
pub(crate) const UNFINISHED: &str = "new";

/// Makes folders for their owner alone.
pub(crate) fn private_folder() -> DirBuilder {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "there are no modes"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Opens files. One that is made is for its owner alone.
pub(crate) fn private_file() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "there are no modes"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Waits until the names in a folder are on the disk. Windows cannot be asked for that.
#[cfg(unix)]
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    // The parent of a bare name.
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    std::fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
pub(crate) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
