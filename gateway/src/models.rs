//! The models (sections 1, 2.9, 2.10): the lists in both styles, and lookups for the other operations.

use gatewright::operations::{self, ErrorStyle, Operation};
use gatewright::{ErrorCode, catalog, limits};
use gatewright_config::ModelKind;
use gatewright_protocol::conversation::Protocol;
use gatewright_protocol::json;
use gatewright_simulator::MAX_ANSWER_TOKENS;
use gatewright_store::Scopes;
use serde_json::{Value, json};

use crate::routing::{ModelRoute, Routes};
use crate::wire::{ApiError, Call, Response, json_response};

/// Creation date of all models in the lists: the start of 2026. The catalog states no dates.
const CREATED: u64 = 1_767_225_600;
/// Prefix of native model names.
const NATIVE_PREFIX: &str = "models/";

/// `GET /v1/models`: the models of the configuration that the key may use.
pub(crate) fn list(routes: &Routes, call: &Call) -> Response {
    let scopes = call.caller.scopes();
    let entries = routes.all().flat_map(|route| names(route, scopes).map(|name| entry(route, name)));
    json_response(&json!({ "object": "list", "data": entries.collect::<Vec<_>>() }))
}

/// The names under which lists show a model to a key, all of which it may use: its id, or those of its aliases that the
/// scope includes if it doesn't include the id.
pub(crate) fn names<'r>(route: &'r ModelRoute, scopes: &Scopes) -> impl Iterator<Item = &'r str> {
    let own = scopes.allow_model(&route.id).then_some(&*route.id);
    let aliases: &[String] = if own.is_some() { &[] } else { &route.model.aliases };
    own.into_iter().chain(aliases.iter().map(String::as_str).filter(|alias| scopes.allow_model(alias)))
}

fn entry(route: &ModelRoute, id: &str) -> Value {
    json!({
        "id": id,
        "object": "model",
        "created": CREATED,
        "owned_by": route.model.owner.as_ref().unwrap_or(&route.model.family),
        "kind": route.model.kind.name(),
        "protocols": protocols(route),
    })
}

/// The protocols that serve a model.
fn protocols(route: &ModelRoute) -> Vec<&'static str> {
    match route.model.kind {
        ModelKind::Text => text_protocols(route),
        ModelKind::Embedding => vec!["embeddings"],
        ModelKind::Rerank => vec!["rerank"],
        ModelKind::Moderation => vec!["moderations"],
        ModelKind::Speech => vec!["speech"],
        ModelKind::Transcription => vec!["transcriptions", "translations"],
        ModelKind::Image | ModelKind::Video => vec!["media"],
    }
}

/// The protocols that serve a text model.
pub(crate) fn text_protocols(route: &ModelRoute) -> Vec<&'static str> {
    let serving = Protocol::OF_CLIENTS.into_iter().filter(|protocol| route.serves(*protocol));
    serving.map(Protocol::name).collect()
}

/// `GET /v1/models/{model}`: an entry of the list, by its id or an alias.
pub(crate) fn retrieve(routes: &Routes, call: &Call) -> Result<Response, ApiError> {
    let name = call.path("model");
    let route = routes.find(name).ok_or_else(|| absent(name))?;
    Ok(json_response(&entry(route, listed(route, name, call))))
}

/// The name under which a key's lists show the model that it names.
fn listed<'n>(route: &'n ModelRoute, name: &'n str, call: &Call) -> &'n str {
    if call.caller.scopes().allow_model(&route.id) { &route.id } else { name }
}

/// `GET /v1beta/models`: the models that the native protocol serves, page by page.
pub(crate) fn list_native(routes: &Routes, call: &Call) -> Result<Response, ApiError> {
    let scopes = call.caller.scopes();
    let served = || {
        let text = routes.all().filter(|route| route.model.kind == ModelKind::Text);
        text.flat_map(|route| names(route, scopes).map(move |name| (route, name)))
    };
    // A page token names the first model of the page.
    let start = match call.query("pageToken").filter(|token| !token.is_empty()) {
        None => 0,
        Some(token) => served().position(|(_, name)| name == token).ok_or_else(|| {
            ApiError::new(&ErrorCode::INVALID_VALUE, "pageToken is not a page token of this list")
                .param("pageToken")
        })?,
    };
    let mut rest = served().skip(start);
    let size = json::limit(&call.parameter("pageSize")).unwrap_or(usize::MAX);
    let models: Vec<Value> =
        rest.by_ref().take(size).map(|(route, name)| native_entry(route, name)).collect();
    let mut page = json!({ "models": models });
    if let Some((_, next)) = rest.next() {
        page["nextPageToken"] = next.into();
    }
    Ok(json_response(&page))
}

/// `GET /v1beta/models/{model}`: an entry of the native list.
pub(crate) fn retrieve_native(routes: &Routes, call: &Call) -> Result<Response, ApiError> {
    let id = native_id(call);
    let route = routes.find_of(ModelKind::Text, id).ok_or_else(|| missing(id, call.operation))?;
    Ok(json_response(&native_entry(route, listed(route, id, call))))
}

/// The model in the path of a native request. The native list names models `models/<id>`, and so do clients, which
/// results in the path `models/models/<id>`.
pub(crate) fn native_id(call: &Call) -> &str {
    id_of(call.operation, call.path("model"))
}

