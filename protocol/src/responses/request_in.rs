//! A client's request.

use std::collections::HashMap;

use serde_json::Value;

use super::REDACTED;
use super::content::{part, parts_in};
use crate::MalformedDocument;
use crate::conversation::{
    Conversation, Format, Input, Located, Part, PartKind, Protocol, Reasoning, Role, Sampling, Thought, Tool,
    ToolCall, ToolChoice, ToolKind, ToolResult, Turn,
};
use crate::members::{Members, RemainingFields};
use crate::user;

/// Request fields that mean nothing to another protocol: the gateway itself stores and continues responses, and clients
/// of this protocol get extra answer data anyway.
const OWN: &[&str] = &["stream", "store", "background", "include", "top_logprobs"];
/// The same for items.
const OWN_OF_ITEMS: &[&str] = &["type", "id", "status"];
/// In `include`: log probabilities.
pub(super) const LOGPROBS: &str = "message.output_text.logprobs";

/// Reads a client's request that has passed schema validation. Errors: it isn't an object.
pub(crate) fn request_in(body: Value, model: &str, stream: bool) -> Result<Conversation, MalformedDocument> {
    let mut root =
        Members::read(body, "").map_err(|_| MalformedDocument("the request is not an object".to_owned()))?;
    let mut rest = RemainingFields::default();
    root.text("model");
    root.take("stream", |value| if value == true { Ok(()) } else { Err(value) });
    let tools = tools(&mut root, &mut rest);
    let (format, verbosity) = text(&mut root, &mut rest);
    let mut conversation = Conversation {
        source: Protocol::Responses,
        model: model.to_owned(),
        stream,
        turns: turns(&mut root, &mut rest),
        tool_choice: root.given("tool_choice", Members::value).map(|choice| tool_choice(choice, &tools)),
        tools,
        parallel_tool_calls: root.given("parallel_tool_calls", Members::flag),
        format,
        verbosity,
        max_tokens: root.given("max_output_tokens", Members::count),
        sampling: Sampling {
            temperature: root.given("temperature", Members::number),
            top_p: root.given("top_p", Members::number),
            ..Sampling::default()
        },
        reasoning: reasoning(&mut root, &mut rest),
        logprobs: logprobs(&root),
        metadata: root.given("metadata", Members::object),
        user: user::read(&mut root),
        service_tier: root.given("service_tier", Members::text),
        ..Conversation::default()
    };
    // The default: nothing is truncated.
    if root.word("truncation", "disabled") {
        rest.keep_own("disabled".into(), "/truncation");
    }
    rest.keep(root, OWN);
    rest.into_conversation(&mut conversation);
    Ok(conversation)
}

/// What `include` and `top_logprobs` request; both fields are kept as the client wrote them.
fn logprobs(root: &Members) -> Option<Located<u64>> {
    let top = root.peek("top_logprobs").as_u64().filter(|top| *top > 0);
    let included = root.peek("include").as_array().is_some_and(|all| all.iter().any(|one| one == LOGPROBS));
    let at = if top.is_some() { "/top_logprobs" } else { "/include" };
    (included || top.is_some()).then(|| Located::new(top.unwrap_or(0), at))
}

fn reasoning(root: &mut Members, rest: &mut RemainingFields) -> Reasoning {
    let Some(mut context) = root.members("reasoning") else { return Reasoning::default() };
    let reasoning = Reasoning {
        effort: context.given("effort", Members::text),
        budget: None,
        summary: context.given("summary", Members::text),
        is_shown: false,
    };
    rest.keep(context, &[]);
    reasoning
}

/// The text format and verbosity.
fn text(
    root: &mut Members,
    rest: &mut RemainingFields,
) -> (Option<Located<Format>>, Option<Located<String>>) {
    let Some(mut text) = root.members("text") else { return (None, None) };
    let at = text.place("format");
    let format = text.value("format").map(|format| match Members::read(format, &*at) {
        Ok(format) => format_of(format, rest),
        Err(format) => Format::Other(format),
    });
    let verbosity = text.given("verbosity", Members::text);
    rest.keep(text, &[]);
    (format.map(|format| Located::new(format, at)), verbosity)
}

fn format_of(mut format: Members, rest: &mut RemainingFields) -> Format {
    let kind = match format.peek("type").as_str() {
        Some("text") => Format::Text,
        Some("json_object") => Format::JsonObject,
        Some("json_schema") if format.peek("schema").is_object() => Format::JsonSchema {
            name: format.text("name"),
            description: format.given("description", Members::text),
            schema_at: format.place("schema").into(),
            schema: format.value("schema").unwrap_or_default(),
            strict: format.given("strict", Members::flag),
        },
        _ => return Format::Other(format.into_value()),
    };
    format.text("type");
    rest.keep(format, &[]);
    kind
}

