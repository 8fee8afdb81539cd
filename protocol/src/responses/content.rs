//! Parts of messages and results: text, refusals, images, audio and files.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::cache_marks;
use crate::conversation::{Media, MediaSource, Part, PartKind, Role};
use crate::media;
use crate::members::{self, Members, RemainingFields, RequestWriter};

/// Fields of parts that mean nothing to another protocol.
const OWN: &[&str] = &["type", "logprobs"];

/// Reads the parts at a place: a string or a non-empty array. `None`: it is neither, and stays in place.
pub(super) fn parts_in(
    members: &mut Members,
    name: &str,
    role: Role,
    rest: &mut RemainingFields,
) -> Option<Vec<Part>> {
    let at = members.place(name);
    if let Some(text) = members.text(name) {
        return Some(vec![part(at, PartKind::Text(text))]);
    }
    let parts = members.list(name)?;
    Some(
        parts
            .into_iter()
            .enumerate()
            .map(|(index, value)| part_in(value, format!("{at}/{index}"), role, rest))
            .collect(),
    )
}

pub(super) fn part(at: String, kind: PartKind) -> Part {
    Part { at: at.into(), kind, cache: None }
}

/// The kind of text parts in a turn of this role.
fn text_kind(role: Role) -> &'static str {
    if role == Role::Assistant { "output_text" } else { "input_text" }
}

fn part_in(value: Value, at: String, role: Role, rest: &mut RemainingFields) -> Part {
    let mut members = match Members::read(value, &*at) {
        Ok(members) => members,
        Err(value) => return part(at, PartKind::Other(value)),
    };
    let kind = match members.peek("type").as_str() {
        Some("input_text" | "output_text") => members.text("text").map(PartKind::Text),
        Some("refusal") => members.text("refusal").map(PartKind::Refusal),
        Some("input_image") => image_in(&mut members).map(PartKind::Image),
        Some("input_file") => file_in(&mut members, rest).map(PartKind::File),
        Some("input_audio") => audio_in(&mut members, rest).map(PartKind::Audio),
        _ => None,
    };
    let Some(kind) = kind else { return part(at, PartKind::Other(members.into_value())) };
    let usual = type_of(&kind, role);
    members.word("type", usual);
    let cache = cache_marks::read_breakpoint(&mut members);
    rest.keep(members, OWN);
    Part { at: at.into(), kind, cache }
}

/// The `type` of a part.
fn type_of(kind: &PartKind, role: Role) -> &'static str {
    match kind {
        PartKind::Refusal(_) => "refusal",
        PartKind::Image(_) => "input_image",
        PartKind::Audio(_) => "input_audio",
        PartKind::File(_) => "input_file",
        _ => text_kind(role),
    }
}

fn image_in(members: &mut Members) -> Option<Media> {
    let source = match members.text("image_url") {
        Some(url) => media::of_url(url),
        None => (MediaSource::FileId(members.text("file_id")?), None),
    };
    Some(Media { detail: members.given("detail", Members::text), ..medium(source) })
}

fn file_in(members: &mut Members, rest: &mut RemainingFields) -> Option<Media> {
    let mut odd = None;
    // The data is a URL or bare base64.
    let data = members.take("file_data", |value| match value {
        Value::String(text) => match media::of_url(text) {
            (MediaSource::Url(text), _) if media::is_data(&text) => match media::lenient(&text) {
                Some((kind, data)) => {
                    let read = (MediaSource::Inline(data.to_owned()), kind.map(str::to_owned));
                    odd = Some(text);
                    Ok(read)
                }
                None => Err(text.into()),
            },
            (MediaSource::Url(text), _) => Ok((MediaSource::Inline(text), None)),
            inline => Ok(inline),
        },
        other => Err(other),
    });
    // It goes back as the client wrote it.
    if let Some(odd) = odd {
        rest.keep_own(odd.into(), members.place("file_data"));
    }
    let source = if let Some(data) = data {
        data
    } else if let Some(url) = members.text("file_url") {
        (MediaSource::Url(url), None)
    } else {
        (MediaSource::FileId(members.text("file_id")?), None)
    };
    Some(Media { name: members.given("filename", Members::text), ..medium(source) })
}

fn audio_in(members: &mut Members, rest: &mut RemainingFields) -> Option<Media> {
    let whole = |audio: &Value| audio["data"].is_string() && audio["format"].is_string();
    if !whole(members.peek("input_audio")) {
        return None;
    }
    let mut audio = members.members("input_audio")?;
    let (data, format) = (audio.text("data")?, audio.text("format")?);
    rest.keep(audio, &[]);
    Some(medium((MediaSource::Inline(data), Some(media::audio_type(&format)))))
}

fn medium((source, media_type): (MediaSource, Option<String>)) -> Media {
    Media { source, media_type, name: None, detail: None }
}

