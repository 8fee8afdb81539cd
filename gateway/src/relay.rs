//! The request path: prepare the request for an upstream of its model, send it, fail over to the next upstream, and return the
//! response. If client and upstream speak the same protocol, bytes pass through and an inspector reads the usage and the end.
//!
//! The gateway fails over only until it has sent the first response byte. Keep-alive comments don't count.

mod attempt;
mod attempt_metrics;
mod background;
mod compaction;
mod conversation_state;
#[cfg(any(test, fuzzing))]
pub(crate) mod cut;
mod document;
mod download;
mod embedded;
mod error_body;
mod estimate;
mod event_reader;
mod failover;
mod failure;
mod frames;
mod image_files;
mod keepalive;
mod passthrough_request;
mod passthrough_stream;
mod pictures;
mod plain;
mod plain_events;
mod prepare;
mod provider_objects;
mod request_meta;
mod sound;
mod span_attributes;
mod stored_response_proxy;
mod stream;
mod translate_request;
mod translate_stream;
mod videos;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use gatewright::ErrorCode;
use gatewright::operations::{self, Operation, StreamMode};
use gatewright::redact::Redactor;
use gatewright_config::ModelKind;
use gatewright_protocol::conversation::{Protocol, Usage};
use gatewright_protocol::{Action, PlainAction};
use http::{HeaderValue, header};
use tracing::Span;

use self::attempt::SuccessfulAnswer;
use self::attempt_metrics::AttemptMetrics;
use self::background::BackgroundResponse;
pub(crate) use self::document::MAX_BYTES as MAX_DOCUMENT_BYTES;
pub(crate) use self::download::{DownloadError, Medium, download};
pub(crate) use self::embedded::{SIMULATED, SIMULATED_HEADER};
pub(crate) use self::estimate::of_document as tokens_of_document;
pub(crate) use self::failure::{AttemptFailure, FailureClass, UPSTREAM_HEADER};
use self::passthrough_stream::Framing;
pub(crate) use self::prepare::ESTIMATED_HEADER;
use self::prepare::{RequestCache, StreamOptionsUse, UpstreamRequest};
pub(crate) use self::provider_objects::{ObjectFailure, ask_about_object};
pub(crate) use self::request_meta::RequestMeta;
use self::sound::SoundAccount;
use self::span_attributes::RequestSpan;
pub(crate) use self::stored_response_proxy::answer as answer_stored;
pub(crate) use self::translate_request::DROPPED_HEADER;
pub(crate) use self::videos::{AcceptedVideo, MAX_REPORT_MEMORY, Remote, RemoteRecord, VideoRequest, submit};
use crate::access::refused;
use crate::app::App;
use crate::observe::{Origin, current_span};
use crate::routing::{ModelRoute, Plan, UpstreamAttempt};
use crate::storage::{ResponseDocuments, ResponseRecord};
use crate::usage::{Charge, MediaUnits};
use crate::wire::{ApiError, Call, Response, held_json};
use crate::{models, stored_responses};

/// Larger bodies are checked on the blocking pool, so that they don't delay other requests.
const LONG_BODY: usize = 64 * 1024;
/// Buffers of a stream above this size aren't kept for its next event, which may be small and long in coming.
const MAX_SPARE: usize = 64 * 1024;

/// A client's request, and what the gateway knows about it before it chooses an upstream.
struct RequestContext {
    app: Arc<App>,
    call: Arc<Call>,
    protocol: Protocol,
    action: Action,
    meta: RequestMeta,
    framing: Framing,
    /// Whether the client wants the answer as events.
    streams: bool,
    route: Arc<ModelRoute>,
    /// Estimated number of tokens of the request.
    input: u64,
    /// The span of the request, where traces are exported.
    span: Option<Span>,
}

