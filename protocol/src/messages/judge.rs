//! Rules of messages: the order of turns and blocks. Rules for settings are in `settings.rs`, for media in `media.rs`.

mod media;
mod settings;

use std::collections::HashSet;

use serde_json::Value;

use crate::judge::words::{is_name, items, text, walk};
use crate::judge::{Findings, Rule};

pub(super) const RULES: &[Rule] = &[
    Rule::new("messages_are_there", messages_are_there),
    Rule::new("roles_alternate", roles_alternate),
    Rule::new("system_turns_follow_the_user", system_turns_follow_the_user),
    Rule::new("results_follow_their_calls", results_follow_their_calls),
    Rule::new("ids_have_their_characters", ids_have_their_characters),
    Rule::new("ids_are_unique", ids_are_unique),
    Rule::new("names_of_tools", names_of_tools),
    Rule::new("names_of_tools_are_unique", settings::names_of_tools_are_unique),
    Rule::new("texts_are_not_empty", texts_are_not_empty),
    Rule::new("texts_are_not_white", texts_are_not_white),
    Rule::new("no_space_at_the_end", no_space_at_the_end),
    Rule::new("blocks_fit_the_role", blocks_fit_the_role),
    Rule::new("arguments_are_an_object", arguments_are_an_object),
    Rule::new("thoughts_have_their_proof", thoughts_have_their_proof),
    Rule::new("a_thought_before_the_last_calls", a_thought_before_the_last_calls),
    Rule::new("four_caches", four_caches),
    Rule::new("failed_results_say_why", failed_results_say_why),
    Rule::new("media_have_their_form", media::media_have_their_form),
    Rule::new("beside_thinking", settings::beside_thinking),
    Rule::new("temperature_or_top_p", settings::temperature_or_top_p),
    Rule::new("numbers_are_in_range", settings::numbers_are_in_range),
    Rule::new("stops_are_not_white", settings::stops_are_not_white),
    Rule::new("a_choice_has_its_tools", settings::a_choice_has_its_tools),
    Rule::new("schemas_of_tools", settings::schemas_of_tools),
    Rule::new("schemas_of_answers_are_closed", settings::schemas_of_answers_are_closed),
    Rule::new("user_is_short", settings::user_is_short),
    Rule::new("words_are_known", settings::words_are_known),
    Rule::new("members_are_known", settings::members_are_known),
    Rule::of_provider("no_system_turns", no_system_turns),
];

fn messages(body: &Value) -> impl Iterator<Item = (String, &Value)> {
    items(&body["messages"]).map(|(index, message)| (format!("/messages/{index}"), message))
}

/// The blocks of all messages, and their places. String content has none.
fn blocks(body: &Value) -> impl Iterator<Item = (String, &Value)> {
    messages(body).flat_map(|(at, message)| {
        items(&message["content"]).map(move |(index, block)| (format!("{at}/content/{index}"), block))
    })
}

/// "messages: at least one message is required", "all messages must have non-empty content except for the optional final
/// assistant message". Sources: github.com/anthropics/claude-code/issues/59812, github.com/anthropics/anthropic-sdk-python/issues/461.
fn messages_are_there(body: &Value, findings: &mut Findings) {
    let last = items(&body["messages"]).count().saturating_sub(1);
    if messages(body).next().is_none() {
        findings.report("/messages", "at least one message is required");
    }
    for (index, message) in items(&body["messages"]) {
        let is_there = match &message["content"] {
            Value::String(text) => !text.is_empty(),
            Value::Array(blocks) => !blocks.is_empty(),
            _ => false,
        };
        if !(is_there || index == last && message["role"] == "assistant") {
            findings.report(format!("/messages/{index}/content"), "must be non-empty");
        }
    }
}

/// "first message must use the user role", "roles must alternate between 'user' and 'assistant'". Sources:
/// github.com/etkecc/baibot/issues/13, platform.claude.com/docs/en/api/messages.
fn roles_alternate(body: &Value, findings: &mut Findings) {
    let mut before = "assistant";
    for (at, message) in messages(body).filter(|(_, message)| message["role"] != "system") {
        let role = text(message, "role");
        if !["user", "assistant"].contains(&role) {
            findings.report(format!("{at}/role"), format!("{role:?} is none of 'user', 'assistant'"));
        } else if role == before {
            findings.report(format!("{at}/role"), format!("a second turn of {role}"));
        }
        before = role;
    }
}

