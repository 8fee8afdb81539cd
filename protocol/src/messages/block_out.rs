//! Writes content blocks of the messages protocol.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::block_in::TEXT;
use crate::cache_marks;
use crate::calls::{FAILED, NOTHING, arguments};
use crate::conversation::{
    Conversation, Input, Media, MediaSource, Part, PartKind, Protocol, Thought, ToolCall, ToolResult,
};
use crate::members::{RequestWriter, object};
use crate::{media, proof};

/// Media type of documents that aren't text.
const FILE: &str = "application/pdf";

/// The blocks of an answer of this protocol, in the form its provider wrote.
pub(super) fn as_they_were(parts: &[Part]) -> Vec<Value> {
    let conversation = Conversation { source: Protocol::Messages, ..Conversation::default() };
    let mut writer = RequestWriter::new(&conversation, Protocol::Messages);
    parts.iter().filter_map(|part| write(part, &mut writer)).collect()
}

/// Writes a block; `None`: it is empty or can't be expressed.
pub(super) fn write(part: &Part, writer: &mut RequestWriter<'_>) -> Option<Value> {
    let part = &*if writer.is_same() { Cow::Borrowed(part) } else { media::portable(part) };
    if !writer.is_same() {
        media::lose_inexpressible(&part.kind, writer);
    }
    let members = match &part.kind {
        // A block of another kind, which goes back unchanged.
        PartKind::Text(_) if writer.is_same() && writer.keeps(&part.at, "type") => Some(Map::new()),
        // Providers reject empty or whitespace-only text.
        PartKind::Text(text) if !text.trim().is_empty() || writer.is_same() => Some(self::text(text)),
        // A refusal is the model's text.
        PartKind::Refusal(text) if !text.trim().is_empty() => Some(self::text(text)),
        PartKind::Text(_) | PartKind::Refusal(_) => {
            writer.lose_cache(part.cache.as_ref());
            return None;
        }
        PartKind::Image(image) => source(image, &part.at, &media::PICTURES, writer).map(|source| {
            if let Some(detail) = image.detail.as_ref().filter(|detail| detail.value != "auto") {
                writer.lose(detail.at.clone());
            }
            object([("type", "image".into()), ("source", source.into())])
        }),
        PartKind::File(file) => document(file, &part.at, writer),
        PartKind::Call(call) => Some(tool_use(call)),
        PartKind::Result(result) => Some(tool_result(result, part, writer)),
        PartKind::Thought(thought) if writer.is_same() => self::thought(thought, true),
        PartKind::Thought(thought) => proven(thought, writer),
        PartKind::Other(value) if writer.is_same() => return Some(value.clone()),
        PartKind::Audio(_) | PartKind::Other(_) => None,
    };
    let Some(mut members) = members else {
        writer.lose(part.at.clone());
        return None;
    };
    match &part.cache {
        // A thought can't carry a cache marker.
        Some(cache) if !matches!(part.kind, PartKind::Thought(_)) || writer.is_same() => {
            members.insert("cache_control".to_owned(), cache_marks::control(cache));
        }
        cache => writer.lose_cache(cache.as_ref()),
    }
    writer.complete(&mut members, &part.at);
    Some(members.into())
}

/// A text block.
pub(super) fn text(text: &str) -> Map<String, Value> {
    object([("type", "text".into()), ("text", text.into())])
}

/// A call as a block.
pub(super) fn tool_use(call: &ToolCall) -> Map<String, Value> {
    let input = match &call.input {
        Input::Json(text) => arguments(text),
        Input::Text(text) => object([("input", text.as_str().into())]),
    };
    object([
        ("type", "tool_use".into()),
        ("id", call.id.as_str().into()),
        ("name", call.name.as_str().into()),
        ("input", input.into()),
    ])
}

/// A thought as a block; `None`: without its proof, providers reject it. `unproven`: write it anyway.
pub(super) fn thought(thought: &Thought, unproven: bool) -> Option<Map<String, Value>> {
    if thought.redacted {
        let data = thought.signature.as_deref()?;
        return Some(object([("type", "redacted_thinking".into()), ("data", data.into())]));
    }
    if thought.signature.is_none() && !unproven {
        return None;
    }
    let signature = thought.signature.as_deref().unwrap_or_default();
    let text = thought.text.join("\n\n");
    Some(object([("type", "thinking".into()), ("thinking", text.into()), ("signature", signature.into())]))
}

