//! Merges events of the responses protocol into a response (2.4). The terminal event carries the whole response; until
//! then it is built from the events that add to it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{MAX_ENTRIES_SEARCHED, index_of, members_memory, merge_members};
use crate::api::generated::shapes;
use crate::stream::classify;
use crate::stream::shape::{self, RepairLevel};
use crate::stream::text::text_of;

/// The response so far.
#[derive(Debug, Clone, Default)]
pub(super) struct ResponseBuilder {
    /// The response in the last lifecycle event.
    response: Map<String, Value>,
    /// Whether that event was terminal.
    ended: bool,
    /// The items by `output_index`.
    output: BTreeMap<u64, OutputItem>,
    /// Where the last event added to a text.
    last: Map<String, Value>,
}

/// An item of the output. Its parts are kept by index, which need not arrive in order.
#[derive(Debug, Clone, Default)]
struct OutputItem {
    members: Map<String, Value>,
    content: BTreeMap<u64, Map<String, Value>>,
    summary: BTreeMap<u64, Map<String, Value>>,
    /// Whether its last event, which carries the whole item, has arrived.
    done: bool,
}

/// The text of an item that an event adds to.
enum TextTarget {
    /// A member of the item itself.
    Member(&'static str),
    /// A text of one of its parts: the kind of the part and the member.
    Content(&'static str, &'static str),
    Summary,
}

/// The members of an event that say what it adds to.
const PLACE: &[&str] = &["content_index", "item_id", "output_index"];

impl ResponseBuilder {
    pub(super) fn push(&mut self, event: Value) {
        let Value::Object(mut event) = event else { return };
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(Value::Object(response)) = event.remove("response") {
            self.ended |= classify::is_last_name(&kind);
            self.response = response;
            return;
        }
        let Some(kind) = kind.strip_prefix("response.") else { return };
        match kind.rsplit_once('.') {
            Some(("output_item", "added")) => self.set_item(&mut event, false),
            Some(("output_item", "done")) => self.set_item(&mut event, true),
            Some(("content_part", _)) => {
                let index = index_of(&event, "content_index").unwrap_or(0);
                if let Some((item, Value::Object(part))) =
                    self.open_item(&event, "message").zip(event.remove("part"))
                {
                    item.content.insert(index, part);
                }
            }
            Some(("reasoning_summary_part", _)) => {
                let index = index_of(&event, "summary_index").unwrap_or(0);
                if let Some((item, Value::Object(part))) =
                    self.open_item(&event, "reasoning").zip(event.remove("part"))
                {
                    item.summary.insert(index, part);
                }
            }
            Some(("output_text.annotation", "added")) => {
                let index = index_of(&event, "content_index").unwrap_or(0);
                if let Some((item, annotation)) =
                    self.open_item(&event, "message").zip(event.remove("annotation"))
                {
                    let part = item.content.entry(index).or_insert_with(|| new_part("output_text", "text"));
                    merge_members(part, Map::from_iter([("annotations".to_owned(), json!([annotation]))]));
                }
            }
            Some((subject, action @ ("delta" | "done"))) => {
                self.push_text(subject, action, &mut event);
                event.retain(|name, _| PLACE.contains(&name.as_str()));
                self.last = event;
            }
            _ => {}
        }
    }

    /// Adds the last event, which added to an output text, once more with another text.
    pub(super) fn push_text_again(&mut self, text: &str) {
        let mut event = std::mem::take(&mut self.last);
        event.insert("delta".to_owned(), text.into());
        self.push_text("output_text", "delta", &mut event);
        self.last = event;
    }

    fn set_item(&mut self, event: &mut Map<String, Value>, done: bool) {
        let Some(Value::Object(mut members)) = event.remove("item") else { return };
        let id = members.get("id").and_then(Value::as_str);
        let index = index_of(event, "output_index")
            .or_else(|| self.index_by(id))
            .unwrap_or_else(|| self.output.last_key_value().map_or(0, |(last, _)| last.saturating_add(1)));
        let item = self.output.entry(index).or_default();
        if item.done && !done {
            return;
        }
        item.content = take_parts(&mut members, "content");
        item.summary = take_parts(&mut members, "summary");
        item.members = members;
        item.done = done;
    }

    fn index_by(&self, id: Option<&str>) -> Option<u64> {
        let id = id.filter(|id| !id.is_empty())?;
        let has_id = |item: &OutputItem| item.members.get("id").and_then(Value::as_str) == Some(id);
        self.output
            .iter()
            .rev()
            .take(MAX_ENTRIES_SEARCHED)
            .find(|(_, item)| has_id(item))
            .map(|(index, _)| *index)
    }

    /// The item that an event adds to, created if it has not arrived yet; none if it is already complete.
    fn open_item(&mut self, event: &Map<String, Value>, kind: &str) -> Option<&mut OutputItem> {
        let id = event.get("item_id").and_then(Value::as_str);
        let index = index_of(event, "output_index")
            .or_else(|| self.index_by(id))
            .unwrap_or_else(|| self.output.last_key_value().map_or(0, |(last, _)| *last));
        let item = self.output.entry(index).or_default();
        if item.members.is_empty() {
            item.members.insert("type".to_owned(), kind.into());
            item.members.insert("id".to_owned(), id.into());
            item.members.insert("status".to_owned(), "in_progress".into());
            if kind == "message" {
                item.members.insert("role".to_owned(), "assistant".into());
            }
        }
        (!item.done).then_some(item)
    }

