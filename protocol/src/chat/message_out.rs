//! Writes the messages of the chat protocol.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::{functions, reasoning, tools};
use crate::cache_marks;
use crate::calls::NOTHING;
use crate::capabilities::Roles;
use crate::conversation::{
    Conversation, Media, MediaSource, Part, PartKind, Protocol, Role, ToolCall, ToolResult, Turn,
};
use crate::media;
use crate::members::{RequestWriter, object};

/// Media type of an image without one.
const ASSUMED_IMAGE: &str = "image/png";
/// Media type of a document without one.
const ASSUMED_FILE: &str = "application/pdf";

/// Writes all turns.
pub(super) fn messages(conversation: &Conversation, writer: &mut RequestWriter<'_>) -> Vec<Value> {
    let mut messages = Vec::with_capacity(conversation.turns.len());
    let is_merged = writer.capabilities().roles == Roles::SystemFirst && !writer.is_same();
    if is_merged {
        messages.extend(system_message(conversation, writer));
    }
    for turn in &conversation.turns {
        if is_merged && is_instruction(turn) {
            continue;
        }
        if turn.role == Role::Tool {
            results(turn, writer, &mut messages);
        } else {
            messages.extend(message(turn, writer));
        }
    }
    if !writer.is_same() && !writer.capabilities().user_after_tool {
        answer_results(&mut messages);
    }
    messages
}

/// Inserts an answer between results and the user's next message, for servers that expect the model's turn there.
fn answer_results(messages: &mut Vec<Value>) {
    let mut after_result = false;
    for message in std::mem::take(messages) {
        if after_result && message["role"] == "user" {
            messages.push(json!({ "role": "assistant", "content": NOTHING }));
        }
        after_result = message["role"] == "tool";
        messages.push(message);
    }
}

fn is_instruction(turn: &Turn) -> bool {
    matches!(turn.role, Role::System | Role::Developer)
}

/// All instructions as one message, for servers that accept only one. Reports instructions that came later, and parts
/// that aren't text.
fn system_message(conversation: &Conversation, writer: &mut RequestWriter<'_>) -> Option<Value> {
    let (mut texts, mut is_after_turn) = (Vec::new(), false);
    for turn in &conversation.turns {
        if !is_instruction(turn) {
            is_after_turn = true;
            continue;
        }
        if is_after_turn {
            writer.lose(format!("{}/role", turn.at));
        }
        if let Some(name) = &turn.name {
            writer.lose(name.at.clone());
        }
        for part in &turn.parts {
            match &part.kind {
                PartKind::Text(text) | PartKind::Refusal(text) => {
                    lose_cache(part, writer);
                    if !text.is_empty() {
                        texts.push(text.as_str());
                    }
                }
                _ => writer.lose(part.at.clone()),
            }
        }
    }
    (!texts.is_empty()).then(|| json!({ "role": "system", "content": texts.join("\n\n") }))
}

/// The message of an answer of this protocol, in the form its provider wrote.
pub(super) fn as_it_was(parts: Vec<Part>, at: String) -> Value {
    let conversation = Conversation { source: Protocol::Chat, ..Conversation::default() };
    let turn = Turn { at: at.into(), role: Role::Assistant, name: None, parts };
    message(&turn, &mut RequestWriter::new(&conversation, Protocol::Chat)).unwrap_or_default()
}

