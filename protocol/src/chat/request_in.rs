//! Reads requests of the chat protocol.

use gatewright::limits;
use serde_json::Value;

use super::{functions, message_in, tools};
use crate::MalformedDocument;
use crate::cache_marks::CACHE_HINTS;
use crate::calls::name_results;
use crate::conversation::{Conversation, Format, Located, Protocol, Reasoning, Sampling, ThinkingBudget};
use crate::members::{Members, RemainingFields};
use crate::user;

/// Fields that mean nothing to another protocol: the gateway itself handles them, or they are cache hints.
const OWN: [&str; 5] = ["stream", "stream_options", CACHE_HINTS[0], CACHE_HINTS[1], CACHE_HINTS[2]];

/// Reads a client's request. Errors: it has no messages, or a message without a role.
pub(crate) fn request_in(body: Value, model: &str, stream: bool) -> Result<Conversation, MalformedDocument> {
    let mut body =
        Members::read(body, "").map_err(|_| MalformedDocument("the request is not an object".to_owned()))?;
    let mut rest = RemainingFields::default();
    body.text("model");
    if stream {
        body.flag("stream");
    }
    let messages = body.list("messages").ok_or_else(|| MalformedDocument("/messages is empty".to_owned()))?;
    let mut turns = message_in::turns(messages, &mut rest)?;
    name_results(&mut turns);
    let read = |(index, tool)| tools::read_tool(tool, format!("/tools/{index}"), &mut rest);
    let mut tools = body.list("tools").into_iter().flatten().enumerate().map(read).collect::<Vec<_>>();
    let functions = functions::read(&mut body, &mut rest);
    let has_functions = !functions.is_empty();
    tools.extend(functions);
    let mut conversation = Conversation {
        source: Protocol::Chat,
        model: model.to_owned(),
        stream,
        turns,
        tool_choice: body
            .given("tool_choice", Members::value)
            .map(|choice| Located::new(tools::read_choice(choice.value, &tools), choice.at))
            .or_else(|| functions::read_choice(&mut body)),
        tools,
        parallel_tool_calls: body
            .given("parallel_tool_calls", Members::flag)
            // An answer contains at most one function call.
            .or_else(|| has_functions.then(|| Located::new(false, functions::PLACE))),
        format: format(&mut body, &mut rest),
        // If both names are present, the older one is left in place.
        max_tokens: body
            .given("max_completion_tokens", Members::count)
            .or_else(|| body.given("max_tokens", Members::count)),
        stop: stop(&mut body),
        sampling: Sampling {
            temperature: body.given("temperature", Members::number),
            top_p: body.given("top_p", Members::number),
            top_k: body.given("top_k", Members::number),
            frequency_penalty: body.given("frequency_penalty", Members::number),
            presence_penalty: body.given("presence_penalty", Members::number),
            seed: body.given("seed", Members::number),
        },
        reasoning: reasoning(&mut body, &mut rest),
        choices: body.given("n", Members::count),
        logprobs: logprobs(&mut body),
        metadata: body.given("metadata", Members::object),
        user: user::read(&mut body),
        service_tier: body.given("service_tier", Members::text),
        verbosity: body.given("verbosity", Members::text),
        ..Conversation::default()
    };
    for name in ["logprobs", "store"] {
        // Explicitly not requested.
        if body.peek(name) == false && body.flag(name).is_some() {
            rest.keep_own(false.into(), body.place(name));
        }
    }
    rest.keep(body, &OWN);
    rest.into_conversation(&mut conversation);
    Ok(conversation)
}

