//! Providers as data: one file each, in the format of a configuration file. An upstream that names its provider inherits
//! from the provider's file what it doesn't set itself.

use std::ffi::OsString;
use std::sync::LazyLock;

use gatewright::did_you_mean::suggestion;
use serde::Deserialize as _;
use serde_json::{Map, Value};
use toml::de::DeTable;
use url::Url;

use super::addresses::is_public_host;
use super::secret::{first_set, none_set};
use super::source_map::Path;
use super::toml_as_json::table;
use super::upstreams::{Kind, ModelKind};

/// The files, by provider name.
const FILES: [(&str, &str); 30] = [
    ("openai", include_str!("../providers/openai.toml")),
    ("anthropic", include_str!("../providers/anthropic.toml")),
    ("gemini", include_str!("../providers/gemini.toml")),
    ("gemini-compatible", include_str!("../providers/gemini-compatible.toml")),
    ("vertex-gemini", include_str!("../providers/vertex-gemini.toml")),
    ("vertex-anthropic", include_str!("../providers/vertex-anthropic.toml")),
    ("azure-openai", include_str!("../providers/azure-openai.toml")),
    ("bedrock", include_str!("../providers/bedrock.toml")),
    ("bedrock-anthropic", include_str!("../providers/bedrock-anthropic.toml")),
    ("bedrock-converse", include_str!("../providers/bedrock-converse.toml")),
    ("bedrock-invoke", include_str!("../providers/bedrock-invoke.toml")),
    ("openrouter", include_str!("../providers/openrouter.toml")),
    ("groq", include_str!("../providers/groq.toml")),
    ("mistral", include_str!("../providers/mistral.toml")),
    ("deepseek", include_str!("../providers/deepseek.toml")),
    ("xai", include_str!("../providers/xai.toml")),
    ("together", include_str!("../providers/together.toml")),
    ("fireworks", include_str!("../providers/fireworks.toml")),
    ("cerebras", include_str!("../providers/cerebras.toml")),
    ("cohere", include_str!("../providers/cohere.toml")),
    ("cohere-rerank", include_str!("../providers/cohere-rerank.toml")),
    ("jina", include_str!("../providers/jina.toml")),
    ("moonshot", include_str!("../providers/moonshot.toml")),
    ("zai", include_str!("../providers/zai.toml")),
    ("ollama", include_str!("../providers/ollama.toml")),
    ("vllm", include_str!("../providers/vllm.toml")),
    ("llama-cpp", include_str!("../providers/llama-cpp.toml")),
    ("lm-studio", include_str!("../providers/lm-studio.toml")),
    ("sglang", include_str!("../providers/sglang.toml")),
    ("custom", include_str!("../providers/custom.toml")),
];

static PRESETS: LazyLock<Vec<Preset>> =
    LazyLock::new(|| FILES.iter().map(|(name, text)| Preset::read(name, text)).collect());

/// The settings and notes of a provider.
#[derive(Debug, Clone)]
pub struct Preset {
    /// The name that upstreams use for it.
    pub name: &'static str,
    /// Its display name.
    pub title: String,
    /// An example of its URL, if the operator must set it.
    pub example_base_url: Option<String>,
    /// The command that starts it, if it is a server on the operator's machine.
    pub start: Option<String>,
    /// What its model names are, if every operator has others and no list has them.
    pub own_models: Option<String>,
    /// Whether its server lists its models.
    pub lists_models: bool,
    /// What its list puts before the name of a model.
    pub listed_prefix: Option<String>,
    /// A few of its text models.
    pub models: Vec<String>,
    /// A few of its embedding models.
    pub embedding_models: Vec<String>,
    /// A few of its rerank models.
    pub rerank_models: Vec<String>,
    /// A few of its moderation models.
    pub moderation_models: Vec<String>,
    /// A few of its image models.
    pub image_models: Vec<String>,
    /// A few of its video models.
    pub video_models: Vec<String>,
    /// A few of its speech models.
    pub speech_models: Vec<String>,
    /// A few of its transcription models.
    pub transcription_models: Vec<String>,
    /// How it differs from other servers of its protocol, and how the gateway handles that.
    pub notes: Vec<String>,
    /// Pages that document it, by the key that they cover.
    pub sources: Vec<(String, String)>,
    kind: Kind,
    key_variables: Vec<String>,
    /// The keys of an upstream.
    upstream: Map<String, Value>,
    /// The same as TOML, with its comments.
    lines: &'static str,
}

/// The providers that upstreams may name.
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

/// The provider with a name. Errors: it doesn't exist; lists the names that do.
pub fn preset(name: &str) -> Result<&'static Preset, String> {
    PRESETS.iter().find(|preset| preset.name == name).ok_or_else(|| {
        let names: Vec<&str> = names().collect();
        format!("must be one of {}{}", names.join(", "), suggestion(name, &names))
    })
}

/// The provider names that upstreams may use.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

