//! Settings of converse: tools, limits, thinking.

use serde_json::Value;

use super::of_kind;
use crate::judge::words::{items, one_of, range, text, unknown};
use crate::judge::{Findings, choice, schema};

/// The declared tools.
pub(super) fn tools(body: &Value) -> impl Iterator<Item = (String, &Value)> {
    items(&body["toolConfig"]["tools"])
        .filter(|(_, tool)| !tool["toolSpec"].is_null())
        .map(|(index, tool)| (format!("/toolConfig/tools/{index}/toolSpec"), &tool["toolSpec"]))
}

/// Two tools with the same name: see `choice::unique`.
pub(super) fn names_of_tools_are_unique(body: &Value, findings: &mut Findings) {
    choice::unique(tools(body).filter_map(|(at, tool)| Some((at, tool["name"].as_str()?))), findings);
}

/// "The toolConfig field must be defined when using toolUse and toolResult content blocks". Source:
/// github.com/langgenius/dify/issues/17545.
pub(super) fn calls_need_tools(body: &Value, findings: &mut Findings) {
    let has_calls = of_kind(body, "toolUse").chain(of_kind(body, "toolResult")).next().is_some();
    if has_calls && tools(body).next().is_none() {
        findings.report("/toolConfig", "must be defined when using toolUse and toolResult content blocks");
    }
}

/// Source: `ToolConfiguration` and `ToolChoice` of the model.
pub(super) fn a_choice_has_its_tools(body: &Value, findings: &mut Findings) {
    let config = &body["toolConfig"];
    if config.is_null() {
        return;
    }
    if items(&config["tools"]).next().is_none() {
        findings.report("/toolConfig/tools", "has 1 tool at least");
    }
    let choice = &config["toolChoice"];
    unknown(choice, "/toolConfig/toolChoice", &["auto", "any", "tool"], findings);
    if !choice.is_null() && choice.as_object().map_or(0, serde_json::Map::len) != 1 {
        findings.report("/toolConfig/toolChoice", "has exactly one field");
    }
    let named = &choice["tool"]["name"];
    if !choice["tool"].is_null() && !tools(body).any(|(_, tool)| tool["name"] == *named) {
        findings.report("/toolConfig/toolChoice/tool/name", format!("{named} is none of the tools"));
    }
}

/// "The value at toolConfig.tools.0.toolSpec.inputSchema.json.type must be one of the following: object", and a description
/// isn't empty. Sources: github.com/earendil-works/pi/issues/8279; `ToolSpecification` of the model.
pub(super) fn schemas_of_tools(body: &Value, findings: &mut Findings) {
    for (at, tool) in tools(body) {
        let (within, input) = (format!("{at}/inputSchema/json"), &tool["inputSchema"]["json"]);
        if input["type"] != "object" {
            findings.report(format!("{within}/type"), "must be object");
        }
        if tool["strict"] == true {
            schema::closed(input, &within, findings);
        }
        if tool["description"] == "" {
            findings.report(format!("{at}/description"), "has 1 character at least");
        }
    }
}

/// The schema is a text, and its objects are closed. Sources: `JsonSchemaDefinition` of the model;
/// docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html.
pub(super) fn schemas_of_answers_are_closed(body: &Value, findings: &mut Findings) {
    let format = &body["outputConfig"]["textFormat"];
    if format.is_null() {
        return;
    }
    one_of(body, "/outputConfig/textFormat/type", &["json_schema"], findings);
    let at = "/outputConfig/textFormat/structure/jsonSchema/schema";
    let given = text(&format["structure"]["jsonSchema"], "schema");
    match serde_json::from_str::<Value>(given) {
        Ok(given) => schema::closed(&given, at, findings),
        Err(_) => findings.report(at, "is no JSON"),
    }
}

/// Source: `InferenceConfiguration` of the model.
pub(super) fn numbers_are_in_range(body: &Value, findings: &mut Findings) {
    range(body, "/inferenceConfig/maxTokens", 1.0, f64::MAX, findings);
    range(body, "/inferenceConfig/temperature", 0.0, 1.0, findings);
    range(body, "/inferenceConfig/topP", 0.0, 1.0, findings);
    range(body, "/additionalModelRequestFields/top_k", 0.0, f64::MAX, findings);
    let count = items(&body["inferenceConfig"]["stopSequences"]).count();
    if count > 2500 {
        findings.report("/inferenceConfig/stopSequences", format!("{count}, 2500 at most"));
    }
}

/// "stop_sequences: each stop sequence must contain non-whitespace". Source: github.com/BerriAI/litellm/issues/3286.
pub(super) fn stops_are_not_white(body: &Value, findings: &mut Findings) {
    for (index, stop) in items(&body["inferenceConfig"]["stopSequences"]) {
        if stop.as_str().is_none_or(|stop| stop.trim().is_empty()) {
            let at = format!("/inferenceConfig/stopSequences/{index}");
            findings.report(at, "each stop sequence must contain non-whitespace");
        }
    }
}

/// Source: `RequestMetadata` of the model.
pub(super) fn metadata_fits(body: &Value, findings: &mut Findings) {
    let given = &body["requestMetadata"];
    if given.is_null() {
        return;
    }
    let count = given.as_object().map_or(0, serde_json::Map::len);
    if !(1..=16).contains(&count) {
        findings.report("/requestMetadata", format!("{count} pairs, where 1 to 16 are right"));
    }
    let is_right = |text: &str| {
        let is_right =
            |c: char| c.is_ascii_alphanumeric() || c.is_ascii_whitespace() || ":_@$#=/+,-.".contains(c);
        text.len() <= 256 && text.chars().all(is_right)
    };
    for (name, value) in given.as_object().into_iter().flatten() {
        if name.is_empty() || !is_right(name) || !value.as_str().is_some_and(is_right) {
            findings.report(format!("/requestMetadata/{name}"), "a name or a value with other characters");
        }
    }
}

