//! Reads streams of the messages protocol.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::citations::{CITATIONS, is_whole, read as read_citation};
use super::{stop_reason, usage};
use crate::conversation::{Citation, Delta, FinishReason, Located, Protocol, Usage};
use crate::provider_extra::StreamExtra;
use crate::{MalformedDocument, StreamIn, citations, failure};

/// Maximum number of tool calls.
const MAX_CALLS: u32 = 1024;
/// Maximum size of the data of a block that is buffered until it ends: a signature, or the input of a block of another
/// kind.
const MAX_KEPT_BYTES: usize = 1024 * 1024;

/// Fields of a message that are read, or mean nothing to another protocol.
const OWN: [&str; 8] = ["id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"];
/// The same for the start of a block.
const OWN_OF_BLOCK: [&str; 9] =
    ["type", "text", CITATIONS, "thinking", "signature", "data", "id", "name", "input"];

/// Reads a provider's stream.
pub(crate) fn stream_in() -> Box<dyn StreamIn> {
    Box::new(MessagesStreamReader::default())
}

#[derive(Default)]
struct MessagesStreamReader {
    has_started: bool,
    has_ended: bool,
    is_over: bool,
    usage: Usage,
    calls: u32,
    /// Number of thoughts so far.
    thoughts: u32,
    open: InputBlock,
    /// Characters of the text so far.
    length: usize,
    citations: usize,
    /// Unread data, until the answer ends.
    unread: StreamExtra,
}

/// The block that has started.
#[derive(Default)]
enum InputBlock {
    #[default]
    None,
    /// With the position where it begins, and its citations.
    Text(usize, Vec<Citation>),
    /// With its index among the thoughts, and the proof so far.
    Thought(u32, String),
    /// With the input from its start event, until a piece arrives.
    Call { number: u32, input: Option<String> },
    /// A block of another kind, with the pieces of its input.
    Other(Value, String),
}

