//! The keys of gateways that are started without any: created once for this user, and saved in the state folder.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use gatewright_gateway::{ApiKey, random_key};

use crate::exit::Failure;
use crate::running::read_key;
use crate::state;

/// What a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyRole {
    Client,
    Admin,
}

/// A saved key.
#[derive(Debug, Clone)]
pub(crate) struct LocalKey {
    pub(crate) key: ApiKey,
    pub(crate) file: PathBuf,
    /// Whether it was created just now.
    pub(crate) is_new: bool,
}

impl KeyRole {
    /// The file that keeps its key, if there is a place for it.
    fn file(self) -> Option<PathBuf> {
        let name = match self {
            Self::Client => "client.key",
            Self::Admin => "admin.key",
        };
        state::place().map(|folder| folder.join(name))
    }

    /// The saved key; `None`: there is none. Errors: the file can't be read, or contains no key.
    pub(crate) fn saved(self) -> Result<Option<LocalKey>, Failure> {
        match self.file().filter(|file| file.exists()) {
            Some(file) => Ok(Some(LocalKey { key: read_key(&file)?, file, is_new: false })),
            None => Ok(None),
        }
    }

    /// The saved key, made if there is none; otherwise why no key can be saved. `warnings`: collects problems with the file.
    pub(crate) fn load_or_create(
        self,
        warnings: &mut Vec<String>,
    ) -> Result<Result<LocalKey, io::Error>, Failure> {
        if let Some(saved) = self.saved()? {
            warnings.extend(exposed(&saved.file));
            return Ok(Ok(saved));
        }
        let key = random_key();
        Ok(match self.save(&key) {
            Ok((file, true)) => Ok(LocalKey { key, file, is_new: true }),
            // Another gateway was started at the same time.
            Ok((file, false)) => Ok(LocalKey { key: read_key(&file)?, file, is_new: false }),
            Err(error) => Err(error),
        })
    }

    /// Writes the file; returns whether there was none. It is complete as soon as it is there.
    fn save(self, key: &ApiKey) -> io::Result<(PathBuf, bool)> {
        let at = |folder: &Path, error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", folder.display()))
        };
        let folder = state::folder().map_err(|error| at(&state::place().unwrap_or_default(), error))?;
        let file = self.file().expect("its folder is there");
        let beside = folder.join(format!(".{}.new", std::process::id()));
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let written = options
            .open(&beside)
            .and_then(|mut new| writeln!(new, "{}", key.expose()).and_then(|()| new.sync_all()))
            // Unlike a rename, it never replaces a file.
            .and_then(|()| fs::hard_link(&beside, &file));
        let _ = fs::remove_file(&beside);
        match written {
            Ok(()) => Ok((file, true)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && file.exists() => Ok((file, false)),
            Err(error) => Err(at(&folder, error)),
        }
    }
}

/// A warning if others can read a file.
#[cfg(unix)]
fn exposed(file: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt as _;

    let mode = fs::metadata(file).ok()?.permissions().mode();
    let shown = file.display();
    (mode & 0o077 != 0).then(|| format!("other users can read the key in {shown}: chmod 600 '{shown}'"))
}

#[cfg(not(unix))]
fn exposed(_file: &Path) -> Option<String> {
    None
}
