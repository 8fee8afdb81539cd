//! Writes streams of the chat protocol.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::citations::write_annotation;
use super::{finish, reasoning, usage};
use crate::conversation::{Delta, Failure, FinishReason, Protocol, Usage};
use crate::members::object;
use crate::provider_extra::StreamExtra;
use crate::{ResponseContext, StreamOut, failure, frames};

/// Writes a client's stream.
pub(crate) fn stream_out(context: ResponseContext) -> Box<dyn StreamOut> {
    let ResponseContext { model, include_usage, has_functions, id, created, .. } = context;
    Box::new(ChatStreamWriter {
        id,
        created,
        model,
        service_tier: None,
        include_usage,
        has_functions,
        usage: None,
        choices: Vec::new(),
        provider_extra: StreamExtra::default(),
    })
}

struct ChatStreamWriter {
    id: String,
    created: u64,
    model: String,
    service_tier: Option<String>,
    include_usage: bool,
    /// Whether the client uses functions instead of tools.
    has_functions: bool,
    usage: Option<Usage>,
    choices: Vec<ChoiceState>,
    provider_extra: StreamExtra,
}

/// A choice that has started.
#[derive(Default)]
struct ChoiceState {
    index: u32,
    /// Length of its text, in characters.
    length: usize,
    /// Number of thought details, text runs and calls.
    parts: u32,
    /// Whether the last part is text.
    is_in_text: bool,
    thought: Option<OpenThought>,
    /// Whether a thought has been shown.
    has_shown: bool,
    /// For each call, whether it is a custom tool call.
    calls: Vec<bool>,
    has_ended: bool,
}

/// The last thought.
struct OpenThought {
    thought: u32,
    /// As far as it has been sent.
    id: Option<String>,
    part: u32,
    summary: bool,
    /// Whether its last detail continues.
    goes_on: bool,
}

#[derive(Serialize)]
struct OutgoingChunk<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: &'a [OutgoingChoice<'a>],
    /// If requested: null in all chunks but the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_tier: Option<&'a str>,
    /// In the chunk that ends a choice.
    #[serde(flatten)]
    beyond: Map<String, Value>,
}

#[derive(Serialize)]
struct OutgoingChoice<'a> {
    index: u32,
    delta: OutgoingDelta<'a>,
    logprobs: Option<Value>,
    finish_reason: Option<&'a str>,
}

