//! Writes requests of the chat protocol.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::tools::{insert, write_choice, write_tool};
use super::{functions, message_out};
use crate::calls::NOTHING;
use crate::capabilities::TokenLimit;
use crate::conversation::{Conversation, Format, Located, Protocol, ThinkingBudget, Tool, ToolKind};
use crate::members::{RequestWriter, object};
use crate::model_rules::accepted_sampling;
use crate::user::{self, MAX_USER};
use crate::{Defaults, EncodedRequest, effort, tool_choice};

/// Maximum number of stop sequences.
const MAX_STOPS: usize = 4;
/// Name of an unnamed schema.
const ASSUMED_NAME: &str = "answer";

/// Writes a provider's request.
pub(crate) fn request_out(conversation: &Conversation, defaults: Defaults) -> EncodedRequest {
    let capabilities = defaults.capabilities;
    let mut writer = RequestWriter::new(conversation, Protocol::Chat).for_server(capabilities);
    let mut body = object([("model", conversation.model.as_str().into())]);
    let mut messages = message_out::messages(conversation, &mut writer);
    if messages.is_empty() && !writer.is_same() {
        // Providers reject a request without messages.
        messages.push(json!({ "role": "user", "content": NOTHING }));
    }
    body.insert("messages".to_owned(), messages.into());
    write_tools(conversation, &mut writer, &mut body);
    if let Some(given) = &conversation.format {
        insert(&mut body, "response_format", format(given, &mut writer));
    }
    if let Some(max) = &conversation.max_tokens {
        let newer = if writer.is_same() {
            max.at == "/max_completion_tokens"
        } else {
            capabilities.token_limit == TokenLimit::MaxCompletionTokens
        };
        let name = if newer { "max_completion_tokens" } else { "max_tokens" };
        body.insert(name.to_owned(), max.value.into());
    }
    write_stop(conversation, &mut writer, &mut body);
    write_sampling(conversation, &mut writer, &mut body);
    write_reasoning(conversation, &mut writer, &mut body);
    insert(&mut body, "n", conversation.choices.as_ref().map(|number| number.value));
    if let Some(alternatives) = &conversation.logprobs {
        body.insert("logprobs".to_owned(), true.into());
        if alternatives.value > 0 || alternatives.at == "/top_logprobs" {
            body.insert("top_logprobs".to_owned(), alternatives.value.into());
        }
    }
    insert(&mut body, "metadata", conversation.metadata.as_ref().map(|metadata| metadata.value.clone()));
    let most = if writer.is_same() { usize::MAX } else { MAX_USER };
    if let Some(given) = &conversation.user {
        let name = if writer.is_same() { user::member(given) } else { user::USER };
        body.insert(name.to_owned(), user::id(&given.value, most).into());
    }
    insert(&mut body, "service_tier", conversation.service_tier.as_ref().map(|tier| tier.value.as_str()));
    insert(&mut body, "verbosity", conversation.verbosity.as_ref().map(|word| word.value.as_str()));
    if conversation.stream {
        body.insert("stream".to_owned(), true.into());
        if !writer.is_same() && capabilities.stream_options {
            // Every other protocol reports a stream's usage by default.
            body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
        }
    }
    writer.complete(&mut body, "");
    writer.finish(body)
}

fn write_tools(conversation: &Conversation, writer: &mut RequestWriter<'_>, body: &mut Map<String, Value>) {
    let is_same = writer.is_same();
    let is_function = |at: &str| is_same && functions::is_place(at);
    if is_same {
        functions::write(conversation, writer, body);
    }
    let tools = conversation.tools.iter().filter(|tool| !is_function(&tool.at));
    let tools: Vec<Value> = tools.filter_map(|tool| write_tool(tool, writer)).collect();
    let choice = if writer.is_same() {
        let choice = conversation.tool_choice.as_ref().filter(|choice| !is_function(&choice.at));
        choice.map(|choice| Cow::Borrowed(&choice.value))
    } else {
        let is_written = |tool: &Tool| !matches!(tool.kind, ToolKind::Other(_));
        tool_choice::possible(conversation, is_written, writer)
    };
    let parallel = conversation.parallel_tool_calls.as_ref().filter(|parallel| !is_function(&parallel.at));
    if tools.is_empty() && !writer.is_same() {
        return;
    }
    if !tools.is_empty() {
        body.insert("tools".to_owned(), tools.into());
    }
    insert(body, "tool_choice", choice.map(|choice| write_choice(&choice, &conversation.tools)));
    insert(body, "parallel_tool_calls", parallel.map(|parallel| parallel.value));
}

