//! The operations on files.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use gatewright::ErrorCode;
use gatewright::redact::Redactor;
use gatewright_config::ModelKind;
use gatewright_protocol::json::{limit, text};
use gatewright_store::{FileKind, ObjectKind, ObjectPage};
use gatewright_system::clock::unix_seconds;
use http::{HeaderValue, Method, header};
use serde_json::{Value, json};
use uuid::Uuid;

use super::lines::{self, Lines};
use super::{described, found, missing, placed, provider_of, request, to_the_end};
use crate::access::operation_refused;
use crate::app::App;
use crate::bounds::memory_budget::ReservationError;
use crate::relay::{self, AttemptFailure, ObjectFailure};
use crate::routing::{Destination, ModelRoute, Routes};
use crate::storage::{BatchRequests, LIFETIME, ObjectRecord};
use crate::upstream::ObjectRequest;
use crate::usage::Caller;
use crate::wire::{ApiError, Body, Call, Response, held_json, hold, json_response};
use crate::{model_scope, models};

/// Maximum length of the name of a file that is shown, in characters.
const MAX_NAME_CHARS: usize = 256;
/// Maximum length of the purpose of a file, in bytes: the store keeps it.
const MAX_PURPOSE_BYTES: usize = 64;

/// `POST /v1/files`.
pub(crate) async fn create(app: &Arc<App>, call: Call) -> Result<Response, ApiError> {
    let own = Arc::clone(app);
    to_the_end(app, async move { uploaded(&own, call).await }).await
}

async fn uploaded(app: &Arc<App>, call: Call) -> Result<Response, ApiError> {
    let body = call.checked_body()?;
    if text(&body["purpose"]).len() > MAX_PURPOSE_BYTES {
        let message = format!("purpose is longer than {MAX_PURPOSE_BYTES} bytes");
        return Err(ApiError::new(&ErrorCode::INVALID_VALUE, message).param("purpose"));
    }
    let routes = app.live.routes.load_full();
    let file = call.form.as_ref().and_then(|form| form.file("file")).unwrap_or_default();
    let chosen = if body["purpose"] == "batch" {
        let mut share = app.share_of(&call.caller);
        share.hold(lines::weight(&file)).map_err(no_room)?;
        let (file, caller, routes) = (file.clone(), call.caller.clone(), Arc::clone(&routes));
        let chosen =
            app.resources.blocking_pool.work(move |_| Chosen::for_batch(&routes, &caller, &file)).await?;
        drop(share);
        chosen
    } else {
        Chosen::for_file(&routes, &call.caller)?
    };
    let Chosen { destination, route, requests, models } = chosen;
    let provider = Arc::clone(&destination.provider);
    let (mut record, expires) = if provider.is_simulator() {
        let room = app.room_for_files(call.caller.id(), file.len()).await?;
        // A copy.
        let mut share = app.share_of(&call.caller);
        share.hold(file.len()).map_err(no_room)?;
        let kept = room.keep(FileKind::Data, vec![file.to_vec()], LIFETIME).await?.remove(0);
        let name = shown_name(text(&body["file"]));
        (simulated(&provider.endpoint.name, &name, &body["purpose"], file.len(), kept), Some(LIFETIME))
    } else {
        let document = upload(app, &call, &destination, &models).await?;
        let key = provider.endpoint.mark_of(0);
        (record(document, &provider.endpoint.name, key, None), None)
    };
    record.requests = requests;
    let owner = call.caller.id();
    let added =
        app.storage.objects.add(owner, ObjectKind::File, &record, expires, None, app.percent_of_key()).await;
    if let Err(error) = added {
        // Nobody could find it.
        discard(app, &call, &record).await;
        return Err(error);
    }
    Ok(placed(json_response(&record.document), &provider, &route.id))
}

/// A file of the simulator.
pub(super) fn simulated(
    upstream: &str,
    name: &str,
    purpose: &Value,
    bytes: usize,
    content: gatewright_store::StoredFile,
) -> ObjectRecord {
    let document = json!({
        "id": format!("file-{}", Uuid::new_v4().simple()),
        "object": "file",
        "bytes": bytes,
        "created_at": unix_seconds(),
        "expires_at": content.expires,
        "filename": name,
        "purpose": purpose,
        "status": "processed",
    });
    record(document, upstream, None, Some(content))
}

fn record(
    document: Value,
    upstream: &str,
    key: Option<i64>,
    content: Option<gatewright_store::StoredFile>,
) -> ObjectRecord {
    ObjectRecord { document, upstream: upstream.to_owned(), key, requests: None, content }
}

