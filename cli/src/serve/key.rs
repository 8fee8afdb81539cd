//! Where `gatewright serve` gets its key.

use std::env::VarError;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use gatewright::API_KEY_VARIABLE;
use gatewright_gateway::{ApiKey, Config, weak_key};

use crate::exit::Failure;
use crate::local_keys::{KeyRole, LocalKey};

/// Environment variable with the key of the operations under /admin.
const ADMIN_KEY_VARIABLE: &str = "GATEWRIGHT_SERVE_ADMIN_KEY";
/// Environment variable with the key that clients must send.
const KEY_VARIABLE: &str = "GATEWRIGHT_SERVE_KEY";
/// Maximum size of a key file, in bytes.
const MAX_FILE_BYTES: u64 = 4096;

#[derive(Debug, Args)]
pub(super) struct KeyArguments {
    /// File with the key that clients must send [default: --key, then GATEWRIGHT_SERVE_KEY, then
    /// GATEWRIGHT_API_KEY, then a random key, which is created once, printed and saved; see gatewright keys local]
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    key_file: Option<PathBuf>,
    /// The key itself, for testing only: process lists show it
    #[arg(long)]
    key: Option<RedactedKey>,
}

/// A key given on the command line. `Debug` hides it.
#[derive(Clone)]
struct RedactedKey(String);

impl From<String> for RedactedKey {
    fn from(key: String) -> Self {
        Self(key)
    }
}

impl fmt::Debug for RedactedKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("redacted")
    }
}

/// The saved keys that a gateway uses.
#[derive(Debug, Clone, Default)]
pub(super) struct LocalKeys {
    pub(super) client: Option<LocalKey>,
    pub(super) admin: Option<LocalKey>,
    /// Why none could be saved.
    pub(super) refused: Option<String>,
}

impl LocalKeys {
    /// Completes a configuration without keys with the saved ones, which are created if there are none. `has_file`: a
    /// configuration file decides whether there is an admin key.
    pub(super) fn complete(
        config: &mut Config,
        has_file: bool,
        warnings: &mut Vec<String>,
    ) -> Result<Self, Failure> {
        // A saved key may also be given, for instance by the variables that `keys local` prints.
        let given =
            |role: KeyRole, key: &ApiKey| role.saved().ok().flatten().filter(|saved| saved.key == *key);
        let is_keyless = config.key.is_none() && config.admin_key.is_none();
        let mut refused = None;
        let mut saved = |role: KeyRole| match role.load_or_create(warnings) {
            Ok(Ok(saved)) => Ok(Some(saved)),
            Ok(Err(error)) => {
                refused = Some(error.to_string());
                Ok(None)
            }
            Err(failure) => Err(failure),
        };
        let client = match &config.key {
            Some(key) => given(KeyRole::Client, key),
            None => saved(KeyRole::Client)?,
        };
        let admin = match &config.admin_key {
            Some(key) => given(KeyRole::Admin, key),
            None if is_keyless && !has_file && client.is_some() => saved(KeyRole::Admin)?,
            None => None,
        };
        let key_of = |saved: &Option<LocalKey>| saved.as_ref().map(|saved| saved.key.clone());
        config.key = config.key.take().or_else(|| key_of(&client));
        config.admin_key = config.admin_key.take().or_else(|| key_of(&admin));
        check_distinct(config)?;
        Ok(Self { client, admin, refused })
    }

    /// Whether a key was created at this start.
    pub(super) fn are_new(&self) -> bool {
        self.client.iter().chain(&self.admin).any(|saved| saved.is_new)
    }
}

/// Errors: both keys are the same.
pub(super) fn check_distinct(config: &Config) -> Result<(), Failure> {
    if config.key.is_some() && config.key == config.admin_key {
        let message =
            "the keys of clients and of administrators must differ: every client would be an administrator";
        return Err(Failure::Usage(message.to_owned()));
    }
    Ok(())
}

impl KeyArguments {
    /// The file that contains the key, if it is given so.
    pub(super) fn file(&self) -> Option<&Path> {
        self.key_file.as_deref()
    }

    /// The key and its source; `None`: none is given. `warnings`: collects problems with the key.
    pub(super) fn read(
        &self,
        of_file: Option<ApiKey>,
        warnings: &mut Vec<String>,
    ) -> Result<Option<(ApiKey, Origin)>, Failure> {
        // Read here rather than by clap, so that the help never shows the value of a variable.
        let (key, place) = match (&self.key, &self.key_file) {
            (Some(RedactedKey(key)), _) => (key.clone(), "--key".to_owned()),
            (None, Some(file)) => (read(file)?, file.display().to_string()),
            (None, None) => match (variable(KEY_VARIABLE)?, of_file) {
                (Some(key), _) => (key, KEY_VARIABLE.to_owned()),
                (None, Some(key)) => return Ok(Some((key, Origin::ConfigFile))),
                // The variable that clients read comes last.
                (None, None) => match variable(API_KEY_VARIABLE)? {
                    Some(key) => (key, API_KEY_VARIABLE.to_owned()),
                    None => return Ok(None),
                },
            },
        };
        Ok(Some((api_key(key, &place, warnings)?, Origin::CommandLine)))
    }
}

/// The source of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A flag or a variable of the program.
    CommandLine,
    /// The configuration file.
    ConfigFile,
}

/// The key of the operations under /admin in its variable.
pub(super) fn admin_key(warnings: &mut Vec<String>) -> Result<Option<ApiKey>, Failure> {
    variable(ADMIN_KEY_VARIABLE)?.map(|key| api_key(key, ADMIN_KEY_VARIABLE, warnings)).transpose()
}

fn api_key(key: String, place: &str, warnings: &mut Vec<String>) -> Result<ApiKey, Failure> {
    let key = ApiKey::new(key).map_err(|_| {
        Failure::Usage(format!("{place}: an API key must be one or more visible ASCII characters"))
    })?;
    warnings.extend(weak_key(&key).map(|why| format!("the key of {place} {why}")));
    Ok(key)
}

/// The secret in a variable; `None` if the variable is unset or empty.
pub(super) fn variable(name: &str) -> Result<Option<String>, Failure> {
    match std::env::var(name) {
        Ok(key) => Ok(Some(key).filter(|key| !key.is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        // The value may be a secret, so the message does not show it.
        Err(VarError::NotUnicode(_)) => Err(Failure::Usage(format!("{name} is not Unicode text"))),
    }
}

/// The key in a file, without the newline that editors append.
fn read(file: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = File::open(file).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text));
    let cannot = |why: String| Failure::Usage(format!("cannot read a key from {}: {why}", file.display()));
    read.map_err(|error| cannot(error.to_string()))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(cannot(format!("it is larger than {MAX_FILE_BYTES} bytes")));
    }
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
