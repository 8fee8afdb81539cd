//! Whole answers of the chat protocol.

use serde_json::{Value, json};

use super::{finish, message_in, reasoning, tools, usage};
use crate::conversation::{Answer, Choice, Part, PartKind, Protocol};
use crate::protocols::members::{Members, Rest, object};
use crate::protocols::{Asked, Malformed};

/// Reads a provider's answer.
/// Errors: it has no choices.
pub(in crate::protocols) fn answer_in(body: Value) -> Result<Answer, Malformed> {
    let malformed = |what: &str| Malformed(format!("the provider's answer is no chat completion: {what}"));
    let mut body = Members::read(body, "").map_err(|_| malformed("it is not an object"))?;
    let choices = body.list("choices").ok_or_else(|| malformed("/choices is empty or no list"))?;
    // What the neutral form has no place for is not passed on.
    let mut rest = Rest::default();
    let read = |(index, value)| {
        let at = format!("/choices/{index}");
        let mut choice =
            Members::read(value, at.clone()).map_err(|_| malformed(&format!("{at} is no object")))?;
        let message = choice.members("message");
        let mut message = message.ok_or_else(|| malformed(&format!("{at}/message is missing")))?;
        Ok(Choice {
            parts: message_in::parts(&mut message, &mut rest),
            end: choice.text("finish_reason").map(|word| finish::end(&word)),
            logprobs: choice.members("logprobs").and_then(|mut logprobs| logprobs.value("content")),
        })
    };
    Ok(Answer {
        source: Protocol::Chat,
        id: body.text("id"),
        model: body.text("model"),
        created: body.count("created"),
        choices: choices.into_iter().enumerate().map(read).collect::<Result<_, _>>()?,
        usage: usage::read(body.peek("usage")),
        service_tier: body.text("service_tier"),
    })
}

/// Writes a client's answer.
pub(in crate::protocols) fn answer_out(answer: Answer, asked: &Asked) -> Value {
    let source = answer.source;
    let choices = answer.choices.into_iter().enumerate();
    let choices: Vec<Value> = choices
        .map(|(index, choice)| {
            let logprobs = choice.logprobs.map(|content| json!({ "content": content, "refusal": null }));
            let calls = choice.parts.iter().any(|part| matches!(part.kind, PartKind::Call(_)));
            json!({
                "index": index,
                "message": message(&choice.parts, source),
                "logprobs": logprobs,
                "finish_reason": choice.end.as_ref().map(|end| finish::word(end, calls)),
            })
        })
        .collect();
    let mut body = json!({
        "id": answer.id.as_deref().unwrap_or(&asked.id),
        "object": "chat.completion",
        "created": answer.created.unwrap_or(asked.created),
        "model": asked.model,
        "choices": choices,
        "usage": answer.usage.map(usage::write),
    });
    if let Some(tier) = answer.service_tier {
        body["service_tier"] = tier.into();
    }
    body
}

fn message(parts: &[Part], source: Protocol) -> Value {
    let (mut content, mut refusal): (Option<String>, Option<String>) = (None, None);
    let (mut shown, mut details, mut calls) = (String::new(), Vec::new(), Vec::new());
    let (mut signatures, mut is_proven) = (Vec::new(), false);
    for part in parts {
        match &part.kind {
            PartKind::Text(text) => content.get_or_insert_default().push_str(text),
            PartKind::Refusal(text) => refusal.get_or_insert_default().push_str(text),
            PartKind::Thought(thought) => {
                reasoning::append(&mut shown, &thought.text);
                is_proven |= thought.signature.is_some() || thought.id.is_some();
                details.extend(reasoning::details(thought));
            }
            PartKind::Call(call) => {
                let signature = call.signature.as_deref();
                signatures.extend(signature.map(|signature| reasoning::call_signature(&call.id, signature)));
                calls.push(Value::Object(tools::write_call(call)));
            }
            PartKind::Other(value) if source == Protocol::Chat && part.at.contains("/tool_calls/") => {
                calls.push(value.clone());
            }
            _ => {}
        }
    }
    if !is_proven {
        details.clear();
    }
    details.append(&mut signatures);
    let mut message =
        object([("role", "assistant".into()), ("content", content.into()), ("refusal", refusal.into())]);
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
