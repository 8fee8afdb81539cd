//! The data folder that a command works on: from its argument, otherwise from GATEWRIGHT_SERVE_DATA, otherwise the user's
//! default one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use gatewright_gateway::default_data_folder;

use crate::exit::Failure;

/// Environment variable of the data folder.
const VARIABLE: &str = "GATEWRIGHT_SERVE_DATA";

/// The default folder.
pub(crate) fn usual() -> Result<PathBuf, Failure> {
    default_data_folder().map_err(|why| Failure::Usage(why.to_string()))
}

/// Whether its variable is set.
pub(crate) fn is_set() -> bool {
    variable().is_some()
}

fn variable() -> Option<OsString> {
    std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty())
}

/// The requested folder. It need not exist.
pub(crate) fn requested(argument: Option<&Path>) -> Result<PathBuf, Failure> {
    match (argument, variable()) {
        (Some(folder), _) => Ok(folder.to_path_buf()),
        (None, Some(folder)) => Ok(folder.into()),
        (None, None) => usual(),
    }
}

/// The same, but it must exist.
pub(crate) fn existing(argument: Option<&Path>) -> Result<PathBuf, Failure> {
    let folder = requested(argument)?;
    if folder.is_dir() {
        return Ok(folder);
    }
    let shown = folder.display();
    Err(Failure::Usage(format!(
        "the data folder {shown} does not exist; gatewright serve --data or keys create creates it"
    )))
}
