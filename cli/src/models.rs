//! `gatewright models`: lists the models available to the key, and what they are.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use clap::Args;
use gatewright::catalog::{
    EMBEDDING_MODELS, FAMILIES, IMAGE_MODELS, PLAIN_MODELS, TEXT_MODELS, VIDEO_MODELS,
};
use gatewright::did_you_mean::suggestion;
use gatewright::operations::LIST_MODELS;
use gatewright::types::Model;
use gatewright::visible::{visible, visible_lines};
use gatewright::{Call, Client, Error, ErrorCode};
use serde_json::Value;

use crate::exit::{Exit, Failure};
use crate::json;
use crate::table;
use crate::target::Target;

/// How long a command looks for a model to suggest.
pub(crate) const LOOK: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(crate) struct ModelsArguments {
    /// Print the response of the gateway as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: Target,
}

pub(crate) async fn run(arguments: ModelsArguments) -> Exit {
    let client = arguments.target.client()?;
    let stdout = io::stdout();
    let mut out = io::BufWriter::new(stdout.lock());
    if arguments.json {
        let list = client.call(Call::new(&LIST_MODELS)).await?;
        // Not through our types: a gateway may list more than they know. What is no JSON is shown as it is.
        let document = serde_json::from_slice::<Value>(&list.body);
        let text = document.map_or_else(
            |_| String::from_utf8_lossy(&list.body).into_owned(),
            |document| json::text(&document),
        );
        // JSON escapes ASCII control characters only.
        let shown = if stdout.is_terminal() { visible_lines(&text) } else { text.as_str().into() };
        writeln!(out, "{shown}")?;
    } else {
        let models = client.models().list().await?.into_inner().data;
        let heads = ["MODEL", "KIND", "FAMILY", "PROTOCOLS"].map(str::to_owned);
        let rows: Vec<_> = std::iter::once(heads).chain(models.iter().map(row)).collect();
        table::write(&mut out, &rows, 0..0)?;
    }
    out.flush()?;
    Ok(0)
}

/// Id, kind, family and protocols; a dash if neither the gateway nor the catalog knows.
fn row(model: &Model) -> [String; 4] {
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let protocols = protocols(model).join(", ");
    [model.id.clone(), or_dash(kind(model).unwrap_or("")), or_dash(&model.owned_by), or_dash(&protocols)]
}

/// What a model generates, according to the gateway, otherwise the catalog.
pub(crate) fn kind(model: &Model) -> Option<&str> {
    if let Some(kind) = &model.kind {
        return Some(kind);
    }
    let id = model.id.as_str();
    if TEXT_MODELS.iter().any(|model| model.id == id) {
        Some("text")
    } else if EMBEDDING_MODELS.iter().any(|model| model.id == id) {
        Some("embedding")
    } else if let Some(model) = PLAIN_MODELS.iter().find(|model| model.id == id) {
        Some(model.kind)
    } else if IMAGE_MODELS.iter().any(|model| model.id == id) {
        Some("image")
    } else {
        VIDEO_MODELS.iter().any(|model| model.id == id).then_some("video")
    }
}

/// The protocols that serve a model, according to the gateway, otherwise the catalog; empty if neither knows.
pub(crate) fn protocols(model: &Model) -> Vec<&str> {
    if !model.protocols.is_empty() {
        return model.protocols.iter().map(String::as_str).collect();
    }
    let Some(text) = TEXT_MODELS.iter().find(|text| text.id == model.id) else {
        // The others have their own endpoints.
        return match kind(model) {
            None => Vec::new(),
            Some("embedding") => vec!["embeddings"],
            Some("rerank") => vec!["rerank"],
            Some("moderation") => vec!["moderations"],
            Some("speech") => vec!["speech"],
            Some("transcription") => vec!["transcriptions", "translations"],
            Some(_) => vec!["media"],
        };
    };
    let family = FAMILIES.iter().find(|family| family.id == text.family);
    family.map_or_else(Vec::new, |family| family.protocols.to_vec())
}

