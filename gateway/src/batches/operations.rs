//! The operations on batches.

use std::sync::Arc;
use std::time::Instant;

use gatewright::ErrorCode;
use gatewright_protocol::conversation::Usage;
use gatewright_protocol::json::{limit, text};
use gatewright_store::{ObjectKind, ObjectPage};
use http::{HeaderValue, Method};
use serde_json::Value;
use tracing::Span;

use super::files::{kind_of, listed};
use super::follow::{self, FollowedBatch};
use super::{described, found, lines, placed, provider_of, request, simulated, to_the_end};
use crate::access::{model_refused, operation_refused, refused};
use crate::app::App;
use crate::model_scope;
use crate::relay::ObjectFailure;
use crate::routing::Provider;
use crate::storage::{BatchRequests, ObjectRecord};
use crate::upstream::ObjectRequest;
use crate::usage::{Caller, Charge, MediaUnits};
use crate::wire::{ApiError, Call, Response, json_response};

/// `POST /v1/batches`.
pub(crate) async fn create(app: &Arc<App>, call: Call) -> Result<Response, ApiError> {
    let own = Arc::clone(app);
    to_the_end(app, async move { created(&own, call).await }).await
}

async fn created(app: &Arc<App>, call: Call) -> Result<Response, ApiError> {
    let body = call.checked_body()?;
    let file =
        app.storage.objects.find(call.caller.id(), ObjectKind::File, text(&body["input_file_id"])).await?;
    let wrong =
        |param, message: &str| ApiError::new(&ErrorCode::INVALID_VALUE, message.to_owned()).param(param);
    let file = file.ok_or_else(|| wrong("input_file_id", "this API key has no file with this id"))?;
    let requests = file.requests.clone().ok_or_else(|| {
        wrong("input_file_id", "the file has no requests: upload it again with the purpose batch")
    })?;
    if body["endpoint"] != requests.endpoint.as_str() {
        let message =
            format!("the requests of the file have the url {}; name it as the endpoint", requests.endpoint);
        return Err(wrong("endpoint", &message));
    }
    // What the key may do may have changed since the upload.
    let operation =
        lines::operation_at(&requests.endpoint).ok_or_else(|| wrong("endpoint", "it is unknown"))?;
    if !call.caller.scopes().allow_operation(operation) {
        return Err(operation_refused(operation));
    }
    if !model_scope::allows(&app.live.routes.load(), &call.caller, &requests.model) {
        return Err(model_refused(&requests.model));
    }
    let provider = provider_of(app, &file)?;
    let model = requests.model.clone();
    let document = if provider.is_simulator() {
        simulated::begin(app, &call, &body, file, requests).await?
    } else {
        relayed(app, &call, &provider, file, requests).await?
    };
    Ok(placed(json_response(&document), &provider, &model))
}

/// Creates a batch at its upstream, and follows it.
async fn relayed(
    app: &Arc<App>,
    call: &Call,
    provider: &Arc<Provider>,
    file: ObjectRecord,
    requests: BatchRequests,
) -> Result<Value, ApiError> {
    let charge = charge(app, call.caller.clone(), provider, &requests);
    let charge = reserved(charge, &requests).map_err(|exceeded| refused(exceeded, &call.caller))?;
    let about = ObjectRequest {
        method: Method::POST,
        path: &["batches"],
        body: call.body.clone(),
        media_type: Some(HeaderValue::from_static("application/json")),
        client: &call.headers,
        id: &call.request_id,
    };
    let answer = described(app, call, provider, file.key, about).await;
    let document = answer.map_err(ObjectFailure::into_error)?;
    let record = ObjectRecord {
        document,
        upstream: file.upstream,
        key: file.key,
        requests: Some(requests),
        content: None,
    };
    let (owner, lease) = (call.caller.id(), follow::lease(app, app.config.batch_poll));
    let added = app
        .storage
        .objects
        .add(owner, ObjectKind::Batch, &record, None, Some(lease), app.percent_of_key())
        .await;
    let lease = match added {
        Ok(lease) => lease,
        Err(error) => {
            // Nobody could find it.
            let path = ["batches", record.id(), "cancel"];
            let about = request(Method::POST, &path, &call.headers, &call.request_id);
            if described(app, call, provider, record.key, about).await.is_err() {
                tracing::warn!(
                    upstream = record.upstream,
                    "a batch runs at its provider that no client knows"
                );
            }
            return Err(error);
        }
    };
    let document = record.document.clone();
    follow::start(
        app,
        FollowedBatch { provider: Arc::clone(provider), record, lease, caller: call.caller.clone(), charge },
    );
    Ok(document)
}

