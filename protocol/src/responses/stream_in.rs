//! A provider's event stream.

use std::collections::HashMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::answer_in::{OWN, OWN_OF_USAGE, created, end_in, item_in};
use super::citations::{is_whole, read_annotation};
use super::usage;
use crate::conversation::{Choice, Citation, Delta, FinishReason, Input, Located, PartKind, Protocol};
use crate::members::RemainingFields;
use crate::provider_extra::StreamExtra;
use crate::{MalformedDocument, StreamIn, citations, failure};

/// Maximum number of items in a stream.
const MAX_ITEMS: usize = 10_000;

/// Reads the events of a stream. Data that a provider omits from its deltas is taken from the event that ends the item or
/// the response: some only send whole items.
#[derive(Default)]
pub(super) struct ResponsesStreamReader {
    is_started: bool,
    is_ended: bool,
    items: HashMap<u64, ItemReader>,
    calls: u32,
    /// Number of thoughts so far, and the id of the last reasoning item until one of its pieces reports it.
    thoughts: u32,
    thinking: Option<(u64, String)>,
    has_refusal: bool,
    /// Characters of the text so far, and where its last part begins: its item and part index.
    length: usize,
    part: (u64, u64, usize),
    citations: usize,
    /// Unread data, until the answer ends.
    unread: StreamExtra,
}

/// An output item, as far as it is known.
#[derive(Default)]
struct ItemReader {
    /// Its index among the calls.
    call: Option<u32>,
    /// Its index among the thoughts, and whether it is a summary.
    thought: Option<(u32, bool)>,
    has_pieces: bool,
    is_cited: bool,
    is_done: bool,
}

/// Event fields that are read; each may be anything. Fields that mean nothing to another protocol, or that an item's end
/// repeats, are listed here too: collecting them with the unread ones takes longer.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponsesEvent {
    r#type: Value,
    response: Value,
    item: Value,
    output_index: Value,
    summary_index: Value,
    content_index: Value,
    delta: Value,
    logprobs: Value,
    annotation: Value,
    #[serde(rename = "sequence_number")]
    _sequence_number: IgnoredAny,
    #[serde(rename = "item_id")]
    _item_id: IgnoredAny,
    #[serde(rename = "obfuscation")]
    _obfuscation: IgnoredAny,
    #[serde(rename = "annotation_index")]
    _annotation_index: IgnoredAny,
    #[serde(rename = "part")]
    _part: IgnoredAny,
    #[serde(rename = "text")]
    _text: IgnoredAny,
    #[serde(rename = "refusal")]
    _refusal: IgnoredAny,
    #[serde(rename = "arguments")]
    _arguments: IgnoredAny,
    #[serde(rename = "input")]
    _input: IgnoredAny,
    #[serde(rename = "name")]
    _name: IgnoredAny,
    #[serde(flatten)]
    unread: Map<String, Value>,
}

impl StreamIn for ResponsesStreamReader {
    fn event(
        &mut self,
        name: Option<&str>,
        data: &str,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), MalformedDocument> {
        if self.is_ended || data == "[DONE]" {
            return Ok(());
        }
        let mut event: ResponsesEvent = serde_json::from_str(data).map_err(|error| {
            // The parser's messages quote the input.
            MalformedDocument(format!(
                "an event is not an object, or not JSON from byte {} on",
                error.column()
            ))
        })?;
        let kind = event.r#type.as_str().or(name).unwrap_or_default().to_owned();
        // Servers that front others report errors in the chat format.
        let is_untyped = event.r#type.as_str().is_none_or(str::is_empty);
        let tells_error = event.unread.get("error").is_some_and(|error| !error.is_null());
        if kind == "error" || is_untyped && tells_error {
            self.is_ended = true;
            let error = serde_json::from_str(data).unwrap_or_default();
            deltas.push(Delta::Failed(failure::of_value(&error)));
            return Ok(());
        }
        if event.response.is_object() {
            self.start(&event.response, deltas);
        }
        // The unread fields of other events are repeated at the end of their item.
        if event.response.is_object() || event.item.is_object() || is_piece(&kind) {
            self.unread.unread(std::mem::take(&mut event.unread), "", &[]);
        }
        match kind.as_str() {
            "response.output_item.added" => self.added(&event, deltas),
            "response.output_item.done" => {
                let index = self.item(&event.output_index)?;
                self.done(index, event.item, deltas);
                Ok(())
            }
            "response.output_text.annotation.added" => self.annotated(event, deltas),
            "response.completed" | "response.incomplete" => self.complete(event.response, deltas),
            "response.failed" | "response.cancelled" => {
                self.is_ended = true;
                deltas.push(Delta::Failed(failure::of_value(&event.response["error"])));
                Ok(())
            }
            _ => self.piece(&kind, event, deltas),
        }
    }

