//! The responses protocol (2.4): one model turn over a prompt or items, and compaction.

mod events;
mod record;

use std::collections::HashMap;

use gatewright::{ErrorCode, limits};
use gatewright_protocol::json::{content, limit, list, text};
use serde_json::{Value, json};
use uuid::Uuid;

use self::record::{ResponseProgress, SimulatedItem, SimulatedResponse, TurnResult, usage};
use super::answer_format::format;
use super::logprobs::Logprobs;
use super::media;
use super::tools::{CustomTools, ToolInvocation, ToolLayout, Tools, call_id};
use crate::app::App;
use crate::bounds::budget::{Budget, BudgetExceeded};
use crate::clock::unix_seconds;
use crate::compaction;
use crate::models;
use crate::simulator::conversation::{Finish, Prompt, PromptTurn, ReplyContent, ReplyUsage};
use crate::simulator::{self, tokens};
use crate::store::PendingStore;
use crate::stored_responses::{InputItems, StoredConversation, conversation, new_id};
use crate::wire::sse::{self, Event};
use crate::wire::{ApiError, Call, Response, json_response};

/// Number of copies of a text's log probabilities in memory at once: in the stored response, and in the last four
/// events of a stream.
const LOGPROBS_AT_ONCE: usize = 5;
/// Maximum length of a compaction's summary, in characters.
const SUMMARY: usize = 4_000;

/// `POST /v1/responses`.
pub(crate) fn create(app: &App, call: &Call, budget: &Budget) -> Result<Response, ApiError> {
    let body = call.checked_body()?;
    let model = models::text_model(text(&body["model"]), call.operation)?.id;
    if body["background"] == true {
        let message = "background responses are not supported: omit background or send false, and use stream for long answers";
        return Err(ApiError::new(&ErrorCode::INVALID_VALUE, message).param("background"));
    }
    let StoredConversation { items, earlier } = conversation(app, call, &body, budget)?;
    let unmatched = limits::unmatched_calls(&items, earlier);
    if !unmatched.is_empty() {
        return Err(ApiError::violations(unmatched));
    }
    let (prompt, custom) = prompt(&body, &items)?;
    let made = match items.last() {
        Some(item) if item["type"] == "compaction_trigger" => compacted(&prompt, budget)?,
        _ => answered(&prompt, &custom, logprobs(&body), budget)?,
    };
    let record = SimulatedResponse {
        id: format!("resp_{}", Uuid::new_v4().simple()),
        created: unix_seconds(),
        model,
        request: body,
    };
    record.charge(budget)?;
    let is_stored = record.request["store"] != false;
    if is_stored {
        let documents = InputItems::new(items).answered(&record.json(&ResponseProgress::Ended(&made)));
        app.history.keep(call.caller.id(), record.id.clone(), Some(documents), None);
    }
    let mut response = if record.request["stream"] == true {
        let terminator = call.operation.terminator.map(Event::terminator);
        let events = events::of(&record, made).map(|event| Event::named(&event));
        sse::respond(events.chain(terminator), app.config.event_delay)
    } else {
        json_response(&record.json(&ResponseProgress::Ended(&made)))
    };
    if is_stored {
        response.extensions_mut().insert(PendingStore);
    }
    Ok(response)
}

/// `POST /v1/responses/compact` (ours; the source only shows the path).
pub(crate) fn compact(app: &App, call: &Call, budget: &Budget) -> Result<Response, ApiError> {
    let body = call.checked_body()?;
    models::text_model(text(&body["model"]), call.operation)?;
    let StoredConversation { items, .. } = conversation(app, call, &body, budget)?;
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

/// The requested log probabilities; two fields can request them.
fn logprobs(request: &Value) -> Option<Logprobs> {
    let included = list(&request["include"]).any(|further| further == "message.output_text.logprobs");
    let top = limit(&request["top_logprobs"]);
    (included || top.is_some_and(|top| top > 0)).then(|| Logprobs::new(top))
}

fn answered(
    prompt: &Prompt,
    custom: &CustomTools,
    logprobs: Option<Logprobs>,
    budget: &Budget,
) -> Result<TurnResult, BudgetExceeded> {
    let reply = simulator::reply(prompt, budget)?;
    if let (ReplyContent::Text(text), Some(logprobs)) = (&reply.content, logprobs) {
        logprobs.charge(text, LOGPROBS_AT_ONCE, budget)?;
    }
    let items = match reply.content {
        ReplyContent::Text(text) => vec![SimulatedItem::Message { id: new_id("msg"), text, logprobs }],
        ReplyContent::ToolCalls(calls) => calls
            .into_iter()
            .map(|call| {
                let called = custom.called(call);
                let kind = if matches!(called, ToolInvocation::Custom { .. }) { "ctc" } else { "fc" };
                SimulatedItem::Call { id: new_id(kind), call_id: call_id(), called }
            })
            .collect(),
    };
    Ok(TurnResult { items, finish: reply.finish, usage: reply.usage })
}

/// One opaque item that replaces the conversation and contains the user's texts.
fn compacted(prompt: &Prompt, budget: &Budget) -> Result<TurnResult, BudgetExceeded> {
    let said: Vec<&str> = prompt
        .turns
        .iter()
        .filter_map(|turn| match turn {
            PromptTurn::User(text) | PromptTurn::Summary(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let summary: String = said.join("\n").chars().take(SUMMARY).collect();
    let usage = ReplyUsage { input: prompt.tokens(budget)?, output: tokens::count(&summary) };
    let id = new_id("cmp");
    let items = vec![SimulatedItem::Compaction { id, content: compaction::sealed(&summary) }];
    Ok(TurnResult { items, finish: Finish::Stop, usage })
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
    let mut turns: Vec<PromptTurn> = Vec::new();
    turns.extend(body["instructions"].as_str().map(|text| PromptTurn::Instruction(text.to_owned())));
    turns.extend(items.iter().filter_map(|item| turn(item, &called)));
    let wanted = &body["text"]["format"];
    let (tools, tool_choice, custom) = Tools::read(body, ToolLayout::Flat)?.into_parts();
    let prompt = Prompt {
        turns,
        tool_choice,
        tools,
        parallel_tool_calls: body["parallel_tool_calls"].as_bool().unwrap_or(true),
        format: format(wanted, &wanted["schema"], "/text/format/schema")?,
        max_tokens: limit(&body["max_output_tokens"]),
        stop: Vec::new(),
        media: media::of_items(items),
    };
    Ok((prompt, custom))
}

/// The turn of an item. `called`: tool names by call id. Unknown kinds of items contain nothing that the simulated
/// provider needs.
fn turn(item: &Value, called: &HashMap<&str, &str>) -> Option<PromptTurn> {
    match item["type"].as_str() {
        None | Some("message") => {
            let content = content(&item["content"]);
            Some(match text(&item["role"]) {
                "user" => PromptTurn::User(content),
                "assistant" => PromptTurn::Assistant(content),
                _ => PromptTurn::Instruction(content),
            })
        }
        Some("function_call") => {
            Some(PromptTurn::Assistant(format!("{}{}", text(&item["name"]), text(&item["arguments"]))))
        }
        Some("custom_tool_call") => {
            Some(PromptTurn::Assistant(format!("{}{}", text(&item["name"]), text(&item["input"]))))
        }
        Some("function_call_output" | "custom_tool_call_output") => {
            let name = called.get(text(&item["call_id"])).copied();
            Some(PromptTurn::tool_result(name, content(&item["output"])))
        }
        Some("compaction") => compaction::summary(item).map(PromptTurn::Summary),
        Some(_) => None,
    }
}
