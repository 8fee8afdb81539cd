//! Rules of responses.

use std::collections::HashMap;

use serde_json::Value;

use crate::judge::words::{
    EFFORTS, data_url, has_word, is_base64, is_json_object, is_name, is_picture, is_web, items, longest,
    metadata, one_of, range, text, unknown,
};
use crate::judge::{Findings, Rule, choice, schema};

pub(super) const RULES: &[Rule] = &[
    Rule::new("input_is_there", input_is_there),
    Rule::new("results_have_their_calls", results_have_their_calls),
    Rule::new("ids_are_short", ids_are_short),
    Rule::new("ids_of_items_fit_their_kind", ids_of_items_fit_their_kind),
    Rule::new("names_of_tools", names_of_tools),
    Rule::new("names_of_tools_are_unique", names_of_tools_are_unique),
    Rule::new("arguments_are_an_object", arguments_are_an_object),
    Rule::new("parts_fit_the_role", parts_fit_the_role),
    Rule::new("results_are_texts_or_parts", results_are_texts_or_parts),
    Rule::new("thoughts_have_their_proof", thoughts_have_their_proof),
    Rule::new("thoughts_are_followed", thoughts_are_followed),
    Rule::new("media_have_their_form", media_have_their_form),
    Rule::new("a_choice_has_its_tools", choice::of_tools),
    Rule::new("parameters_are_objects", parameters_are_objects),
    Rule::new("strict_schemas_are_closed", strict_schemas_are_closed),
    Rule::new("a_schema_has_a_name", a_schema_has_a_name),
    Rule::new("json_is_mentioned", json_is_mentioned),
    Rule::new("sixteen_tokens", sixteen_tokens),
    Rule::new("user_is_short", user_is_short),
    Rule::new("numbers_are_in_range", numbers_are_in_range),
    Rule::new("words_are_known", words_are_known),
    Rule::new("metadata_is_short", metadata),
    Rule::new("members_are_known", members_are_known),
    Rule::of_provider("no_thoughts_no_proofs", no_thoughts_no_proofs),
];

/// The input items with their kind: one without a type is a message.
fn input(body: &Value) -> impl Iterator<Item = (String, &str, &Value)> {
    items(&body["input"]).map(|(index, item)| {
        let kind = item["type"].as_str().unwrap_or("message");
        (format!("/input/{index}"), kind, item)
    })
}

fn is_call(kind: &str) -> bool {
    ["function_call", "custom_tool_call"].contains(&kind)
}

fn is_result(kind: &str) -> bool {
    ["function_call_output", "custom_tool_call_output"].contains(&kind)
}

