//! Media in requests: data URLs, and the names of audio forms.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::conversation::{Media, Source};

/// Reads an address, which may contain the medium itself.
pub(super) fn of_url(url: String) -> (Source, Option<String>) {
    match inline(&url) {
        Some((media_type, data)) => (Source::Inline(data.to_owned()), Some(media_type.to_owned())),
        None => (Source::Url(url), None),
    }
}

/// The media type and the base64 text of a data URL; `None`: it is another URL, or has parameters.
pub(super) fn inline(url: &str) -> Option<(&str, &str)> {
    let (media_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    (!media_type.is_empty() && !media_type.contains([';', ','])).then_some((media_type, data))
}

/// Writes an address; `None`: it is a file that only its provider has.
pub(super) fn url(media: &Media, assumed: &str) -> Option<String> {
    match &media.source {
        Source::Inline(data) => {
            Some(format!("data:{};base64,{data}", media.media_type.as_deref().unwrap_or(assumed)))
        }
        Source::Url(url) => Some(url.clone()),
        Source::FileId(_) => None,
    }
}

/// The text of a document that is plain text, of whatever kind.
pub(super) fn plain_text(media: &Media) -> Option<String> {
    let Source::Inline(data) = &media.source else { return None };
    let media_type = media.media_type.as_deref()?;
    let is_text = media_type.starts_with("text/") || media_type == "application/json";
    is_text.then(|| String::from_utf8(BASE64_STANDARD.decode(data).ok()?).ok())?
}

/// The media type of an audio form such as `wav`.
pub(super) fn audio_type(form: &str) -> String {
    format!("audio/{form}")
}

/// The audio form of a media type.
pub(super) fn audio_form(media_type: &str) -> Option<&str> {
    match media_type {
        "audio/mpeg" => Some("mp3"),
        "audio/x-wav" | "audio/wave" => Some("wav"),
        other => other.strip_prefix("audio/"),
    }
}
