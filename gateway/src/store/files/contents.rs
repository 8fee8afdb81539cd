//! Where the contents of files lie: in a folder, in a bucket, or in memory. What is written appears under its name when all
//! of it is on the disk, so that nobody reads a part of it, whenever the process or the machine ends.

use std::io;
use std::ops::Range;
use std::path::{Path as Folder, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::buffered::BufWriter;
use object_store::chunked::ChunkedStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt as _};

use super::failure::Failure;
use crate::crash;
use crate::disk::{private_folder, sync_folder};
use crate::store::bucket::Bucket;
use crate::store::file_name::FileName;

/// A file that is larger is written in parts of this size, in bytes, of which one is in memory while the next one comes.
pub(super) const PART: usize = 5 * 1024 * 1024;
/// The size of the pieces that a file of the folder is read in, in bytes. Each costs a way to another thread and back.
const PIECE: usize = 64 * 1024;

/// See the module. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Contents {
    store: Arc<dyn ObjectStore>,
    /// Where they are in a folder.
    folder: Option<Arc<Folder>>,
}

/// Pieces of a file, in order.
pub(crate) type Pieces = BoxStream<'static, Result<Bytes, Failure>>;

/// Something that lies among the files.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: FileName,
    /// When it was written, in seconds since 1970.
    pub(super) written: u64,
}

impl Contents {
    pub(crate) fn in_memory() -> Self {
        Self { store: Arc::new(InMemory::new()), folder: None }
    }

    /// In a folder, which is created if it is missing, for its owner alone.
    pub(crate) fn in_folder(folder: &Folder) -> io::Result<Self> {
        crash::point();
        private_folder().recursive(true).create(folder)?;
        crash::point();
        // Else a power cut might take the folder with all that is in it.
        if let Some(parent) = folder.parent() {
            sync_folder(parent)?;
        }
        let store = LocalFileSystem::new_with_prefix(folder).map_err(io::Error::from)?.with_fsync(true);
        // By itself, it reads 8 KiB at a time.
        let store = Arc::new(ChunkedStore::new(Arc::new(store), PIECE));
        Ok(Self { store, folder: Some(folder.into()) })
    }

    /// In a bucket. Nothing is asked of it yet. Errors: its settings cannot be used.
    pub(crate) fn in_bucket(bucket: &Bucket) -> io::Result<Self> {
        let store = super::bucket::open(bucket).map_err(io::Error::other)?;
        Ok(Self { store, folder: None })
    }

    /// Errors: the folder is not there. Whatever wrote into it then would make another one, for everybody.
    async fn in_place(&self) -> Result<(), Failure> {
        let Some(folder) = &self.folder else { return Ok(()) };
        match tokio::fs::metadata(folder).await {
            Ok(_) => Ok(()),
            Err(error) => Err(Failure::away(folder, &error)),
        }
    }

    /// Writes a file.
    pub(super) async fn write(&self, name: &FileName, contents: Vec<u8>) -> Result<(), Failure> {
        self.in_place().await?;
        crash::point();
        self.store.put(&path(name), contents.into()).await?;
        crash::point();
        Ok(())
    }

    /// What writes a file as its bytes come. It is there once the writer was shut down.
    pub(super) async fn writer(&self, name: &FileName) -> Result<BufWriter, Failure> {
        self.in_place().await?;
        let writer = BufWriter::with_capacity(Arc::clone(&self.store), path(name), PART);
        Ok(writer.with_max_concurrency(1))
    }

    /// The size of a file, in bytes; `None` if there is none of this name.
    pub(super) async fn size(&self, name: &FileName) -> Result<Option<u64>, Failure> {
        match self.store.head(&path(name)).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(object_store::Error::NotFound { .. }) => self.in_place().await.map(|()| None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a part of a file, piece by piece, each when it is asked for.
    pub(super) async fn read(&self, name: &FileName, part: Range<u64>) -> Result<Pieces, Failure> {
        let options = GetOptions { range: Some(GetRange::Bounded(part)), ..GetOptions::default() };
        let found = self.store.get_opts(&path(name), options).await?;
        // A file that was cut short would give nothing without end.
        let is_cut = |piece: Bytes| if piece.is_empty() { Err(Failure::cut()) } else { Ok(piece) };
        Ok(found.into_stream().map(move |piece| piece.map_err(Failure::from).and_then(is_cut)).boxed())
    }

    /// Removes a file, if it is there.
    pub(super) async fn remove(&self, name: &FileName) -> Result<(), Failure> {
        crash::point();
        let removed = self.store.delete(&path(name)).await;
        crash::point();
        match removed {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// All files. What has no name of a file is somebody else's.
    pub(super) fn list(&self) -> BoxStream<'static, Result<Found, Failure>> {
        let found = self.store.list(None).try_filter_map(async |meta| {
            let name = meta.location.as_ref().parse().ok();
            let written = u64::try_from(meta.last_modified.timestamp()).unwrap_or(0);
            Ok(name.map(|name| Found { name, written }))
        });
        found.map_err(Failure::from).boxed()
    }

    /// Removes what a process that ended left of files that it was writing: what nobody has written to since `before`, a time
    /// since 1970. At most so many. Returns how many.
    pub(super) async fn remove_unfinished(&self, before: Duration, most: usize) -> Result<usize, Failure> {
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

/// What was begun in a folder and not written to since a time since 1970.
fn unfinished(folder: &Folder, before: Duration) -> io::Result<impl Iterator<Item = PathBuf>> {
    let is_idle = move |entry: &std::fs::DirEntry| {
        let written = entry.metadata().and_then(|found| found.modified()).ok();
        let since = |written: SystemTime| written.duration_since(SystemTime::UNIX_EPOCH).ok();
        written.and_then(since).is_some_and(|written| written <= before)
    };
    let entries = std::fs::read_dir(folder)?.filter_map(Result::ok);
    Ok(entries.filter(|entry| is_unfinished(&entry.file_name())).filter(is_idle).map(|entry| entry.path()))
}

/// Whether a file of the folder is one that `object_store` has not finished: `NAME#1`.
fn is_unfinished(name: &std::ffi::OsStr) -> bool {
    let parts = name.to_str().and_then(|name| name.split_once('#'));
    parts.is_some_and(|(name, number)| {
        name.parse::<FileName>().is_ok() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}
