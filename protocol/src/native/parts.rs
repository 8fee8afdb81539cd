//! Parts of a content.

use serde_json::{Map, Value, json};

use super::MADE_ID;
use super::media::{medium_in, medium_out};
use super::signature::{unwrapped, wrapped};
use crate::conversation::{Input, PartKind, Thought, ToolCall, ToolResult};
use crate::members::{Members, RemainingFields, object};

/// The kinds of parts that are read. A part has exactly one.
const KINDS: [&str; 5] = ["text", "inlineData", "fileData", "functionCall", "functionResponse"];
/// The field with a thought's proof.
pub(super) const SIGNATURE: &str = "thoughtSignature";

/// Reads a part, and the signature of a text, which becomes a thought of its own. The id of a call or a result is empty
/// if the part has none.
pub(super) fn part_in(value: Value, at: &str, rest: &mut RemainingFields) -> (PartKind, Option<Thought>) {
    let mut part = match Members::read(value, at) {
        Ok(part) => part,
        Err(value) => return (PartKind::Other(value), None),
    };
    part.respell();
    let mut kinds = KINDS.iter().filter(|name| !part.peek(name).is_null());
    let read = match (kinds.next().copied(), kinds.next()) {
        (Some("text"), None) => text_in(&mut part, rest),
        (Some("functionCall"), None) => call_in(&mut part, rest).map(|call| (call, None)),
        (Some("functionResponse"), None) => result_in(&mut part, rest).map(|result| (result, None)),
        (Some(_), None) => medium_in(&mut part, rest).map(|medium| (medium, None)),
        _ => None,
    };
    match read {
        Some(read) => {
            let own: &[&str] = match &read.0 {
                PartKind::Call(_) => &["thought", SIGNATURE],
                _ => &["thought"],
            };
            rest.keep(part, own);
            read
        }
        None => (PartKind::Other(part.into_value()), None),
    }
}

fn text_in(part: &mut Members, rest: &mut RemainingFields) -> Option<(PartKind, Option<Thought>)> {
    let text = part.text("text")?;
    let (signature, redacted) = signature_in(part, rest).unzip();
    // If text is shown, the thought isn't hidden.
    let redacted = text.is_empty() && redacted == Some(true);
    let signed = Thought { signature, redacted, ..Thought::default() };
    let is_signed = signed.signature.is_some();
    let is_thought =
        |part: &mut Members| part.take("thought", |it| if it == true { Ok(()) } else { Err(it) });
    Some(if !redacted && is_thought(part).is_some() {
        (PartKind::Thought(Thought { text: vec![text], summary: true, ..signed }), None)
    } else if is_signed && text.is_empty() {
        (PartKind::Thought(signed), None)
    } else {
        (PartKind::Text(text), is_signed.then_some(signed))
    })
}

fn signature_in(part: &mut Members, rest: &mut RemainingFields) -> Option<(String, bool)> {
    let signature = part.text(SIGNATURE)?;
    Some(match unwrapped(&signature) {
        Some(unwrapped) => {
            rest.keep_own(signature.into(), part.place(SIGNATURE));
            unwrapped
        }
        None => (signature, false),
    })
}

fn call_in(part: &mut Members, rest: &mut RemainingFields) -> Option<PartKind> {
    let given = part.peek("functionCall");
    if !given["name"].is_string() || !(given["args"].is_object() || given["args"].is_null()) {
        return None;
    }
    let mut call = part.members("functionCall")?;
    let args = call.take("args", |args| match args.as_object() {
        Some(members) if !members.is_empty() => Ok(args.to_string()),
        _ => Err(args),
    });
    // The proof stays in place as the client wrote it: it means nothing to protocols that can't express it.
    let signature = part.peek(SIGNATURE).as_str();
    let signature =
        signature.map(|given| unwrapped(given).map_or_else(|| given.to_owned(), |(proof, _)| proof));
    let read = ToolCall {
        id: call.peek("id").as_str().unwrap_or_default().to_owned(),
        name: call.text("name")?,
        input: Input::Json(args.unwrap_or_else(|| "{}".to_owned())),
        signature,
    };
    rest.keep(call, &["id"]);
    Some(PartKind::Call(read))
}

fn result_in(part: &mut Members, rest: &mut RemainingFields) -> Option<PartKind> {
    let given = part.peek("functionResponse");
    if !given["name"].is_string() || !given["response"].is_object() {
        return None;
    }
    let mut result = part.members("functionResponse")?;
    let (text, failed) = response_text(&Value::Object(result.object("response")?));
    let at = result.place("response");
    let failed = failed.then(|| format!("{at}/error").into());
    let read = ToolResult {
        call_id: result.peek("id").as_str().unwrap_or_default().to_owned(),
        name: result.text("name"),
        parts: vec![crate::conversation::Part { at: at.into(), kind: PartKind::Text(text), cache: None }],
        failed,
        custom: false,
    };
    rest.keep(result, &["id"]);
    Some(PartKind::Result(read))
}