    fn end(&mut self, _deltas: &mut Vec<Delta>) -> Result<(), MalformedDocument> {
        if self.is_ended {
            return Ok(());
        }
        Err(MalformedDocument("the stream ended before response.completed".to_owned()))
    }
}

impl ResponsesStreamReader {
    fn start(&mut self, response: &Value, deltas: &mut Vec<Delta>) {
        if !std::mem::replace(&mut self.is_started, true) {
            deltas.push(Delta::Started {
                id: response["id"].as_str().map(str::to_owned),
                model: response["model"].as_str().map(str::to_owned),
                created: created(response),
                service_tier: None,
            });
        }
    }

    /// The index of an item, which is registered if new.
    fn item(&mut self, index: &Value) -> Result<u64, MalformedDocument> {
        let index = index.as_u64().unwrap_or(0);
        if self.items.len() >= MAX_ITEMS && !self.items.contains_key(&index) {
            return Err(MalformedDocument(format!("the stream has more than {MAX_ITEMS} items")));
        }
        self.items.entry(index).or_default();
        Ok(index)
    }

    fn added(&mut self, event: &ResponsesEvent, deltas: &mut Vec<Delta>) -> Result<(), MalformedDocument> {
        let index = self.item(&event.output_index)?;
        let custom = match event.item["type"].as_str() {
            Some("function_call") => false,
            Some("custom_tool_call") => true,
            Some("reasoning") => {
                self.thinking = event.item["id"].as_str().map(|id| (index, id.to_owned()));
                return Ok(());
            }
            _ => return Ok(()),
        };
        let item = &event.item;
        if let (Some(id), Some(name)) = (item["call_id"].as_str(), item["name"].as_str()) {
            self.call(index, id.to_owned(), name.to_owned(), custom, deltas);
        }
        Ok(())
    }

    /// Begins a call and returns its index among the calls.
    fn call(&mut self, index: u64, id: String, name: String, custom: bool, deltas: &mut Vec<Delta>) -> u32 {
        let item = self.items.entry(index).or_default();
        if let Some(call) = item.call {
            return call;
        }
        let call = self.calls;
        self.calls = self.calls.saturating_add(1);
        item.call = Some(call);
        deltas.push(Delta::Call { choice: 0, call, id, name, custom, signature: None });
        call
    }

    /// An item's index among the thoughts. A text of another kind than the previous one is another thought.
    fn thought(&mut self, index: u64, summary: Option<bool>) -> u32 {
        let item = self.items.entry(index).or_default();
        match item.thought {
            Some((thought, is_summary)) if summary.is_none_or(|summary| summary == is_summary) => thought,
            _ => {
                let thought = self.thoughts;
                self.thoughts = self.thoughts.saturating_add(1);
                item.thought = Some((thought, summary.unwrap_or_default()));
                thought
            }
        }
    }

    fn think(&mut self, index: u64, part: &Value, text: String, summary: bool) -> Delta {
        let part = part.as_u64().and_then(|index| u32::try_from(index).ok()).unwrap_or(0);
        let id = self.thinking.take_if(|(item, _)| *item == index).map(|(_, id)| id);
        Delta::Thought { choice: 0, thought: self.thought(index, Some(summary)), id, part, text, summary }
    }

