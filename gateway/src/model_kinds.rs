//! What the models of a provider make: by what its list says about them, else by their names. Most lists name models of all kinds
//! without saying which is which.

use gatewright_config::ModelKind;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// Words in the names of models that no operation of the gateway serves.
const UNSERVED_WORDS: [&str; 2] = ["live", "realtime"];
/// Beginnings of the names of models that only continue a text.
const UNSERVED_BEGINNINGS: [&str; 3] = ["babbage-", "davinci-", "gpt-3.5-turbo-instruct"];
/// Words in the names of speech models.
const SPEECH_WORDS: [&str; 3] = ["orpheus", "speech", "tts"];
/// Words in the names of transcription models.
const TRANSCRIPTION_WORDS: [&str; 4] = ["stt", "transcribe", "transcription", "whisper"];
/// Words in the names of embedding models.
const EMBEDDING_WORDS: [&str; 4] = ["bge", "e5", "gte", "minilm"];
/// Words in the names of image models.
const IMAGE_WORDS: [&str; 7] = ["cogview", "flux", "image", "imagen", "recraft", "sdxl", "seedream"];
/// Other parts of their names.
const IMAGE_PARTS: [&str; 2] = ["dall-e", "stable-diffusion"];
/// Words in the names of video models.
const VIDEO_WORDS: [&str; 5] = ["cogvideox", "seedance", "sora", "veo", "video"];