fn tools(root: &mut Members, rest: &mut RemainingFields) -> Vec<Tool> {
    let tools = root.list("tools").unwrap_or_default().into_iter().enumerate();
    tools
        .map(|(index, tool)| {
            let at = format!("/tools/{index}");
            let kind = match Members::read(tool, &*at) {
                Ok(tool) => tool_kind(tool, rest),
                Err(tool) => ToolKind::Other(tool),
            };
            tool_at(at, kind)
        })
        .collect()
}

pub(super) fn tool_at(at: String, kind: ToolKind) -> Tool {
    let within = match &kind {
        ToolKind::Function { .. } => "/parameters",
        ToolKind::Custom { .. } => "/format",
        ToolKind::Other(_) => "",
    };
    Tool { schema_at: format!("{at}{within}").into(), at: at.into(), kind, cache: None }
}

pub(super) fn tool_kind(mut tool: Members, rest: &mut RemainingFields) -> ToolKind {
    if !tool.peek("name").is_string() {
        return ToolKind::Other(tool.into_value());
    }
    let kind = match tool.peek("type").as_str() {
        Some("function") => ToolKind::Function {
            name: tool.text("name").unwrap_or_default(),
            description: tool.text("description"),
            parameters: tool.object("parameters").map(Value::Object),
            strict: tool.given("strict", Members::flag),
        },
        Some("custom") => ToolKind::Custom {
            name: tool.text("name").unwrap_or_default(),
            description: tool.text("description"),
            format: tool.object("format").map(Value::Object),
        },
        _ => return ToolKind::Other(tool.into_value()),
    };
    tool.text("type");
    rest.keep(tool, &[]);
    kind
}

fn tool_choice(choice: Located<Value>, tools: &[Tool]) -> Located<ToolChoice> {
    let Located { value, at } = choice;
    let read = match value.as_str() {
        Some("auto") => Some(ToolChoice::Auto),
        Some("none") => Some(ToolChoice::None),
        Some("required") => Some(ToolChoice::Required),
        Some(_) => None,
        None => named(&value).or_else(|| allowed(&value, tools)),
    };
    Located::new(read.unwrap_or(ToolChoice::Other(value)), at)
}

/// A tool by name, as a choice or in a list of choices.
fn named(choice: &Value) -> Option<ToolChoice> {
    let members = choice.as_object().filter(|members| members.len() == 2)?;
    let name = members.get("name")?.as_str()?.to_owned();
    match members.get("type")?.as_str()? {
        "function" => Some(ToolChoice::Function(name)),
        "custom" => Some(ToolChoice::Custom(name)),
        _ => None,
    }
}

fn allowed(choice: &Value, tools: &[Tool]) -> Option<ToolChoice> {
    let members =
        choice.as_object().filter(|members| members.len() == 3 && choice["type"] == "allowed_tools")?;
    let required = match members.get("mode")?.as_str()? {
        "auto" => false,
        "required" => true,
        _ => return None,
    };
    let entries = members.get("tools")?.as_array()?;
    let names = entries.iter().map(|entry| match named(entry)? {
        ToolChoice::Custom(name) => is_custom(&name, tools).then_some(name),
        ToolChoice::Function(name) => (!is_custom(&name, tools)).then_some(name),
        _ => None,
    });
    Some(ToolChoice::Allowed { names: names.collect::<Option<_>>()?, required })
}

/// Whether a name belongs to a custom tool.
pub(super) fn is_custom(name: &str, tools: &[Tool]) -> bool {
    tools.iter().any(|tool| matches!(&tool.kind, ToolKind::Custom { name: custom, .. } if custom == name))
}

fn turns(root: &mut Members, rest: &mut RemainingFields) -> Vec<Turn> {
    let mut turns = ItemGrouper::default();
    if let Some(instructions) = root.text("instructions") {
        let at = "/instructions".to_owned();
        turns.push(Role::System, at.clone(), vec![part(at, PartKind::Text(instructions))]);
    }
    if let Some(text) = root.text("input") {
        let at = "/input".to_owned();
        turns.push(Role::User, at.clone(), vec![part(at, PartKind::Text(text))]);
    }
    for (index, value) in root.list("input").unwrap_or_default().into_iter().enumerate() {
        let at = format!("/input/{index}");
        match Members::read(value, &*at) {
            Ok(item) => turns.item(item, rest),
            Err(value) => turns.push(Role::Assistant, at.clone(), vec![part(at, PartKind::Other(value))]),
        }
    }
    turns.all
}

