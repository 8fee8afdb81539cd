//! Rules of converse: turns and blocks. Rules for settings are in `settings.rs`, for media in `media.rs`. "The model" is
//! the published service model, github.com/boto/botocore (`data/bedrock-runtime/2023-09-30/service-2.json`).

mod media;
mod settings;

use std::collections::HashSet;

use serde_json::Value;

use crate::judge::words::{is_base64, is_name, items, text, unknown};
use crate::judge::{Findings, Rule};

pub(super) const RULES: &[Rule] = &[
    Rule::new("messages_are_there", messages_are_there),
    Rule::new("roles_alternate", roles_alternate),
    Rule::new("a_block_is_of_one_kind", a_block_is_of_one_kind),
    Rule::new("results_follow_their_calls", results_follow_their_calls),
    Rule::new("ids_have_their_characters", ids_have_their_characters),
    Rule::new("ids_are_unique", ids_are_unique),
    Rule::new("names_of_tools", names_of_tools),
    Rule::new("names_of_tools_are_unique", settings::names_of_tools_are_unique),
    Rule::new("texts_are_not_blank", texts_are_not_blank),
    Rule::new("no_space_at_the_end", no_space_at_the_end),
    Rule::new("arguments_are_an_object", arguments_are_an_object),
    Rule::new("thoughts_have_their_proof", thoughts_have_their_proof),
    Rule::new("four_cache_points", four_cache_points),
    Rule::new("media_have_their_form", media::media_have_their_form),
    Rule::new("names_of_documents", media::names_of_documents),
    Rule::new("a_text_beside_documents", media::a_text_beside_documents),
    Rule::new("calls_need_tools", settings::calls_need_tools),
    Rule::new("a_choice_has_its_tools", settings::a_choice_has_its_tools),
    Rule::new("schemas_of_tools", settings::schemas_of_tools),
    Rule::new("schemas_of_answers_are_closed", settings::schemas_of_answers_are_closed),
    Rule::new("numbers_are_in_range", settings::numbers_are_in_range),
    Rule::new("stops_are_not_white", settings::stops_are_not_white),
    Rule::new("metadata_fits", settings::metadata_fits),
    Rule::new("beside_thinking", settings::beside_thinking),
    Rule::new("words_are_known", settings::words_are_known),
    Rule::new("members_are_known", settings::members_are_known),
    Rule::of_provider("temperature_or_top_p", settings::temperature_or_top_p),
    Rule::of_provider("plain_settings", settings::plain_settings),
    Rule::of_provider("no_cache_points", no_cache_points),
];

/// Kinds of blocks.
const KINDS: &[&str] = &[
    "text",
    "image",
    "document",
    "video",
    "audio",
    "toolUse",
    "toolResult",
    "guardContent",
    "cachePoint",
    "reasoningContent",
    "citationsContent",
    "searchResult",
];

fn messages(body: &Value) -> impl Iterator<Item = (String, &Value)> {
    items(&body["messages"]).map(|(index, message)| (format!("/messages/{index}"), message))
}

/// The blocks of all messages, and their places.
fn blocks(body: &Value) -> impl Iterator<Item = (String, &Value)> {
    messages(body).flat_map(|(at, message)| {
        items(&message["content"]).map(move |(index, block)| (format!("{at}/content/{index}"), block))
    })
}

/// The blocks of one kind: what they hold.
fn of_kind<'a>(body: &'a Value, kind: &'static str) -> impl Iterator<Item = (String, &'a Value)> {
    blocks(body)
        .filter(move |(_, block)| !block[kind].is_null())
        .map(move |(at, block)| (format!("{at}/{kind}"), &block[kind]))
}

/// The blocks of results.
fn result_blocks(body: &Value) -> impl Iterator<Item = (String, &Value)> {
    of_kind(body, "toolResult").flat_map(|(at, result)| {
        items(&result["content"]).map(move |(index, block)| (format!("{at}/content/{index}"), block))
    })
}