#[derive(Serialize, Default)]
struct OutgoingDelta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<[Map<String, Value>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<[Value; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<[Value; 1]>,
}

impl ChoiceState {
    fn end_thought(&mut self) {
        if let Some(thought) = &mut self.thought {
            thought.goes_on = false;
        }
    }

    /// The index of a part that begins.
    fn next_part(&mut self) -> u32 {
        self.is_in_text = false;
        self.parts = self.parts.saturating_add(1);
        self.parts - 1
    }
}

impl StreamOut for ChatStreamWriter {
    fn delta(&mut self, delta: Delta, bytes: &mut Vec<u8>) {
        match delta {
            Delta::Started { id, created, service_tier, .. } => {
                // All chunks share one id: the first one.
                if self.choices.is_empty() {
                    self.id = id.unwrap_or_else(|| std::mem::take(&mut self.id));
                    self.created = created.unwrap_or(self.created);
                    self.service_tier = service_tier;
                }
                self.choice(0, bytes);
            }
            Delta::Text { choice, text, logprobs } => {
                let open = self.choice(choice, bytes);
                open.end_thought();
                if !open.is_in_text {
                    open.next_part();
                    open.is_in_text = true;
                }
                open.length = open.length.saturating_add(text.chars().count());
                let logprobs = logprobs.map(|content| json!({ "content": content, "refusal": null }));
                let delta = OutgoingDelta { content: Some(&text), ..OutgoingDelta::default() };
                self.write(&[OutgoingChoice { index: choice, delta, logprobs, finish_reason: None }], bytes);
            }
            Delta::Refusal { choice, text } => {
                self.choice(choice, bytes).end_thought();
                self.piece(choice, OutgoingDelta { refusal: Some(&text), ..OutgoingDelta::default() }, bytes);
            }
            Delta::Thought { choice, thought, id, part, text, summary } => {
                let thought = OpenThought { thought, id, part, summary, goes_on: true };
                self.thought(choice, thought, &text, bytes);
            }
            Delta::ThoughtSigned { choice, thought, id, signature, redacted } => {
                self.signature(choice, thought, id, &signature, redacted, bytes);
            }
            Delta::Call { choice, id, name, custom, signature, .. } => {
                self.call(choice, &id, &name, custom, signature.as_deref(), bytes);
            }
            Delta::CallInput { choice, call, text } => {
                let open = self.choice(choice, bytes);
                let is_custom = open.calls.get(call as usize).copied().unwrap_or_default();
                let (kind, member) = if is_custom { ("custom", "input") } else { ("function", "arguments") };
                let piece = if self.is_function(call, is_custom) {
                    OutgoingDelta { function_call: Some(json!({ member: text })), ..OutgoingDelta::default() }
                } else {
                    let call = json!({ "index": call, kind: { member: text } });
                    OutgoingDelta { tool_calls: Some([call]), ..OutgoingDelta::default() }
                };
                self.piece(choice, piece, bytes);
            }
            Delta::Citation { choice, citation } => {
                let annotation = write_annotation(&citation, self.choice(choice, bytes).length);
                self.piece(
                    choice,
                    OutgoingDelta { annotations: Some([annotation]), ..OutgoingDelta::default() },
                    bytes,
                );
            }
            // In streams, details are this protocol's only own parts.
            Delta::Other { choice, source: Protocol::Chat, value: Value::Object(detail) } => {
                self.choice(choice, bytes).end_thought();
                self.piece(
                    choice,
                    OutgoingDelta { reasoning_details: Some([detail]), ..OutgoingDelta::default() },
                    bytes,
                );
            }
            // The next part ends it.
            Delta::CallDone { .. } => {}
            Delta::Image { image, .. } => self.provider_extra.image(image, Protocol::Chat),
            Delta::Other { value, .. } => self.provider_extra.other(value),
            Delta::Extra(given) => self.provider_extra.extra(given),
            Delta::Usage(usage) => self.usage = Some(usage),
            Delta::Ended { choice, end } => self.end(choice, &end, bytes),
            Delta::Failed(failure) => self.fail(&failure, bytes),
            Delta::Done => {
                // Choices that the provider didn't end, or never began.
                let open: Vec<u32> =
                    self.choices.iter().filter(|open| !open.has_ended).map(|open| open.index).collect();
                for choice in open {
                    self.end(choice, &FinishReason::Stop, bytes);
                }
                if self.include_usage {
                    let usage = self.usage.map_or(Value::Null, usage::write);
                    // Fields that arrived after the end of the choices, such as usage fields.
                    let mut beyond = Map::new();
                    self.provider_extra.add(&mut beyond);
                    frames::data(&OutgoingChunk { beyond, ..self.chunk(&[], Some(usage)) }, bytes);
                }
                bytes.extend_from_slice(b"data: [DONE]\n\n");
            }
        }
    }

    fn fail(&mut self, failure: &Failure, bytes: &mut Vec<u8>) {
        let code = failure::code_of(failure.kind);
        let error = json!({ "error": {
            "message": failure.message,
            "type": code.error_type,
            "param": failure.param,
            "code": failure.code.as_deref().unwrap_or(code.code),
        }});
        frames::data(&error, bytes);
    }
}

impl ChatStreamWriter {
    fn chunk<'a>(&'a self, choices: &'a [OutgoingChoice<'a>], usage: Option<Value>) -> OutgoingChunk<'a> {
        let Self { id, created, model, .. } = self;
        OutgoingChunk {
            id,
            object: "chat.completion.chunk",
            created: *created,
            model,
            choices,
            usage,
            service_tier: self.service_tier.as_deref(),
            beyond: Map::new(),
        }
    }

    fn write(&self, choices: &[OutgoingChoice<'_>], bytes: &mut Vec<u8>) {
        frames::data(&self.chunk(choices, self.include_usage.then_some(Value::Null)), bytes);
    }

    fn piece(&self, index: u32, delta: OutgoingDelta<'_>, bytes: &mut Vec<u8>) {
        self.write(&[OutgoingChoice { index, delta, logprobs: None, finish_reason: None }], bytes);
    }

    fn end(&mut self, choice: u32, end: &FinishReason, bytes: &mut Vec<u8>) {
        self.provider_extra.end(choice, end, Protocol::Chat);
        let open = self.choice(choice, bytes);
        open.has_ended = true;
        let calls = !open.calls.is_empty();
        let word = finish::word(end, calls, self.has_functions);
        let finish_reason = Some(word.as_ref());
        let choices = [OutgoingChoice {
            index: choice,
            delta: OutgoingDelta::default(),
            logprobs: None,
            finish_reason,
        }];
        let mut beyond = Map::new();
        self.provider_extra.add(&mut beyond);
        let chunk = self.chunk(&choices, self.include_usage.then_some(Value::Null));
        frames::data(&OutgoingChunk { beyond, ..chunk }, bytes);
    }

    /// The choice. Its first chunk names the role.
    fn choice(&mut self, index: u32, bytes: &mut Vec<u8>) -> &mut ChoiceState {
        let known = self.choices.iter().position(|choice| choice.index == index);
        let place = known.unwrap_or_else(|| {
            let delta =
                OutgoingDelta { role: Some("assistant"), content: Some(""), ..OutgoingDelta::default() };
            self.piece(index, delta, bytes);
            self.choices.push(ChoiceState { index, ..ChoiceState::default() });
            self.choices.len() - 1
        });
        &mut self.choices[place]
    }

    /// Sends the text of a thought twice: once to be shown, and once as the detail its proof belongs to. Only the first
    /// piece of a detail has the id: clients concatenate the texts of pieces.
    fn thought(&mut self, choice: u32, mut piece: OpenThought, text: &str, bytes: &mut Vec<u8>) {
        let open = self.choice(choice, bytes);
        let last = open.thought.take().filter(|last| last.thought == piece.thought);
        let same = last.as_ref().filter(|last| (last.part, last.summary) == (piece.part, piece.summary));
        let goes_on = same.is_some_and(|last| last.goes_on);
        let known = last.and_then(|last| last.id);
        let first_id = match &known {
            Some(_) if goes_on => None,
            Some(_) => known.clone(),
            None => piece.id.clone(),
        };
        piece.id = known.or(piece.id);
        let index = if goes_on { open.parts.saturating_sub(1) } else { open.next_part() };
        // Another text is a new paragraph.
        let paragraph = (!goes_on && open.has_shown).then(|| format!("\n\n{text}"));
        open.has_shown = true;
        let (kind, member) = if piece.summary { ("summary", "summary") } else { ("text", "text") };
        open.thought = Some(piece);
        let mut detail = object([
            ("type", format!("reasoning.{kind}").into()),
            (member, text.into()),
            ("index", index.into()),
        ]);
        detail.extend(first_id.map(|id| ("id".to_owned(), id.into())));
        let reasoning_content = Some(paragraph.as_deref().unwrap_or(text));
        let delta = OutgoingDelta {
            reasoning_content,
            reasoning_details: Some([detail]),
            ..OutgoingDelta::default()
        };
        self.piece(choice, delta, bytes);
    }

    /// Whether a call uses the function form: the first one does, if the client doesn't use tools. No call is lost.
    fn is_function(&self, call: u32, is_custom: bool) -> bool {
        self.has_functions && call == 0 && !is_custom
    }

    fn signature(
        &mut self,
        choice: u32,
        thought: u32,
        id: Option<String>,
        signature: &str,
        redacted: bool,
        bytes: &mut Vec<u8>,
    ) {
        let open = self.choice(choice, bytes);
        let last = open.thought.take().filter(|last| last.thought == thought && !redacted);
        // Hidden content is a detail of its own, and so is the proof of a summary: the id ties the two together.
        let is_apart = redacted || last.as_ref().is_some_and(|last| last.summary);
        let goes_on = !is_apart && last.as_ref().is_some_and(|last| last.goes_on);
        let index = if goes_on { open.parts.saturating_sub(1) } else { open.next_part() };
        let id = match last.and_then(|last| last.id) {
            Some(_) if goes_on => None,
            known => known.or(id),
        };
        let (kind, member) = if is_apart { ("encrypted", "data") } else { ("text", "signature") };
        let mut detail = object([
            ("type", format!("reasoning.{kind}").into()),
            (member, signature.into()),
            ("index", index.into()),
        ]);
        detail.extend(id.map(|id| ("id".to_owned(), id.into())));
        self.piece(
            choice,
            OutgoingDelta { reasoning_details: Some([detail]), ..OutgoingDelta::default() },
            bytes,
        );
    }

    fn call(
        &mut self,
        choice: u32,
        id: &str,
        name: &str,
        custom: bool,
        signature: Option<&str>,
        bytes: &mut Vec<u8>,
    ) {
        let open = self.choice(choice, bytes);
        open.end_thought();
        open.next_part();
        let index = u32::try_from(open.calls.len()).unwrap_or(u32::MAX);
        open.calls.push(custom);
        let (kind, member) = if custom { ("custom", "input") } else { ("function", "arguments") };
        let callee = json!({ "name": name, member: "" });
        let mut piece = OutgoingDelta {
            reasoning_details: signature.map(|signature| [reasoning::call_signature(id, signature)]),
            ..OutgoingDelta::default()
        };
        if self.is_function(index, custom) {
            piece.function_call = Some(callee);
        } else {
            piece.tool_calls = Some([json!({ "index": index, "id": id, "type": kind, kind: callee })]);
        }
        self.piece(choice, piece, bytes);
    }
}
