//! Converts blocks that only this protocol has to kinds that every protocol has: search results become text.

use serde_json::Value;

use crate::conversation::{Conversation, Part, PartKind};

/// Whether a request of this protocol has anything that [`replace_own_kinds`] replaces.
pub(crate) fn has_own_kinds(conversation: &Conversation) -> bool {
    let is_own = |part: &Part| matches!(&part.kind, PartKind::Other(value) if as_text(value).is_some());
    conversation.turns.iter().flat_map(|turn| &turn.parts).any(|part| match &part.kind {
        PartKind::Result(result) => result.parts.iter().any(is_own),
        _ => is_own(part),
    })
}

/// Converts the kinds that only this protocol has to kinds that every protocol has, where possible.
pub(crate) fn replace_own_kinds(conversation: &mut Conversation) {
    let replace = |part: &mut Part| {
        if let PartKind::Other(value) = &part.kind
            && let Some(text) = as_text(value)
        {
            part.kind = PartKind::Text(text);
        }
    };
    for part in conversation.turns.iter_mut().flat_map(|turn| &mut turn.parts) {
        match &mut part.kind {
            PartKind::Result(result) => result.parts.iter_mut().for_each(replace),
            _ => replace(part),
        }
    }
}

/// The text of a block; `None`: it isn't one of these.
fn as_text(block: &Value) -> Option<String> {
    match block["type"].as_str()? {
        "search_result" => {
            let head = ["title", "source"].iter().filter_map(|name| block[name].as_str());
            let found = block["content"].as_array().into_iter().flatten();
            let all = head.chain(found.filter_map(|block| block["text"].as_str()));
            let lines: Vec<&str> = all.filter(|line| !line.is_empty()).collect();
            Some(lines.join("\n"))
        }
        "tool_reference" => Some(block["tool_name"].as_str()?.to_owned()),
        _ => None,
    }
}