fn message(turn: &Turn, writer: &mut RequestWriter<'_>) -> Option<Value> {
    let role = match turn.role {
        Role::System => "system",
        Role::Developer => "developer",
        Role::User | Role::Tool => "user",
        Role::Assistant => "assistant",
    };
    let mut message = object([("role", role.into())]);
    tools::insert(&mut message, "name", turn.name.as_ref().map(|name| name.value.as_str()));
    let before = message.len();
    reasoning::write(&turn.parts, &turn.at, writer, &mut message);
    let thinks = message.len() > before;
    let (mut content, mut refusals, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for part in &turn.parts {
        let is_at = |member: &str| writer.is_same() && part.at.contains(member);
        match &part.kind {
            PartKind::Thought(_) => {}
            PartKind::Other(_) if is_at("/reasoning_details/") => {}
            PartKind::Other(value) if is_at("/tool_calls/") => calls.push(value.clone()),
            PartKind::Call(called) if is_at(functions::FUNCTION_CALL) => {
                let mut call = functions::write_call(called);
                writer.complete(&mut call, &part.at);
                message.insert(functions::FUNCTION_CALL.to_owned(), call.into());
            }
            PartKind::Call(called) => {
                lose_cache(part, writer);
                calls.push(call(called, &part.at, writer));
            }
            PartKind::Refusal(text) if !is_at("/content/") => refusals.push(text.as_str()),
            _ => content.push(part),
        }
    }
    match content_of(&content, &turn.at, writer) {
        Some(content) => message.insert("content".to_owned(), content),
        None if writer.is_same() => None,
        // Providers require content or calls along with a refusal, or the refusal as content.
        None if calls.is_empty() && !refusals.is_empty() => {
            let refusal = std::mem::take(&mut refusals).concat();
            message.insert("content".to_owned(), json!([{ "type": "refusal", "refusal": refusal }]))
        }
        None if !calls.is_empty() => message.insert("content".to_owned(), Value::Null),
        None if thinks || (turn.role == Role::Assistant && turn.parts.is_empty()) => {
            message.insert("content".to_owned(), "".into())
        }
        // An empty message carries no information, and some providers reject it.
        None => return None,
    };
    if !refusals.is_empty() {
        message.insert("refusal".to_owned(), refusals.concat().into());
    }
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), calls.into());
    }
    writer.complete(&mut message, &turn.at);
    Some(message.into())
}

fn call(call: &ToolCall, at: &str, writer: &mut RequestWriter<'_>) -> Value {
    let mut value = tools::write_call(call);
    for kind in ["function", "custom"] {
        if let Some(Value::Object(callee)) = value.get_mut(kind) {
            writer.complete(callee, &format!("{at}/{kind}"));
        }
    }
    writer.complete(&mut value, at);
    value.into()
}

/// One message per result. Images and files follow in a user message: tool messages here contain only text.
fn results(turn: &Turn, writer: &mut RequestWriter<'_>, messages: &mut Vec<Value>) {
    let mut media = Vec::new();
    for part in &turn.parts {
        let PartKind::Result(result) = &part.kind else {
            writer.lose(part.at.clone());
            continue;
        };
        lose_cache(part, writer);
        if let Some(at) = &result.failed {
            writer.lose(at.clone());
        }
        let texts: Vec<&Part> = if writer.is_same() {
            result.parts.iter().collect()
        } else {
            let (texts, others) =
                result.parts.iter().partition(|part| matches!(part.kind, PartKind::Text(_)));
            media.extend::<Vec<&Part>>(others);
            texts
        };
        messages.push(self::result(result, &texts, &part.at, writer));
    }
    if let Some(Value::Array(content)) = content_of(&media, "", writer) {
        messages.push(json!({ "role": "user", "content": content }));
    }
}

fn result(result: &ToolResult, parts: &[&Part], at: &str, writer: &mut RequestWriter<'_>) -> Value {
    let mut message = object([("role", "tool".into())]);
    let is_of_function = writer.keeps(at, "role");
    if !(writer.is_same() && result.call_id.is_empty() || is_of_function) {
        message.insert("tool_call_id".to_owned(), result.call_id.as_str().into());
    }
    match content_of(parts, at, writer) {
        Some(content) => message.insert("content".to_owned(), content),
        None if writer.is_same() => None,
        None => message.insert("content".to_owned(), "".into()),
    };
    writer.complete(&mut message, at);
    message.into()
}