/// The model that was given, or else the first one of a kind that the gateway lists, or the catalog if the list fails: the
/// call itself then says why.
pub(crate) async fn choose(client: &Client, given: Option<String>, wanted: &str) -> Result<String, Failure> {
    if let Some(model) = given.filter(|model| !model.is_empty()) {
        return Ok(model);
    }
    let list = match tokio::time::timeout(LOOK, client.models().list()).await {
        Ok(Ok(list)) => list.into_inner().data,
        _ => return Ok(of_catalog(wanted).to_owned()),
    };
    let first = list.iter().find(|model| kind(model) == Some(wanted));
    let first = first.or_else(|| list.iter().find(|model| may_be(model, wanted)));
    first.map(|model| model.id.clone()).ok_or_else(|| {
        let found = match list.len() {
            0 => "the gateway lists no models for this key".to_owned(),
            count => {
                format!("none of the {count} models that the gateway lists is known to be a {wanted} model")
            }
        };
        Failure::Failed(format!("{found}: choose one with --model"))
    })
}

/// The first model of a kind in the catalog.
fn of_catalog(kind: &str) -> &'static str {
    let first = match kind {
        "image" => IMAGE_MODELS.first().map(|model| model.id),
        "video" => VIDEO_MODELS.first().map(|model| model.id),
        _ => TEXT_MODELS.first().map(|model| model.id),
    };
    first.unwrap_or_default()
}

/// Whether a model is of a kind, as far as is known: most gateways list only text models, without their kind.
pub(crate) fn may_be(model: &Model, wanted: &str) -> bool {
    kind(model).map_or(wanted == "text", |kind| kind == wanted)
}

/// The failure of a call. If the gateway doesn't know the model, the message suggests one of the wanted kind that it has.
pub(crate) async fn unless_known(client: &Client, model: &str, wanted: &str, error: Error) -> Failure {
    let is_unknown = error.code() == Some(ErrorCode::MODEL_NOT_FOUND.code);
    let failure = Failure::from(error);
    if !is_unknown {
        return failure;
    }
    let list = client.models();
    let Ok(Ok(list)) = tokio::time::timeout(LOOK, list.list()).await else { return failure };
    // A listed model can't be the intended one: it serves another operation.
    let usable = list.data.iter().filter(|listed| listed.id != model && may_be(listed, wanted));
    let ids: Vec<&str> = usable.map(|listed| listed.id.as_str()).collect();
    let is_of_other_kind = list.data.iter().any(|listed| listed.id == model && !may_be(listed, wanted));
    let offer = match (suggestion(model, &ids), ids.first()) {
        // It resembles none of them, but the user needs one.
        (offer, Some(first)) if offer.is_empty() && is_of_other_kind => {
            format!("; a {wanted} model is, for example, {first}")
        }
        (offer, _) => offer,
    };
    let offer = visible(&offer).into_owned();
    match failure {
        Failure::Failed(message) => Failure::Failed(message + &offer),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(document: serde_json::Value) -> Model {
        serde_json::from_value(document).expect("a model")
    }

    #[test]
    fn models_of_unknown_kind_count_as_text() {
        let of = |document: serde_json::Value| -> Model {
            let mut whole =
                serde_json::json!({ "id": "x", "object": "model", "created": 1, "owned_by": "us" });
            whole
                .as_object_mut()
                .expect("an object")
                .extend(document.as_object().expect("an object").clone());
            model(whole)
        };
        let (unknown, image) = (of(serde_json::json!({})), of(serde_json::json!({ "kind": "image" })));
        assert!(may_be(&unknown, "text") && !may_be(&unknown, "image"));
        assert!(may_be(&image, "image") && !may_be(&image, "text"));
    }

    #[test]
    fn gateway_metadata_takes_precedence_over_the_catalog() {
        let of_catalog = model(serde_json::json!({
            "id": "model-sol", "object": "model", "created": 1, "owned_by": "family_one",
        }));
        assert_eq!(
            row(&of_catalog),
            ["model-sol", "text", "family_one", "chat, responses, messages, native"]
        );
        let of_gateway = model(serde_json::json!({
            "id": "model-sol", "object": "model", "created": 1, "owned_by": "us", "kind": "image", "protocols": ["media"],
        }));
        assert_eq!(row(&of_gateway), ["model-sol", "image", "us", "media"]);
        let embedding = model(serde_json::json!({
            "id": "embedding_model_1", "object": "model", "created": 1, "owned_by": "gateway",
        }));
        assert_eq!(row(&embedding), ["embedding_model_1", "embedding", "gateway", "embeddings"]);
        let unknown = model(serde_json::json!({"id": "x", "object": "model", "created": 1, "owned_by": ""}));
        assert_eq!(row(&unknown), ["x", "-", "-", "-"]);
    }
}
