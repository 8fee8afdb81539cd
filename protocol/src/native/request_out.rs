//! A provider's request.

use std::borrow::Cow;

use serde_json::{Map, Number, Value, json};

use super::exact::Exact;
use super::parts::{Parts, SIGNATURE};
use crate::answer_format::is_beside_tools;
use crate::calls::NOTHING;
use crate::chat::FUNCTIONS;
use crate::conversation::{
    Conversation, Format, Located, Part, PartKind, Protocol, Role, ThinkingBudget, Thought, Tool, ToolCall,
    ToolChoice, ToolKind, ToolResult, Turn,
};
use crate::effort::budget_of;
use crate::media;
use crate::members::{RequestWriter, object};
use crate::model_rules::{accepted_sampling, least_thinking};
use crate::proof::NO_PROOF;
use crate::tool_choice::possible;
use crate::turns::late_instructions;
use crate::{Defaults, EncodedRequest};

/// Maximum number of stop sequences.
const MAX_STOP_SEQUENCES: usize = 5;
/// Maximum thinking budget that every model accepts, in tokens.
const MAX_TOKENS_OF_EFFORT: u64 = 24_576;
/// Maximum count: the protocol's integers have 32 bits.
const MAX_COUNT: u64 = i32::MAX as u64;

/// Writes a provider's request.
pub(crate) fn request_out(conversation: &Conversation, _defaults: Defaults) -> EncodedRequest {
    let mut writer = RequestWriter::new(conversation, Protocol::Native);
    let mut body = Map::new();
    if writer.is_same() {
        Exact::write(&conversation.turns, &mut writer, &mut body);
    } else {
        contents(&conversation.turns, &mut writer, &mut body);
    }
    tools(&conversation.tools, &mut writer, &mut body);
    tool_choice(conversation, &mut writer, &mut body);
    generation_config(conversation, &mut writer, &mut body);
    lose(conversation, &mut writer);
    writer.complete(&mut body, "");
    writer.finish(body)
}

/// Reports what the protocol can't express.
fn lose(conversation: &Conversation, writer: &mut RequestWriter<'_>) {
    let parallel = conversation.parallel_tool_calls.as_ref().filter(|parallel| !parallel.value);
    // Clients that use functions don't set it themselves.
    if let Some(parallel) = parallel.filter(|parallel| &*parallel.at != FUNCTIONS) {
        writer.lose(parallel.at.clone());
    }
    if let Some(metadata) = &conversation.metadata {
        writer.lose(metadata.at.clone());
    }
    if let Some(verbosity) = &conversation.verbosity {
        writer.lose(verbosity.at.clone());
    }
    if let Some(user) = &conversation.user {
        writer.lose(user.at.clone());
    }
    let usual = |tier: &&Located<String>| matches!(tier.value.as_str(), "auto" | "default");
    if let Some(tier) = conversation.service_tier.as_ref().filter(|tier| !usual(tier)) {
        writer.lose(tier.at.clone());
    }
}