fn format(given: &Located<Format>, writer: &mut RequestWriter<'_>) -> Option<Value> {
    let mut value = match &given.value {
        Format::Text => object([("type", "text".into())]),
        Format::JsonObject => object([("type", "json_object".into())]),
        Format::JsonSchema { name, description, schema, strict, .. } => {
            let name = name.as_deref().unwrap_or(ASSUMED_NAME);
            let mut inner = object([("name", name.into())]);
            insert(&mut inner, "description", description.as_ref().map(|text| text.value.as_str()));
            inner.insert("schema".to_owned(), schema.clone());
            insert(&mut inner, "strict", strict.as_ref().map(|strict| strict.value));
            writer.complete(&mut inner, "/response_format/json_schema");
            object([("type", "json_schema".into()), ("json_schema", inner.into())])
        }
        Format::Other(value) if writer.is_same() => return Some(value.clone()),
        Format::OneOf(_) | Format::Other(_) => {
            writer.lose(given.at.clone());
            return None;
        }
    };
    writer.complete(&mut value, "/response_format");
    Some(value.into())
}

fn write_stop(conversation: &Conversation, writer: &mut RequestWriter<'_>, body: &mut Map<String, Value>) {
    let (stop, beyond) = match conversation.stop.as_slice() {
        [] => return,
        [only] if only.at == "/stop" => {
            body.insert("stop".to_owned(), only.value.as_str().into());
            return;
        }
        stop if writer.is_same() => (stop, &[][..]),
        stop => stop.split_at(stop.len().min(MAX_STOPS)),
    };
    for sequence in beyond {
        writer.lose(sequence.at.clone());
    }
    let stop: Vec<&str> = stop.iter().map(|sequence| sequence.value.as_str()).collect();
    body.insert("stop".to_owned(), stop.into());
}

fn write_sampling(
    conversation: &Conversation,
    writer: &mut RequestWriter<'_>,
    body: &mut Map<String, Value>,
) {
    let sampling = accepted_sampling(conversation, writer);
    let numbers = [
        ("temperature", &sampling.temperature),
        ("top_p", &sampling.top_p),
        ("frequency_penalty", &sampling.frequency_penalty),
        ("presence_penalty", &sampling.presence_penalty),
        ("seed", &sampling.seed),
    ];
    for (name, number) in numbers {
        insert(body, name, number.as_ref().map(|number| Value::Number(number.value.clone())));
    }
    if let Some(top_k) = &sampling.top_k {
        if writer.is_same() {
            body.insert("top_k".to_owned(), top_k.value.clone().into());
            return;
        }
        writer.lose(top_k.at.clone());
    }
}

fn write_reasoning(
    conversation: &Conversation,
    writer: &mut RequestWriter<'_>,
    body: &mut Map<String, Value>,
) {
    let reasoning = &conversation.reasoning;
    if writer.is_same() {
        // If the client wrote it in another field, that field goes back unchanged.
        let effort = reasoning.effort.as_ref().filter(|effort| effort.at == "/reasoning_effort");
        insert(body, "reasoning_effort", effort.map(|effort| effort.value.as_str()));
        return;
    }
    let effort = match (&reasoning.effort, &reasoning.budget) {
        // A value of the messages protocol.
        (Some(effort), _) if effort.value == "max" => Some("high"),
        (Some(effort), _) => Some(effort.value.as_str()),
        (None, Some(Located { value: ThinkingBudget::Tokens(tokens), .. })) => {
            Some(effort::effort_of(*tokens))
        }
        // No value means "let the model decide". A model that doesn't think would reject the value that turns thinking
        // off.
        (None, Some(Located { value: ThinkingBudget::Adaptive, .. }) | None) => None,
        (None, Some(Located { value: ThinkingBudget::Off, at })) => {
            writer.lose(at.clone());
            None
        }
    };
    insert(body, "reasoning_effort", effort);
    if let (Some(_), Some(Located { value: ThinkingBudget::Tokens(_), at })) =
        (&reasoning.effort, &reasoning.budget)
    {
        writer.lose(at.clone());
    }
    if let Some(summary) = &reasoning.summary {
        writer.lose(summary.at.clone());
    }
}
