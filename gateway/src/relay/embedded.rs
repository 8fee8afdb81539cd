//! Calls the embedded provider in this process.

mod embeddings;
mod images;
mod plain;
mod speech;
mod transcripts;
mod turn;

use std::sync::Arc;

use gatewright_protocol::conversation::Protocol;
use gatewright_protocol::{Action, PlainAction};
use gatewright_simulator::budget::Budget;
use http::{HeaderName, HeaderValue, header};

use self::turn::EmbeddedRequest;
use super::attempt::SuccessfulAnswer;
use super::event_reader::StreamFormat;
use super::failure::AttemptFailure;
use super::prepare::UpstreamRequest;
use super::translate_request::DROPPED_HEADER;
use super::{RequestContext, attempt};
use crate::routing::UpstreamAttempt;
use crate::storage::PendingStore;
use crate::wire::{ApiError, Call, Response};

/// Marks an answer of the simulator, also an error: no provider made it.
pub(crate) const SIMULATED_HEADER: HeaderName = HeaderName::from_static("x-gatewright-simulated");
/// The value of that header.
pub(crate) const SIMULATED: HeaderValue = HeaderValue::from_static("true");

/// The answer of the embedded provider. Errors: from the provider, or no budget has room for the request.
pub(super) async fn answer(
    request_context: &RequestContext,
    mut upstream_request: UpstreamRequest,
    mut attempt: UpstreamAttempt,
) -> Result<Response, ApiError> {
    let charge = request_context.charge(&attempt)?;
    let mut attempt_metrics = request_context.attempt_metrics(&attempt);
    match answered(request_context, &mut upstream_request, &mut attempt).await {
        Ok(answered) => {
            Ok(request_context.respond(answered, &upstream_request, attempt, charge, attempt_metrics))
        }
        Err(error) => {
            attempt_metrics.refused(error.code().status);
            charge.void();
            Err(error.header(SIMULATED_HEADER, SIMULATED))
        }
    }
}

async fn answered(
    request_context: &RequestContext,
    upstream_request: &mut UpstreamRequest,
    attempt: &mut UpstreamAttempt,
) -> Result<SuccessfulAnswer, ApiError> {
    let call = call_of(request_context, upstream_request, &attempt.destination.model);
    let response = match request_context.action {
        Action::Image => images::create(&request_context.app, &call).await?,
        Action::Plain(action) => {
            let model = Arc::clone(&attempt.destination.model);
            let create = move |budget: &Budget| match action {
                PlainAction::Embed { .. } => embeddings::create(&call, budget),
                PlainAction::Rerank => plain::rerank(&call, &model, budget),
                PlainAction::Moderate => plain::moderate(&call, &model, budget),
                PlainAction::Speak => speech::create(&call, &model, budget),
                PlainAction::Transcribe | PlainAction::Translate => {
                    transcripts::create(&call, &model, budget)
                }
            };
            request_context.app.resources.blocking_pool.work(create).await?
        }
        _ => {
            let request = EmbeddedRequest::new(request_context, call);
            request_context.app.resources.blocking_pool.work(move |budget| request.answer(budget)).await?
        }
    };
    attempt.succeeded(std::time::Instant::now());
    if response.extensions().get::<PendingStore>().is_some() {
        request_context.app.storage.history_keeper.written().await;
    }
    let (mut head, body) = response.into_parts();
    if let Some(ignored) = head.headers.remove(DROPPED_HEADER) {
        upstream_request.dropped = Some(ignored);
    }
    if request_context.action == Action::Plain(PlainAction::Speak) {
        let sound = attempt::sound(request_context, upstream_request, attempt, &head.headers, body);
        return sound.await.map_err(AttemptFailure::into_error);
    }
    let media_type = head.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let media_type = media_type.and_then(|value| std::str::from_utf8(value).ok());
    let format = media_type.and_then(StreamFormat::of);
    attempt::passed(request_context, upstream_request, attempt, body, format)
        .await
        .map_err(AttemptFailure::into_error)
}