/// A function's response as text, and whether it failed.
fn response_text(response: &Value) -> (String, bool) {
    if let Some(members) = response.as_object().filter(|members| members.len() == 1) {
        match (members.get("output"), members.get("error")) {
            (Some(Value::String(text)), _) if as_object(text).is_none() => return (text.clone(), false),
            (_, Some(Value::String(text))) => return (text.clone(), true),
            _ => {}
        }
    }
    (response.to_string(), false)
}

/// A function's response as the object that the protocol requires.
pub(super) fn response(text: &str, failed: bool) -> Value {
    match as_object(text) {
        _ if failed => json!({ "error": text }),
        Some(object) => object,
        None => json!({ "output": text }),
    }
}

fn as_object(text: &str) -> Option<Value> {
    text.trim_start().starts_with('{').then(|| serde_json::from_str(text).ok())?
}

/// The arguments of a call. Anything but an object, such as a custom tool's text, becomes the field `input` of one.
pub(super) fn arguments(input: Input) -> Value {
    match input {
        Input::Json(text) if text.trim().is_empty() => json!({}),
        Input::Json(text) => as_object(&text).unwrap_or_else(|| json!({ "input": text })),
        Input::Text(text) => json!({ "input": text }),
    }
}

/// The parts of a content that comes from another protocol.
#[derive(Default)]
pub(super) struct Parts {
    written: Vec<Value>,
    /// A signature for the call that may follow.
    signature: Option<String>,
    /// Whether they are for a client, to which signatures are opaque.
    is_answer: bool,
}

impl Parts {
    pub(super) fn of_answer() -> Self {
        Self { is_answer: true, ..Self::default() }
    }

    /// Adds a part of a kind the protocol knows.
    pub(super) fn push(&mut self, part: Map<String, Value>) {
        self.flush();
        self.written.push(Value::Object(part));
    }

    pub(super) fn text(&mut self, text: &str) {
        self.push(object([("text", json!(text))]));
    }

    pub(super) fn call(&mut self, call: ToolCall) {
        let signature = self.signature.take();
        let signature = call.signature.map(|signature| self.signed(signature, false)).or(signature);
        let mut written = object([("name", json!(call.name)), ("args", arguments(call.input))]);
        if !call.id.is_empty() && !call.id.starts_with(MADE_ID) {
            written.insert("id".to_owned(), json!(call.id));
        }
        let mut part = object([("functionCall", Value::Object(written))]);
        part.extend(signature.map(|signature| (SIGNATURE.to_owned(), json!(signature))));
        self.push(part);
    }

    pub(super) fn thought(&mut self, thought: Thought) {
        self.flush();
        // Without a proof, an empty thought is nothing, and providers reject it.
        let is_visible = |text: &&String| self.is_answer || thought.signature.is_some() || !text.is_empty();
        let texts = thought.text.iter().filter(is_visible);
        self.written.extend(texts.map(|text| json!({ "text": text, "thought": true })));
        let Some(signature) = thought.signature else { return };
        let signature = self.signed(signature, thought.redacted);
        match self.written.last_mut() {
            Some(last) if !thought.text.is_empty() => last[SIGNATURE] = json!(signature),
            // A client returns its parts unchanged, and elsewhere a thought before a call isn't merged with it.
            _ if self.is_answer => self.written.push(json!({ "text": "", SIGNATURE: signature })),
            _ => self.signature = Some(signature),
        }
    }

    /// Adds an image, audio or file. Returns false if the protocol can't express where it is.
    pub(super) fn medium(&mut self, kind: PartKind) -> bool {
        let written = match kind {
            PartKind::Image(media) => medium_out(media, "image/png"),
            PartKind::Audio(media) => medium_out(media, "audio/wav"),
            PartKind::File(media) => medium_out(media, "application/octet-stream"),
            _ => None,
        };
        let is_written = written.is_some();
        if let Some(part) = written {
            self.push(part);
        }
        is_written
    }

    fn signed(&self, signature: String, redacted: bool) -> String {
        if self.is_answer { wrapped(&signature, redacted) } else { signature }
    }

    /// Writes a signature that no call takes.
    fn flush(&mut self) {
        if let Some(signature) = self.signature.take() {
            self.written.push(json!({ "text": "", SIGNATURE: signature }));
        }
    }

    pub(super) fn finish(mut self) -> Vec<Value> {
        self.flush();
        self.written
    }
}
