//! Rules of the native generate-content protocol. Model and streaming are part of the path.

use serde_json::Value;

use crate::judge::words::{is_base64, is_name, items, one_of, range, text, unknown, walk};
use crate::judge::{Findings, Rule, choice, schema};
use crate::members::camel;

pub(super) const RULES: &[Rule] = &[
    Rule::new("contents_are_there", contents_are_there),
    Rule::new("texts_are_not_empty", texts_are_not_empty),
    Rule::new("roles_are_known", roles_are_known),
    Rule::new("results_follow_their_calls", results_follow_their_calls),
    Rule::new("calls_follow_the_user", calls_follow_the_user),
    Rule::new("names_of_tools", names_of_tools),
    Rule::new("names_of_tools_are_unique", names_of_tools_are_unique),
    Rule::new("arguments_and_results_are_objects", arguments_and_results_are_objects),
    Rule::new("proofs_are_base64", proofs_are_base64),
    Rule::new("thoughts_are_of_the_model", thoughts_are_of_the_model),
    Rule::new("parts_say_one_thing", parts_say_one_thing),
    Rule::new("media_have_their_form", media_have_their_form),
    Rule::new("instructions_are_texts", instructions_are_texts),
    Rule::new("parameters_are_objects", parameters_are_objects),
    Rule::new("one_form_of_schema", one_form_of_schema),
    Rule::new("references_stand_alone", references_stand_alone),
    Rule::new("older_schemas", older_schemas),
    Rule::new("a_choice_has_its_tools", a_choice_has_its_tools),
    Rule::new("five_stops", five_stops),
    Rule::new("a_schema_has_its_media_type", a_schema_has_its_media_type),
    Rule::new("one_way_to_think", one_way_to_think),
    Rule::new("numbers_are_in_range", numbers_are_in_range),
    Rule::new("members_are_known", members_are_known),
    Rule::of_provider("calls_have_proofs", calls_have_proofs),
];

/// The largest budget that a model takes; most take less.
const MAX_BUDGET: f64 = 32_768.0;

/// Fields whose values are the client's own rather than messages of the protocol.
const OPAQUE: [&str; 7] = [
    "args",
    "response",
    "parameters",
    "parametersJsonSchema",
    "responseSchema",
    "responseJsonSchema",
    "labels",
];

/// The request with its field names in camel case. "Parsers accept both the lowerCamelCase name and the original proto
/// field name": protobuf.dev/programming-guides/json. The official SDKs and litellm mix both.
pub(super) fn respelled(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                let name = camel(name);
                let value = if OPAQUE.contains(&&*name) { value.clone() } else { respelled(value) };
                (name, value)
            };
            members.iter().map(member).collect()
        }
        Value::Array(items) => items.iter().map(respelled).collect(),
        _ => value.clone(),
    }
}

fn contents(body: &Value) -> impl Iterator<Item = (String, &Value)> {
    items(&body["contents"]).map(|(index, content)| (format!("/contents/{index}"), content))
}

fn parts(body: &Value) -> impl Iterator<Item = (String, &Value)> {
    contents(body).flat_map(|(at, content)| {
        items(&content["parts"]).map(move |(index, part)| (format!("{at}/parts/{index}"), part))
    })
}

fn declarations(body: &Value) -> impl Iterator<Item = (String, &Value)> {
    items(&body["tools"]).flat_map(|(tool_index, tool)| {
        items(&tool["functionDeclarations"]).map(move |(index, function)| {
            (format!("/tools/{tool_index}/functionDeclarations/{index}"), function)
        })
    })
}

/// "GenerateContentRequest.contents: contents is not specified", "contents.parts must not be empty". Source:
/// `contents` in ai.google.dev/api/generate-content, `Content` in ai.google.dev/api/caching#Content.
fn contents_are_there(body: &Value, findings: &mut Findings) {
    if contents(body).next().is_none() {
        findings.report("/contents", "is not specified");
    }
    for (at, content) in contents(body) {
        if items(&content["parts"]).next().is_none() {
            findings.report(format!("{at}/parts"), "must not be empty");
        }
    }
}

/// "Unable to submit request because it must have a text parameter". Source: github.com/BerriAI/litellm/issues/22979.
fn texts_are_not_empty(body: &Value, findings: &mut Findings) {
    for (at, part) in parts(body) {
        if part["text"] == "" && part["thoughtSignature"].is_null() {
            findings.report(format!("{at}/text"), "is empty");
        }
    }
}