/// Newer models accept instructions among the messages, immediately after a turn of the user, without a beta header.
/// Sources: the roles of `MessageParam` in github.com/anthropics/anthropic-sdk-python; "Mid-conversation system messages"
/// in platform.claude.com/docs/en/about-claude/models/whats-new-claude-4-8, and "Limitations" in
/// platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages.
fn system_turns_follow_the_user(body: &Value, findings: &mut Findings) {
    let mut before = "";
    for (at, message) in messages(body) {
        let role = text(message, "role");
        if role == "system" && !["user", "system"].contains(&before) {
            findings.report(format!("{at}/role"), "a system turn comes immediately after one of the user");
        }
        before = role;
    }
}

/// Older models only accept instructions in `system`: "Unexpected role "system". The Messages API accepts a top-level
/// `system` parameter". Sources: github.com/ianarawjo/ChainForge/issues/271; "Earlier models, including Claude Opus 4.7,
/// reject" in the page that `system_turns_follow_the_user` names.
fn no_system_turns(body: &Value, findings: &mut Findings) {
    for (at, _) in messages(body).filter(|(_, message)| message["role"] == "system") {
        findings.report(format!("{at}/role"), "instructions stand in 'system'");
    }
}

/// "`tool_use` ids were found without `tool_result` blocks immediately after", "unexpected `tool_use_id` found in
/// `tool_result` blocks", and results come first in their turn. Sources: github.com/anthropics/claude-code/issues/5989,
/// "Important formatting requirements" in platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use.
fn results_follow_their_calls(body: &Value, findings: &mut Findings) {
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages(body) {
        let mut is_after = false;
        for (index, block) in items(&message["content"]) {
            if block["type"] != "tool_result" {
                is_after = true;
                continue;
            }
            if is_after {
                findings.report(format!("{at}/content/{index}"), "a result after other content");
            }
            let id = text(block, "tool_use_id");
            match open.iter().position(|call| *call == id) {
                Some(place) => drop(open.remove(place)),
                None => findings
                    .report(format!("{at}/content/{index}"), format!("a result of no call before: {id:?}")),
            }
        }
        if !open.is_empty() {
            findings.report(&at, format!("calls {open:?} have no results"));
        }
        let calls = items(&message["content"]).filter(|(_, block)| block["type"] == "tool_use");
        open = calls.map(|(_, block)| text(block, "id")).collect();
    }
    if !open.is_empty() {
        findings.report("/messages", format!("calls {open:?} have no results"));
    }
}

/// "messages.1.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'". Sources:
/// github.com/CommandCodeAI/command-code/issues/323, github.com/BlockRunAI/ClawRouter/issues/17.
fn ids_have_their_characters(body: &Value, findings: &mut Findings) {
    for (at, block) in blocks(body) {
        let name = match text(block, "type") {
            "tool_use" => "id",
            "tool_result" => "tool_use_id",
            _ => continue,
        };
        if !is_name(text(block, name), usize::MAX, "") {
            findings
                .report(format!("{at}/{name}"), format!("{} should match '^[a-zA-Z0-9_-]+$'", block[name]));
        }
    }
}

/// "`tool_use` ids must be unique". Sources: github.com/BerriAI/litellm/issues/23510, github.com/QwenLM/qwen-code/issues/8382.
fn ids_are_unique(body: &Value, findings: &mut Findings) {
    let mut known = HashSet::new();
    for (at, block) in blocks(body).filter(|(_, block)| block["type"] == "tool_use") {
        if !known.insert(text(block, "id")) {
            findings.report(format!("{at}/id"), format!("{} for a second call", block["id"]));
        }
    }
}

