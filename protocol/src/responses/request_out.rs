//! A provider's request.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::content::parts_out;
use super::request_in::LOGPROBS;
use super::{REDACTED, tools};
use crate::cache_marks::CACHE_HINTS;
use crate::calls::NOTHING;
use crate::conversation::{
    Conversation, Format, Input, Located, Part, PartKind, Protocol, Reasoning, Role, Sampling,
    ThinkingBudget, Thought, ToolCall, ToolResult, Turn,
};
use crate::effort::effort_of;
use crate::members::{RequestWriter, object};
use crate::model_rules::accepted_sampling;
use crate::proof;
use crate::stop_sequences;
use crate::thoughts::joined;
use crate::user::{self, MAX_USER};
use crate::{Defaults, EncodedRequest};

/// Service tiers of the protocol.
const TIERS: [&str; 5] = ["auto", "default", "flex", "scale", "priority"];
/// The effort that turns thinking off.
const NO_EFFORT: &str = "none";
/// Minimum of `max_output_tokens`.
const MIN_OUTPUT_TOKENS: u64 = 16;
/// Name of an unnamed text format.
const FORMAT_NAME: &str = "answer";

/// Writes a provider's request.
pub(crate) fn request_out(conversation: &Conversation, _defaults: Defaults) -> EncodedRequest {
    let mut writer = RequestWriter::new(conversation, Protocol::Responses);
    let mut body = object([("model", json!(conversation.model))]);
    let mut set = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
    let turns = instructions(conversation, &mut writer, &mut set);
    match turns {
        [turn] if turn.at == "/input" => set("input", prompt(turn)),
        [] if writer.is_same() => {}
        turns => {
            let items = items(turns, &mut writer);
            // Providers reject empty input.
            let input = if items.is_empty() && !writer.is_same() { json!(NOTHING) } else { items.into() };
            set("input", input);
        }
    }
    if conversation.stream {
        set("stream", json!(true));
    }
    if let Some(given) = &conversation.max_tokens {
        let least = if writer.is_same() { 0 } else { MIN_OUTPUT_TOKENS };
        if given.value < least {
            writer.lose(given.at.clone());
        }
        set("max_output_tokens", json!(given.value.max(least)));
    }
    if let Some(given) = &conversation.metadata {
        set("metadata", json!(given.value));
    }
    if let Some(given) = &conversation.user {
        let most = if writer.is_same() { usize::MAX } else { MAX_USER };
        set(user::member(given), json!(user::id(&given.value, most)));
    }
    match &conversation.service_tier {
        Some(given) if writer.is_same() || TIERS.contains(&given.value.as_str()) => {
            set("service_tier", json!(given.value));
        }
        Some(given) => writer.lose(given.at.clone()),
        None => {}
    }
    let sampling = accepted_sampling(conversation, &mut writer);
    for (name, given) in [("temperature", &sampling.temperature), ("top_p", &sampling.top_p)] {
        if let Some(given) = given {
            set(name, json!(given.value));
        }
    }
    if !writer.is_same() {
        set_hints(conversation, &mut set);
        set_for_others(conversation, &mut set);
    }
    tools::write(conversation, &mut writer, &mut body);
    format(conversation, &mut writer, &mut body);
    reasoning(conversation, &mut writer, &mut body);
    lose(conversation, &sampling, &mut writer);
    writer.complete(&mut body, "");
    writer.finish(body)
}

/// Whether the client wants the model to think, or sends back proofs of thoughts.
fn thinks(conversation: &Conversation) -> bool {
    let Reasoning { effort, budget, .. } = &conversation.reasoning;
    match (effort, budget) {
        (_, Some(Located { value: ThinkingBudget::Off, .. })) => return false,
        (Some(effort), _) => return effort.value != NO_EFFORT,
        (None, Some(_)) => return true,
        (None, None) => {}
    }
    let mut parts = conversation.turns.iter().flat_map(|turn| &turn.parts);
    parts.any(|part| match &part.kind {
        PartKind::Thought(Thought { signature: Some(signature), .. })
        | PartKind::Call(ToolCall { signature: Some(signature), .. }) => {
            proof::of_maker(signature, conversation.source, Protocol::Responses).is_some()
        }
        _ => false,
    })
}