/// Answers a request for a model of any kind but videos. Plain operations and images use the chat protocol: the upstreams that
/// speak it also have these.
pub(crate) async fn answer(app: &Arc<App>, call: Call) -> Response {
    let operation = call.operation;
    let protocol = Protocol::of_operation(operation.protocol).unwrap_or(Protocol::Chat);
    let call = Arc::new(call);
    let begun = RequestContext::begin(app, &call, protocol);
    let model = begun.as_ref().ok().and_then(Option::as_ref).map(|begun| Arc::clone(&begun.route.id));
    let answered = match begun {
        Ok(Some(request_context)) if request_context.streams => keepalive::answer(request_context).await,
        // Boxed separately, to keep the future of a stream small.
        Ok(Some(request_context)) => Box::pin(request_context.execute()).await,
        Ok(None) => Err(refusal(app, &call).await),
        Err(error) => Err(error),
    };
    answered.unwrap_or_else(|error| match model {
        Some(model) => failed(&call, model, error),
        None => error.into_response(operation.error_style),
    })
}

/// The error of a request. For operators, it has the id of the model, and the upstream that failed.
pub(crate) fn failed(call: &Call, model: Arc<str>, error: ApiError) -> Response {
    let mut response = error.into_response(call.operation.error_style);
    response.extensions_mut().insert(Origin::failed(model, call.failed_at.get().cloned()));
    response
}

/// The model that the body of a request names, if it names one.
pub(crate) fn model_in_body(operation: &Operation, body: &Bytes) -> Option<String> {
    let protocol = Protocol::of_operation(operation.protocol).unwrap_or(Protocol::Chat);
    let meta = RequestMeta::read(body, protocol)?;
    Some(meta.model).filter(|model| !model.is_empty())
}

/// The error for a request that doesn't name a model of this gateway.
async fn refusal(app: &Arc<App>, call: &Arc<Call>) -> ApiError {
    let (call, routes) = (Arc::clone(call), app.live.routes.load_full());
    let checked = app.resources.blocking_pool.work(move |_| {
        let body = call.checked_body()?;
        Err::<(), _>(models::unserved(&routes, models::named(&call, &body), call.operation))
    });
    match checked.await {
        Err(error) => error,
        Ok(()) => ApiError::new(&ErrorCode::SERVER_ERROR, "the gateway failed"),
    }
}

/// The error when no upstream answered. `failure`: from the last attempt.
fn unanswered(failure: Option<AttemptFailure>, plan: &Plan, model: &str, operation: &Operation) -> ApiError {
    match (failure, plan.unavailable()) {
        (Some(failure), _) => failure.into_error(),
        (None, Some(unavailable)) => failure::unavailable(unavailable, model),
        (None, None) => models::elsewhere(model, operation),
    }
}

/// What an upstream does for a plain operation. `list`: whether `input` is a list.
fn plain_action(operation: &Operation, list: bool) -> PlainAction {
    match operation.models {
        Some(operations::ModelKind::Rerank) => PlainAction::Rerank,
        Some(operations::ModelKind::Moderation) => PlainAction::Moderate,
        Some(operations::ModelKind::Speech) => PlainAction::Speak,
        Some(operations::ModelKind::Transcription) if operation.id == "create_translation" => {
            PlainAction::Translate
        }
        Some(operations::ModelKind::Transcription) => PlainAction::Transcribe,
        // No plain operation is for models of the other kinds.
        Some(
            operations::ModelKind::Embedding
            | operations::ModelKind::Text
            | operations::ModelKind::Image
            | operations::ModelKind::Video,
        )
        | None => PlainAction::Embed { list },
    }
}

