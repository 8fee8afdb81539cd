//! Downloads a file from a provider into the gateway's files: no byte is accepted without reserved space.

use std::time::Duration;

use bytes::Bytes;
use gatewright::redact::Redactor;
use gatewright_store::{FileKind, StoredFile};
use http_body_util::BodyExt as _;
use tokio::time::Instant;

use super::failure::AttemptFailure;
use super::videos::FetchedFile;
use crate::bounds::pace::Pace;
use crate::storage::{FileReservation, LIFETIME};
use crate::wire::{ApiError, Body, BodyError};

/// Number of bytes at the start of a file that identify its format.
const BEGINNING: usize = 12;

/// Why a file couldn't be downloaded.
#[derive(Debug)]
pub(crate) enum DownloadError {
    /// It never will be.
    Never(String),
    /// There is currently no space.
    NoRoom(ApiError),
    Failed(AttemptFailure),
}

/// A kind of content, and the files that are accepted as such.
pub(crate) struct Medium {
    pub(crate) name: &'static str,
    /// The error for a file of another format.
    pub(crate) mismatch: &'static str,
    /// The format of a file by its first bytes: the provider's statement isn't trusted, since the gateway serves the file as its
    /// own.
    pub(crate) kind_of: fn(&[u8]) -> Option<FileKind>,
    pub(crate) max_bytes: u64,
}

/// Reads a file to its end, as far as there is space for it, and stores it. While the store is unavailable, the file waits for it
/// until `deadline`.
pub(crate) async fn download(
    content: FetchedFile,
    medium: &Medium,
    room: &mut FileReservation,
    redactor: &Redactor,
    deadline: Instant,
) -> Result<StoredFile, DownloadError> {
    let broken = |why: &str| DownloadError::Failed(AttemptFailure::broken(why, redactor));
    let FetchedFile { length, body, idle_timeout } = content;
    let most = FileSizeLimit {
        medium: medium.name,
        bytes: room.most().min(medium.max_bytes),
        is_limit_of_key: room.is_limited() && room.most() <= medium.max_bytes,
    };
    if let Some(length) = length {
        let length = fits(length, most)?;
        room.grow(length).await.map_err(DownloadError::NoRoom)?;
    }
    let mut source = Download { body, idle_timeout, pace: Pace::new(idle_timeout), redactor };
    let mut beginning = Vec::new();
    while beginning.len() < BEGINNING {
        let packet = source.next().await?.ok_or_else(|| broken(medium.mismatch))?;
        beginning.extend_from_slice(&packet);
    }
    let kind = (medium.kind_of)(&beginning).ok_or_else(|| broken(medium.mismatch))?;
    let mut bytes = beginning.len();
    fits(bytes, most)?;
    let mut file = room.write(kind).await.map_err(DownloadError::NoRoom)?;
    file.put(&beginning).await.map_err(DownloadError::NoRoom)?;
    while let Some(packet) = source.next().await? {
        bytes = bytes.saturating_add(packet.len());
        fits(bytes, most)?;
        file.put(&packet).await.map_err(DownloadError::NoRoom)?;
    }
    file.finish(LIFETIME, deadline).await.map_err(DownloadError::NoRoom)
}

/// The source of a file's bytes.
struct Download<'r> {
    body: Body,
    idle_timeout: Duration,
    pace: Pace,
    redactor: &'r Redactor,
}

impl Download<'_> {
    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, DownloadError> {
        let broken = |why| Err(DownloadError::Failed(AttemptFailure::broken(why, self.redactor)));
        self.pace.wait();
        match tokio::time::timeout(self.idle_timeout, next_packet(&mut self.body)).await {
            Err(_) => Err(DownloadError::Failed(AttemptFailure::silent(self.idle_timeout, self.redactor))),
            Ok(Err(_)) => broken("was cut off"),
            Ok(Ok(Some(packet))) if self.pace.is_slow(packet.len()) => broken("arrives too slowly"),
            Ok(Ok(packet)) => Ok(packet),
        }
    }
}

async fn next_packet(body: &mut Body) -> Result<Option<Bytes>, BodyError> {
    while let Some(frame) = body.frame().await {
        if let Ok(packet) = frame?.into_data() {
            return Ok(Some(packet));
        }
    }
    Ok(None)
}

/// The size of the largest file that could ever be stored.
#[derive(Clone, Copy)]
struct FileSizeLimit {
    medium: &'static str,
    bytes: u64,
    /// Whether the limit is that of its API key, however much space there is.
    is_limit_of_key: bool,
}

/// Whether a file of this size could ever be stored.
fn fits(bytes: usize, most: FileSizeLimit) -> Result<u64, DownloadError> {
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    if bytes > most.bytes {
        let why = if most.is_limit_of_key {
            "the limit file_bytes of this API key does not allow such a large file"
        } else {
            "the gateway does not store such large files"
        };
        return Err(DownloadError::Never(format!(
            "the {} has {bytes} bytes or more, and {why}",
            most.medium
        )));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::pace::MIN_RATE;

    /// Fetches a file that arrives in pieces of this size, each after this pause.
    async fn fetched(piece: usize, pause: Duration) -> Result<u64, DownloadError> {
        fetched_with(piece, move |_| pause).await
    }

    /// The same with a pause that depends on the piece.
    async fn fetched_with(
        piece: usize,
        pause: impl Fn(u64) -> Duration + Copy + Send + 'static,
    ) -> Result<u64, DownloadError> {
        let pieces = futures_util::stream::unfold(0, move |count| async move {
            tokio::time::sleep(pause(count)).await;
            (count < 600).then(|| (Ok::<_, std::convert::Infallible>(vec![0; piece]), count + 1))
        });
        let (idle_timeout, redactor) = (Duration::from_mins(2), Redactor::default());
        let (body, pace) = (Body::from_stream(pieces), Pace::new(idle_timeout));
        let mut source = Download { body, idle_timeout, pace, redactor: &redactor };
        let mut bytes = 0;
        while let Some(packet) = source.next().await? {
            bytes += packet.len() as u64;
        }
        Ok(bytes)
    }

    #[tokio::test(start_paused = true)]
    async fn dribbling_download_is_abandoned() {
        let started = Instant::now();
        let slow = fetched(16, Duration::from_secs(1)).await.expect_err("too slow");
        assert!(format!("{slow:?}").contains("arrives too slowly"), "{slow:?}");
        assert!(started.elapsed() < Duration::from_mins(3), "{:?}", started.elapsed());
        // A pause within the idle timeout isn't an error, whatever preceded it.
        let paused =
            fetched_with(64 * 1024, |count| Duration::from_secs(if count == 1 { 119 } else { 0 })).await;
        assert_eq!(paused.ok(), Some(600 * 64 * 1024));
        // Slow, but not too slow; and fast.
        assert_eq!(
            fetched(MIN_RATE + 1, Duration::from_secs(1)).await.ok(),
            Some(600 * (MIN_RATE as u64 + 1))
        );
        assert_eq!(fetched(64 * 1024, Duration::from_millis(1)).await.ok(), Some(600 * 64 * 1024));
    }
}
