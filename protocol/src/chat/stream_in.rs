//! Reads streams of the chat protocol.

mod calls;
mod thoughts;

use std::collections::HashSet;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use self::calls::StreamedCalls;
use self::thoughts::Thoughts;
use super::citations::{is_whole, read_annotation};
use super::{finish, reasoning, usage};
use crate::conversation::{Delta, FinishReason, Located};
use crate::provider_extra::StreamExtra;
use crate::{MalformedDocument, StreamIn, citations, failure};

/// The end marker of a stream.
const DONE: &str = "[DONE]";
/// Maximum number of choices: as many as a request can ask for.
const MAX_CHOICES: usize = 128;

/// Reads a provider's stream.
pub(crate) fn stream_in() -> Box<dyn StreamIn> {
    Box::new(ChatStreamReader::default())
}

#[derive(Default)]
struct ChatStreamReader {
    has_started: bool,
    is_over: bool,
    choices: Vec<OpenChoice>,
    /// Unread data, until the answer ends.
    unread: StreamExtra,
}

/// A choice that has started.
struct OpenChoice {
    index: u32,
    has_ended: bool,
    thoughts: Thoughts,
    calls: StreamedCalls,
    annotations: usize,
}

/// A chunk. Fields that a provider may get wrong harmlessly are read as any value. Fields that mean nothing to another
/// protocol are listed here too: collecting them with the unread ones would take longer than reading the rest.
#[derive(Deserialize)]
struct ChatChunk {
    #[serde(default)]
    id: Value,
    #[serde(default)]
    model: Value,
    #[serde(default)]
    created: Value,
    #[serde(default)]
    choices: Option<Vec<ChatChunkChoice>>,
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    error: Value,
    #[serde(default)]
    service_tier: Value,
    #[serde(default, rename = "object")]
    _object: IgnoredAny,
    #[serde(default, rename = "system_fingerprint")]
    _system_fingerprint: IgnoredAny,
    #[serde(default, rename = "obfuscation")]
    _obfuscation: IgnoredAny,
    #[serde(flatten)]
    unread: Map<String, Value>,
}

