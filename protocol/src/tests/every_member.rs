//! Every field in the specification is carried over to every other protocol, is reported, or means nothing there. What
//! means nothing is decided here, so a new field in the specification fails until a decision is added.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::probes::Schemas;
use super::{DEFAULTS, PROTOCOLS, response_context};
use crate::conversation::Protocol;

/// The schemas of requests and answers.
fn schemas_of(protocol: Protocol) -> (&'static str, &'static str) {
    match protocol {
        Protocol::Chat => ("ChatCompletionRequest", "ChatCompletion"),
        Protocol::Responses => ("ResponseRequest", "Response"),
        Protocol::Messages => ("MessageRequest", "Message"),
        Protocol::Native => ("GenerateContentRequest", "GenerateContentResponse"),
        Protocol::Converse | Protocol::External(_) => unreachable!("no client speaks it"),
    }
}

/// Context that gives other fields a meaning: a tool choice needs tools, thinking needs room.
fn context(protocol: Protocol) -> Value {
    let schema = json!({ "type": "object" });
    match protocol {
        Protocol::Chat => json!({
            "messages": [{ "role": "user", "content": "x" }], "logprobs": true,
            "tools": [{ "type": "function", "function": { "name": "f", "parameters": schema } }],
        }),
        Protocol::Responses => {
            json!({ "input": "x", "tools": [{ "type": "function", "name": "f", "parameters": schema }] })
        }
        Protocol::Messages => json!({
            "messages": [{ "role": "user", "content": "x" }], "max_tokens": 9999,
            "tools": [{ "name": "f", "input_schema": schema }],
        }),
        Protocol::Native => json!({
            "contents": [{ "parts": [{ "text": "x" }] }],
            "tools": [{ "functionDeclarations": [{ "name": "f", "parametersJsonSchema": schema }] }],
        }),
        Protocol::Converse | Protocol::External(_) => unreachable!("no client speaks it"),
    }
}

/// A place without list indices.
fn plain(at: &str) -> String {
    at.replace("/0", "")
}

fn value_at(document: &Value, at: &str) -> String {
    document.pointer(at).map(Value::to_string).unwrap_or_default()
}

/// What is lost silently: the place, and the values and targets concerned.
type Lost = BTreeMap<String, BTreeSet<String>>;

/// Whether a place matches a pattern, where a star stands for any text.
pub(super) fn is_like(form: &str, at: &str) -> bool {
    match form.split_once('*') {
        None => form == at,
        Some((before, after)) => at.strip_prefix(before).is_some_and(|rest| {
            after.is_empty() || rest.char_indices().any(|(index, _)| is_like(after, &rest[index..]))
        }),
    }
}

/// Compares what is lost with what was decided, in both directions.
fn decided(lost: &Lost, decided: &[(&str, &str)]) {
    let undecided: Vec<String> = lost
        .iter()
        .filter(|(at, _)| !decided.iter().any(|(known, _)| is_like(known, at)))
        .map(|(at, how)| format!("{at}: {}", how.iter().cloned().collect::<Vec<_>>().join(", ")))
        .collect();
    assert!(undecided.is_empty(), "lost in silence:\n{}", undecided.join("\n"));
    let stale: Vec<&str> = decided
        .iter()
        .map(|(known, _)| *known)
        .filter(|known| !lost.keys().any(|at| is_like(known, at)))
        .collect();
    assert!(stale.is_empty(), "no longer lost: {stale:?}");
}

#[test]
fn no_request_member_is_lost_silently() {
    let (schemas, mut lost, mut count) = (Schemas::read(), Lost::new(), 0);
    for (source, folder) in PROTOCOLS {
        for probe in schemas.probes(schemas_of(source).0, &context(source)) {
            let read = |body: &Value| source.request_in(body.clone(), "m", body["stream"] == true);
            let (Ok(with), Ok(without)) = (read(&probe.with), read(&probe.without)) else { continue };
            for (target, other) in PROTOCOLS.into_iter().filter(|(target, _)| *target != source) {
                count += 1;
                let (with, without) =
                    (target.request_out(&with, DEFAULTS), target.request_out(&without, DEFAULTS));
                let is_reported = with
                    .dropped
                    .iter()
                    .any(|place| probe.at.starts_with(&**place) || place.starts_with(&probe.at));
                if !is_reported && with.body == without.body {
                    let how = format!("{} to {other}", value_at(&probe.with, &probe.at));
                    lost.entry(format!("{folder} {}", plain(&probe.at))).or_default().insert(how);
                }
            }
        }
    }
    assert!(count > 1000, "only {count} members were probed");
    decided(&lost, SILENT_IN_REQUESTS);
}

#[test]
fn no_answer_member_is_lost_silently() {
    let (schemas, mut lost, mut count) = (Schemas::read(), Lost::new(), 0);
    for (source, folder) in PROTOCOLS {
        for probe in schemas.probes(schemas_of(source).1, &Value::Null) {
            let read = |body: &Value| source.answer_in(body.clone());
            let (Ok(with), Ok(without)) = (read(&probe.with), read(&probe.without)) else { continue };
            for (target, other) in PROTOCOLS.into_iter().filter(|(target, _)| *target != source) {
                count += 1;
                let written = |answer| target.answer_out(answer, &response_context("m"));
                if written(with.clone()) == written(without.clone()) {
                    let how = format!("{} to {other}", value_at(&probe.with, &probe.at));
                    lost.entry(format!("{folder} {}", plain(&probe.at))).or_default().insert(how);
                }
            }
        }
    }
    assert!(count > 200, "only {count} members were probed");
    decided(&lost, SILENT_IN_ANSWERS);
}

