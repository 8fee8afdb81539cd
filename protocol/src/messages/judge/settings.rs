//! Settings of the messages protocol: tools, thinking, limits.

use serde_json::Value;

use crate::judge::words::{items, longest, one_of, range, text, unknown};
use crate::judge::{Findings, choice, schema};

/// Two tools with the same name: see `choice::unique`.
pub(super) fn names_of_tools_are_unique(body: &Value, findings: &mut Findings) {
    let names = items(&body["tools"])
        .filter_map(|(index, tool)| Some((format!("/tools/{index}"), tool["name"].as_str()?)));
    choice::unique(names, findings);
}

/// Thinking requires temperature 1, no top_k, a top_p of at least 0.95, no forced tool, and a budget of at least 1024
/// that is less than max_tokens. Sources: "Thinking may not be enabled when tool_choice forces tool use",
/// github.com/mastra-ai/mastra/issues/7507; platform.claude.com/docs/en/build-with-claude/extended-thinking.
pub(super) fn beside_thinking(body: &Value, findings: &mut Findings) {
    let kind = text(&body["thinking"], "type");
    if !["enabled", "adaptive"].contains(&kind) {
        return;
    }
    if ["any", "tool"].contains(&text(&body["tool_choice"], "type")) {
        findings.report("/tool_choice", "thinking may not be enabled when tool_choice forces tool use");
    }
    if !body["temperature"].is_null() && body["temperature"].as_f64() != Some(1.0) {
        findings.report("/temperature", "may only be 1 when thinking is enabled");
    }
    if !body["top_k"].is_null() {
        findings.report("/top_k", "must be unset when thinking is enabled");
    }
    range(body, "/top_p", 0.95, 1.0, findings);
    if kind == "enabled" {
        let most = body["max_tokens"].as_f64().unwrap_or_default() - 1.0;
        range(body, "/thinking/budget_tokens", 1024.0, most, findings);
        if body["thinking"]["budget_tokens"].is_null() {
            findings.report("/thinking/budget_tokens", "field required");
        }
    }
}

/// "`temperature` and `top_p` cannot both be specified for this model. Please use only one". Sources:
/// github.com/skydiscover-ai/skydiscover/issues/15, github.com/Vali-98/ChatterUI/issues/564.
pub(super) fn temperature_or_top_p(body: &Value, findings: &mut Findings) {
    if !body["temperature"].is_null() && !body["top_p"].is_null() {
        findings.report("/top_p", "`temperature` and `top_p` cannot both be specified");
    }
}

/// Source: limits of the fields in platform.claude.com/docs/en/api/messages ("temperature: range: 0..1", "max_tokens:
/// Field required").
pub(super) fn numbers_are_in_range(body: &Value, findings: &mut Findings) {
    if body["max_tokens"].is_null() {
        findings.report("/max_tokens", "field required");
    }
    range(body, "/max_tokens", 1.0, f64::MAX, findings);
    range(body, "/temperature", 0.0, 1.0, findings);
    range(body, "/top_p", 0.0, 1.0, findings);
    range(body, "/top_k", 0.0, f64::MAX, findings);
}

/// "stop_sequences: each stop sequence must contain non-whitespace". Source:
/// github.com/BerriAI/litellm/issues/3286.
pub(super) fn stops_are_not_white(body: &Value, findings: &mut Findings) {
    for (index, stop) in items(&body["stop_sequences"]) {
        if stop.as_str().is_none_or(|stop| stop.trim().is_empty()) {
            findings
                .report(format!("/stop_sequences/{index}"), "each stop sequence must contain non-whitespace");
        }
    }
}

/// "tool_choice may only be specified while providing tools". Source:
/// github.com/anthropics/anthropic-sdk-python (`tool_choice_param.py`).
pub(super) fn a_choice_has_its_tools(body: &Value, findings: &mut Findings) {
    let choice = &body["tool_choice"];
    if choice.is_null() {
        return;
    }
    if items(&body["tools"]).next().is_none() {
        findings.report("/tool_choice", "may only be specified while providing tools");
    }
    one_of(body, "/tool_choice/type", &["auto", "any", "tool", "none"], findings);
    let is_there = items(&body["tools"]).any(|(_, tool)| tool["name"] == choice["name"]);
    if choice["type"] == "tool" && !is_there {
        findings.report("/tool_choice/name", format!("tool {} not found in provided tools", choice["name"]));
    }
    if choice["type"] == "none" && !choice["disable_parallel_tool_use"].is_null() {
        findings.report("/tool_choice/disable_parallel_tool_use", "extra inputs are not permitted");
    }
}

