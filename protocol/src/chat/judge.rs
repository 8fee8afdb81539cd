//! Rules of chat completions.

use std::collections::HashSet;

use serde_json::Value;

use crate::judge::words::{
    EFFORTS, data_url, has_word, is_base64, is_json_object, is_name, is_picture, items, longest, metadata,
    one_of, range, text, unknown,
};
use crate::judge::{Findings, Rule, choice, schema};

pub(super) const RULES: &[Rule] = &[
    Rule::new("messages_are_there", messages_are_there),
    Rule::new("results_follow_their_calls", results_follow_their_calls),
    Rule::new("ids_of_a_message_are_unique", ids_of_a_message_are_unique),
    Rule::new("ids_are_short", ids_are_short),
    Rule::new("names_of_tools", names_of_tools),
    Rule::new("names_of_tools_are_unique", names_of_tools_are_unique),
    Rule::new("arguments_are_an_object", arguments_are_an_object),
    Rule::new("content_is_there", content_is_there),
    Rule::new("lists_are_not_empty", lists_are_not_empty),
    Rule::new("parts_fit_the_role", parts_fit_the_role),
    Rule::new("media_have_their_form", media_have_their_form),
    Rule::new("names_of_authors", names_of_authors),
    Rule::new("a_choice_has_its_tools", a_choice_has_its_tools),
    Rule::new("parameters_are_objects", parameters_are_objects),
    Rule::new("strict_schemas_are_closed", strict_schemas_are_closed),
    Rule::new("a_schema_has_a_name", a_schema_has_a_name),
    Rule::new("json_is_mentioned", json_is_mentioned),
    Rule::new("user_is_short", user_is_short),
    Rule::new("four_stops", four_stops),
    Rule::new("numbers_are_in_range", numbers_are_in_range),
    Rule::new("one_limit", one_limit),
    Rule::new("words_are_known", words_are_known),
    Rule::new("metadata_is_short", metadata),
    Rule::new("stream_options_of_a_stream", stream_options_of_a_stream),
    Rule::new("members_are_known", members_are_known),
    Rule::of_provider("newer_limit", newer_limit),
    Rule::of_provider("no_developer", no_developer),
    Rule::of_provider("system_first", system_first),
    Rule::of_provider("functions_only", functions_only),
    Rule::of_provider("no_reasoning_content", no_reasoning_content),
    Rule::of_provider("nine_alphanumeric", nine_alphanumeric),
    Rule::of_provider("no_user_after_tool", no_user_after_tool),
];

fn messages(body: &Value) -> impl Iterator<Item = (String, &Value)> {
    items(&body["messages"]).map(|(index, message)| (format!("/messages/{index}"), message))
}

/// The calls of all messages, and their places.
fn calls(body: &Value) -> impl Iterator<Item = (String, &Value)> {
    messages(body).flat_map(|(at, message)| {
        items(&message["tool_calls"]).map(move |(index, call)| (format!("{at}/tool_calls/{index}"), call))
    })
}

fn functions(body: &Value) -> impl Iterator<Item = (String, &Value)> {
    items(&body["tools"])
        .filter(|(_, tool)| tool["type"] == "function")
        .map(|(index, tool)| (format!("/tools/{index}/function"), &tool["function"]))
}

/// "[] is too short - 'messages'". Source: `CreateChatCompletionRequest` in github.com/openai/openai-openapi (minItems 1), and
/// the roles of `ChatCompletionRequestMessage` there.
fn messages_are_there(body: &Value, findings: &mut Findings) {
    if messages(body).next().is_none() {
        findings.report("/messages", "one message at least");
    }
    for (at, message) in messages(body) {
        let roles = ["system", "developer", "user", "assistant", "tool", "function"];
        if !roles.contains(&text(message, "role")) {
            findings.report(format!("{at}/role"), format!("{} is none of {roles:?}", message["role"]));
        }
    }
}