#[derive(Deserialize)]
struct ChatChunkChoice {
    #[serde(default)]
    index: Value,
    #[serde(default)]
    delta: Option<ChatChunkDelta>,
    #[serde(default)]
    finish_reason: Value,
    #[serde(default)]
    logprobs: Value,
    #[serde(flatten)]
    unread: Map<String, Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ChatChunkDelta {
    content: Value,
    refusal: Value,
    reasoning_content: Value,
    reasoning: Value,
    reasoning_details: Value,
    tool_calls: Option<Vec<Option<CallPiece>>>,
    function_call: Option<Callee>,
    annotations: Value,
    #[serde(rename = "role")]
    _role: IgnoredAny,
    #[serde(flatten)]
    unread: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct CallPiece {
    index: Value,
    id: Value,
    r#type: Value,
    function: Option<Callee>,
    custom: Option<Callee>,
    #[serde(flatten)]
    unread: Map<String, Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Callee {
    name: Value,
    arguments: Value,
    input: Value,
}

impl StreamIn for ChatStreamReader {
    fn event(
        &mut self,
        name: Option<&str>,
        data: &str,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), MalformedDocument> {
        let word = data.trim();
        if self.is_over || word.is_empty() && name != Some("error") {
            return Ok(());
        }
        if word == DONE {
            return self.finish(deltas);
        }
        let mut chunk: ChatChunk = serde_json::from_str(data).map_err(|error| {
            MalformedDocument(format!("an event of the provider is not a chat chunk: {error}"))
        })?;
        if !chunk.error.is_null() || name == Some("error") {
            self.is_over = true;
            let error = if chunk.error.is_null() {
                serde_json::from_str(data).unwrap_or_default()
            } else {
                chunk.error
            };
            deltas.push(Delta::Failed(failure::of_value(&error)));
            return Ok(());
        }
        self.keep_unread(&mut chunk);
        if !self.has_started {
            self.has_started = true;
            let text = |value: Value| if let Value::String(text) = value { Some(text) } else { None };
            let (id, model) = (text(chunk.id), text(chunk.model));
            deltas.push(Delta::Started { id, model, created: chunk.created.as_u64(), service_tier: None });
        }
        if chunk.choices.iter().flatten().any(|choice| choice.finish_reason.is_string()) {
            deltas.extend(self.unread.take().map(Delta::Extra));
        }
        for (place, choice) in chunk.choices.into_iter().flatten().enumerate() {
            let index = number(&choice.index).unwrap_or(place as u64);
            let index = u32::try_from(index).unwrap_or_default();
            self.choice(index)?.push(choice, deltas)?;
        }
        deltas.extend(usage::read(&chunk.usage).map(Delta::Usage));
        Ok(())
    }

    fn end(&mut self, deltas: &mut Vec<Delta>) -> Result<(), MalformedDocument> {
        if self.is_over {
            return Ok(());
        }
        // Some providers omit the end marker: the stream is complete if every choice is.
        if self.choices.is_empty() || !self.choices.iter().all(|choice| choice.has_ended) {
            return Err(incomplete());
        }
        self.finish(deltas)
    }
}

impl ChatStreamReader {
    /// Keeps the unread fields.
    fn keep_unread(&mut self, chunk: &mut ChatChunk) {
        let extra = &mut self.unread;
        extra.unread(std::mem::take(&mut chunk.unread), "", &[]);
        // The default tier isn't worth reporting.
        if chunk.service_tier.as_str().is_some_and(|tier| tier != "default") {
            extra.extra(Located::new(chunk.service_tier.take(), "/service_tier"));
        }
        if let Value::Object(counted) = &chunk.usage {
            extra.unread(counted.clone(), "/usage", &usage::KNOWN);
        }
        for (place, choice) in chunk.choices.iter_mut().flatten().enumerate() {
            if !choice.unread.is_empty() {
                extra.unread(std::mem::take(&mut choice.unread), &format!("/choices/{place}"), &[]);
            }
            if let Value::Object(logprobs) = &mut choice.logprobs
                && logprobs.len() > 1
            {
                let content = logprobs.swap_remove("content").unwrap_or_default();
                extra.unread(std::mem::take(logprobs), &format!("/choices/{place}/logprobs"), &[]);
                logprobs.insert("content".to_owned(), content);
            }
            let Some(delta) = &mut choice.delta else { continue };
            if delta.reasoning_details.is_array() {
                thoughts::keep_unread(&delta.reasoning_details, &format!("/choices/{place}/delta"), extra);
            }
            let calls = delta.tool_calls.iter_mut().flatten().flatten();
            let calls = calls.enumerate().filter(|(_, call)| !call.unread.is_empty());
            for (order, call) in calls {
                let index = number(&call.index).unwrap_or(order as u64);
                let at = format!("/choices/{place}/delta/tool_calls/{index}");
                extra.unread(std::mem::take(&mut call.unread), &at, &[]);
            }
            if !delta.unread.is_empty() {
                let at = format!("/choices/{place}/delta");
                extra.unread(std::mem::take(&mut delta.unread), &at, &[]);
            }
        }
    }

    /// Ends all choices. Errors: one has no finish reason, and half of a call. A provider that is stopped in the middle may
    /// still send its end marker.
    fn finish(&mut self, deltas: &mut Vec<Delta>) -> Result<(), MalformedDocument> {
        self.is_over = true;
        if self.choices.iter().any(|choice| !choice.has_ended && choice.calls.are_cut()) {
            return Err(incomplete());
        }
        deltas.extend(self.unread.take().map(Delta::Extra));
        for choice in &mut self.choices {
            if !choice.has_ended {
                choice.has_ended = true;
                deltas.push(Delta::Ended { choice: choice.index, end: FinishReason::Stop });
            }
        }
        deltas.push(Delta::Done);
        Ok(())
    }

    fn choice(&mut self, index: u32) -> Result<&mut OpenChoice, MalformedDocument> {
        if let Some(place) = self.choices.iter().position(|choice| choice.index == index) {
            return Ok(&mut self.choices[place]);
        }
        if self.choices.len() >= MAX_CHOICES {
            return Err(MalformedDocument(format!(
                "the provider's stream has more than {MAX_CHOICES} choices"
            )));
        }
        let place = self.choices.len();
        let thoughts = Thoughts::default();
        self.choices.push(OpenChoice {
            index,
            has_ended: false,
            thoughts,
            calls: StreamedCalls::default(),
            annotations: 0,
        });
        Ok(&mut self.choices[place])
    }
}

impl OpenChoice {
    fn push(&mut self, choice: ChatChunkChoice, deltas: &mut Vec<Delta>) -> Result<(), MalformedDocument> {
        // Some providers continue after a choice's finish reason.
        let ChatChunkChoice { delta, finish_reason, mut logprobs, .. } = choice;
        let mut delta = delta.unwrap_or_default();
        let index = self.index;
        let details = delta.reasoning_details.take();
        let shown =
            [delta.reasoning_content.take(), delta.reasoning.take(), reasoning::of_content(&delta.content)];
        // A set, and only if there are details: one packet may contain very many of both.
        let mut called = HashSet::new();
        if details.is_array() {
            called.extend(self.calls.ids());
            called.extend(delta.tool_calls.iter().flatten().flatten().filter_map(|call| call.id.as_str()));
        }
        let mut proofs = self.thoughts.push(index, details, shown, &called, deltas);
        let logprobs = logprobs.get_mut("content").map(Value::take).filter(Value::is_array);
        let text = text_of(delta.content);
        if !text.is_empty() || logprobs.is_some() {
            deltas.push(Delta::Text { choice: index, text, logprobs });
        }
        match text_of(delta.refusal) {
            text if text.is_empty() => {}
            text => deltas.push(Delta::Refusal { choice: index, text }),
        }
        self.annotate(delta.annotations, deltas);
        for (place, call) in delta.tool_calls.into_iter().flatten().flatten().enumerate() {
            self.calls.push(index, place, call, &mut proofs, deltas)?;
        }
        // The protocol's form before it had tools.
        if let Some(function) = delta.function_call {
            let call = CallPiece { function: Some(function), ..CallPiece::default() };
            self.calls.push(index, 0, call, &mut proofs, deltas)?;
        }
        deltas.extend(proofs.into_iter().filter_map(|proof| proof.untaken(index)));
        if let Some(word) = finish_reason.as_str().filter(|word| !word.is_empty() && !self.has_ended) {
            self.has_ended = true;
            deltas.push(Delta::Ended { choice: index, end: finish::end(word) });
        }
        Ok(())
    }

    fn annotate(&mut self, annotations: Value, deltas: &mut Vec<Delta>) {
        let Value::Array(annotations) = annotations else { return };
        for annotation in
            annotations.into_iter().take(citations::MAX_CITATIONS.saturating_sub(self.annotations))
        {
            let at = format!("/choices/{}/delta/annotations/{}", self.index, self.annotations);
            self.annotations += 1;
            let citation = read_annotation(&annotation);
            deltas.extend(citation.map(|citation| Delta::Citation { choice: self.index, citation }));
            if !is_whole(&annotation) {
                deltas.push(Delta::Extra(Located::new(annotation, at)));
            }
        }
    }
}

fn incomplete() -> MalformedDocument {
    MalformedDocument("the provider's stream ended before its answer was complete".to_owned())
}

/// A number, even if written as text; `None` if it isn't an index.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// A string, or the texts of a list of parts; empty if it is neither.
fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}
