//! The document that a stream of chunks amounts to: the answer as it would have come without streaming. One file per
//! protocol; here is what they share. Takes any JSON: a chunk is brought into its form first, what cannot be placed is
//! left out, and nothing fails.
//!
//! Text is appended where it stands, so that the work is linear in what is taken.

mod chat;
mod native;
mod responses;

use serde_json::{Map, Value};

use super::shape::{self, Form, Mending};
use crate::operation::{Operation, Protocol};

/// Gathers the chunks of a stream into one document. [`RawStream::finish`](crate::RawStream::finish) does this by
/// itself; this is for chunks that come from elsewhere, such as a recording.
///
/// ```
/// use gatewright::{Accumulator, operations};
///
/// let mut accumulator = Accumulator::new(&operations::CREATE_CHAT_COMPLETION);
/// for text in ["Hel", "lo"] {
///     accumulator.push(serde_json::json!({"choices": [{"index": 0, "delta": {"content": text}}]}));
/// }
/// let completion = accumulator.document().expect("a chunk was given");
/// assert_eq!(completion["choices"][0]["message"]["content"], "Hello");
/// ```
#[derive(Debug, Clone)]
pub struct Accumulator {
    /// Of one chunk.
    form: &'static Form,
    begun: bool,
    document: Document,
}

#[derive(Debug, Clone)]
enum Document {
    Chat(chat::Completion),
    Responses(responses::Building),
    Native(native::Content),
    /// Of a protocol whose chunks do not add up: the last one.
    Last(Value),
}

impl Accumulator {
    /// An empty one, for the chunks of this operation.
    pub fn new(operation: &Operation) -> Self {
        let document = match operation.protocol {
            Protocol::Chat => Document::Chat(chat::Completion::default()),
            Protocol::Responses => Document::Responses(responses::Building::default()),
            Protocol::Native => Document::Native(native::Content::default()),
            Protocol::Media | Protocol::Models => Document::Last(Value::Null),
        };
        Self { form: shape::chunk_form(operation.protocol), begun: false, document }
    }

    /// Takes the next chunk.
    pub fn push(&mut self, chunk: Value) {
        let chunk = shape::mend(self.form, chunk, Mending::Structure);
        self.begun = true;
        match &mut self.document {
            Document::Chat(completion) => completion.push(chunk),
            Document::Responses(building) => building.push(chunk),
            Document::Native(content) => content.push(chunk),
            Document::Last(last) => *last = chunk,
        }
    }

    /// Takes a chunk that is the last one with another text.
    pub(super) fn push_text(&mut self, text: &str) {
        if let Document::Chat(completion) = &mut self.document {
            completion.push_text(text);
        }
    }

    /// Takes the next chunk as JSON text. Errors: it is no JSON; nothing was taken.
    pub fn push_json(&mut self, chunk: &str) -> Result<(), serde_json::Error> {
        self.push(super::mend::value(chunk)?);
        Ok(())
    }

    /// The document so far; none before the first chunk. What the answer's form requires and has not come yet is
    /// there and empty.
    pub fn document(&self) -> Option<Value> {
        self.begun.then(|| match &self.document {
            Document::Chat(completion) => completion.document(),
            Document::Responses(building) => building.document(),
            Document::Native(content) => content.document(),
            Document::Last(last) => last.clone(),
        })
    }

    /// About how much memory the document takes, in bytes; no less than it has as JSON.
    pub(super) fn memory(&self) -> usize {
        match &self.document {
            Document::Chat(completion) => completion.memory(),
            Document::Responses(building) => building.memory(),
            Document::Native(content) => content.memory(),
            Document::Last(last) => memory(last),
        }
    }
}

/// Members that name a thing: they are the same in every chunk, where other text is a piece of a whole.
const NAMES: &[&str] = &["format", "id", "model", "name", "object", "provider", "role", "type"];

/// Adds a chunk's members to what has come before: text is appended to text, lists to lists, objects are merged,
/// anything else replaces what was there, but null never does, nor a list or object a text.
fn merge_members(target: &mut Map<String, Value>, members: Map<String, Value>) {
    for (name, value) in members {
        merge_member(target, name, value);
    }
}

fn merge_member(target: &mut Map<String, Value>, name: String, value: Value) {
    let is_name = NAMES.contains(&name.as_str());
    match (target.get_mut(&name), value) {
        (None, value) => {
            target.insert(name, value);
        }
        // Text that has come is not given up for what is no text.
        (Some(_), Value::Null) | (Some(Value::String(_)), Value::Array(_) | Value::Object(_)) => {}
        (Some(Value::String(text)), Value::String(piece)) => {
            if !is_name {
                text.push_str(&piece);
            } else if !piece.is_empty() {
                *text = piece;
            }
        }
        (Some(Value::Array(values)), Value::Array(more)) => merge_list(values, more),
        (Some(Value::Object(members)), Value::Object(more)) => merge_members(members, more),
        (Some(old), value) => *old = value,
    }
}

/// Appends; entries that carry an `index` are pieces of the entry of that index, where the list is made of such.
fn merge_list(values: &mut Vec<Value>, more: Vec<Value>) {
    for value in more {
        // The piece belongs to the newest entry almost always; others are looked for within reach.
        let index = value.get("index").and_then(Value::as_u64);
        let same = |entry: &Value| index.is_some() && entry.get("index").and_then(Value::as_u64) == index;
        let place = values.iter().rev().take(MAX_ENTRIES_SEARCHED).position(same);
        match (place.map(|back| values.len() - 1 - back), value) {
            (Some(place), Value::Object(piece)) => {
                if let Some(entry) = values[place].as_object_mut() {
                    merge_members(entry, piece);
                }
            }
            (_, value) => values.push(value),
        }
    }
}

/// How many entries of a list are looked at for the one a piece belongs to.
const MAX_ENTRIES_SEARCHED: usize = 64;

/// The text of what should be a text: itself, the text parts of a list joined, a part's text, a number as written.
pub(super) fn text_of(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Array(parts) => {
            let is_empty = parts.is_empty();
            let texts: Vec<String> = parts.into_iter().filter_map(text_of).collect();
            (is_empty || !texts.is_empty()).then(|| texts.concat())
        }
        Value::Object(mut part) => match part.remove("text")? {
            // {"text": {"value": "…"}}, as one protocol of old had it.
            Value::Object(mut inner) => inner.remove("value").and_then(text_of),
            text => text_of(text),
        },
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(_) | Value::Null => None,
    }
}

/// An index; none where there is none, or it is negative.
fn index_of(members: &Map<String, Value>, name: &str) -> Option<u64> {
    members.get(name).and_then(Value::as_u64)
}

/// What an object's table takes beside its members.
const TABLE: usize = 128;

/// About how much memory a value takes, in bytes.
pub(super) fn memory(value: &Value) -> usize {
    let beneath = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(memory).sum(),
        Value::Object(members) => members_memory(members),
    };
    size_of::<Value>() + beneath
}

fn members_memory(members: &Map<String, Value>) -> usize {
    // A name, its hash and its place in the table.
    let member = size_of::<String>() + 2 * size_of::<usize>();
    TABLE + members.iter().map(|(name, value)| member + name.len() + memory(value)).sum::<usize>()
}
