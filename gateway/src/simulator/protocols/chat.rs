//! The chat protocol (2.1 to 2.3): parses requests, writes completions and chunks.

use std::collections::{HashMap, VecDeque};

use gatewright::limits::integer;
use gatewright_protocol::json::{content, limit, list, text, texts};
use serde_json::{Value, json};
use uuid::Uuid;

use super::answer_format::format;
use super::logprobs::Logprobs;
use super::media;
use super::service_tier::served_tier;
use super::tools::{CustomTools, ToolInvocation, ToolLayout, Tools, call_id};
use crate::app::App;
use crate::bounds::budget::Budget;
use crate::clock::unix_seconds;
use crate::models;
use crate::simulator::conversation::{
    Finish, Prompt, PromptTurn, Reply, ReplyContent, ReplyUsage, SimulatedCall,
};
use crate::simulator::{self, tokens};
use crate::wire::sse::{self, Event};
use crate::wire::{ApiError, Call, Response, json_response};

/// `POST /v1/chat/completions`.
pub(crate) fn create(app: &App, call: &Call, budget: &Budget) -> Result<Response, ApiError> {
    let body = call.checked_body()?;
    let model = models::text_model(text(&body["model"]), call.operation)?.id;
    let (prompt, custom) = prompt(&body)?;
    let choices = integer(&body["n"]).unwrap_or(1);
    let replies = simulator::replies(&prompt, usize::try_from(choices).unwrap_or(1), budget)?;
    let logprobs = (body["logprobs"] == true).then(|| Logprobs::new(limit(&body["top_logprobs"])));
    if let Some(logprobs) = logprobs {
        for reply in &replies {
            if let ReplyContent::Text(text) = &reply.content {
                logprobs.charge(text, 1, budget)?;
            }
        }
    }
    // The prompt is read once, whatever the number of choices.
    let usage = usage(ReplyUsage {
        input: replies.first().map_or(0, |reply| reply.usage.input),
        output: replies.iter().map(|reply| reply.usage.output).sum(),
    });
    let completion = Completion {
        id: format!("chatcmpl-{}", Uuid::new_v4().simple()),
        created: unix_seconds(),
        model,
        service_tier: body["service_tier"].as_str().map(served_tier).map(str::to_owned),
    };
    if body["stream"] == true {
        let include_usage = body["stream_options"]["include_usage"] == true;
        let terminator = call.operation.terminator.map(Event::terminator);
        let events = chunks(completion, replies, &custom, logprobs, include_usage.then_some(usage))
            .map(|chunk| Event::data(&chunk));
        return Ok(sse::respond(events.chain(terminator), app.config.event_delay));
    }
    let choices: Vec<Value> = replies
        .into_iter()
        .enumerate()
        .map(|(index, reply)| choice(index, reply, &custom, logprobs))
        .collect();
    let mut answer = json!({
        "id": completion.id,
        "object": "chat.completion",
        "created": completion.created,
        "model": model,
        "choices": choices,
        "usage": usage,
    });
    if let Some(tier) = completion.service_tier {
        answer["service_tier"] = tier.into();
    }
    Ok(json_response(&answer))
}

/// The fields that all chunks of an answer share.
struct Completion {
    id: String,
    created: u64,
    model: &'static str,
    /// Present only on request.
    service_tier: Option<String>,
}

/// Log probabilities in the format of a choice; null if there are none.
fn choice_logprobs(content: Option<Value>) -> Value {
    content.map_or(Value::Null, |content| json!({ "content": content, "refusal": null }))
}

