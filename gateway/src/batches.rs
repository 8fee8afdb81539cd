//! Files and batches (ours). A file goes to one upstream, which its id names: the store knows who owns it and where it is. A batch is a
//! file of requests; the gateway follows it to its end, because only then its usage is known.

mod files;
mod follow;
pub(crate) mod lines;
mod operations;
mod simulated;
mod supervisor;

use std::sync::Arc;

use gatewright::ErrorCode;
use gatewright_store::ObjectKind;
use http::{HeaderMap, Method};
use serde_json::Value;
use tokio::sync::oneshot;
use tracing::{Instrument as _, Span};

use crate::app::App;
use crate::observe::Origin;
use crate::relay::{self, AttemptFailure, ObjectFailure};
use crate::routing::Provider;
use crate::storage::{MAX_RECORD_BYTES, ObjectRecord};
use crate::upstream::ObjectRequest;
use crate::wire::{ApiError, Call, Response};

pub(crate) use self::files::{
    content, create as create_file, delete as delete_file, list as list_files, retrieve as retrieve_file,
};
pub(crate) use self::operations::{
    cancel as cancel_batch, create as create_batch, list as list_batches, retrieve as retrieve_batch,
};
pub(crate) use self::supervisor::start;

/// Maximum length of the id of an object, in bytes: it becomes part of a path.
const MAX_ID_BYTES: usize = 256;

/// The object that a call names. Errors: its key has none with this id.
async fn found(app: &App, call: &Call, kind: ObjectKind, id: &str) -> Result<ObjectRecord, ApiError> {
    let record = app.storage.objects.find(call.caller.id(), kind, id).await?;
    record.ok_or_else(|| missing(kind))
}

fn missing(kind: ObjectKind) -> ApiError {
    let (what, name) = match kind {
        ObjectKind::File => ("file", "file_id"),
        ObjectKind::Batch => ("batch", "batch_id"),
    };
    let message = format!(
        "this API key has no {what} with this id: it was never created here, was deleted, or has expired"
    );
    ApiError::new(&ErrorCode::NOT_FOUND, message).param(name)
}

/// The upstream that has an object. Errors: it is no longer configured.
fn provider_of(app: &App, record: &ObjectRecord) -> Result<Arc<Provider>, ApiError> {
    app.live.routes.load().provider(&record.upstream).map(Arc::clone).ok_or_else(|| {
        let message = "the provider that has this file or batch is no longer configured";
        ApiError::new(&ErrorCode::SERVER_IS_OVERLOADED, message)
    })
}

/// A request about an object, without a body.
fn request<'a>(method: Method, path: &'a [&'a str], client: &'a HeaderMap, id: &'a str) -> ObjectRequest<'a> {
    ObjectRequest { method, path, body: bytes::Bytes::new(), media_type: None, client, id }
}

/// What an upstream says of an object. Errors: it doesn't answer, or with something else than an object with an id.
async fn described(
    app: &App,
    call: &Call,
    provider: &Provider,
    key: Option<i64>,
    about: ObjectRequest<'_>,
) -> Result<Value, ObjectFailure> {
    let mut share = app.share_of(&call.caller);
    let may_be_abandoned = about.method == Method::GET;
    let asking = relay::ask_about_object(&provider.endpoint, key, about, MAX_RECORD_BYTES, &mut share);
    let answered = tokio::select! {
        biased;
        answered = asking => answered?,
        () = call.presence.ended(), if may_be_abandoned => {
            return Err(ObjectFailure::Failed(ApiError::client_disconnected()));
        }
    };
    let weight = gatewright::json_weight(&answered);
    let redactor = &provider.endpoint.redactor;
    let failed =
        |failure: AttemptFailure| ObjectFailure::Failed(failure.at(&provider.endpoint.label).into_error());
    share.hold(weight).map_err(|why| failed(AttemptFailure::no_room(why, redactor)))?;
    let unusable = || failed(AttemptFailure::broken("is not an object with an id", redactor));
    read(&answered).ok_or_else(unusable)
}

/// An object with a usable id.
fn read(document: &[u8]) -> Option<Value> {
    let document: Value = serde_json::from_slice(document).ok()?;
    let id = document["id"].as_str()?;
    (!id.is_empty() && id.len() <= MAX_ID_BYTES).then_some(document)
}

/// Runs work that creates something at an upstream to its end, also if the client disconnects: nobody would know of it.
async fn to_the_end(
    app: &App,
    work: impl Future<Output = Result<Response, ApiError>> + Send + 'static,
) -> Result<Response, ApiError> {
    let (reply, answer) = oneshot::channel();
    let work = async move { _ = reply.send(work.await) };
    app.task_runner.spawn(work.instrument(Span::current()));
    let stopping = |_| Err(ApiError::new(&ErrorCode::SERVER_IS_OVERLOADED, "the gateway is shutting down"));
    answer.await.unwrap_or_else(stopping)
}

/// Says in a response where the object is. `model`: the id of its model, if it has one.
fn placed(mut response: Response, provider: &Provider, model: &str) -> Response {
    let endpoint = &provider.endpoint;
    if provider.is_simulator() {
        response.headers_mut().insert(relay::SIMULATED_HEADER, relay::SIMULATED);
    } else {
        response.headers_mut().insert(relay::UPSTREAM_HEADER, endpoint.label.clone());
    }
    if !model.is_empty() {
        response.extensions_mut().insert(Origin::new(model.into(), Arc::clone(&endpoint.name)));
    }
    response
}
