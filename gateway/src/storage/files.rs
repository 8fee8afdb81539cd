//! Generated files (4 rule 4), under random names with signed URLs (section 8). Their contents are in a folder, in a bucket
//! or in memory (`contents`); the store records which files exist and who owns them. A file is written completely, then
//! recorded, then referred to. It is kept for its hour: if there is no room, new work is rejected.

mod address;
mod bucket;
mod contents;
mod counting;
mod failure;
#[cfg(all(test, target_os = "linux"))]
mod full_disk_tests;
mod refusal;
mod reservation;
mod sweeping;
#[cfg(test)]
mod tests;
mod writing;

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gatewright::{ErrorCode, catalog};
use gatewright_store::{DurableStore, ExpiringFile, FileName, StoreError, StoredFile};
use ring::hmac;

pub(crate) use self::contents::{Contents, FileStream, PART_BYTES};
pub(crate) use self::failure::store_unavailable;
pub(crate) use self::reservation::{FileReservation, KeyFileQuota};

use self::address::Signer;
use self::counting::Counts;
use self::failure::{FileError, unavailable};
use self::reservation::PendingReservations;
use crate::wire::ApiError;

/// Path prefix of files.
pub(crate) const PREFIX: &str = "/files/";
/// Lifetime of a file and its URL. The source states it only for images (8); videos get the same.
pub(crate) const LIFETIME: Duration = Duration::from_secs(catalog::IMAGE_URL_LIFETIME_S as u64);

/// The files, and the key that signs their URLs.
pub(crate) struct GeneratedFiles {
    contents: Contents,
    store: Arc<dyn DurableStore>,
    signer: Signer,
    /// Maximum size of all files together.
    max_bytes: u64,
    promises: PendingReservations,
    counts: Counts,
}

/// A file that can be read.
pub(crate) struct OpenFile<'f> {
    files: &'f GeneratedFiles,
    pub(crate) name: FileName,
    pub(crate) bytes: u64,
}

impl GeneratedFiles {
    /// `key`: signs the URLs. `max_bytes`: maximum size of all files together.
    pub(crate) fn new(
        contents: Contents,
        store: Arc<dyn DurableStore>,
        key: hmac::Key,
        max_bytes: usize,
    ) -> Arc<Self> {
        let max_bytes = u64::try_from(max_bytes).unwrap_or(u64::MAX);
        let (promises, counts) = Default::default();
        Arc::new(Self { contents, store, signer: Signer::new(key), max_bytes, promises, counts })
    }

    /// The same, with a task that removes expired files for as long as this exists. Needs a Tokio runtime.
    pub(crate) fn start(
        contents: Contents,
        store: Arc<dyn DurableStore>,
        key: hmac::Key,
        max_bytes: usize,
    ) -> Arc<Self> {
        let files = Self::new(contents, store, key, max_bytes);
        sweeping::start(&files);
        files
    }

    /// The signed path and query of a file, valid until it expires.
    pub(crate) fn address(&self, file: &StoredFile) -> String {
        self.signer.address(file)
    }

    /// The file of a signed URL, by its name and query.
    ///
    /// Errors: the signature is invalid, or the file has expired; it cannot be read.
    pub(crate) async fn open(
        &self,
        name: &str,
        query: &[(String, String)],
    ) -> Result<OpenFile<'_>, ApiError> {
        let name = self.signer.read(name, query)?;
        match self.contents.size(&name).await.map_err(FileError::unread)? {
            Some(bytes) => Ok(OpenFile { files: self, name, bytes }),
            None => Err(self.missing(&name).await),
        }
    }

    /// A file by its name; `None` if it has expired. Errors: it cannot be read.
    pub(crate) async fn find(&self, name: &FileName) -> Result<Option<OpenFile<'_>>, ApiError> {
        let size = self.contents.size(name).await.map_err(FileError::unread)?;
        Ok(size.map(|bytes| OpenFile { files: self, name: name.clone(), bytes }))
    }

    /// The error for a missing file.
    async fn missing(&self, name: &FileName) -> ApiError {
        match self.store.has_file(name).await {
            Ok(false) => ApiError::new(&ErrorCode::FILE_EXPIRED, "the file is no longer stored"),
            Ok(true) => {
                tracing::error!(%name, "a recorded file is missing; is the right folder mounted?");
                unavailable("read")
            }
            Err(error) => store_unavailable(&error),
        }
    }
}

/// The names of files that are recorded and have not expired, but whose contents are missing.
pub(crate) async fn missing_files(
    contents: &Contents,
    store: &dyn DurableStore,
) -> Result<Vec<String>, StoreError> {
    let (started, mut missing) = (Instant::now(), Vec::new());
    for ExpiringFile { file, left } in store.first_to_expire(None, u32::MAX).await? {
        let size = contents.size(&file.name).await;
        // Files that expire during this check may be swept.
        let left = left.saturating_sub(started.elapsed().as_secs() + 1);
        if left > 0 && !matches!(size, Ok(Some(bytes)) if bytes == file.bytes) {
            missing.push(file.name.as_str().to_owned());
        }
    }
    Ok(missing)
}

impl OpenFile<'_> {
    /// A part of the file in pieces, each read on demand.
    pub(crate) async fn read(&self, part: Range<u64>) -> Result<FileStream, ApiError> {
        self.files.contents.read(&self.name, part).await.map_err(FileError::unread)
    }
}
