//! A client's stream: each document is a piece of the response. Calls can't be split, so each is buffered until complete.
//! The candidates' finish reasons are in the last document, with the usage.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::answer::{MAX_CANDIDATES, candidate, end_of, end_out};
use super::grounding::{self, CandidateText, GROUNDING};
use super::parts::Parts;
use super::{logprobs, usage};
use crate::conversation::{
    Citation, Delta, Failure, FailureKind, FinishReason, Input, PartKind, Protocol, Thought, ToolCall, Usage,
};
use crate::members::object;
use crate::provider_extra::StreamExtra;
use crate::{ResponseContext, StreamOut, failure, frames};

/// Maximum size of the input of a call, in bytes.
const MAX_INPUT: usize = 16 << 20;

/// Writes the documents of a stream.
pub(super) struct NativeStreamWriter {
    context: ResponseContext,
    /// The provider's id of the response.
    id: Option<String>,
    choices: BTreeMap<u32, CandidateWriter>,
    usage: Option<Usage>,
    provider_extra: StreamExtra,
    is_ended: bool,
}

#[derive(Default)]
struct CandidateWriter {
    /// A call that isn't complete yet, and its index among the calls.
    call: Option<(u32, ToolCall)>,
    /// The thought that the last part belongs to.
    thought: Option<u32>,
    end: Option<FinishReason>,
    refuses: bool,
    text_so_far: CandidateText,
    citations: Vec<Citation>,
}

impl StreamOut for NativeStreamWriter {
    fn delta(&mut self, delta: Delta, bytes: &mut Vec<u8>) {
        if self.is_ended {
            return;
        }
        match delta {
            Delta::Started { id, .. } => self.id = id,
            Delta::Text { choice, text, logprobs } => {
                if let Some(mut parts) = self.parts(choice) {
                    parts.text(&text);
                    self.write(choice, parts, logprobs.as_ref(), bytes);
                    self.choices.entry(choice).or_default().text_so_far.piece(&text);
                }
            }
            Delta::Refusal { choice, text } => {
                if let Some(mut parts) = self.parts(choice) {
                    parts.text(&text);
                    self.write(choice, parts, None, bytes);
                    self.choices.entry(choice).or_default().refuses = true;
                }
            }
            Delta::Thought { choice, thought, text, summary, .. } => {
                if let Some(mut parts) = self.parts(choice) {
                    parts.thought(Thought { text: vec![text], summary, ..Thought::default() });
                    self.write(choice, parts, None, bytes);
                    self.choices.entry(choice).or_default().thought = Some(thought);
                }
            }
            Delta::ThoughtSigned { choice, thought, signature, redacted, .. } => {
                let open = self.choices.get(&choice).and_then(|choice| choice.thought);
                if let Some(mut parts) = self.parts(choice) {
                    // As a part of the open thought, without text; otherwise as a thought of its own.
                    let is_of_open = open == Some(thought) && !redacted;
                    let text = if is_of_open { vec![String::new()] } else { Vec::new() };
                    parts.thought(Thought {
                        text,
                        signature: Some(signature),
                        redacted,
                        ..Thought::default()
                    });
                    self.write(choice, parts, None, bytes);
                }
            }
            Delta::Call { choice, call, id, name, custom, signature } => {
                if let Some(parts) = self.parts(choice) {
                    self.write(choice, parts, None, bytes);
                    let input = if custom { Input::Text(String::new()) } else { Input::Json(String::new()) };
                    let waiting = &mut self.choices.entry(choice).or_default().call;
                    *waiting = Some((call, ToolCall { id, name, input, signature }));
                }
            }
            Delta::CallInput { choice, call, text } => self.input(choice, call, &text, bytes),
            Delta::Image { choice, image } => {
                if let Some(mut parts) = self.parts(choice) {
                    if parts.medium(PartKind::Image(image.clone())) {
                        self.write(choice, parts, None, bytes);
                    } else {
                        self.write(choice, parts, None, bytes);
                        self.provider_extra.image(image, Protocol::Native);
                    }
                }
            }
            Delta::Other { choice, source: Protocol::Native, value: Value::Object(members) } => {
                if let Some(mut parts) = self.parts(choice) {
                    parts.push(members);
                    self.write(choice, parts, None, bytes);
                }
            }
            Delta::Citation { choice, citation } if (choice as usize) < MAX_CANDIDATES => {
                self.choices.entry(choice).or_default().citations.push(citation);
            }
            // The next part ends a call.
            Delta::Citation { .. } | Delta::CallDone { .. } => {}
            Delta::Other { value, .. } => self.provider_extra.other(value),
            Delta::Extra(given) => self.provider_extra.extra(given),
            Delta::Usage(usage) => self.usage = Some(usage),
            Delta::Ended { choice, end } => {
                if let Some(parts) = self.parts(choice) {
                    self.provider_extra.end(choice, &end, Protocol::Native);
                    self.write(choice, parts, None, bytes);
                    let open = self.choices.entry(choice).or_default();
                    open.end = Some(end_of(end, open.refuses));
                }
            }
            Delta::Failed(failure) => self.fail(&failure, bytes),
            Delta::Done => self.complete(bytes),
        }
    }

