//! The optional features of models. Servers reject settings that a model does not support.

/// Optional features of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ModelFeatures {
    /// Settings of the messages protocol in `additionalModelRequestFields`, and strict tools.
    pub(super) messages_settings: bool,
    /// Cache points.
    pub(super) cache_points: bool,
    /// The status of a tool result.
    pub(super) result_status: bool,
}

/// Models of the messages protocol that are older than its cache.
const WITHOUT_CACHE: [&str; 6] = [
    "claude-v2",
    "claude-instant",
    "claude-3-opus",
    "claude-3-sonnet",
    "claude-3-haiku",
    "claude-3-5-sonnet-20240620",
];

impl ModelFeatures {
    /// Reads them from the id of a model, an inference profile or an ARN. An ARN that doesn't name the model has none.
    pub(super) fn of_model(id: &str) -> Self {
        let messages_settings = id.contains("anthropic.");
        let result_status = messages_settings || id.contains("amazon.nova");
        let cache_points = result_status && !WITHOUT_CACHE.iter().any(|older| id.contains(older));
        Self { messages_settings, cache_points, result_status }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_is_recognized_by_id_inference_profile_and_arn() {
        for (id, messages_settings, cache_points, result_status) in [
            ("anthropic.claude-sonnet-4-20250514-v1:0", true, true, true),
            ("us.anthropic.claude-sonnet-4-20250514-v1:0", true, true, true),
            (
                "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-opus-4-1-20250805-v1:0",
                true,
                true,
                true,
            ),
            ("anthropic.claude-3-haiku-20240307-v1:0", true, false, true),
            ("eu.amazon.nova-lite-v1:0", false, true, true),
            ("meta.llama3-70b-instruct-v1:0", false, false, false),
            ("arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc", false, false, false),
        ] {
            let expected = ModelFeatures { messages_settings, cache_points, result_status };
            assert_eq!(ModelFeatures::of_model(id), expected, "{id}");
        }
    }
}
