//! The content of this gateway's compaction items: a summary of the conversation that it replaces. Opaque to clients,
//! who send it back; marked, so that another provider's opaque content is never mistaken for it. It contains no
//! secrets, because its client had the conversation. So it needs no key, and any gateway can read it at any time.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

/// Prefix of the content, with its format version. Base64 contains no colons.
const MARK: &str = "gatewright:1:";
/// The text for a model that doesn't know such items.
const PREFACE: &str = "The earlier part of this conversation was replaced by this summary of it:\n\n";

/// The opaque content for a summary.
pub(crate) fn sealed(summary: &str) -> String {
    format!("{MARK}{}", BASE64_STANDARD.encode(summary))
}

/// The summary in an item. None if it is not a compaction of a gateway like this one.
pub(crate) fn summary(item: &Value) -> Option<String> {
    if item["type"] != "compaction" {
        return None;
    }
    let content = item["encrypted_content"].as_str()?.strip_prefix(MARK)?;
    String::from_utf8(BASE64_STANDARD.decode(content).ok()?).ok()
}

/// The message that replaces such an item if the target doesn't know it. It has the user's role, as the conversation
/// had: a summary of others' texts must not give instructions.
pub(crate) fn expanded(item: &Value) -> Option<Value> {
    let text = format!("{PREFACE}{}", summary(item)?);
    Some(json!({ "type": "message", "role": "user", "content": text }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(content: &str) -> Value {
        json!({ "type": "compaction", "id": "cmp_1", "encrypted_content": content })
    }

    #[test]
    fn sealed_summary_round_trips() {
        for text in ["", "Ada asked for pears.\n\"ü\u{0}"] {
            assert_eq!(summary(&item(&sealed(text))).as_deref(), Some(text));
        }
        let expanded = expanded(&item(&sealed("Pears."))).expect("our own");
        assert_eq!(expanded["role"], "user");
        assert!(expanded["content"].as_str().is_some_and(|text| text.ends_with("\n\nPears.")));
    }

    #[test]
    fn foreign_compaction_item_is_not_read_as_a_summary() {
        let (foreign, cut) = (BASE64_STANDARD.encode("Pears."), &sealed("Pears.")[..16]);
        for content in [foreign.as_str(), "gAAAAABo", "", MARK, "gatewright:2:UA==", cut] {
            assert!(matches!(summary(&item(content)).as_deref(), None | Some("")), "{content}");
        }
        let mut other = item(&sealed("Pears."));
        other["type"] = json!("reasoning");
        assert_eq!(expanded(&other), None);
    }
}