/// The instruction and the contents of a conversation from another protocol.
fn contents(turns: &[Turn], writer: &mut RequestWriter<'_>, body: &mut Map<String, Value>) {
    let (turns, late) = turns.split_at(late_instructions(turns));
    let is_instruction = |turn: &&Turn| matches!(turn.role, Role::System | Role::Developer);
    // The protocol has one instruction, and requires contents along with it.
    let has_contents = turns.iter().any(|turn| !is_instruction(&turn));
    let (mut instruction, mut is_after_turn) = (Parts::default(), false);
    for turn in turns.iter().filter(|_| has_contents) {
        if !is_instruction(&turn) {
            is_after_turn = true;
            continue;
        }
        // The instruction moves to the beginning, wherever the client wrote it.
        if is_after_turn {
            writer.lose(format!("{}/role", turn.at));
        }
        parts_out(turn, &mut instruction, writer);
    }
    let instruction = instruction.finish();
    if !instruction.is_empty() {
        body.insert("systemInstruction".to_owned(), json!({ "parts": instruction }));
    }
    let mut contents = Vec::new();
    let mut turns = turns.iter().filter(|turn| !has_contents || !is_instruction(turn)).peekable();
    while let Some(turn) = turns.next() {
        let mut parts = Parts::default();
        parts_out(turn, &mut parts, writer);
        // All results for a model turn form one content, and so do all parts of the model.
        while let Some(next) = turns.next_if(|next| next.role == turn.role && turn.role != Role::User) {
            parts_out(next, &mut parts, writer);
        }
        let mut parts = parts.finish();
        if turn.role == Role::Assistant {
            sign_first_call(&mut parts);
        }
        if !parts.is_empty() {
            let role = if turn.role == Role::Assistant { "model" } else { "user" };
            contents.push(json!({ "role": role, "parts": parts }));
        }
    }
    for turn in late {
        writer.lose(format!("{}/role", turn.at));
        let mut parts = Parts::default();
        parts_out(turn, &mut parts, writer);
        contents.push(json!({ "role": "user", "parts": parts.finish() }));
    }
    // Providers reject a call without a request before it.
    if contents.first().is_some_and(|first| first["role"] == "model" && has_call(first)) {
        contents.insert(0, json!({ "role": "user", "parts": [{ "text": NOTHING }] }));
    }
    if contents.is_empty() {
        // Providers reject a request without contents.
        contents.push(json!({ "role": "user", "parts": [{ "text": NOTHING }] }));
    }
    body.insert("contents".to_owned(), contents.into());
}

/// Signs the first call of a model turn if it has no proof: providers reject it without one.
fn sign_first_call(parts: &mut [Value]) {
    let first = parts.iter_mut().find(|part| part["functionCall"].is_object());
    if let Some(Value::Object(call)) = first {
        call.entry(SIGNATURE).or_insert_with(|| json!(NO_PROOF));
    }
}

fn parts_out(turn: &Turn, parts: &mut Parts, writer: &mut RequestWriter<'_>) {
    if let Some(name) = &turn.name {
        writer.lose(name.at.clone());
    }
    for part in &turn.parts {
        part_out(part, parts, writer);
    }
    for part in &turn.parts {
        result_media(part, parts, writer);
    }
}

fn part_out(part: &Part, parts: &mut Parts, writer: &mut RequestWriter<'_>) {
    writer.lose_cache(part.cache.as_ref());
    let part = &*media::portable(part);
    match &part.kind {
        // Providers reject parts with empty text.
        PartKind::Text(text) | PartKind::Refusal(text) if text.is_empty() && !writer.is_same() => {}
        PartKind::Text(text) | PartKind::Refusal(text) => parts.text(text),
        PartKind::Image(media) | PartKind::Audio(media) | PartKind::File(media) => {
            if parts.medium(part.kind.clone()) {
                let lost = [&media.name, &media.detail];
                lost.into_iter().flatten().for_each(|given| writer.lose(given.at.clone()));
            } else {
                writer.lose(part.at.clone());
            }
        }
        PartKind::Call(call) => {
            let signature = writer.proof(call.signature.as_ref()).map(str::to_owned);
            parts.call(ToolCall { signature, ..call.clone() });
        }
        PartKind::Thought(thought) => {
            let signature = writer.proof(thought.signature.as_ref()).map(str::to_owned);
            if thought.signature.is_some() && signature.is_none() {
                writer.lose(part.at.clone());
            } else {
                parts.thought(Thought { signature, ..thought.clone() });
            }
        }
        PartKind::Result(result) => result_out(result, parts, writer),
        PartKind::Other(_) => writer.lose(part.at.clone()),
    }
}

/// The result of a function.
fn result_out(result: &ToolResult, parts: &mut Parts, writer: &mut RequestWriter<'_>) {
    let mut texts = Vec::new();
    for part in &result.parts {
        if let PartKind::Text(text) | PartKind::Refusal(text) = &part.kind {
            writer.lose_cache(part.cache.as_ref());
            texts.push(text.as_str());
        }
    }
    let text = texts.join("\n");
    // The protocol matches by name. A result without its call has none.
    let name = result.name.as_ref().unwrap_or(&result.call_id);
    // The tool's text, verbatim: as an object, JSON numbers would change, and some field names are rejected.
    let member = if result.failed.is_some() { "error" } else { "output" };
    let mut written = object([("name", json!(name)), ("response", json!({ member: text }))]);
    if !result.call_id.is_empty() && !result.call_id.starts_with(super::MADE_ID) {
        written.insert("id".to_owned(), json!(result.call_id));
    }
    parts.push(object([("functionResponse", Value::Object(written))]));
}

