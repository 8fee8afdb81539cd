//! Media in requests: data URLs, media types and audio format names.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::members::RequestWriter;
use crate::conversation::{Media, MediaSource, Part, PartKind};

/// Media types by file extension.
const EXTENSIONS: [(&str, &str); 26] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("heic", "image/heic"),
    ("bmp", "image/bmp"),
    ("svg", "image/svg+xml"),
    ("pdf", "application/pdf"),
    ("json", "application/json"),
    ("txt", "text/plain"),
    ("md", "text/markdown"),
    ("csv", "text/csv"),
    ("html", "text/html"),
    ("xml", "text/xml"),
    ("mp3", "audio/mpeg"),
    ("wav", "audio/wav"),
    ("ogg", "audio/ogg"),
    ("flac", "audio/flac"),
    ("m4a", "audio/mp4"),
    ("mp4", "video/mp4"),
    ("mov", "video/quicktime"),
    ("webm", "video/webm"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
];
/// Media types by the first base64 characters of a file.
const BEGINNINGS: [(&str, &str); 6] = [
    ("JVBERi", "application/pdf"),
    ("iVBORw0KGgo", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lGOD", "image/gif"),
    ("UklGR", "image/webp"),
    ("SUQz", "audio/mpeg"),
];
/// First base64 characters of a WAV file, whose container is also used by images.
const WAVE: (&str, &str) = ("UklGR", "V0FWR");
/// Other names for media types.
const ALIASES: [(&str, &str); 4] = [
    ("image/jpg", "image/jpeg"),
    ("image/pjpeg", "image/jpeg"),
    ("image/x-png", "image/png"),
    ("application/x-pdf", "application/pdf"),
];
/// Image media types that providers accept.
pub(super) const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// The media type of unknown bytes.
const UNKNOWN: &str = "application/octet-stream";

/// Reads a URL, which may contain the data itself.
pub(super) fn of_url(url: String) -> (MediaSource, Option<String>) {
    match inline(&url) {
        Some((media_type, data)) => (MediaSource::Inline(data.to_owned()), Some(media_type.to_owned())),
        None => (MediaSource::Url(url), None),
    }
}

/// The media type and base64 text of a data URL; `None`: it is another URL, or has parameters.
pub(super) fn inline(url: &str) -> Option<(&str, &str)> {
    let (media_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    (!media_type.is_empty() && !media_type.contains([';', ','])).then_some((media_type, data))
}

/// Whether providers accept an image: it has a common type or a web URL.
pub(super) fn is_picture(image: &Media) -> bool {
    let is_usual = image.media_type.as_deref().is_none_or(|kind| PICTURES.contains(&kind));
    is_usual && !matches!(&image.source, MediaSource::Url(url) if !is_web(url))
}

/// Whether a URL is a data URL, in any form.
pub(super) fn is_data(url: &str) -> bool {
    url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"))
}

/// Whether providers fetch a URL: web URLs only.
pub(super) fn is_web(url: &str) -> bool {
    let has = |scheme: &str| url.get(..scheme.len()).is_some_and(|given| given.eq_ignore_ascii_case(scheme));
    has("https://") || has("http://")
}

/// The media type, if present, and the base64 text of a data URL in any form with base64.
pub(super) fn lenient(url: &str) -> Option<(Option<&str>, &str)> {
    let (head, data) = url.get(5..).filter(|_| is_data(url))?.split_once(',')?;
    let mut words = head.split(';').map(str::trim);
    let media_type = words.next().filter(|kind| kind.contains('/'));
    words.any(|word| word.eq_ignore_ascii_case("base64")).then_some((media_type, data))
}

/// A part as providers of another protocol accept it: media get their usual media type, data in plain base64, and the
/// kind they really are. Other parts are unchanged.
pub(super) fn portable(part: &Part) -> Cow<'_, Part> {
    let (PartKind::Image(media) | PartKind::Audio(media) | PartKind::File(media)) = &part.kind else {
        return Cow::Borrowed(part);
    };
    let (mut given_type, mut data) = (media.media_type.as_deref(), None);
    match &media.source {
        MediaSource::Url(url) => {
            if let Some((media_type, inside)) = lenient(url) {
                given_type = given_type.or(media_type);
                data = Some(plain(inside).into_owned());
            }
        }
        MediaSource::Inline(inside) => {
            if let Cow::Owned(inside) = plain(inside) {
                data = Some(inside);
            }
        }
        // Only its provider knows what it is.
        MediaSource::FileId(_) => return Cow::Borrowed(part),
    }
    let known = given_type.map(usual).filter(|kind| kind != UNKNOWN);
    let source = data.map_or(Cow::Borrowed(&media.source), |data| Cow::Owned(MediaSource::Inline(data)));
    let media_type =
        known.or_else(|| guessed(&source, media).map(Cow::Borrowed)).or(given_type.map(Cow::Borrowed));
    let kind = |medium: Media| match media_type.as_deref().and_then(|kind| kind.split_once('/')) {
        Some(("image", _)) => PartKind::Image(medium),
        Some(("audio", _)) => PartKind::Audio(medium),
        Some(_) => PartKind::File(medium),
        None => match &part.kind {
            PartKind::Image(_) => PartKind::Image(medium),
            PartKind::Audio(_) => PartKind::Audio(medium),
            _ => PartKind::File(medium),
        },
    };
    let is_its_kind = match (media_type.as_deref(), &part.kind) {
        (None, _) => true,
        (Some(media_type), PartKind::Image(_)) => media_type.starts_with("image/"),
        (Some(media_type), PartKind::Audio(_)) => media_type.starts_with("audio/"),
        (Some(media_type), _) => !media_type.starts_with("image/") && !media_type.starts_with("audio/"),
    };
    let is_same_type = media_type.as_deref() == media.media_type.as_deref();
    if is_its_kind && is_same_type && matches!(source, Cow::Borrowed(_)) {
        return Cow::Borrowed(part);
    }
    let medium = Media {
        source: source.into_owned(),
        media_type: media_type.as_deref().map(str::to_owned),
        name: media.name.clone(),
        detail: media.detail.clone(),
    };
    Cow::Owned(Part { at: part.at.clone(), kind: kind(medium), cache: part.cache.clone() })
}

/// Reports what only the client's protocol can express for media of this kind: the name of an image or audio, and the
/// detail of anything but an image.
pub(super) fn lose_inexpressible(kind: &PartKind, writer: &mut RequestWriter<'_>) {
    let (name, detail) = match kind {
        PartKind::Image(image) => (image.name.as_ref(), None),
        PartKind::Audio(audio) => (audio.name.as_ref(), audio.detail.as_ref()),
        PartKind::File(file) => (None, file.detail.as_ref()),
        _ => return,
    };
    for lost in [name, detail].into_iter().flatten() {
        writer.lose(lost.at.clone());
    }
}

/// Base64 in the standard alphabet, without whitespace, and padded.
fn plain(data: &str) -> Cow<'_, str> {
    let is_odd = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'-' | b'_');
    if !data.bytes().any(is_odd) {
        return Cow::Borrowed(data);
    }
    let letter = |letter: char| match letter {
        '-' => '+',
        '_' => '/',
        other => other,
    };
    let mut plain: String = data.chars().filter(|letter| !letter.is_ascii_whitespace()).map(letter).collect();
    while !plain.len().is_multiple_of(4) && plain.len() % 4 != 1 {
        plain.push('=');
    }
    Cow::Owned(plain)
}

