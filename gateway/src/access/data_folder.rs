//! Where the data folder is if nobody says.

use std::path::PathBuf;

use etcetera::base_strategy::{BaseStrategy as _, choose_base_strategy};

/// Nobody knows where the user's files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no home folder; name a data folder")]
pub struct NoHome;

/// The data folder of this user: `gatewright` in `$XDG_DATA_HOME`, which is `~/.local/share` unless it is set, and in the
/// folder of application data on Windows. It need not be there.
pub fn default_data_folder() -> Result<PathBuf, NoHome> {
    let places = choose_base_strategy().map_err(|_| NoHome)?;
    Ok(places.data_dir().join("gatewright"))
}
