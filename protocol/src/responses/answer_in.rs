//! A response as a provider sends it.

use serde_json::Value;

use super::citations::{ANNOTATIONS, is_whole, read_annotation};
use super::request_in::texts;
use super::usage;
use crate::conversation::{Answer, Choice, FinishReason, Input, Part, PartKind, Protocol, Thought, ToolCall};
use crate::members::{Members, RemainingFields};
use crate::{MalformedDocument, citations, failure};

/// Fields of a response that mean nothing to another protocol: those read separately, and those that repeat the request.
pub(super) const OWN: [&str; 38] = [
    "id",
    "object",
    "created_at",
    "completed_at",
    "status",
    "background",
    "billing",
    "error",
    "frequency_penalty",
    "incomplete_details",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "model",
    "output",
    "output_text",
    "parallel_tool_calls",
    "presence_penalty",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "usage",
    "user",
    "metadata",
    "conversation",
    "content_filters",
];
/// The same for an item and for a part of a message.
const OWN_OF_ITEM: [&str; 4] = ["type", "id", "status", "role"];

/// The same for usage: the details break down the same counts.
pub(super) const OWN_OF_USAGE: [&str; 5] =
    ["input_tokens", "input_tokens_details", "output_tokens", "output_tokens_details", "total_tokens"];

/// Reads a provider's response. Errors: it isn't a response with output, or one that failed.
pub(crate) fn answer_in(mut body: Value) -> Result<Answer, MalformedDocument> {
    if body["status"] == "failed" {
        let failure = failure::of_value(&body["error"]);
        return Err(MalformedDocument(format!("the response failed: {}", failure.message)));
    }
    let Some(Value::Array(items)) = body.get_mut("output").map(Value::take) else {
        return Err(MalformedDocument("/output: the response has no array of items".to_owned()));
    };
    let (mut choice, mut length, mut rest) = (Choice::default(), 0, RemainingFields::default());
    for (index, item) in items.into_iter().enumerate() {
        item_in(item, format!("/output/{index}"), &mut choice, &mut length, &mut rest);
    }
    choice.end = Some(end_in(&body, &choice.parts));
    let mut answer = Answer {
        source: Protocol::Responses,
        id: body["id"].as_str().map(str::to_owned),
        model: body["model"].as_str().map(str::to_owned),
        created: created(&body),
        choices: vec![choice],
        usage: usage::read(&body["usage"]),
        service_tier: body["service_tier"].as_str().map(str::to_owned),
        ..Answer::default()
    };
    if let Ok(mut body) = Members::read(body, "") {
        for read in ["id", "model"] {
            body.text(read);
        }
        body.take("output", |taken| if taken.is_null() { Ok(()) } else { Err(taken) });
        // Their known fields are read separately; unknown ones may come with them.
        for (name, known) in [("usage", &OWN_OF_USAGE[..]), ("incomplete_details", &["reason"])] {
            if let Some(members) = body.members(name) {
                rest.keep(members, known);
            }
        }
        rest.keep(body, &OWN);
    }
    rest.into_answer(&mut answer);
    Ok(answer)
}

/// A response's Unix time, which may have a fraction.
pub(super) fn created(response: &Value) -> Option<u64> {
    let created = &response["created_at"];
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds; a cast saturates")]
    let whole = |seconds: f64| seconds as u64;
    created.as_u64().or_else(|| created.as_f64().map(whole))
}

/// Reads an output item into parts of the answer. `length`: characters of the text so far.
pub(super) fn item_in(
    item: Value,
    at: String,
    choice: &mut Choice,
    length: &mut usize,
    rest: &mut RemainingFields,
) {
    let mut item = match Members::read(item, at.clone()) {
        Ok(item) => item,
        Err(value) => return choice.parts.push(part_at(at, PartKind::Other(value))),
    };
    let kind = match item.peek("type").as_str() {
        Some("message") => {
            message_in(&mut item, choice, length, rest);
            return rest.keep(item, &OWN_OF_ITEM);
        }
        Some("function_call") => call_in(&mut item, "arguments", Input::Json),
        Some("custom_tool_call") => call_in(&mut item, "input", Input::Text),
        Some("reasoning") => Some(PartKind::Thought(thought_in(&mut item))),
        _ => None,
    };
    match kind {
        Some(kind) => {
            rest.keep(item, &OWN_OF_ITEM);
            choice.parts.push(part_at(at, kind));
        }
        None => choice.parts.push(part_at(at, PartKind::Other(item.into_value()))),
    }
}