/// "One of 'input' or 'previous_response_id' or 'prompt' or 'conversation_id' must be provided". Source: `CreateResponse` in
/// github.com/openai/openai-openapi.
fn input_is_there(body: &Value, findings: &mut Findings) {
    let is_elsewhere =
        ["previous_response_id", "prompt", "conversation"].iter().any(|name| !body[*name].is_null());
    let is_there = match &body["input"] {
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if !is_there && !is_elsewhere {
        findings.report("/input", "is empty");
    }
}

/// "No tool call found for function call output with call_id …", "No tool output found for function call …", and two with
/// the same id. Sources: github.com/microsoft/vscode/issues/320060, github.com/anomalyco/opencode/issues/16717,
/// github.com/0xPlaygrounds/rig/issues/1588.
fn results_have_their_calls(body: &Value, findings: &mut Findings) {
    // Whether the call has its result, and the call's place.
    let mut calls: HashMap<&str, (bool, &str, String)> = HashMap::new();
    for (at, kind, item) in input(body) {
        let id = text(item, "call_id");
        if is_call(kind) {
            if calls.insert(id, (false, kind, at.clone())).is_some() {
                findings.report(at, format!("a second call {id:?}"));
            }
        } else if is_result(kind) {
            match calls.get_mut(id) {
                None => findings.report(at, format!("no tool call found for output with call_id {id:?}")),
                Some((true, ..)) => findings.report(at, format!("a second output of {id:?}")),
                Some((_, call, _)) if kind.strip_suffix("_output") != Some(*call) => {
                    findings.report(at, format!("{kind} of a {call}"));
                }
                Some((is_answered, ..)) => *is_answered = true,
            }
        }
    }
    for (id, (_, _, at)) in calls.into_iter().filter(|(_, (is_answered, ..))| !is_answered) {
        findings.report(at, format!("no tool output found for call {id:?}"));
    }
}

/// "Invalid 'input[2].call_id': string too long. Expected a string with maximum length 64", and the same when empty. Sources:
/// github.com/openclaw/openclaw/pull/875, github.com/openai/openai-agents-python/issues/1147.
fn ids_are_short(body: &Value, findings: &mut Findings) {
    for (at, kind, item) in input(body) {
        let length = text(item, "call_id").chars().count();
        if (is_call(kind) || is_result(kind)) && !(1..=64).contains(&length) {
            findings.report(format!("{at}/call_id"), format!("{length} characters, 1 to 64 are right"));
        }
        longest(body, &format!("{at}/id"), 64, findings);
    }
}

/// "Invalid 'input[3].id': 'call_1'. Expected an ID that begins with 'fc'". Source:
/// github.com/jlcodes99/cockpit-tools/issues/2090.
fn ids_of_items_fit_their_kind(body: &Value, findings: &mut Findings) {
    for (at, kind, item) in input(body) {
        let begins = match kind {
            "message" if item["role"] == "assistant" => "msg",
            "function_call" => "fc",
            "custom_tool_call" => "ctc",
            "reasoning" => "rs",
            _ => continue,
        };
        if item["id"].as_str().is_some_and(|id| !id.starts_with(begins)) {
            findings.report(format!("{at}/id"), format!("{} does not begin with '{begins}'", item["id"]));
        }
    }
}

/// 128 of `a-zA-Z0-9_-`. Source: `FunctionTool.name` in github.com/openai/openai-openapi;
/// github.com/anthropics/claude-code/issues/22336.
fn names_of_tools(body: &Value, findings: &mut Findings) {
    let calls = input(body).filter(|(_, kind, _)| is_call(kind)).map(|(at, _, item)| (at, item));
    let tools = items(&body["tools"]).map(|(index, tool)| (format!("/tools/{index}"), tool));
    let choice = std::iter::once(("/tool_choice".to_owned(), &body["tool_choice"]));
    let is_named = |named: &Value| ["function", "custom"].contains(&text(named, "type"));
    for (at, named) in calls.chain(tools.chain(choice).filter(|(_, named)| is_named(named))) {
        if !is_name(text(named, "name"), 128, "") {
            findings
                .report(format!("{at}/name"), format!("{} is not 1 to 128 of a-zA-Z0-9_-", named["name"]));
        }
    }
}

/// Two tools with the same name: see `choice::unique`.
fn names_of_tools_are_unique(body: &Value, findings: &mut Findings) {
    let names = items(&body["tools"])
        .filter_map(|(index, tool)| Some((format!("/tools/{index}"), choice::name_of(tool)?)));
    choice::unique(names, findings);
}

/// Arguments are text containing a JSON object; the input of a custom tool is text. Sources: `FunctionToolCall.arguments`
/// in github.com/openai/openai-openapi; github.com/ogx-ai/ogx/issues/5462.
fn arguments_are_an_object(body: &Value, findings: &mut Findings) {
    for (at, kind, item) in input(body) {
        if kind == "function_call" && !is_json_object(text(item, "arguments")) {
            findings.report(
                format!("{at}/arguments"),
                format!("{} is no text of a JSON object", item["arguments"]),
            );
        }
        if kind == "custom_tool_call" && !item["input"].is_string() {
            findings.report(format!("{at}/input"), "a text");
        }
    }
}

/// "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'". Source:
/// github.com/sunwu51/TabPilot/pull/46; `EasyInputMessage` in github.com/openai/openai-openapi.
fn parts_fit_the_role(body: &Value, findings: &mut Findings) {
    for (at, _, item) in input(body).filter(|(_, kind, _)| *kind == "message") {
        let role = text(item, "role");
        let right: &[&str] = match role {
            "assistant" => &["output_text", "refusal"],
            "user" | "system" | "developer" => &["input_text", "input_image", "input_file", "input_audio"],
            _ => {
                findings.report(format!("{at}/role"), format!("unknown role {role:?}"));
                continue;
            }
        };
        match &item["content"] {
            Value::String(_) => {}
            Value::Array(parts) if !parts.is_empty() => {
                for (index, part) in parts.iter().enumerate() {
                    if !right.contains(&text(part, "type")) {
                        let given = &part["type"];
                        findings.report(
                            format!("{at}/content/{index}/type"),
                            format!("{given} is none of {right:?}"),
                        );
                    } else if text(part, "type").ends_with("_text") && !part["text"].is_string() {
                        findings.report(format!("{at}/content/{index}/text"), "a text");
                    }
                }
            }
            other => findings.report(format!("{at}/content"), format!("no content: {other}")),
        }
    }
}

/// Source: `FunctionCallOutputItemParam.output` in github.com/openai/openai-openapi: text, or a list of texts, images and
/// files.
fn results_are_texts_or_parts(body: &Value, findings: &mut Findings) {
    for (at, _, item) in input(body).filter(|(_, kind, _)| is_result(kind)) {
        let right = ["input_text", "input_image", "input_file"];
        match &item["output"] {
            Value::String(_) => {}
            Value::Array(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    if !right.contains(&text(part, "type")) {
                        findings.report(
                            format!("{at}/output/{index}/type"),
                            format!("{} is none of {right:?}", part["type"]),
                        );
                    }
                }
            }
            other => findings.report(format!("{at}/output"), format!("no output: {other}")),
        }
    }
}