/// Fields of this protocol that chat clients send.
fn set_hints(conversation: &Conversation, set: &mut impl FnMut(&str, Value)) {
    let hints = conversation.own.iter().filter(|_| conversation.source == Protocol::Chat);
    for given in hints.filter(|given| !given.value.is_null()) {
        let name = given.at.strip_prefix('/').filter(|name| CACHE_HINTS.contains(name));
        match (name, &given.value) {
            (Some(name), Value::String(text)) => set(name, json!(user::id(text, MAX_USER))),
            (Some(name), value) => set(name, value.clone()),
            (None, _) => {}
        }
    }
}

/// Sets the fields that requests of other protocols imply.
fn set_for_others(conversation: &Conversation, set: &mut impl FnMut(&str, Value)) {
    // The other protocols have no way to retrieve a stored response.
    set("store", json!(false));
    let mut include = Vec::new();
    // Models that don't think reject the value.
    if thinks(conversation) {
        include.push("reasoning.encrypted_content");
    }
    if let Some(logprobs) = &conversation.logprobs {
        include.push(LOGPROBS);
        set("top_logprobs", json!(logprobs.value));
    }
    if !include.is_empty() {
        set("include", json!(include));
    }
}

/// Reports what the protocol can't express.
fn lose(conversation: &Conversation, sampling: &Sampling, writer: &mut RequestWriter<'_>) {
    // The gateway searches the answer for stop sequences.
    for at in stop_sequences::lost(conversation) {
        writer.lose(at.clone());
    }
    let numbers = [&sampling.top_k, &sampling.frequency_penalty, &sampling.presence_penalty, &sampling.seed];
    for number in numbers.into_iter().flatten() {
        writer.lose(number.at.clone());
    }
    if let Some(choices) = conversation.choices.as_ref().filter(|choices| choices.value != 1) {
        writer.lose(choices.at.clone());
    }
}

/// Sets the instructions and returns the remaining turns.
fn instructions<'a>(
    conversation: &'a Conversation,
    writer: &mut RequestWriter<'_>,
    set: &mut impl FnMut(&str, Value),
) -> &'a [Turn] {
    if let [Turn { at, role: Role::System, name, parts }, others @ ..] = conversation.turns.as_slice()
        && let [Part { kind: PartKind::Text(text), cache, .. }] = parts.as_slice()
        && (at == "/instructions" || !writer.is_same() && !others.is_empty() && name.is_none())
    {
        set("instructions", json!(text));
        writer.lose_cache(cache.as_ref());
        return others;
    }
    &conversation.turns
}

/// The input of a client of this protocol that sent a plain string instead of items.
fn prompt(turn: &Turn) -> Value {
    let text = turn.parts.iter().find_map(|part| match &part.kind {
        PartKind::Text(text) => Some(text.as_str()),
        _ => None,
    });
    json!(text.unwrap_or_default())
}

fn items(turns: &[Turn], writer: &mut RequestWriter<'_>) -> Vec<Value> {
    let mut items = Vec::new();
    for turn in turns {
        if let Some(name) = &turn.name {
            writer.lose(name.at.clone());
        }
        if turn.parts.is_empty() && writer.is_same() {
            items.extend(message(turn.role, &turn.at, &[], writer));
        }
        let joined = if writer.is_same() {
            Cow::Borrowed(turn.parts.as_slice())
        } else {
            joined(&turn.parts, |proof| writer.proof(Some(proof)).is_some())
        };
        let mut parts = &*joined;
        while let [part, others @ ..] = parts {
            parts = others;
            match &part.kind {
                PartKind::Call(call) => items.extend(call_items(call, part, writer)),
                PartKind::Result(result) => items.push(result_item(result, part, writer)),
                PartKind::Thought(thought) => items.extend(thought_item(thought, part, writer)),
                PartKind::Other(value) if writer.is_same() && message_of(&part.at).is_none() => {
                    items.push(value.clone());
                }
                _ => {
                    let first = message_of(&part.at);
                    let is_same = writer.is_same();
                    let belongs =
                        |next: &Part| is_content(next) && (!is_same || message_of(&next.at) == first);
                    let count = others.iter().take_while(|next| belongs(next)).count();
                    let content: Vec<&Part> = std::iter::once(part).chain(&others[..count]).collect();
                    parts = &others[count..];
                    items.extend(message(turn.role, first.unwrap_or(&turn.at), &content, writer));
                }
            }
        }
    }
    items
}