/// The rules of the messages protocol for its models: see `messages::settings`.
pub(super) fn beside_thinking(body: &Value, findings: &mut Findings) {
    let thinking = &body["additionalModelRequestFields"]["thinking"];
    let kind = text(thinking, "type");
    if !["enabled", "adaptive"].contains(&kind) {
        return;
    }
    let choice = &body["toolConfig"]["toolChoice"];
    if !choice["any"].is_null() || !choice["tool"].is_null() {
        findings.report("/toolConfig/toolChoice", "thinking may not be enabled when it forces tool use");
    }
    let inference = &body["inferenceConfig"];
    if !inference["temperature"].is_null() && inference["temperature"].as_f64() != Some(1.0) {
        findings.report("/inferenceConfig/temperature", "may only be 1 when thinking is enabled");
    }
    if !body["additionalModelRequestFields"]["top_k"].is_null() {
        findings.report("/additionalModelRequestFields/top_k", "must be unset when thinking is enabled");
    }
    range(body, "/inferenceConfig/topP", 0.95, 1.0, findings);
    if kind == "enabled" {
        let at = "/additionalModelRequestFields/thinking/budget_tokens";
        let most = inference["maxTokens"].as_f64().unwrap_or_default() - 1.0;
        range(body, at, 1024.0, most, findings);
        if thinking["budget_tokens"].is_null() {
            findings.report(at, "field required");
        }
    }
}

/// "`temperature` and `top_p` cannot both be specified for this model". Source:
/// github.com/mem0ai/mem0/issues/4004.
pub(super) fn temperature_or_top_p(body: &Value, findings: &mut Findings) {
    let inference = &body["inferenceConfig"];
    if !inference["temperature"].is_null() && !inference["topP"].is_null() {
        findings.report("/inferenceConfig/topP", "`temperature` and `top_p` cannot both be specified");
    }
}

/// "Malformed input request: #: extraneous key [chat_id] is not permitted": models reject settings of others. Sources:
/// github.com/BerriAI/litellm/issues/7416; `status` of `ToolResultBlock` in the model.
pub(super) fn plain_settings(body: &Value, findings: &mut Findings) {
    if !body["additionalModelRequestFields"].is_null() {
        findings.report("/additionalModelRequestFields", "the model has no such fields");
    }
    for (at, tool) in tools(body).filter(|(_, tool)| !tool["strict"].is_null()) {
        findings.report(format!("{at}/strict"), format!("the model can't enforce {}", tool["name"]));
    }
    for (at, _) in of_kind(body, "toolResult").filter(|(_, result)| !result["status"].is_null()) {
        findings.report(format!("{at}/status"), "the model knows no status");
    }
}

/// Source: the enumerations of the model.
pub(super) fn words_are_known(body: &Value, findings: &mut Findings) {
    one_of(
        body,
        "/additionalModelRequestFields/thinking/type",
        &["enabled", "disabled", "adaptive"],
        findings,
    );
    one_of(body, "/outputConfig/effort", &["low", "medium", "high", "xhigh", "max"], findings);
    one_of(body, "/serviceTier/type", &["priority", "default", "flex", "reserved"], findings);
    for (at, _) in of_kind(body, "toolResult") {
        one_of(body, &format!("{at}/status"), &["success", "error"], findings);
    }
    for (at, _) in of_kind(body, "cachePoint") {
        one_of(body, &format!("{at}/type"), &["default"], findings);
        one_of(body, &format!("{at}/ttl"), &["5m", "1h"], findings);
    }
}

/// Source: `ConverseRequest` of the model and its parts.
pub(super) fn members_are_known(body: &Value, findings: &mut Findings) {
    const REQUEST: &[&str] = &[
        "messages",
        "system",
        "inferenceConfig",
        "toolConfig",
        "guardrailConfig",
        "projectIdentifier",
        "additionalModelRequestFields",
        "promptVariables",
        "additionalModelResponseFieldPaths",
        "requestMetadata",
        "performanceConfig",
        "serviceTier",
        "outputConfig",
    ];
    const INFERENCE: &[&str] = &["maxTokens", "temperature", "topP", "stopSequences"];
    unknown(body, "", REQUEST, findings);
    unknown(&body["inferenceConfig"], "/inferenceConfig", INFERENCE, findings);
    unknown(&body["toolConfig"], "/toolConfig", &["tools", "toolChoice"], findings);
    unknown(&body["outputConfig"], "/outputConfig", &["textFormat", "effort"], findings);
    for (at, tool) in tools(body) {
        unknown(tool, &at, &["name", "description", "inputSchema", "strict"], findings);
    }
    for (at, message) in super::messages(body) {
        unknown(message, &at, &["role", "content"], findings);
    }
    let kinds: [(_, &[&str]); 6] = [
        ("image", &["format", "source"]),
        ("document", &["format", "name", "source", "context", "citations"]),
        ("toolUse", &["toolUseId", "name", "input", "type"]),
        ("toolResult", &["toolUseId", "content", "status", "type"]),
        ("cachePoint", &["type", "ttl"]),
        ("reasoningContent", &["reasoningText", "redactedContent"]),
    ];
    for (kind, known) in kinds {
        for (at, block) in of_kind(body, kind) {
            unknown(block, &at, known, findings);
        }
    }
}