/// Media from a tool, which come after all results of the turn.
fn result_media(part: &Part, parts: &mut Parts, writer: &mut RequestWriter<'_>) {
    let PartKind::Result(result) = &part.kind else { return };
    let is_text = |part: &&Part| matches!(part.kind, PartKind::Text(_) | PartKind::Refusal(_));
    for part in result.parts.iter().filter(|part| !is_text(part)) {
        part_out(part, parts, writer);
    }
}

fn tools(tools: &[Tool], writer: &mut RequestWriter<'_>, body: &mut Map<String, Value>) {
    let mut written: Vec<(&str, Value)> = Vec::new();
    for tool in tools {
        writer.lose_cache(tool.cache.as_ref());
        let declaration = match &tool.kind {
            ToolKind::Function { .. } => Value::Object(declaration(tool, writer)),
            ToolKind::Other(value) if writer.is_same() => value.clone(),
            ToolKind::Custom { .. } | ToolKind::Other(_) => {
                writer.lose(tool.at.clone());
                continue;
            }
        };
        // A client of this protocol may have several lists, with other kinds of tools next to them.
        let (at, is_declared) = match tool.at.split_once("/functionDeclarations") {
            _ if !writer.is_same() => ("", true),
            Some((at, _)) => (at, true),
            None => (&*tool.at, false),
        };
        // Anything but an object isn't a list either.
        if !is_declared && !declaration.is_object() {
            written.push((at, declaration));
            continue;
        }
        if written.last().is_none_or(|(last, _)| *last != at) {
            written.push((at, Value::Object(Map::new())));
        }
        let Some((_, Value::Object(list))) = written.last_mut() else { continue };
        match (is_declared, declaration) {
            (false, Value::Object(others)) => list.extend(others),
            (_, declaration) => {
                let declared = list.entry("functionDeclarations").or_insert_with(|| json!([]));
                declared.as_array_mut().into_iter().for_each(|declared| declared.push(declaration.clone()));
            }
        }
    }
    if !written.is_empty() {
        let lists = written.into_iter().map(|(_, list)| list);
        body.insert("tools".to_owned(), lists.collect());
    }
}

/// Whether a content has a call.
fn has_call(content: &Value) -> bool {
    content["parts"]
        .as_array()
        .is_some_and(|parts| parts.iter().any(|part| part.get("functionCall").is_some()))
}

/// Removes what providers reject beside a reference in a schema. Returns whether some of it restricts values.
fn refer_alone(schema: &mut Value) -> bool {
    const ALLOWED: [&str; 2] = ["description", "default"];
    const ANNOTATIONS: [&str; 5] = ["title", "examples", "deprecated", "readOnly", "writeOnly"];
    let mut is_lossy = false;
    match schema {
        Value::Object(members) => {
            if members.get("$ref").is_some_and(Value::is_string) {
                members.retain(|name, _| {
                    let stays = name.starts_with('$') || ALLOWED.contains(&name.as_str());
                    is_lossy |= !stays && !ANNOTATIONS.contains(&name.as_str());
                    stays
                });
            }
            for member in members.values_mut() {
                is_lossy |= refer_alone(member);
            }
        }
        Value::Array(items) => {
            for item in items {
                is_lossy |= refer_alone(item);
            }
        }
        _ => {}
    }
    is_lossy
}

fn declaration(tool: &Tool, writer: &mut RequestWriter<'_>) -> Map<String, Value> {
    let ToolKind::Function { name, description, parameters, strict } = &tool.kind else { return Map::new() };
    let mut written = object([("name", json!(name))]);
    if let Some(description) = description {
        written.insert("description".to_owned(), json!(description));
    }
    // The older form goes back unchanged.
    if let Some(parameters) = parameters.as_ref().filter(|_| !writer.keeps(&tool.at, "parameters")) {
        let mut parameters = parameters.clone();
        if !writer.is_same() && refer_alone(&mut parameters) {
            writer.lose(tool.at.clone());
        }
        written.insert("parametersJsonSchema".to_owned(), parameters);
    }
    if let Some(strict) = strict.as_ref().filter(|strict| strict.value) {
        writer.lose(strict.at.clone());
    }
    writer.complete(&mut written, &tool.at);
    written
}

