//! The default data folder.

use std::path::PathBuf;

use etcetera::base_strategy::{BaseStrategy as _, choose_base_strategy};

/// The user's home directory is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no home folder; set a data folder")]
pub struct NoHome;

/// The data folder of this user: `gatewright` in `$XDG_DATA_HOME`, which defaults to `~/.local/share`, and in the
/// application data folder on Windows. It need not exist.
pub fn default_data_folder() -> Result<PathBuf, NoHome> {
    let places = choose_base_strategy().map_err(|_| NoHome)?;
    Ok(places.data_dir().join("gatewright"))
}