/// "tools.0.custom.input_schema.type: Field required", "input_schema does not support oneOf, allOf, or anyOf at the top level".
/// Sources: github.com/anthropics/claude-code/issues/5319, github.com/anthropics/claude-code/issues/5878; for strict tools
/// platform.claude.com/docs/en/build-with-claude/structured-outputs.
pub(super) fn schemas_of_tools(body: &Value, findings: &mut Findings) {
    for (index, tool) in
        items(&body["tools"]).filter(|(_, tool)| ["", "custom"].contains(&text(tool, "type")))
    {
        let (at, input) = (format!("/tools/{index}/input_schema"), &tool["input_schema"]);
        if input["type"] != "object" {
            findings.report(format!("{at}/type"), "input should be 'object'");
        }
        for word in ["oneOf", "allOf", "anyOf"].into_iter().filter(|word| !input[*word].is_null()) {
            findings.report(format!("{at}/{word}"), "is not supported at the top level");
        }
        if tool["strict"] == true {
            schema::closed(input, &at, findings);
        }
    }
}

/// See `schema::closed`.
pub(super) fn schemas_of_answers_are_closed(body: &Value, findings: &mut Findings) {
    for at in ["/output_config/format", "/output_format"] {
        let format = body.pointer(at).unwrap_or(&Value::Null);
        if !format.is_null() {
            one_of(body, &format!("{at}/type"), &["json_schema"], findings);
            schema::closed(&format["schema"], &format!("{at}/schema"), findings);
        }
    }
}

/// "metadata.user_id: String should have at most 256 characters", "user_id appears to contain an email address", and no other
/// metadata. Sources: `Metadata` in platform.claude.com/docs/en/api/messages; github.com/BerriAI/litellm/issues/10106.
pub(super) fn user_is_short(body: &Value, findings: &mut Findings) {
    longest(body, "/metadata/user_id", 256, findings);
    if text(&body["metadata"], "user_id").contains('@') {
        findings.report("/metadata/user_id", "an e-mail address");
    }
    unknown(&body["metadata"], "/metadata", &["user_id"], findings);
}

/// Source: `thinking`, `output_config.effort` and `service_tier` in platform.claude.com/docs/en/api/messages.
pub(super) fn words_are_known(body: &Value, findings: &mut Findings) {
    one_of(body, "/thinking/type", &["enabled", "disabled", "adaptive"], findings);
    one_of(body, "/output_config/effort", &["low", "medium", "high", "xhigh", "max"], findings);
    one_of(body, "/service_tier", &["auto", "standard_only"], findings);
}

/// "x: Extra inputs are not permitted". Source: the fields of `MessageCreateParams` and its blocks in
/// github.com/anthropics/anthropic-sdk-python; github.com/anthropics/claude-code/issues/21612; for `clear_at` of system
/// messages platform.claude.com/docs/en/build-with-claude/preserved-thinking.
pub(super) fn members_are_known(body: &Value, findings: &mut Findings) {
    const REQUEST: &[&str] = &[
        "model",
        "max_tokens",
        "messages",
        "system",
        "stop_sequences",
        "stream",
        "temperature",
        "top_p",
        "top_k",
        "tools",
        "tool_choice",
        "thinking",
        "metadata",
        "service_tier",
        "output_config",
        "output_format",
        "cache_control",
        "container",
        "mcp_servers",
        "context_management",
        "inference_geo",
    ];
    unknown(body, "", REQUEST, findings);
    unknown(&body["output_config"], "/output_config", &["effort", "format"], findings);
    unknown(&body["thinking"], "/thinking", &["type", "budget_tokens", "display"], findings);
    for (at, message) in super::messages(body) {
        let known: &[&str] =
            if message["role"] == "system" { &["role", "content", "clear_at"] } else { &["role", "content"] };
        unknown(message, &at, known, findings);
    }
    for (at, block) in super::blocks(body) {
        let known: &[&str] = match text(block, "type") {
            "text" => &["type", "text", "cache_control", "citations"],
            "image" => &["type", "source", "cache_control"],
            "document" => &["type", "source", "cache_control", "title", "context", "citations"],
            "thinking" => &["type", "thinking", "signature"],
            "redacted_thinking" => &["type", "data"],
            "tool_use" => &["type", "id", "name", "input", "cache_control", "caller"],
            "tool_result" => &["type", "tool_use_id", "content", "is_error", "cache_control"],
            _ => continue,
        };
        unknown(block, &at, known, findings);
    }
}
