//! Writes streams of the chat protocol.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::citations::write_annotation;
use super::{finish, reasoning, usage};
use crate::conversation::{Delta, Failure, Protocol, Usage};
use crate::protocols::beyond::Kept;
use crate::protocols::members::object;
use crate::protocols::{Asked, StreamOut, failure, frames};

/// Writes a client's stream.
pub(in crate::protocols) fn stream_out(asked: Asked) -> Box<dyn StreamOut> {
    let Asked { model, include_usage, id, created, .. } = asked;
    Box::new(Chunks {
        id,
        created,
        model,
        include_usage,
        usage: None,
        choices: Vec::new(),
        kept: Kept::default(),
    })
}

struct Chunks {
    id: String,
    created: u64,
    model: String,
    include_usage: bool,
    usage: Option<Usage>,
    choices: Vec<Open>,
    kept: Kept,
}

/// A choice that has begun.
#[derive(Default)]
struct Open {
    index: u32,
    /// Characters of its text.
    length: usize,
    /// Number of thoughts before the last one.
    thought: u32,
    /// Whether the last thought goes on, and whether it is a summary.
    is_thinking: bool,
    is_summary: bool,
    /// Whether each call is one of a custom tool.
    calls: Vec<bool>,
}

#[derive(Serialize)]
struct Chunk<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: &'a [Choice<'a>],
    /// Where it is asked for: null in all chunks but the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Value>,
    /// In the chunk that ends a choice.
    #[serde(flatten)]
    beyond: Map<String, Value>,
}

#[derive(Serialize)]
struct Choice<'a> {
    index: u32,
    delta: Piece<'a>,
    logprobs: Option<Value>,
    finish_reason: Option<&'a str>,
}

#[derive(Serialize, Default)]
struct Piece<'a> {
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
    annotations: Option<[Value; 1]>,
}

impl Open {
    fn end_thought(&mut self) {
        self.thought = self.thought.saturating_add(u32::from(self.is_thinking));
        self.is_thinking = false;
    }
}

impl StreamOut for Chunks {
    fn delta(&mut self, delta: Delta, bytes: &mut Vec<u8>) {
        match delta {
            Delta::Started { id, created, .. } => {
                self.id = id.unwrap_or_else(|| std::mem::take(&mut self.id));
                self.created = created.unwrap_or(self.created);
                self.choice(0, bytes);
            }
            Delta::Text { choice, text, logprobs } => {
                let open = self.choice(choice, bytes);
                open.end_thought();
                open.length = open.length.saturating_add(text.chars().count());
                let logprobs = logprobs.map(|content| json!({ "content": content, "refusal": null }));
                let delta = Piece { content: Some(&text), ..Piece::default() };
                self.write(&[Choice { index: choice, delta, logprobs, finish_reason: None }], bytes);
            }
            Delta::Refusal { choice, text } => {
                self.choice(choice, bytes).end_thought();
                self.piece(choice, Piece { refusal: Some(&text), ..Piece::default() }, bytes);
            }
            Delta::Thought { choice, text, summary, .. } => self.thought(choice, &text, summary, bytes),
            Delta::ThoughtSigned { choice, id, signature, redacted } => {
                self.signature(choice, id, &signature, redacted, bytes);
            }
            Delta::Call { choice, id, name, custom, signature, .. } => {
                self.call(choice, &id, &name, custom, signature.as_deref(), bytes);
            }
            Delta::CallInput { choice, call, text } => {
                let open = self.choice(choice, bytes);
                let is_custom = open.calls.get(call as usize).copied().unwrap_or_default();
                let (kind, member) = if is_custom { ("custom", "input") } else { ("function", "arguments") };
                let call = json!({ "index": call, kind: { member: text } });
                self.piece(choice, Piece { tool_calls: Some([call]), ..Piece::default() }, bytes);
            }
            Delta::Citation { choice, citation } => {
                let annotation = write_annotation(&citation, self.choice(choice, bytes).length);
                self.piece(choice, Piece { annotations: Some([annotation]), ..Piece::default() }, bytes);
            }
            Delta::Other { source: Protocol::Chat, .. } => {}
            Delta::Other { value, .. } => self.kept.other(value),
            Delta::Extra(given) => self.kept.extra(given),
            Delta::Usage(usage) => self.usage = Some(usage),
            Delta::Ended { choice, end } => {
                self.kept.end(choice, &end, Protocol::Chat);
                let calls = !self.choice(choice, bytes).calls.is_empty();
                let word = finish::word(&end, calls);
                let finish_reason = Some(word.as_ref());
                let choice = Choice { index: choice, delta: Piece::default(), logprobs: None, finish_reason };
                let mut beyond = Map::new();
                self.kept.add(&mut beyond);
                let choices = [choice];
                let chunk = self.chunk(&choices, self.include_usage.then_some(Value::Null));
                frames::data(&Chunk { beyond, ..chunk }, bytes);
            }
            Delta::Failed(failure) => self.fail(&failure, bytes),
            Delta::Done => {
                if self.include_usage {
                    let usage = self.usage.map_or(Value::Null, usage::write);
                    // What came after the end of the choices, such as members of the usage.
                    let mut beyond = Map::new();
                    self.kept.add(&mut beyond);
                    frames::data(&Chunk { beyond, ..self.chunk(&[], Some(usage)) }, bytes);
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
            "code": code.code,
        }});
        frames::data(&error, bytes);
    }
}

