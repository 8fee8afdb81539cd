//! Saves what was made: a file is there whole or not at all.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use gatewright::Client;
use tempfile::NamedTempFile;

use crate::outcome::Failure;

/// A file in the making, beside its place.
pub(crate) struct Saving {
    file: NamedTempFile,
    place: PathBuf,
}

impl Saving {
    /// Errors: the folder is missing or not writable. Called before anything costly is asked for.
    pub(crate) fn begin(place: &Path) -> Result<Self, Failure> {
        let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut builder = tempfile::Builder::new();
        builder.prefix(".gatewright-").suffix(".part");
        // As any new file: the default of temporary ones shuts everybody else out.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file =
            builder.tempfile_in(folder.unwrap_or(Path::new("."))).map_err(|error| failure(place, error))?;
        Ok(Self { file, place: place.to_owned() })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(|error| failure(&self.place, error))
    }

    /// Puts the file in its place, over one that is there.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let Self { file, place } = self;
        file.persist(&place).map(drop).map_err(|error| failure(&place, error))
    }

    /// Fetches a generated file and puts it in its place.
    pub(crate) async fn download(mut self, client: &Client, url: &str) -> Result<(), Failure> {
        let mut download = client.download(url).await?;
        while let Some(chunk) = download.chunk().await? {
            self.write(&chunk)?;
        }
        self.finish()
    }
}

fn failure(place: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::Usage(format!("cannot write {}: {error}", place.display()))
}