/// "The content field in the Message object at messages.3 is empty". Source:
/// github.com/langchain-ai/langchain/issues/26968.
fn messages_are_there(body: &Value, findings: &mut Findings) {
    if messages(body).next().is_none() {
        findings.report("/messages", "at least one message is required");
    }
    for (at, message) in messages(body) {
        if items(&message["content"]).next().is_none() {
            findings.report(format!("{at}/content"), "the content field is empty");
        }
    }
}

/// "A conversation must start with a user message", "A conversation must alternate between user and assistant roles".
/// Sources: github.com/langgenius/dify/issues/12340, github.com/langchain-ai/langchain-aws/issues/192.
fn roles_alternate(body: &Value, findings: &mut Findings) {
    let mut before = "assistant";
    for (at, message) in messages(body) {
        let role = text(message, "role");
        if !["user", "assistant"].contains(&role) {
            findings.report(format!("{at}/role"), format!("{role:?} is none of 'user', 'assistant'"));
        } else if role == before {
            findings.report(format!("{at}/role"), "a conversation must alternate between user and assistant");
        }
        before = role;
    }
}

/// A block has exactly one field. Source: the unions `ContentBlock`, `ToolResultContentBlock` and `SystemContentBlock` of
/// the model.
fn a_block_is_of_one_kind(body: &Value, findings: &mut Findings) {
    let system = items(&body["system"]).map(|(index, block)| (format!("/system/{index}"), block));
    let groups: [(Vec<_>, &[&str]); 3] = [
        (blocks(body).collect(), KINDS),
        (result_blocks(body).collect(), &["json", "text", "image", "document", "video", "searchResult"]),
        (system.collect(), &["text", "guardContent", "cachePoint"]),
    ];
    for (blocks, kinds) in groups {
        for (at, block) in blocks {
            unknown(block, &at, kinds, findings);
            if block.as_object().map_or(0, serde_json::Map::len) != 1 {
                findings.report(at, "a block has exactly one field");
            }
        }
    }
}

/// "Expected toolResult blocks at messages.2.content for the following Ids", and results come first. Sources:
/// github.com/agno-agi/agno/issues/6698, docs.aws.amazon.com/bedrock/latest/userguide/tool-use.html.
fn results_follow_their_calls(body: &Value, findings: &mut Findings) {
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages(body) {
        let mut is_after = false;
        for (index, block) in items(&message["content"]) {
            let result = &block["toolResult"];
            if result.is_null() {
                is_after |= block["cachePoint"].is_null();
                continue;
            }
            if is_after || message["role"] == "assistant" {
                findings.report(format!("{at}/content/{index}"), "a result in the wrong place");
            }
            let id = text(result, "toolUseId");
            match open.iter().position(|call| *call == id) {
                Some(place) => drop(open.remove(place)),
                None => findings
                    .report(format!("{at}/content/{index}"), format!("a result of no call before: {id:?}")),
            }
        }
        if !open.is_empty() {
            findings.report(&at, format!("expected toolResult blocks for {open:?}"));
        }
        let calls = items(&message["content"]).filter(|(_, block)| block["toolUse"].is_object());
        open = calls.map(|(_, block)| text(&block["toolUse"], "toolUseId")).collect();
        if message["role"] == "user" && !open.is_empty() {
            findings.report(&at, "only the assistant calls tools");
        }
    }
    if !open.is_empty() {
        findings.report("/messages", format!("expected toolResult blocks for {open:?}"));
    }
}

/// At most 64 characters of a-zA-Z0-9_-. `ToolUseId` of the model also has dots and colons, but the models of the messages
/// protocol don't. Source: the model; github.com/CommandCodeAI/command-code/issues/323.
fn ids_have_their_characters(body: &Value, findings: &mut Findings) {
    for (at, named) in of_kind(body, "toolUse").chain(of_kind(body, "toolResult")) {
        if !is_name(text(named, "toolUseId"), 64, "") {
            findings.report(format!("{at}/toolUseId"), format!("{} is no id", named["toolUseId"]));
        }
    }
}