/// "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'", and "messages
/// with role 'tool' must be a response to a preceding message with 'tool_calls'". Sources: github.com/agno-agi/agno/issues/3105,
/// github.com/langgenius/dify/issues/32222, github.com/vllm-project/vllm/issues/46321.
fn results_follow_their_calls(body: &Value, findings: &mut Findings) {
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages(body) {
        if message["role"] == "tool" {
            let id = text(message, "tool_call_id");
            match open.iter().position(|call| *call == id) {
                Some(index) => drop(open.remove(index)),
                None => findings
                    .report(at, format!("a result of {id:?}, which is no open call of the message before")),
            }
            continue;
        }
        if !open.is_empty() {
            findings.report(at, format!("calls {open:?} have no results"));
        }
        open = items(&message["tool_calls"]).map(|(_, call)| text(call, "id")).collect();
    }
    if !open.is_empty() {
        findings.report("/messages", format!("calls {open:?} have no results"));
    }
}

/// Parallel calls with the same id are indistinguishable. Sources: github.com/vllm-project/vllm/issues/50295,
/// github.com/BerriAI/litellm/issues/23510.
fn ids_of_a_message_are_unique(body: &Value, findings: &mut Findings) {
    for (at, message) in messages(body) {
        let mut known = HashSet::new();
        for (index, call) in items(&message["tool_calls"]) {
            if !known.insert(text(call, "id")) {
                findings.report(
                    format!("{at}/tool_calls/{index}/id"),
                    format!("{} for a second call", call["id"]),
                );
            }
        }
    }
}

/// "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40". Sources:
/// github.com/vercel/ai/issues/5171, github.com/Portkey-AI/gateway/issues/1062.
fn ids_are_short(body: &Value, findings: &mut Findings) {
    let results = messages(body).filter(|(_, message)| message["role"] == "tool");
    let ids = calls(body)
        .map(|(at, call)| (format!("{at}/id"), &call["id"]))
        .chain(results.map(|(at, message)| (format!("{at}/tool_call_id"), &message["tool_call_id"])));
    for (at, id) in ids {
        let length = id.as_str().map_or(0, |id| id.chars().count());
        if length == 0 || length > 40 {
            findings.report(at, format!("{length} characters, 1 to 40 are right"));
        }
    }
}

/// 64 of `a-zA-Z0-9_-`. Sources: `FunctionObject.name` in github.com/openai/openai-openapi; "string does not match pattern" in
/// github.com/QwenLM/Qwen3-VL/issues/2069, github.com/anthropics/claude-code/issues/21492.
fn names_of_tools(body: &Value, findings: &mut Findings) {
    let tools = items(&body["tools"]).map(|(index, tool)| (format!("/tools/{index}"), tool));
    let choice = std::iter::once(("/tool_choice".to_owned(), &body["tool_choice"]));
    for (at, named) in tools.chain(calls(body)).chain(choice) {
        let kind = text(named, "type");
        let name = text(&named[kind], "name");
        if ["function", "custom"].contains(&kind) && !is_name(name, 64, "") {
            findings.report(format!("{at}/{kind}/name"), format!("{name:?} is not 1 to 64 of a-zA-Z0-9_-"));
        }
    }
}

/// Two tools with the same name: see `choice::unique`.
fn names_of_tools_are_unique(body: &Value, findings: &mut Findings) {
    let names = items(&body["tools"])
        .filter_map(|(index, tool)| Some((format!("/tools/{index}"), choice::name_of(tool)?)));
    choice::unique(names, findings);
}

/// Model templates parse call arguments as JSON. Sources: github.com/ggml-org/llama.cpp/issues/20198;
/// github.com/vercel/ai/issues/2103.
fn arguments_are_an_object(body: &Value, findings: &mut Findings) {
    for (at, call) in calls(body) {
        match text(call, "type") {
            "function" if is_json_object(text(&call["function"], "arguments")) => {}
            "custom" if call["custom"]["input"].is_string() => {}
            "function" => {
                let given = &call["function"]["arguments"];
                findings.report(
                    format!("{at}/function/arguments"),
                    format!("{given} is no text of a JSON object"),
                );
            }
            "custom" => findings.report(format!("{at}/custom/input"), "a text"),
            kind => findings.report(format!("{at}/type"), format!("{kind:?} is no kind of call")),
        }
    }
}

