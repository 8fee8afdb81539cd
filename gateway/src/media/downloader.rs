//! Downloads the file of a finished video into the gateway's files: no byte is accepted without reserved space.

use std::sync::Arc;

use gatewright_protocol::Finished;
use gatewright_store::{FileKind, StoredFile};
use tokio::time::Instant;

use crate::app::App;
use crate::relay::{DownloadError, Medium, Remote, download};
use crate::storage::FileReservation;

/// The files accepted as a video.
const VIDEO: Medium = Medium { name: "video", mismatch: "is not a video", kind_of, max_bytes: u64::MAX };

/// Fetches a complete file. `owner`: the id of the API key that it belongs to. `room`: its reserved space, also for repeated
/// downloads. While the store is unavailable, the downloaded file waits for it until `deadline`.
pub(super) async fn fetch(
    app: &App,
    owner: &Arc<str>,
    remote: &Remote,
    finished: &Finished,
    room: &mut Option<FileReservation>,
    deadline: Instant,
) -> Result<StoredFile, DownloadError> {
    let opened = remote.open(&app.live.routes.load_full(), &app.webhooks.fetcher, finished).await;
    let content = opened.map_err(DownloadError::Failed)?;
    let reserved = match room {
        Some(reserved) => reserved,
        None => room.insert(app.room_for_files(owner, 0).await.map_err(DownloadError::NoRoom)?),
    };
    download(content, &VIDEO, reserved, &remote.provider.endpoint.redactor, deadline).await
}

/// The format of a file: the provider's statement isn't trusted, since the gateway serves the file as its own.
fn kind_of(file: &[u8]) -> Option<FileKind> {
    if file.get(4..8) == Some(b"ftyp") {
        return Some(FileKind::Mp4);
    }
    file.starts_with(&[0x1a, 0x45, 0xdf, 0xa3]).then_some(FileKind::Webm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn video_format_is_detected_by_magic_bytes() {
        assert_eq!(kind_of(b"\0\0\0\x20ftypisom"), Some(FileKind::Mp4));
        assert_eq!(kind_of(b"\x1a\x45\xdf\xa3\x01\0\0\0\0\0\0\x1f"), Some(FileKind::Webm));
        for other in [&b""[..], b"<html><body>", b"{\"error\":{}}", b"ftypisomftyp"] {
            assert_eq!(kind_of(other), None);
        }
    }
}