/// A media type without parameters, in its usual spelling.
fn usual(media_type: &str) -> Cow<'_, str> {
    let bare = media_type.split(';').next().unwrap_or_default().trim();
    let is_lower = !bare.bytes().any(|byte| byte.is_ascii_uppercase());
    let lower = if is_lower { Cow::Borrowed(bare) } else { Cow::Owned(bare.to_ascii_lowercase()) };
    match ALIASES.iter().find(|(alias, _)| *alias == lower) {
        Some((_, known)) => Cow::Borrowed(known),
        None => lower,
    }
}

/// The media type from the file name, the URL, or the first bytes.
fn guessed(source: &MediaSource, media: &Media) -> Option<&'static str> {
    let by_name = media.name.as_ref().and_then(|name| by_extension(&name.value));
    by_name.or_else(|| match source {
        MediaSource::Url(url) => by_extension(url.split(['?', '#']).next().unwrap_or_default()),
        MediaSource::Inline(data) if data.starts_with(WAVE.0) => {
            let is_wave = data.get(10..).is_some_and(|rest| rest.starts_with(&WAVE.1[..3]));
            Some(if is_wave { "audio/wav" } else { "image/webp" })
        }
        MediaSource::Inline(data) => {
            BEGINNINGS.iter().find(|(start, _)| data.starts_with(start)).map(|(_, kind)| *kind)
        }
        MediaSource::FileId(_) => None,
    })
}

