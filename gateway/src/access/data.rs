//! The data folder: the store, and beside it the pepper.

use std::fs::DirBuilder;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::pepper::Pepper;
use crate::store::{MemoryStore, SqliteStore, Store, StoreError};

/// Name of the database in the folder.
const DATABASE: &str = "gatewright.db";
/// Name of the pepper's file in the folder.
const PEPPER: &str = "pepper";

/// A data folder that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidData {
    /// The folder or a file in it cannot be created or read.
    #[error("{place}: {source}")]
    Unusable {
        /// The folder or file.
        place: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The pepper is not the one that the keys were kept with: the files come from different folders.
    #[error(
        "{0} is not the file that the keys in {DATABASE} were kept with; restore both from the same backup"
    )]
    OtherPepper(String),
}

/// The store, and what its digests are made with. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Data {
    pub(super) pepper: Arc<Pepper>,
    pub(crate) store: Arc<dyn Store>,
    /// Whether it lasts beyond the process.
    pub(crate) lasting: bool,
    /// The pepper's file, for messages.
    file: Arc<str>,
}

impl Data {
    /// Keeps everything in memory.
    pub(crate) fn in_memory() -> Self {
        let (pepper, store) = (Arc::new(Pepper::random()), Arc::new(MemoryStore::default()));
        Self { pepper, store, lasting: false, file: "".into() }
    }

    /// Opens a folder, and creates it and its files if they are missing, for their owner alone. The database is opened
    /// when it is first used. Needs a Tokio runtime.
    pub(crate) fn open(folder: &Path) -> Result<Self, InvalidData> {
        let unusable = |place: &Path| {
            let place = place.display().to_string();
            move |source| InvalidData::Unusable { place, source }
        };
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder).map_err(unusable(folder))?;
        let (database, pepper) = (folder.join(DATABASE), folder.join(PEPPER));
        let file = pepper.display().to_string().into();
        let pepper = Pepper::in_file(&pepper).map_err(unusable(&pepper))?;
        let store = SqliteStore::open(&database).map_err(unusable(&database))?;
        Ok(Self { pepper: Arc::new(pepper), store: Arc::new(store), lasting: true, file })
    }

    /// Checks that the pepper belongs to the store.
    pub(crate) async fn check(&self) -> Result<Result<(), InvalidData>, StoreError> {
        let check = self.pepper.check();
        let kept = self.store.pepper_check(check).await?;
        Ok(if kept == check { Ok(()) } else { Err(InvalidData::OtherPepper(self.file.to_string())) })
    }
}