impl RequestContext {
    /// None if the request doesn't name a model of this gateway. Errors: the requested stream format doesn't exist.
    fn begin(app: &Arc<App>, call: &Arc<Call>, protocol: Protocol) -> Result<Option<Self>, ApiError> {
        let action = |stream, list| match call.operation.id {
            "count_tokens" | "count_message_tokens" => Action::CountTokens,
            "compact_response" => Action::Compact,
            "create_image" => Action::Image,
            _ if call.operation.protocol == operations::Protocol::Plain => {
                Action::Plain(plain_action(call.operation, list))
            }
            _ => Action::Answer { stream: stream || call.operation.stream == StreamMode::Always },
        };
        let framing = match action(false, false) {
            Action::Answer { stream: true } => Framing::of(call, protocol)?,
            _ => Framing::Events,
        };
        let Some(mut meta) = RequestMeta::read(&call.body, protocol) else { return Ok(None) };
        if action(false, false) == Action::Plain(PlainAction::Moderate) && !meta.names_model() {
            meta = meta.choosing(&models::default_of(&app.live.routes.load(), call, ModelKind::Moderation)?);
        }
        if let Some(name) = meta.misspelled {
            let message = format!(
                "the body has {name} in another spelling, which only some servers read as this member; write it {name}"
            );
            return Err(ApiError::new(&ErrorCode::INVALID_VALUE, message).param(name));
        }
        // It is a copy if the client's has duplicate members.
        meta.body = prepare::charged(app, call, meta.body, &call.body)?;
        let model_in_path = protocol.binding().model_in_path;
        let action = action(meta.stream && !model_in_path, meta.lists_input);
        if model_in_path {
            models::native_id(call).clone_into(&mut meta.model);
        }
        let kind = match action {
            Action::Plain(PlainAction::Embed { .. }) => ModelKind::Embedding,
            Action::Plain(PlainAction::Rerank) => ModelKind::Rerank,
            Action::Plain(PlainAction::Moderate) => ModelKind::Moderation,
            Action::Plain(PlainAction::Speak) => ModelKind::Speech,
            Action::Plain(PlainAction::Transcribe | PlainAction::Translate) => ModelKind::Transcription,
            Action::Image => ModelKind::Image,
            _ => ModelKind::Text,
        };
        let plain_stream = matches!(action, Action::Plain(_)) && plain_events::are_asked_for(call);
        let asks_for_stream = call.form.as_ref().is_some_and(|form| form.asks_for_stream);
        if !plain_stream && (asks_for_stream || kind != ModelKind::Text && meta.stream) {
            let way_out = match call.operation.stream {
                StreamMode::Word(name, word) => format!("set {name} to {word:?} instead of stream"),
                _ => "omit stream".to_owned(),
            };
            let message = format!("{} cannot be streamed; {way_out}", kind.products());
            return Err(ApiError::new(&ErrorCode::INVALID_VALUE, message).param("stream"));
        }
        let streams = plain_stream || action == Action::Answer { stream: true };
        let route = app.live.routes.load().find_of(kind, &meta.model).map(Arc::clone);
        let Some(route) = route else { return Ok(None) };
        let input = estimate::of_document(&call.body) as u64;
        let (app, call) = (Arc::clone(app), Arc::clone(call));
        let span = current_span();
        Ok(Some(Self { app, call, protocol, action, meta, framing, streams, route, input, span }))
    }

    async fn execute(self) -> Result<Response, ApiError> {
        let responses = self.protocol.binding().stores_responses;
        if !self.route.serves(self.protocol) {
            return Err(models::elsewhere(&self.meta.model, self.call.operation));
        }
        if self.action == Action::CountTokens && !self.route.counts_tokens(self.protocol) {
            return Box::pin(self.estimate()).await;
        }
        let is_bound = responses && !self.route.model.translate_responses;
        let only = (is_bound || self.action == Action::CountTokens).then_some(self.protocol);
        let mut plan = self.route.plan(only).of_tokens(self.input);
        if self.action == Action::CountTokens {
            plan = plan.counting_tokens();
        }
        let mut cache = RequestCache { previous: self.previous().await?, ..RequestCache::default() };
        let mut share = self.app.share_of(&self.call.caller);
        if let Some(previous) = &cache.previous {
            conversation_state::pin_to_upstream(previous, &mut plan)?;
            let copy = previous.documents.as_ref().map_or(0, ResponseDocuments::weight);
            share
                .hold(copy)
                .map_err(|why| AttemptFailure::no_room(why, &Redactor::default()).into_error())?;
        }
        let mut failure: Option<AttemptFailure> = None;
        let mut refusal: Option<ApiError> = None;
        let mut request_span =
            RequestSpan::new(self.span.as_ref(), &self.route, self.protocol, &self.call.body);
        while let Some(attempt) = plan.next(Instant::now(), rand::random()) {
            request_span.at(&attempt.destination);
            let upstream_request = match self.prepare(&mut cache, &attempt.destination).await {
                Ok(upstream_request) => upstream_request,
                // The protocol of another upstream may be able to express it.
                Err(error) => {
                    refusal.get_or_insert(error);
                    continue;
                }
            };
            if attempt.destination.provider.is_simulator() {
                return Box::pin(embedded::answer(&self, upstream_request, attempt)).await;
            }
            let provider = Arc::clone(&attempt.destination.provider);
            match self.ask(&mut plan, &upstream_request, attempt).await? {
                Ok(response) => return Ok(response),
                Err(failed) => {
                    if upstream_request.stream_options_refused(&failed) {
                        cache.without_stream_options = Some(provider);
                    }
                    if upstream_request.may_be_forgotten && failed.is_unknown_response() {
                        cache.previous = None;
                    }
                    failure = Some(failed);
                }
            }
        }
        match (failure, refusal) {
            (None, Some(refusal)) => Err(refusal),
            (failure, _) => Err(unanswered(failure, &plan, &self.meta.model, self.call.operation)),
        }
    }

