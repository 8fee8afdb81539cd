//! Merges events of the messages protocol into a message. The first event carries the message without content; blocks and
//! their pieces follow, then the data that is only known at the end.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{index_of, members_memory, merge_member, merge_members};
use crate::api::generated::shapes;
use crate::stream::shape::{self, RepairLevel};
use crate::stream::text::text_of;
use crate::wire::json_weight;
use crate::wire::repair;

/// The document takes at most this many times the text of a call's input: `1e15` is written out.
const WRITTEN_OUT: usize = 4;

/// The message so far.
#[derive(Debug, Clone, Default)]
pub(super) struct MessageBuilder {
    /// Every member except the content.
    message: Map<String, Value>,
    /// The blocks by `index`, which need not arrive in order.
    content: BTreeMap<u64, ContentBlock>,
    /// The block that the last piece added to.
    last: u64,
}

#[derive(Debug, Clone, Default)]
struct ContentBlock {
    members: Map<String, Value>,
    /// The text of the input of a call. Empty if the input came as an object.
    input: String,
}

impl MessageBuilder {
    pub(super) fn push(&mut self, event: Value) {
        let Value::Object(mut event) = event else { return };
        let kind = event.shift_remove("type");
        match kind.as_ref().and_then(Value::as_str).unwrap_or_default() {
            "message_start" => self.begin(event.shift_remove("message")),
            "content_block_start" => {
                let Some(Value::Object(members)) = event.shift_remove("content_block") else { return };
                let next = || self.content.last_key_value().map_or(0, |(last, _)| last.saturating_add(1));
                let index = index_of(&event, "index").unwrap_or_else(next);
                self.content.insert(index, ContentBlock::from(members));
            }
            "content_block_delta" => {
                let Some(Value::Object(delta)) = event.shift_remove("delta") else { return };
                let last = || self.content.last_key_value().map_or(0, |(last, _)| *last);
                let index = index_of(&event, "index").unwrap_or_else(last);
                self.content.entry(index).or_default().push(delta);
                self.last = index;
            }
            "message_delta" => self.settle(event),
            _ => {}
        }
    }

    /// Adds the last piece once more, with another text.
    pub(super) fn push_text(&mut self, text: &str) {
        let members = &mut self.content.entry(self.last).or_default().members;
        merge_member(members, "text".to_owned(), text.into());
    }

    /// Begins the message. A server that does not stream sends it whole.
    fn begin(&mut self, message: Option<Value>) {
        let Some(Value::Object(mut message)) = message else { return };
        if let Some(Value::Array(blocks)) = message.shift_remove("content") {
            let blocks = blocks.into_iter().filter_map(|block| match block {
                Value::Object(members) => Some(ContentBlock::from(members)),
                _ => None,
            });
            self.content = (0..).zip(blocks).collect();
        }
        self.message = message;
    }

    /// Adds the data that is known at the end. A usage repeats only what has changed.
    fn settle(&mut self, mut event: Map<String, Value>) {
        if let Some(Value::Object(delta)) = event.shift_remove("delta") {
            keep_known(&mut self.message, delta);
        }
        if let Some(Value::Object(newer)) = event.shift_remove("usage") {
            match self.message.get_mut("usage") {
                Some(Value::Object(usage)) => keep_known(usage, newer),
                _ => _ = self.message.insert("usage".to_owned(), newer.into()),
            }
        }
        keep_known(&mut self.message, event);
    }

    pub(super) fn document(&self) -> Value {
        let mut message = self.message.clone();
        message.insert("content".to_owned(), self.content.values().map(ContentBlock::document).collect());
        shape::mend(&shapes::MESSAGE, Value::Object(message), RepairLevel::Whole)
    }

    pub(super) fn memory(&self) -> usize {
        let block = |block: &ContentBlock| {
            size_of::<ContentBlock>() + members_memory(&block.members) + WRITTEN_OUT * block.input.len()
        };
        members_memory(&self.message) + self.content.values().map(block).sum::<usize>()
    }
}

impl From<Map<String, Value>> for ContentBlock {
    fn from(members: Map<String, Value>) -> Self {
        Self { members, input: String::new() }
    }
}

impl ContentBlock {
    /// Adds a piece. The block begins with it if its own event did not arrive.
    fn push(&mut self, mut delta: Map<String, Value>) {
        let kind = delta.shift_remove("type");
        let kind = kind.as_ref().and_then(Value::as_str).unwrap_or_default();
        if self.members.is_empty() {
            let block_type = match kind {
                "input_json_delta" => "tool_use",
                "signature_delta" => "thinking",
                "citations_delta" => "text",
                other => other.trim_end_matches("_delta"),
            };
            self.members.insert("type".to_owned(), block_type.into());
        }
        match kind {
            "input_json_delta" => {
                self.input.extend(delta.shift_remove("partial_json").and_then(text_of));
            }
            // A signature arrives whole.
            "signature_delta" => keep_known(&mut self.members, delta),
            "citations_delta" => {
                let Some(citation) = delta.shift_remove("citation") else { return };
                match self.members.get_mut("citations") {
                    Some(Value::Array(citations)) => citations.push(citation),
                    _ => _ = self.members.insert("citations".to_owned(), vec![citation].into()),
                }
            }
            _ => merge_members(&mut self.members, delta),
        }
    }

    fn document(&self) -> Value {
        let mut members = self.members.clone();
        if !self.input.trim().is_empty() {
            members.insert("input".to_owned(), input_of(&self.input));
        } else if members.get("type").is_some_and(|kind| kind == "tool_use") {
            members.entry("input").or_insert_with(|| Map::new().into());
        }
        Value::Object(members)
    }
}

/// The input of a call. Text that is truncated or not JSON is kept as it arrived.
fn input_of(text: &str) -> Value {
    let is_light = json_weight::check(text.as_bytes()).is_ok();
    let input = is_light.then(|| repair::value(text).ok()).flatten();
    input.unwrap_or_else(|| text.into())
}

/// Replaces members by newer ones that have a value.
fn keep_known(members: &mut Map<String, Value>, newer: Map<String, Value>) {
    for (name, value) in newer {
        if !value.is_null() {
            members.insert(name, value);
        }
    }
}