    fn piece(
        &mut self,
        kind: &str,
        event: ResponsesEvent,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), MalformedDocument> {
        let Value::String(text) = event.delta else { return Ok(()) };
        if !is_piece(kind) || text.is_empty() {
            return Ok(());
        }
        let index = self.item(&event.output_index)?;
        if kind == "response.output_text.delta" {
            let content = event.content_index.as_u64().unwrap_or_default();
            if (self.part.0, self.part.1) != (index, content) || self.length == 0 {
                self.part = (index, content, self.length);
            }
            self.length = self.length.saturating_add(text.chars().count());
        }
        let call = self.items.get(&index).and_then(|item| item.call);
        let delta = match kind {
            "response.output_text.delta" => {
                let logprobs = event.logprobs.as_array().is_some_and(|tokens| !tokens.is_empty());
                Delta::Text { choice: 0, text, logprobs: logprobs.then_some(event.logprobs) }
            }
            "response.refusal.delta" => {
                self.has_refusal = true;
                Delta::Refusal { choice: 0, text }
            }
            "response.reasoning_summary_text.delta" => self.think(index, &event.summary_index, text, true),
            "response.reasoning_text.delta" => self.think(index, &event.content_index, text, false),
            // Input of a call whose name must be known first; otherwise the end of the item reports all of it.
            _ => match call {
                Some(call) => Delta::CallInput { choice: 0, call, text },
                None => return Ok(()),
            },
        };
        self.items.entry(index).or_default().has_pieces = true;
        deltas.push(delta);
        Ok(())
    }

    fn annotated(&mut self, event: ResponsesEvent, deltas: &mut Vec<Delta>) -> Result<(), MalformedDocument> {
        let index = self.item(&event.output_index)?;
        self.items.entry(index).or_default().is_cited = true;
        let content = event.content_index.as_u64().unwrap_or_default();
        let (item, part, begin) = self.part;
        // An annotation on a part whose text did not arrive in pieces refers to text still to come.
        let begin = if (item, part) == (index, content) { begin } else { self.length };
        let citation = read_annotation(&event.annotation, begin);
        if citation.is_none() || !is_whole(&event.annotation) {
            self.extra(event.annotation, deltas);
        }
        if let Some(citation) = citation {
            self.cite(citation, deltas);
        }
        Ok(())
    }

    fn cite(&mut self, citation: Citation, deltas: &mut Vec<Delta>) {
        if self.citations < citations::MAX_CITATIONS {
            self.citations += 1;
            deltas.push(Delta::Citation { choice: 0, citation });
        }
    }

    /// An annotation of another kind.
    fn extra(&mut self, annotation: Value, deltas: &mut Vec<Delta>) {
        if self.citations < citations::MAX_CITATIONS {
            let at = format!("/annotation/{}", self.citations);
            self.citations += 1;
            deltas.push(Delta::Extra(Located::new(annotation, at)));
        }
    }