/// "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", also for calls in the history. Sources:
/// github.com/apify/tester-mcp-client/issues/11, github.com/anthropics/claude-code/issues/22336.
fn names_of_tools(body: &Value, findings: &mut Findings) {
    let tools = items(&body["tools"])
        .filter(|(_, tool)| ["", "custom"].contains(&text(tool, "type")))
        .map(|(index, tool)| (format!("/tools/{index}"), tool));
    let calls = blocks(body).filter(|(_, block)| block["type"] == "tool_use");
    for (at, named) in tools.chain(calls) {
        if !is_name(text(named, "name"), 128, "") {
            findings
                .report(format!("{at}/name"), format!("{} is not 1 to 128 of a-zA-Z0-9_-", named["name"]));
        }
    }
}

/// The texts of the system prompt, messages and results, including plain strings.
fn texts(body: &Value) -> Vec<(String, &str)> {
    let mut texts = Vec::new();
    let mut content = vec![("/system".to_owned(), &body["system"])];
    content.extend(messages(body).map(|(at, message)| (format!("{at}/content"), &message["content"])));
    let results = blocks(body).filter(|(_, block)| block["type"] == "tool_result");
    content.extend(results.map(|(at, block)| (format!("{at}/content"), &block["content"])));
    for (at, content) in content {
        let is_result_text = content.is_string() && at.matches("/content").count() > 1;
        if let Some(text) = content.as_str().filter(|_| !is_result_text) {
            texts.push((at.clone(), text));
        }
        for (index, block) in items(content).filter(|(_, block)| block["type"] == "text") {
            texts.push((format!("{at}/{index}/text"), text(block, "text")));
        }
    }
    texts
}

/// "messages: text content blocks must be non-empty". Sources: github.com/anthropics/claude-code/issues/59812,
/// github.com/HKUDS/nanobot/pull/949.
fn texts_are_not_empty(body: &Value, findings: &mut Findings) {
    for (at, text) in texts(body) {
        let is_beginning =
            at == format!("/messages/{}/content", items(&body["messages"]).count().saturating_sub(1));
        if text.is_empty() && !(is_beginning && body.pointer(&at).is_some_and(Value::is_string)) {
            findings.report(at, "text content blocks must be non-empty");
        }
    }
}

/// "messages: text content blocks must contain non-whitespace text": every single one. Sources:
/// github.com/anthropics/claude-code/issues/23440, github.com/nick1udwig/kibitz/issues/78,
/// github.com/NousResearch/hermes-agent/pull/41985.
fn texts_are_not_white(body: &Value, findings: &mut Findings) {
    for (at, text) in texts(body) {
        if !text.is_empty() && text.trim().is_empty() {
            findings.report(at, "text content blocks must contain non-whitespace text");
        }
    }
}

/// "messages: final assistant content cannot end with trailing whitespace". Source:
/// github.com/anomalyco/opencode/issues/1295, platform.claude.com/docs/en/build-with-claude/prompt-engineering/prefill-claudes-response.
fn no_space_at_the_end(body: &Value, findings: &mut Findings) {
    let Some((at, last)) = messages(body).last().filter(|(_, last)| last["role"] == "assistant") else {
        return;
    };
    let end = match &last["content"] {
        Value::String(text) => text,
        Value::Array(blocks) => blocks.last().map(|block| text(block, "text")).unwrap_or_default(),
        _ => "",
    };
    if end.ends_with(char::is_whitespace) {
        findings.report(format!("{at}/content"), "cannot end with trailing whitespace");
    }
}

/// "Input tag 'x' found using 'type' does not match any of the expected tags". Source: the blocks of `MessageParam` in
/// github.com/anthropics/anthropic-sdk-python (`content_block_param.py`).
fn blocks_fit_the_role(body: &Value, findings: &mut Findings) {
    for (at, message) in messages(body) {
        let right: &[&str] = match text(message, "role") {
            "assistant" => &["text", "thinking", "redacted_thinking", "tool_use", "server_tool_use"],
            _ => &["text", "image", "document", "search_result", "tool_result", "container_upload"],
        };
        for (index, block) in items(&message["content"]) {
            let kind = text(block, "type");
            // Results of the provider's own tools are blocks in its own turn.
            let is_of_server = kind.ends_with("_tool_result") && message["role"] == "assistant";
            if !right.contains(&kind) && !is_of_server {
                findings
                    .report(format!("{at}/content/{index}/type"), format!("{kind:?} is none of {right:?}"));
            }
            if kind != "tool_result" {
                continue;
            }
            let right = ["text", "image", "document", "search_result", "tool_reference"];
            for (inner, block) in
                items(&block["content"]).filter(|(_, block)| !right.contains(&text(block, "type")))
            {
                let kind = &block["type"];
                findings.report(
                    format!("{at}/content/{index}/content/{inner}/type"),
                    format!("{kind} is none of {right:?}"),
                );
            }
        }
    }
    for (index, block) in items(&body["system"]).filter(|(_, block)| block["type"] != "text") {
        findings.report(format!("/system/{index}/type"), format!("{} is no text", block["type"]));
    }
}

