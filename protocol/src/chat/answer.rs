//! Whole answers of the chat protocol.

use serde_json::{Value, json};

use super::citations::{is_whole, read_annotation, write_annotation};
use super::{finish, functions, lenient, message_in, message_out, reasoning, tools, usage};
use crate::citations::list;
use crate::conversation::{Answer, Choice, Citation, Part, PartKind, Protocol};
use crate::members::{Members, RemainingFields, object};
use crate::{MalformedDocument, ResponseContext};

/// Message field with its citations.
const ANNOTATIONS: &str = "annotations";
/// Fields of an answer that mean nothing to another protocol.
const OWN: [&str; 2] = ["object", "system_fingerprint"];
/// The same for a message. The first one only if all of it is understood; the last one repeats a thought's details.
const OWN_OF_MESSAGE: [&str; 4] = [ANNOTATIONS, "role", "reasoning_content", "reasoning"];

/// Reads a provider's answer.
/// Errors: it has no choices.
pub(crate) fn answer_in(body: Value) -> Result<Answer, MalformedDocument> {
    let malformed =
        |what: &str| MalformedDocument(format!("the provider's response is not a chat completion: {what}"));
    let mut body = Members::read(body, "").map_err(|_| malformed("it is not an object"))?;
    let choices = body.list("choices").ok_or_else(|| malformed("/choices is empty or not a list"))?;
    let mut rest = RemainingFields::default();
    let read = |(index, mut value): (usize, Value)| {
        if let Some(message) = value.get_mut("message") {
            lenient::mend(message);
        }
        let at = format!("/choices/{index}");
        let mut choice =
            Members::read(value, at.clone()).map_err(|_| malformed(&format!("{at} is not an object")))?;
        let message = choice.members("message");
        let mut message = message.ok_or_else(|| malformed(&format!("{at}/message is missing")))?;
        let (citations, is_all) = list(message.peek(ANNOTATIONS), read_annotation, is_whole);
        let parts = message_in::parts(&mut message, &mut rest);
        let own = if is_all { &OWN_OF_MESSAGE[..] } else { &OWN_OF_MESSAGE[1..] };
        rest.keep(message, own);
        let logprobs = choice.members("logprobs").and_then(|mut logprobs| {
            let content = logprobs.list("content").map(Value::from);
            rest.keep(logprobs, &[]);
            content
        });
        let end = choice.given("finish_reason", Members::text).map(|word| {
            let end = finish::end(&word.value);
            rest.keep_own(word.value.into(), word.at);
            end
        });
        rest.keep(choice, &["index"]);
        Ok(Choice { at: at.into(), parts, citations, end, logprobs })
    };
    let choices = choices.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
    let mut answer = Answer {
        source: Protocol::Chat,
        id: body.text("id"),
        model: body.text("model"),
        created: body.count("created"),
        choices,
        usage: usage::read(body.peek("usage")),
        service_tier: body.text("service_tier"),
        ..Answer::default()
    };
    if let Some(counted) = body.members("usage") {
        rest.keep(counted, &usage::KNOWN);
    }
    rest.keep(body, &OWN);
    rest.into_answer(&mut answer);
    Ok(answer)
}

/// Writes a client's answer.
pub(crate) fn answer_out(answer: Answer, context: &ResponseContext) -> Value {
    let is_same = answer.source == Protocol::Chat;
    let choices = answer.choices.into_iter().enumerate();
    let choices: Vec<Value> = choices
        .map(|(index, choice)| {
            let logprobs = choice.logprobs.map(|content| json!({ "content": content, "refusal": null }));
            let calls = choice.parts.iter().any(|part| matches!(part.kind, PartKind::Call(_)));
            let mut message = if is_same {
                // A client of the same protocol gets it back unchanged.
                message_out::as_it_was(choice.parts, format!("{}/message", choice.at))
            } else {
                message(&choice.parts, &choice.citations)
            };
            if context.has_functions {
                functions::in_message(&mut message);
            }
            let end = choice.end.as_ref().map(|end| finish::word(end, calls, context.has_functions));
            json!({ "index": index, "message": message, "logprobs": logprobs, "finish_reason": end })
        })
        .collect();
    let mut body = json!({
        "id": answer.id.as_deref().unwrap_or(&context.id),
        "object": "chat.completion",
        "created": answer.created.unwrap_or(context.created),
        "model": context.model,
        "choices": choices,
        "usage": answer.usage.map(usage::write),
    });
    if let Some(tier) = answer.service_tier {
        body["service_tier"] = tier.into();
    }
    body
}

/// Whether a thought comes after other content: then its index says where, as in a stream.
fn is_interleaved(parts: &[Part]) -> bool {
    let is_thought = |part: &&Part| matches!(part.kind, PartKind::Thought(_));
    parts.iter().skip_while(is_thought).any(|part| is_thought(&part))
}

fn message(parts: &[Part], citations: &[Citation]) -> Value {
    let (mut content, mut refusal): (Option<String>, Option<String>) = (None, None);
    let (mut shown, mut details, mut calls) = (String::new(), Vec::new(), Vec::new());
    let (mut signatures, mut is_proven) = (Vec::new(), false);
    let is_interleaved = is_interleaved(parts);
    let (mut place, mut is_in_text) = (0_u64, false);
    for part in parts {
        let is_text = matches!(part.kind, PartKind::Text(_));
        if matches!(part.kind, PartKind::Call(_)) || is_text && !is_in_text {
            place += 1;
        }
        is_in_text = is_text;
        match &part.kind {
            PartKind::Text(text) => content.get_or_insert_default().push_str(text),
            PartKind::Refusal(text) => refusal.get_or_insert_default().push_str(text),
            PartKind::Thought(thought) => {
                reasoning::append(&mut shown, &thought.text);
                is_proven |= thought.signature.is_some() || thought.id.is_some();
                for mut detail in reasoning::details(thought) {
                    if is_interleaved {
                        detail.insert("index".to_owned(), place.into());
                    }
                    place += 1;
                    details.push(detail);
                }
            }
            PartKind::Call(call) => {
                let signature = call.signature.as_deref();
                signatures.extend(signature.map(|signature| reasoning::call_signature(&call.id, signature)));
                calls.push(Value::Object(tools::write_call(call)));
            }
            _ => {}
        }
    }
    if !is_proven {
        details.clear();
    }
    details.append(&mut signatures);
    let length = content.as_ref().map_or(0, |content| content.chars().count());
    let mut message =
        object([("role", "assistant".into()), ("content", content.into()), ("refusal", refusal.into())]);
    if !citations.is_empty() {
        let annotations = citations.iter().map(|citation| write_annotation(citation, length));
        message.insert(ANNOTATIONS.to_owned(), annotations.collect());
    }
    if !shown.is_empty() {
        message.insert("reasoning_content".to_owned(), shown.into());
    }
    if !details.is_empty() {
        message.insert("reasoning_details".to_owned(), details.into());
    }
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), calls.into());
    }
    message.into()
}