/// A thought from a client of another protocol; `None`: it has no proof from a provider of this one.
fn proven(known: &Thought, writer: &RequestWriter<'_>) -> Option<Map<String, Value>> {
    let proof = writer.proof(known.signature.as_ref())?;
    // A summary of unknown origin comes from another kind of provider.
    if known.summary && !known.signature.as_deref().is_some_and(proof::is_marked) {
        return None;
    }
    thought(&Thought { signature: Some(proof.to_owned()), ..known.clone() }, false)
}

fn tool_result(result: &ToolResult, part: &Part, writer: &mut RequestWriter<'_>) -> Map<String, Value> {
    let mut members =
        object([("type", "tool_result".into()), ("tool_use_id", result.call_id.as_str().into())]);
    let parts: Vec<&Part> = result.parts.iter().collect();
    if let Some(content) = content(&parts, &format!("{}/content", part.at), writer) {
        members.insert("content".to_owned(), content);
    }
    if result.failed.is_some() {
        members.insert("is_error".to_owned(), true.into());
        // Providers reject an empty error.
        if !writer.is_same() {
            members.entry("content").or_insert_with(|| FAILED.into());
        }
    }
    // Whitespace is a result even though providers reject it: the model must not think that the tool returned nothing.
    let is_white = |part: &&Part| matches!(&part.kind, PartKind::Text(text) if !text.is_empty());
    if !writer.is_same() && parts.iter().any(is_white) {
        members.entry("content").or_insert_with(|| NOTHING.into());
    }
    members
}

/// Writes content; `None`: nothing remains of it. `at`: its place.
pub(super) fn content(parts: &[&Part], at: &str, writer: &mut RequestWriter<'_>) -> Option<Value> {
    if let [only] = parts
        && let PartKind::Text(text) = &only.kind
        && only.cache.is_none()
        && (only.at == at || !writer.is_same())
    {
        return (!text.trim().is_empty() || writer.is_same()).then(|| text.as_str().into());
    }
    let blocks: Vec<Value> = parts.iter().filter_map(|part| write(part, writer)).collect();
    (!blocks.is_empty()).then(|| blocks.into())
}

fn document(file: &Media, at: &str, writer: &mut RequestWriter<'_>) -> Option<Map<String, Value>> {
    let source = match media::plain_text(file) {
        Some(text) => {
            let media_type = file.media_type.as_deref().filter(|_| writer.is_same()).unwrap_or(TEXT);
            let mut source =
                object([("type", "text".into()), ("media_type", media_type.into()), ("data", text.into())]);
            writer.complete(&mut source, &format!("{at}/source"));
            source
        }
        None => self::source(file, at, &[FILE], writer)?,
    };
    let mut members = object([("type", "document".into()), ("source", source.into())]);
    if let Some(name) = &file.name {
        members.insert("title".to_owned(), name.value.as_str().into());
    }
    Some(members)
}

/// `kinds`: the media types that providers accept. The first is the default.
fn source(
    media: &Media,
    at: &str,
    kinds: &[&str],
    writer: &mut RequestWriter<'_>,
) -> Option<Map<String, Value>> {
    let mut source = match &media.source {
        MediaSource::Inline(data) => {
            let media_type = media.media_type.as_deref().or(kinds.first().copied()).unwrap_or_default();
            if !writer.is_same() && !kinds.contains(&media_type) {
                return None;
            }
            object([
                ("type", "base64".into()),
                ("media_type", media_type.into()),
                ("data", data.as_str().into()),
            ])
        }
        MediaSource::Url(_)
            if !writer.is_same()
                && media.media_type.as_deref().is_some_and(|kind| !kinds.contains(&kind)) =>
        {
            return None;
        }
        // Providers only fetch from the web.
        MediaSource::Url(url) if !writer.is_same() && !media::is_web(url) => return None,
        MediaSource::Url(url) => object([("type", "url".into()), ("url", url.as_str().into())]),
        // Another provider's file id is meaningless here.
        MediaSource::FileId(_) if !writer.is_same() => return None,
        MediaSource::FileId(id) => object([("type", "file".into()), ("file_id", id.as_str().into())]),
    };
    writer.complete(&mut source, &format!("{at}/source"));
    Some(source)
}
