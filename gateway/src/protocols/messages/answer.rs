//! Whole answers of the messages protocol.

use serde_json::{Value, json};

use super::{block_in, block_out, stop_reason, usage};
use crate::conversation::{Answer, Choice, End, PartKind, Protocol, Thought, Usage};
use crate::protocols::members::{Members, Rest};
use crate::protocols::{Asked, Malformed};

/// Reads a provider's answer.
/// Errors: it has no content.
pub(in crate::protocols) fn answer_in(body: Value) -> Result<Answer, Malformed> {
    let malformed = |what: &str| Malformed(format!("the provider's answer is no message: {what}"));
    let mut body = Members::read(body, "").map_err(|_| malformed("it is not an object"))?;
    if !body.peek("content").is_array() {
        return Err(malformed("/content is no list"));
    }
    let end = stop_reason::end(body.peek("stop_reason"), body.peek("stop_sequence"));
    let counted = body.peek("usage");
    let usage = counted.is_object().then(|| usage::read(counted, Usage::default()));
    let service_tier = usage::tier(counted);
    // What the neutral form has no place for is not passed on.
    let parts = block_in::content(&mut body, "content", &mut Rest::default());
    Ok(Answer {
        source: Protocol::Messages,
        id: body.text("id"),
        model: body.text("model"),
        created: None,
        choices: vec![Choice { parts, end, logprobs: None }],
        usage,
        service_tier,
    })
}

/// Writes a client's answer. This protocol has one choice.
pub(in crate::protocols) fn answer_out(answer: Answer, asked: &Asked) -> Value {
    let is_same = answer.source == Protocol::Messages;
    let choice = answer.choices.into_iter().next().unwrap_or_default();
    let mut content = Vec::with_capacity(choice.parts.len());
    let (mut calls, mut refuses) = (false, false);
    for part in choice.parts {
        let block = match part.kind {
            PartKind::Text(text) if text.is_empty() && !is_same => None,
            PartKind::Text(text) => Some(block_out::text(&text)),
            PartKind::Refusal(text) => {
                refuses = true;
                Some(block_out::text(&text))
            }
            PartKind::Thought(thought) => block_out::thought(&thought, true),
            PartKind::Call(call) => {
                calls = true;
                let proof = Thought { signature: call.signature.clone(), ..Thought::default() };
                content.extend(block_out::thought(&proof, false).map(Value::Object));
                Some(block_out::tool_use(&call))
            }
            PartKind::Other(value) if is_same => {
                content.push(value);
                None
            }
            _ => None,
        };
        content.extend(block.map(Value::Object));
    }
    let end = match choice.end {
        Some(End::Stop) if refuses && !is_same => Some(End::Refusal),
        end => end,
    };
    let words = end.as_ref().map(|end| stop_reason::words(end, calls && !is_same));
    let mut usage = usage::write(answer.usage.unwrap_or_default());
    if let Some(tier) = &answer.service_tier {
        usage["service_tier"] = usage::tier_word(tier).into();
    }
    json!({
        "id": answer.id.as_deref().unwrap_or(&asked.id),
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": content,
        "stop_reason": words.map(|(reason, _)| reason),
        "stop_sequence": words.and_then(|(_, sequence)| sequence),
        "usage": usage,
    })
}