/// Writes parts as the content of a message or the output of a tool: a string if the client wrote one, or, for a client
/// of another protocol, if there is only one text. `None`: nothing remains of them.
pub(super) fn parts_out(parts: &[&Part], role: Role, writer: &mut RequestWriter<'_>) -> Option<Value> {
    if let [part] = parts
        && let PartKind::Text(text) = &part.kind
        && (!writer.is_same() || !is_element(&part.at))
        && !cache_marks::is_breakpoint(part.cache.as_ref())
    {
        writer.lose_cache(part.cache.as_ref());
        return Some(json!(text));
    }
    let parts: Vec<Value> = parts.iter().filter_map(|part| part_out(part, role, writer)).collect();
    (!parts.is_empty()).then_some(Value::Array(parts))
}

/// Whether a place is inside an array.
fn is_element(at: &str) -> bool {
    at.rsplit('/').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Writes a part; reports what can't be expressed.
fn part_out(part: &Part, role: Role, writer: &mut RequestWriter<'_>) -> Option<Value> {
    let part = &*if writer.is_same() { Cow::Borrowed(part) } else { media::portable(part) };
    // Only for audio: for other media, the code below reports more precisely.
    if !writer.is_same() && matches!(part.kind, PartKind::Audio(_)) {
        media::lose_inexpressible(&part.kind, writer);
    }
    let mut object = members::object([("type", json!(type_of(&part.kind, role)))]);
    cache_marks::write(part.cache.as_ref(), &mut object, writer);
    match &part.kind {
        PartKind::Text(text) => drop(object.insert("text".to_owned(), json!(text))),
        PartKind::Refusal(text) if role == Role::Assistant || writer.is_same() => {
            object.insert("refusal".to_owned(), json!(text));
        }
        // Only an assistant can refuse.
        PartKind::Refusal(text) => {
            return Some(json!({ "type": "input_text", "text": text }));
        }
        // Providers only fetch from the web, and don't read videos.
        PartKind::File(medium) if !writer.is_same() && is_unreadable(medium) => {
            writer.lose(part.at.clone());
            return None;
        }
        PartKind::Image(image) if !writer.is_same() && !media::is_picture(image) => {
            writer.lose(part.at.clone());
            return None;
        }
        PartKind::Image(image) => image_out(image, &mut object, writer),
        PartKind::File(file) => file_out(file, &mut object, writer),
        PartKind::Audio(audio) => {
            let MediaSource::Inline(data) = &audio.source else {
                writer.lose(part.at.clone());
                return None;
            };
            let media_type = audio.media_type.as_deref().unwrap_or("audio/wav");
            let format = match media_type.strip_prefix("audio/") {
                Some(format) if writer.is_same() => format,
                _ => media::audio_form(media_type).unwrap_or(media_type),
            };
            let place = format!("{}/input_audio", part.at);
            let audio = members::object([("data", json!(data)), ("format", json!(format))]);
            writer.set(&mut object, "input_audio", audio, &place);
        }
        PartKind::Other(value) if writer.is_same() => return Some(value.clone()),
        _ => {
            writer.lose(part.at.clone());
            return None;
        }
    }
    writer.complete(&mut object, &part.at);
    Some(Value::Object(object))
}

fn is_unreadable(medium: &Media) -> bool {
    match &medium.source {
        MediaSource::Url(url) => !media::is_web(url),
        _ => medium.media_type.as_deref().is_some_and(|kind| kind.starts_with("video/")),
    }
}

fn image_out(image: &Media, object: &mut Map<String, Value>, writer: &mut RequestWriter<'_>) {
    let (name, source) = match (&image.source, media::url(image, "image/png")) {
        (_, Some(url)) => ("image_url", url),
        (MediaSource::FileId(source) | MediaSource::Url(source) | MediaSource::Inline(source), None) => {
            ("file_id", source.clone())
        }
    };
    object.insert(name.to_owned(), source.into());
    if let Some(detail) = &image.detail {
        object.insert("detail".to_owned(), json!(detail.value));
    }
    if let Some(name) = &image.name {
        writer.lose(name.at.clone());
    }
}

fn file_out(file: &Media, object: &mut Map<String, Value>, writer: &mut RequestWriter<'_>) {
    let (name, source) = match &file.source {
        MediaSource::FileId(id) => ("file_id", id.clone()),
        MediaSource::Url(url) => ("file_url", url.clone()),
        MediaSource::Inline(data) => {
            let named = file.media_type.as_ref().and_then(|media_type| media::url(file, media_type));
            ("file_data", named.unwrap_or_else(|| data.clone()))
        }
    };
    object.insert(name.to_owned(), source.into());
    match &file.name {
        Some(name) => drop(object.insert("filename".to_owned(), json!(name.value))),
        // The protocol requires a name next to data.
        None if name == "file_data" && !writer.is_same() => {
            object.insert("filename".to_owned(), json!("file"));
        }
        None => {}
    }
    if let Some(detail) = &file.detail {
        writer.lose(detail.at.clone());
    }
}