/// The error while there is no memory for a file.
fn no_room(why: ReservationError) -> ApiError {
    AttemptFailure::no_room(why, &Redactor::default()).into_error()
}

fn shown_name(name: &str) -> String {
    name.chars().filter(|character| !character.is_control()).take(MAX_NAME_CHARS).collect()
}

/// Where a file goes.
struct Chosen {
    destination: Arc<Destination>,
    route: Arc<ModelRoute>,
    /// Its requests, if it is for a batch.
    requests: Option<BatchRequests>,
    /// Where they name their model, with its quotes.
    models: Vec<Range<usize>>,
}

impl Chosen {
    /// The upstream of the requests. Errors: they are malformed, or the key may not send them; their model has no upstream with batches.
    fn for_batch(routes: &Routes, caller: &Caller, file: &Bytes) -> Result<Self, ApiError> {
        let Lines { operation, model, requests, models, input, output, unlimited } = lines::read(file)?;
        if !caller.scopes().allow_operation(operation) {
            return Err(operation_refused(operation));
        }
        for line in &requests {
            model_scope::check(routes, caller, operation, &[], line.body.as_bytes())?;
        }
        let route = routes.find_of(kind_of(operation.models), &model);
        let Some(route) = route.map(Arc::clone) else {
            return Err(models::unserved(routes, &model, operation));
        };
        let destination = route.destination_with_files().ok_or_else(|| {
            let kinds = "upstreams of the kinds gatewright and simulator, and those with files = true, do";
            let message = format!("no upstream of the model {model} supports files and batches; {kinds}");
            ApiError::new(&ErrorCode::NOT_FOUND, message).param("file")
        })?;
        let requests = BatchRequests {
            model,
            endpoint: operation.path.to_owned(),
            count: requests.len() as u64,
            input,
            output: output.saturating_add(unlimited.saturating_mul(route.model.default_max_tokens)),
        };
        Ok(Self { destination: Arc::clone(destination), route, requests: Some(requests), models })
    }

    /// The first upstream with files, among those of the models that the key may use. Errors: there is none.
    fn for_file(routes: &Routes, caller: &Caller) -> Result<Self, ApiError> {
        let usable = |route: &&Arc<ModelRoute>| {
            models::names(route, caller.scopes()).next().is_some() && route.destination_with_files().is_some()
        };
        let route = routes.all().find(usable).map(Arc::clone).ok_or_else(|| {
            let message = "no model of this API key has an upstream that supports files; upstreams of the kinds gatewright and simulator, \
                           and those with files = true, do";
            ApiError::new(&ErrorCode::NOT_FOUND, message).param("purpose")
        })?;
        let destination = route.destination_with_files().map(Arc::clone).expect("it has one");
        Ok(Self { destination, route, requests: None, models: Vec::new() })
    }
}

pub(super) fn kind_of(models: Option<gatewright::operations::ModelKind>) -> ModelKind {
    match models {
        Some(gatewright::operations::ModelKind::Embedding) => ModelKind::Embedding,
        Some(gatewright::operations::ModelKind::Moderation) => ModelKind::Moderation,
        _ => ModelKind::Text,
    }
}

/// Sends a file to its upstream, with its name for the model.
async fn upload(
    app: &App,
    call: &Call,
    destination: &Destination,
    models: &[Range<usize>],
) -> Result<Value, ApiError> {
    let form = call.form.as_ref().expect("the operation has a form");
    let name = Value::from(&*destination.model).to_string();
    let provider = &destination.provider;
    // A copy, with other names.
    let mut share = app.share_of(&call.caller);
    let room = form.bytes.len().saturating_add(models.len().saturating_mul(name.len()));
    share.hold(room).map_err(no_room)?;
    let edits: Vec<_> = models.iter().map(|at| (at.clone(), name.as_bytes())).collect();
    let body = form.with_file("file", &edits);
    let about = ObjectRequest {
        method: Method::POST,
        path: &["files"],
        body,
        media_type: Some(form.media_type.clone()),
        client: &call.headers,
        id: &call.request_id,
    };
    let described = described(app, call, provider, provider.endpoint.mark_of(0), about).await;
    described.map_err(ObjectFailure::into_error)
}

/// Deletes a file that its client doesn't learn of.
async fn discard(app: &App, call: &Call, record: &ObjectRecord) {
    if let Some(content) = &record.content {
        return app.storage.files.discard(content.name.clone()).await;
    }
    let Ok(provider) = provider_of(app, record) else { return };
    let path = ["files", record.id()];
    let about = request(Method::DELETE, &path, &call.headers, &call.request_id);
    if described(app, call, &provider, record.key, about).await.is_err() {
        tracing::warn!(upstream = record.upstream, "a file remains at its provider that no client knows");
    }
}

