//! Reads requests of the chat protocol.

use serde_json::Value;

use super::{message_in, tools};
use crate::conversation::{Conversation, Format, Given, Protocol, Reasoning, Sampling};
use crate::protocols::Malformed;
use crate::protocols::calls::name_results;
use crate::protocols::members::{Members, Rest};

/// Members that say nothing to another protocol: the gateway itself serves them, or they ask for nothing.
const OWN: [&str; 4] = ["stream", "stream_options", "prompt_cache_key", "safety_identifier"];

/// Reads a client's request.
/// Errors: it has no messages, or a message of no role.
pub(in crate::protocols) fn request_in(
    body: Value,
    model: &str,
    stream: bool,
) -> Result<Conversation, Malformed> {
    let mut body =
        Members::read(body, "").map_err(|_| Malformed("the request is not an object".to_owned()))?;
    let mut rest = Rest::default();
    body.text("model");
    if stream {
        body.flag("stream");
    }
    let messages = body.list("messages").ok_or_else(|| Malformed("/messages is empty".to_owned()))?;
    let mut turns = message_in::turns(messages, &mut rest)?;
    name_results(&mut turns);
    let read = |(index, tool)| tools::read_tool(tool, format!("/tools/{index}"), &mut rest);
    let tools = body.list("tools").into_iter().flatten().enumerate().map(read).collect::<Vec<_>>();
    let mut conversation = Conversation {
        source: Protocol::Chat,
        model: model.to_owned(),
        stream,
        turns,
        tool_choice: body
            .given("tool_choice", Members::value)
            .map(|choice| Given::new(tools::read_choice(choice.value, &tools), choice.at)),
        tools,
        parallel_tool_calls: body.given("parallel_tool_calls", Members::flag),
        format: format(&mut body, &mut rest),
        // Where both names are there, the older one stays as it is.
        max_tokens: body
            .given("max_completion_tokens", Members::count)
            .or_else(|| body.given("max_tokens", Members::count)),
        stop: stop(&mut body),
        sampling: Sampling {
            temperature: body.given("temperature", Members::number),
            top_p: body.given("top_p", Members::number),
            top_k: None,
            frequency_penalty: body.given("frequency_penalty", Members::number),
            presence_penalty: body.given("presence_penalty", Members::number),
            seed: body.given("seed", Members::number),
        },
        reasoning: Reasoning {
            effort: body.given("reasoning_effort", Members::text),
            ..Reasoning::default()
        },
        choices: body.given("n", Members::count),
        logprobs: logprobs(&mut body),
        metadata: body.given("metadata", Members::object),
        user: body.given("user", Members::text),
        service_tier: body.given("service_tier", Members::text),
        verbosity: body.given("verbosity", Members::text),
        ..Conversation::default()
    };
    for name in ["logprobs", "store"] {
        // What is not asked for.
        if body.peek(name) == false && body.flag(name).is_some() {
            rest.keep_own(false.into(), body.place(name));
        }
    }
    rest.keep(body, &OWN);
    rest.into_conversation(&mut conversation);
    Ok(conversation)
}

/// Stop sequences: one, or a list.
fn stop(body: &mut Members) -> Vec<Given<String>> {
    if let Some(only) = body.given("stop", Members::text) {
        return vec![only];
    }
    let texts = body.texts("stop").into_iter().flatten().enumerate();
    texts.map(|(index, text)| Given::new(text, format!("/stop/{index}"))).collect()
}

/// Log probabilities, with the number of alternatives where it is given.
fn logprobs(body: &mut Members) -> Option<Given<u64>> {
    if body.peek("logprobs") != true {
        return None;
    }
    body.flag("logprobs");
    let alternatives = body.given("top_logprobs", Members::count);
    Some(alternatives.unwrap_or_else(|| Given::new(0, "/logprobs")))
}

fn format(body: &mut Members, rest: &mut Rest) -> Option<Given<Format>> {
    let given = body.given("response_format", Members::value)?;
    Some(Given { value: read_format(given.value, &given.at, rest), at: given.at })
}

fn read_format(format: Value, at: &str, rest: &mut Rest) -> Format {
    let form = &format["json_schema"];
    let is_schema = format["type"] == "json_schema" && form["name"].is_string() && form["schema"].is_object();
    let kind = match format["type"].as_str() {
        Some("text") => Format::Text,
        Some("json_object") => Format::JsonObject,
        // Its members are read below.
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
        schema: schema.value("schema").unwrap_or_default(),
        strict: schema.given("strict", Members::flag),
    };
    rest.keep(schema, &[]);
    kind
}
