//! Merges chat chunks into a chat completion (2.2, 2.3).

use std::collections::HashMap;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::{TABLE, index_of, members_memory, merge_member, merge_members};
use crate::stream::text::text_of;

/// The completion so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Completion {
    /// Every member except the choices, with its last value.
    members: Map<String, Value>,
    /// The choices by index.
    choices: IndexMap<u64, ChoiceBuilder>,
    /// The choice that the last chunk added to.
    last: u64,
}

#[derive(Debug, Clone, Default)]
struct ChoiceBuilder {
    /// Every member except index, delta and message.
    members: Map<String, Value>,
    message: Map<String, Value>,
    calls: Calls,
}

impl Completion {
    pub(super) fn push(&mut self, chunk: Value) {
        let Value::Object(mut chunk) = chunk else { return };
        let choices = chunk.shift_remove("choices");
        for (name, value) in chunk {
            // A later chunk may carry an empty value for a member that an earlier chunk has set.
            let says_nothing = match &value {
                Value::Null => true,
                Value::String(text) => text.is_empty(),
                Value::Object(members) => members.is_empty(),
                _ => false,
            };
            if !says_nothing {
                self.members.insert(name, value);
            }
        }
        let Some(Value::Array(choices)) = choices else { return };
        for (place, choice) in choices.into_iter().enumerate() {
            let Value::Object(choice) = choice else { continue };
            let index = index_of(&choice, "index").unwrap_or(place as u64);
            self.choices.entry(index).or_default().push(choice);
            self.last = index;
        }
    }

    /// Adds the last chunk once more, with another text.
    pub(super) fn push_text(&mut self, text: &str) {
        let message = &mut self.choices.entry(self.last).or_default().message;
        match message.get_mut("content") {
            Some(Value::String(content)) => content.push_str(text),
            _ => {
                message.insert("content".to_owned(), text.into());
            }
        }
    }

    pub(super) fn document(&self) -> Value {
        let mut document = Map::new();
        let known = |name: &str| self.members.get(name).cloned();
        document.insert("id".to_owned(), known("id").unwrap_or_else(|| "".into()));
        document.insert("object".to_owned(), "chat.completion".into());
        let created = self.members.get("created").and_then(Value::as_i64);
        document.insert("created".to_owned(), created.unwrap_or(0).into());
        document.insert("model".to_owned(), known("model").unwrap_or_else(|| "".into()));
        let mut choices: Vec<_> = self.choices.iter().collect();
        choices.sort_by_key(|(index, _)| **index);
        let choices = choices.into_iter().map(|(index, choice)| choice.document(*index));
        document.insert("choices".to_owned(), choices.collect());
        // Zeros would look like a measurement.
        document.insert("usage".to_owned(), known("usage").unwrap_or_default());
        for (name, value) in &self.members {
            if !document.contains_key(name) {
                document.insert(name.clone(), value.clone());
            }
        }
        Value::Object(document)
    }

    pub(super) fn memory(&self) -> usize {
        let choices = self.choices.values().map(|choice| {
            let members = members_memory(&choice.members) + members_memory(&choice.message);
            size_of::<ChoiceBuilder>() + members + choice.calls.memory()
        });
        members_memory(&self.members) + choices.sum::<usize>()
    }
}

impl ChoiceBuilder {
    fn push(&mut self, mut choice: Map<String, Value>) {
        choice.shift_remove("index");
        // A plain completion has a message instead of the delta; an older form has a text.
        let delta = choice.shift_remove("delta");
        let message = choice.shift_remove("message");
        let text = choice.shift_remove("text");
        match (delta, message, text) {
            (Some(Value::Object(delta)), _, _) | (_, Some(Value::Object(delta)), _) => self.push_delta(delta),
            (_, _, Some(text)) => {
                let delta = text_of(text).map(|text| ("content".to_owned(), text.into()));
                self.push_delta(delta.into_iter().collect());
            }
            _ => {}
        }
        for (name, value) in choice {
            if name == "finish_reason" {
                if value.as_str() != Some("") && !value.is_null() {
                    self.members.insert(name, value);
                }
            } else {
                merge_member(&mut self.members, name, value);
            }
        }
    }

    fn push_delta(&mut self, mut delta: Map<String, Value>) {
        if let Some(Value::Array(calls)) = delta.shift_remove("tool_calls") {
            self.calls.push(calls);
        }
        for (name, value) in delta {
            match name.as_str() {
                "role" if value.as_str().is_none_or(str::is_empty) => {}
                _ => merge_member(&mut self.message, name, value),
            }
        }
    }