/// The id of the model that a request of an operation names. Only native requests have a prefix before it.
pub(crate) fn id_of<'a>(operation: &Operation, name: &'a str) -> &'a str {
    match operation.error_style {
        ErrorStyle::Native => name.strip_prefix(NATIVE_PREFIX).unwrap_or(name),
        ErrorStyle::Standard | ErrorStyle::Messages => name,
    }
}

/// The model that a checked request names.
pub(crate) fn named<'a>(call: &'a Call, body: &'a Value) -> &'a str {
    if call.path("model").is_empty() { json::text(&body["model"]) } else { native_id(call) }
}

fn native_entry(route: &ModelRoute, id: &str) -> Value {
    let mut entry = json!({
        "name": format!("{NATIVE_PREFIX}{id}"),
        "baseModelId": id,
        "version": "1",
        "displayName": id,
    });
    if route.is_embedded() {
        entry["description"] = "Answered by the simulated provider.".into();
        entry["inputTokenLimit"] = 1_000_000.into();
        entry["outputTokenLimit"] = MAX_ANSWER_TOKENS.into();
    }
    entry["supportedGenerationMethods"] = json!(["generateContent", "streamGenerateContent", "countTokens"]);
    entry
}

/// The text model that a call names, if its endpoint serves it (1, 4 rules 1 and 2).
pub(crate) fn text_model(id: &str, operation: &Operation) -> Result<&'static catalog::TextModel, ApiError> {
    let model = catalog::TEXT_MODELS.iter().find(|model| model.id == id);
    let served = model.filter(|_| limits::wrong_endpoint(operation, id).is_none());
    served.ok_or_else(|| missing(id, operation))
}

/// The embedding model of a request.
pub(crate) fn embedding_model(
    id: &str,
    operation: &Operation,
) -> Result<&'static catalog::EmbeddingModel, ApiError> {
    catalog::EMBEDDING_MODELS.iter().find(|model| model.id == id).ok_or_else(|| missing(id, operation))
}

/// Checks that a model without limits is one of the catalog, of a kind. Errors: it is not.
pub(crate) fn plain_model(id: &str, kind: ModelKind, operation: &Operation) -> Result<(), ApiError> {
    let is_known = ModelKind::in_catalog(id) == Some(kind);
    if is_known { Ok(()) } else { Err(missing(id, operation)) }
}

/// The model of a request that names none: the first one of a kind that the key may use. Errors: there is none.
pub(crate) fn default_of(routes: &Routes, call: &Call, kind: ModelKind) -> Result<String, ApiError> {
    let scopes = call.caller.scopes();
    let of_kind = routes.all().filter(|route| route.model.kind == kind);
    let mut usable = of_kind.flat_map(|route| names(route, scopes));
    usable.next().map(str::to_owned).ok_or_else(|| {
        let message = format!("the request names no model, and there is no {} model for it", kind.name());
        ApiError::new(&ErrorCode::MODEL_NOT_FOUND, message).param("model")
    })
}

/// The video model of a request (2.9).
pub(crate) fn video_model(id: &str, operation: &Operation) -> Result<&'static catalog::VideoModel, ApiError> {
    catalog::VIDEO_MODELS.iter().find(|model| model.id == id).ok_or_else(|| missing(id, operation))
}

/// The image model of a request (2.10).
pub(crate) fn image_model(id: &str, operation: &Operation) -> Result<&'static catalog::ImageModel, ApiError> {
    catalog::IMAGE_MODELS.iter().find(|model| model.id == id).ok_or_else(|| missing(id, operation))
}

/// The error for a model that an endpoint does not serve, although others do.
pub(crate) fn elsewhere(id: &str, operation: &Operation) -> ApiError {
    let (id, path) = (limits::brief(format_args!("{id:?}")), operation.path);
    let right = operations::CREATE_CHAT_COMPLETION.path;
    let message = format!("the model {id} is not served at POST {path}; use POST {right}");
    ApiError::new(&ErrorCode::INVALID_VALUE, message).param("model")
}

/// The error for a model that generates something other than the endpoint does, or doesn't exist.
pub(crate) fn unserved(routes: &Routes, id: &str, operation: &Operation) -> ApiError {
    let Some(route) = routes.find(id) else { return missing(id, operation) };
    let (what, right) = match route.model.kind {
        ModelKind::Text => ("a text model", operations::CREATE_CHAT_COMPLETION),
        ModelKind::Embedding => ("an embedding model", operations::CREATE_EMBEDDING),
        ModelKind::Rerank => ("a rerank model", operations::CREATE_RERANK),
        ModelKind::Moderation => ("a moderation model", operations::CREATE_MODERATION),
        ModelKind::Speech => ("a speech model", operations::CREATE_SPEECH),
        ModelKind::Transcription => ("a transcription model", operations::CREATE_TRANSCRIPTION),
        ModelKind::Image => ("an image model", operations::CREATE_IMAGE),
        ModelKind::Video => ("a video model", operations::CREATE_VIDEO),
    };
    let (id, here, right) = (limits::brief(format_args!("{id:?}")), operation.path, right.path);
    let message = format!("the model {id} is {what}, which POST {here} does not serve; use POST {right}");
    ApiError::new(&ErrorCode::MODEL_NOT_FOUND, message).param("model")
}

/// The error for a model that does not exist, or not at this endpoint.
pub(crate) fn missing(id: &str, operation: &Operation) -> ApiError {
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