/// Groups items into turns. Consecutive items by the model form one turn, and so do the results of its calls.
#[derive(Default)]
struct ItemGrouper {
    all: Vec<Turn>,
    /// Tool names by call id.
    called: HashMap<String, String>,
}

impl ItemGrouper {
    fn push(&mut self, role: Role, at: String, parts: Vec<Part>) {
        match self.all.last_mut() {
            Some(last)
                if last.role == role
                    && matches!(role, Role::Assistant | Role::Tool)
                    && !last.parts.is_empty()
                    && !parts.is_empty() =>
            {
                last.parts.extend(parts);
            }
            _ => self.all.push(Turn { at: at.into(), role, name: None, parts }),
        }
    }

    fn item(&mut self, mut item: Members, rest: &mut RemainingFields) {
        let at = item.at().to_owned();
        let read = match item.peek("type").as_str() {
            None | Some("message") => message(&mut item, rest),
            Some("function_call") => self.call(&mut item, "arguments", Input::Json),
            Some("custom_tool_call") => self.call(&mut item, "input", Input::Text),
            Some("function_call_output") => self.result(&mut item, false, rest),
            Some("custom_tool_call_output") => self.result(&mut item, true, rest),
            Some("reasoning") => Some((Role::Assistant, vec![part(at.clone(), thought(&mut item))])),
            Some(_) => None,
        };
        if let Some((role, parts)) = read {
            rest.keep(item, OWN_OF_ITEMS);
            self.push(role, at, parts);
        } else {
            let other = part(at.clone(), PartKind::Other(item.into_value()));
            self.push(Role::Assistant, at, vec![other]);
        }
    }

    fn call(
        &mut self,
        item: &mut Members,
        input: &str,
        read: fn(String) -> Input,
    ) -> Option<(Role, Vec<Part>)> {
        if !["call_id", "name", input].iter().all(|name| item.peek(name).is_string()) {
            return None;
        }
        let (id, name) = (item.text("call_id")?, item.text("name")?);
        self.called.insert(id.clone(), name.clone());
        item.text("type");
        let call = ToolCall { id, name, input: read(item.text(input)?), signature: None };
        Some((Role::Assistant, vec![part(item.at().to_owned(), PartKind::Call(call))]))
    }

    fn result(
        &self,
        item: &mut Members,
        custom: bool,
        rest: &mut RemainingFields,
    ) -> Option<(Role, Vec<Part>)> {
        let output = item.peek("output");
        if !item.peek("call_id").is_string() || !(output.is_string() || output.is_array()) {
            return None;
        }
        let call_id = item.text("call_id")?;
        item.text("type");
        let result = ToolResult {
            name: self.called.get(&call_id).cloned(),
            call_id,
            parts: parts_in(item, "output", Role::Tool, rest).unwrap_or_default(),
            failed: None,
            custom,
        };
        Some((Role::Tool, vec![part(item.at().to_owned(), PartKind::Result(result))]))
    }
}

fn message(item: &mut Members, rest: &mut RemainingFields) -> Option<(Role, Vec<Part>)> {
    let role = match item.peek("role").as_str()? {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        "developer" => Role::Developer,
        _ => return None,
    };
    let content = item.peek("content");
    if !content.is_string() && !content.is_array() {
        return None;
    }
    item.text("role");
    Some((role, parts_in(item, "content", role, rest).unwrap_or_default()))
}

fn thought(item: &mut Members) -> PartKind {
    item.text("type");
    let summary = texts(item, "summary", "summary_text");
    let content = if summary.is_none() { texts(item, "content", "reasoning_text") } else { None };
    let id = item.peek("id").as_str().map(str::to_owned);
    let signature = item.text("encrypted_content");
    let is_summary = summary.is_some();
    let text = summary.or(content).unwrap_or_default();
    // If text is shown, the thought isn't hidden.
    let hidden = signature.as_deref().filter(|_| text.is_empty()).and_then(|all| all.strip_prefix(REDACTED));
    PartKind::Thought(match hidden {
        Some(hidden) => {
            Thought { id, signature: Some(hidden.to_owned()), redacted: true, ..Thought::default() }
        }
        None => Thought { id, text, summary: is_summary, signature, redacted: false },
    })
}

/// Texts of parts that all have the same kind and nothing else.
pub(super) fn texts(item: &mut Members, name: &str, kind: &str) -> Option<Vec<String>> {
    let text = |part: &Value| {
        let members = part.as_object().filter(|members| members.len() == 2 && part["type"] == kind)?;
        members.get("text")?.as_str().map(str::to_owned)
    };
    item.take(name, |value| {
        let parts = value.as_array().filter(|parts| !parts.is_empty());
        parts.and_then(|parts| parts.iter().map(text).collect::<Option<_>>()).ok_or(value)
    })
}
