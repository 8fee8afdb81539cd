//! Images, documents, audio and videos: bytes in the request, or an object in S3. Servers fetch no other URL.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::conversation::{Media, MediaSource};

/// A media type, and the corresponding format.
type MediaFormat = (&'static str, &'static str);

const IMAGES: [MediaFormat; 4] =
    [("image/png", "png"), ("image/jpeg", "jpeg"), ("image/gif", "gif"), ("image/webp", "webp")];
const DOCUMENTS: [MediaFormat; 9] = [
    ("application/pdf", "pdf"),
    ("text/csv", "csv"),
    ("application/msword", "doc"),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
    ("application/vnd.ms-excel", "xls"),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
    ("text/html", "html"),
    ("text/markdown", "md"),
    ("text/plain", "txt"),
];
const VIDEOS: [MediaFormat; 8] = [
    ("video/mp4", "mp4"),
    ("video/quicktime", "mov"),
    ("video/webm", "webm"),
    ("video/x-matroska", "mkv"),
    ("video/x-flv", "flv"),
    ("video/mpeg", "mpeg"),
    ("video/x-ms-wmv", "wmv"),
    ("video/3gpp", "three_gp"),
];
const AUDIO: [MediaFormat; 8] = [
    ("audio/mpeg", "mp3"),
    ("audio/wav", "wav"),
    ("audio/x-wav", "wav"),
    ("audio/flac", "flac"),
    ("audio/ogg", "ogg"),
    ("audio/opus", "opus"),
    ("audio/aac", "aac"),
    ("audio/mp4", "m4a"),
];
/// Format of a text of any other type.
const PLAIN: &str = "txt";
/// Maximum length of a document's name, in bytes.
const MAX_NAME_BYTES: usize = 200;
/// Name of a document that has none.
const UNNAMED: &str = "document";

/// An image block; `None`: the protocol can't express it.
pub(super) fn image(media: &Media) -> Option<Value> {
    let format = format(media.media_type.as_deref().unwrap_or("image/png"), &IMAGES)?;
    Some(json!({ "image": { "format": format, "source": source(media)? } }))
}

/// An audio block; `None`: the protocol can't express it.
pub(super) fn audio(media: &Media) -> Option<Value> {
    let format = format(media.media_type.as_deref()?, &AUDIO)?;
    Some(json!({ "audio": { "format": format, "source": source(media)? } }))
}

/// A video block; `None`: it isn't a video, or the protocol can't express it.
pub(super) fn video(media: &Media) -> Option<Value> {
    let format = format(media.media_type.as_deref()?, &VIDEOS)?;
    Some(json!({ "video": { "format": format, "source": source(media)? } }))
}

/// A document block, and whether its name is another one than the client's; `None`: the protocol can't express it.
pub(super) fn document(media: &Media, names: &mut DocumentNames) -> Option<(Value, bool)> {
    let media_type = media.media_type.as_deref().unwrap_or("application/pdf");
    let is_text = media_type.starts_with("text/") || media_type == "application/json";
    let format = format(media_type, &DOCUMENTS).or_else(|| is_text.then_some(PLAIN))?;
    let source = source(media)?;
    let given = media.name.as_ref().map(|name| name.value.as_str());
    let (name, is_renamed) = names.add(given, format);
    Some((json!({ "document": { "format": format, "name": name, "source": source } }), is_renamed))
}

fn format(media_type: &str, known: &[MediaFormat]) -> Option<&'static str> {
    known.iter().find(|(known, _)| *known == media_type).map(|(_, format)| *format)
}

/// The media type of an image in an answer.
pub(super) fn image_type(format: &str) -> Option<&'static str> {
    IMAGES.iter().find(|(_, known)| *known == format).map(|(media_type, _)| *media_type)
}

fn source(media: &Media) -> Option<Value> {
    match &media.source {
        MediaSource::Inline(data) if !data.is_empty() => Some(json!({ "bytes": data })),
        MediaSource::Url(url) if url.starts_with("s3://") => Some(json!({ "s3Location": { "uri": url } })),
        MediaSource::Inline(_) | MediaSource::Url(_) | MediaSource::FileId(_) => None,
    }
}

/// The names of a request's documents in lowercase: they differ from each other.
#[derive(Debug, Default)]
pub(super) struct DocumentNames(HashSet<String>);

impl DocumentNames {
    /// A name that servers accept, and whether it differs from the given one in more than the extension, which the format
    /// states.
    fn add(&mut self, given: Option<&str>, format: &str) -> (String, bool) {
        let stem = given.map(|given| match given.rsplit_once('.') {
            Some((stem, extension)) if extension.eq_ignore_ascii_case(format) => stem,
            _ => given,
        });
        let clean = clean_name(stem.unwrap_or_default());
        let clean = if clean.is_empty() { UNNAMED } else { &clean };
        let mut name = clean.to_owned();
        let mut number = 2_u64;
        while self.0.contains(&name.to_ascii_lowercase()) {
            let suffix = format!(" {number}");
            let most = clean.len().min(MAX_NAME_BYTES - suffix.len());
            name = format!("{}{suffix}", clean[..most].trim_end());
            number += 1;
        }
        self.0.insert(name.to_ascii_lowercase());
        let is_renamed = stem.is_some_and(|stem| stem != name);
        (name, is_renamed)
    }
}

/// A name of letters, digits, hyphens, parentheses, brackets, and single spaces.
fn clean_name(name: &str) -> String {
    let mut clean = String::new();
    for letter in name.chars() {
        if clean.len() == MAX_NAME_BYTES {
            break;
        }
        match letter {
            _ if letter.is_whitespace() => {
                if !clean.is_empty() && !clean.ends_with(' ') {
                    clean.push(' ');
                }
            }
            '(' | ')' | '[' | ']' | '-' => clean.push(letter),
            _ if letter.is_ascii_alphanumeric() => clean.push(letter),
            _ => clean.push('-'),
        }
    }
    clean.truncate(clean.trim_end().len());
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_names_are_sanitized_and_unique() {
        let mut names = DocumentNames::default();
        let long = "n".repeat(300);
        for (given, expected, is_renamed) in [
            (Some("report.pdf"), "report", false),
            (Some("Report.PDF"), "Report 2", true),
            (Some("a_b.c"), "a-b-c", true),
            (Some(" plan\n (final) [1] "), "plan (final) [1]", true),
            (Some("\u{fc}"), "-", true),
            (Some(" "), "document", true),
            (None, "document 2", false),
            (Some(&long), &long[..200], true),
            (Some(&long), &format!("{} 2", &long[..198]), true),
        ] {
            assert_eq!(names.add(given, "pdf"), (expected.to_owned(), is_renamed), "{given:?}");
        }
    }
}