/// Whether a part belongs in a message rather than in an item of its own.
fn is_content(part: &Part) -> bool {
    !matches!(part.kind, PartKind::Call(_) | PartKind::Result(_) | PartKind::Thought(_))
}

/// The place of the message in which a client of this protocol wrote a part.
fn message_of(at: &str) -> Option<&str> {
    at.split_once("/content").map(|(message, _)| message)
}

fn message(role: Role, at: &str, parts: &[&Part], writer: &mut RequestWriter<'_>) -> Option<Value> {
    let word = match role {
        Role::System => "system",
        Role::Developer => "developer",
        Role::User | Role::Tool => "user",
        Role::Assistant => "assistant",
    };
    let mut message = object([("role", json!(word))]);
    match parts_out(parts, role, writer) {
        Some(content) => drop(message.insert("content".to_owned(), content)),
        None if writer.is_same() => {}
        None => return None,
    }
    if writer.is_same() {
        writer.complete(&mut message, at);
    } else {
        message.insert("type".to_owned(), json!("message"));
    }
    Some(Value::Object(message))
}

/// A call, preceded by the item that holds the proof of the thoughts that led to it.
fn call_items(call: &ToolCall, part: &Part, writer: &mut RequestWriter<'_>) -> Vec<Value> {
    writer.lose_cache(part.cache.as_ref());
    let (kind, name, input) = match &call.input {
        Input::Json(text) => ("function_call", "arguments", text),
        Input::Text(text) => ("custom_tool_call", "input", text),
    };
    let mut item = object([
        ("type", json!(kind)),
        ("call_id", json!(call.id)),
        ("name", json!(call.name)),
        (name, json!(input)),
    ]);
    writer.complete(&mut item, &part.at);
    let proof = writer
        .proof(call.signature.as_ref())
        .map(|signature| json!({ "type": "reasoning", "summary": [], "encrypted_content": signature }));
    proof.into_iter().chain([Value::Object(item)]).collect()
}

fn result_item(result: &ToolResult, part: &Part, writer: &mut RequestWriter<'_>) -> Value {
    writer.lose_cache(part.cache.as_ref());
    if let Some(at) = &result.failed {
        writer.lose(at.clone());
    }
    let kind = if result.custom { "custom_tool_call_output" } else { "function_call_output" };
    let mut item = object([("type", json!(kind)), ("call_id", json!(result.call_id))]);
    let parts: Vec<&Part> = result.parts.iter().collect();
    let output = parts_out(&parts, Role::Tool, writer);
    item.insert("output".to_owned(), output.unwrap_or_else(|| json!("")));
    writer.complete(&mut item, &part.at);
    Value::Object(item)
}

fn thought_item(thought: &Thought, part: &Part, writer: &mut RequestWriter<'_>) -> Option<Value> {
    let proof = writer.proof(thought.signature.as_ref());
    // Providers reject a thought without the proof that it is the model's own.
    if proof.is_none() && !writer.is_same() {
        writer.lose(part.at.clone());
        return None;
    }
    // Providers show a thought as a summary, and reject its text.
    let is_summary = thought.summary || !writer.is_same();
    let (name, kind) = if is_summary { ("summary", "summary_text") } else { ("content", "reasoning_text") };
    let texts: Vec<Value> = thought.text.iter().map(|text| json!({ "type": kind, "text": text })).collect();
    let mut item = object([("type", json!("reasoning"))]);
    if !writer.is_same() {
        item.insert("summary".to_owned(), json!([]));
    }
    if !texts.is_empty() {
        item.insert(name.to_owned(), texts.into());
    }
    if let Some(signature) = proof {
        let mark = if thought.redacted && writer.is_same() { REDACTED } else { "" };
        item.insert("encrypted_content".to_owned(), json!(format!("{mark}{signature}")));
    }
    // Other protocols use other id formats. A client of this one gets its own back.
    if let Some(id) = thought.id.as_ref().filter(|id| !writer.is_same() && id.starts_with("rs_")) {
        item.insert("id".to_owned(), json!(id));
    }
    writer.complete(&mut item, &part.at);
    Some(Value::Object(item))
}

