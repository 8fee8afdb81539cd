//! Responses that an upstream stores as well: retrieved, listed and deleted there. If it is unavailable or doesn't know them, the
//! gateway's copy is used.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gatewright::ErrorCode;
use gatewright_protocol::conversation::Protocol;
use gatewright_store::StoringUpstream;
use serde_json::json;

use super::attempt;
use super::document::{self, Patience};
use super::error_body;
use super::failure::{AttemptFailure, UPSTREAM_HEADER};
use crate::app::App;
use crate::bounds::memory_budget::Reservation;
use crate::observe::Origin;
use crate::stored_responses;
use crate::upstream::{Endpoint, StoredAction, StoredResponseRequest};
use crate::wire::{ApiError, Call, Response, held_json, json_response};
use gatewright_protocol::inspect::StreamInspector;

/// How long to wait for an upstream if there is a copy.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why an upstream gave no answer.
enum ProxyFailure {
    /// It has no such response, or doesn't store any.
    Unknown,
    Failed(ApiError),
}

/// Handles an operation on a stored response. Errors: there is none with this id; its upstream is unavailable.
pub(crate) async fn answer(app: &Arc<App>, call: Call, action: StoredAction) -> Result<Response, ApiError> {
    if action == StoredAction::Retrieve && call.query("stream") == Some("true") {
        let message = "a stored response cannot be streamed; omit stream";
        return Err(ApiError::new(&ErrorCode::INVALID_VALUE, message).param("stream"));
    }
    stored_responses::seek(&app.storage, &call, call.path("response_id")).await?;
    let known = stored_responses::found(&app.storage, &call)?;
    let Some(holder) = known.holder else { return own(app, call, action).await };
    let has_copy = known.documents.is_some();
    if action == StoredAction::Delete {
        app.access.followed.poll_now(call.path("response_id")).await;
    }
    let request = ask(app, &call, action, &holder, has_copy);
    let answered = tokio::select! {
        biased;
        answered = request => answered,
        () = call.presence.ended() => return Err(ApiError::client_disconnected()),
    };
    match (action, answered) {
        (StoredAction::Delete, Ok(response)) => {
            stored_responses::forget(&app.storage, &call).await?;
            Ok(response)
        }
        (StoredAction::Delete, Err(ProxyFailure::Unknown)) => {
            stored_responses::delete(&app.storage, &call).await
        }
        // Not deleted here while a copy may remain there.
        (StoredAction::Delete, Err(ProxyFailure::Failed(error))) => Err(error),
        (_, Ok(response)) => Ok(response),
        (_, Err(refused)) if has_copy => {
            let copy = own(app, call, action).await;
            copy.map_err(|error| if let ProxyFailure::Failed(failure) = refused { failure } else { error })
        }
        (_, Err(ProxyFailure::Unknown)) => Err(stored_responses::not_found()),
        (_, Err(ProxyFailure::Failed(error))) => Err(error),
    }
}

/// The answer from the gateway's copy.
async fn own(app: &Arc<App>, call: Call, action: StoredAction) -> Result<Response, ApiError> {
    match action {
        StoredAction::Retrieve => stored_responses::retrieve(&app.storage, &call),
        StoredAction::Delete => stored_responses::delete(&app.storage, &call).await,
        StoredAction::InputItems => {
            let worker = Arc::clone(app);
            app.resources
                .blocking_pool
                .work(move |budget| stored_responses::list_input_items(&worker.storage, &call, budget))
                .await
        }
    }
}

/// The upstream's answer.
async fn ask(
    app: &App,
    call: &Call,
    action: StoredAction,
    holder: &StoringUpstream,
    has_copy: bool,
) -> Result<Response, ProxyFailure> {
    let provider = app.live.routes.load().provider(&holder.upstream).map(Arc::clone);
    let Some(provider) = provider else {
        let message = "the provider that stores this response is no longer configured";
        return Err(ProxyFailure::Failed(ApiError::new(&ErrorCode::SERVER_IS_OVERLOADED, message)));
    };
    let endpoint = &provider.endpoint;
    let mut share = app.share_of(&call.caller);
    let reading = read(endpoint, call, action, holder, &mut share);
    let document = if has_copy && action != StoredAction::Delete {
        let silent =
            || ProxyFailure::Failed(AttemptFailure::silent(PATIENCE, &endpoint.redactor).into_error());
        tokio::time::timeout(PATIENCE, reading).await.map_err(|_| silent())??
    } else {
        reading.await?
    };
    let mut response = match document {
        Some(document) => held_json(document, share),
        None => {
            json_response(&json!({ "id": call.path("response_id"), "object": "response", "deleted": true }))
        }
    };
    response.headers_mut().insert(UPSTREAM_HEADER, endpoint.label.clone());
    let (model, upstream) = (Arc::clone(&holder.model), Arc::clone(&endpoint.name));
    response.extensions_mut().insert(Origin::new(model, upstream));
    Ok(response)
}

/// The document that the upstream returns. None if it deleted the response and returned no body.
async fn read(
    endpoint: &Endpoint,
    call: &Call,
    action: StoredAction,
    holder: &StoringUpstream,
    share: &mut Reservation,
) -> Result<Option<Bytes>, ProxyFailure> {
    let client_error = |failure: AttemptFailure| ProxyFailure::Failed(failure.into_error());
    let about = StoredResponseRequest {
        action,
        response: call.path("response_id"),
        query: &call.query,
        client: &call.headers,
        id: &call.request_id,
    };
    let redactor = &endpoint.redactor;
    let answer = endpoint.ask_about(about, holder.key).await;
    let (head, body) =
        answer.map_err(|why| client_error(AttemptFailure::no_answer(&why, redactor)))?.into_parts();
    if !head.status.is_success() {
        let body = error_body::read(attempt::readable(&head.headers, body)).await;
        return Err(match head.status.as_u16() {
            404 | 405 | 410 | 501 => ProxyFailure::Unknown,
            status => client_error(AttemptFailure::of_answer(
                Protocol::Responses,
                status,
                &head.headers,
                &body,
                redactor,
            )),
        });
    }
    let body = attempt::without_codings(&head.headers, body, redactor).map_err(client_error)?;
    let reading = document::read(body, document::MAX_BYTES, Patience::of(endpoint), redactor, share);
    let document = reading.await.map_err(client_error)?;
    if action == StoredAction::Delete && document.is_empty() {
        return Ok(None);
    }
    let mut inspector = StreamInspector::new(Protocol::Responses, &holder.model, false);
    document::passed(&document, &mut inspector, redactor, share).map(Some).map_err(client_error)
}