/// Request fields, and why some of their values mean nothing to some other protocol. A star stands for any text.
const SILENT_IN_REQUESTS: &[(&str, &str)] = &[
    ("* /model", "the target has its own name of it"),
    ("* /stream", "false is the default, and the native protocol says it in the path"),
    ("chat /stream_options*", "the gateway serves it"),
    ("chat /logprobs", "false is the default"),
    ("chat /store", "false is the default"),
    ("* /parallel_tool_calls", "true is the default"),
    ("messages /tool_choice/disable_parallel_tool_use", "false is the default"),
    ("* /tools*/strict", "false is the default, or what others write anyway"),
    ("chat /response_format", "text is the default"),
    ("native /generationConfig/responseMimeType", "text is the default"),
    ("chat /response_format/json_schema/name", "a name of the schema, which shapes no text"),
    ("responses /text/format/name", "a name of the schema, which shapes no text"),
    ("chat /response_format/json_schema/strict", "the target always keeps to a schema"),
    ("responses /text/format/strict", "the target always keeps to a schema"),
    ("responses /text/format", "text is the default"),
    ("chat /messages/role", "the least request has this role"),
    ("messages /messages/role", "the least request has this role"),
    ("messages /messages/content", "a text and a list of one text say the same"),
    ("chat /reasoning_effort", "a model of the messages protocol thinks only if the request says so"),
    ("responses /reasoning/effort", "a model of the messages protocol thinks only if the request says so"),
    ("responses /reasoning/summary", "a thought is shown whole"),
    ("messages /thinking", "no word says that a model thinks as much as it finds right: it does"),
    ("messages /thinking/budget_tokens", "two budgets within one effort"),
    ("chat /stop", "the gateway looks for it in the answer"),
    ("messages /stop_sequences", "the gateway looks for it in the answer"),
    ("native /generationConfig/stopSequences", "the gateway looks for it in the answer"),
    ("messages /service_tier", "the target has one tier"),
    ("messages /metadata", "empty"),
    ("messages /output_config", "empty"),
    ("native /generationConfig", "empty"),
    ("native /toolConfig*", "empty"),
    ("native /contents/role", "the least request has this role, or the parts tell"),
    ("native /systemInstruction/role", "it is an instruction, whatever it is called"),
    (
        "native /tools/functionDeclarations/parameters*",
        "a function without arguments is one of no properties",
    ),
    ("native *nullable", "false is the default, and a schema without a type takes null"),
    ("native *propertyOrdering", "JSON Schema has no order of members"),
    ("responses /reasoning", "empty"),
    ("responses /text", "empty"),
    ("responses /background", "the gateway serves it"),
    ("responses /store", "the gateway serves it"),
    ("responses /include", "asks for more of what only the responses protocol has"),
    ("responses /truncation", "disabled is the default"),
    ("responses /input/content", "a text and a list of one text say the same"),
    ("responses /input/*logprobs", "of an earlier answer"),
    ("responses /input/id", "of an item, not of a call"),
    ("responses /input/status", "of an earlier answer"),
    ("responses /input/role", "the least request has this role"),
];

/// The same for answers.
const SILENT_IN_ANSWERS: &[(&str, &str)] = &[
    ("* /model", "the client's own name of it is written"),
    ("* /id", "of another form"),
    ("chat /created", "the target has no time"),
    ("chat /system_fingerprint", "names a state of the provider"),
    ("* /usage/*details", "empty"),
    ("messages /usage/cache_creation", "empty"),
    ("* /usage/total_tokens", "the sum of the others"),
    ("messages /usage/service_tier", "the usual one"),
    ("chat /choices/index", "choices are counted in order"),
    ("native /candidates/index", "candidates are counted in order"),
    ("chat /choices/finish_reason", "the call itself says it"),
    ("messages /stop_reason", "the call itself says it, or a stop sequence that is not reported"),
    ("messages /stop_sequence", "there is none without the reason"),
    ("native /candidates/finishReason", "the usual one"),
    ("native /candidates/content/role", "always the model"),
    (
        "chat /choices/logprobs*",
        "nobody asks for them in the messages protocol, and bytes follow from the text",
    ),
    ("responses /output/content/logprobs*", "as those of chat"),
    ("messages /content/cache_control*", "an answer caches nothing"),
    ("messages /content/source/media_type", "the usual one"),
    ("responses /status", "the output and its end say it"),
    ("responses /error*", "only of a response that failed"),
    ("responses /incomplete_details/reason", "only of a response that is incomplete"),
    ("responses /output/id", "of an item, not of a call"),
    ("responses /output/status", "of an item"),
    ("responses /background", "repeats the request"),
    ("responses /max_output_tokens", "repeats the request"),
    ("responses /max_tool_calls", "repeats the request"),
    ("responses /metadata", "repeats the request"),
    ("responses /parallel_tool_calls", "repeats the request"),
    ("responses /previous_response_id", "repeats the request"),
    ("responses /prompt_cache_key", "repeats the request"),
    ("responses /reasoning*", "repeats the request"),
    ("responses /safety_identifier", "repeats the request"),
    ("responses /store", "repeats the request"),
    ("responses /text*", "repeats the request"),
    ("responses /tools*", "repeats the request"),
    ("responses /top_logprobs", "repeats the request"),
    ("responses /truncation", "repeats the request"),
    ("responses /user", "repeats the request"),
];