/// "Please use a valid role: user, model". Function responses also come under the roles `function` and `tool`. Sources:
/// github.com/router-for-me/CLIProxyAPI/issues/17, github.com/the-open-agent/openagent/issues/1666; "function calling" in
/// the README of github.com/googleapis/python-genai (`types.Content(role='tool', …)`).
fn roles_are_known(body: &Value, findings: &mut Findings) {
    for (at, content) in contents(body) {
        if !["user", "model", "function", "tool", ""].contains(&text(content, "role")) {
            findings.report(format!("{at}/role"), format!("{} is none of user, model", content["role"]));
        }
    }
}

/// Names of the calls, or of the responses, in a turn.
fn names<'a>(content: &'a Value, member: &str) -> Vec<&'a str> {
    let mut names: Vec<&str> = items(&content["parts"])
        .filter(|(_, part)| !part[member].is_null())
        .map(|(_, part)| text(&part[member], "name"))
        .collect();
    names.sort_unstable();
    names
}

/// Their ids, if they have any.
fn ids<'a>(content: &'a Value, member: &str) -> Vec<&'a str> {
    let mut ids: Vec<&str> =
        items(&content["parts"]).filter_map(|(_, part)| part[member]["id"].as_str()).collect();
    ids.sort_unstable();
    ids
}

/// "Please ensure that the number of function response parts is equal to the number of function call parts of the function
/// call turn", and "function response turn comes immediately after a function call turn". Sources:
/// github.com/google-gemini/gemini-cli/issues/4217, github.com/google-gemini/gemini-cli/issues/3814.
fn results_follow_their_calls(body: &Value, findings: &mut Findings) {
    let mut before = &Value::Null;
    for (at, content) in contents(body) {
        let (calls, results) = (names(before, "functionCall"), names(content, "functionResponse"));
        if calls == results {
            let (calls, results) = (ids(before, "functionCall"), ids(content, "functionResponse"));
            if !calls.is_empty() && !results.is_empty() && calls != results {
                findings.report(at, format!("responses with ids {results:?} to calls with {calls:?}"));
            }
        } else {
            findings.report(at, format!("responses {results:?} to calls {calls:?}"));
        }
        before = content;
    }
    let calls = names(before, "functionCall");
    if !calls.is_empty() {
        findings.report("/contents", format!("calls {calls:?} have no responses"));
    }
}

/// "Please ensure that function call turn comes immediately after a user turn or after a function response turn". Source:
/// github.com/QwenLM/qwen-code/issues/8165.
fn calls_follow_the_user(body: &Value, findings: &mut Findings) {
    let mut before = "model";
    for (at, content) in contents(body) {
        let has_call = items(&content["parts"]).any(|(_, part)| !part["functionCall"].is_null());
        let has_response = items(&content["parts"]).any(|(_, part)| !part["functionResponse"].is_null());
        let role = text(content, "role");
        if has_call && (before == "model" || role != "model") {
            findings.report(&at, "a call comes in a turn of the model immediately after one of the user");
        }
        if has_response && role == "model" {
            findings.report(&at, "a response is in a turn of the user");
        }
        before = if role.is_empty() { "user" } else { role };
    }
}

/// "Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots
/// (.), colons (:), or dashes (-), with a maximum length of 64". Sources: github.com/cline/cline/issues/7339,
/// github.com/kaitranntt/ccs/issues/25.
fn names_of_tools(body: &Value, findings: &mut Findings) {
    let calls_and_results = parts(body).flat_map(|(at, part)| {
        ["functionCall", "functionResponse"]
            .into_iter()
            .filter(|member| !part[*member].is_null())
            .map(move |member| (format!("{at}/{member}"), &part[member]))
    });
    for (at, named) in declarations(body).chain(calls_and_results) {
        let name = text(named, "name");
        if !is_name(name, 64, ".:") || name.starts_with(|c: char| !c.is_ascii_alphabetic() && c != '_') {
            findings.report(format!("{at}/name"), format!("invalid function name {name:?}"));
        }
    }
}

/// Two functions with the same name: see `choice::unique`.
fn names_of_tools_are_unique(body: &Value, findings: &mut Findings) {
    let names: Vec<_> = declarations(body).map(|(at, function)| (at, text(function, "name"))).collect();
    choice::unique(names.into_iter(), findings);
}

