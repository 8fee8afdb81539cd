//! Reads the messages of the chat protocol.

use serde_json::Value;

use super::{functions, reasoning, tools};
use crate::MalformedDocument;
use crate::cache_marks;
use crate::conversation::{Located, Media, MediaSource, Part, PartKind, Role, ToolResult, Turn};
use crate::media;
use crate::members::{Members, RemainingFields};

/// Reads the messages of a request.
pub(super) fn turns(
    messages: Vec<Value>,
    rest: &mut RemainingFields,
) -> Result<Vec<Turn>, MalformedDocument> {
    let mut turns: Vec<Turn> = Vec::with_capacity(messages.len());
    let mut calls = functions::FunctionCalls::default();
    for (index, message) in messages.into_iter().enumerate() {
        let at = format!("/messages/{index}");
        let turn = Members::read(message, at.clone())
            .map_err(|_| MalformedDocument(format!("{at} is not an object")))
            .and_then(|message| turn(message, &mut calls, rest))?;
        match turns.last_mut() {
            // Consecutive results form one turn, as in every other protocol.
            Some(last) if last.role == Role::Tool && turn.role == Role::Tool => last.parts.extend(turn.parts),
            _ => turns.push(turn),
        }
    }
    Ok(turns)
}

fn turn(
    mut message: Members,
    calls: &mut functions::FunctionCalls,
    rest: &mut RemainingFields,
) -> Result<Turn, MalformedDocument> {
    let at = message.at().to_owned();
    let role = message.text("role");
    if role.as_deref() == Some(functions::ROLE) {
        let call_id = calls.answered_by(&message, rest)?;
        let parts = vec![result_of(call_id, message, rest)];
        return Ok(Turn { at: at.into(), role: Role::Tool, name: None, parts });
    }
    let role = match role.as_deref() {
        Some("system") => Role::System,
        Some("developer") => Role::Developer,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        _ => return Err(MalformedDocument(format!("{at}/role is not a role of this protocol"))),
    };
    if role == Role::Tool {
        let parts = vec![result(message, rest)];
        return Ok(Turn { at: at.into(), role, name: None, parts });
    }
    let name = message.given("name", Members::text);
    let mut parts = parts(&mut message, rest);
    parts.extend(calls.read(&mut message, rest));
    // Text that repeats the reasoning details.
    rest.keep(message, &reasoning::SHOWN);
    Ok(Turn { at: at.into(), role, name, parts })
}

fn result(mut message: Members, rest: &mut RemainingFields) -> Part {
    // An empty id doesn't count, and stays in place.
    let call_id = message.take("tool_call_id", |id| match id {
        Value::String(id) if !id.is_empty() => Ok(id),
        id => Err(id),
    });
    result_of(call_id.unwrap_or_default(), message, rest)
}

/// The result of a call.
fn result_of(call_id: String, mut message: Members, rest: &mut RemainingFields) -> Part {
    let at = message.at().to_owned();
    let mut parts = Vec::new();
    content(&mut message, rest, &mut parts);
    // The tool's name is known from the call.
    rest.keep(message, &["name"]);
    let result = ToolResult { call_id, name: None, parts, failed: None, custom: false };
    Part { at: at.into(), kind: PartKind::Result(result), cache: None }
}