/// "`tool_use` ids must be unique". Source: github.com/BerriAI/litellm/issues/23510.
fn ids_are_unique(body: &Value, findings: &mut Findings) {
    let mut known = HashSet::new();
    for (at, call) in of_kind(body, "toolUse") {
        if !known.insert(text(call, "toolUseId")) {
            findings.report(format!("{at}/toolUseId"), format!("{} for a second call", call["toolUseId"]));
        }
    }
}

/// 1 to 64 characters of a-zA-Z0-9_-, also for calls in the history. Source: `ToolName` of the model.
fn names_of_tools(body: &Value, findings: &mut Findings) {
    for (at, named) in settings::tools(body).chain(of_kind(body, "toolUse")) {
        if !is_name(text(named, "name"), 64, "") {
            findings.report(format!("{at}/name"), format!("{} is not 1 to 64 of a-zA-Z0-9_-", named["name"]));
        }
    }
}

/// "The text field in the ContentBlock object at messages.0.content.0 is blank", "text content blocks must contain
/// non-whitespace text". Sources: github.com/boto/botocore/issues/3525,
/// github.com/NousResearch/hermes-agent/pull/63983.
fn texts_are_not_blank(body: &Value, findings: &mut Findings) {
    let system = items(&body["system"]).map(|(index, block)| (format!("/system/{index}"), block));
    for (at, block) in system.chain(blocks(body)).chain(result_blocks(body)) {
        if block["text"].as_str().is_some_and(|text| text.trim().is_empty()) {
            findings.report(format!("{at}/text"), "the text field is blank");
        }
    }
}

/// "messages: final assistant content cannot end with trailing whitespace". Source:
/// github.com/anomalyco/opencode/issues/1295.
fn no_space_at_the_end(body: &Value, findings: &mut Findings) {
    let Some((at, last)) = messages(body).last().filter(|(_, last)| last["role"] == "assistant") else {
        return;
    };
    let end = items(&last["content"]).filter(|(_, block)| block["cachePoint"].is_null()).last();
    if end.is_some_and(|(_, block)| text(block, "text").ends_with(char::is_whitespace)) {
        findings.report(format!("{at}/content"), "cannot end with trailing whitespace");
    }
}

/// Source: github.com/ankit373/hydra/issues/964.
fn arguments_are_an_object(body: &Value, findings: &mut Findings) {
    for (at, call) in of_kind(body, "toolUse").filter(|(_, call)| !call["input"].is_object()) {
        findings.report(format!("{at}/input"), format!("{} is no object", call["input"]));
    }
}

/// A thought goes back with its signature, and hidden content as base64. Sources: `ReasoningContentBlock` of the model;
/// docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ReasoningTextBlock.html.
fn thoughts_have_their_proof(body: &Value, findings: &mut Findings) {
    for (at, thought) in of_kind(body, "reasoningContent") {
        let shown = &thought["reasoningText"];
        let is_shown = shown["text"].is_string() && !text(shown, "signature").is_empty();
        if !is_shown && !is_base64(text(thought, "redactedContent")) {
            findings.report(at, "a thought has a text with a signature, or redacted content");
        }
    }
}

/// The cache points of tools, instructions and messages.
fn cache_points(body: &Value) -> usize {
    let of = |blocks: &Value| items(blocks).filter(|(_, block)| !block["cachePoint"].is_null()).count();
    of(&body["toolConfig"]["tools"]) + of(&body["system"]) + of_kind(body, "cachePoint").count()
}

/// Source: the checkpoints per request of each model in
/// docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html.
fn four_cache_points(body: &Value, findings: &mut Findings) {
    let count = cache_points(body);
    if count > 4 {
        findings.report("", format!("{count} cache points, 4 at most"));
    }
}

/// "You invoked an unsupported model or your request did not allow prompt caching". Source:
/// github.com/BerriAI/litellm/pull/39210.
fn no_cache_points(body: &Value, findings: &mut Findings) {
    if cache_points(body) > 0 {
        findings.report("", "the model doesn't cache prompts");
    }
}
