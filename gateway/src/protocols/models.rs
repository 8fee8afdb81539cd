//! The models (sections 1, 2.9, 2.10): the lists in both styles, and lookups for the other operations.

use gatewright::operations::Operation;
use gatewright::{ErrorCode, catalog, limits};
use serde_json::{Value, json};

use crate::simulator::LONGEST_ANSWER;
use crate::wire::{ApiError, Call, Response, json, json_response};

/// Creation date of all models in the lists: the start of 2026. The catalog states no dates.
const CREATED: u64 = 1_767_225_600;
/// Prefix of native model names.
const NATIVE_PREFIX: &str = "models/";

/// `GET /v1/models`: all models of the catalog.
pub(crate) fn list() -> Response {
    json_response(&json!({ "object": "list", "data": entries().collect::<Vec<Value>>() }))
}

fn entries() -> impl Iterator<Item = Value> {
    let entry =
        |id: &str, owner: &str| json!({ "id": id, "object": "model", "created": CREATED, "owned_by": owner });
    let text = catalog::TEXT_MODELS.iter().map(move |model| entry(model.id, model.family));
    // The catalog states no family for these.
    let videos = catalog::VIDEO_MODELS.iter().map(move |model| entry(model.id, "gateway"));
    let images = catalog::IMAGE_MODELS.iter().map(move |model| entry(model.id, "gateway"));
    text.chain(videos).chain(images)
}

/// `GET /v1/models/{model}`: an entry of the list.
pub(crate) fn retrieve(call: &Call) -> Result<Response, ApiError> {
    let id = call.path("model");
    let entry = entries().find(|entry| entry["id"] == id).ok_or_else(|| absent(id))?;
    Ok(json_response(&entry))
}

/// `GET /v1beta/models`: the models that the native protocol serves, page by page.
pub(crate) fn list_native(call: &Call) -> Result<Response, ApiError> {
    let served: Vec<&catalog::TextModel> =
        catalog::TEXT_MODELS.iter().filter(|model| serves(model, "native")).collect();
    // A page token names the first model of the page.
    let start = match call.query("pageToken").filter(|token| !token.is_empty()) {
        None => 0,
        Some(token) => served.iter().position(|model| model.id == token).ok_or_else(|| {
            ApiError::new(&ErrorCode::INVALID_VALUE, "pageToken is not a token from this list")
                .param("pageToken")
        })?,
    };
    let size = json::limit(&call.parameter("pageSize")).unwrap_or(served.len());
    let models: Vec<Value> = served[start..].iter().take(size).map(|model| native_entry(model.id)).collect();
    let mut page = json!({ "models": models });
    if let Some(next) = served.get(start.saturating_add(size)) {
        page["nextPageToken"] = json!(next.id);
    }
    Ok(json_response(&page))
}

/// `GET /v1beta/models/{model}`: an entry of the native list.
pub(crate) fn retrieve_native(call: &Call) -> Result<Response, ApiError> {
    Ok(json_response(&native_entry(native_model(call)?.id)))
}

/// The model in the path of a native request. The native list names models `models/<id>`, and so do clients, which gives
/// the path `models/models/<id>`.
pub(crate) fn native_model(call: &Call) -> Result<&'static catalog::TextModel, ApiError> {
    let name = call.path("model");
    text_model(name.strip_prefix(NATIVE_PREFIX).unwrap_or(name), call.operation)
}

fn native_entry(id: &str) -> Value {
    json!({
        "name": format!("{NATIVE_PREFIX}{id}"),
        "baseModelId": id,
        "version": "1",
        "displayName": id,
        "description": "Answered by the simulated provider.",
        "inputTokenLimit": 1_000_000,
        "outputTokenLimit": LONGEST_ANSWER,
        "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
    })
}

/// The text model that a call names, if its endpoint serves it (1, 4 rules 1 and 2).
pub(crate) fn text_model(id: &str, operation: &Operation) -> Result<&'static catalog::TextModel, ApiError> {
    let model = catalog::TEXT_MODELS.iter().find(|model| model.id == id);
    let served = model.filter(|_| limits::wrong_endpoint(operation, id).is_none());
    served.ok_or_else(|| missing(id, operation))
}

/// The video model of a request (2.9).
pub(crate) fn video_model(id: &str, operation: &Operation) -> Result<&'static catalog::VideoModel, ApiError> {
    catalog::VIDEO_MODELS.iter().find(|model| model.id == id).ok_or_else(|| missing(id, operation))
}

/// The image model of a request (2.10).
pub(crate) fn image_model(id: &str, operation: &Operation) -> Result<&'static catalog::ImageModel, ApiError> {
    catalog::IMAGE_MODELS.iter().find(|model| model.id == id).ok_or_else(|| missing(id, operation))
}

fn missing(id: &str, operation: &Operation) -> ApiError {
    let message = match limits::wrong_endpoint(operation, id) {
        Some(elsewhere) => elsewhere.message,
        None => return absent(id),
    };
    ApiError::new(&ErrorCode::MODEL_NOT_FOUND, message).param("model")
}

fn absent(id: &str) -> ApiError {
    let id = limits::brief(format_args!("{id:?}"));
    let message = format!("there is no model {id}; GET /v1/models lists the models");
    ApiError::new(&ErrorCode::MODEL_NOT_FOUND, message).param("model")
}

fn serves(model: &catalog::TextModel, protocol: &str) -> bool {
    family(model).is_some_and(|family| family.protocols.contains(&protocol))
}

fn family(model: &catalog::TextModel) -> Option<&'static catalog::Family> {
    catalog::FAMILIES.iter().find(|family| family.id == model.family)
}
