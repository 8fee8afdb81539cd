//! Reads a provider's answer, and writes a client's.

use gatewright_protocol::conversation::{Answer, Choice, Part, PartKind};
use gatewright_protocol::{MalformedDocument, ResponseContext};
use serde_json::{Value, json};

use super::{LINES, end_of, usage, word_of};

/// Errors: it has no text.
pub(super) fn answer_in(body: &Value) -> Result<Answer, MalformedDocument> {
    let text = body["said"].as_str().ok_or_else(|| MalformedDocument("said is not a text".to_owned()))?;
    let part = Part { at: "/said".into(), kind: PartKind::Text(text.to_owned()), cache: None };
    let end = body["why"].as_str().map(end_of);
    Ok(Answer {
        source: LINES,
        model: body["model"].as_str().map(str::to_owned),
        choices: vec![Choice { parts: vec![part], end, ..Choice::default() }],
        usage: usage::read(&body["tokens"]),
        ..Answer::default()
    })
}

pub(super) fn answer_out(answer: &Answer, context: &ResponseContext) -> Value {
    let first = answer.choices.first();
    let texts = first.into_iter().flat_map(|choice| &choice.parts).filter_map(|part| match &part.kind {
        PartKind::Text(text) => Some(text.as_str()),
        _ => None,
    });
    json!({
        "model": context.model,
        "said": texts.collect::<String>(),
        "why": word_of(first.and_then(|choice| choice.end.as_ref())),
        "tokens": usage::write(answer.usage),
    })
}
