//! Reads requests of the messages protocol.

use serde_json::Value;

use super::{block_in, thinking, tools};
use crate::MalformedDocument;
use crate::calls::name_results;
use crate::conversation::{
    Conversation, Format, Located, Part, PartKind, Protocol, Reasoning, Role, Sampling, ThinkingBudget, Turn,
};
use crate::members::{Members, RemainingFields};

/// Reads a client's request. Errors: it has no messages, or a message without a role.
pub(crate) fn request_in(body: Value, model: &str, stream: bool) -> Result<Conversation, MalformedDocument> {
    let mut body =
        Members::read(body, "").map_err(|_| MalformedDocument("the request is not an object".to_owned()))?;
    let mut rest = RemainingFields::default();
    body.text("model");
    if stream {
        body.flag("stream");
    }
    let mut turns = Vec::new();
    let system = block_in::content(&mut body, "system", &mut rest);
    if !system.is_empty() {
        turns.push(Turn { at: "/system".into(), role: Role::System, name: None, parts: system });
    }
    let messages = body.list("messages").ok_or_else(|| MalformedDocument("/messages is empty".to_owned()))?;
    for (index, message) in messages.into_iter().enumerate() {
        read_message(message, &format!("/messages/{index}"), &mut rest, &mut turns)?;
    }
    name_results(&mut turns);
    let read = |(index, tool)| tools::read_tool(tool, format!("/tools/{index}"), &mut rest);
    let tools = body.list("tools").into_iter().flatten().enumerate().map(read).collect();
    let (tool_choice, parallel_tool_calls) = tools::read_choice(&mut body, &mut rest);
    let budget = thinking::read(&mut body, &mut rest);
    let thinks = budget.as_ref().is_some_and(|budget| budget.value != ThinkingBudget::Off);
    // A client may ask to omit the thoughts.
    let is_shown = thinks && !rest.holds("/thinking/display", "omitted");
    let (effort, format) = output_config(&mut body, &mut rest);
    let mut conversation = Conversation {
        source: Protocol::Messages,
        model: model.to_owned(),
        stream,
        turns,
        tools,
        tool_choice,
        parallel_tool_calls,
        format,
        max_tokens: body.given("max_tokens", Members::count),
        stop: stop(&mut body),
        sampling: Sampling {
            temperature: body.given("temperature", Members::number),
            top_p: body.given("top_p", Members::number),
            top_k: body.given("top_k", Members::number),
            ..Sampling::default()
        },
        reasoning: Reasoning { effort, budget, summary: None, is_shown },
        user: user(&mut body, &mut rest),
        service_tier: body.given("service_tier", |body, name| body.take(name, tier)),
        ..Conversation::default()
    };
    rest.keep(body, &["stream"]);
    rest.into_conversation(&mut conversation);
    Ok(conversation)
}

/// Reads a message. Results in a user message become turns of their own.
fn read_message(
    message: Value,
    at: &str,
    rest: &mut RemainingFields,
    turns: &mut Vec<Turn>,
) -> Result<(), MalformedDocument> {
    let mut message =
        Members::read(message, at).map_err(|_| MalformedDocument(format!("{at} is not an object")))?;
    let role = match message.text("role").as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        _ => return Err(MalformedDocument(format!("{at}/role is not a role of this protocol"))),
    };
    let parts = block_in::content(&mut message, "content", rest);
    rest.keep(message, &[]);
    let role_of = |part: &Part| match part.kind {
        PartKind::Result(_) if role == Role::User => Role::Tool,
        _ => role,
    };
    let turn = |role| Turn { at: at.to_owned().into(), role, name: None, parts: Vec::new() };
    let mut current = turn(parts.first().map_or(role, role_of));
    for part in parts {
        if role_of(&part) != current.role {
            let next = turn(role_of(&part));
            turns.push(std::mem::replace(&mut current, next));
        }
        current.parts.push(part);
    }
    turns.push(current);
    Ok(())
}

fn stop(body: &mut Members) -> Vec<Located<String>> {
    let texts = body.texts("stop_sequences").into_iter().flatten().enumerate();
    texts.map(|(index, text)| Located::new(text, format!("/stop_sequences/{index}"))).collect()
}

/// Takes the effort and the text format, which also has an older place.
fn output_config(
    body: &mut Members,
    rest: &mut RemainingFields,
) -> (Option<Located<String>>, Option<Located<Format>>) {
    let (mut effort, mut format) = (None, None);
    if let Some(mut config) = body.members("output_config") {
        effort = config.given("effort", Members::text);
        format = self::format(&mut config, "format", rest);
        rest.keep(config, &[]);
    }
    if format.is_none() {
        format = self::format(body, "output_format", rest);
    }
    (effort, format)
}

fn format(object: &mut Members, name: &str, rest: &mut RemainingFields) -> Option<Located<Format>> {
    let given = object.peek(name);
    if given.is_null() {
        return None;
    }
    let at = object.place(name);
    let is_schema = given["type"] == "json_schema" && given["schema"].is_object();
    if !is_schema {
        return Some(Located::new(Format::Other(object.value(name)?), at));
    }
    let mut format = object.members(name)?;
    format.text("type");
    let schema_at = format.place("schema").into();
    let schema = format.value("schema")?;
    rest.keep(format, &[]);
    let format = Format::JsonSchema { name: None, description: None, schema, schema_at, strict: None };
    Some(Located::new(format, at))
}

fn user(body: &mut Members, rest: &mut RemainingFields) -> Option<Located<String>> {
    let mut metadata = body.members("metadata")?;
    let user = metadata.given("user_id", Members::text);
    rest.keep(metadata, &[]);
    user
}

/// A service tier in neutral form.
fn tier(value: Value) -> Result<String, Value> {
    match value.as_str() {
        Some("auto") => Ok("auto".to_owned()),
        Some("standard_only") => Ok("default".to_owned()),
        _ => Err(value),
    }
}