/// A thought that the provider hasn't stored needs its proof, and its plain text is a summary. Sources: "Item 'rs_…' not
/// found. Items are not persisted when `store` is set to false", github.com/earendil-works/pi/issues/3369; "array too
/// long … maximum length 0" of `content`, github.com/maximhq/bifrost/issues/5410; `ReasoningItem` in
/// github.com/openai/openai-openapi.
fn thoughts_have_their_proof(body: &Value, findings: &mut Findings) {
    for (at, _, item) in input(body).filter(|(_, kind, _)| *kind == "reasoning") {
        if body["store"] == false && text(item, "encrypted_content").is_empty() {
            findings
                .report(format!("{at}/encrypted_content"), "a thought that is not stored needs its proof");
        }
        if items(&item["content"]).next().is_some() {
            findings.report(format!("{at}/content"), "plain text of a thought");
        }
        if !item["summary"].is_array() {
            findings.report(format!("{at}/summary"), "a list");
        }
        for (index, part) in items(&item["summary"]) {
            if part["type"] != "summary_text" || !part["text"].is_string() {
                findings.report(format!("{at}/summary/{index}"), "a summary_text with its text");
            }
        }
    }
}

/// "Item 'rs_…' of type 'reasoning' was provided without its required following item". Source:
/// github.com/vercel/ai/issues/7099, github.com/openai/openai-node/issues/1567: for items that the provider knows by id.
fn thoughts_are_followed(body: &Value, findings: &mut Findings) {
    let all: Vec<_> = input(body).collect();
    for (index, (at, kind, item)) in all.iter().enumerate() {
        let is_of_model = |(_, kind, item): &(String, &str, &Value)| {
            !is_result(kind) && (*kind != "message" || item["role"] == "assistant")
        };
        if *kind == "reasoning" && item["id"].is_string() && !all.get(index + 1).is_some_and(is_of_model) {
            findings.report(at, "nothing of the model follows the thought");
        }
    }
}

fn file_has_its_form(part: &Value, at: &str, findings: &mut Findings) {
    let data = data_url(text(part, "file_data")).is_some_and(|(kind, data)| {
        kind.contains('/') && is_base64(data) && !text(part, "filename").is_empty()
    });
    let ways = [data, !text(part, "file_id").is_empty(), is_web(text(part, "file_url"))];
    if ways.into_iter().filter(|way| *way).count() != 1 {
        findings.report(at, "an id, an address, or a data: address in base64 with a file name");
    }
}

/// Images as in chat or by id; files by id, at a URL, or as a `data:` URL with a name. Sources: `InputImageContent`,
/// `InputFileContent` in github.com/openai/openai-openapi; the public guide "File inputs",
/// developers.openai.com/api/docs/guides/pdf-files.
fn media_have_their_form(body: &Value, findings: &mut Findings) {
    for (at, _, item) in input(body) {
        for name in ["content", "output"] {
            for (index, part) in items(&item[name]) {
                let at = format!("{at}/{name}/{index}");
                match text(part, "type") {
                    "input_image" => {
                        let is_id = !text(part, "file_id").is_empty();
                        if is_id == is_picture(text(part, "image_url")) {
                            findings.report(at, "an id, an address, or a picture in base64");
                        }
                    }
                    "input_file" => file_has_its_form(part, &at, findings),
                    _ => {}
                }
            }
        }
    }
}

fn functions(body: &Value) -> impl Iterator<Item = (String, &Value)> {
    items(&body["tools"])
        .filter(|(_, tool)| tool["type"] == "function")
        .map(|(index, tool)| (format!("/tools/{index}"), tool))
}

/// See `schema::parameters`.
fn parameters_are_objects(body: &Value, findings: &mut Findings) {
    for (at, function) in functions(body) {
        schema::parameters(&function["parameters"], &format!("{at}/parameters"), findings);
    }
}

/// See `schema::strict`.
fn strict_schemas_are_closed(body: &Value, findings: &mut Findings) {
    for (at, function) in functions(body).filter(|(_, function)| function["strict"] == true) {
        schema::strict(&function["parameters"], &format!("{at}/parameters"), findings);
    }
    let format = &body["text"]["format"];
    if format["type"] == "json_schema" && format["strict"] == true {
        schema::strict(&format["schema"], "/text/format/schema", findings);
    }
}

