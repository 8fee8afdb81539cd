//! Where the contents of files are: in a folder, in a bucket, or in memory. A file appears under its name once all of it
//! is on the disk, so that no reader ever sees part of it, even if the process or the machine fails.

use std::io;
use std::ops::Range;
use std::path::{Path as Folder, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use gatewright_config::Bucket;
use gatewright_store::FileName;
use gatewright_system::crash;
use gatewright_system::disk::{private_folder, sync_folder};
use object_store::buffered::BufWriter;
use object_store::chunked::ChunkedStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt as _};

use super::failure::FileError;

/// A larger file is written in parts of this size, in bytes; one part is in memory while it arrives.
pub(crate) const PART_BYTES: usize = 5 * 1024 * 1024;
/// The size of the pieces in which a file is read from the folder, in bytes. Each takes a round trip to another
/// thread.
const PIECE: usize = 64 * 1024;

/// See the module. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Contents {
    store: Arc<dyn ObjectStore>,
    /// The folder, if they are in one.
    folder: Option<Arc<Folder>>,
}

/// Pieces of a file, in order.
pub(crate) type FileStream = BoxStream<'static, Result<Bytes, FileError>>;

/// Something found among the files.
#[derive(Debug)]
pub(super) struct FileEntry {
    pub(super) name: FileName,
    /// When it was written, in seconds since 1970.
    pub(super) written: u64,
}

impl Contents {
    pub(crate) fn in_memory() -> Self {
        Self { store: Arc::new(InMemory::new()), folder: None }
    }

    /// In a folder, which is created if it is missing, with access for its owner only.
    pub(crate) fn in_folder(folder: &Folder) -> io::Result<Self> {
        crash::point();
        private_folder().recursive(true).create(folder)?;
        crash::point();
        // Otherwise a power failure might lose the folder and everything in it.
        if let Some(parent) = folder.parent() {
            sync_folder(parent)?;
        }
        let store = LocalFileSystem::new_with_prefix(folder).map_err(io::Error::from)?.with_fsync(true);
        // By default, it reads 8 KiB at a time.
        let store = Arc::new(ChunkedStore::new(Arc::new(store), PIECE));
        Ok(Self { store, folder: Some(folder.into()) })
    }

    /// In a bucket, without sending a request yet. Errors: its settings can't be used.
    pub(crate) fn in_bucket(bucket: &Bucket) -> io::Result<Self> {
        let store = super::bucket::open(bucket).map_err(io::Error::other)?;
        Ok(Self { store, folder: None })
    }

    /// Errors: the folder is missing. A write would then create a new one, accessible to every user.
    async fn in_place(&self) -> Result<(), FileError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        match tokio::fs::metadata(folder).await {
            Ok(_) => Ok(()),
            Err(error) => Err(FileError::away(folder, &error)),
        }
    }

    /// Writes a file.
    pub(super) async fn write(&self, name: &FileName, contents: Vec<u8>) -> Result<(), FileError> {
        self.in_place().await?;
        crash::point();
        self.store.put(&path(name), contents.into()).await?;
        crash::point();
        Ok(())
    }

    /// A writer for a file whose bytes arrive over time. The file appears once the writer has been shut down.
    pub(super) async fn writer(&self, name: &FileName) -> Result<BufWriter, FileError> {
        self.in_place().await?;
        let writer = BufWriter::with_capacity(Arc::clone(&self.store), path(name), PART_BYTES);
        Ok(writer.with_max_concurrency(1))
    }

    /// The size of a file, in bytes; `None` if no file has this name.
    pub(super) async fn size(&self, name: &FileName) -> Result<Option<u64>, FileError> {
        match self.store.head(&path(name)).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(object_store::Error::NotFound { .. }) => self.in_place().await.map(|()| None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a part of a file in pieces, each on demand.
    pub(super) async fn read(&self, name: &FileName, part: Range<u64>) -> Result<FileStream, FileError> {
        let options = GetOptions { range: Some(GetRange::Bounded(part)), ..GetOptions::default() };
        let found = self.store.get_opts(&path(name), options).await?;
        // A truncated file would yield empty pieces forever.
        let is_cut = |piece: Bytes| if piece.is_empty() { Err(FileError::cut()) } else { Ok(piece) };
        Ok(found.into_stream().map(move |piece| piece.map_err(FileError::from).and_then(is_cut)).boxed())
    }

    /// Removes a file, if it is there.
    pub(super) async fn remove(&self, name: &FileName) -> Result<(), FileError> {
        crash::point();
        let removed = self.store.delete(&path(name)).await;
        crash::point();
        match removed {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// All files. Anything without a valid file name is not ours.
    pub(super) fn list(&self) -> BoxStream<'static, Result<FileEntry, FileError>> {
        let found = self.store.list(None).try_filter_map(async |meta| {
            let name = meta.location.as_ref().parse().ok();
            let written = u64::try_from(meta.last_modified.timestamp()).unwrap_or(0);
            Ok(name.map(|name| FileEntry { name, written }))
        });
        found.map_err(FileError::from).boxed()
    }

    /// Removes unfinished files of processes that have ended: those not written to since `before`, a time since 1970, at
    /// most `most`. Returns how many.
    pub(super) async fn remove_unfinished(&self, before: Duration, most: usize) -> Result<usize, FileError> {
        let Some(folder) = self.folder.clone() else { return Ok(0) };
        let removed = tokio::task::spawn_blocking(move || {
            let mut removed = 0;
            for unfinished in unfinished(&folder, before)?.take(most) {
                crash::point();
                std::fs::remove_file(unfinished)?;
                crash::point();
                removed += 1;
            }
            Ok::<_, io::Error>(removed)
        });
        Ok(removed.await.map_err(io::Error::from)??)
    }
}

fn path(name: &FileName) -> Path {
    Path::from(name.as_str())
}

/// The unfinished files in a folder that were not written to since a time since 1970.
fn unfinished(folder: &Folder, before: Duration) -> io::Result<impl Iterator<Item = PathBuf>> {
    let is_idle = move |entry: &std::fs::DirEntry| {
        let written = entry.metadata().and_then(|found| found.modified()).ok();
        let since = |written: SystemTime| written.duration_since(SystemTime::UNIX_EPOCH).ok();
        written.and_then(since).is_some_and(|written| written <= before)
    };
    let entries = std::fs::read_dir(folder)?.filter_map(Result::ok);
    Ok(entries.filter(|entry| is_unfinished(&entry.file_name())).filter(is_idle).map(|entry| entry.path()))
}

/// Whether a file in the folder is an unfinished one of `object_store`: `NAME#1`.
fn is_unfinished(name: &std::ffi::OsStr) -> bool {
    let parts = name.to_str().and_then(|name| name.split_once('#'));
    parts.is_some_and(|(name, number)| {
        name.parse::<FileName>().is_ok() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}
