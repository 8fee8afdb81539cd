//! Merges native chunks into one native response (2.5).

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::{index_of, members_memory, memory};

/// The response so far.
#[derive(Debug, Clone, Default)]
pub(super) struct ContentBuilder {
    /// Every member except the candidates, with its last value.
    members: Map<String, Value>,
    /// The candidates by index.
    candidates: IndexMap<u64, CandidateBuilder>,
    /// The candidate that the last chunk added to.
    last: u64,
}

#[derive(Debug, Clone, Default)]
struct CandidateBuilder {
    /// Every member except index and content, with its last value.
    members: Map<String, Value>,
    /// Every member of the content except the parts.
    content: Map<String, Value>,
    parts: Vec<Value>,
    indexed: bool,
}

impl ContentBuilder {
    pub(super) fn push(&mut self, chunk: Value) {
        let Value::Object(mut chunk) = chunk else { return };
        let candidates = chunk.shift_remove("candidates");
        keep_last(&mut self.members, chunk);
        let Some(Value::Array(candidates)) = candidates else { return };
        for (place, candidate) in candidates.into_iter().enumerate() {
            let Value::Object(candidate) = candidate else { continue };
            let index = index_of(&candidate, "index").unwrap_or(place as u64);
            self.candidates.entry(index).or_default().push(candidate);
            self.last = index;
        }
    }

    /// Adds the last chunk once more, with another text.
    pub(super) fn push_text(&mut self, text: &str) {
        let parts = self.candidates.entry(self.last).or_default().parts.last_mut();
        if let Some(Value::String(last)) = parts.and_then(|part| part.get_mut("text")) {
            last.push_str(text);
        }
    }

    pub(super) fn document(&self) -> Value {
        let mut candidates: Vec<_> = self.candidates.iter().collect();
        candidates.sort_by_key(|(index, _)| **index);
        let candidates = candidates.into_iter().map(|(index, candidate)| candidate.document(*index));
        let mut document = Map::new();
        document.insert("candidates".to_owned(), candidates.collect());
        document.extend(self.members.clone());
        Value::Object(document)
    }

    pub(super) fn memory(&self) -> usize {
        let candidates = self.candidates.values().map(|candidate| {
            let members = members_memory(&candidate.members) + members_memory(&candidate.content);
            size_of::<CandidateBuilder>() + members + candidate.parts.iter().map(memory).sum::<usize>()
        });
        members_memory(&self.members) + candidates.sum::<usize>()
    }
}

impl CandidateBuilder {
    fn push(&mut self, mut candidate: Map<String, Value>) {
        self.indexed |= candidate.shift_remove("index").is_some();
        if let Some(Value::Object(mut content)) = candidate.shift_remove("content") {
            if let Some(Value::Array(parts)) = content.shift_remove("parts") {
                for part in parts {
                    self.push_part(part);
                }
            }
            keep_last(&mut self.content, content);
        }
        keep_last(&mut self.members, candidate);
    }

    /// Text continues the last part if that is text of the same kind. A part with anything else, such as a signature,
    /// is kept as it is.
    fn push_part(&mut self, part: Value) {
        if let Some(last) = self.parts.last_mut()
            && let (Some(was), Some(is)) = (plain_thought(last), plain_thought(&part))
            && was == is
            && let (Some(Value::String(text)), Some(piece)) = (last.get_mut("text"), part["text"].as_str())
        {
            text.push_str(piece);
        } else {
            self.parts.push(part);
        }
    }

    fn document(&self, index: u64) -> Value {
        let mut content = Map::new();
        content.insert("parts".to_owned(), self.parts.clone().into());
        content.extend(self.content.clone());
        content.entry("role").or_insert_with(|| "model".into());
        let mut document = Map::new();
        if self.indexed {
            document.insert("index".to_owned(), index.into());
        }
        document.insert("content".to_owned(), content.into());
        document.extend(self.members.clone());
        Value::Object(document)
    }
}

/// For a part that is nothing but text: whether it is a thought.
fn plain_thought(part: &Value) -> Option<bool> {
    let members = part.as_object()?;
    members.get("text")?.as_str()?;
    let thought = members.get("thought");
    let others = members.len() - 1 - usize::from(thought.is_some());
    (others == 0).then(|| thought.and_then(Value::as_bool).unwrap_or(false))
}

fn keep_last(members: &mut Map<String, Value>, newer: Map<String, Value>) {
    for (name, value) in newer {
        if !value.is_null() && value.as_str() != Some("") {
            members.insert(name, value);
        }
    }
}