impl Chunks {
    fn chunk<'a>(&'a self, choices: &'a [Choice<'a>], usage: Option<Value>) -> Chunk<'a> {
        let Self { id, created, model, .. } = self;
        Chunk {
            id,
            object: "chat.completion.chunk",
            created: *created,
            model,
            choices,
            usage,
            beyond: Map::new(),
        }
    }

    fn write(&self, choices: &[Choice<'_>], bytes: &mut Vec<u8>) {
        frames::data(&self.chunk(choices, self.include_usage.then_some(Value::Null)), bytes);
    }

    fn piece(&self, index: u32, delta: Piece<'_>, bytes: &mut Vec<u8>) {
        self.write(&[Choice { index, delta, logprobs: None, finish_reason: None }], bytes);
    }

    /// The choice, whose first chunk names the role.
    fn choice(&mut self, index: u32, bytes: &mut Vec<u8>) -> &mut Open {
        let known = self.choices.iter().position(|choice| choice.index == index);
        let place = known.unwrap_or_else(|| {
            let delta = Piece { role: Some("assistant"), content: Some(""), ..Piece::default() };
            self.piece(index, delta, bytes);
            self.choices.push(Open { index, ..Open::default() });
            self.choices.len() - 1
        });
        &mut self.choices[place]
    }

    /// Text of a thought, once to be shown, and once as the detail that its proof belongs to.
    fn thought(&mut self, choice: u32, text: &str, summary: bool, bytes: &mut Vec<u8>) {
        let open = self.choice(choice, bytes);
        if open.is_summary != summary {
            open.end_thought();
        }
        (open.is_thinking, open.is_summary) = (true, summary);
        let index = open.thought;
        let (kind, member) = if summary { ("summary", "summary") } else { ("text", "text") };
        let detail = object([
            ("type", format!("reasoning.{kind}").into()),
            (member, text.into()),
            ("index", index.into()),
        ]);
        let reasoning_details = Some([detail]);
        let delta = Piece { reasoning_content: Some(text), reasoning_details, ..Piece::default() };
        self.piece(choice, delta, bytes);
    }

    fn signature(
        &mut self,
        choice: u32,
        id: Option<String>,
        signature: &str,
        redacted: bool,
        bytes: &mut Vec<u8>,
    ) {
        let open = self.choice(choice, bytes);
        // Hidden content is a thought of its own, and so is the proof of a summary.
        let is_apart = redacted || (open.is_thinking && open.is_summary);
        if is_apart {
            open.end_thought();
        }
        let index = open.thought;
        open.is_thinking = true;
        open.end_thought();
        let (kind, member) = if is_apart { ("encrypted", "data") } else { ("text", "signature") };
        let mut detail = object([
            ("type", format!("reasoning.{kind}").into()),
            (member, signature.into()),
            ("index", index.into()),
        ]);
        if let Some(id) = id {
            detail.insert("id".to_owned(), id.into());
        }
        self.piece(choice, Piece { reasoning_details: Some([detail]), ..Piece::default() }, bytes);
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
        let index = open.calls.len();
        open.calls.push(custom);
        let (kind, member) = if custom { ("custom", "input") } else { ("function", "arguments") };
        let call = json!({ "index": index, "id": id, "type": kind, kind: { "name": name, member: "" } });
        let reasoning_details = signature.map(|signature| [reasoning::call_signature(id, signature)]);
        self.piece(choice, Piece { reasoning_details, tool_calls: Some([call]), ..Piece::default() }, bytes);
    }
}