fn choice(index: usize, reply: Reply, custom: &CustomTools, logprobs: Option<Logprobs>) -> Value {
    let finish = finish_reason(reply.finish, custom);
    let told = match &reply.content {
        ReplyContent::Text(text) => logprobs.map(|logprobs| logprobs.of(text)),
        ReplyContent::ToolCalls(_) => None,
    };
    let message = match reply.content {
        ReplyContent::Text(text) => json!({ "role": "assistant", "content": text, "refusal": null }),
        ReplyContent::ToolCalls(calls) if custom.are_functions() => {
            let call = calls.into_iter().next().map(|call| function_call(&call.name, &call.arguments));
            json!({ "role": "assistant", "content": null, "refusal": null, "function_call": call })
        }
        ReplyContent::ToolCalls(calls) => {
            let calls: Vec<Value> = calls.into_iter().map(|call| call_json(custom.called(call))).collect();
            json!({ "role": "assistant", "content": null, "refusal": null, "tool_calls": calls })
        }
    };
    json!({ "index": index, "message": message, "logprobs": choice_logprobs(told), "finish_reason": finish })
}

fn function_call(name: &str, arguments: &str) -> Value {
    json!({ "name": name, "arguments": arguments })
}

fn call_json(call: ToolInvocation) -> Value {
    let id = call_id();
    match call {
        ToolInvocation::Function { name, arguments } => {
            json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
        }
        ToolInvocation::Custom { name, input } => {
            json!({ "id": id, "type": "custom", "custom": { "name": name, "input": input } })
        }
    }
}

/// The chunks of a stream, alternating between the choices. `usage`: adds the chunk with the usage.
fn chunks(
    completion: Completion,
    replies: Vec<Reply>,
    custom: &CustomTools,
    logprobs: Option<Logprobs>,
    usage: Option<Value>,
) -> impl Iterator<Item = Value> + Send + use<> {
    let with_usage = usage.is_some();
    let mut waiting: VecDeque<_> = replies
        .into_iter()
        .enumerate()
        .map(|(index, reply)| (index, deltas(reply, custom, logprobs)))
        .collect();
    let turns = std::iter::from_fn(move || {
        loop {
            let (index, mut deltas) = waiting.pop_front()?;
            if let Some((delta, told, finish)) = deltas.next() {
                waiting.push_back((index, deltas));
                return Some(
                    json!([{ "index": index, "delta": delta, "logprobs": choice_logprobs(told), "finish_reason": finish }]),
                );
            }
        }
    });
    let chunk = move |choices: Value, usage: Option<Value>| {
        let mut chunk = json!({
            "id": completion.id,
            "object": "chat.completion.chunk",
            "created": completion.created,
            "model": completion.model,
            "choices": choices,
        });
        if with_usage {
            chunk["usage"] = usage.unwrap_or_default();
        }
        if let Some(tier) = &completion.service_tier {
            chunk["service_tier"] = tier.as_str().into();
        }
        chunk
    };
    turns
        .map(|choices| (choices, None))
        .chain(usage.map(|usage| (json!([]), Some(usage))))
        .map(move |(choices, usage)| chunk(choices, usage))
}

