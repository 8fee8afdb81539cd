//! How the requests of an upstream differ from its protocol: in their paths, and in single members of their bodies.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Stands for the model in a path.
pub(crate) const MODEL_PLACEHOLDER: &str = "{model}";

/// How the requests of an upstream differ from its protocol. The default is the protocol itself.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Envelope {
    /// Paths that differ.
    pub paths: Paths,
    /// Members that the body of each text request has. They go before those of clients.
    pub set_body: Map<String, Value>,
    /// Members that no body of a text request has.
    pub omit_body: Vec<String>,
    /// Sends the beta features of the messages protocol in the body (`anthropic_beta`) and not in a header.
    pub betas_in_body: bool,
}

/// Paths that are added to `base_url` instead of those of the protocol. `{model}` stands for the upstream's name of the model,
/// which is then left out of the body.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Paths {
    /// Path of text requests, such as "/models/{model}:rawPredict".
    #[schemars(length(max = 1024))]
    pub answer: Option<String>,
    /// Path of text requests whose answer streams. Default: answer.
    #[schemars(length(max = 1024))]
    pub stream: Option<String>,
    /// Path of requests to count tokens. Default: that of the protocol; the gateway estimates the count where answer is set and this
    /// is not.
    #[schemars(length(max = 1024))]
    pub count_tokens: Option<String>,
    /// Path of requests for images.
    #[schemars(length(max = 1024))]
    pub images: Option<String>,
    /// Path of requests for videos, to which the id of a video is added.
    #[schemars(length(max = 1024))]
    pub videos: Option<String>,
}

impl Paths {
    /// Each path that is set, by its key.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let named = [
            ("answer", &self.answer),
            ("stream", &self.stream),
            ("count_tokens", &self.count_tokens),
            ("images", &self.images),
            ("videos", &self.videos),
        ];
        named.into_iter().filter_map(|(key, path)| Some((key, path.as_deref()?)))
    }

    /// Whether the upstream counts tokens, if its protocol does.
    pub(crate) fn count_tokens(&self) -> bool {
        self.answer.is_none() || self.count_tokens.is_some()
    }
}
