//! A file that is written as its bytes arrive.

use std::time::Duration;

use gatewright_store::{FileKind, FileName, StoredFile};
use gatewright_system::crash;
use object_store::buffered::BufWriter;
use tokio::io::AsyncWriteExt as _;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::contents::PART_BYTES;
use super::failure::FileError;
use super::reservation::FileReservation;
use super::sweeping::LEFT;
use crate::wire::ApiError;

/// Pause before recording a file is retried if the store doesn't accept it.
const PAUSE: Duration = Duration::from_secs(1);
/// After this time, a file is no longer recorded: gateways remove unrecorded files after [`LEFT`].
const LATEST: Duration = LEFT.checked_div(2).expect("not zero");

/// A file being written. It disappears unless it is finished.
pub(crate) struct FileWriter<'r> {
    room: &'r mut FileReservation,
    name: FileName,
    bytes: u64,
    /// `None`: finished or abandoned.
    writer: Option<BufWriter>,
}

impl FileReservation {
    /// Begins a file. If it is not finished, the space stays reserved.
    pub(crate) async fn write(&mut self, kind: FileKind) -> Result<FileWriter<'_>, ApiError> {
        let name = FileName::random(kind);
        let writer = self.files.contents.writer(&name).await.map_err(FileError::unwritten)?;
        Ok(FileWriter { room: self, name, bytes: 0, writer: Some(writer) })
    }
}

impl FileWriter<'_> {
    /// Writes more. Errors: there is no room for it, or it cannot be written.
    pub(crate) async fn put(&mut self, more: &[u8]) -> Result<(), ApiError> {
        let before = self.bytes;
        self.bytes = self.bytes.saturating_add(u64::try_from(more.len()).unwrap_or(u64::MAX));
        self.room.claim(self.bytes).await?;
        if let Some(writer) = &mut self.writer {
            // A part is in memory until it is complete.
            let ends_part = self.bytes / PART_BYTES as u64 > before / PART_BYTES as u64;
            if ends_part {
                crash::point();
            }
            writer.write_all(more).await.map_err(|error| FileError::from(error).unwritten())?;
            if ends_part {
                crash::point();
            }
        }
        Ok(())
    }

    /// Stores the file for `lifetime` from now, in place of the space reserved for it. If the store is away, the file isn't
    /// written again; recording it is retried until `deadline`, or until the file is so old that another gateway may remove
    /// it.
    pub(crate) async fn finish(
        mut self,
        lifetime: Duration,
        deadline: Instant,
    ) -> Result<StoredFile, ApiError> {
        if let Some(mut writer) = self.writer.take() {
            crash::point();
            writer.shutdown().await.map_err(|error| FileError::from(error).unwritten())?;
            crash::point();
        }
        let (written, deadline) = ([(self.name.clone(), self.bytes)], deadline.min(Instant::now() + LATEST));
        let expires = loop {
            match self.room.record(&written, lifetime).await {
                Ok(expires) => break expires,
                Err(error) if Instant::now() >= deadline => return Err(error),
                Err(error) => tracing::warn!(file = %self.name, "{error}: the file is not written yet"),
            }
            tokio::time::sleep(PAUSE).await;
        };
        let [(name, _)] = written;
        Ok(StoredFile { name, expires })
    }
}

impl Drop for FileWriter<'_> {
    fn drop(&mut self) {
        if let (Some(mut writer), Ok(runtime)) = (self.writer.take(), Handle::try_current()) {
            runtime.spawn(async move { writer.abort().await });
        }
    }
}
