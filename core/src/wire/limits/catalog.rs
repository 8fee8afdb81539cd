//! The limits of the catalog (2.9, 2.10, and ours for embeddings), and which endpoint serves which model (1, 4 rules 1 and 2).

use serde_json::Value;

use super::words::brief;
use super::{UNSUPPORTED, Violation, integer};
use crate::api::catalog::{
    EMBEDDING_MODELS, EmbeddingModel, FAMILIES, IMAGE_MODELS, ImageModel, PLAIN_MODELS, PlainModel,
    TEXT_MODELS, TextModel, VIDEO_MODELS, VideoModel,
};
use crate::api::operation::{ModelKind, Operation, Protocol};
use crate::api::operations;

/// The limits of its model that a request violates.
pub(super) fn check(operation: &Operation, body: &Value) -> Vec<Violation> {
    let mut violations = Vec::new();
    let Some(id) = named(body) else { return violations };
    violations.extend(wrong_endpoint(operation, id));
    match operation.models {
        Some(ModelKind::Embedding) => {
            if let Some(model) = EMBEDDING_MODELS.iter().find(|model| model.id == id) {
                violations.extend(check_embedding(model, body));
            }
        }
        Some(ModelKind::Image) => {
            if let Some(model) = IMAGE_MODELS.iter().find(|model| model.id == id) {
                check_image(model, body, &mut violations);
            }
        }
        Some(ModelKind::Video) => {
            if let Some(model) = VIDEO_MODELS.iter().find(|model| model.id == id) {
                check_video(model, body, &mut violations);
            }
        }
        Some(
            ModelKind::Text
            | ModelKind::Rerank
            | ModelKind::Moderation
            | ModelKind::Speech
            | ModelKind::Transcription,
        )
        | None => {}
    }
    violations
}

/// Whether the catalog contains the model that a request names. A request that names none uses the model in its path or
/// no model at all; the rules apply to it.
pub(crate) fn is_catalogued(body: &Value) -> bool {
    named(body).is_none_or(|id| Model::of(id).is_some())
}

fn named(body: &Value) -> Option<&str> {
    body.get("model")?.as_str()
}

/// A model of the catalog.
enum Model {
    Text(&'static TextModel),
    Embedding,
    Plain(ModelKind),
    Video,
    Image,
}

impl Model {
    fn of(id: &str) -> Option<Self> {
        if let Some(model) = TEXT_MODELS.iter().find(|model| model.id == id) {
            return Some(Self::Text(model));
        }
        if EMBEDDING_MODELS.iter().any(|model| model.id == id) {
            return Some(Self::Embedding);
        }
        if let Some(model) = PLAIN_MODELS.iter().find(|model| model.id == id) {
            return Some(Self::Plain(plain_kind(model)));
        }
        if VIDEO_MODELS.iter().any(|model| model.id == id) {
            return Some(Self::Video);
        }
        IMAGE_MODELS.iter().any(|model| model.id == id).then_some(Self::Image)
    }