/// "tool_use.input: Input should be a valid dictionary". Source: github.com/BerriAI/litellm/issues/5063.
fn arguments_are_an_object(body: &Value, findings: &mut Findings) {
    for (at, block) in blocks(body).filter(|(_, block)| block["type"] == "tool_use") {
        if !block["input"].is_object() {
            findings
                .report(format!("{at}/input"), format!("{} should be a valid dictionary", block["input"]));
        }
    }
}

/// "thinking.signature: Field required", and "Invalid `data` in `redacted_thinking` block". Sources:
/// github.com/BerriAI/litellm/issues/41361, github.com/openai/openai-agents-python/issues/1744.
fn thoughts_have_their_proof(body: &Value, findings: &mut Findings) {
    for (at, block) in blocks(body) {
        if block["type"] == "thinking" {
            if text(block, "signature").is_empty() {
                findings.report(format!("{at}/signature"), "field required");
            }
            if !block["thinking"].is_string() {
                findings.report(format!("{at}/thinking"), "field required");
            }
        }
        if block["type"] == "redacted_thinking" && text(block, "data").is_empty() {
            findings.report(format!("{at}/data"), "field required");
        }
    }
}

/// "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message
/// must start with a thinking block (preceding the lastmost set of `tool_use` and `tool_result` blocks)". Sources:
/// github.com/anomalyco/opencode/issues/3077, github.com/mastra-ai/mastra/issues/7799.
fn a_thought_before_the_last_calls(body: &Value, findings: &mut Findings) {
    if body["thinking"]["type"] != "enabled" {
        return;
    }
    let all: Vec<_> = messages(body).collect();
    let [.., before, last] = all.as_slice() else { return };
    let has_results = items(&last.1["content"]).any(|(_, block)| block["type"] == "tool_result");
    let of_model = match last.1["role"].as_str() {
        Some("assistant") => last,
        _ if has_results => before,
        _ => return,
    };
    let first = of_model.1["content"].get(0).map_or("text", |block| text(block, "type"));
    if !["thinking", "redacted_thinking"].contains(&first) {
        findings.report(
            format!("{}/content/0/type", of_model.0),
            format!("expected `thinking`, but found `{first}`"),
        );
    }
}

/// "A maximum of 4 blocks with cache_control may be provided", and none on thoughts or empty texts. Source: "What can be
/// cached" in platform.claude.com/docs/en/build-with-claude/prompt-caching; github.com/coder/coder/issues/29563.
fn four_caches(body: &Value, findings: &mut Findings) {
    let mut count = 0;
    for name in ["tools", "system", "messages"] {
        walk(&body[name], &format!("/{name}"), &mut |at, value| {
            if value["cache_control"].is_null() {
                return;
            }
            count += 1;
            if ["thinking", "redacted_thinking"].contains(&text(value, "type")) || value["text"] == "" {
                findings.report(format!("{at}/cache_control"), "cannot be set for this block");
            }
        });
    }
    if count > 4 {
        findings
            .report("", format!("a maximum of 4 blocks with cache_control may be provided, found {count}"));
    }
}

/// "tool_result: content cannot be empty if `is_error` is true". Source: the provider's message; its reference doesn't
/// mention it.
fn failed_results_say_why(body: &Value, findings: &mut Findings) {
    for (at, block) in
        blocks(body).filter(|(_, block)| block["type"] == "tool_result" && block["is_error"] == true)
    {
        let is_empty = match &block["content"] {
            Value::String(text) => text.is_empty(),
            Value::Array(blocks) => blocks.is_empty(),
            _ => true,
        };
        if is_empty {
            findings.report(format!("{at}/content"), "cannot be empty if `is_error` is true");
        }
    }
}