/// How much the model thinks: the effort, plus `reasoning` and `thinking`, which some servers of this protocol support.
/// These are also passed through for such servers.
fn reasoning(body: &mut Members, rest: &mut RemainingFields) -> Reasoning {
    let mut read =
        Reasoning { effort: body.given("reasoning_effort", Members::text), ..Reasoning::default() };
    for (name, words) in [
        ("reasoning", ["effort", "max_tokens", "enabled", "exclude", "summary"].as_slice()),
        ("thinking", ["type", "budget_tokens"].as_slice()),
    ] {
        let given = body.peek(name);
        let Some(members) = given.as_object().filter(|members| !members.is_empty()) else { continue };
        let is_known = members.iter().all(|(name, value)| words.contains(&name.as_str()) || value.is_null());
        let tokens = ["max_tokens", "budget_tokens"]
            .into_iter()
            .find_map(|member| Some((member, limits::integer(&given[member])?)));
        let at = body.place(name);
        let budget = match (&given["type"], tokens) {
            (Value::String(kind), _) if kind == "disabled" => {
                Some(Located::new(ThinkingBudget::Off, at.clone()))
            }
            (_, Some((_, 0))) => Some(Located::new(ThinkingBudget::Off, at.clone())),
            (_, Some((member, tokens))) => {
                Some(Located::new(ThinkingBudget::Tokens(tokens), format!("{at}/{member}")))
            }
            _ if given["enabled"] == false => Some(Located::new(ThinkingBudget::Off, at.clone())),
            (kind, None) if *kind == "enabled" || *kind == "adaptive" => {
                Some(Located::new(ThinkingBudget::Adaptive, at.clone()))
            }
            _ => None,
        };
        let effort =
            given["effort"].as_str().map(|word| Located::new(word.to_owned(), format!("{at}/effort")));
        let summary = given["summary"].as_str();
        let shown = summary.or_else(|| (given["exclude"] == true).then_some("none"));
        let is_read = is_known && (budget.is_some() || effort.is_some() || shown.is_some());
        let member = if summary.is_some() { "summary" } else { "exclude" };
        let shown = shown.map(|word| Located::new(word.to_owned(), format!("{at}/{member}")));
        if !is_read {
            continue;
        }
        // The first one with a value counts; if others say more, their loss is reported.
        if read.budget.is_none() && read.effort.as_ref().is_none_or(|effort| effort.at == "/reasoning_effort")
        {
            if let Some(value) = body.value(name) {
                rest.keep_own(value, at);
            }
            read.effort = read.effort.or(effort);
            read.budget = budget;
            read.summary = shown;
        }
    }
    read
}

/// Stop sequences: one, or a list.
fn stop(body: &mut Members) -> Vec<Located<String>> {
    if let Some(only) = body.given("stop", Members::text) {
        return vec![only];
    }
    let texts = body.texts("stop").into_iter().flatten().enumerate();
    texts.map(|(index, text)| Located::new(text, format!("/stop/{index}"))).collect()
}

/// Log probabilities, with the number of alternatives if given.
fn logprobs(body: &mut Members) -> Option<Located<u64>> {
    if body.peek("logprobs") != true {
        return None;
    }
    body.flag("logprobs");
    let alternatives = body.given("top_logprobs", Members::count);
    Some(alternatives.unwrap_or_else(|| Located::new(0, "/logprobs")))
}

fn format(body: &mut Members, rest: &mut RemainingFields) -> Option<Located<Format>> {
    let given = body.given("response_format", Members::value)?;
    Some(Located { value: read_format(given.value, &given.at, rest), at: given.at })
}

fn read_format(format: Value, at: &str, rest: &mut RemainingFields) -> Format {
    let form = &format["json_schema"];
    let is_schema = format["type"] == "json_schema" && form["name"].is_string() && form["schema"].is_object();
    let kind = match format["type"].as_str() {
        Some("text") => Format::Text,
        Some("json_object") => Format::JsonObject,
        // Its fields are read below.
        Some("json_schema") if is_schema => Format::Other(Value::Null),
        _ => return Format::Other(format),
    };
    let mut format = match Members::read(format, at) {
        Ok(format) => format,
        Err(other) => return Format::Other(other),
    };
    format.text("type");
    let schema = is_schema.then(|| format.members("json_schema")).flatten();
    rest.keep(format, &[]);
    let Some(mut schema) = schema else { return kind };
    let kind = Format::JsonSchema {
        name: schema.text("name"),
        description: schema.given("description", Members::text),
        schema_at: schema.place("schema").into(),
        schema: schema.value("schema").unwrap_or_default(),
        strict: schema.given("strict", Members::flag),
    };
    rest.keep(schema, &[]);
    kind
}
