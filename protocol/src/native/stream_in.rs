//! A provider's stream: each document is a piece of the response.

use std::collections::HashMap;

use serde_json::Value;

use super::answer::{Ids, MAX_CANDIDATES, OWN_OF_CANDIDATE, end_in, is_blocked, is_result, parts_in};
use super::grounding::{self, CandidateText};
use super::media::medium_out;
use super::{logprobs, usage};
use crate::conversation::{Delta, FinishReason, Input, Located, PartKind, Protocol, Thought};
use crate::members::{Members, RemainingFields};
use crate::provider_extra::StreamExtra;
use crate::{MalformedDocument, StreamIn, citations, failure};

/// Reads the documents of a stream.
pub(super) struct NativeStreamReader {
    /// `None` until the stream starts.
    ids: Option<Ids>,
    choices: HashMap<u32, CandidateReader>,
    /// Input and output tokens reported so far.
    tokens: Option<u64>,
    /// How many more citations may be emitted.
    citations_left: usize,
    /// Data that the neutral form can't represent.
    extra: StreamExtra,
    is_ended: bool,
}

impl Default for NativeStreamReader {
    fn default() -> Self {
        Self {
            ids: None,
            choices: HashMap::new(),
            tokens: None,
            citations_left: citations::MAX_CITATIONS,
            extra: StreamExtra::default(),
            is_ended: false,
        }
    }
}

/// A candidate, as far as it is known.
#[derive(Default)]
struct CandidateReader {
    calls: u32,
    /// Number of thoughts so far, and whether the last one may continue.
    thoughts: u32,
    is_thinking: bool,
    text_so_far: CandidateText,
    is_ended: bool,
}

impl StreamIn for NativeStreamReader {
    fn event(
        &mut self,
        _name: Option<&str>,
        data: &str,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), MalformedDocument> {
        if self.is_ended || data == "[DONE]" {
            return Ok(());
        }
        let mut document: Value = serde_json::from_str(data).map_err(|error| {
            // The parser's messages quote the input.
            MalformedDocument(format!("a document of the stream is not JSON from byte {} on", error.column()))
        })?;
        // A single error may arrive as a list.
        if let Value::Array(documents) = &mut document {
            document = documents.first_mut().map(Value::take).unwrap_or_default();
        }
        if !document.is_object() {
            return Err(MalformedDocument("a document of the stream is not an object".to_owned()));
        }
        if !document["error"].is_null() {
            self.is_ended = true;
            deltas.push(Delta::Failed(failure::of_value(&document)));
            return Ok(());
        }
        self.start(&document, deltas);
        if let Value::Array(candidates) = document["candidates"].take() {
            for (place, candidate) in (0..).zip(candidates) {
                self.candidate(place, candidate, deltas)?;
            }
        }
        if !document["promptFeedback"].is_null() {
            self.extra.extra(Located::new(document["promptFeedback"].clone(), "/promptFeedback"));
        }
        if is_blocked(&document) {
            self.finish(0, FinishReason::Filtered, deltas);
        }
        if let Some(usage) = usage::read(&document["usageMetadata"]) {
            let tokens = usage.input.unwrap_or(0).saturating_add(usage.output.unwrap_or(0));
            // Every document reports it, and it only grows.
            if self.tokens.is_none_or(|reported| tokens > reported) {
                self.tokens = Some(tokens);
                deltas.push(Delta::Usage(usage));
            }
        }
        Ok(())
    }

    fn end(&mut self, deltas: &mut Vec<Delta>) -> Result<(), MalformedDocument> {
        if self.is_ended {
            return Ok(());
        }
        // The protocol has no end marker other than the candidates' finish reasons.
        if self.choices.is_empty() || self.choices.values().any(|choice| !choice.is_ended) {
            return Err(MalformedDocument("the stream ended before the last finishReason".to_owned()));
        }
        self.is_ended = true;
        deltas.push(Delta::Done);
        Ok(())
    }
}

impl NativeStreamReader {
    fn start(&mut self, document: &Value, deltas: &mut Vec<Delta>) {
        if self.ids.is_none() {
            self.ids = Some(Ids::new(document["responseId"].as_str()));
            deltas.push(Delta::Started {
                id: document["responseId"].as_str().map(str::to_owned),
                model: document["modelVersion"].as_str().map(str::to_owned),
                created: None,
                service_tier: None,
            });
        }
    }