    /// The stored response that the request continues. Errors: the caller has no such response.
    async fn previous(&self) -> Result<Option<ResponseRecord>, ApiError> {
        let id = self.meta.previous.as_ref().filter(|_| self.protocol.binding().stores_responses);
        let Some(id) = id else { return Ok(None) };
        Box::pin(stored_responses::seek(&self.app.storage, &self.call, id)).await?;
        stored_responses::previous(&self.app.storage, &self.call, id).map(Some)
    }

    /// Sends the request to one upstream, with another of its keys if one is refused. Errors: the request itself is at fault.
    async fn ask(
        &self,
        plan: &mut Plan,
        upstream_request: &UpstreamRequest,
        mut attempt: UpstreamAttempt,
    ) -> Result<Result<Response, AttemptFailure>, ApiError> {
        loop {
            // From here on the upstream may do work: its input counts even if the client disconnects before the answer.
            let mut charge = self.charge(&attempt)?;
            let mut attempt_metrics = self.attempt_metrics(&attempt);
            let trace = attempt_metrics.trace(&attempt.destination);
            let sending = attempt::ask(self, upstream_request, &attempt, trace.as_ref());
            let answered = tokio::select! {
                biased;
                answered = sending => answered,
                () = self.call.presence.ended() => return Err(ApiError::client_disconnected()),
            };
            let failure = match answered {
                Ok(answered) => {
                    // If the client disconnects before the answer begins, we learn nothing about the upstream's health.
                    if !self.call.presence.has_ended() {
                        attempt.succeeded(Instant::now());
                    }
                    // Only now is it known that they were at fault: the error may have quoted a request that is invalid itself.
                    if upstream_request.stream_options == StreamOptionsUse::TriedWithout {
                        attempt.destination.provider.refuse_stream_options();
                    }
                    let answered = self.with_image_files(answered, &mut attempt).await;
                    return Ok(Ok(self.respond(
                        answered,
                        upstream_request,
                        attempt,
                        charge,
                        attempt_metrics,
                    )));
                }
                Err(failure) => {
                    let upstream = &attempt.destination.provider.endpoint;
                    self.call.failed_at.get_or_init(|| Arc::clone(&upstream.name));
                    failure.at(&upstream.label)
                }
            };
            attempt_metrics.failed(&failure);
            drop(attempt_metrics);
            match (failure.class, &failure.usage) {
                // The upstream did the work, so it counts.
                (_, Some(usage)) => {
                    charge.set_usage(**usage);
                    drop(charge);
                }
                (FailureClass::Gateway, None) => drop(charge),
                (_, None) => charge.void(),
            }
            if upstream_request.stream_options_refused(&failure)
                || upstream_request.may_be_forgotten && failure.is_unknown_response()
            {
                attempt.succeeded(Instant::now());
                plan.again(&attempt);
                return Ok(Err(failure));
            }
            match failover::after(failure, plan, &mut attempt, &self.route.id) {
                ControlFlow::Continue(()) => {}
                ControlFlow::Break(outcome) => return outcome.map(Err),
            }
        }
    }