/// Both are a `Struct`. A response object with a field `$ref` is taken for a reference to media. Sources: `FunctionCall`
/// and `FunctionResponse` in ai.google.dev/api/caching; github.com/vercel/ai/issues/14369.
fn arguments_and_results_are_objects(body: &Value, findings: &mut Findings) {
    for (at, part) in parts(body) {
        let (call, response) = (&part["functionCall"], &part["functionResponse"]);
        if !(call["args"].is_object() || call["args"].is_null()) {
            findings.report(format!("{at}/functionCall/args"), "is an object");
        }
        if !(response.is_null() || response["response"].is_object()) {
            findings.report(format!("{at}/functionResponse/response"), "is an object");
        }
        if response["parts"].is_null() && schema::has_member(&response["response"], "$ref") {
            findings
                .report(format!("{at}/functionResponse/response"), "a reference to a part that is not there");
        }
    }
}

/// "Base64 decoding failed". Source: `Part.thoughtSignature` in ai.google.dev/api/caching#Part;
/// github.com/BerriAI/litellm/issues/16893.
fn proofs_are_base64(body: &Value, findings: &mut Findings) {
    for (at, part) in parts(body) {
        let proof = &part["thoughtSignature"];
        if !proof.is_null() && !proof.as_str().is_some_and(is_base64) {
            findings.report(format!("{at}/thoughtSignature"), "base64 decoding failed");
        }
    }
}

/// Only the model has thoughts and their proofs. Source: `Part.thought` in ai.google.dev/api/caching#Part ("indicates if
/// the part is thought from the model").
fn thoughts_are_of_the_model(body: &Value, findings: &mut Findings) {
    for (at, content) in contents(body).filter(|(_, content)| content["role"] != "model") {
        let is_thought = |part: &Value| part["thought"] == true || !part["thoughtSignature"].is_null();
        for (index, _) in items(&content["parts"]).filter(|(_, part)| is_thought(part)) {
            findings.report(format!("{at}/parts/{index}"), "a thought that is not of the model");
        }
    }
}

const DATA: [&str; 9] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];

/// `data` of a part is a union: exactly one. Source: `Part` in ai.google.dev/api/caching#Part ("oneof field 'data' is already set").
fn parts_say_one_thing(body: &Value, findings: &mut Findings) {
    for (at, part) in parts(body) {
        let kinds = DATA.iter().filter(|name| !part[**name].is_null()).count();
        if kinds != 1 {
            findings.report(at, format!("{kinds} kinds of data in one part"));
        }
    }
}

/// Whether a text is a media type without parameters.
fn is_media_type(kind: &str) -> bool {
    kind.split_once('/')
        .is_some_and(|(of, sub)| of.chars().all(|c| c.is_ascii_lowercase()) && is_name(sub, 127, ".+"))
}

/// Media have a type, inline data is base64, and URLs aren't `data:` URLs. Sources: "Unsupported MIME type" and "Invalid
/// or unsupported file uri" in github.com/Portkey-AI/gateway/issues/639, github.com/mastra-ai/mastra/issues/7490; `Blob`
/// and `FileData` in ai.google.dev/api/caching.
fn media_have_their_form(body: &Value, findings: &mut Findings) {
    walk(&body["contents"], "/contents", &mut |at, value| {
        let (inline, file) = (&value["inlineData"], &value["fileData"]);
        if inline.is_object() && !(is_media_type(text(inline, "mimeType")) && is_base64(text(inline, "data")))
        {
            findings.report(format!("{at}/inlineData"), "a media type and base64");
        }
        let uri = text(file, "fileUri").to_ascii_lowercase();
        let is_right = ["http://", "https://", "gs://"].iter().any(|scheme| uri.starts_with(scheme));
        if file.is_object() && !is_right {
            findings.report(format!("{at}/fileData/fileUri"), "is no address");
        }
    });
}

/// "developer instruction: text only". Source: `systemInstruction` in ai.google.dev/api/generate-content.
fn instructions_are_texts(body: &Value, findings: &mut Findings) {
    let instruction = &body["systemInstruction"];
    if instruction.is_null() {
        return;
    }
    if items(&instruction["parts"]).next().is_none() {
        findings.report("/systemInstruction/parts", "must not be empty");
    }
    for (index, part) in items(&instruction["parts"]) {
        if text(part, "text").is_empty() {
            findings.report(format!("/systemInstruction/parts/{index}"), "a text");
        }
    }
}

/// "functionDeclaration parameters schema should be of type OBJECT". Sources: github.com/diegosouzapw/OmniRoute/pull/3360;
/// `parametersJsonSchema` of `FunctionDeclaration` in ai.google.dev/api/caching.
fn parameters_are_objects(body: &Value, findings: &mut Findings) {
    for (at, function) in declarations(body) {
        for name in ["parameters", "parametersJsonSchema"] {
            let kind = &function[name]["type"];
            let is_object = kind.as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("object"));
            if !kind.is_null() && !is_object {
                findings.report(format!("{at}/{name}/type"), format!("{kind} is not OBJECT"));
            }
        }
    }
}