    fn push_text(&mut self, subject: &str, action: &str, event: &mut Map<String, Value>) {
        let (kind, place, whole) = match subject {
            "output_text" => ("message", TextTarget::Content("output_text", "text"), "text"),
            "refusal" => ("message", TextTarget::Content("refusal", "refusal"), "refusal"),
            "reasoning_text" => ("reasoning", TextTarget::Content("reasoning_text", "text"), "text"),
            "reasoning_summary_text" => ("reasoning", TextTarget::Summary, "text"),
            "function_call_arguments" => ("function_call", TextTarget::Member("arguments"), "arguments"),
            "mcp_call_arguments" => ("mcp_call", TextTarget::Member("arguments"), "arguments"),
            "custom_tool_call_input" => ("custom_tool_call", TextTarget::Member("input"), "input"),
            "code_interpreter_call_code" => ("code_interpreter_call", TextTarget::Member("code"), "code"),
            _ => return,
        };
        let done = action == "done";
        let Some(text) = event.remove(if done { whole } else { "delta" }).and_then(text_of) else { return };
        let index = |name: &str| index_of(event, name).unwrap_or(0);
        let (content_index, summary_index) = (index("content_index"), index("summary_index"));
        let logprobs = event.shift_remove("logprobs");
        let Some(item) = self.open_item(event, kind) else { return };
        let (members, name) = match place {
            TextTarget::Member(name) => (&mut item.members, name),
            TextTarget::Content(kind, name) => {
                (item.content.entry(content_index).or_insert_with(|| new_part(kind, name)), name)
            }
            TextTarget::Summary => {
                let part = item.summary.entry(summary_index);
                (part.or_insert_with(|| new_part("summary_text", "text")), "text")
            }
        };
        match members.get_mut(name) {
            Some(Value::String(known)) if !done => known.push_str(&text),
            _ => {
                members.insert(name.to_owned(), text.into());
            }
        }
        if let Some(Value::Array(logprobs)) = logprobs
            && !logprobs.is_empty()
        {
            if done {
                members.shift_remove("logprobs");
            }
            merge_members(members, Map::from_iter([("logprobs".to_owned(), logprobs.into())]));
        }
    }

    pub(super) fn document(&self) -> Value {
        let mut response = self.response.clone();
        let has_output =
            response.get("output").and_then(Value::as_array).is_some_and(|output| !output.is_empty());
        // Some servers end with a response whose output is empty.
        let is_whole = self.ended && has_output;
        if !is_whole && !self.output.is_empty() {
            response.insert("output".to_owned(), self.output.values().map(OutputItem::document).collect());
        }
        if response.is_empty() {
            response.insert("status".to_owned(), "in_progress".into());
        }
        shape::mend(&shapes::RESPONSE, Value::Object(response), RepairLevel::Whole)
    }

    pub(super) fn memory(&self) -> usize {
        let part = |part: &Map<String, Value>| size_of::<Map<String, Value>>() + members_memory(part);
        let parts = |parts: &BTreeMap<u64, Map<String, Value>>| parts.values().map(part).sum::<usize>();
        let items = self.output.values().map(|item| {
            size_of::<OutputItem>()
                + members_memory(&item.members)
                + parts(&item.content)
                + parts(&item.summary)
        });
        members_memory(&self.response) + members_memory(&self.last) + items.sum::<usize>()
    }
}

impl OutputItem {
    fn document(&self) -> Value {
        let mut members = self.members.clone();
        let is_list = |name: &str| self.members.get(name).is_none_or(Value::is_array);
        let list =
            |parts: &BTreeMap<u64, Map<String, Value>>| parts.values().cloned().map(Value::Object).collect();
        let kind = members.get("type").and_then(Value::as_str);
        let (is_message, is_reasoning) = (kind == Some("message"), kind == Some("reasoning"));
        if (is_message && is_list("content")) || !self.content.is_empty() {
            members.insert("content".to_owned(), list(&self.content));
        }
        if (is_reasoning && is_list("summary")) || !self.summary.is_empty() {
            members.insert("summary".to_owned(), list(&self.summary));
        }
        Value::Object(members)
    }
}

fn new_part(kind: &str, text: &str) -> Map<String, Value> {
    let mut part = Map::new();
    part.insert("type".to_owned(), kind.into());
    part.insert(text.to_owned(), "".into());
    if kind == "output_text" {
        part.insert("annotations".to_owned(), json!([]));
    }
    part
}

/// Takes the parts out of a list and leaves it empty. A member of another shape is left unchanged.
fn take_parts(members: &mut Map<String, Value>, name: &str) -> BTreeMap<u64, Map<String, Value>> {
    let Some(Value::Array(list)) = members.get_mut(name) else { return BTreeMap::new() };
    let parts = std::mem::take(list).into_iter().filter_map(|part| match part {
        Value::Object(part) => Some(part),
        _ => None,
    });
    (0..).zip(parts).collect()
}