/// Takes the parts of a message: thoughts, content, refusal, calls.
pub(super) fn parts(message: &mut Members, rest: &mut RemainingFields) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut spans = reasoning::read(message, rest, &mut parts);
    let (mut calls, mut ids) = (Vec::new(), Vec::new());
    for (index, call) in message.list("tool_calls").into_iter().flatten().enumerate() {
        let at = format!("{}/tool_calls/{index}", message.at());
        let kind = match tools::read_call(call, &at, rest) {
            Ok(call) => PartKind::Call(call),
            Err(other) => PartKind::Other(other),
        };
        ids.push(if let PartKind::Call(call) = &kind { call.id.clone() } else { String::new() });
        calls.push(Part { at: at.into(), kind, cache: None });
    }
    let signatures = reasoning::signatures(&mut parts, &ids, rest);
    spans.truncate(parts.len());
    for (part, signature) in calls.iter_mut().zip(signatures) {
        if let PartKind::Call(call) = &mut part.kind {
            call.signature = signature.or(call.signature.take());
        }
    }
    content(message, rest, &mut parts);
    if let Some(refusal) = message.given("refusal", Members::text) {
        parts.push(Part { at: refusal.at, kind: PartKind::Refusal(refusal.value), cache: None });
    }
    parts.append(&mut calls);
    reasoning::put_between(parts, &spans)
}

/// Takes the content: a string, or a list of parts.
fn content(message: &mut Members, rest: &mut RemainingFields, parts: &mut Vec<Part>) {
    if let Some(text) = message.given("content", Members::text) {
        parts.push(Part { at: text.at, kind: PartKind::Text(text.value), cache: None });
        return;
    }
    for (index, part) in message.list("content").into_iter().flatten().enumerate() {
        let at = format!("{}/content/{index}", message.at());
        parts.push(match Members::read(part, at.clone()) {
            Ok(part) => content_part(part, rest),
            Err(other) => Part { at: at.into(), kind: PartKind::Other(other), cache: None },
        });
    }
}

fn content_part(mut part: Members, rest: &mut RemainingFields) -> Part {
    let at = part.at().to_owned();
    let kind = match part.peek("type").as_str() {
        Some("text") => part.text("text").map(PartKind::Text),
        Some("refusal") => part.text("refusal").map(PartKind::Refusal),
        Some("image_url") => image(&mut part, rest).map(PartKind::Image),
        Some("input_audio") => audio(&mut part, rest).map(PartKind::Audio),
        Some("file") => file(&mut part, rest).map(PartKind::File),
        _ => None,
    };
    let Some(kind) = kind else {
        return Part { at: at.into(), kind: PartKind::Other(part.into_value()), cache: None };
    };
    part.text("type");
    let cache = cache_marks::read(&mut part);
    rest.keep(part, &[]);
    Part { at: at.into(), kind, cache }
}

fn image(part: &mut Members, rest: &mut RemainingFields) -> Option<Media> {
    if !part.peek("image_url")["url"].is_string() {
        return None;
    }
    let mut image = part.members("image_url")?;
    let (source, media_type) = media::of_url(image.text("url")?);
    let detail = image.given("detail", Members::text);
    rest.keep(image, &[]);
    Some(Media { source, media_type, name: None, detail })
}

fn audio(part: &mut Members, rest: &mut RemainingFields) -> Option<Media> {
    let given = part.peek("input_audio");
    if !given["data"].is_string() || !given["format"].is_string() {
        return None;
    }
    let mut audio = part.members("input_audio")?;
    let source = MediaSource::Inline(audio.text("data")?);
    let media_type = Some(media::audio_type(&audio.text("format")?));
    rest.keep(audio, &[]);
    Some(Media { source, media_type, name: None, detail: None })
}

fn file(part: &mut Members, rest: &mut RemainingFields) -> Option<Media> {
    let given = part.peek("file");
    let is_inline = given["file_data"].is_string();
    if !is_inline && !given["file_id"].is_string() {
        return None;
    }
    let mut file = part.members("file")?;
    let (source, media_type) = if is_inline {
        match media::of_url(file.text("file_data")?) {
            // Bare base64.
            (MediaSource::Url(data), None) if !data.contains(':') => (MediaSource::Inline(data), None),
            read => read,
        }
    } else {
        (MediaSource::FileId(file.text("file_id")?), None)
    };
    let name: Option<Located<String>> = file.given("filename", Members::text);
    rest.keep(file, &[]);
    Some(Media { source, media_type, name, detail: None })
}
