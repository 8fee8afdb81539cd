//! Whole answers of the messages protocol.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::citations::{CITATIONS, MessagesCitations, is_whole, read as read_citation};
use super::{block_in, block_out, stop_reason, usage};
use crate::conversation::{Answer, Choice, Citation, FinishReason, PartKind, Protocol, Thought, Usage};
use crate::json::list;
use crate::members::{Members, RemainingFields};
use crate::{MalformedDocument, ResponseContext, citations};

/// Fields of an answer that mean nothing to another protocol, or are read separately.
const OWN: [&str; 4] = ["type", "role", "stop_reason", "stop_sequence"];

/// Reads a provider's answer.
/// Errors: it has no content.
pub(crate) fn answer_in(body: Value) -> Result<Answer, MalformedDocument> {
    let malformed =
        |what: &str| MalformedDocument(format!("the provider's response is not a message: {what}"));
    let mut body = Members::read(body, "").map_err(|_| malformed("it is not an object"))?;
    if !body.peek("content").is_array() {
        return Err(malformed("/content is not a list"));
    }
    let end = stop_reason::end(body.peek("stop_reason"), body.peek("stop_sequence"));
    let counted = body.peek("usage");
    let usage = usage::read(counted, Usage::default());
    let service_tier = usage::tier(counted);
    let mut rest = RemainingFields::default();
    let (citations, converted) = cited(body.peek("content"));
    // The result of the provider's own tool isn't for the client.
    let results = |(index, block): (usize, &Value)| {
        (block["type"] == "tool_result").then(|| (format!("/content/{index}"), block.clone()))
    };
    let mut results: HashMap<String, Value> =
        list(body.peek("content")).enumerate().filter_map(results).collect();
    let mut parts = block_in::content(&mut body, "content", &mut rest);
    rest.forget(&results);
    for part in &mut parts {
        if let Some(block) = results.remove(&*part.at) {
            part.kind = PartKind::Other(block);
        }
    }
    let counted = body.members("usage");
    let mut answer = Answer {
        source: Protocol::Messages,
        id: body.text("id"),
        model: body.text("model"),
        created: None,
        choices: vec![Choice { parts, citations, end, ..Choice::default() }],
        usage,
        service_tier,
        ..Answer::default()
    };
    if let Some(counted) = counted {
        rest.keep(counted, &usage::KNOWN);
    }
    rest.keep(body, &OWN);
    rest.mark_converted(&converted);
    rest.into_answer(&mut answer);
    Ok(answer)
}

/// The citations of content blocks, and the places of the fields that contain them.
fn cited(content: &Value) -> (Vec<Citation>, HashSet<String>) {
    let (mut all, mut converted, mut at) = (Vec::new(), HashSet::new(), 0);
    for (index, block) in list(content).enumerate().filter(|(_, block)| block["type"] == "text") {
        let end = at + block["text"].as_str().map_or(0, |text| text.chars().count());
        let (of_block, is_all) =
            citations::list(&block[CITATIONS], |citation| read_citation(citation, at..end), is_whole);
        if all.len() + of_block.len() <= citations::MAX_CITATIONS {
            if is_all {
                converted.insert(format!("/content/{index}/{CITATIONS}"));
            }
            all.extend(of_block);
        }
        at = end;
    }
    (all, converted)
}

/// Writes a client's answer. This protocol has a single choice.
pub(crate) fn answer_out(answer: Answer, response_context: &ResponseContext) -> Value {
    let is_same = answer.source == Protocol::Messages;
    let mut choice = answer.choices.into_iter().next().unwrap_or_default();
    citations::clamp(&mut choice);
    let mut content = Vec::with_capacity(choice.parts.len());
    let mut cited = MessagesCitations::new(&choice.citations);
    let (mut calls, mut refuses) = (false, false);
    if is_same {
        // A client of the same protocol gets them back unchanged.
        content = block_out::as_they_were(&std::mem::take(&mut choice.parts));
    }
    for part in choice.parts {
        let block = match part.kind {
            PartKind::Text(text) if text.is_empty() => None,
            PartKind::Text(text) => {
                content.extend(cited.blocks(&text));
                None
            }
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
            _ => None,
        };
        content.extend(block.map(Value::Object));
    }
    let end = match choice.end {
        Some(FinishReason::Stop) if refuses && !is_same => Some(FinishReason::Refusal),
        end => end,
    };
    let words = end.as_ref().map(|end| stop_reason::words(end, calls && !is_same));
    let mut usage = usage::write(answer.usage.unwrap_or_default());
    if let Some(tier) = &answer.service_tier {
        usage["service_tier"] = usage::tier_word(tier).into();
    }
    json!({
        "id": answer.id.as_deref().unwrap_or(&response_context.id),
        "type": "message",
        "role": "assistant",
        "model": response_context.model,
        "content": content,
        "stop_reason": words.map(|(reason, _)| reason),
        "stop_sequence": words.and_then(|(_, sequence)| sequence),
        "usage": usage,
    })
}