type Deltas = Box<dyn Iterator<Item = (Value, Option<Value>, Option<&'static str>)> + Send>;

/// The deltas of one choice, each with log probabilities and finish reason: the role, the pieces, and an empty one
/// with the finish reason (2.3).
fn deltas(reply: Reply, custom: &CustomTools, logprobs: Option<Logprobs>) -> Deltas {
    let last = std::iter::once((json!({}), None, Some(finish_reason(reply.finish, custom))));
    match reply.content {
        ReplyContent::Text(text) => {
            let first = std::iter::once((json!({ "role": "assistant", "content": "" }), None, None));
            let pieces = tokens::owned_pieces(text).enumerate().map(move |(place, piece)| {
                let told = logprobs.map(|logprobs| json!([logprobs.token(place, &piece)]));
                (json!({ "content": piece }), told, None)
            });
            Box::new(first.chain(pieces).chain(last))
        }
        ReplyContent::ToolCalls(calls) => {
            let first = std::iter::once((json!({ "role": "assistant", "content": null }), None, None));
            if custom.are_functions() {
                let pieces = calls.into_iter().take(1).flat_map(function_call_deltas);
                return Box::new(first.chain(pieces.map(|delta| (delta, None, None))).chain(last));
            }
            let calls: Vec<ToolInvocation> = calls.into_iter().map(|call| custom.called(call)).collect();
            let pieces = calls.into_iter().enumerate().flat_map(|(index, call)| call_deltas(index, call));
            Box::new(first.chain(pieces.map(|delta| (delta, None, None))).chain(last))
        }
    }
}

/// The deltas of a function call: its name, then its arguments in pieces.
fn function_call_deltas(call: SimulatedCall) -> impl Iterator<Item = Value> + Send {
    let head = json!({ "function_call": function_call(&call.name, "") });
    let pieces =
        tokens::owned_pieces(call.arguments).map(|piece| json!({ "function_call": { "arguments": piece } }));
    std::iter::once(head).chain(pieces)
}

/// The deltas of a tool call: its id and name, then its text in pieces.
fn call_deltas(index: usize, call: ToolInvocation) -> impl Iterator<Item = Value> + Send {
    let (kind, member, name, text) = match call {
        ToolInvocation::Function { name, arguments } => ("function", "arguments", name, arguments),
        ToolInvocation::Custom { name, input } => ("custom", "input", name, input),
    };
    let head = json!({ "tool_calls": [{
        "index": index, "id": call_id(), "type": kind, kind: { "name": name, member: "" },
    }]});
    let pieces = tokens::owned_pieces(text)
        .map(move |piece| json!({ "tool_calls": [{ "index": index, kind: { member: piece } }] }));
    std::iter::once(head).chain(pieces)
}

fn usage(usage: ReplyUsage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": { "cached_tokens": 0 },
        "completion_tokens_details": { "reasoning_tokens": 0 },
    })
}

fn finish_reason(finish: Finish, custom: &CustomTools) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::ToolCalls if custom.are_functions() => "function_call",
        Finish::ToolCalls => "tool_calls",
    }
}

fn prompt(body: &Value) -> Result<(Prompt, CustomTools), ApiError> {
    let (tools, tool_choice, custom) = Tools::read(body, ToolLayout::Nested)?.into_parts();
    let prompt = Prompt {
        turns: turns(&body["messages"]),
        tool_choice,
        tools,
        parallel_tool_calls: !custom.are_functions() && body["parallel_tool_calls"].as_bool().unwrap_or(true),
        format: format(
            &body["response_format"],
            &body["response_format"]["json_schema"]["schema"],
            "/response_format/json_schema/schema",
        )?,
        max_tokens: limit(&body["max_completion_tokens"]).or_else(|| limit(&body["max_tokens"])),
        stop: texts(&body["stop"]),
        media: media::of_messages(&body["messages"]),
    };
    Ok((prompt, custom))
}

fn turns(messages: &Value) -> Vec<PromptTurn> {
    let mut called: HashMap<&str, &str> = HashMap::new();
    for call in list(messages).flat_map(|message| list(&message["tool_calls"])) {
        if let (Some(id), Some(name)) = (call["id"].as_str(), callee(call)["name"].as_str()) {
            called.entry(id).or_insert(name);
        }
    }
    let turn = |message: &Value| {
        let content = content(&message["content"]);
        match text(&message["role"]) {
            "user" => PromptTurn::User(content),
            "assistant" => {
                let calls: String =
                    list(&message["tool_calls"]).map(|call| callee(call).to_string()).collect();
                let function = &message["function_call"];
                let function = if function.is_object() { function.to_string() } else { String::new() };
                PromptTurn::Assistant(content + &calls + &function)
            }
            "function" => PromptTurn::tool_result(message["name"].as_str(), content),
            "tool" => PromptTurn::tool_result(called.get(text(&message["tool_call_id"])).copied(), content),
            _ => PromptTurn::Instruction(content),
        }
    };
    list(messages).map(turn).collect()
}

/// The function or custom tool of a tool call, which is nested under its kind.
fn callee(call: &Value) -> &Value {
    &call[text(&call["type"])]
}
