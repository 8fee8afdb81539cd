//! Writes a download to its destination, within its size limit. whole_file.rs ensures that the file appears whole or
//! not at all; files.rs provides the bytes.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncSeekExt as _, AsyncWriteExt as _};
use tokio::task::spawn_blocking;

use super::{SaveOptions, Saved};
use crate::wire::error::{Error, ErrorKind};
use gatewright_safe::whole_file::WholeFile;

/// A file that is being written. Dropping it removes what has been written.
pub(super) struct PartialFile {
    file: tokio::fs::File,
    whole: WholeFile,
    /// The path as the caller gave it, for messages.
    named: PathBuf,
    overwrite: bool,
    max_bytes: u64,
    written: u64,
}

impl PartialFile {
    /// Creates the temporary file. Errors (Io): the folder is missing or not writable, or something is in the way.
    pub(super) async fn begin(named: &Path, options: &SaveOptions) -> Result<Self, Error> {
        let (named, overwrite) = (named.to_owned(), options.overwrite);
        let place = named.clone();
        let made = spawn_blocking(move || WholeFile::begin(resolve(place, overwrite)?));
        let (file, whole) = unpanicked(made.await).map_err(|error| failure(&named, error))?;
        let file = tokio::fs::File::from_std(file);
        Ok(Self { file, whole, named, overwrite, max_bytes: options.max_bytes, written: 0 })
    }

    /// Number of bytes written so far.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Errors: an error of the disk (Io); the file exceeds its size limit (Decode).
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.check_size(self.written + bytes.len() as u64)?;
        self.file.write_all(bytes).await.map_err(|error| failure(&self.named, error))?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Errors (Decode): a file of that size exceeds the limit.
    pub(super) fn check_size(&self, bytes: u64) -> Result<(), Error> {
        if bytes <= self.max_bytes {
            return Ok(());
        }
        let (named, limit) = (self.named.display(), self.max_bytes);
        let message = format!("the file for {named} is larger than the allowed {limit} bytes");
        Err(Error::new(ErrorKind::Decode, message))
    }

    /// Discards what has been written.
    pub(super) async fn start_over(&mut self) -> Result<(), Error> {
        if self.written == 0 {
            return Ok(());
        }
        let rewound = async {
            self.file.flush().await?;
            self.file.set_len(0).await?;
            self.file.rewind().await
        };
        rewound.await.map_err(|error| failure(&self.named, error))?;
        self.written = 0;
        Ok(())
    }

    /// Moves the file to its destination.
    pub(super) async fn finish(mut self) -> Result<Saved, Error> {
        self.file.flush().await.map_err(|error| failure(&self.named, error))?;
        let Self { file, whole, named, overwrite, written, .. } = self;
        let file = file.into_std().await;
        let landed = spawn_blocking(move || whole.land(file, overwrite));
        unpanicked(landed.await).map_err(|error| failure(&named, error))?;
        Ok(Saved { path: named, bytes: written })
    }
}

/// A panic in the blocking code is a defect of ours; a task that is never aborted cannot fail in any other way.
fn unpanicked<T>(joined: Result<io::Result<T>, tokio::task::JoinError>) -> io::Result<T> {
    match joined {
        Ok(outcome) => outcome,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(error) => Err(io::Error::other(error)),
    }
}

/// The file to replace. Errors: it exists and must not be replaced, or it is not a regular file.
fn resolve(named: PathBuf, overwrite: bool) -> io::Result<PathBuf> {
    let refuse = |kind, message: &str| Err(io::Error::new(kind, message));
    match std::fs::metadata(&named).as_ref().map(Metadata::file_type) {
        Ok(kind) if kind.is_dir() => refuse(io::ErrorKind::IsADirectory, "it is a folder: name a file in it"),
        // A rename would replace the device or pipe with a file.
        Ok(kind) if !kind.is_file() => refuse(io::ErrorKind::InvalidInput, "it is not a regular file"),
        Ok(_) if !overwrite => {
            refuse(io::ErrorKind::AlreadyExists, "it already exists, and overwriting was not allowed")
        }
        // Like opening for writing: a link is kept, and its target is replaced.
        Ok(_) => named.canonicalize(),
        // A missing folder is reported when the temporary file is created.
        Err(_) => Ok(named),
    }
}

fn failure(named: &Path, error: io::Error) -> Error {
    let why = match error.kind() {
        io::ErrorKind::NotFound => "its folder does not exist".to_owned(),
        _ => error.to_string(),
    };
    Error::new(ErrorKind::Io, format!("cannot write {}: {why}", named.display())).with_source(error)
}
