//! A file that is written as its bytes come.

use std::time::Duration;

use object_store::buffered::BufWriter;
use tokio::io::AsyncWriteExt as _;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::contents::PART;
use super::failure::Failure;
use super::room::Room;
use super::sweeping::LEFT;
use crate::crash;
use crate::store::file_name::{FileName, KeptFile, Kind};
use crate::wire::ApiError;

/// Pause before a file that the store does not take is recorded again.
const PAUSE: Duration = Duration::from_secs(1);
/// Later, a file is recorded no more: gateways remove what nobody knows after [`LEFT`].
const LATEST: Duration = LEFT.checked_div(2).expect("not zero");

/// A file under way. Nothing of it stays unless it is finished.
pub(crate) struct Writing<'r> {
    room: &'r mut Room,
    name: FileName,
    bytes: u64,
    /// `None`: finished, or given up.
    writer: Option<BufWriter>,
}

impl Room {
    /// Begins a file. The room stays reserved if it is not finished.
    pub(crate) async fn write(&mut self, kind: Kind) -> Result<Writing<'_>, ApiError> {
        let name = FileName::random(kind);
        let writer = self.files.contents.writer(&name).await.map_err(Failure::unwritten)?;
        Ok(Writing { room: self, name, bytes: 0, writer: Some(writer) })
    }
}

impl Writing<'_> {
    /// Writes more. Errors: there is no room for it, or it cannot be written.
    pub(crate) async fn put(&mut self, more: &[u8]) -> Result<(), ApiError> {
        let before = self.bytes;
        self.bytes = self.bytes.saturating_add(u64::try_from(more.len()).unwrap_or(u64::MAX));
        self.room.claim(self.bytes).await?;
        if let Some(writer) = &mut self.writer {
            // Until a part is whole, it is in memory.
            let ends_part = self.bytes / PART as u64 > before / PART as u64;
            if ends_part {
                crash::point();
            }
            writer.write_all(more).await.map_err(|error| Failure::from(error).unwritten())?;
            if ends_part {
                crash::point();
            }
        }
        Ok(())
    }

    /// Keeps the file for `lifetime` from now, in place of the room that was reserved for it. What is written is not made anew
    /// because the store is away: it is tried again until `deadline`, or until it is so old that another gateway may remove it.
    pub(crate) async fn finish(
        mut self,
        lifetime: Duration,
        deadline: Instant,
    ) -> Result<KeptFile, ApiError> {
        if let Some(mut writer) = self.writer.take() {
            crash::point();
            writer.shutdown().await.map_err(|error| Failure::from(error).unwritten())?;
            crash::point();
        }
        let (written, deadline) = ([(self.name.clone(), self.bytes)], deadline.min(Instant::now() + LATEST));
        let expires = loop {
            match self.room.record(&written, lifetime).await {
                Ok(expires) => break expires,
                Err(error) if Instant::now() >= deadline => return Err(error),
                Err(error) => tracing::warn!(file = %self.name, "{error}: the file waits"),
            }
            tokio::time::sleep(PAUSE).await;
        };
        let [(name, _)] = written;
        Ok(KeptFile { name, expires })
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if let (Some(mut writer), Ok(runtime)) = (self.writer.take(), Handle::try_current()) {
            runtime.spawn(async move { writer.abort().await });
        }
    }
}