/// What a list may say about what a model makes, in the forms of several providers. Each member may have any type.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Description<'a> {
    /// Another gateway like this one: a kind of model.
    #[serde(borrow, default)]
    kind: Option<&'a RawValue>,
    /// Together AI: `chat`, `image` and so on.
    #[serde(borrow, default, rename = "type")]
    model_type: Option<&'a RawValue>,
    /// OpenRouter: an object with `output_modalities`, such as `["text"]`.
    #[serde(borrow, default)]
    architecture: Option<&'a RawValue>,
    /// Gemini: such as `["generateContent", "countTokens"]`.
    #[serde(borrow, default, rename = "supportedGenerationMethods")]
    methods: Option<&'a RawValue>,
    /// Mistral: an object with `completion_chat`.
    #[serde(borrow, default)]
    capabilities: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Architecture {
    output_modalities: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Capabilities {
    completion_chat: bool,
}

/// What a model makes. `None`: nothing that the gateway serves, such as a conversation by sound.
pub(crate) fn kind_of(name: &str, description: &Description<'_>) -> Option<ModelKind> {
    if let Some(kind) = description.kind.and_then(read::<ModelKind>) {
        return Some(kind);
    }
    // Lists say that some of these generate content, as others do.
    if is_unserved(name) {
        return None;
    }
    if let Some(kind) = audio_kind(name) {
        return Some(kind);
    }
    if let Some(word) = description.model_type.and_then(read::<String>) {
        match word.as_str() {
            "chat" | "language" | "code" => return Some(ModelKind::Text),
            "embedding" => return Some(ModelKind::Embedding),
            "rerank" => return Some(ModelKind::Rerank),
            "image" => return Some(ModelKind::Image),
            "video" => return Some(ModelKind::Video),
            "moderation" => return Some(ModelKind::Moderation),
            "audio" => return Some(ModelKind::Speech),
            "transcribe" => return Some(ModelKind::Transcription),
            _ => {}
        }
    }
    if let Some(Architecture { output_modalities }) = description.architecture.and_then(read)
        && !output_modalities.is_empty()
    {
        return first_of(
            &output_modalities,
            &[
                ("text", ModelKind::Text),
                ("embeddings", ModelKind::Embedding),
                ("rerank", ModelKind::Rerank),
                ("image", ModelKind::Image),
                ("video", ModelKind::Video),
                ("speech", ModelKind::Speech),
                ("transcription", ModelKind::Transcription),
            ],
        );
    }
    if let Some(methods) = description.methods.and_then(read::<Vec<String>>) {
        return first_of(
            &methods,
            &[
                ("generateContent", ModelKind::Text),
                ("embedContent", ModelKind::Embedding),
                ("predict", ModelKind::Image),
                ("predictLongRunning", ModelKind::Video),
            ],
        );
    }
    let by_name = ModelKind::in_catalog(name).unwrap_or_else(|| kind_by_name(name));
    match description.capabilities.and_then(read::<Capabilities>) {
        Some(Capabilities { completion_chat: true }) => Some(ModelKind::Text),
        Some(_) if by_name == ModelKind::Text => None,
        _ => Some(by_name),
    }
}

/// A member, if it has the expected form.
fn read<T: DeserializeOwned>(member: &RawValue) -> Option<T> {
    serde_json::from_str(member.get()).ok()
}

/// The kind of the first of these words that a model has.
fn first_of(words: &[String], kinds: &[(&str, ModelKind)]) -> Option<ModelKind> {
    kinds.iter().find(|(word, _)| words.iter().any(|known| known == word)).map(|(_, kind)| *kind)
}

fn is_unserved(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let short = name.rsplit('/').next().unwrap_or(&name);
    has_word(&name, &UNSERVED_WORDS)
        || UNSERVED_BEGINNINGS.iter().any(|beginning| short.starts_with(beginning))
}

fn audio_kind(name: &str) -> Option<ModelKind> {
    let name = name.to_ascii_lowercase();
    match () {
        () if has_word(&name, &SPEECH_WORDS) => Some(ModelKind::Speech),
        () if has_word(&name, &TRANSCRIPTION_WORDS) => Some(ModelKind::Transcription),
        () => None,
    }
}

/// The names of some kinds contain a word. The others are those of text models.
fn kind_by_name(name: &str) -> ModelKind {
    let name = name.to_ascii_lowercase();
    let contains = |part: &str| name.contains(part);
    match () {
        () if contains("rerank") => ModelKind::Rerank,
        () if contains("moderation") => ModelKind::Moderation,
        () if contains("embed") || has_word(&name, &EMBEDDING_WORDS) => ModelKind::Embedding,
        () if has_word(&name, &VIDEO_WORDS) => ModelKind::Video,
        () if IMAGE_PARTS.iter().any(|part| contains(part)) || has_word(&name, &IMAGE_WORDS) => {
            ModelKind::Image
        }
        () => ModelKind::Text,
    }
}

/// Whether a name consists of words of which one is among these.
fn has_word(name: &str, words: &[&str]) -> bool {
    name.split(|character: char| !character.is_ascii_alphanumeric()).any(|word| words.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(name: &str, members: &str) -> Option<ModelKind> {
        let description = serde_json::from_str(members).expect("an object");
        kind_of(name, &description)
    }

    #[test]
    fn kind_of_a_model_without_a_description_follows_from_its_name() {
        use ModelKind::{Embedding, Image, Moderation, Rerank, Speech, Text, Transcription, Video};
        let cases: [(Option<ModelKind>, &[&str]); 9] = [
            (
                Some(Text),
                &[
                    "gpt-5-2025-08-07",
                    "o3-deep-research",
                    "gpt-4o-audio-preview",
                    "claude-sonnet-4-5-20250929",
                    "llama3.2:3b",
                    "Qwen/Qwen2.5-7B-Instruct",
                    "meta-llama/Llama-Guard-4-12B",
                    "imagine-chat",
                    "deepseek-ocr",
                ],
            ),
            (
                Some(Embedding),
                &[
                    "text-embedding-3-small",
                    "nomic-embed-text",
                    "mistral-embed",
                    "bge-m3",
                    "intfloat/multilingual-e5-large",
                    "all-minilm:22m",
                ],
            ),
            (Some(Rerank), &["rerank-v3.5", "BAAI/bge-reranker-v2-m3", "jina-reranker-v2-base-multilingual"]),
            (Some(Moderation), &["omni-moderation-latest", "mistral-moderation-2411"]),
            (
                Some(Image),
                &[
                    "gpt-image-2",
                    "chatgpt-image-latest",
                    "dall-e-3",
                    "imagen-4.0-generate-001",
                    "grok-2-image-1212",
                    "black-forest-labs/FLUX.1-schnell",
                    "stable-diffusion-3.5-large",
                ],
            ),
            (Some(Video), &["sora-2-pro", "veo-3.0-generate-001", "grok-imagine-video", "cogvideox-3"]),
            (
                Some(Speech),
                &[
                    "tts-1-hd",
                    "gpt-4o-mini-tts",
                    "gemini-2.5-flash-preview-tts",
                    "canopylabs/orpheus-v1-english",
                ],
            ),
            (Some(Transcription), &["whisper-1", "distil-whisper-large-v3-en", "gpt-4o-transcribe-diarize"]),
            (None, &["gpt-realtime", "babbage-002", "davinci-002", "gpt-3.5-turbo-instruct-0914"]),
        ];
        for (kind, names) in cases {
            for name in names {
                assert_eq!(described(name, "{}"), kind, "{name}");
            }
        }
    }

    #[test]
    fn description_of_a_model_takes_precedence_over_its_name() {
        for (name, members, kind) in [
            ("m", r#"{"kind": "image", "protocols": ["media"]}"#, Some(ModelKind::Image)),
            ("whisper", r#"{"kind": "text"}"#, Some(ModelKind::Text)),
            ("m", r#"{"type": "embedding"}"#, Some(ModelKind::Embedding)),
            ("some/voice", r#"{"type": "audio"}"#, Some(ModelKind::Speech)),
            ("some/ear", r#"{"type": "transcribe"}"#, Some(ModelKind::Transcription)),
            ("some/flux-of-words", r#"{"type": "chat"}"#, Some(ModelKind::Text)),
            ("m", r#"{"architecture": {"output_modalities": ["image", "text"]}}"#, Some(ModelKind::Text)),
            ("m", r#"{"architecture": {"output_modalities": ["embeddings"]}}"#, Some(ModelKind::Embedding)),
            ("m", r#"{"architecture": {"output_modalities": ["speech"]}}"#, Some(ModelKind::Speech)),
            ("m", r#"{"architecture": {"output_modalities": ["smell"]}}"#, None),
            ("gemini-tts", r#"{"supportedGenerationMethods": ["generateContent"]}"#, Some(ModelKind::Speech)),
            ("gemini-image", r#"{"supportedGenerationMethods": ["generateContent"]}"#, Some(ModelKind::Text)),
            ("imagen-4", r#"{"supportedGenerationMethods": ["predict"]}"#, Some(ModelKind::Image)),
            ("veo-3", r#"{"supportedGenerationMethods": ["predictLongRunning"]}"#, Some(ModelKind::Video)),
            ("aqa", r#"{"supportedGenerationMethods": ["generateAnswer"]}"#, None),
            ("voxtral-small", r#"{"capabilities": {"completion_chat": true}}"#, Some(ModelKind::Text)),
            ("mistral-ocr", r#"{"capabilities": {"completion_chat": false}}"#, None),
            ("mistral-embed", r#"{"capabilities": {"completion_chat": false}}"#, Some(ModelKind::Embedding)),
        ] {
            assert_eq!(described(name, members), kind, "{name}: {members}");
        }
    }

    #[test]
    fn descriptions_of_an_unknown_form_are_ignored() {
        for members in [
            r#"{"kind": "HF_BASE_MODEL", "type": "model", "capabilities": ["completion", "vision"]}"#,
            r#"{"kind": 7, "type": ["chat"], "architecture": "llama", "supportedGenerationMethods": "all"}"#,
            r#"{"kind": null, "architecture": {"output_modalities": []}, "capabilities": {"completion_chat": "yes"}}"#,
        ] {
            assert_eq!(described("m", members), Some(ModelKind::Text), "{members}");
            assert_eq!(described("m-embed", members), Some(ModelKind::Embedding), "{members}");
        }
    }
}