/// The charge for a batch.
pub(super) fn charge(app: &App, caller: Caller, provider: &Provider, requests: &BatchRequests) -> Charge {
    let routes = app.live.routes.load();
    let kind = lines::operation_at(&requests.endpoint).map(|operation| kind_of(operation.models));
    let route = kind.and_then(|kind| routes.find_of(kind, &requests.model));
    let upstream = &provider.endpoint.name;
    let rates = route.and_then(|route| route.rates_at(upstream));
    let model = route.map_or_else(|| requests.model.as_str().into(), |route| Arc::clone(&route.id));
    // The trace of the request ends long before the batch does.
    let charge = Span::none().in_scope(|| Charge::new(caller, model, Arc::clone(upstream), Instant::now()));
    let mut charge = charge.priced(rates).for_batch();
    // A client must not gain by results that are too long to be read.
    charge.estimated(expected(requests, requests.output));
    charge
}

fn reserved(charge: Charge, requests: &BatchRequests) -> Result<Charge, crate::usage::LimitExceeded> {
    charge.reserve(expected(requests, requests.output), MediaUnits::default())
}

fn expected(requests: &BatchRequests, output: u64) -> Usage {
    Usage { input: Some(requests.input), output: Some(output), ..Usage::default() }
}

/// `GET /v1/batches/{batch_id}`.
pub(crate) async fn retrieve(app: &App, call: &Call) -> Result<Response, ApiError> {
    let record = found(app, call, ObjectKind::Batch, call.path("batch_id")).await?;
    let provider = provider_of(app, &record)?;
    let model = record.requests.as_ref().map_or("", |requests| &requests.model);
    if provider.is_simulator() {
        return Ok(placed(json_response(&record.document), &provider, model));
    }
    let path = ["batches", record.id()];
    let about = request(Method::GET, &path, &call.headers, &call.request_id);
    answered(app, call, &provider, &record, about).await
}

/// `POST /v1/batches/{batch_id}/cancel`.
pub(crate) async fn cancel(app: &App, call: &Call) -> Result<Response, ApiError> {
    let record = found(app, call, ObjectKind::Batch, call.path("batch_id")).await?;
    let provider = provider_of(app, &record)?;
    if provider.is_simulator() {
        let document = simulated::cancel(app, &record)?;
        let model = record.requests.as_ref().map_or("", |requests| &requests.model);
        return Ok(placed(json_response(&document), &provider, model));
    }
    let path = ["batches", record.id(), "cancel"];
    let about = request(Method::POST, &path, &call.headers, &call.request_id);
    answered(app, call, &provider, &record, about).await
}

/// The batch as its upstream describes it; its results are files of the key from here on.
async fn answered(
    app: &App,
    call: &Call,
    provider: &Provider,
    record: &ObjectRecord,
    about: ObjectRequest<'_>,
) -> Result<Response, ApiError> {
    let document =
        described(app, call, provider, record.key, about).await.map_err(ObjectFailure::into_error)?;
    follow::adopt_results(app, provider, call.caller.id(), record, &document).await?;
    let model = record.requests.as_ref().map_or("", |requests| &requests.model);
    Ok(placed(json_response(&document), provider, model))
}

/// `GET /v1/batches`.
pub(crate) async fn list(app: &App, call: &Call) -> Result<Response, ApiError> {
    let page = ObjectPage {
        kind: ObjectKind::Batch,
        purpose: None,
        after: call.query("after"),
        ascending: false,
        limit: limit(&call.parameter("limit")).unwrap_or(1),
    };
    listed(app, call, page).await
}