    fn kind(&self) -> ModelKind {
        match self {
            Self::Text(_) => ModelKind::Text,
            Self::Embedding => ModelKind::Embedding,
            Self::Plain(kind) => *kind,
            Self::Video => ModelKind::Video,
            Self::Image => ModelKind::Image,
        }
    }
}

/// What a model without limits makes.
fn plain_kind(model: &PlainModel) -> ModelKind {
    match model.kind {
        "rerank" => ModelKind::Rerank,
        "moderation" => ModelKind::Moderation,
        "speech" => ModelKind::Speech,
        _ => ModelKind::Transcription,
    }
}

/// The violation if an operation does not serve a model of the catalog, naming the endpoint that does. None if it
/// serves the model or the catalog does not contain it.
///
/// ```
/// use gatewright::limits::wrong_endpoint;
/// use gatewright::operations::CREATE_CHAT_COMPLETION;
///
/// assert!(wrong_endpoint(&CREATE_CHAT_COMPLETION, "model-sol").is_none());
/// let violation = wrong_endpoint(&CREATE_CHAT_COMPLETION, "video_model_1").unwrap();
/// assert_eq!(violation.pointer, "/model");
/// ```
pub fn wrong_endpoint(operation: &Operation, id: &str) -> Option<Violation> {
    let model = Model::of(id)?;
    let here = format!("{} {}", operation.method.as_str(), operation.path);
    let kind = operation.models?;
    let (what, section) = match &model {
        Model::Text(model) if kind == ModelKind::Text => {
            if serves(model, operation.protocol) {
                return None;
            }
            // Rule 1: families that the responses endpoints do not serve use chat completions.
            (format!("of {}", model.family), "4")
        }
        other if other.kind() == kind => return None,
        Model::Text(_) => ("a text model".to_owned(), "4"),
        Model::Embedding => ("an embedding model".to_owned(), "ours"),
        Model::Plain(ModelKind::Rerank) => ("a rerank model".to_owned(), "ours"),
        Model::Plain(ModelKind::Moderation) => ("a moderation model".to_owned(), "ours"),
        Model::Plain(ModelKind::Speech) => ("a speech model".to_owned(), "ours"),
        Model::Plain(_) => ("a transcription model".to_owned(), "ours"),
        Model::Video => ("a video model".to_owned(), "4, 2.9"),
        Model::Image => ("an image model".to_owned(), "4, 2.10"),
    };
    // The first operation of a kind serves all models of that kind.
    let right = operations::ALL.iter().find(|other| other.models == Some(model.kind()))?.path;
    Some(Violation {
        pointer: "/model".to_owned(),
        rule: UNSUPPORTED.to_owned(),
        message: format!("the model {id:?} is {what}, which {here} does not serve; use POST {right}"),
        section: section.to_owned(),
        missing: None,
    })
}

fn serves(model: &TextModel, protocol: Protocol) -> bool {
    let name = match protocol {
        Protocol::Chat => "chat",
        Protocol::Responses => "responses",
        Protocol::Messages => "messages",
        Protocol::Native => "native",
        Protocol::Plain | Protocol::Batch | Protocol::Media | Protocol::Models => return false,
    };
    FAMILIES.iter().any(|family| family.id == model.family && family.protocols.contains(&name))
}

/// The section to cite for members that the catalog marks as ours.
fn section_of(member: &str, ours: &[&str], stated: &'static str) -> &'static str {
    if ours.contains(&member) { "ours" } else { stated }
}

fn check_embedding(model: &EmbeddingModel, body: &Value) -> Option<Violation> {
    let requested = body.get("dimensions").and_then(integer)?;
    let (id, most) = (model.id, model.dimensions);
    (requested > u64::from(most)).then(|| Violation {
        pointer: "/dimensions".to_owned(),
        rule: "maximum".to_owned(),
        message: format!("dimensions is {requested}, {id} makes vectors of at most {most}"),
        section: "ours".to_owned(),
        missing: None,
    })
}

fn check_image(model: &ImageModel, body: &Value, violations: &mut Vec<Violation>) {
    let id = model.id;
    let mut break_rule = |field: &str, rule: &str, section: &str, message: String| {
        let (pointer, rule) = (format!("/{field}"), rule.to_owned());
        violations.push(Violation { pointer, rule, message, section: section.to_owned(), missing: None });
    };
    if let Some(limit) = model.max_prompt_characters
        && let Some(prompt) = body.get("prompt").and_then(Value::as_str)
    {
        let length = prompt.chars().count();
        if u64::try_from(length).is_ok_and(|length| length > u64::from(limit)) {
            let message = format!("prompt has {length} characters, {id} takes at most {limit}");
            let section = section_of("max_prompt_characters", model.ours, "2.8");
            break_rule("prompt", "maxLength", section, message);
        }
    }
    if let Some(n) = body.get("n").and_then(integer)
        && n > u64::from(model.max_n)
    {
        break_rule("n", "maximum", "2.8", format!("n is {n}, {id} makes at most {} at once", model.max_n));
    }
    if let Some(size) = body.get("size").and_then(Value::as_str) {
        match model.sizes {
            Some(sizes) if !sizes.contains(&size) => {
                break_rule(
                    "size",
                    "enum",
                    "2.8",
                    format!("size is {}, {id} takes {}", brief(format_args!("{size:?}")), sizes.join(", ")),
                );
            }
            None if pixels(size)
                .is_some_and(|(width, height)| width > model.max_width || height > model.max_height) =>
            {
                let most = model.max_resolution;
                break_rule(
                    "size",
                    "maximum",
                    "2.10",
                    format!("size is {}, {id} makes at most {most}", brief(format_args!("{size:?}"))),
                );
            }
            _ => {}
        }
    }
    for (field, taken) in [("quality", model.quality), ("style", model.style)] {
        if !taken && body.get(field).is_some_and(|value| !value.is_null()) {
            break_rule(field, UNSUPPORTED, "2.8", format!("{field} is given, but {id} does not take it"));
        }
    }
}

fn check_video(model: &VideoModel, body: &Value, violations: &mut Vec<Violation>) {
    let id = model.id;
    let mut break_rule = |field: &str, rule: &str, section: &str, message: String| {
        let (pointer, rule) = (format!("/{field}"), rule.to_owned());
        violations.push(Violation { pointer, rule, message, section: section.to_owned(), missing: None });
    };
    if let Some(duration) = body.get("duration").and_then(integer) {
        if let Some(most) = model.max_duration_s
            && duration > u64::from(most)
        {
            break_rule(
                "duration",
                "maximum",
                "2.9",
                format!("duration is {duration} s, {id} makes at most {most} s"),
            );
        }
        if let Some(least) = model.min_duration_s
            && duration < u64::from(least)
        {
            break_rule(
                "duration",
                "minimum",
                section_of("min_duration_s", model.ours, "2.6"),
                format!("duration is {duration} s, {id} makes at least {least} s"),
            );
        }
    }
    for (field, values, section) in
        [("resolution", model.resolutions, "2.9"), ("aspect_ratio", model.aspect_ratios, "2.6")]
    {
        if let Some(value) = body.get(field).and_then(Value::as_str)
            && !values.contains(&value)
        {
            break_rule(
                field,
                "enum",
                section,
                format!("{field} is {}, {id} takes {}", brief(format_args!("{value:?}")), values.join(", ")),
            );
        }
    }
}

fn pixels(size: &str) -> Option<(u32, u32)> {
    let (width, height) = size.split_once('x')?;
    Some((width.parse().ok()?, height.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_of_another_endpoint_is_reported_with_the_right_endpoint() {
        // 4 rules 1 and 2; the families come from the catalog.
        let message = |operation, id| wrong_endpoint(&operation, id).map(|violation| violation.to_string());
        assert_eq!(
            message(operations::CREATE_RESPONSE, "model-breeze").as_deref(),
            Some(
                "/model: the model \"model-breeze\" is of family_two, which POST /v1/responses does not serve; use POST \
                 /v1/chat/completions"
            )
        );
        for (operation, id, path) in [
            (operations::COMPACT_RESPONSE, "model-cedar", "/v1/chat/completions"),
            (operations::CREATE_VIDEO, "image_model_2", "/v1/images/generations"),
            (operations::CREATE_IMAGE, "video_model_1", "/v1/videos/generations"),
            (operations::CREATE_IMAGE, "model-sol", "/v1/chat/completions"),
            (operations::CREATE_CHAT_COMPLETION, "video_model_1", "/v1/videos/generations"),
            (operations::CREATE_MESSAGE, "video_model_1", "/v1/videos/generations"),
            (operations::GENERATE_CONTENT, "image_model_1", "/v1/images/generations"),
            (operations::CREATE_CHAT_COMPLETION, "embedding_model_1", "/v1/embeddings"),
            (operations::CREATE_EMBEDDING, "rerank_model_1", "/v1/rerank"),
            (operations::CREATE_RERANK, "moderation_model_1", "/v1/moderations"),
            (operations::CREATE_MODERATION, "speech_model_1", "/v1/audio/speech"),
            (operations::CREATE_SPEECH, "rerank_model_1", "/v1/rerank"),
            (operations::CREATE_SPEECH, "transcription_model_1", "/v1/audio/transcriptions"),
            (operations::CREATE_TRANSLATION, "speech_model_1", "/v1/audio/speech"),
            (operations::CREATE_EMBEDDING, "model-sol", "/v1/chat/completions"),
        ] {
            let message = message(operation, id).unwrap_or_default();
            assert!(message.ends_with(&format!("use POST {path}")), "{} {id}: {message}", operation.id);
        }
        for (operation, id) in [
            (operations::CREATE_RESPONSE, "model-sol"),
            (operations::CREATE_CHAT_COMPLETION, "model-cedar"),
            (operations::CREATE_MESSAGE, "model-sol"),
            (operations::COUNT_MESSAGE_TOKENS, "model-breeze"),
            (operations::GENERATE_CONTENT, "model-breeze"),
            (operations::CREATE_EMBEDDING, "embedding_model_1"),
            (operations::CREATE_RERANK, "rerank_model_1"),
            (operations::CREATE_MODERATION, "moderation_model_1"),
            (operations::CREATE_SPEECH, "speech_model_1"),
            (operations::CREATE_TRANSCRIPTION, "transcription_model_1"),
            (operations::CREATE_TRANSLATION, "transcription_model_1"),
            (operations::CREATE_VIDEO, "video_model_1"),
            (operations::CREATE_IMAGE, "image_model_5"),
            (operations::CREATE_IMAGE, "a-model-that-is-not-in-the-catalog"),
        ] {
            assert_eq!(message(operation, id), None, "{} {id}", operation.id);
        }
    }
}