/// "Invalid value for 'content': expected a string, got null". Sources: github.com/BerriAI/litellm/issues/22930; the
/// required fields of the messages in github.com/openai/openai-openapi.
fn content_is_there(body: &Value, findings: &mut Findings) {
    for (at, message) in messages(body) {
        let content = &message["content"];
        let instead = ["tool_calls", "refusal", "audio", "function_call"];
        let may_be_null =
            message["role"] == "assistant" && instead.iter().any(|name| !message[*name].is_null());
        if !(content.is_string() || content.is_array() || (content.is_null() && may_be_null)) {
            findings.report(format!("{at}/content"), format!("expected a string, got {content}"));
        }
    }
}

/// "[] is too short". Sources: minItems of `content`, `tools` and `tool_calls` in github.com/openai/openai-openapi.
fn lists_are_not_empty(body: &Value, findings: &mut Findings) {
    let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
    for (at, message) in messages(body) {
        for name in ["content", "tool_calls"] {
            if is_empty(&message[name]) {
                findings.report(format!("{at}/{name}"), "[] is too short");
            }
        }
    }
    for name in ["tools", "stop"] {
        if is_empty(&body[name]) {
            findings.report(format!("/{name}"), "[] is too short");
        }
    }
}

/// Text everywhere; images, audio and files only from the user. Source: `ChatCompletionRequestUserMessageContentPart` and
/// its siblings in github.com/openai/openai-openapi; for tools github.com/earendil-works/pi/issues/9518.
fn parts_fit_the_role(body: &Value, findings: &mut Findings) {
    for (at, message) in messages(body) {
        let right: &[&str] = match text(message, "role") {
            "user" => &["text", "image_url", "input_audio", "file"],
            "assistant" => &["text", "refusal"],
            _ => &["text"],
        };
        for (index, part) in items(&message["content"]) {
            let kind = text(part, "type");
            if !right.contains(&kind) {
                findings
                    .report(format!("{at}/content/{index}/type"), format!("{kind:?} is none of {right:?}"));
            } else if kind == "text" && !part["text"].is_string() {
                findings.report(format!("{at}/content/{index}/text"), "a text");
            }
        }
    }
}

/// Images at a URL or as `data:image/…;base64,`; wav or mp3 audio; files by id or as a `data:` URL. Sources:
/// github.com/openai/openai-openapi (`ImageUrl`, `InputAudio`, `FileInput`); github.com/BerriAI/litellm/issues/39977.
fn media_have_their_form(body: &Value, findings: &mut Findings) {
    for (at, message) in messages(body) {
        for (index, part) in items(&message["content"]) {
            let at = format!("{at}/content/{index}");
            match text(part, "type") {
                "image_url" if !is_picture(text(&part["image_url"], "url")) => {
                    findings.report(format!("{at}/image_url/url"), "no address, and no picture in base64");
                }
                "input_audio" => {
                    let audio = &part["input_audio"];
                    if !["wav", "mp3"].contains(&text(audio, "format")) || !is_base64(text(audio, "data")) {
                        findings.report(format!("{at}/input_audio"), "wav or mp3 in base64");
                    }
                }
                "file" => {
                    let file = &part["file"];
                    let is_data = data_url(text(file, "file_data"))
                        .is_some_and(|(kind, data)| kind.contains('/') && is_base64(data));
                    let is_id = !text(file, "file_id").is_empty();
                    if is_data == is_id {
                        findings.report(format!("{at}/file"), "an id, or a data: address in base64");
                    }
                }
                _ => {}
            }
        }
    }
}

/// "string does not match pattern '^[^\s<|\\/>]+$'", of 64 characters. Sources: the provider's message;
/// github.com/pollinations/pollinations/pull/10653.
fn names_of_authors(body: &Value, findings: &mut Findings) {
    for (at, message) in messages(body) {
        let Some(name) = message["name"].as_str() else { continue };
        let is_wrong = |c: char| c.is_whitespace() || "<|\\/>".contains(c);
        if name.is_empty() || name.chars().count() > 64 || name.contains(is_wrong) {
            findings.report(format!("{at}/name"), format!("{name:?} is no name of an author"));
        }
    }
}