    /// `place`: the candidate's index if it doesn't state one.
    fn candidate(
        &mut self,
        place: u64,
        mut candidate: Value,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), MalformedDocument> {
        let index = candidate["index"].as_u64().unwrap_or(place);
        let choice = u32::try_from(index).ok().filter(|index| (*index as usize) < MAX_CANDIDATES);
        let Some(index) = choice else {
            return Err(MalformedDocument(format!("/candidates: an index is {MAX_CANDIDATES} or more")));
        };
        let parts = candidate.pointer_mut("/content/parts").map(Value::take).unwrap_or_default();
        let mut logprobs = logprobs::tokens(&candidate);
        let choice = self.choices.entry(index).or_default();
        if choice.is_ended {
            return Ok(());
        }
        if let (Value::Array(parts), Some(ids)) = (parts, &mut self.ids) {
            for part in parts {
                if is_result(&part) {
                    choice.is_thinking = false;
                    deltas.push(Delta::Other { choice: index, source: Protocol::Native, value: part });
                    continue;
                }
                for kind in parts_in(part, "", ids, &mut RemainingFields::default()) {
                    choice.push_part(index, kind, &mut logprobs, deltas);
                }
            }
        }
        let calls = choice.calls > 0;
        let end = candidate["finishReason"].as_str().filter(|word| !word.is_empty());
        let end = end.map(|word| end_in(word, calls));
        if let Ok(mut candidate) = Members::read(candidate, format!("/candidates/{index}")) {
            let mut rest = RemainingFields::default();
            let cited =
                grounding::read(&mut candidate, &choice.text_so_far, &mut self.citations_left, &mut rest);
            deltas.extend(cited.into_iter().map(|citation| Delta::Citation { choice: index, citation }));
            rest.keep(candidate, &OWN_OF_CANDIDATE);
            let extra = rest.into_extra().into_iter().filter(|given| !given.at.ends_with("/content"));
            extra.for_each(|given| self.extra.extra(given));
        }
        if let Some(end) = end {
            self.finish(index, end, deltas);
        }
        Ok(())
    }

    fn finish(&mut self, index: u32, end: FinishReason, deltas: &mut Vec<Delta>) {
        let choice = self.choices.entry(index).or_default();
        if !std::mem::replace(&mut choice.is_ended, true) {
            deltas.extend(self.extra.take().map(Delta::Extra));
            deltas.push(Delta::Ended { choice: index, end });
        }
    }
}

impl CandidateReader {
    /// Emits a piece of a thought. A thought without a proof continues with the next piece; a proof on a part that isn't
    /// a thought is a thought of its own.
    fn think(&mut self, choice: u32, piece: Thought, deltas: &mut Vec<Delta>) {
        let Thought { mut text, summary, signature, redacted, .. } = piece;
        text.retain(|text| !text.is_empty());
        if text.is_empty() && signature.is_none() {
            return;
        }
        let goes_on = std::mem::replace(&mut self.is_thinking, summary && signature.is_none());
        if !(goes_on && summary) {
            self.thoughts = self.thoughts.saturating_add(1);
        }
        let thought = self.thoughts.saturating_sub(1);
        let texts = text.into_iter();
        deltas.extend(texts.map(|text| Delta::Thought { choice, thought, id: None, part: 0, text, summary }));
        let proof = signature.map(|signature| Delta::ThoughtSigned {
            choice,
            thought,
            id: None,
            signature,
            redacted,
        });
        deltas.extend(proof);
    }

    fn push_part(
        &mut self,
        choice: u32,
        kind: PartKind,
        logprobs: &mut Option<Value>,
        deltas: &mut Vec<Delta>,
    ) {
        // An empty part doesn't end a thought.
        let is_nothing = matches!(&kind, PartKind::Text(text) if text.is_empty());
        if !is_nothing && !matches!(kind, PartKind::Thought(_)) {
            self.is_thinking = false;
        }
        match kind {
            PartKind::Text(text) if text.is_empty() => {}
            PartKind::Text(text) => {
                self.text_so_far.piece(&text);
                deltas.push(Delta::Text { choice, text, logprobs: logprobs.take() });
            }
            PartKind::Thought(thought) => self.think(choice, thought, deltas),
            PartKind::Call(tool_call) => {
                let (custom, text) = match tool_call.input {
                    Input::Json(text) => (false, text),
                    Input::Text(text) => (true, text),
                };
                let call = self.calls;
                self.calls = self.calls.saturating_add(1);
                deltas.push(Delta::Call {
                    choice,
                    call,
                    id: tool_call.id,
                    name: tool_call.name,
                    custom,
                    signature: tool_call.signature,
                });
                deltas.push(Delta::CallInput { choice, call, text });
                deltas.push(Delta::CallDone { choice, call });
            }
            PartKind::Other(value) => deltas.push(Delta::Other { choice, source: Protocol::Native, value }),
            PartKind::Image(image) => deltas.push(Delta::Image { choice, image }),
            // The neutral form has no pieces for other media.
            PartKind::Audio(media) | PartKind::File(media) => {
                let value = medium_out(media, "application/octet-stream").map(Value::Object);
                let other = value.map(|value| Delta::Other { choice, source: Protocol::Native, value });
                deltas.extend(other);
            }
            PartKind::Refusal(_) | PartKind::Result(_) => {}
        }
    }
}