/// `GET /v1/files/{file_id}`.
pub(crate) async fn retrieve(app: &App, call: &Call) -> Result<Response, ApiError> {
    let record = found(app, call, ObjectKind::File, call.path("file_id")).await?;
    let provider = provider_of(app, &record)?;
    if record.content.is_some() {
        return Ok(placed(json_response(&record.document), &provider, ""));
    }
    let path = ["files", record.id()];
    let about = request(Method::GET, &path, &call.headers, &call.request_id);
    let document = described(app, call, &provider, record.key, about).await;
    let document = document.map_err(ObjectFailure::into_error)?;
    Ok(placed(json_response(&document), &provider, ""))
}

/// `DELETE /v1/files/{file_id}`.
pub(crate) async fn delete(app: &App, call: &Call) -> Result<Response, ApiError> {
    let id = call.path("file_id");
    let record = found(app, call, ObjectKind::File, id).await?;
    let provider = provider_of(app, &record)?;
    if let Some(content) = &record.content {
        app.storage.files.discard(content.name.clone()).await;
    } else {
        let path = ["files", record.id()];
        let about = request(Method::DELETE, &path, &call.headers, &call.request_id);
        match described(app, call, &provider, record.key, about).await {
            Ok(_) | Err(ObjectFailure::Unknown(_)) => {}
            Err(ObjectFailure::Failed(error)) => return Err(error),
        }
    }
    app.storage.objects.remove(call.caller.id(), ObjectKind::File, id).await?;
    Ok(placed(json_response(&json!({ "id": id, "object": "file", "deleted": true })), &provider, ""))
}

/// `GET /v1/files/{file_id}/content`.
pub(crate) async fn content(app: &App, call: &Call) -> Result<Response, ApiError> {
    let record = found(app, call, ObjectKind::File, call.path("file_id")).await?;
    let provider = provider_of(app, &record)?;
    let mut response = if let Some(content) = &record.content {
        let Some(file) = app.storage.files.find(&content.name).await? else {
            return Err(missing(ObjectKind::File));
        };
        let mut response = Response::new(match file.bytes {
            0 => Body::empty(),
            bytes => Body::from_stream(file.read(0..bytes).await?),
        });
        response.headers_mut().insert(header::CONTENT_LENGTH, file.bytes.into());
        response
    } else {
        let path = ["files", record.id(), "content"];
        let about = request(Method::GET, &path, &call.headers, &call.request_id);
        let mut share = app.share_of(&call.caller);
        let endpoint = &provider.endpoint;
        let most = relay::MAX_DOCUMENT_BYTES;
        let asking = relay::ask_about_object(endpoint, record.key, about, most, &mut share);
        let content = tokio::select! {
            biased;
            content = asking => content.map_err(ObjectFailure::into_error)?,
            () = call.presence.ended() => return Err(ApiError::client_disconnected()),
        };
        hold(Response::new(Body::from(content)), share)
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    // A browser must not run it.
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    Ok(placed(response, &provider, ""))
}

/// `GET /v1/files`.
pub(crate) async fn list(app: &App, call: &Call) -> Result<Response, ApiError> {
    let page = ObjectPage {
        kind: ObjectKind::File,
        purpose: call.query("purpose"),
        after: call.query("after"),
        ascending: call.parameter("order") == "asc",
        limit: limit(&call.parameter("limit")).unwrap_or(1),
    };
    listed(app, call, page).await
}

/// A page of objects as a list.
pub(super) async fn listed(app: &App, call: &Call, page: ObjectPage<'_>) -> Result<Response, ApiError> {
    // One more tells whether another page follows.
    let with_next = ObjectPage { limit: page.limit.saturating_add(1), ..page };
    let records = app.storage.objects.list(call.caller.id(), with_next).await?.ok_or_else(|| {
        let message = "after is not the id of an object of this list";
        ApiError::new(&ErrorCode::INVALID_VALUE, message).param("after")
    })?;
    let has_more = records.len() > page.limit;
    let data: Vec<Value> = records.into_iter().take(page.limit).map(|record| record.document).collect();
    let id = |object: Option<&Value>| object.map(|object| object["id"].clone());
    let page = json!({
        "object": "list",
        "first_id": id(data.first()),
        "last_id": id(data.last()),
        "has_more": has_more,
        "data": data,
    });
    let page = Bytes::from(page.to_string());
    let mut share = app.share_of(&call.caller);
    share.hold(page.len()).map_err(no_room)?;
    Ok(held_json(page, share))
}