/// The call with the provider's name of the model.
fn call_of(request_context: &RequestContext, upstream_request: &UpstreamRequest, model: &str) -> Arc<Call> {
    if request_context.meta.model == model {
        return Arc::clone(&request_context.call);
    }
    let mut call = Call::clone(&request_context.call);
    call.body = match &call.form {
        // It reads the members and, of the form, only the file.
        Some(_) => request_context.meta.named(Protocol::Chat, model),
        None => upstream_request.body.clone(),
    };
    for (_, value) in call.path.iter_mut().filter(|(name, _)| name == "model") {
        model.clone_into(value);
    }
    Arc::new(call)
}

#[cfg(test)]
mod tests {
    use http::Request;
    use serde_json::json;

    use super::SIMULATED_HEADER;
    use crate::server::Embedded;
    use gatewright_config::Config;

    #[tokio::test]
    async fn every_simulated_response_has_the_simulated_header() {
        let gateway = Embedded::new(Config::default()).expect("a gateway");
        let authorization = format!("Bearer {}", gateway.key().expose());
        let say_hi = json!([{ "role": "user", "content": "Say hi" }]);
        let contents = json!({ "contents": [{ "role": "user", "parts": [{ "text": "Say hi" }] }] });
        for (path, body) in [
            ("/v1/chat/completions", json!({ "model": "model-sol", "messages": say_hi })),
            ("/v1/chat/completions", json!({ "model": "model-sol", "messages": say_hi, "stream": true })),
            ("/v1/responses", json!({ "model": "model-sol", "input": "Say hi" })),
            ("/v1/embeddings", json!({ "model": "embedding_model_1", "input": "Say hi" })),
            ("/v1/rerank", json!({ "model": "rerank_model_1", "query": "hi", "documents": ["Say hi"] })),
            ("/v1/moderations", json!({ "input": "Say hi" })),
            ("/v1/audio/speech", json!({ "model": "speech_model_1", "input": "Say hi", "voice": "a" })),
            ("/v1/messages", json!({ "model": "model-sol", "messages": say_hi, "max_tokens": 99 })),
            ("/v1/messages/count_tokens", json!({ "model": "model-sol", "messages": say_hi })),
            (
                "/v1/images/generations",
                json!({ "model": "image_model_2", "prompt": "hi", "size": "256x256" }),
            ),
            ("/v1/videos/generations", json!({ "model": "video_model_1", "prompt": "hi", "duration": 3 })),
            ("/v1beta/models/model-breeze:generateContent", contents.clone()),
            ("/v1beta/models/model-breeze:streamGenerateContent", contents.clone()),
            ("/v1beta/models/model-breeze:countTokens", contents),
        ] {
            let request = Request::post(path)
                .header("authorization", &authorization)
                .header("content-type", "application/json")
                .body(body.to_string())
                .expect("a request");
            let response = gateway.answer(request).await;
            assert_eq!(response.status(), 200, "{path}");
            assert_eq!(response.headers().get(SIMULATED_HEADER).expect("the header"), "true", "{path}");
        }
        let form = "--b\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\ntranscription_model_1\r\n\
                    --b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nRIFF\r\n--b--\r\n";
        let unknown_format =
            json!({ "model": "model-sol", "messages": say_hi, "response_format": { "type": "x" } });
        for (path, media_type, body, status) in [
            ("/v1/audio/transcriptions", "multipart/form-data; boundary=b", form.to_owned(), 200),
            ("/v1/chat/completions", "application/json", unknown_format.to_string(), 400),
        ] {
            let request = Request::post(path)
                .header("authorization", &authorization)
                .header("content-type", media_type)
                .body(body)
                .expect("a request");
            let response = gateway.answer(request).await;
            assert_eq!(response.status(), status, "{path}");
            assert_eq!(response.headers().get(SIMULATED_HEADER).expect("the header"), "true", "{path}");
        }
    }
}
