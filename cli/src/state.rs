//! The folder for the program's own data: the history of conversations, the keys that `serve` made for this user (`local_keys`),
//! and, without a runtime folder, a file for each gateway that runs (`running`).

use std::fs::DirBuilder;
use std::io;
use std::path::PathBuf;

/// The folder, created if it is missing, with access for its owner only. Errors: no location for it is known.
pub(crate) fn folder() -> io::Result<PathBuf> {
    let folder = place().ok_or_else(|| io::Error::other("there is no home folder"))?;
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&folder)?;
    Ok(folder)
}

/// Where the folder is, or would be.
pub(crate) fn place() -> Option<PathBuf> {
    const NAME: &str = "gatewright";
    // A relative path is ignored: it would be a different folder each time.
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(state) = absolute("XDG_STATE_HOME") {
        return Some(state.join(NAME));
    }
    if cfg!(windows) {
        return absolute("LOCALAPPDATA").map(|local| local.join(NAME));
    }
    let home = std::env::home_dir().filter(|home| home.is_absolute())?;
    let state = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/state" };
    Some(home.join(state).join(NAME))
}