    fn fail(&mut self, failure: &Failure, bytes: &mut Vec<u8>) {
        if std::mem::replace(&mut self.is_ended, true) {
            return;
        }
        let code = failure::code_of(failure.kind);
        let error = json!({ "error": {
            "code": code.native_http, "message": failure.message, "status": code.native_status, "details": [],
        }});
        frames::data(&error, bytes);
    }
}

impl NativeStreamWriter {
    pub(super) fn new(context: ResponseContext) -> Self {
        Self {
            context,
            id: None,
            choices: BTreeMap::new(),
            usage: None,
            provider_extra: StreamExtra::default(),
            is_ended: false,
        }
    }

    /// The parts for a choice's next document: the call that was buffered. `None`: there is no such choice.
    fn parts(&mut self, choice: u32) -> Option<Parts> {
        if choice as usize >= MAX_CANDIDATES {
            return None;
        }
        let mut parts = Parts::of_answer();
        let open = self.choices.entry(choice).or_default();
        open.thought = None;
        if let Some((_, call)) = open.call.take() {
            parts.call(call);
        }
        Some(parts)
    }

    fn input(&mut self, choice: u32, place: u32, text: &str, bytes: &mut Vec<u8>) {
        let open = self.choices.get_mut(&choice).and_then(|choice| choice.call.as_mut());
        let Some((_, call)) = open.filter(|(open, _)| *open == place) else {
            return self.fail_for("the provider mixed the pieces of several calls", bytes);
        };
        let (Input::Json(input) | Input::Text(input)) = &mut call.input;
        if input.len().saturating_add(text.len()) > MAX_INPUT {
            return self.fail_for(&format!("the input of a call is longer than {MAX_INPUT} bytes"), bytes);
        }
        input.push_str(text);
    }

    fn write(&self, choice: u32, parts: Parts, logprobs: Option<&Value>, bytes: &mut Vec<u8>) {
        let parts = parts.finish();
        if parts.is_empty() {
            return;
        }
        let mut candidate = candidate(choice as usize, parts);
        if let Some(tokens) = logprobs {
            candidate.insert("logprobsResult".to_owned(), logprobs::result(tokens));
        }
        frames::data(&self.document(vec![Value::Object(candidate)]), bytes);
    }

    fn document(&self, candidates: Vec<Value>) -> Map<String, Value> {
        let id = self.id.as_ref().unwrap_or(&self.context.id);
        object([
            ("candidates", candidates.into()),
            ("modelVersion", json!(self.context.model)),
            ("responseId", json!(id)),
        ])
    }

    fn complete(&mut self, bytes: &mut Vec<u8>) {
        self.is_ended = true;
        // Some providers send calls after a choice's finish reason.
        let waiting: Vec<u32> =
            self.choices.iter().filter(|(_, open)| open.call.is_some()).map(|(index, _)| *index).collect();
        for index in waiting {
            if let Some(parts) = self.parts(index) {
                self.write(index, parts, None, bytes);
            }
        }
        if self.choices.is_empty() {
            self.choices.insert(0, CandidateWriter::default());
        }
        let candidates = self.choices.iter().map(|(index, choice)| {
            let mut candidate = candidate(*index as usize, Vec::new());
            let end = choice.end.as_ref().unwrap_or(&FinishReason::Stop);
            candidate.insert("finishReason".to_owned(), json!(end_out(end)));
            if !choice.citations.is_empty() {
                let metadata = grounding::write(&choice.citations, &choice.text_so_far);
                candidate.insert(GROUNDING.to_owned(), metadata.into());
            }
            Value::Object(candidate)
        });
        let mut document = self.document(candidates.collect());
        document.extend(self.usage.map(|usage| ("usageMetadata".to_owned(), usage::write(usage))));
        self.provider_extra.add(&mut document);
        frames::data(&document, bytes);
    }

    fn fail_for(&mut self, message: &str, bytes: &mut Vec<u8>) {
        let message = message.to_owned();
        self.fail(&Failure::new(FailureKind::Server, message), bytes);
    }
}
