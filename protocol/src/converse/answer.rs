//! Whole answers.

use serde_json::Value;

use super::{citations as converse_citations, media, stop_reason, usage};
use crate::conversation::{
    Answer, Choice, Citation, Input, Media, MediaSource, Part, PartKind, Protocol, Thought, ToolCall,
};
use crate::members::{Members, RemainingFields};
use crate::{MalformedDocument, citations};

/// Fields of an answer that mean nothing to another protocol, or are read separately.
const OWN: [&str; 4] = ["stopReason", "metrics", "performanceConfig", "serviceTier"];

/// Reads a provider's answer.
/// Errors: it has no message.
pub(crate) fn answer_in(body: Value) -> Result<Answer, MalformedDocument> {
    let malformed = |what: &str| MalformedDocument(format!("the provider's answer has no message: {what}"));
    let Value::Object(members) = body else { return Err(malformed("it is not an object")) };
    let end = stop_reason::end(&members);
    let service_tier = usage::tier(&members);
    let mut body = Members::read(members.into(), "").map_err(|_| malformed("it is not an object"))?;
    if !body.peek("output")["message"]["content"].is_array() {
        return Err(malformed("/output/message/content is no list"));
    }
    let usage = usage::read(body.peek("usage"));
    let mut rest = RemainingFields::default();
    let mut content = Content::default();
    if let Some(mut output) = body.members("output") {
        if let Some(mut message) = output.members("message") {
            let at = message.place("content");
            for (index, block) in message.list("content").unwrap_or_default().into_iter().enumerate() {
                content.read(block, format!("{at}/{index}"), &mut rest);
            }
            rest.keep(message, &["role", "content"]);
        }
        rest.keep(output, &[]);
    }
    if let Some(counted) = body.members("usage") {
        rest.keep(counted, &usage::KNOWN);
    }
    if let Some(additional) = body.members(stop_reason::ADDITIONAL) {
        rest.keep(additional, &[stop_reason::STOP_SEQUENCE]);
    }
    rest.keep(body, &OWN);
    let Content { parts, citations, .. } = content;
    let mut answer = Answer {
        source: Protocol::Converse,
        choices: vec![Choice { at: "/output".into(), parts, citations, end, ..Choice::default() }],
        usage,
        service_tier,
        ..Answer::default()
    };
    rest.into_answer(&mut answer);
    Ok(answer)
}

/// The content of a message.
#[derive(Default)]
struct Content {
    parts: Vec<Part>,
    citations: Vec<Citation>,
    /// Characters of the text so far.
    length: usize,
}

impl Content {
    /// Reads a block. A block that isn't fully understood becomes `Other`.
    fn read(&mut self, block: Value, at: String, rest: &mut RemainingFields) {
        let kind = match Members::read(block, at.clone()) {
            Ok(mut block) => {
                let kind = self.kind(&mut block, rest);
                match kind {
                    Some(kind) => {
                        rest.keep(block, &[]);
                        kind
                    }
                    None => PartKind::Other(block.into_value()),
                }
            }
            Err(other) => PartKind::Other(other),
        };
        if let PartKind::Text(text) = &kind {
            self.length = self.length.saturating_add(text.chars().count());
        }
        self.parts.push(Part { at: at.into(), kind, cache: None });
    }

    /// Takes the content of a block; `None`: its kind is unknown.
    fn kind(&mut self, block: &mut Members, rest: &mut RemainingFields) -> Option<PartKind> {
        if let Some(text) = block.text("text") {
            return Some(PartKind::Text(text));
        }
        let call = block.peek("toolUse");
        if call["toolUseId"].is_string() && call["name"].is_string() && call["type"].is_null() {
            return tool_use(block, rest).map(PartKind::Call);
        }
        let reasoning = block.peek("reasoningContent");
        if reasoning["reasoningText"]["text"].is_string() || reasoning["redactedContent"].is_string() {
            return thought(block, rest).map(PartKind::Thought);
        }
        let image = block.peek("image");
        if let (Some(media_type), true) =
            (image["format"].as_str().and_then(media::image_type), image["source"]["bytes"].is_string())
        {
            return image_of(block, media_type, rest).map(PartKind::Image);
        }
        let cited = block.peek("citationsContent")["content"].as_array()?;
        let text: Option<String> = cited.iter().map(|piece| piece["text"].as_str()).collect();
        self.cite(text?, block, rest)
    }

    fn cite(&mut self, text: String, block: &mut Members, rest: &mut RemainingFields) -> Option<PartKind> {
        let span = self.length..self.length.saturating_add(text.chars().count());
        let cited = block.members("citationsContent")?;
        let read = |citation: &Value| converse_citations::read(citation, span.clone());
        let (of_block, is_all) = citations::list(cited.peek("citations"), read, converse_citations::is_whole);
        let has_room = self.citations.len() + of_block.len() <= citations::MAX_CITATIONS;
        if has_room {
            self.citations.extend(of_block);
        }
        rest.keep(cited, if is_all && has_room { &["content", "citations"] } else { &["content"] });
        Some(PartKind::Text(text))
    }
}

fn tool_use(block: &mut Members, rest: &mut RemainingFields) -> Option<ToolCall> {
    let mut call = block.members("toolUse")?;
    let input = match call.value("input") {
        Some(Value::String(text)) => text,
        Some(input) => input.to_string(),
        None => "{}".to_owned(),
    };
    let (id, name) = (call.text("toolUseId")?, call.text("name")?);
    rest.keep(call, &[]);
    Some(ToolCall { id, name, input: Input::Json(input), signature: None })
}

fn thought(block: &mut Members, rest: &mut RemainingFields) -> Option<Thought> {
    let mut reasoning = block.members("reasoningContent")?;
    let thought = match reasoning.members("reasoningText") {
        Some(mut shown) => {
            let text = shown.text("text").filter(|text| !text.is_empty());
            let signature = shown.text("signature").filter(|signature| !signature.is_empty());
            rest.keep(shown, &[]);
            Thought { text: text.into_iter().collect(), signature, ..Thought::default() }
        }
        None => {
            Thought { signature: reasoning.text("redactedContent"), redacted: true, ..Thought::default() }
        }
    };
    rest.keep(reasoning, &[]);
    Some(thought)
}

fn image_of(block: &mut Members, media_type: &str, rest: &mut RemainingFields) -> Option<Media> {
    let mut image = block.members("image")?;
    let mut source = image.members("source")?;
    let data = source.text("bytes")?;
    rest.keep(source, &[]);
    rest.keep(image, &["format"]);
    Some(Media {
        source: MediaSource::Inline(data),
        media_type: Some(media_type.to_owned()),
        name: None,
        detail: None,
    })
}
