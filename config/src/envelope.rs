//! How an upstream's requests deviate from its protocol: in their paths, and in individual body members.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Placeholder for the model in a path.
pub const MODEL_PLACEHOLDER: &str = "{model}";

/// How an upstream's requests deviate from its protocol. By default they don't.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Envelope {
    /// Deviating paths.
    pub paths: Paths,
    /// Members set in the body of each text request. They take precedence over the client's.
    pub set_body: Map<String, Value>,
    /// Members removed from the body of each text request.
    pub omit_body: Vec<String>,
    /// Sends the beta features of the messages protocol in the body (`anthropic_beta`) instead of a header.
    pub betas_in_body: bool,
}

/// Paths that are appended to `base_url` instead of those of the protocol. `{model}` is replaced with the upstream's name for the
/// model, which is then omitted from the body.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Paths {
    /// Path of text requests, such as "/models/{model}:rawPredict".
    #[schemars(length(max = 1024))]
    pub answer: Option<String>,
    /// Path of streaming text requests. Default: answer.
    #[schemars(length(max = 1024))]
    pub stream: Option<String>,
    /// Path of requests to count tokens. Default: that of the protocol; if answer is set and this is not, the gateway estimates
    /// the count.
    #[schemars(length(max = 1024))]
    pub count_tokens: Option<String>,
    /// Path of requests for embeddings.
    #[schemars(length(max = 1024))]
    pub embeddings: Option<String>,
    /// Path of requests to rerank documents.
    #[schemars(length(max = 1024))]
    pub rerank: Option<String>,
    /// Path of requests to moderate content.
    #[schemars(length(max = 1024))]
    pub moderations: Option<String>,
    /// Path of requests for speech.
    #[schemars(length(max = 1024))]
    pub speech: Option<String>,
    /// Path of requests for transcriptions.
    #[schemars(length(max = 1024))]
    pub transcriptions: Option<String>,
    /// Path of requests for translations of sounds.
    #[schemars(length(max = 1024))]
    pub translations: Option<String>,
    /// Path of image requests.
    #[schemars(length(max = 1024))]
    pub images: Option<String>,
    /// Path of video requests, to which the id of a video is appended.
    #[schemars(length(max = 1024))]
    pub videos: Option<String>,
}

impl Paths {
    /// Each configured path, with its key.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let named = [
            ("answer", &self.answer),
            ("stream", &self.stream),
            ("count_tokens", &self.count_tokens),
            ("embeddings", &self.embeddings),
            ("rerank", &self.rerank),
            ("moderations", &self.moderations),
            ("speech", &self.speech),
            ("transcriptions", &self.transcriptions),
            ("translations", &self.translations),
            ("images", &self.images),
            ("videos", &self.videos),
        ];
        named.into_iter().filter_map(|(key, path)| Some((key, path.as_deref()?)))
    }

    /// Whether the upstream counts tokens, if its protocol can.
    pub fn count_tokens(&self) -> bool {
        self.answer.is_none() || self.count_tokens.is_some()
    }
}
