//! Where durable data is: in a data folder, or on a server that several gateways share. Also holds the pepper that
//! protects it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use gatewright::webhook::Secret;
use gatewright_config::Bucket;
use gatewright_store::{DurableStore, Pepper, Spool, SqlStore, StoreError, StoreUrl};
use gatewright_system::crash;
use gatewright_system::disk::{private_folder, sync_folder};
use ring::hmac;

use crate::storage::{Contents, missing_files};

/// Name of the database in the data folder.
pub(super) const DATABASE: &str = "gatewright.db";
/// Name of the pepper's file in the data folder.
pub(super) const PEPPER: &str = "pepper";
/// Name of the folder of generated files in the data folder.
pub(super) const FILES: &str = "files";
/// Name of the folder of usage journals in the data folder.
pub(super) const JOURNALS: &str = "usage";
/// Name of the folder, in the data folder, for data that the store did not accept in time.
pub(super) const SPOOL: &str = "spool";

/// A store that can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidData {
    /// The data folder or a file in it can't be created or read.
    #[error("{place}: {source}")]
    Unusable {
        /// The folder or file.
        place: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// The pepper is not the one that the keys were stored with.
    #[error(
        "{pepper} does not match the keys in {store}; restore both from the same backup, and use the same pepper for all \
            gateways of a store"
    )]
    OtherPepper {
        /// Where the pepper comes from.
        pepper: String,
        /// Where the keys are.
        store: String,
    },
    /// A server without a pepper.
    #[error(
        "{0} needs a pepper, the same for all its gateways: configure store.pepper, or a data folder that has it"
    )]
    NoPepper(String),
    /// The server rejects the gateway, or has another version.
    #[error("{0}: {1}")]
    Refused(String, String),
}

/// The store, and the pepper for its digests. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Data {
    pub(super) pepper: Arc<Pepper>,
    pub(crate) store: Arc<dyn DurableStore>,
    /// The contents of generated files.
    pub(crate) contents: Contents,
    /// The folder of usage journals, if there is a data folder.
    pub(crate) journals: Option<Arc<Path>>,
    /// The folder for data that the store did not accept in time, if there is a data folder.
    spool: Option<Arc<Path>>,
    /// Whether the data survives the process.
    pub(crate) lasting: bool,
    /// Whether the pepper was just created: no client can have anything derived from it.
    pub(crate) is_new: bool,
    /// Where the pepper comes from and where the store is, for messages.
    places: Arc<(String, String)>,
}

impl Data {
    /// Keeps everything in memory.
    fn in_memory() -> Self {
        let (pepper, store) = (Arc::new(Pepper::random()), Arc::new(SqlStore::in_memory()));
        let contents = Contents::in_memory();
        let (journals, spool, places) = Default::default();
        Self { pepper, store, contents, journals, spool, lasting: false, is_new: true, places }
    }

    /// Opens the server if configured, otherwise the folder, otherwise memory. A folder and its files are created if
    /// they are missing, with access for their owner only. The database is opened on first use. Needs a Tokio runtime.
    ///
    /// `pepper`: by default the folder's.
    pub(crate) fn open(
        folder: Option<&Path>,
        server: Option<&StoreUrl>,
        pepper: Option<&Pepper>,
    ) -> Result<Self, InvalidData> {
        if let Some(folder) = folder {
            create(folder)?;
        }
        let (store, shown) = match (server, folder) {
            (Some(url), _) => {
                let refused = |error: StoreError| InvalidData::Refused(url.to_string(), error.to_string());
                (SqlStore::at(url).map_err(refused)?, url.to_string())
            }
            (None, Some(folder)) => {
                let file = folder.join(DATABASE);
                (SqlStore::in_file(&file).map_err(unusable(&file))?, file.display().to_string())
            }
            (None, None) => return Ok(Self::in_memory()),
        };
        let ((pepper, is_new), place) = match (pepper, folder) {
            (Some(pepper), _) => ((pepper.clone(), false), "the configured pepper".to_owned()),
            (None, Some(folder)) => {
                let file = folder.join(PEPPER);
                #[cfg(unix)]
                if file.exists() {
                    restrict(&file, 0o600)?;
                }
                (Pepper::in_file(&file).map_err(unusable(&file))?, file.display().to_string())
            }
            (None, None) => return Err(InvalidData::NoPepper(shown)),
        };
        let contents = match folder.map(|folder| folder.join(FILES)) {
            Some(files) => Contents::in_folder(&files).map_err(unusable(&files))?,
            None => Contents::in_memory(),
        };
        Ok(Self {
            pepper: Arc::new(pepper),
            store: Arc::new(store),
            contents,
            journals: folder.map(|folder| folder.join(JOURNALS).into()),
            spool: folder.map(|folder| folder.join(SPOOL).into()),
            lasting: true,
            is_new,
            places: Arc::new((place, shown)),
        })
    }

