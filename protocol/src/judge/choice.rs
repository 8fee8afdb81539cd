//! Tools and tool choice, in the protocols that name a tool at the top level or in a nested object.

use std::collections::HashSet;

use serde_json::Value;

use super::Findings;
use super::words::{items, text};

/// The name of a tool or a choice, which chat puts in a nested object.
pub(crate) fn name_of(tool: &Value) -> Option<&str> {
    let inner = &tool[text(tool, "type")];
    inner["name"].as_str().or_else(|| tool["name"].as_str())
}

/// Reports two tools with the same name. Sources: "Duplicate function declaration found",
/// github.com/google-gemini/gemini-cli/pull/22207, github.com/rikkahub/rikkahub/issues/1311.
pub(crate) fn unique<'a>(names: impl Iterator<Item = (String, &'a str)>, findings: &mut Findings) {
    let mut known = HashSet::new();
    for (at, name) in names {
        if !known.insert(name) {
            findings.report(at, format!("a second tool {name:?}"));
        }
    }
}

/// Reports a choice of a tool that isn't declared, in chat and responses.
pub(crate) fn of_tools(body: &Value, findings: &mut Findings) {
    let has_tools = items(&body["tools"]).next().is_some();
    let choice = &body["tool_choice"];
    if choice.is_null() {
        return;
    }
    if !has_tools && choice != "none" && choice != "auto" {
        findings.report("/tool_choice", "a choice needs tools");
    }
    let is_tool = |kind: &Value, name: &str| {
        items(&body["tools"]).any(|(_, tool)| tool["type"] == *kind && name_of(tool) == Some(name))
    };
    let chosen = match text(choice, "type") {
        "function" | "custom" => vec![("/tool_choice".to_owned(), choice)],
        "allowed_tools" => {
            let (at, inner) = match &choice["allowed_tools"] {
                Value::Null => ("/tool_choice/tools", choice),
                inner => ("/tool_choice/allowed_tools/tools", inner),
            };
            if items(&inner["tools"]).next().is_none() {
                findings.report(at, "no tool is allowed");
            }
            items(&inner["tools"]).map(|(index, tool)| (format!("{at}/{index}"), tool)).collect()
        }
        _ => Vec::new(),
    };
    for (at, tool) in chosen {
        if let Some(name) = name_of(tool)
            && !is_tool(&tool["type"], name)
        {
            findings.report(at, format!("tool {name:?} is not found in 'tools'"));
        }
    }
}