/// The media type of a file from its extension.
fn by_extension(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit('/').next()?.rsplit_once('.')?;
    EXTENSIONS.iter().find(|(known, _)| extension.eq_ignore_ascii_case(known)).map(|(_, kind)| *kind)
}

/// Writes a URL; `None`: it is a file that only its provider has.
pub(super) fn url(media: &Media, assumed: &str) -> Option<String> {
    match &media.source {
        MediaSource::Inline(data) => {
            Some(format!("data:{};base64,{data}", media.media_type.as_deref().unwrap_or(assumed)))
        }
        MediaSource::Url(url) => Some(url.clone()),
        MediaSource::FileId(_) => None,
    }
}

/// The text of a document that is plain text, whatever its kind.
pub(super) fn plain_text(media: &Media) -> Option<String> {
    let MediaSource::Inline(data) = &media.source else { return None };
    let media_type = media.media_type.as_deref()?;
    let is_text = media_type.starts_with("text/") || media_type == "application/json";
    is_text.then(|| String::from_utf8(BASE64_STANDARD.decode(data).ok()?).ok())?
}

/// The media type of an audio format such as `wav`.
pub(super) fn audio_type(form: &str) -> String {
    format!("audio/{form}")
}

/// The audio format of a media type.
pub(super) fn audio_form(media_type: &str) -> Option<&str> {
    match media_type {
        "audio/mpeg" => Some("mp3"),
        "audio/x-wav" | "audio/wave" => Some("wav"),
        other => other.strip_prefix("audio/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::Located;

    fn part(source: MediaSource, media_type: Option<&str>, name: Option<&str>, image: bool) -> Part {
        let media = Media {
            source,
            media_type: media_type.map(str::to_owned),
            name: name.map(|name| Located::new(name.to_owned(), "/name")),
            detail: None,
        };
        let kind = if image { PartKind::Image(media) } else { PartKind::File(media) };
        Part { at: "/x".into(), kind, cache: None }
    }

    /// The kind, the media type and the data.
    fn described(part: &Part) -> (&'static str, Option<String>, String) {
        let part = portable(part);
        assert_eq!(portable(&part), part, "once is enough");
        let (kind, media) = match &part.kind {
            PartKind::Image(media) => ("image", media),
            PartKind::Audio(media) => ("audio", media),
            PartKind::File(media) => ("file", media),
            other => panic!("{other:?} is not a medium"),
        };
        let (MediaSource::Inline(source) | MediaSource::Url(source) | MediaSource::FileId(source)) =
            &media.source;
        (kind, media.media_type.clone(), source.clone())
    }

    #[test]
    fn media_type_and_base64_are_normalized() {
        let inline = |data: &str| MediaSource::Inline(data.to_owned());
        let url = |url: &str| MediaSource::Url(url.to_owned());
        for (part, kind, media_type, data) in [
            (part(inline("AA==\n"), Some("image/jpg"), None, true), "image", "image/jpeg", "AA=="),
            (part(inline("-_8"), Some("IMAGE/PNG; q=1"), None, true), "image", "image/png", "+/8="),
            (part(inline("JVBERi0x"), None, None, false), "file", "application/pdf", "JVBERi0x"),
            (
                part(inline("JVBERi0x"), Some("application/pdf"), None, true),
                "file",
                "application/pdf",
                "JVBERi0x",
            ),
            (part(inline("iVBORw0KGgo="), Some(UNKNOWN), None, false), "image", "image/png", "iVBORw0KGgo="),
            (part(inline("AA=="), None, Some("a.MP3"), false), "audio", "audio/mpeg", "AA=="),
            (
                part(url("DATA:image/png;charset=utf-8;BASE64,AA=="), None, None, true),
                "image",
                "image/png",
                "AA==",
            ),
            (
                part(url("https://e.example/a.png?x=1"), None, None, true),
                "image",
                "image/png",
                "https://e.example/a.png?x=1",
            ),
        ] {
            assert_eq!(described(&part), (kind, Some(media_type.to_owned()), data.to_owned()));
        }
        let unknown = part(url("https://e.example/a"), None, None, true);
        assert!(matches!(portable(&unknown), Cow::Borrowed(_)));
    }
}
