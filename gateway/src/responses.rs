//! The responses protocol (2.4): one model turn over a prompt or items, and compaction.

mod events;
mod history;
mod kept;

use std::collections::HashMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use gatewright::{ErrorCode, limits};
use serde_json::{Value, json};
use uuid::Uuid;

pub(crate) use self::history::History;
pub(crate) use self::kept::{delete, list_input_items, retrieve};

use crate::call::{Call, Response};
use crate::chat::{self, content, limit, list, text};
use crate::error::{ApiError, json_response};
use crate::files::unix_seconds;
use crate::logprobs::Logprobs;
use crate::media;
use crate::models;
use crate::service::Provider;
use crate::simulator::budget::{Budget, Exceeded};
use crate::simulator::{self, Content, Finish, Prompt, Turn, Usage, tokens};
use crate::sse::{self, Event};
use crate::tools::{Called, CustomTools, Form, Tools};
use crate::tree;

/// How often the log probabilities of a text are in memory at once: in the answer that is kept, and in the four events
/// that end a stream.
const LOGPROBS_AT_ONCE: usize = 5;
/// How often what a response repeats of its request is in memory at once: in the three events of a stream that carry
/// the response, and where one of them is being made.
const ECHOES_AT_ONCE: usize = 4;
/// Longest summary that a compaction keeps, in characters.
const SUMMARY: usize = 4_000;

/// `POST /v1/responses`.
pub(crate) fn create(provider: &Provider, call: &Call, budget: &Budget) -> Result<Response, ApiError> {
    let body = call.checked_body()?;
    let model = models::text_model(text(&body["model"]), call.operation)?.id;
    if body["background"] == true {
        let message = "this gateway answers while the request waits: leave background out or send false, and stream \
                       where the answer may take long";
        return Err(ApiError::new(&ErrorCode::INVALID_VALUE, message).param("background"));
    }
    let Conversation { items, earlier } = conversation(provider, &body, budget)?;
    let unmatched = limits::unmatched_calls(&items, earlier);
    if !unmatched.is_empty() {
        return Err(ApiError::violations(unmatched));
    }
    let (prompt, custom) = prompt(&body, &items)?;
    let made = match items.last() {
        Some(item) if item["type"] == "compaction_trigger" => compacted(&prompt, budget)?,
        _ => answered(&prompt, &custom, logprobs(&body), budget)?,
    };
    let record = Record {
        id: format!("resp_{}", Uuid::new_v4().simple()),
        created: unix_seconds(),
        model,
        request: body,
    };
    record.charge(budget)?;
    if record.request["store"] != false {
        let documents = kept::documents(&record.json(&Progress::Ended(&made)), items);
        provider.history.keep(record.id.clone(), documents);
    }
    if record.request["stream"] == true {
        let terminator = call.operation.terminator.map(Event::terminator);
        let events = events::of(&record, made).map(|event| Event::named(&event));
        return Ok(sse::respond(events.chain(terminator), provider.config.event_delay));
    }
    Ok(json_response(&record.json(&Progress::Ended(&made))))
}

/// `POST /v1/responses/compact` (ours; the source shows the path alone).
pub(crate) fn compact(provider: &Provider, call: &Call, budget: &Budget) -> Result<Response, ApiError> {
    let body = call.checked_body()?;
    models::text_model(text(&body["model"]), call.operation)?;
    let Conversation { items, .. } = conversation(provider, &body, budget)?;
    if items.is_empty() {
        let message = "there is nothing to compact: send input or previous_response_id";
        return Err(ApiError::new(&ErrorCode::INVALID_VALUE, message).param("input"));
    }
    let made = compacted(&prompt(&body, &items)?.0, budget)?;
    let output: Vec<Value> = made.items.iter().map(|item| item.json(made.item_status())).collect();
    Ok(json_response(&json!({
        "id": format!("resp_{}", Uuid::new_v4().simple()),
        "object": "response.compaction",
        "created_at": unix_seconds(),
        "output": output,
        "usage": usage(made.usage),
    })))
}

/// What a turn made.
struct Made {
    items: Vec<Item>,
    finish: Finish,
    usage: Usage,
}

impl Made {
    /// Status of its items and of the response as a whole.
    fn item_status(&self) -> &'static str {
        if self.finish == Finish::Length { "incomplete" } else { "completed" }
    }
}

/// An output item.
enum Item {
    Message { id: String, text: String, logprobs: Option<Logprobs> },
    Call { id: String, call_id: String, called: Called },
    Compaction { id: String, content: String },
}