fn format(conversation: &Conversation, writer: &mut RequestWriter<'_>, body: &mut Map<String, Value>) {
    let mut text = Map::new();
    if let Some(Located { value, at }) = &conversation.format {
        // Its own protocol gets it unchanged.
        let assumed = (!writer.is_same()).then_some(FORMAT_NAME);
        match format_out(value, assumed) {
            Some(format) => writer.set(&mut text, "format", format, at),
            None => match value {
                Format::Other(value) if writer.is_same() => {
                    text.insert("format".to_owned(), value.clone());
                }
                _ => writer.lose(at.clone()),
            },
        }
    }
    if let Some(given) = &conversation.verbosity {
        text.insert("verbosity".to_owned(), json!(given.value));
    }
    writer.set(body, "text", text, "/text");
}

/// Writes a text format. `assumed`: its name if it has none.
fn format_out(format: &Format, assumed: Option<&str>) -> Option<Map<String, Value>> {
    Some(match format {
        Format::Text => object([("type", json!("text"))]),
        Format::JsonObject => object([("type", json!("json_object"))]),
        Format::JsonSchema { name, description, schema, strict, .. } => {
            let mut format = object([("type", json!("json_schema"))]);
            if let Some(name) = name.as_deref().or(assumed) {
                format.insert("name".to_owned(), json!(name));
            }
            format.insert("schema".to_owned(), schema.clone());
            if let Some(description) = description {
                format.insert("description".to_owned(), json!(description.value));
            }
            if let Some(strict) = strict {
                format.insert("strict".to_owned(), json!(strict.value));
            }
            format
        }
        Format::OneOf(_) | Format::Other(_) => return None,
    })
}

fn reasoning(conversation: &Conversation, writer: &mut RequestWriter<'_>, body: &mut Map<String, Value>) {
    let wanted = &conversation.reasoning;
    let mut reasoning = Map::new();
    match (&wanted.effort, &wanted.budget) {
        (Some(Located { value, at }), _) if value == NO_EFFORT && !writer.is_same() => {
            writer.lose(at.clone());
        }
        (Some(effort), budget) => {
            // A value of the messages protocol.
            let is_foreign = effort.value == "max" && !writer.is_same();
            let word = if is_foreign { "high" } else { effort.value.as_str() };
            reasoning.insert("effort".to_owned(), json!(word));
            if let Some(Located { value: ThinkingBudget::Tokens(_), at }) = budget {
                writer.lose(at.clone());
            }
        }
        // A model that doesn't think would reject the value that turns thinking off.
        (None, Some(Located { value: ThinkingBudget::Off, at })) => writer.lose(at.clone()),
        (None, Some(Located { value: ThinkingBudget::Tokens(tokens), .. })) => {
            reasoning.insert("effort".to_owned(), json!(effort_of(*tokens)));
        }
        // No value means "let the model decide".
        (None, Some(Located { value: ThinkingBudget::Adaptive, .. }) | None) => {}
    }
    // No summary is the default.
    if let Some(summary) = wanted.summary.as_ref().filter(|word| writer.is_same() || word.value != "none") {
        reasoning.insert("summary".to_owned(), json!(summary.value));
    }
    if wanted.is_shown && !writer.is_same() {
        reasoning.entry("summary").or_insert_with(|| json!("auto"));
    }
    writer.set(body, "reasoning", reasoning, "/reasoning");
}
