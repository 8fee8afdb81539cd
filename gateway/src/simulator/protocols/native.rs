//! The native generate-content protocol (2.5).

use std::collections::HashSet;

use gatewright::ErrorCode;
use gatewright::limits::integer;
use gatewright_protocol::json::{limit, list, text, texts};
use serde_json::{Value, json};
use uuid::Uuid;

use super::media;
use crate::app::App;
use crate::bounds::budget::Budget;
use crate::bounds::client_schema::{ClientSchema, OutOfBounds};
use crate::models;
use crate::simulator::conversation::{
    Finish, FunctionTool, Prompt, PromptTurn, Reply, ReplyContent, ReplyFormat, SimulatedToolChoice,
};
use crate::simulator::{self, tokens};
use crate::wire::sse::{self, Event};
use crate::wire::{ApiError, Call, Response, json_response};

/// `POST /v1beta/models/{model}:generateContent`.
pub(crate) fn generate(_app: &App, call: &Call, budget: &Budget) -> Result<Response, ApiError> {
    let generated = generated(call, budget)?;
    let usage = generated.usage();
    let Generated { model, id, replies } = generated;
    let candidates: Vec<Value> = replies
        .into_iter()
        .enumerate()
        .map(|(index, reply)| {
            let finish = finish_reason(reply.finish);
            candidate(index, &parts(reply.content), Some(finish))
        })
        .collect();
    Ok(json_response(&json!({
        "candidates": candidates,
        "usageMetadata": usage,
        "modelVersion": model,
        "responseId": id,
    })))
}

/// `POST /v1beta/models/{model}:streamGenerateContent`: like [`generate`], with one piece of each candidate per event.
/// The last document of a candidate has its finish reason, and every document the usage so far.
pub(crate) fn stream(app: &App, call: &Call, budget: &Budget) -> Result<Response, ApiError> {
    let generated = generated(call, budget)?;
    let usage = generated.usage();
    let Generated { model, id, replies } = generated;
    let candidates = replies.into_iter().enumerate().flat_map(|(index, reply)| pieces(index, reply));
    let documents = candidates.map(move |candidate| {
        json!({
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": model,
            "responseId": id,
        })
    });
    Ok(sse::respond(documents.map(|document| Event::data(&document)), app.config.event_delay))
}

/// `POST /v1beta/models/{model}:countTokens`: counts `contents`, or a whole `generateContentRequest`.
pub(crate) fn count_tokens(_app: &App, call: &Call, budget: &Budget) -> Result<Response, ApiError> {
    let body = call.checked_body()?;
    models::native_model(call)?;
    let (request, pointer) = match &body["generateContentRequest"] {
        request @ Value::Object(_) => (request, "/generateContentRequest"),
        _ => (&body, ""),
    };
    let total = prompt(request, pointer)?.tokens(budget)?;
    Ok(json_response(&json!({ "totalTokens": total })))
}

/// An answer that isn't serialized yet.
struct Generated {
    model: &'static str,
    id: String,
    replies: Vec<Reply>,
}

impl Generated {
    fn usage(&self) -> Value {
        let input = self.replies.first().map_or(0, |reply| reply.usage.input);
        let output: usize = self.replies.iter().map(|reply| reply.usage.output).sum();
        json!({ "promptTokenCount": input, "candidatesTokenCount": output, "totalTokenCount": input + output })
    }
}

fn generated(call: &Call, budget: &Budget) -> Result<Generated, ApiError> {
    let body = call.checked_body()?;
    let model = models::native_model(call)?.id;
    let prompt = prompt(&body, "")?;
    let count = integer(&body["generationConfig"]["candidateCount"]).unwrap_or(1);
    let replies = simulator::replies(&prompt, usize::try_from(count).unwrap_or(1), budget)?;
    Ok(Generated { model, id: Uuid::new_v4().simple().to_string(), replies })
}

fn candidate(index: usize, parts: &[Value], finish: Option<&str>) -> Value {
    let mut candidate = json!({ "index": index, "content": { "role": "model", "parts": parts } });
    if let Some(reason) = finish {
        candidate["finishReason"] = json!(reason);
    }
    candidate
}

fn parts(content: ReplyContent) -> Vec<Value> {
    match content {
        ReplyContent::Text(text) => vec![json!({ "text": text })],
        ReplyContent::ToolCalls(calls) => calls
            .into_iter()
            .map(|call| {
                let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
                json!({ "functionCall": { "name": call.name, "args": arguments } })
            })
            .collect(),
    }
}

/// Splits a candidate into events. Function calls are not split.
fn pieces(index: usize, reply: Reply) -> Box<dyn Iterator<Item = Value> + Send> {
    let finish = finish_reason(reply.finish);
    match reply.content {
        ReplyContent::Text(text) => {
            let mut pieces = tokens::owned_pieces(text).peekable();
            let mut ended = false;
            Box::new(std::iter::from_fn(move || {
                if ended {
                    return None;
                }
                let piece = pieces.next().unwrap_or_default();
                ended = pieces.peek().is_none();
                Some(candidate(index, &[json!({ "text": piece })], ended.then_some(finish)))
            }))
        }
        calls @ ReplyContent::ToolCalls(_) => {
            Box::new(std::iter::once(candidate(index, &parts(calls), Some(finish))))
        }
    }
}

fn finish_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::ToolCalls => "STOP",
        Finish::Length => "MAX_TOKENS",
    }
}