    fn attempt_metrics(&self, attempt: &UpstreamAttempt) -> AttemptMetrics {
        AttemptMetrics::at(
            attempt,
            &self.app.telemetry.metrics,
            self.span.as_ref(),
            self.call.operation,
            self.streams,
        )
    }

    /// The answer with the URLs of the gateway's own copies of its images, if the operator wants that.
    async fn with_image_files(
        &self,
        answered: SuccessfulAnswer,
        attempt: &mut UpstreamAttempt,
    ) -> SuccessfulAnswer {
        match answered {
            SuccessfulAnswer::Document { document, usage, media, mut share }
                if self.action == Action::Image && self.app.config.fetch_images =>
            {
                // The upstream is done, and copying may take a minute.
                attempt.release_slot();
                let provider = &attempt.destination.provider;
                let mut buffers = share.sibling();
                let copying = image_files::copied(&self.app, &self.call, provider, &document, &mut buffers);
                let copied = tokio::select! {
                    biased;
                    // Boxed, to keep the futures of other requests small.
                    copied = Box::pin(copying) => copied,
                    () = self.call.presence.ended() => None,
                };
                let copied = copied.filter(|copied| share.hold(copied.len()).is_ok());
                SuccessfulAnswer::Document { document: copied.unwrap_or(document), usage, media, share }
            }
            other => other,
        }
    }

    /// The response to the client. There is no failover from here on.
    fn respond(
        &self,
        answered: SuccessfulAnswer,
        upstream_request: &UpstreamRequest,
        attempt: UpstreamAttempt,
        mut charge: Charge,
        mut attempt_metrics: AttemptMetrics,
    ) -> Response {
        let endpoint = &attempt.destination.provider.endpoint;
        let origin = Origin::new(Arc::clone(&self.route.id), Arc::clone(&endpoint.name));
        let label = endpoint.label.clone();
        let is_own = !attempt.destination.provider.is_simulator();
        let input = self.input;
        charge.begin();
        let mut lacks_usage = false;
        let mut response = match answered {
            SuccessfulAnswer::Document { document, usage, media, share } => {
                attempt_metrics.answered();
                attempt_metrics.record_usage(usage.as_ref());
                // The document then has the estimate.
                let states_usage = upstream_request.form.as_ref().is_some_and(|form| form.states_usage());
                lacks_usage = states_usage && usage.is_none();
                if let Some(usage) = usage {
                    charge.set_usage(usage);
                }
                if let Some(media) = media {
                    charge.set_media(media);
                }
                // The words of a sound are tokens; of other plain operations, only the request has some.
                let writes = matches!(
                    self.action,
                    Action::Answer { .. }
                        | Action::Compact
                        | Action::Plain(PlainAction::Transcribe | PlainAction::Translate)
                );
                if writes {
                    let output = Some(estimate::of_document(&document) as u64);
                    charge.estimated(Usage { input: Some(input), output, ..Usage::default() });
                }
                charge.complete();
                let id = if self.is_in_background() { background::id_under_way(&document) } else { None };
                match id {
                    Some(id) => self.background(id, &attempt).follow(&self.app, charge),
                    None => drop(charge),
                }
                let mut response = held_json(document, share);
                if let Some(form) = &upstream_request.form {
                    response.headers_mut().insert(header::CONTENT_TYPE, form.media_type());
                }
                response
            }
            SuccessfulAnswer::Stream(stream) => {
                // Otherwise the client disconnected before it began.
                if !self.call.presence.has_ended() {
                    attempt_metrics.answered();
                }
                let follow = self.is_in_background().then(|| self.follow(&attempt));
                let account = stream::StreamAccount::new(attempt, charge, input, attempt_metrics);
                stream.respond(account.following(follow))
            }
            SuccessfulAnswer::Sound(sound) => {
                attempt_metrics.answered();
                sound.respond(SoundAccount { attempt, charge, attempt_metrics })
            }
        };
        if is_own {
            response.headers_mut().insert(UPSTREAM_HEADER, label);
        } else {
            response.headers_mut().insert(SIMULATED_HEADER, SIMULATED);
        }
        if upstream_request.estimate.is_some() || lacks_usage {
            response.headers_mut().insert(ESTIMATED_HEADER, HeaderValue::from_static("true"));
        }
        if let Some(dropped) = &upstream_request.dropped {
            response.headers_mut().insert(translate_request::DROPPED_HEADER, dropped.clone());
        }
        response.extensions_mut().insert(origin);
        response
    }

