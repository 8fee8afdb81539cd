//! Reads a written request back and compares it with the source.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::requests::{Legal, RequestContent};
use crate::EncodedRequest;
use crate::conversation::{Conversation, Input, Media, MediaSource, Part, PartKind, Role, ToolKind};

/// What a conversation says.
#[derive(Default)]
struct Read {
    /// Everyone's texts, concatenated.
    texts: String,
    /// Id, name, input, result text.
    calls: Vec<(String, String, Value, Option<String>)>,
    media: Vec<String>,
}

/// A character that no test text contains.
const BETWEEN: char = '\u{1}';

impl Read {
    fn of(conversation: &Conversation) -> Self {
        let mut read = Self::default();
        // Instructions may move to the front.
        let is_system = |role: Role| matches!(role, Role::System | Role::Developer);
        let (system, others): (Vec<_>, Vec<_>) =
            conversation.turns.iter().partition(|turn| is_system(turn.role));
        for part in system.into_iter().chain(others).flat_map(|turn| &turn.parts) {
            read.part(part);
        }
        read
    }

    fn part(&mut self, part: &Part) {
        match &part.kind {
            PartKind::Text(text) | PartKind::Refusal(text) => {
                self.texts.push_str(text);
                self.texts.push(BETWEEN);
            }
            PartKind::Image(media) | PartKind::File(media) | PartKind::Audio(media) => self.medium(media),
            PartKind::Call(call) => {
                let input = match &call.input {
                    Input::Json(text) => serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into()),
                    Input::Text(text) => text.as_str().into(),
                };
                self.calls.push((call.id.clone(), call.name.clone(), input, None));
            }
            PartKind::Result(result) => {
                // Among calls with one id, the nearest without a result.
                let mut open =
                    self.calls.iter_mut().rev().filter(|call| call.0 == result.call_id && call.3.is_none());
                let text: String = result
                    .parts
                    .iter()
                    .filter_map(|part| match &part.kind {
                        PartKind::Text(text) => Some(text.as_str()),
                        _ => None,
                    })
                    .collect();
                if let Some(call) = open.next() {
                    call.3 = Some(text);
                } else {
                    self.calls.push((
                        result.call_id.clone(),
                        "a result of no call".to_owned(),
                        Value::Null,
                        Some(text),
                    ));
                }
                for part in &result.parts {
                    if let PartKind::Image(media) | PartKind::File(media) | PartKind::Audio(media) =
                        &part.kind
                    {
                        self.medium(media);
                    }
                }
            }
            PartKind::Thought(_) | PartKind::Other(_) => {}
        }
    }

    fn medium(&mut self, media: &Media) {
        let (MediaSource::Inline(source) | MediaSource::Url(source) | MediaSource::FileId(source)) =
            &media.source;
        self.media.push(source.clone());
    }
}

/// What a written request omits from the source, apart from what it reports.
pub(super) fn differences(legal: &Legal, outgoing: &EncodedRequest, back: &Conversation) -> Vec<String> {
    let RequestContent { system, texts, pictures, files, .. } = &legal.content;
    let mut wrong = Vec::new();
    let read = Read::of(back);
    let dropped =
        outgoing.dropped.iter().map(|place| legal.body.pointer(place).map(written).unwrap_or_default());
    let dropped: Vec<String> = dropped.collect();
    let is_reported = |text: &str| dropped.iter().any(|dropped| dropped.contains(text));
    for text in system {
        if !(read.texts.contains(text.as_str()) || is_reported(text)) {
            wrong.push(format!("an instruction is lost: {text:?}"));
        }
    }
    let mut place = 0;
    for text in texts {
        // Some protocols don't accept trailing whitespace in a prefilled answer.
        let text = text.trim_end();
        match read.texts[place..].find(text) {
            Some(found) => place += found,
            None if is_reported(text) => {}
            None => wrong.push(format!("a text is lost, or out of its order: {text:?}")),
        }
    }
    for picture in pictures {
        let count = read.media.iter().filter(|it| *it == picture).count();
        if count != 1 && !(count == 0 && is_reported(picture)) {
            wrong.push(format!("a picture is lost: {picture} is there {count} times"));
        }
    }
    for file in files {
        if !(read.media.contains(file) || is_reported(file)) {
            wrong.push(format!("a file is lost: {file}"));
        }
    }
    wrong.extend(of_calls(&legal.content, &read, back));
    wrong
}

/// Differences in calls, results and tool names. Names may change, but one-to-one.
fn of_calls(content: &RequestContent, read: &Read, back: &Conversation) -> Vec<String> {
    let mut wrong = Vec::new();
    if read.calls.len() != content.calls.len() {
        wrong.push(format!("calls are lost: {:?} of {:?}", read.calls, content.calls));
        return wrong;
    }
    let mut names = BTreeMap::new();
    for (call, (_, name, input, result)) in content.calls.iter().zip(&read.calls) {
        if !same_input(&call.input, input) {
            wrong.push(format!("an input is another one: {} became {input}", call.input));
        }
        if names.entry(&call.name).or_insert(name) != &name {
            wrong.push(format!("one tool has two names: {name:?} for {:?}", call.name));
        }
        match result {
            None => wrong.push(format!("a result is lost: of {name:?}")),
            Some(result) => {
                let lost = call.result.iter().filter(|text| !holds(result, text));
                wrong.extend(lost.map(|text| format!("a result is another one: {text:?} became {result:?}")));
            }
        }
    }
    let declared: Vec<&String> = back
        .tools
        .iter()
        .filter_map(|tool| match &tool.kind {
            ToolKind::Function { name, .. } | ToolKind::Custom { name, .. } => Some(name),
            ToolKind::Other(_) => None,
        })
        .collect();
    if names.values().collect::<BTreeSet<_>>().len() != names.len() {
        wrong.push(format!("two tools have one name: {names:?}"));
    }
    // A tool choice may omit one.
    if declared.len() == content.tools.len() {
        let strangers = names.iter().filter(|(_, name)| !declared.contains(name));
        wrong.extend(strangers.map(|name| format!("a call of no tool: {name:?} of {declared:?}")));
    }
    wrong
}

/// Whether a result contains a text: verbatim, or as a field of an object.
fn holds(result: &str, text: &str) -> bool {
    let quoted = Value::from(text).to_string();
    result.contains(text) || result.contains(&quoted[1..quoted.len() - 1])
}

/// A dropped value in the form it has in texts.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(written).collect(),
        Value::Object(members) => members.values().map(written).collect(),
        _ => String::new(),
    }
}

/// Whether an input is the same: a custom tool's text may be a field of an object.
fn same_input(expected: &Value, written: &Value) -> bool {
    match expected {
        Value::String(_) => written == expected || written["input"] == *expected,
        _ => expected == written,
    }
}