    /// Stores generated files in a bucket, without sending a request yet.
    pub(crate) fn keep_files_in(&mut self, bucket: &Bucket) -> Result<(), InvalidData> {
        let unusable = |source| InvalidData::Unusable { place: bucket.url.clone(), source };
        self.contents = Contents::in_bucket(bucket).map_err(unusable)?;
        Ok(())
    }

    /// Opens the spool, if there is a data folder, and takes over what ended processes left in it.
    pub(crate) fn open_spool(&self) -> Option<Arc<Spool>> {
        self.spool.as_deref().map(|folder| Spool::open(folder, self.derived("key of the spool")))
    }

    /// Signs the URLs of files: the same for all gateways with this pepper.
    pub(crate) fn key_of_addresses(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.derived("key of the addresses of files"))
    }

    /// The secret that signs webhooks if none is configured.
    pub(crate) fn webhook_secret(&self) -> Secret {
        Secret::from_bytes(self.derived("webhook secret")).expect("32 bytes are enough")
    }

    /// A secret with this name: the same wherever the pepper is the same.
    pub(crate) fn derived(&self, name: &str) -> [u8; 32] {
        self.pepper.derived(name)
    }

    /// The names of files that are recorded and have not expired, but whose contents are missing.
    pub(super) async fn missing_files(&self) -> Result<Vec<String>, StoreError> {
        missing_files(&self.contents, &*self.store).await
    }

    /// Checks that the store can be used, and that the pepper belongs to it. Errors: they don't, or the store doesn't
    /// answer.
    pub(crate) async fn check(&self) -> Result<Result<(), InvalidData>, StoreError> {
        let check = self.pepper.check();
        let (pepper, store) = (self.places.0.clone(), self.places.1.clone());
        match self.store.pepper_check(check).await {
            Ok(stored) if stored == check => Ok(Ok(())),
            Ok(_) => Ok(Err(InvalidData::OtherPepper { pepper, store })),
            Err(StoreError::Refused(why)) => Ok(Err(InvalidData::Refused(store, why))),
            Err(error) => Err(error),
        }
    }
}

pub(super) fn unusable(place: &Path) -> impl FnOnce(io::Error) -> InvalidData {
    let place = place.display().to_string();
    move |source| InvalidData::Unusable { place, source }
}

/// Creates a folder with access for its owner only, if it is missing.
fn create(folder: &Path) -> Result<(), InvalidData> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|place| !place.exists()).collect();
    crash::point();
    private_folder().recursive(true).create(folder).map_err(unusable(folder))?;
    crash::point();
    // Otherwise a power failure might lose the folder and everything in it.
    for parent in missing.into_iter().filter_map(Path::parent) {
        sync_folder(parent).map_err(unusable(parent))?;
    }
    #[cfg(unix)]
    restrict(folder, 0o700)?;
    Ok(())
}

/// Removes other users' permissions on a folder or file of the data folder. If it belongs to another user, such as the root
/// of a mounted volume, only a warning is possible: whatever the gateway creates in it is accessible to its own user only.
#[cfg(unix)]
fn restrict(place: &Path, mode: u32) -> Result<(), InvalidData> {
    use std::os::unix::fs::PermissionsExt as _;

    let found = std::fs::metadata(place).map_err(unusable(place))?.permissions().mode() & 0o777;
    if found & 0o700 == found {
        return Ok(());
    }
    let shown = place.display();
    match std::fs::set_permissions(place, std::fs::Permissions::from_mode(mode)) {
        Ok(()) => tracing::info!("{shown}: mode {found:03o} gave access to others; changed to {mode:03o}"),
        Err(error) => tracing::warn!(
            "{shown}: mode {found:03o} gives access to others and cannot be changed ({error}); run: chmod {mode:03o} {shown}"
        ),
    }
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[tokio::test]
    async fn data_folder_and_pepper_permissions_are_tightened() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = parent.path().join("data");
        drop(Data::open(Some(&folder), None, None).expect("a new folder"));
        let pepper = folder.join(PEPPER);
        let mode = |place: &Path| fs::metadata(place).expect("it is there").permissions().mode() & 0o777;
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).expect("set");
        fs::set_permissions(&pepper, Permissions::from_mode(0o644)).expect("set");
        drop(Data::open(Some(&folder), None, None).expect("the same folder"));
        assert_eq!((mode(&folder), mode(&pepper)), (0o700, 0o600));
    }

    /// In a folder of another user, such as a mounted volume, this is what keeps others out.
    #[tokio::test]
    async fn everything_in_the_data_folder_is_accessible_to_its_user_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = Data::open(Some(folder.path()), None, None).expect("a folder");
        data.check().await.expect("a store").expect("its pepper");
        let mut found = Vec::new();
        for entry in fs::read_dir(folder.path()).expect("listed") {
            let entry = entry.expect("an entry");
            let mode = entry.metadata().expect("it is there").permissions().mode();
            assert_eq!(mode & 0o077, 0, "{:?}: {mode:o}", entry.path());
            found.push(entry.file_name());
        }
        assert!(found.len() > 2 && found.contains(&DATABASE.into()), "{found:?}");
    }
}
