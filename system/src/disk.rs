//! Files and folders with access for their owner only, which survive a power failure.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;

/// Extension of unfinished files.
pub const UNFINISHED: &str = "new";

/// Creates folders with access for their owner only.
pub fn private_folder() -> DirBuilder {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "there are no modes"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Opens files. New ones are accessible to their owner only.
pub fn private_file() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "there are no modes"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Syncs the names in a folder to the disk. Windows doesn't support that.
#[cfg(unix)]
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    // The parent of a bare name.
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    std::fs::File::open(folder)?.sync_all()
}

/// Syncs nothing: Windows doesn't support that.
#[cfg(not(unix))]
pub fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