/// "'parallel_tool_calls' is only allowed when 'tools' are specified", and the same for `tool_choice`. Sources:
/// github.com/openai/swarm/issues/30, github.com/musistudio/claude-code-router/issues/1207.
fn a_choice_has_its_tools(body: &Value, findings: &mut Findings) {
    choice::of_tools(body, findings);
    let has_tools = items(&body["tools"]).next().is_some();
    for name in ["tool_choice", "parallel_tool_calls"] {
        let is_nothing = body[name].is_null() || body[name] == "none";
        if !has_tools && !is_nothing {
            findings.report(format!("/{name}"), "is only allowed when 'tools' are specified");
        }
    }
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
    let format = &body["response_format"]["json_schema"];
    if format["strict"] == true {
        schema::strict(&format["schema"], "/response_format/json_schema/schema", findings);
    }
}

/// "Missing required parameter: 'response_format.json_schema.name'". Source: `JSONSchema.name` in github.com/openai/openai-openapi:
/// 64 of `a-zA-Z0-9_-`.
fn a_schema_has_a_name(body: &Value, findings: &mut Findings) {
    let format = &body["response_format"];
    one_of(body, "/response_format/type", &["text", "json_object", "json_schema"], findings);
    if format["type"] == "json_schema" && !is_name(text(&format["json_schema"], "name"), 64, "") {
        findings.report("/response_format/json_schema/name", "1 to 64 of a-zA-Z0-9_-");
    }
}

/// "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'". Source: "JSON
/// mode" in platform.openai.com/docs/guides/structured-outputs ("an error if the string JSON does not appear in the context").
fn json_is_mentioned(body: &Value, findings: &mut Findings) {
    if body["response_format"]["type"] == "json_object" && !has_word(&body["messages"], "json") {
        findings.report("/messages", "must contain the word 'json'");
    }
}

/// "Invalid 'user': string too long. Expected a string with maximum length 64". Sources: github.com/looplj/axonhub/issues/1669,
/// `safety_identifier` in github.com/openai/openai-openapi.
fn user_is_short(body: &Value, findings: &mut Findings) {
    for at in ["/user", "/safety_identifier", "/prompt_cache_key"] {
        longest(body, at, 64, findings);
    }
}

/// At most four stop sequences. Source: `StopConfiguration` in github.com/openai/openai-openapi.
fn four_stops(body: &Value, findings: &mut Findings) {
    if items(&body["stop"]).count() > 4 {
        findings.report("/stop", "four at most");
    }
}

/// Source: limits of the fields in github.com/openai/openai-openapi.
fn numbers_are_in_range(body: &Value, findings: &mut Findings) {
    range(body, "/temperature", 0.0, 2.0, findings);
    range(body, "/top_p", 0.0, 1.0, findings);
    range(body, "/frequency_penalty", -2.0, 2.0, findings);
    range(body, "/presence_penalty", -2.0, 2.0, findings);
    range(body, "/n", 1.0, 128.0, findings);
    range(body, "/top_logprobs", 0.0, 20.0, findings);
    range(body, "/max_tokens", 1.0, f64::MAX, findings);
    range(body, "/max_completion_tokens", 1.0, f64::MAX, findings);
    if !body["top_logprobs"].is_null() && body["logprobs"] != true {
        findings.report("/top_logprobs", "needs logprobs");
    }
}

/// "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported". Source:
/// github.com/vercel/ai/issues/7863.
fn one_limit(body: &Value, findings: &mut Findings) {
    if !body["max_tokens"].is_null() && !body["max_completion_tokens"].is_null() {
        findings.report("/max_tokens", "not beside max_completion_tokens");
    }
}

/// Source: `ReasoningEffort`, `Verbosity` and `ServiceTier` in github.com/openai/openai-openapi.
fn words_are_known(body: &Value, findings: &mut Findings) {
    one_of(body, "/reasoning_effort", EFFORTS, findings);
    one_of(body, "/verbosity", &["low", "medium", "high"], findings);
    one_of(body, "/service_tier", &["auto", "default", "flex", "scale", "priority"], findings);
}

/// "The 'stream_options' parameter is only allowed when 'stream' is enabled". Source: github.com/BerriAI/litellm/issues/5803.
fn stream_options_of_a_stream(body: &Value, findings: &mut Findings) {
    if !body["stream_options"].is_null() && body["stream"] != true {
        findings.report("/stream_options", "only with stream");
    }
}

