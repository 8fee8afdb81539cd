//! The contents of a client of this protocol, as it wrote them: a part's place tells its content.

use serde_json::{Map, Value, json};

use super::media::medium_out;
use super::parts::{SIGNATURE, arguments, response};
use crate::conversation::{Part, PartKind, Thought, ToolCall, ToolResult, Turn};
use crate::protocols::members::{Writer, object};

/// The instruction and the contents so far.
pub(super) struct Exact<'a, 'c> {
    writer: &'a mut Writer<'c>,
    /// The contents by their places, in order; a content that has no parts is whole.
    contents: Vec<(&'c str, Result<Vec<Value>, Value>)>,
}

impl<'a, 'c> Exact<'a, 'c> {
    /// Writes them into the body.
    pub(super) fn write(turns: &'c [Turn], writer: &'a mut Writer<'c>, body: &mut Map<String, Value>) {
        let mut exact = Self { writer, contents: Vec::new() };
        for part in turns.iter().flat_map(|turn| &turn.parts) {
            exact.part(part);
        }
        let mut contents = Vec::new();
        for (at, content) in exact.contents {
            let content = match content {
                Ok(parts) => {
                    let mut content = object([("parts", json!(parts))]);
                    exact.writer.complete(&mut content, at);
                    Value::Object(content)
                }
                Err(whole) => whole,
            };
            if at == "/systemInstruction" {
                body.insert("systemInstruction".to_owned(), content);
            } else {
                contents.push(content);
            }
        }
        if !contents.is_empty() {
            body.insert("contents".to_owned(), contents.into());
        }
    }

    fn part(&mut self, part: &'c Part) {
        let Some((content, _)) = part.at.split_once("/parts/") else {
            if let PartKind::Other(value) = &part.kind {
                self.contents.push((&part.at, Err(value.clone())));
            }
            return;
        };
        // The signature of a text is a thought of its own, and one part with it.
        if let (PartKind::Thought(Thought { signature: Some(signature), .. }), Some((_, Ok(parts)))) =
            (&part.kind, self.contents.last_mut())
            && part.at.ends_with(SIGNATURE)
        {
            if let Some(Value::Object(text)) = parts.last_mut() {
                text.entry(SIGNATURE).or_insert_with(|| json!(signature));
            }
            return;
        }
        let written = self.written(part);
        match self.contents.last_mut() {
            Some((last, Ok(parts))) if *last == content => parts.push(written),
            _ => self.contents.push((content, Ok(vec![written]))),
        }
    }

    fn written(&mut self, part: &Part) -> Value {
        let mut written = match &part.kind {
            PartKind::Text(text) | PartKind::Refusal(text) => object([("text", json!(text))]),
            PartKind::Image(media) | PartKind::Audio(media) | PartKind::File(media) => {
                let mut medium = medium_out(media.clone(), "").unwrap_or_default();
                for (name, data) in &mut medium {
                    if let Value::Object(data) = data {
                        self.writer.complete(data, &format!("{}/{name}", part.at));
                    }
                }
                medium
            }
            PartKind::Call(call) => self.call(call, &part.at),
            PartKind::Thought(thought) => {
                let mut written = object([("text", json!(thought.text.concat()))]);
                if !thought.text.is_empty() {
                    written.insert("thought".to_owned(), json!(true));
                }
                written.extend(thought.signature.as_ref().map(|it| (SIGNATURE.to_owned(), json!(it))));
                written
            }
            PartKind::Result(result) => self.result(result, &part.at),
            PartKind::Other(value) => return value.clone(),
        };
        self.writer.complete(&mut written, &part.at);
        Value::Object(written)
    }

    fn call(&mut self, call: &ToolCall, at: &str) -> Map<String, Value> {
        let mut written = object([("name", json!(call.name))]);
        let args = arguments(call.input.clone());
        if args.as_object().is_some_and(|args| !args.is_empty()) {
            written.insert("args".to_owned(), args);
        }
        self.writer.complete(&mut written, &format!("{at}/functionCall"));
        object([("functionCall", Value::Object(written))])
    }

    fn result(&mut self, result: &ToolResult, at: &str) -> Map<String, Value> {
        let text = result.parts.iter().find_map(|part| match &part.kind {
            PartKind::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let mut written = object([
            ("name", json!(result.name)),
            ("response", response(text.unwrap_or_default(), result.failed.is_some())),
        ]);
        self.writer.complete(&mut written, &format!("{at}/functionResponse"));
        object([("functionResponse", Value::Object(written))])
    }
}
