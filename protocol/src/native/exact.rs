//! Restores the contents of a client of this protocol as it wrote them: a part's place identifies its content. The same
//! goes for the candidates of a provider.

use serde_json::{Map, Value, json};

use super::media::medium_out;
use super::parts::{SIGNATURE, arguments, response};
use crate::ResponseContext;
use crate::conversation::{
    Answer, Conversation, Part, PartKind, Protocol, Thought, ToolCall, ToolResult, Turn,
};
use crate::members::{RequestWriter, object};

/// The answer of a provider of this protocol: its candidates, with their other fields restored.
pub(super) fn answer(answer: Answer, context: &ResponseContext) -> Value {
    let conversation = Conversation { source: Protocol::Native, ..Conversation::default() };
    let mut writer = RequestWriter::new(&conversation, Protocol::Native);
    let mut candidates = Vec::with_capacity(answer.choices.len());
    for choice in &answer.choices {
        let place = choice.at.rsplit('/').next().and_then(|place| place.parse::<usize>().ok());
        // If the provider sent none, the gateway made the choice.
        let Some(place) = place else { continue };
        let mut exact = Exact { writer: &mut writer, contents: Vec::new() };
        if let [Part { at, kind: PartKind::Other(whole), .. }] = choice.parts.as_slice()
            && *at == choice.at
        {
            candidates.push((place, whole.clone()));
            continue;
        }
        choice.parts.iter().for_each(|part| exact.part(part));
        let contents = exact.contents.into_iter().filter_map(|(_, parts)| parts.ok());
        let mut candidate = Map::new();
        candidate.extend(contents.map(|parts| ("content".to_owned(), json!({ "parts": parts }))));
        candidates.push((place, candidate.into()));
    }
    candidates.sort_by_key(|(place, _)| *place);
    let candidates: Vec<Value> = candidates.into_iter().map(|(_, candidate)| candidate).collect();
    let mut response = object([
        ("modelVersion", json!(context.model)),
        ("responseId", json!(answer.id.unwrap_or_else(|| context.id.clone()))),
    ]);
    if !candidates.is_empty() {
        response.insert("candidates".to_owned(), candidates.into());
    }
    Value::Object(response)
}

/// The instruction and the contents so far.
pub(super) struct Exact<'a, 'c> {
    writer: &'a mut RequestWriter<'c>,
    /// The contents by place, in order; a content without parts is kept whole.
    contents: Vec<(&'c str, Result<Vec<Value>, Value>)>,
}

impl<'a, 'c> Exact<'a, 'c> {
    /// Writes them into the body.
    pub(super) fn write(turns: &'c [Turn], writer: &'a mut RequestWriter<'c>, body: &mut Map<String, Value>) {
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
        // A text's signature is a separate thought here, but belongs to the same part.
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