/// "If a schema node has $ref set, then only description and default can be set alongside it". Sources:
/// github.com/anomalyco/opencode/issues/12295; github.com/su-kaka/gcli2api/pull/374.
fn references_stand_alone(body: &Value, findings: &mut Findings) {
    let ours = declarations(body)
        .map(|(at, function)| (format!("{at}/parametersJsonSchema"), &function["parametersJsonSchema"]));
    let format =
        ("/generationConfig/responseJsonSchema".to_owned(), &body["generationConfig"]["responseJsonSchema"]);
    for (at, schema) in ours.chain([format]) {
        walk(schema, &at, &mut |at, node| {
            let Some(members) = node.as_object().filter(|_| node["$ref"].is_string()) else { return };
            let stays = |name: &str| name.starts_with('$') || ["description", "default"].contains(&name);
            if let Some(beside) = members.keys().find(|name| !stays(name)) {
                findings.report(at, format!("{beside} beside $ref"));
            }
        });
    }
}

/// A function declares its parameters in only one of two forms. Source: `FunctionDeclaration.parametersJsonSchema`
/// ("mutually exclusive with parameters") and `GenerationConfig.responseJsonSchema` in ai.google.dev/api.
fn one_form_of_schema(body: &Value, findings: &mut Findings) {
    for (at, function) in declarations(body) {
        if !function["parameters"].is_null() && !function["parametersJsonSchema"].is_null() {
            findings.report(at, "parameters beside parametersJsonSchema");
        }
    }
    let config = &body["generationConfig"];
    if !config["responseSchema"].is_null() && !config["responseJsonSchema"].is_null() {
        findings.report("/generationConfig", "responseSchema beside responseJsonSchema");
    }
}

/// See `schema::proto`.
fn older_schemas(body: &Value, findings: &mut Findings) {
    for (at, function) in declarations(body) {
        schema::proto(&function["parameters"], &format!("{at}/parameters"), findings);
    }
    schema::proto(&body["generationConfig"]["responseSchema"], "/generationConfig/responseSchema", findings);
}

/// "Function calling config is set without function_declarations", "allowed_function_names should be set only when mode is ANY".
/// Sources: github.com/musistudio/claude-code-router/issues/1207; `FunctionCallingConfig` in ai.google.dev/api/caching.
fn a_choice_has_its_tools(body: &Value, findings: &mut Findings) {
    let at = "/toolConfig/functionCallingConfig";
    let Some(config) = body.pointer(at).filter(|config| !config.is_null()) else { return };
    one_of(body, &format!("{at}/mode"), &["AUTO", "ANY", "NONE", "VALIDATED", "MODE_UNSPECIFIED"], findings);
    if declarations(body).next().is_none() && config["mode"] != "NONE" {
        findings.report(at, "is set without function declarations");
    }
    let mut allowed = items(&config["allowedFunctionNames"]).peekable();
    if allowed.peek().is_some() && !["ANY", "VALIDATED"].contains(&text(config, "mode")) {
        findings.report(format!("{at}/allowedFunctionNames"), "only when the mode is ANY");
    }
    for (index, name) in allowed {
        if !declarations(body).any(|(_, function)| function["name"] == *name) {
            findings.report(format!("{at}/allowedFunctionNames/{index}"), format!("{name} is not declared"));
        }
    }
}

/// "Up to 5 character sequences". Source: `stopSequences` in ai.google.dev/api/generate-content.
fn five_stops(body: &Value, findings: &mut Findings) {
    let stops = &body["generationConfig"]["stopSequences"];
    if items(stops).count() > 5 || items(stops).any(|(_, stop)| stop == "") {
        findings.report("/generationConfig/stopSequences", "five at most, none of them empty");
    }
}

/// "response_schema is only allowed with response_mime_type application/json", or with `text/x.enum`. Source:
/// `responseSchema` and `responseMimeType` in ai.google.dev/api/generate-content.
fn a_schema_has_its_media_type(body: &Value, findings: &mut Findings) {
    let config = &body["generationConfig"];
    let has_schema = ["responseSchema", "responseJsonSchema"].iter().any(|name| !config[*name].is_null());
    let takes_schema = ["application/json", "text/x.enum"].contains(&text(config, "responseMimeType"));
    if has_schema && !takes_schema {
        findings
            .report("/generationConfig/responseMimeType", "application/json or text/x.enum beside a schema");
    }
}