fn tool_choice(conversation: &Conversation, writer: &mut RequestWriter<'_>, body: &mut Map<String, Value>) {
    let mut calling = Map::new();
    let is_written = |tool: &Tool| matches!(tool.kind, ToolKind::Function { .. });
    let choice = if writer.is_same() {
        conversation.tool_choice.as_ref().map(|choice| Cow::Borrowed(&choice.value))
    } else {
        possible(conversation, is_written, writer)
    };
    if let Some(value) = choice {
        let (mode, names): (_, &[String]) = match &*value {
            ToolChoice::Auto => ("AUTO", &[]),
            ToolChoice::None => ("NONE", &[]),
            ToolChoice::Required => ("ANY", &[]),
            ToolChoice::Function(name) | ToolChoice::Custom(name) => ("ANY", std::slice::from_ref(name)),
            ToolChoice::Allowed { names, required: true } => ("ANY", names),
            ToolChoice::Other(Value::String(mode)) if writer.is_same() => (mode, &[]),
            ToolChoice::Allowed { .. } | ToolChoice::Other(_) => {
                writer.lose(conversation.tool_choice.as_ref().map_or("".into(), |choice| choice.at.clone()));
                ("", &[])
            }
        };
        if !mode.is_empty() {
            calling.insert("mode".to_owned(), json!(mode));
        }
        if !names.is_empty() {
            calling.insert("allowedFunctionNames".to_owned(), json!(names));
        }
    }
    let mut config = Map::new();
    writer.set(&mut config, "functionCallingConfig", calling, "/toolConfig/functionCallingConfig");
    writer.set(body, "toolConfig", config, "/toolConfig");
}

fn generation_config(
    conversation: &Conversation,
    writer: &mut RequestWriter<'_>,
    body: &mut Map<String, Value>,
) {
    let mut config = Map::new();
    let mut set = |name: &str, value: Value| drop(config.insert(name.to_owned(), value));
    let most = if writer.is_same() { usize::MAX } else { MAX_STOP_SEQUENCES };
    let (stop, beyond) = conversation.stop.split_at(conversation.stop.len().min(most));
    for sequence in beyond {
        writer.lose(sequence.at.clone());
    }
    if !stop.is_empty() {
        set("stopSequences", stop.iter().map(|stop| json!(stop.value)).collect());
    }
    for (name, given) in
        [("maxOutputTokens", &conversation.max_tokens), ("candidateCount", &conversation.choices)]
    {
        if let Some(given) = given {
            let most = if writer.is_same() { u64::MAX } else { MAX_COUNT };
            set(name, json!(given.value.min(most)));
        }
    }
    let sampling = accepted_sampling(conversation, writer);
    // No penalty is the default, and some models reject even that.
    let is_some = |penalty: &&Located<Number>| writer.is_same() || penalty.value.as_f64() != Some(0.0);
    for (name, given) in [
        ("temperature", sampling.temperature.as_ref()),
        ("topP", sampling.top_p.as_ref()),
        ("topK", sampling.top_k.as_ref()),
        ("frequencyPenalty", sampling.frequency_penalty.as_ref().filter(is_some)),
        ("presencePenalty", sampling.presence_penalty.as_ref().filter(is_some)),
        ("seed", sampling.seed.as_ref()),
    ] {
        if let Some(given) = given {
            set(name, json!(given.value));
        }
    }
    if let Some(logprobs) = conversation.logprobs.as_ref().filter(|_| !writer.is_same()) {
        set("responseLogprobs", json!(true));
        if logprobs.value > 0 {
            set("logprobs", json!(logprobs.value));
        }
    }
    format(conversation, writer, &mut config);
    thinking(conversation, writer, &mut config);
    writer.set(body, "generationConfig", config, "/generationConfig");
}