/// "Missing required parameter: 'text.format.name'". Source: `TextResponseFormatJsonSchema` in github.com/openai/openai-openapi.
fn a_schema_has_a_name(body: &Value, findings: &mut Findings) {
    let format = &body["text"]["format"];
    one_of(body, "/text/format/type", &["text", "json_object", "json_schema"], findings);
    if format["type"] == "json_schema" && !is_name(text(format, "name"), 64, "") {
        findings.report("/text/format/name", "1 to 64 of a-zA-Z0-9_-");
    }
}

/// "Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'": words
/// in `instructions` don't count. Source: "JSON mode" in platform.openai.com/docs/guides/structured-outputs.
fn json_is_mentioned(body: &Value, findings: &mut Findings) {
    if body["text"]["format"]["type"] == "json_object" && !has_word(&body["input"], "json") {
        findings.report("/input", "must contain the word 'json'");
    }
}

/// "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16". Source:
/// github.com/vectorize-io/hindsight/issues/58.
fn sixteen_tokens(body: &Value, findings: &mut Findings) {
    range(body, "/max_output_tokens", 16.0, f64::MAX, findings);
}

/// 64 characters, as in chat.
fn user_is_short(body: &Value, findings: &mut Findings) {
    for at in ["/user", "/safety_identifier", "/prompt_cache_key"] {
        longest(body, at, 64, findings);
    }
}

/// Source: limits of the fields in github.com/openai/openai-openapi.
fn numbers_are_in_range(body: &Value, findings: &mut Findings) {
    range(body, "/temperature", 0.0, 2.0, findings);
    range(body, "/top_p", 0.0, 1.0, findings);
    range(body, "/top_logprobs", 0.0, 20.0, findings);
    range(body, "/max_tool_calls", 1.0, f64::MAX, findings);
}

/// Source: `Reasoning`, `Verbosity`, `ServiceTier`, `Truncation` and `IncludeEnum` in github.com/openai/openai-openapi.
fn words_are_known(body: &Value, findings: &mut Findings) {
    one_of(body, "/reasoning/effort", EFFORTS, findings);
    one_of(body, "/reasoning/summary", &["auto", "concise", "detailed"], findings);
    one_of(body, "/text/verbosity", &["low", "medium", "high"], findings);
    one_of(body, "/service_tier", &["auto", "default", "flex", "scale", "priority"], findings);
    one_of(body, "/truncation", &["auto", "disabled"], findings);
    let include = [
        "code_interpreter_call.outputs",
        "computer_call_output.output.image_url",
        "file_search_call.results",
        "message.input_image.image_url",
        "message.output_text.logprobs",
        "reasoning.encrypted_content",
        "web_search_call.action.sources",
        "web_search_call.results",
    ];
    for (index, _) in items(&body["include"]) {
        one_of(body, &format!("/include/{index}"), &include, findings);
    }
}

/// "Unknown parameter: 'input[0].x'". Source: the fields of `CreateResponse` and its items in
/// github.com/openai/openai-openapi; `client_metadata`, which github.com/openai/codex sends, and `parsed_arguments`,
/// which openai-node adds to the calls of its streams and clients send back.
fn members_are_known(body: &Value, findings: &mut Findings) {
    const REQUEST: &[&str] = &[
        "model",
        "input",
        "instructions",
        "background",
        "client_metadata",
        "context_management",
        "conversation",
        "include",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt",
        "prompt_cache_key",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    ];
    unknown(body, "", REQUEST, findings);
    unknown(&body["reasoning"], "/reasoning", &["effort", "summary", "generate_summary"], findings);
    unknown(&body["text"], "/text", &["format", "verbosity"], findings);
    for (at, kind, item) in input(body) {
        let known: &[&str] = match kind {
            "message" => &["type", "id", "role", "status", "content", "phase"],
            "function_call" => {
                &["type", "id", "status", "call_id", "name", "arguments", "namespace", "parsed_arguments"]
            }
            "custom_tool_call" => &["type", "id", "status", "call_id", "name", "input"],
            "function_call_output" | "custom_tool_call_output" => {
                &["type", "id", "status", "call_id", "output"]
            }
            "reasoning" => &["type", "id", "status", "summary", "content", "encrypted_content"],
            _ => continue,
        };
        unknown(item, &at, known, findings);
    }
}

/// Models that don't think reject a request for proofs of thoughts. Sources:
/// github.com/NousResearch/hermes-agent/issues/24234, github.com/theopenco/llmgateway/issues/2782.
fn no_thoughts_no_proofs(body: &Value, findings: &mut Findings) {
    let is_off = body["reasoning"]["effort"].is_null() || body["reasoning"]["effort"] == "none";
    if is_off && items(&body["include"]).any(|(_, word)| word == "reasoning.encrypted_content") {
        findings.report("/include", "proofs of thoughts, which are off");
    }
}