/// "You can only set only one of thinking budget and thinking level". Source:
/// ai.google.dev/gemini-api/docs/thinking, which has the budgets by model, too.
fn one_way_to_think(body: &Value, findings: &mut Findings) {
    let at = "/generationConfig/thinkingConfig";
    let Some(config) = body.pointer(at) else { return };
    if !config["thinkingBudget"].is_null() && !config["thinkingLevel"].is_null() {
        findings.report(at, "a budget beside a level");
    }
    let level = config["thinkingLevel"].as_str().unwrap_or_default().to_ascii_lowercase();
    if !["", "minimal", "low", "medium", "high", "thinking_level_unspecified"].contains(&level.as_str()) {
        findings.report(format!("{at}/thinkingLevel"), format!("{level:?} is no level"));
    }
    range(body, &format!("{at}/thinkingBudget"), -1.0, MAX_BUDGET, findings);
    unknown(config, at, &["thinkingBudget", "thinkingLevel", "includeThoughts"], findings);
}

/// Source: `GenerationConfig` in ai.google.dev/api/generate-content.
fn numbers_are_in_range(body: &Value, findings: &mut Findings) {
    range(body, "/generationConfig/temperature", 0.0, 2.0, findings);
    range(body, "/generationConfig/topP", 0.0, 1.0, findings);
    range(body, "/generationConfig/topK", 1.0, f64::from(i32::MAX), findings);
    range(body, "/generationConfig/maxOutputTokens", 1.0, f64::from(i32::MAX), findings);
    range(body, "/generationConfig/candidateCount", 1.0, 8.0, findings);
    range(body, "/generationConfig/logprobs", 0.0, 20.0, findings);
    range(body, "/generationConfig/seed", f64::from(i32::MIN), f64::from(i32::MAX), findings);
    if !body["generationConfig"]["logprobs"].is_null() && body["generationConfig"]["responseLogprobs"] != true
    {
        findings.report("/generationConfig/logprobs", "needs responseLogprobs");
    }
}

/// "Invalid JSON payload received. Unknown name … Cannot find field". Source:
/// github.com/router-for-me/CLIProxyAPI/issues/97; the fields in ai.google.dev/api/generate-content and
/// ai.google.dev/api/caching; for calls `FunctionCall` in github.com/googleapis/python-genai (`types.py`).
fn members_are_known(body: &Value, findings: &mut Findings) {
    let request = [
        "contents",
        "tools",
        "toolConfig",
        "safetySettings",
        "systemInstruction",
        "generationConfig",
        "cachedContent",
        "labels",
        "serviceTier",
        "store",
    ];
    unknown(body, "", &request, findings);
    let config = [
        "stopSequences",
        "responseMimeType",
        "responseModalities",
        "candidateCount",
        "maxOutputTokens",
        "temperature",
        "topP",
        "topK",
        "seed",
        "presencePenalty",
        "frequencyPenalty",
        "responseLogprobs",
        "logprobs",
        "responseSchema",
        "responseJsonSchema",
        "speechConfig",
        "imageConfig",
        "mediaResolution",
        "enableEnhancedCivicAnswers",
        "thinkingConfig",
    ];
    unknown(&body["generationConfig"], "/generationConfig", &config, findings);
    for (at, content) in contents(body) {
        unknown(content, &at, &["role", "parts"], findings);
    }
    for (at, part) in parts(body) {
        let beside = ["thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"];
        unknown(part, &at, &[DATA.as_slice(), &beside].concat(), findings);
        let call = ["id", "name", "args", "partialArgs", "willContinue"];
        unknown(&part["functionCall"], &format!("{at}/functionCall"), &call, findings);
        let response = ["id", "name", "response", "parts", "willContinue", "scheduling"];
        unknown(&part["functionResponse"], &format!("{at}/functionResponse"), &response, findings);
    }
    for (at, function) in declarations(body) {
        let known = [
            "name",
            "description",
            "behavior",
            "parameters",
            "parametersJsonSchema",
            "response",
            "responseJsonSchema",
        ];
        unknown(function, &at, &known, findings);
    }
}

/// "Function call is missing a thought_signature": the first call of a step, for newer models. Sources:
/// github.com/langchain-ai/langchain/issues/37347, ai.google.dev/gemini-api/docs/thought-signatures.
fn calls_have_proofs(body: &Value, findings: &mut Findings) {
    for (at, content) in contents(body) {
        let first = items(&content["parts"]).find(|(_, part)| !part["functionCall"].is_null());
        if let Some((index, part)) = first
            && part["thoughtSignature"].is_null()
        {
            findings.report(format!("{at}/parts/{index}"), "a call without a thoughtSignature");
        }
    }
}
