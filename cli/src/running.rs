//! The gateways that this user runs on this machine. Each has a file with its addresses and where its keys are, which
//! `serve` writes (`registration`), so that other commands find it without options and variables.
//!
//! Its lock tells whether the gateway still runs: the system releases it when the process ends, however that happens. Only
//! files of this user count: another one could name an address of its own, and be sent our keys.

#[cfg(feature = "server")]
mod registration;

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use gatewright::{ApiKey, BASE_URL_VARIABLE, DEFAULT_BASE_URL};
use serde::{Deserialize, Serialize};

#[cfg(feature = "server")]
pub(crate) use self::registration::Registration;
use crate::exit::{Failure, print_message};
use crate::state;

/// Maximum number of files that are read.
const MAX_FILES: usize = 64;
/// Maximum size of such a file, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 10;
/// Maximum size of a file with a key, in bytes.
const MAX_KEY_BYTES: u64 = 4096;
const EXTENSION: &str = "json";
const LOCK_EXTENSION: &str = "lock";

/// The content of a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunningGateway {
    /// Its base URLs, at least one, as programs on this machine reach them.
    pub(crate) urls: Vec<String>,
    /// The id of its process.
    pub(crate) process: u32,
    /// The file with the key for clients; `None`: the key was given in another way.
    pub(crate) key_file: Option<PathBuf>,
    /// The file with the admin key; `None`: there is no admin key, or it was given in another way.
    pub(crate) admin_key_file: Option<PathBuf>,
    /// Its data folder; `None`: its data is in memory, or in a database.
    pub(crate) data: Option<PathBuf>,
}

impl RunningGateway {
    /// The URL for clients; without TLS, if it has one: a certificate is seldom for the address of this machine.
    pub(crate) fn url(&self) -> &str {
        let plain = self.urls.iter().find(|url| url.starts_with("http://"));
        plain.or(self.urls.first()).map_or("", String::as_str)
    }

    /// Its key for clients, if a file contains it.
    pub(crate) fn key(&self) -> Result<Option<ApiKey>, Failure> {
        self.key_file.as_deref().map(read_key).transpose()
    }

    /// Its admin key, if a file contains it.
    #[cfg(feature = "server")]
    pub(crate) fn admin_key(&self) -> Result<Option<ApiKey>, Failure> {
        self.admin_key_file.as_deref().map(read_key).transpose()
    }

    fn has(&self, url: &str) -> bool {
        let wanted = comparable(url);
        self.urls.iter().any(|url| comparable(url) == wanted)
    }
}

/// The gateway to call if nothing names one: the only one that runs or, of several, the one at the default address.
///
/// Errors: there are several, none of them there.
pub(crate) fn only() -> Result<Option<RunningGateway>, Failure> {
    let mut running = running();
    if running.len() < 2 {
        return Ok(running.pop());
    }
    if let Some(usual) = running.iter().find(|gateway| gateway.has(DEFAULT_BASE_URL)) {
        return Ok(Some(usual.clone()));
    }
    let urls: Vec<&str> = running.iter().map(RunningGateway::url).collect();
    let urls = urls.join(", ");
    Err(Failure::Usage(format!(
        "several gateways run here, at {urls}: choose one with --base-url or {BASE_URL_VARIABLE}"
    )))
}

/// The gateway of this user at an address.
pub(crate) fn at(url: &str) -> Option<RunningGateway> {
    running().into_iter().find(|gateway| gateway.has(url))
}

/// All that run. The files of others are removed; if none runs, a message names them.
pub(crate) fn running() -> Vec<RunningGateway> {
    let (mut running, mut ended) = (Vec::new(), Vec::new());
    for file in files() {
        // Files that are no longer there, that another user wrote, or that another version wrote differently.
        let Ok(gateway) = read(&file) else { continue };
        if is_locked(&file.with_extension(LOCK_EXTENSION)) {
            running.push(gateway);
        } else {
            remove(&file);
            ended.push(gateway);
        }
    }
    if let (true, Some(gateway)) = (running.is_empty(), ended.first()) {
        print_message(&format!(
            "the gateway at {} (process {}) ended unexpectedly; `gatewright serve` starts one again",
            gateway.url(),
            gateway.process
        ));
    }
    running
}

/// The folders that may contain files: `XDG_RUNTIME_DIR` may be set for `serve` and not for another command.
fn folders() -> impl Iterator<Item = PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let runtime = runtime.map(|folder| folder.join("gatewright"));
    runtime.into_iter().chain(state::place().map(|folder| folder.join("running")))
}

fn files() -> Vec<PathBuf> {
    let entries = folders().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let files = entries.map(|entry| entry.path());
    let mut files: Vec<PathBuf> = files
        .filter(|file| file.extension().is_some_and(|extension| extension == EXTENSION))
        .take(MAX_FILES)
        .collect();
    files.sort();
    files
}

fn read(file: &Path) -> io::Result<RunningGateway> {
    let gateway: RunningGateway = serde_json::from_str(&read_own(file, MAX_FILE_BYTES)?)?;
    if gateway.urls.is_empty() {
        return Err(io::Error::other("it has no address"));
    }
    Ok(gateway)
}

/// The key in a file of this user, without the newline that editors append.
pub(crate) fn read_key(file: &Path) -> Result<ApiKey, Failure> {
    let refused = |why: String| {
        Failure::Usage(format!("cannot read the key of the gateway from {}: {why}", file.display()))
    };
    let text = read_own(file, MAX_KEY_BYTES).map_err(|error| refused(error.to_string()))?;
    ApiKey::trimmed(&text).map_err(|problem| refused(problem.to_string()))
}

/// The text of a file of this user. Errors: it is larger than `limit` bytes, or belongs to another user.
fn read_own(file: &Path, limit: u64) -> io::Result<String> {
    let opened = File::open(file)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;

        if opened.metadata()?.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other("it belongs to another user"));
        }
    }
    let mut text = String::new();
    if opened.take(limit + 1).read_to_string(&mut text)? as u64 > limit {
        return Err(io::Error::other(format!("it is larger than {limit} bytes")));
    }
    Ok(text)
}

fn is_locked(lock: &Path) -> bool {
    File::open(lock).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Removes a file and its lock, which may be gone already.
fn remove(file: &Path) {
    let _ = fs::remove_file(file);
    let _ = fs::remove_file(file.with_extension(LOCK_EXTENSION));
}

/// An address as all its spellings have it.
fn comparable(url: &str) -> String {
    let url = url.trim().trim_end_matches('/');
    let url = url.strip_suffix("/v1").or_else(|| url.strip_suffix("/v1beta")).unwrap_or(url);
    url.trim_end_matches('/').to_ascii_lowercase().replacen("//localhost:", "//127.0.0.1:", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_an_address_are_the_same() {
        for url in ["http://127.0.0.1:8080/", "http://localhost:8080/v1", " HTTP://127.0.0.1:8080/v1beta/"] {
            assert_eq!(comparable(url), "http://127.0.0.1:8080", "{url}");
        }
        assert_ne!(comparable("https://127.0.0.1:8080"), "http://127.0.0.1:8080");
    }

    #[test]
    fn key_file_must_be_small_and_contain_a_key() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("key");
        fs::write(&file, "gw-a\n").expect("written");
        assert_eq!(read_key(&file).expect("a key").expose(), "gw-a");
        for text in ["two words".to_owned(), String::new(), "k".repeat(5000)] {
            fs::write(&file, text).expect("written");
            assert!(read_key(&file).expect_err("no key").message().contains("key: "));
        }
    }
}