impl Item {
    fn json(&self, status: &str) -> Value {
        match self {
            Self::Message { id, text, logprobs } => message(id, status, &[text_part(text, *logprobs)]),
            Self::Call { id, call_id, called: Called::Function { name, arguments } } => json!({
                "type": "function_call", "id": id, "call_id": call_id, "name": name, "arguments": arguments,
                "status": status,
            }),
            Self::Call { id, call_id, called: Called::Custom { name, input } } => json!({
                "type": "custom_tool_call", "id": id, "call_id": call_id, "name": name, "input": input,
                "status": status,
            }),
            Self::Compaction { id, content } => {
                json!({ "type": "compaction", "id": id, "encrypted_content": content })
            }
        }
    }
}

fn message(id: &str, status: &str, parts: &[Value]) -> Value {
    json!({ "type": "message", "id": id, "role": "assistant", "status": status, "content": parts })
}

fn text_part(text: &str, logprobs: Option<Logprobs>) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": told(logprobs, text) })
}

/// The log probabilities of a text; empty unless asked for.
fn told(logprobs: Option<Logprobs>, text: &str) -> Value {
    logprobs.map_or_else(|| json!([]), |logprobs| logprobs.of(text))
}

/// The log probabilities that a request asks for, by either of two members.
fn logprobs(request: &Value) -> Option<Logprobs> {
    let included = list(&request["include"]).any(|further| further == "message.output_text.logprobs");
    let top = limit(&request["top_logprobs"]);
    (included || top.is_some_and(|top| top > 0)).then(|| Logprobs::new(top))
}

/// What does not change while a response is made.
struct Record {
    id: String,
    created: u64,
    model: &'static str,
    request: Value,
}

/// How far a response is.
enum Progress<'a> {
    Begun,
    Ended(&'a Made),
}

impl Record {
    /// Charges what the response repeats of the request: about all but its input.
    fn charge(&self, budget: &Budget) -> Result<(), Exceeded> {
        let members = self.request.as_object().into_iter().flatten();
        let echo = members.filter(|(name, _)| *name != "input").map(|(_, member)| tree::bytes(member));
        budget.make(echo.sum::<usize>().saturating_mul(ECHOES_AT_ONCE))
    }

    /// The response object, all its required fields present.
    fn json(&self, progress: &Progress<'_>) -> Value {
        let (status, output, details, usage) = match progress {
            Progress::Begun => ("in_progress", Vec::new(), Value::Null, Value::Null),
            Progress::Ended(made) => {
                let cut = made.finish == Finish::Length;
                let details = if cut { json!({ "reason": "max_output_tokens" }) } else { Value::Null };
                let output = made.items.iter().map(|item| item.json(made.item_status())).collect();
                (made.item_status(), output, details, usage(made.usage))
            }
        };
        let request = &self.request;
        let or = |field: &str, default: Value| {
            if request[field].is_null() { default } else { request[field].clone() }
        };
        json!({
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "background": false,
            "error": null,
            "incomplete_details": details,
            "instructions": request["instructions"],
            "max_output_tokens": request["max_output_tokens"],
            "max_tool_calls": request["max_tool_calls"],
            "model": self.model,
            "output": output,
            "parallel_tool_calls": or("parallel_tool_calls", json!(true)),
            "previous_response_id": request["previous_response_id"],
            "prompt_cache_key": request["prompt_cache_key"],
            "reasoning": or("reasoning", json!({ "effort": null, "summary": null })),
            "safety_identifier": request["safety_identifier"],
            "service_tier": chat::served_tier(request["service_tier"].as_str().unwrap_or("auto")),
            "store": or("store", json!(true)),
            "temperature": or("temperature", json!(1.0)),
            "text": or("text", json!({ "format": { "type": "text" } })),
            "tool_choice": or("tool_choice", json!("auto")),
            "tools": or("tools", json!([])),
            "top_logprobs": or("top_logprobs", json!(0)),
            "top_p": or("top_p", json!(1.0)),
            "truncation": or("truncation", json!("disabled")),
            "usage": usage,
            "user": request["user"],
            "metadata": or("metadata", json!({})),
        })
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": { "cached_tokens": 0, "cache_write_tokens": 0 },
        "output_tokens": usage.output,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": usage.input + usage.output,
    })
}

fn answered(
    prompt: &Prompt,
    custom: &CustomTools,
    logprobs: Option<Logprobs>,
    budget: &Budget,
) -> Result<Made, Exceeded> {
    let reply = simulator::reply(prompt, budget)?;
    if let (Content::Text(text), Some(logprobs)) = (&reply.content, logprobs) {
        logprobs.charge(text, LOGPROBS_AT_ONCE, budget)?;
    }
    let items = match reply.content {
        Content::Text(text) => vec![Item::Message { id: new_id("msg"), text, logprobs }],
        Content::ToolCalls(calls) => calls
            .into_iter()
            .map(|call| {
                let called = custom.called(call);
                let kind = if matches!(called, Called::Custom { .. }) { "ctc" } else { "fc" };
                Item::Call { id: new_id(kind), call_id: chat::call_id(), called }
            })
            .collect(),
    };
    Ok(Made { items, finish: reply.finish, usage: reply.usage })
}

