//! Where `gatewright serve` has its key from.

use std::env::VarError;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use gatewright::API_KEY_VARIABLE;
use gatewright_gateway::ApiKey;

use crate::outcome::Failure;

/// Environment variable of the key that clients must send.
const KEY_VARIABLE: &str = "GATEWRIGHT_SERVE_KEY";
/// A longer file holds no key.
const LONGEST_FILE: u64 = 4096;

#[derive(Debug, Args)]
pub(super) struct KeyArguments {
    /// File that holds the key that clients must send; else it is that of --key, of the variable
    /// GATEWRIGHT_SERVE_KEY, of GATEWRIGHT_API_KEY; else a random one is made and shown
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    key_file: Option<PathBuf>,
    /// The key itself, for trying things out: lists of processes show it
    #[arg(long)]
    key: Option<Shown>,
}

/// A key as it stands on the command line. `Debug` does not show it.
#[derive(Clone)]
struct Shown(String);

impl From<String> for Shown {
    fn from(key: String) -> Self {
        Self(key)
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("redacted")
    }
}

impl KeyArguments {
    /// The key, or none if one is to be made.
    pub(super) fn read(self) -> Result<Option<ApiKey>, Failure> {
        // Taken here and not by clap, so that help never shows the value of a variable.
        let (key, place) = match (self.key, self.key_file) {
            (Some(Shown(key)), _) => (key, "--key".to_owned()),
            (None, Some(file)) => (read(&file)?, file.display().to_string()),
            (None, None) => match (variable(KEY_VARIABLE)?, variable(API_KEY_VARIABLE)) {
                (Some(key), _) => (key, KEY_VARIABLE.to_owned()),
                (None, other) => match other? {
                    Some(key) => (key, API_KEY_VARIABLE.to_owned()),
                    None => return Ok(None),
                },
            },
        };
        ApiKey::new(key).map(Some).map_err(|error| Failure::Usage(format!("{place}: {error}")))
    }
}

/// The key in a variable; none where it is not set, or set to nothing.
fn variable(name: &str) -> Result<Option<String>, Failure> {
    match std::env::var(name) {
        Ok(key) => Ok(Some(key).filter(|key| !key.is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        // It may be a secret: it is not shown.
        Err(VarError::NotUnicode(_)) => Err(Failure::Usage(format!("{name} is not Unicode text"))),
    }
}

/// The key in a file, without the line end that editors put behind it.
fn read(file: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = File::open(file).and_then(|file| file.take(LONGEST_FILE + 1).read_to_string(&mut text));
    let cannot = |why: String| Failure::Usage(format!("cannot read a key from {}: {why}", file.display()));
    read.map_err(|error| cannot(error.to_string()))?;
    if text.len() as u64 > LONGEST_FILE {
        return Err(cannot(format!("it is longer than {LONGEST_FILE} bytes")));
    }
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