fn format(conversation: &Conversation, writer: &mut RequestWriter<'_>, config: &mut Map<String, Value>) {
    let Some(Located { value, at }) = &conversation.format else { return };
    let mut set = |name: &str, value: Value| drop(config.insert(name.to_owned(), value));
    match value {
        Format::Text => set("responseMimeType", json!("text/plain")),
        // The prompt asks for it.
        Format::JsonObject | Format::JsonSchema { .. }
            if !writer.is_same() && is_beside_tools(conversation, Protocol::Native) =>
        {
            writer.lose(at.clone());
        }
        Format::JsonObject => set("responseMimeType", json!("application/json")),
        // Its fields go back unchanged.
        Format::OneOf(_) if writer.is_same() => {}
        // The older form goes back unchanged.
        Format::JsonSchema { .. } if writer.keeps("/generationConfig", "responseSchema") => {}
        Format::JsonSchema { schema, description, .. } => {
            let mut schema = schema.clone();
            if !writer.is_same() && refer_alone(&mut schema) {
                writer.lose(at.clone());
            }
            set("responseJsonSchema", schema);
            if !writer.is_same() {
                set("responseMimeType", json!("application/json"));
            }
            if let Some(description) = description {
                writer.lose(description.at.clone());
            }
        }
        Format::Other(Value::String(kind)) if writer.is_same() => set("responseMimeType", json!(kind)),
        Format::OneOf(_) | Format::Other(_) => writer.lose(at.clone()),
    }
}

fn thinking(conversation: &Conversation, writer: &mut RequestWriter<'_>, config: &mut Map<String, Value>) {
    let wanted = &conversation.reasoning;
    let mut thinking = Map::new();
    let budget = match (&wanted.budget, &wanted.effort) {
        (Some(budget), effort) => {
            if let Some(effort) = effort.as_ref().filter(|_| !writer.is_same()) {
                writer.lose(effort.at.clone());
            }
            match budget.value {
                // Models of other protocols think longer.
                ThinkingBudget::Tokens(tokens) if tokens > MAX_TOKENS_OF_EFFORT && !writer.is_same() => {
                    writer.lose(budget.at.clone());
                    Some(ThinkingBudget::Tokens(MAX_TOKENS_OF_EFFORT))
                }
                value => Some(value),
            }
        }
        // A client of this protocol keeps its own value.
        (None, Some(_)) if writer.is_same() => None,
        (None, Some(effort)) => {
            let tokens = budget_of(&effort.value).map(|tokens| tokens.min(MAX_TOKENS_OF_EFFORT));
            if tokens.is_none() {
                writer.lose(effort.at.clone());
            }
            tokens.map(ThinkingBudget::Tokens)
        }
        (None, None) => None,
    };
    let least = if writer.is_same() { 0 } else { least_thinking(&conversation.model) };
    if let Some(budget) = budget {
        let tokens = match budget {
            ThinkingBudget::Off => Some(0),
            ThinkingBudget::Adaptive => None,
            ThinkingBudget::Tokens(tokens) => Some(tokens),
        };
        if tokens.is_some_and(|tokens| tokens < least) {
            let given = wanted.budget.as_ref().map(|budget| &budget.at);
            let given = given.or(wanted.effort.as_ref().map(|effort| &effort.at));
            if let Some(at) = given {
                writer.lose(at.clone());
            }
        }
        let tokens = tokens.map_or(json!(-1), |tokens| json!(tokens.max(least)));
        thinking.insert("thinkingBudget".to_owned(), tokens);
    }
    if let Some(summary) = &wanted.summary {
        if !matches!(summary.value.as_str(), "auto" | "none") {
            writer.lose(summary.at.clone());
        }
        thinking.insert("includeThoughts".to_owned(), json!(summary.value != "none"));
    }
    let is_on = !matches!(budget, Some(ThinkingBudget::Off));
    if wanted.is_shown && is_on && !writer.is_same() {
        thinking.entry("includeThoughts").or_insert_with(|| json!(true));
    }
    writer.set(config, "thinkingConfig", thinking, "/generationConfig/thinkingConfig");
}
