//! Merges a stream of chunks into one document: the response as it would have come without streaming. Each protocol has
//! its own file; this one holds the shared parts. Accepts any JSON: a chunk is first repaired to match its shape, anything
//! that doesn't fit is dropped, and nothing fails.
//!
//! Text is appended in place, so that the work is linear in the size of the chunks.

mod chat;
mod messages;
mod native;
mod responses;

use serde_json::{Map, Value};

use super::shape::{self, RepairLevel};
use crate::api::generated::shapes::chunk_shape;
use crate::api::operation::{Operation, Protocol};
use crate::api::shape::Shape;
use crate::wire::repair;

/// Merges the chunks of a stream into one document. [`RawStream::finish`](crate::RawStream::finish) does this by
/// itself; use this type for chunks from elsewhere, such as a recording.
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
    /// The shape of one chunk.
    shape: &'static Shape,
    has_started: bool,
    document: Document,
}

#[derive(Debug, Clone)]
enum Document {
    Chat(chat::Completion),
    Responses(responses::ResponseBuilder),
    Messages(messages::MessageBuilder),
    Native(native::ContentBuilder),
    /// The last chunk, for a protocol whose chunks do not add up.
    Last(Value),
}

impl Accumulator {
    /// An empty accumulator for the chunks of this operation.
    ///
    /// ```
    /// use gatewright::{Accumulator, operations};
    ///
    /// let accumulator = Accumulator::new(&operations::CREATE_MESSAGE);
    /// assert_eq!(accumulator.document(), None);
    /// ```
    pub fn new(operation: &Operation) -> Self {
        let document = match operation.protocol {
            Protocol::Chat => Document::Chat(chat::Completion::default()),
            Protocol::Responses => Document::Responses(responses::ResponseBuilder::default()),
            Protocol::Messages => Document::Messages(messages::MessageBuilder::default()),
            Protocol::Native => Document::Native(native::ContentBuilder::default()),
            Protocol::Plain | Protocol::Batch | Protocol::Media | Protocol::Models => {
                Document::Last(Value::Null)
            }
        };
        Self { shape: chunk_shape(operation), has_started: false, document }
    }

    /// Adds the next chunk.
    ///
    /// ```
    /// use gatewright::{Accumulator, operations};
    ///
    /// let mut accumulator = Accumulator::new(&operations::GENERATE_CONTENT);
    /// for text in ["Hel", "lo"] {
    ///     accumulator.push(serde_json::json!({"candidates": [{"content": {"parts": [{"text": text}]}}]}));
    /// }
    /// let content = &accumulator.document().unwrap()["candidates"][0]["content"];
    /// assert_eq!(content["parts"][0]["text"], "Hello");
    /// ```
    pub fn push(&mut self, chunk: Value) {
        let chunk = shape::mend(self.shape, chunk, RepairLevel::Structure);
        self.has_started = true;
        match &mut self.document {
            Document::Chat(completion) => completion.push(chunk),
            Document::Responses(building) => building.push(chunk),
            Document::Messages(building) => building.push(chunk),
            Document::Native(content) => content.push(chunk),
            Document::Last(last) => *last = chunk,
        }
    }

    /// Adds a chunk that equals the last one except for its text.
    pub(super) fn push_text(&mut self, text: &str) {
        match &mut self.document {
            Document::Chat(completion) => completion.push_text(text),
            Document::Responses(building) => building.push_text_again(text),
            Document::Messages(building) => building.push_text(text),
            Document::Native(content) => content.push_text(text),
            Document::Last(_) => {}
        }
    }

    /// Adds the next chunk, given as JSON text. Errors: it is not JSON; nothing was added.
    ///
    /// ```
    /// use gatewright::{Accumulator, operations};
    ///
    /// let mut accumulator = Accumulator::new(&operations::CREATE_CHAT_COMPLETION);
    /// accumulator.push_json(r#"{"choices": [{"index": 0, "delta": {"content": "Hello"}}]}"#)?;
    /// assert!(accumulator.push_json("[DONE]").is_err());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn push_json(&mut self, chunk: &str) -> Result<(), serde_json::Error> {
        self.push(repair::value(chunk)?);
        Ok(())
    }

    /// The document so far; none before the first chunk. Members that the response's shape requires and that have not
    /// arrived yet are present and empty.
    ///
    /// ```
    /// use gatewright::{Accumulator, operations};
    ///
    /// let mut accumulator = Accumulator::new(&operations::CREATE_CHAT_COMPLETION);
    /// assert_eq!(accumulator.document(), None);
    /// accumulator.push(serde_json::json!({"choices": []}));
    /// assert_eq!(accumulator.document().unwrap()["object"], "chat.completion");
    /// ```
    pub fn document(&self) -> Option<Value> {
        self.has_started.then(|| match &self.document {
            Document::Chat(completion) => completion.document(),
            Document::Responses(building) => building.document(),
            Document::Messages(building) => building.document(),
            Document::Native(content) => content.document(),
            Document::Last(last) => last.clone(),
        })
    }

    /// About how much memory the document takes, in bytes; never less than its size as JSON.
    pub(super) fn memory(&self) -> usize {
        match &self.document {
            Document::Chat(completion) => completion.memory(),
            Document::Responses(building) => building.memory(),
            Document::Messages(building) => building.memory(),
            Document::Native(content) => content.memory(),
            Document::Last(last) => memory(last),
        }
    }
}

/// Members that name something. They are the same in every chunk, whereas other text is a piece of a whole.
const NAMES: &[&str] = &["format", "id", "model", "name", "object", "provider", "role", "type"];

/// Merges a chunk's members into the earlier ones. Text is appended to text, lists are appended to lists, and objects
/// are merged; any other value replaces the earlier one. Null never replaces anything, and a list or an object never
/// replaces text.
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
        // A value that is not text does not replace text that has arrived.
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

/// Appends to a list. If the list's entries carry an `index`, an entry is a piece of the entry with the same index.
fn merge_list(values: &mut Vec<Value>, more: Vec<Value>) {
    for value in more {
        // The piece almost always belongs to the newest entry; otherwise the nearest entries are searched.
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

/// How many entries of a list are searched for the one a piece belongs to.
const MAX_ENTRIES_SEARCHED: usize = 64;

/// An index; none if it is missing or negative.
fn index_of(members: &Map<String, Value>, name: &str) -> Option<u64> {
    members.get(name).and_then(Value::as_u64)
}

/// Memory of an object's table, not counting its members.
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
    // The name, its hash and its place in the table.
    let member = size_of::<String>() + 2 * size_of::<usize>();
    TABLE + members.iter().map(|(name, value)| member + name.len() + memory(value)).sum::<usize>()
}