    fn document(&self, index: u64) -> Value {
        let known = |name: &str| self.message.get(name).cloned();
        let mut message = Map::new();
        message.insert("role".to_owned(), known("role").unwrap_or_else(|| "assistant".into()));
        message.insert("content".to_owned(), known("content").unwrap_or_default());
        for (name, value) in &self.message {
            if !message.contains_key(name) {
                message.insert(name.clone(), value.clone());
            }
        }
        if !self.calls.list.is_empty() {
            message.insert("tool_calls".to_owned(), self.calls.document());
        }
        let mut choice = Map::new();
        choice.insert("index".to_owned(), index.into());
        choice.insert("message".to_owned(), message.into());
        choice.insert(
            "finish_reason".to_owned(),
            self.members.get("finish_reason").cloned().unwrap_or_default(),
        );
        for (name, value) in &self.members {
            if !choice.contains_key(name) {
                choice.insert(name.clone(), value.clone());
            }
        }
        Value::Object(choice)
    }
}

/// The tool calls of one choice. A piece belongs to the call with its index. A new id under a known index begins
/// another call; if there are no ids, a new name does.
#[derive(Debug, Clone, Default)]
struct Calls {
    list: Vec<Map<String, Value>>,
    by_index: HashMap<u64, usize>,
    by_id: HashMap<(Option<u64>, String), usize>,
}

impl Calls {
    fn push(&mut self, pieces: Vec<Value>) {
        // Pieces of one chunk that have no index belong to different calls.
        let mut taken = None;
        for piece in pieces {
            let Value::Object(mut piece) = piece else { continue };
            let index = index_of(&piece, "index");
            piece.shift_remove("index");
            let place = self.find(index, &piece, taken).unwrap_or_else(|| {
                self.list.push(Map::new());
                self.list.len() - 1
            });
            taken = taken.max(Some(place));
            if let Some(index) = index {
                self.by_index.insert(index, place);
            }
            if let Some(id) = text_member(&piece, "id") {
                self.by_id.insert((index, id.to_owned()), place);
            }
            add_piece(&mut self.list[place], piece);
        }
    }

    /// The call that a piece belongs to; none if it begins one.
    fn find(&self, index: Option<u64>, piece: &Map<String, Value>, taken: Option<usize>) -> Option<usize> {
        let id = text_member(piece, "id");
        let known = id.and_then(|id| self.by_id.get(&(index, id.to_owned())).copied());
        if known.is_some() {
            return known;
        }
        let place = match index {
            Some(index) => *self.by_index.get(&index)?,
            None => self.list.len().checked_sub(1).filter(|last| taken.is_none_or(|taken| taken < *last))?,
        };
        let call = &self.list[place];
        let another = if id.is_some() && text_member(call, "id").is_some() {
            true
        } else {
            let (new, old) = (callee_name(piece), callee_name(call));
            new.is_some() && old.is_some() && new != old
        };
        (!another).then_some(place)
    }

    fn document(&self) -> Value {
        let call = |call: &Map<String, Value>| {
            let mut document = Map::new();
            let known = |name: &str| call.get(name).cloned();
            document.insert("id".to_owned(), known("id").unwrap_or_else(|| "".into()));
            let kind = if call.contains_key("custom") { "custom" } else { "function" };
            document.insert("type".to_owned(), known("type").unwrap_or_else(|| kind.into()));
            for (name, value) in call {
                if !document.contains_key(name) {
                    document.insert(name.clone(), value.clone());
                }
            }
            let kind = CALLEES.iter().find(|(kind, _)| document["type"] == *kind);
            if let Some((kind, text)) = kind
                && let Some(callee) = document.entry(*kind).or_insert_with(|| json!({})).as_object_mut()
            {
                for name in ["name", text] {
                    callee.entry(name).or_insert_with(|| "".into());
                }
            }
            Value::Object(document)
        };
        self.list.iter().map(call).collect()
    }

    fn memory(&self) -> usize {
        // Besides its members, the call takes an entry in each of the two tables.
        let place = size_of::<Map<String, Value>>() + size_of::<((Option<u64>, String), usize)>() + TABLE;
        let ids: usize = self.by_id.keys().map(|(_, id)| id.len()).sum();
        ids + self.list.iter().map(|call| place + members_memory(call)).sum::<usize>()
    }
}

fn text_member<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    members.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// The kinds of calls: the member that describes the callee, and that member's own member for the text.
const CALLEES: [(&str, &str); 2] = [("function", "arguments"), ("custom", "input")];

fn callee_name(call: &Map<String, Value>) -> Option<&str> {
    CALLEES.iter().find_map(|(kind, _)| text_member(call.get(*kind)?.as_object()?, "name"))
}

fn add_piece(call: &mut Map<String, Value>, mut piece: Map<String, Value>) {
    for name in ["id", "type"] {
        if text_member(&piece, name).is_none() {
            piece.shift_remove(name);
        }
    }
    for (kind, text) in CALLEES {
        let Some(Value::Object(callee)) = piece.get_mut(kind) else {
            piece.shift_remove(kind);
            continue;
        };
        callee.retain(|_, value| !value.is_null());
        // Some servers write the arguments as an object instead of as text.
        if let Some(text) = callee.get_mut(text)
            && !text.is_string()
        {
            *text = text.to_string().into();
        }
    }
    merge_members(call, piece);
}
