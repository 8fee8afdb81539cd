//! Models as a service lists them.

use gatewright::catalog::{IMAGE_MODELS, VIDEO_MODELS};
use serde_json::Value;

/// A model of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedModel {
    pub(crate) id: String,
    /// Whether it generates text, as far as the list tells.
    pub(crate) is_text: bool,
    /// Whether the responses protocol serves it, which only the list of our gateway says.
    pub(crate) serves_responses: bool,
}

/// Words in the ids of models that do something else. Most services list all their models, without their kind.
const OTHER_KINDS: [&str; 14] = [
    "audio",
    "dall-e",
    "embed",
    "image",
    "imagen",
    "moderation",
    "realtime",
    "rerank",
    "sora",
    "speech",
    "transcribe",
    "tts",
    "video",
    "whisper",
];

impl ListedModel {
    /// From its entry in the list. id: that of the entry.
    pub(crate) fn of(entry: &Value, id: &str) -> Self {
        let is_text = if let Some(kind) = entry["kind"].as_str() {
            kind == "text"
        } else {
            let is_media = IMAGE_MODELS.iter().any(|model| model.id == id)
                || VIDEO_MODELS.iter().any(|model| model.id == id);
            let lower = id.to_lowercase();
            !is_media && !OTHER_KINDS.iter().any(|word| lower.contains(word))
        };
        let protocols = entry["protocols"].as_array();
        let serves_responses =
            protocols.is_none_or(|protocols| protocols.iter().any(|protocol| protocol == "responses"));
        Self { id: id.to_owned(), is_text, serves_responses }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_models_are_recognized_by_kind_catalog_or_id() {
        for (entry, is_text) in [
            (json!({ "id": "x", "kind": "text" }), true),
            (json!({ "id": "x", "kind": "embedding" }), false),
            (json!({ "id": "gpt-5" }), true),
            (json!({ "id": "claude-sonnet-4-5" }), true),
            (json!({ "id": "text-embedding-3-small" }), false),
            (json!({ "id": "GPT-4o-Realtime" }), false),
            (json!({ "id": "image_model_1" }), false),
        ] {
            let id = entry["id"].as_str().expect("an id");
            assert_eq!(ListedModel::of(&entry, id).is_text, is_text, "{entry}");
        }
    }

    #[test]
    fn listed_protocols_say_whether_responses_serves_a_model() {
        for (entry, serves) in [
            (json!({ "id": "x" }), true),
            (json!({ "id": "x", "protocols": "chat" }), true),
            (json!({ "id": "x", "protocols": ["chat", "responses"] }), true),
            (json!({ "id": "x", "protocols": ["chat", "messages", "native"] }), false),
            (json!({ "id": "x", "protocols": [] }), false),
        ] {
            assert_eq!(ListedModel::of(&entry, "x").serves_responses, serves, "{entry}");
        }
    }
}