/// An event. Fields that a provider may get wrong harmlessly are read as any value.
#[derive(Deserialize, Default)]
#[serde(default)]
struct MessagesEvent {
    r#type: String,
    message: Value,
    content_block: Value,
    delta: MessagesDelta,
    usage: Value,
    error: Value,
    #[serde(rename = "index")]
    _index: IgnoredAny,
    #[serde(flatten)]
    unread: Map<String, Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct MessagesDelta {
    r#type: Value,
    text: Value,
    thinking: Value,
    signature: Value,
    partial_json: Value,
    stop_reason: Value,
    stop_sequence: Value,
    citation: Value,
    #[serde(flatten)]
    unread: Map<String, Value>,
}

impl StreamIn for MessagesStreamReader {
    fn event(
        &mut self,
        name: Option<&str>,
        data: &str,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), MalformedDocument> {
        let is_empty = data.trim().is_empty() && name != Some("error");
        if self.is_over || is_empty || name == Some("ping") {
            return Ok(());
        }
        let mut event: MessagesEvent = serde_json::from_str(data).map_err(|error| {
            MalformedDocument(format!("an event of the provider is not a message event: {error}"))
        })?;
        let kind = std::mem::take(&mut event.r#type);
        let kind = match &*kind {
            // Servers that front others report errors in the chat format.
            "" if !event.error.is_null() => "error",
            "" => name.unwrap_or_default(),
            kind => kind,
        };
        if kind.starts_with("message_") || kind.starts_with("content_block_") {
            self.keep_unread(&mut event);
        }
        match kind {
            "message_start" => self.start(event.message, deltas),
            "content_block_start" => self.open(event.content_block, deltas)?,
            "content_block_delta" => self.piece(event.delta, deltas)?,
            "content_block_stop" => self.close(deltas),
            "message_delta" => {
                self.close(deltas);
                if event.usage.is_object() {
                    self.usage = usage::read(&event.usage, self.usage).unwrap_or(self.usage);
                    deltas.push(Delta::Usage(self.usage));
                }
                let end = stop_reason::end(&event.delta.stop_reason, &event.delta.stop_sequence);
                if let Some(end) = end.filter(|_| !self.has_ended) {
                    self.has_ended = true;
                    deltas.extend(self.unread.take().map(Delta::Extra));
                    deltas.push(Delta::Ended { choice: 0, end });
                }
            }
            "message_stop" => self.finish(deltas),
            "error" => {
                self.is_over = true;
                deltas.push(Delta::Failed(failure::of_value(&event.error)));
            }
            // Unknown kinds of events carry nothing of the answer.
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, _: &mut Vec<Delta>) -> Result<(), MalformedDocument> {
        // The protocol guarantees a final event: a stop reason is not the end (decision 0033).
        if self.is_over {
            return Ok(());
        }
        Err(MalformedDocument("the provider's stream ended before its answer was complete".to_owned()))
    }
}

impl MessagesStreamReader {
    /// Keeps the unread fields. Blocks of other kinds are reported as a whole.
    fn keep_unread(&mut self, event: &mut MessagesEvent) {
        let extra = &mut self.unread;
        extra.unread(std::mem::take(&mut event.unread), "", &[]);
        extra.unread(std::mem::take(&mut event.delta.unread), "/delta", &[]);
        if let Value::Object(counted) = &event.usage {
            extra.unread(counted.clone(), "/usage", &usage::KNOWN);
        }
        if let Value::Object(message) = &event.message {
            if let Some(Value::Object(counted)) = message.get("usage") {
                extra.unread(counted.clone(), "/usage", &usage::KNOWN);
                // The default tier isn't worth reporting.
                if let Some(tier) = counted.get("service_tier").filter(|tier| **tier != "standard") {
                    extra.extra(Located::new(tier.clone(), "/usage/service_tier"));
                }
            }
            if message.keys().any(|name| !OWN.contains(&name.as_str())) {
                extra.unread(message.clone(), "/message", &OWN);
            }
        }
        let kind = event.content_block["type"].as_str().unwrap_or_default();
        if let ("text" | "thinking" | "redacted_thinking" | "tool_use", Value::Object(block)) =
            (kind, &event.content_block)
            && block.keys().any(|name| !OWN_OF_BLOCK.contains(&name.as_str()))
        {
            extra.unread(block.clone(), "/content_block", &OWN_OF_BLOCK);
        }
    }

    fn start(&mut self, mut message: Value, deltas: &mut Vec<Delta>) {
        if self.has_started {
            return;
        }
        self.has_started = true;
        let id = take_text(&mut message, "id");
        let model = take_text(&mut message, "model");
        deltas.push(Delta::Started { id, model, created: None, service_tier: None });
        if message["usage"].is_object() {
            self.usage = usage::read(&message["usage"], self.usage).unwrap_or(self.usage);
            deltas.push(Delta::Usage(self.usage));
        }
    }

    fn open(&mut self, mut block: Value, deltas: &mut Vec<Delta>) -> Result<(), MalformedDocument> {
        self.close(deltas);
        let kind = take_text(&mut block, "type").unwrap_or_default();
        match kind.as_str() {
            "text" => {
                self.open = InputBlock::Text(self.length, Vec::new());
                self.text(take_text(&mut block, "text"), deltas);
                let citations = block.get_mut(CITATIONS).and_then(Value::as_array_mut);
                for citation in citations.into_iter().flatten() {
                    self.cite(citation.take(), deltas);
                }
            }
            "thinking" => {
                let thought = self.next_thought();
                self.open =
                    InputBlock::Thought(thought, take_text(&mut block, "signature").unwrap_or_default());
                self.think(take_text(&mut block, "thinking"), deltas);
            }
            "redacted_thinking" => {
                let signature = take_text(&mut block, "data").unwrap_or_default();
                let thought = self.next_thought();
                deltas.push(Delta::ThoughtSigned { choice: 0, thought, id: None, signature, redacted: true });
            }
            "tool_use" => {
                // The sequencer generates an id, and drops calls without a name.
                let id = take_text(&mut block, "id").unwrap_or_default();
                let name = take_text(&mut block, "name").unwrap_or_default();
                if self.calls >= MAX_CALLS {
                    return Err(MalformedDocument(format!(
                        "an answer of the provider has more than {MAX_CALLS} calls"
                    )));
                }
                let number = self.calls;
                self.calls += 1;
                let input = match &block["input"] {
                    Value::Object(_) => block["input"].to_string(),
                    // Some providers write the object as text.
                    Value::String(text) if !text.is_empty() => text.clone(),
                    _ => "{}".to_owned(),
                };
                self.open = InputBlock::Call { number, input: Some(input) };
                deltas.push(Delta::Call {
                    choice: 0,
                    call: number,
                    id,
                    name,
                    custom: false,
                    signature: None,
                });
            }
            _ => {
                if let Value::Object(members) = &mut block {
                    members.insert("type".to_owned(), kind.into());
                }
                self.open = InputBlock::Other(block, String::new());
            }
        }
        Ok(())
    }

    fn piece(&mut self, piece: MessagesDelta, deltas: &mut Vec<Delta>) -> Result<(), MalformedDocument> {
        let string = |value: Value| if let Value::String(text) = value { Some(text) } else { None };
        match piece.r#type.as_str() {
            Some("text_delta") => self.text(string(piece.text), deltas),
            Some("citations_delta") => self.cite(piece.citation, deltas),
            Some("thinking_delta") => self.think(string(piece.thinking), deltas),
            Some("signature_delta") => {
                if let (InputBlock::Thought(_, known), Some(more)) = (&mut self.open, string(piece.signature))
                {
                    keep(known, &more)?;
                }
            }
            Some("input_json_delta") => {
                let more = string(piece.partial_json).unwrap_or_default();
                match &mut self.open {
                    InputBlock::Call { .. } if more.is_empty() => {}
                    InputBlock::Call { number, input } => {
                        *input = None;
                        deltas.push(Delta::CallInput { choice: 0, call: *number, text: more });
                    }
                    InputBlock::Other(_, known) => keep(known, &more)?,
                    _ => {
                        return Err(MalformedDocument(
                            "the provider sent tool input without a tool call".to_owned(),
                        ));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn text(&mut self, text: Option<String>, deltas: &mut Vec<Delta>) {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return };
        self.length = self.length.saturating_add(text.chars().count());
        deltas.push(Delta::Text { choice: 0, text, logprobs: None });
    }

    /// The index of a thought that begins.
    fn next_thought(&mut self) -> u32 {
        let thought = self.thoughts;
        self.thoughts = self.thoughts.saturating_add(1);
        thought
    }

    /// Emits a piece of a thought. Outside a thinking block, it is a thought of its own.
    fn think(&mut self, text: Option<String>, deltas: &mut Vec<Delta>) {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return };
        let thought = match self.open {
            InputBlock::Thought(thought, _) => thought,
            _ => self.next_thought(),
        };
        deltas.push(Delta::Thought { choice: 0, thought, id: None, part: 0, text, summary: false });
    }

    /// Buffers a citation until its text is complete. One of another kind is emitted immediately.
    fn cite(&mut self, citation: Value, deltas: &mut Vec<Delta>) {
        if let InputBlock::Text(begin, citations) = &mut self.open
            && self.citations < citations::MAX_CITATIONS
        {
            let at = format!("/delta/citation/{}", self.citations);
            self.citations += 1;
            let read = read_citation(&citation, *begin..*begin);
            if read.is_none() || !is_whole(&citation) {
                deltas.push(Delta::Extra(Located::new(citation, at)));
            }
            citations.extend(read);
        }
    }

    fn close(&mut self, deltas: &mut Vec<Delta>) {
        match std::mem::take(&mut self.open) {
            InputBlock::Text(begin, citations) => {
                let span = begin..self.length;
                deltas.extend(citations.into_iter().map(|citation| Delta::Citation {
                    choice: 0,
                    citation: Citation { span: Some(span.clone()), ..citation },
                }));
            }
            InputBlock::Thought(thought, signature) if !signature.is_empty() => {
                deltas.push(Delta::ThoughtSigned {
                    choice: 0,
                    thought,
                    id: None,
                    signature,
                    redacted: false,
                });
            }
            InputBlock::Call { number, input } => {
                deltas.extend(input.map(|text| Delta::CallInput { choice: 0, call: number, text }));
                deltas.push(Delta::CallDone { choice: 0, call: number });
            }
            InputBlock::Other(mut value, input) => {
                if let (Value::Object(members), Ok(input)) =
                    (&mut value, serde_json::from_str::<Value>(&input))
                {
                    members.insert("input".to_owned(), input);
                }
                deltas.push(Delta::Other { choice: 0, source: Protocol::Messages, value });
            }
            _ => {}
        }
    }

    fn finish(&mut self, deltas: &mut Vec<Delta>) {
        self.close(deltas);
        self.is_over = true;
        deltas.extend(self.unread.take().map(Delta::Extra));
        if !self.has_ended {
            deltas.push(Delta::Ended { choice: 0, end: FinishReason::Stop });
        }
        deltas.push(Delta::Done);
    }
}

fn take_text(object: &mut Value, name: &str) -> Option<String> {
    match object.get_mut(name).map(Value::take) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

fn keep(known: &mut String, more: &str) -> Result<(), MalformedDocument> {
    if known.len() + more.len() > MAX_KEPT_BYTES {
        return Err(MalformedDocument(format!(
            "a block of the provider is larger than {MAX_KEPT_BYTES} bytes"
        )));
    }
    known.push_str(more);
    Ok(())
}