fn part_at(at: String, kind: PartKind) -> Part {
    Part { at: at.into(), kind, cache: None }
}

fn message_in(item: &mut Members, choice: &mut Choice, length: &mut usize, rest: &mut RemainingFields) {
    let list = item.place("content");
    for (index, content) in item.list("content").unwrap_or_default().into_iter().enumerate() {
        let at = format!("{list}/{index}");
        let mut content = match Members::read(content, at.clone()) {
            Ok(content) => content,
            Err(value) => {
                choice.parts.push(part_at(at, PartKind::Other(value)));
                continue;
            }
        };
        let begin = *length;
        let kind = match content.peek("type").as_str() {
            Some("output_text") => content.text("text").map(PartKind::Text),
            Some("refusal") => content.text("refusal").map(PartKind::Refusal),
            _ => None,
        };
        if kind.is_some()
            && let Some(logprobs) = content.list("logprobs")
        {
            match &mut choice.logprobs {
                Some(Value::Array(all)) => all.extend(logprobs),
                none => *none = Some(logprobs.into()),
            }
        }
        if let Some(PartKind::Text(text)) = &kind {
            *length += text.chars().count();
        }
        let Some(kind) = kind else {
            choice.parts.push(part_at(at, PartKind::Other(content.into_value())));
            continue;
        };
        let (citations, is_all) =
            citations::list(content.peek(ANNOTATIONS), |it| read_annotation(it, begin), is_whole);
        let has_room = choice.citations.len() + citations.len() <= citations::MAX_CITATIONS;
        if has_room {
            choice.citations.extend(citations);
        }
        rest.keep(content, if is_all && has_room { &["type", ANNOTATIONS] } else { &["type"] });
        choice.parts.push(part_at(at, kind));
    }
}

fn call_in(item: &mut Members, input: &str, read: fn(String) -> Input) -> Option<PartKind> {
    if !["call_id", "name", input].iter().all(|name| item.peek(name).is_string()) {
        return None;
    }
    let (id, name) = (item.text("call_id")?, item.text("name")?);
    Some(PartKind::Call(ToolCall { id, name, input: read(item.text(input)?), signature: None }))
}

pub(super) fn thought_in(item: &mut Members) -> Thought {
    let summary = texts(item, "summary", "summary_text");
    let content = if summary.is_none() { texts(item, "content", "reasoning_text") } else { None };
    Thought {
        id: item.text("id"),
        summary: summary.is_some(),
        text: summary.or(content).unwrap_or_default(),
        signature: item.text("encrypted_content"),
        redacted: false,
    }
}

/// Why a response ended.
pub(super) fn end_in(response: &Value, parts: &[Part]) -> FinishReason {
    if response["status"] == "incomplete" {
        return match response["incomplete_details"]["reason"].as_str() {
            Some("max_output_tokens") => FinishReason::Length,
            Some("content_filter") => FinishReason::Filtered,
            reason => {
                let word = reason.unwrap_or("incomplete").to_owned();
                FinishReason::Other { source: Protocol::Responses, word }
            }
        };
    }
    let has = |is: fn(&PartKind) -> bool| parts.iter().any(|part| is(&part.kind));
    if has(|kind| matches!(kind, PartKind::Call(_))) {
        FinishReason::ToolCalls
    } else if has(|kind| matches!(kind, PartKind::Refusal(_))) {
        FinishReason::Refusal
    } else {
        FinishReason::Stop
    }
}
