//! Copies of the images that a provider returns as URLs, which the gateway serves for an hour (`images.fetch`). An image that can't
//! be copied keeps the provider's URL: it has been generated and billed, and the client may be able to fetch it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future;
use gatewright_store::FileKind;
use indexmap::IndexMap;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::Instant;

use super::download::{DownloadError, Medium, download};
use super::videos::open_url;
use crate::app::App;
use crate::bounds::memory_budget::Reservation;
use crate::routing::Provider;
use crate::storage::PART_BYTES;
use crate::wire::Call;

/// An answer with URLs is short: a larger one contains the images.
const MAX_ANSWER_BYTES: usize = 256 * 1024;
/// Maximum number of images of one answer that are copied, which are fetched at the same time: as many as `n` allows (2.8).
const MAX_IMAGES: usize = 10;
/// Maximum size of one image.
const MAX_IMAGE_BYTES: u64 = 32 * 1024 * 1024;
/// Time for copying all images of an answer, while the client waits.
const MAX_TIME: Duration = Duration::from_mins(1);

/// The files accepted as an image.
const IMAGE: Medium = Medium {
    name: "image",
    mismatch: "is not a PNG, JPEG or WebP image",
    kind_of,
    max_bytes: MAX_IMAGE_BYTES,
};

/// A JSON object whose members keep the form that the provider gave them.
type RawMembers = IndexMap<String, Box<RawValue>>;

/// The answer with URLs of copies in place of the provider's. None if there is nothing to replace, or no memory for
/// copying. `buffers`: reserves the memory of the images being copied.
pub(super) async fn copied(
    app: &App,
    call: &Call,
    provider: &Arc<Provider>,
    document: &Bytes,
    buffers: &mut Reservation,
) -> Option<Bytes> {
    if document.len() > MAX_ANSWER_BYTES {
        return None;
    }
    let mut answer: RawMembers = serde_json::from_slice(document).ok()?;
    let mut images: Vec<RawMembers> = serde_json::from_str(answer.get("data")?.get()).ok()?;
    if buffers.hold(images.len().min(MAX_IMAGES) * PART_BYTES).is_err() {
        tracing::warn!(
            "images of {} keep the provider's URLs: there is no memory to copy them",
            provider.endpoint.name
        );
        return None;
    }
    let deadline = Instant::now() + MAX_TIME;
    let copies = images.iter().take(MAX_IMAGES).map(|image| async move {
        let url: String = serde_json::from_str(image.get("url")?.get()).ok()?;
        let copying = copy(app, call, provider, &url, deadline);
        let copied = match tokio::time::timeout_at(deadline, copying).await {
            Ok(copied) => copied,
            Err(_) => Err(format!("it was not there within {MAX_TIME:?}")),
        };
        let name = &provider.endpoint.name;
        copied.inspect_err(|why| tracing::warn!("an image of {name} keeps the provider's URL: {why}")).ok()
    });
    let copies = future::join_all(copies).await;
    if copies.iter().all(Option::is_none) {
        return None;
    }
    for (image, copy) in images.iter_mut().zip(copies) {
        if let Some(url) = copy {
            image.insert("url".to_owned(), to_raw_value(&url).ok()?);
        }
    }
    answer.insert("data".to_owned(), to_raw_value(&images).ok()?);
    serde_json::to_vec(&answer).ok().map(Bytes::from)
}

/// Copies one image into the gateway's files. Errors: why it can't be copied, without the URL, which may contain secrets.
async fn copy(
    app: &App,
    call: &Call,
    provider: &Provider,
    url: &str,
    deadline: Instant,
) -> Result<String, String> {
    let failed = |error| match error {
        DownloadError::Never(why) => why,
        DownloadError::NoRoom(error) => error.to_string(),
        // Not the server's text, which may contain anything.
        DownloadError::Failed(failure) => format!("the download failed ({:?})", failure.class),
    };
    let opened = open_url(provider, &app.webhooks.fetcher, url, &call.request_id).await;
    let content = opened.map_err(|failure| failed(DownloadError::Failed(failure)))?;
    let room = app.room_for_files(call.caller.id(), 0).await;
    let mut room = room.map_err(|error| failed(DownloadError::NoRoom(error)))?;
    let redactor = &provider.endpoint.redactor;
    let file = download(content, &IMAGE, &mut room, redactor, deadline).await.map_err(failed)?;
    Ok(format!("{}{}", app.public_url(call), app.storage.files.address(&file)))
}

fn kind_of(file: &[u8]) -> Option<FileKind> {
    if file.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Some(FileKind::Png);
    }
    if file.starts_with(b"\xff\xd8\xff") {
        return Some(FileKind::Jpeg);
    }
    (file.starts_with(b"RIFF") && file.get(8..12) == Some(b"WEBP")).then_some(FileKind::Webp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_format_is_detected_by_magic_bytes() {
        assert_eq!(kind_of(b"\x89PNG\r\n\x1a\n\0\0\0\r"), Some(FileKind::Png));
        assert_eq!(kind_of(b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01"), Some(FileKind::Jpeg));
        assert_eq!(kind_of(b"RIFF\x10\0\0\0WEBPVP8 "), Some(FileKind::Webp));
        for other in [&b""[..], b"<svg onload=1>", b"RIFF\x10\0\0\0WAVEfmt ", b"\0\0\0\x20ftypisom"] {
            assert_eq!(kind_of(other), None);
        }
    }
}