impl Preset {
    fn read(name: &'static str, text: &'static str) -> Self {
        let document = DeTable::parse(text).expect("the files of providers are TOML");
        let document = table(document.get_ref());
        let texts = |key: &str| {
            let items = document[key].as_array().into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let sources = document["sources"].as_object().into_iter().flatten();
        let sources = sources.filter_map(|(key, page)| Some((key.clone(), page.as_str()?.to_owned())));
        let (_, lines) = text.split_once("[upstream]\n").expect("the file of a provider has an upstream");
        let upstream = document["upstream"].as_object().cloned().unwrap_or_default();
        let variables = upstream.get("key").map_or(&Value::Null, |key| &key["env"]);
        let variables = variables.as_array().map_or(std::slice::from_ref(variables), Vec::as_slice);
        Self {
            name,
            title: document["title"].as_str().unwrap_or(name).to_owned(),
            example_base_url: document["example_base_url"].as_str().map(str::to_owned),
            start: document["start"].as_str().map(str::to_owned),
            own_models: document["own_models"].as_str().map(str::to_owned),
            lists_models: document["lists_models"].as_bool().unwrap_or(true),
            listed_prefix: document["listed_prefix"].as_str().map(str::to_owned),
            models: texts("models"),
            embedding_models: texts("embedding_models"),
            rerank_models: texts("rerank_models"),
            moderation_models: texts("moderation_models"),
            image_models: texts("image_models"),
            video_models: texts("video_models"),
            speech_models: texts("speech_models"),
            transcription_models: texts("transcription_models"),
            notes: texts("notes"),
            sources: sources.collect(),
            kind: Kind::deserialize(&document["upstream"]["kind"]).expect("the upstream has a kind"),
            key_variables: variables.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            upstream,
            lines: lines.split("\n\n").next().unwrap_or_default().trim_end(),
        }
    }

    /// An upstream of this provider with every key, as part of a configuration file.
    pub fn upstream(&self) -> String {
        format!("[upstreams.{}]\n{}\n", self.name, self.lines)
    }

    /// Its protocol.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its URL. `None`: the operator must set it.
    pub fn base_url(&self) -> Option<&str> {
        self.upstream.get("base_url").and_then(Value::as_str)
    }

    /// The models of each kind, with the key that lists them.
    fn lists(&self) -> [(ModelKind, &'static str, &[String]); 8] {
        [
            (ModelKind::Text, "models", &self.models),
            (ModelKind::Embedding, "embedding_models", &self.embedding_models),
            (ModelKind::Rerank, "rerank_models", &self.rerank_models),
            (ModelKind::Moderation, "moderation_models", &self.moderation_models),
            (ModelKind::Image, "image_models", &self.image_models),
            (ModelKind::Video, "video_models", &self.video_models),
            (ModelKind::Speech, "speech_models", &self.speech_models),
            (ModelKind::Transcription, "transcription_models", &self.transcription_models),
        ]
    }

    /// All models that its file lists, with their kinds.
    pub fn all_models(&self) -> impl Iterator<Item = (ModelKind, &str)> {
        self.lists().into_iter().flat_map(|(kind, _, ids)| ids.iter().map(move |id| (kind, id.as_str())))
    }

    /// The keys that no documentation page confirms.
    pub fn unconfirmed(&self) -> Vec<&str> {
        let lists = self.lists().into_iter().filter(|(.., ids)| !ids.is_empty()).map(|(_, key, _)| key);
        let settings = self.upstream.keys().map(String::as_str).chain(lists);
        settings.filter(|key| *key != "kind" && self.sources.iter().all(|(of, _)| of != key)).collect()
    }

    /// The environment variables that may hold its key: the first that is set does. Empty: it needs no key, or gets it elsewhere.
    pub fn key_variables(&self) -> &[String] {
        &self.key_variables
    }

    /// The variable that holds its key. `None`: it needs none, or none is set.
    pub fn key_variable(&self, variables: impl Fn(&str) -> Option<OsString>) -> Option<&str> {
        first_set(&self.key_variables, variables).map(|(name, _)| name)
    }

    /// Says that it has no key, and how to give it one. `None`: it needs none, or has one.
    pub fn missing_key(&self, variables: impl Fn(&str) -> Option<OsString>) -> Option<String> {
        if self.key_variables.is_empty() || self.key_variable(variables).is_some() {
            return None;
        }
        let what = if self.key_variables.len() == 1 { "it" } else { "one of them" };
        Some(format!("{}; set {what} to the provider's key", none_set(&self.key_variables)))
    }
}

/// The URL of a provider whose host a URL has, without the provider's path: no request to it would find an operation.
/// `kind`: the protocol, as some providers have one host for several.
pub(super) fn with_path(url: &Url, kind: Kind) -> Option<&'static str> {
    let is_bare = |url: &Url| url.path() == "/";
    let same_host = |preset: &&Preset| {
        let own = preset.base_url().and_then(|own| Url::parse(own).ok());
        own.is_some_and(|own| is_public_host(&own) && own.host() == url.host() && !is_bare(&own))
    };
    let mut at_host = PRESETS.iter().filter(same_host).filter(|_| is_bare(url)).peekable();
    let first = at_host.peek().copied();
    at_host.find(|preset| preset.kind() == kind).or(first)?.base_url()
}

/// Fills in, for each upstream of a document that names its provider, what it doesn't set itself. Returns errors that no
/// schema can express: an upstream needs a kind or a provider.
pub(super) fn fill(document: &mut Value) -> Vec<(Path, String)> {
    let mut wrong = Vec::new();
    let upstreams = document.get_mut("upstreams").and_then(Value::as_object_mut);
    for (name, upstream) in upstreams.into_iter().flatten() {
        let Some(upstream) = upstream.as_object_mut() else { continue };
        match upstream.get("provider") {
            Some(provider) => {
                // The schema reports unknown names.
                let Some(Ok(preset)) = provider.as_str().map(preset) else { continue };
                for (key, value) in &preset.upstream {
                    upstream.entry(key.as_str()).or_insert_with(|| value.clone());
                }
            }
            None if !upstream.contains_key("kind") => {
                let message = "the key kind is missing: set it to the upstream's protocol, or set provider";
                wrong.push((Path::default().to("upstreams").to(name.as_str()), message.to_owned()));
            }
            None => {}
        }
    }
    wrong
}

#[cfg(test)]
mod tests;
