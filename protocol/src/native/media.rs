//! Images, audio and files: inline data, or files at a URL.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};

use super::signature::decoded;
use crate::conversation::{Media, MediaSource, PartKind};
use crate::media;
use crate::members::{Members, RemainingFields, object};

/// Reads `inlineData` or `fileData` of a part; `None`: they are malformed.
pub(super) fn medium_in(part: &mut Members, rest: &mut RemainingFields) -> Option<PartKind> {
    let (name, source) = match part.peek("inlineData") {
        Value::Null => ("fileData", "fileUri"),
        _ => ("inlineData", "data"),
    };
    let given = |member: &str, other: &str| {
        let object = part.peek(name);
        if object[member].is_null() { &object[other] } else { &object[member] }
    };
    let (media_type, has_source) = (given("mimeType", "mime_type"), given(source, "file_uri").is_string());
    if !has_source || !(media_type.is_string() || media_type.is_null() && name == "fileData") {
        return None;
    }
    let mut data = part.members(name)?;
    data.respell();
    let media_type = data.text("mimeType");
    let text = data.text(source)?;
    let source = match (source, standard(&text)) {
        ("fileUri", _) => MediaSource::Url(text),
        (_, Some(standard)) => {
            // The client gets its own alphabet back.
            rest.keep_own(text.into(), data.place("data"));
            MediaSource::Inline(standard)
        }
        (_, None) => MediaSource::Inline(text),
    };
    rest.keep(data, &[]);
    let media = Media { source, name: None, detail: None, media_type };
    Some(match media.media_type.as_deref().and_then(|kind| kind.split_once('/')) {
        Some(("image", _)) => PartKind::Image(media),
        Some(("audio", _)) => PartKind::Audio(media),
        _ => PartKind::File(media),
    })
}

/// Base64 in the alphabet of the other protocols, with padding; `None`: it already is, or isn't base64.
fn standard(data: &str) -> Option<String> {
    let is_standard = data.len().is_multiple_of(4) && !data.bytes().any(|byte| matches!(byte, b'-' | b'_'));
    if is_standard {
        return None;
    }
    // Text that mixes both alphabets matches neither.
    decoded(&data.replace('-', "+").replace('_', "/")).map(|bytes| BASE64_STANDARD.encode(bytes))
}

/// A media part; `None`: only its provider has the file. `assumed`: the media type if it is unknown.
pub(super) fn medium_out(media: Media, assumed: &str) -> Option<Map<String, Value>> {
    Some(match media.source {
        MediaSource::Inline(data) => {
            let media_type = media.media_type.as_deref().unwrap_or(assumed);
            object([("inlineData", json!({ "mimeType": media_type, "data": data }))])
        }
        MediaSource::Url(uri) if !assumed.is_empty() && media::is_data(&uri) => return None,
        MediaSource::Url(uri) => {
            let mut data = object([("fileUri", json!(uri))]);
            // Some providers insist on the type.
            let media_type = media.media_type.or_else(|| (!assumed.is_empty()).then(|| assumed.to_owned()));
            data.extend(media_type.map(|media_type| ("mimeType".to_owned(), json!(media_type))));
            object([("fileData", Value::Object(data))])
        }
        MediaSource::FileId(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64url_data_is_converted_to_standard_base64() {
        for (given, expected) in [("-_8", Some("+/8=")), ("+/8=", None), ("AA", Some("AA==")), ("!", None)] {
            assert_eq!(standard(given).as_deref(), expected, "{given}");
        }
    }
}