    /// Whether the client wants a response that the upstream generates in the background.
    fn is_in_background(&self) -> bool {
        self.meta.background && self.protocol.binding().stores_responses
    }

    /// Follows a response whose stream ends before it does.
    fn follow(&self, attempt: &UpstreamAttempt) -> stream::Follow {
        let (app, response) = (Arc::clone(&self.app), self.background(String::new(), attempt));
        Box::new(move |started, charge| match background::id_under_way(started.as_bytes()) {
            Some(id) => BackgroundResponse { id, ..response }.follow(&app, charge),
            None => drop(charge),
        })
    }

    /// A response that the upstream generates in the background.
    fn background(&self, id: String, attempt: &UpstreamAttempt) -> BackgroundResponse {
        let provider = &attempt.destination.provider;
        BackgroundResponse {
            key: attempt.key().and_then(|key| provider.endpoint.mark_of(key)),
            id,
            model: Arc::clone(&self.route.id),
            caller: self.call.caller.clone(),
            provider: Arc::clone(provider),
        }
    }

    /// Opens the charge for an attempt, with an estimate of its input. Errors: the key's budget doesn't cover it.
    fn charge(&self, attempt: &UpstreamAttempt) -> Result<Charge, ApiError> {
        let upstream = Arc::clone(&attempt.destination.provider.endpoint.name);
        let (caller, model) = (self.call.caller.clone(), Arc::clone(&self.route.id));
        let charge = Charge::new(caller, model, upstream, self.call.started);
        let charge = charge.priced(attempt.destination.rates.clone()).shown_in(&self.call.consumed);
        if self.action == Action::CountTokens {
            // Counting tokens consumes none: this usage is exact, not an estimate.
            let mut charge = charge;
            charge.set_usage(Usage::default());
            return Ok(charge);
        }
        let refused = |exceeded| refused(exceeded, &self.call.caller);
        if self.action == Action::Image {
            // The tokens of an image can't be estimated: only prices per image are reserved.
            let media = MediaUnits { images: self.meta.choices.into(), ..MediaUnits::default() };
            let mut charge = charge.reserve(Usage::default(), media).map_err(refused)?;
            // Until the upstream states them.
            charge.set_media(media);
            return Ok(charge);
        }
        let input = Some(self.input);
        let output = match self.action {
            Action::Plain(_) => 0,
            _ => self.meta.most_tokens.unwrap_or(self.route.model.default_max_tokens),
        };
        let output = Some(output.saturating_mul(self.meta.choices.into()));
        let media = match self.action {
            Action::Plain(PlainAction::Speak) => {
                let speech_characters = sound::characters_of(&self.meta.body);
                MediaUnits { speech_characters, ..MediaUnits::default() }
            }
            // Until the upstream states a length.
            Action::Plain(PlainAction::Transcribe | PlainAction::Translate) => {
                let file = self.call.form.as_ref().and_then(|form| form.file("file"));
                let sound = plain::transcripts::estimated_length(file.as_deref().unwrap_or_default());
                MediaUnits { sound, ..MediaUnits::default() }
            }
            _ => MediaUnits::default(),
        };
        let expected = Usage { input, output, ..Usage::default() };
        let mut charge = charge.reserve(expected, media).map_err(refused)?;
        charge.set_media(media);
        charge.estimated(Usage { input, output: Some(0), ..Usage::default() });
        Ok(charge)
    }
}