/// "Unrecognized request argument supplied". Source: the fields of `CreateChatCompletionRequest` and its messages in
/// github.com/openai/openai-openapi, and the thoughts that many providers accept back. An answer's message comes back
/// with the fields that SDKs add to it: `annotations` (openai-python's `ChatCompletionMessage`), `parsed` (its
/// `ParsedChatCompletionMessage`), `provider_specific_fields`, `thinking_blocks` and `images` (litellm's `Message` in
/// `litellm/types/utils.py`).
fn members_are_known(body: &Value, findings: &mut Findings) {
    const REQUEST: &[&str] = &[
        "model",
        "messages",
        "audio",
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "metadata",
        "modalities",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "prompt_cache_retention",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
        "web_search_options",
    ];
    const MESSAGE: &[&str] = &[
        "role",
        "content",
        "name",
        "refusal",
        "audio",
        "function_call",
        "tool_calls",
        "tool_call_id",
        "reasoning_content",
        "reasoning_details",
        "annotations",
        "parsed",
        "provider_specific_fields",
        "thinking_blocks",
        "images",
    ];
    unknown(body, "", REQUEST, findings);
    for (at, message) in messages(body) {
        unknown(message, &at, MESSAGE, findings);
    }
    for (at, call) in calls(body) {
        unknown(call, &at, &["id", "type", "function", "custom", "index", "extra_content"], findings);
    }
}

/// "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead". Source:
/// github.com/vercel/ai/issues/7863.
fn newer_limit(body: &Value, findings: &mut Findings) {
    if !body["max_tokens"].is_null() {
        findings.report("/max_tokens", "use 'max_completion_tokens'");
    }
}

/// Servers that don't know the role `developer`. Source: github.com/vllm-project/vllm/issues/41114.
fn no_developer(body: &Value, findings: &mut Findings) {
    for (at, _) in messages(body).filter(|(_, message)| message["role"] == "developer") {
        findings.report(format!("{at}/role"), "unknown role");
    }
}

/// "System message must be at the beginning". Source: github.com/BerriAI/litellm/issues/39282.
fn system_first(body: &Value, findings: &mut Findings) {
    let is_system = |message: &Value| ["system", "developer"].contains(&text(message, "role"));
    for (at, _) in messages(body).skip(1).filter(|(_, message)| is_system(message)) {
        findings.report(at, "must be at the beginning");
    }
}

/// Servers that only know functions. Source: github.com/router-for-me/CLIProxyAPI/issues/5753.
fn functions_only(body: &Value, findings: &mut Findings) {
    for (index, _) in items(&body["tools"]).filter(|(_, tool)| tool["type"] != "function") {
        findings.report(format!("/tools/{index}/type"), "only functions");
    }
}

/// Servers that don't accept thoughts back. Source: github.com/charmbracelet/crush/issues/1590.
fn no_reasoning_content(body: &Value, findings: &mut Findings) {
    for (at, message) in messages(body) {
        for name in ["reasoning_content", "reasoning_details"] {
            if !message[name].is_null() {
                findings.report(format!("{at}/{name}"), "is unsupported");
            }
        }
    }
}

/// "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9". Source: github.com/anomalyco/opencode/issues/1680.
fn nine_alphanumeric(body: &Value, findings: &mut Findings) {
    let of_calls = calls(body).map(|(at, call)| (format!("{at}/id"), text(call, "id")));
    let results = messages(body).filter(|(_, message)| message["role"] == "tool");
    let of_results = results.map(|(at, result)| (format!("{at}/tool_call_id"), text(result, "tool_call_id")));
    for (at, id) in of_calls.chain(of_results) {
        if id.len() != 9 || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            findings.report(at, format!("{id:?} must be a-z, A-Z, 0-9, with a length of 9"));
        }
    }
}

/// "Unexpected role 'user' after role 'tool'". Source: github.com/avante-corp/avante.nvim/issues/2562.
fn no_user_after_tool(body: &Value, findings: &mut Findings) {
    let mut after_tool = false;
    for (at, message) in messages(body) {
        if after_tool && message["role"] == "user" {
            findings.report(format!("{at}/role"), "Unexpected role 'user' after role 'tool'");
        }
        after_tool = message["role"] == "tool";
    }
}