/// `pointer`: where the request is in the body.
fn prompt(body: &Value, pointer: &str) -> Result<Prompt, ApiError> {
    let config = &body["generationConfig"];
    let calling = &body["toolConfig"]["functionCallingConfig"];
    let allowed: HashSet<String> = texts(&calling["allowedFunctionNames"]).into_iter().collect();
    let declared = list(&body["tools"]).enumerate().flat_map(|(tool, declaring)| {
        let functions = list(&declaring["functionDeclarations"]).enumerate();
        functions.map(move |(index, function)| (tool, index, function))
    });
    let mut tools: Vec<FunctionTool> = declared
        .map(|(tool, index, function)| {
            let at = format!("{pointer}/tools/{tool}/functionDeclarations/{index}");
            Ok(FunctionTool {
                name: text(&function["name"]).to_owned(),
                parameters: schema(
                    (&function["parametersJsonSchema"], "parametersJsonSchema"),
                    (&function["parameters"], "parameters"),
                    &at,
                )?,
            })
        })
        .collect::<Result<_, OutOfBounds>>()?;
    let tool_choice = match text(&calling["mode"]) {
        "" | "MODE_UNSPECIFIED" | "AUTO" | "VALIDATED" => SimulatedToolChoice::Auto,
        "NONE" => SimulatedToolChoice::None,
        "ANY" => {
            tools.retain(|tool| allowed.is_empty() || allowed.contains(&tool.name));
            if tools.is_empty() {
                let message = "mode ANY forces a call, but no declared function may be called";
                return Err(ApiError::new(&ErrorCode::INVALID_VALUE, message)
                    .param("toolConfig.functionCallingConfig"));
            }
            SimulatedToolChoice::Required
        }
        other => {
            let message = format!("mode is {other:?}, not one of AUTO, ANY, NONE, VALIDATED");
            return Err(ApiError::new(&ErrorCode::INVALID_VALUE, message)
                .param("toolConfig.functionCallingConfig.mode"));
        }
    };
    let instruction = content(&body["systemInstruction"], PromptTurn::Instruction);
    let contents = list(&body["contents"]).flat_map(|turn| match text(&turn["role"]) {
        "model" => content(turn, PromptTurn::Assistant),
        _ => content(turn, PromptTurn::User),
    });
    Ok(Prompt {
        turns: instruction.into_iter().chain(contents).collect(),
        tools,
        tool_choice,
        parallel_tool_calls: true,
        format: format(config, &format!("{pointer}/generationConfig"))?,
        max_tokens: limit(&config["maxOutputTokens"]),
        stop: texts(&config["stopSequences"]),
        media: media::of_contents(&body["contents"]),
    })
}

/// The requested answer format. `pointer`: the place of `generationConfig` in the body.
fn format(config: &Value, pointer: &str) -> Result<ReplyFormat, ApiError> {
    let wanted = schema(
        (&config["responseJsonSchema"], "responseJsonSchema"),
        (&config["responseSchema"], "responseSchema"),
        pointer,
    )?;
    let refuse = |message: String| {
        Err(ApiError::new(&ErrorCode::INVALID_VALUE, message).param("generationConfig.responseMimeType"))
    };
    Ok(match text(&config["responseMimeType"]) {
        "text/x.enum" if list(&wanted.value()["enum"]).len() == 0 => {
            return refuse("text/x.enum needs a responseSchema with the values in enum".to_owned());
        }
        "text/x.enum" => ReplyFormat::Word(wanted),
        "" | "text/plain" | "application/json" if !wanted.value().is_null() => {
            ReplyFormat::JsonSchema(wanted)
        }
        "application/json" => ReplyFormat::JsonObject,
        "" | "text/plain" => ReplyFormat::Text,
        other => {
            return refuse(format!(
                "responseMimeType is {other:?}, not one of text/plain, application/json, text/x.enum"
            ));
        }
    })
}

/// What one content says: its texts as one turn (2.5), and the calls and results among its parts.
fn content(content: &Value, speaker: fn(String) -> PromptTurn) -> Vec<PromptTurn> {
    let mut turns = Vec::new();
    let mut texts: Vec<&str> = Vec::new();
    let mut place = 0;
    for part in list(&content["parts"]) {
        let (answer, call) = (&part["functionResponse"], &part["functionCall"]);
        if answer.is_object() {
            turns.push(PromptTurn::tool_result(answer["name"].as_str(), answer["response"].to_string()));
        } else if call.is_object() {
            turns.push(PromptTurn::Assistant(call.to_string()));
        } else if let Some(text) = part["text"].as_str() {
            if texts.is_empty() {
                place = turns.len();
            }
            texts.push(text);
        }
    }
    if !texts.is_empty() {
        turns.insert(place, speaker(texts.join("\n")));
    }
    turns
}

/// The JSON Schema, or the older form with upper-case type names; each with its name in the object at `pointer`.
fn schema(
    (json_schema, name): (&Value, &str),
    (older, older_name): (&Value, &str),
    pointer: &str,
) -> Result<ClientSchema, OutOfBounds> {
    if json_schema.is_null() {
        let mut schema = older.clone();
        lower_types(&mut schema);
        return ClientSchema::read(&schema, &format!("{pointer}/{older_name}"));
    }
    ClientSchema::read(json_schema, &format!("{pointer}/{name}"))
}

fn lower_types(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            for (keyword, value) in keywords {
                match value {
                    Value::String(word) if keyword == "type" => *word = word.to_lowercase(),
                    _ => lower_types(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(lower_types),
        _ => {}
    }
}