/// A new id of an item of this kind.
fn new_id(kind: &str) -> String {
    format!("{kind}_{}", Uuid::new_v4().simple())
}

/// One item that stands for the conversation: what the user said, opaque to the client.
fn compacted(prompt: &Prompt, budget: &Budget) -> Result<Made, Exceeded> {
    let said: Vec<&str> = prompt
        .turns
        .iter()
        .filter_map(|turn| match turn {
            Turn::User(text) | Turn::Summary(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let summary: String = said.join("\n").chars().take(SUMMARY).collect();
    let usage = Usage { input: prompt.tokens(budget)?, output: tokens::count(&summary) };
    let id = new_id("cmp");
    let items = vec![Item::Compaction { id, content: BASE64_STANDARD.encode(summary) }];
    Ok(Made { items, finish: Finish::Stop, usage })
}

/// All items of the conversation: those of the previous response, then the input.
struct Conversation {
    items: Vec<Value>,
    /// How many are of the previous response.
    earlier: usize,
}

fn conversation(provider: &Provider, body: &Value, budget: &Budget) -> Result<Conversation, ApiError> {
    let mut items = match body["previous_response_id"].as_str() {
        None => Vec::new(),
        Some(id) => {
            let earlier = kept::look_up(provider, id).ok_or_else(|| {
                let message = format!("Previous response not found: {}", kept::NOT_KEPT);
                ApiError::new(&ErrorCode::PREVIOUS_RESPONSE_NOT_FOUND, message).param("previous_response_id")
            })?;
            let too_costly = |exceeded| ApiError::from(exceeded).param("previous_response_id");
            earlier.into_conversation(budget).map_err(too_costly)?
        }
    };
    let earlier = items.len();
    match &body["input"] {
        Value::String(text) => items.push(json!({ "type": "message", "role": "user", "content": text })),
        input => items.extend(list(input).cloned()),
    }
    Ok(Conversation { items, earlier })
}

fn prompt(body: &Value, items: &[Value]) -> Result<(Prompt, CustomTools), ApiError> {
    let mut called: HashMap<&str, &str> = HashMap::new();
    for call in
        items.iter().filter(|item| matches!(text(&item["type"]), "function_call" | "custom_tool_call"))
    {
        if let (Some(id), Some(name)) = (call["call_id"].as_str(), call["name"].as_str()) {
            called.entry(id).or_insert(name);
        }
    }
    let mut turns: Vec<Turn> = Vec::new();
    turns.extend(body["instructions"].as_str().map(|text| Turn::Instruction(text.to_owned())));
    turns.extend(items.iter().filter_map(|item| turn(item, &called)));
    let format = &body["text"]["format"];
    let (tools, tool_choice, custom) = Tools::read(body, Form::Flat)?.into_parts();
    let prompt = Prompt {
        turns,
        tool_choice,
        tools,
        parallel_tool_calls: body["parallel_tool_calls"].as_bool().unwrap_or(true),
        format: chat::format(format, &format["schema"], "/text/format/schema")?,
        max_tokens: limit(&body["max_output_tokens"]),
        stop: Vec::new(),
        media_tokens: media::of_items(items),
    };
    Ok((prompt, custom))
}

/// The turn that an item stands for. `called`: names of tools by the ids of their calls. Kinds that are not known here
/// carry nothing the simulated provider needs.
fn turn(item: &Value, called: &HashMap<&str, &str>) -> Option<Turn> {
    match item["type"].as_str() {
        None | Some("message") => {
            let content = content(&item["content"]);
            Some(match text(&item["role"]) {
                "user" => Turn::User(content),
                "assistant" => Turn::Assistant(content),
                _ => Turn::Instruction(content),
            })
        }
        Some("function_call") => {
            Some(Turn::Assistant(format!("{}{}", text(&item["name"]), text(&item["arguments"]))))
        }
        Some("custom_tool_call") => {
            Some(Turn::Assistant(format!("{}{}", text(&item["name"]), text(&item["input"]))))
        }
        Some("function_call_output" | "custom_tool_call_output") => {
            let name = called.get(text(&item["call_id"])).copied();
            Some(Turn::tool_result(name, content(&item["output"])))
        }
        Some("compaction") => {
            let bytes = BASE64_STANDARD.decode(text(&item["encrypted_content"])).ok()?;
            String::from_utf8(bytes).ok().map(Turn::Summary)
        }
        Some(_) => None,
    }
}