    /// Emits what the pieces of a now complete item omitted.
    fn done(&mut self, index: u64, whole: Value, deltas: &mut Vec<Delta>) {
        let item = self.items.entry(index).or_default();
        if std::mem::replace(&mut item.is_done, true) {
            return;
        }
        let (has_pieces, is_cited, mut choice) = (item.has_pieces, item.is_cited, Choice::default());
        // The text of an item that came in pieces is the last one.
        let (begin, mut length) = (self.length, 0);
        let mut rest = RemainingFields::default();
        item_in(whole, format!("/output/{index}"), &mut choice, &mut length, &mut rest);
        // Annotations with their own events were emitted when they arrived.
        let unread =
            rest.into_extra().into_iter().filter(|given| !(is_cited && given.at.ends_with("/annotations")));
        unread.for_each(|given| self.unread.extra(given));
        let begin = if has_pieces { begin.saturating_sub(length) } else { begin };
        if !has_pieces {
            self.length = self.length.saturating_add(length);
        }
        let mut logprobs = choice.logprobs;
        let cited = std::mem::take(&mut choice.citations);
        for part in choice.parts {
            match part.kind {
                PartKind::Call(call) => {
                    let (custom, input) = match call.input {
                        Input::Json(text) => (false, text),
                        Input::Text(text) => (true, text),
                    };
                    let call = self.call(index, call.id, call.name, custom, deltas);
                    if !has_pieces && !input.is_empty() {
                        deltas.push(Delta::CallInput { choice: 0, call, text: input });
                    }
                    deltas.push(Delta::CallDone { choice: 0, call });
                }
                PartKind::Thought(thought) => {
                    self.thinking.take_if(|(item, _)| *item == index);
                    let (summary, mut id) = (thought.summary, thought.id.clone());
                    let texts = thought.text.into_iter().enumerate().filter(|(_, text)| !text.is_empty());
                    for (part, text) in texts.filter(|_| !has_pieces) {
                        let part = u32::try_from(part).unwrap_or(u32::MAX);
                        let (choice, id) = (0, id.take());
                        let thought = self.thought(index, Some(summary));
                        deltas.push(Delta::Thought { choice, thought, id, part, text, summary });
                    }
                    if let Some(signature) = thought.signature {
                        let (choice, id, redacted) = (0, thought.id, false);
                        let thought = self.thought(index, None);
                        deltas.push(Delta::ThoughtSigned { choice, thought, id, signature, redacted });
                    }
                }
                PartKind::Text(text) if !has_pieces => {
                    let logprobs = if text.is_empty() { None } else { logprobs.take() };
                    deltas.push(Delta::Text { choice: 0, text, logprobs });
                }
                PartKind::Refusal(text) => {
                    self.has_refusal = true;
                    if !has_pieces {
                        deltas.push(Delta::Refusal { choice: 0, text });
                    }
                }
                PartKind::Other(value) => {
                    deltas.push(Delta::Other { choice: 0, source: Protocol::Responses, value });
                }
                _ => {}
            }
        }
        for citation in cited.into_iter().filter(|_| !is_cited) {
            let span = citation.span.and_then(|span| citations::moved(&span, begin));
            self.cite(Citation { span, ..citation }, deltas);
        }
    }

    fn complete(&mut self, mut response: Value, deltas: &mut Vec<Delta>) -> Result<(), MalformedDocument> {
        self.start(&response, deltas);
        self.is_ended = true;
        if let Some(Value::Array(items)) = response.get_mut("output").map(Value::take) {
            for (index, item) in (0..).zip(items) {
                let index = self.item(&Value::from(index))?;
                self.done(index, item, deltas);
            }
        }
        let end = match end_in(&response, &[]) {
            FinishReason::Stop if self.calls > 0 => FinishReason::ToolCalls,
            FinishReason::Stop if self.has_refusal => FinishReason::Refusal,
            end => end,
        };
        if let Value::Object(response) = &response {
            let unread = response.iter().filter(|(name, _)| !OWN.contains(&name.as_str()));
            let unread = unread.map(|(name, value)| (name.clone(), value.clone())).collect();
            self.unread.unread(unread, "/response", &[]);
            // The default tier isn't worth reporting.
            if let Some(tier) =
                response.get("service_tier").filter(|tier| tier.is_string() && **tier != "default")
            {
                self.unread.extra(Located::new(tier.clone(), "/response/service_tier"));
            }
            for (name, known) in [("usage", &OWN_OF_USAGE[..]), ("incomplete_details", &["reason"])] {
                if let Some(Value::Object(members)) = response.get(name) {
                    self.unread.unread(members.clone(), &format!("/response/{name}"), known);
                }
            }
        }
        deltas.extend(self.unread.take().map(Delta::Extra));
        deltas.push(Delta::Ended { choice: 0, end });
        deltas.extend(usage::read(&response["usage"]).map(Delta::Usage));
        deltas.push(Delta::Done);
        Ok(())
    }
}

/// Whether an event carries a piece of an item that is read.
fn is_piece(kind: &str) -> bool {
    matches!(
        kind,
        "response.output_text.delta"
            | "response.refusal.delta"
            | "response.reasoning_summary_text.delta"
            | "response.reasoning_text.delta"
            | "response.function_call_arguments.delta"
            | "response.custom_tool_call_input.delta"
    )
}