/// Writes content; `None`: nothing remains of it. `at`: the message's place.
fn content_of(parts: &[&Part], at: &str, writer: &mut RequestWriter<'_>) -> Option<Value> {
    if let [only] = parts
        && let PartKind::Text(text) = &only.kind
        && (!writer.is_same() || only.at.strip_prefix(at) == Some("/content"))
        && !cache_marks::is_breakpoint(only.cache.as_ref())
    {
        lose_cache(only, writer);
        return Some(text.as_str().into());
    }
    let written: Vec<Value> = parts.iter().filter_map(|part| content_part(part, writer)).collect();
    (!written.is_empty()).then(|| written.into())
}

fn content_part(part: &Part, writer: &mut RequestWriter<'_>) -> Option<Value> {
    let part = &*if writer.is_same() { Cow::Borrowed(part) } else { media::portable(part) };
    if !writer.is_same() {
        media::lose_inexpressible(&part.kind, writer);
    }
    let member = match &part.kind {
        PartKind::Text(text) => Some(("text", "text", text.as_str().into())),
        PartKind::Refusal(text) => Some(("refusal", "refusal", text.as_str().into())),
        PartKind::Image(image) => {
            self::image(image, writer).map(|image| ("image_url", "image_url", image.into()))
        }
        PartKind::Audio(audio) => {
            self::audio(audio).map(|audio| ("input_audio", "input_audio", audio.into()))
        }
        PartKind::File(file) => self::file(file, writer),
        PartKind::Other(value) if writer.is_same() => return Some(value.clone()),
        _ => None,
    };
    let Some((kind, name, mut value)) = member else {
        writer.lose(part.at.clone());
        return None;
    };
    if let Value::Object(inner) = &mut value {
        writer.complete(inner, &format!("{}/{name}", part.at));
    }
    let mut members = object([("type", kind.into()), (name, value)]);
    cache_marks::write(part.cache.as_ref(), &mut members, writer);
    writer.complete(&mut members, &part.at);
    Some(members.into())
}

fn image(image: &Media, writer: &RequestWriter<'_>) -> Option<Map<String, Value>> {
    if !writer.is_same() && !media::is_picture(image) {
        return None;
    }
    let mut address = object([("url", media::url(image, ASSUMED_IMAGE)?.into())]);
    tools::insert(&mut address, "detail", image.detail.as_ref().map(|detail| detail.value.as_str()));
    Some(address)
}

fn audio(audio: &Media) -> Option<Map<String, Value>> {
    let form = media::audio_form(audio.media_type.as_deref()?)?;
    let MediaSource::Inline(data) = &audio.source else { return None };
    Some(object([("data", data.as_str().into()), ("format", form.into())]))
}

/// A file: the kind of the part, the name of its field, and the field.
fn file(file: &Media, writer: &mut RequestWriter<'_>) -> Option<(&'static str, &'static str, Value)> {
    let mut inner = match &file.source {
        MediaSource::FileId(id) => object([("file_id", id.as_str().into())]),
        // No provider accepts text as a file here, and all accept it as text.
        MediaSource::Inline(_)
            if !writer.is_same()
                && let Some(text) = media::plain_text(file) =>
        {
            if let Some(name) = &file.name {
                writer.lose(name.at.clone());
            }
            return Some(("text", "text", text.into()));
        }
        MediaSource::Inline(data) if writer.is_same() && file.media_type.is_none() => {
            object([("file_data", data.as_str().into())])
        }
        MediaSource::Inline(_) if !writer.is_same() && is_video(file) => return None,
        MediaSource::Inline(_) => object([("file_data", media::url(file, ASSUMED_FILE)?.into())]),
        MediaSource::Url(url) if writer.is_same() => object([("file_data", url.as_str().into())]),
        MediaSource::Url(_) => return None,
    };
    tools::insert(&mut inner, "filename", file.name.as_ref().map(|name| name.value.as_str()));
    Some(("file", "file", inner.into()))
}

fn is_video(file: &Media) -> bool {
    file.media_type.as_deref().is_some_and(|kind| kind.starts_with("video/"))
}

fn lose_cache(part: &Part, writer: &mut RequestWriter<'_>) {
    if !writer.is_same() {
        writer.lose_cache(part.cache.as_ref());
    }
}
