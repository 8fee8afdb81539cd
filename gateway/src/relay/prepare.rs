//! Builds the request for each upstream, and caches what the next attempt can reuse.

use std::sync::Arc;

use bytes::Bytes;
use gatewright::limits::Rules;
use gatewright::redact::Redactor;
use gatewright_protocol::conversation::Protocol;
use gatewright_protocol::{Action, AnswerAdapter, Capabilities, PlainAction, ResponseContext};
use gatewright_simulator::budget::Budget;
use http::{HeaderName, HeaderValue};
use serde_json::Value;

use super::compaction::CompactionTrigger;
use super::conversation_state::{self, FullConversation, ResponseRecorder};
use super::failure::AttemptFailure;
use super::plain::{self, AnswerForm};
use super::request_meta::RequestMeta;
use super::translate_request::{RequestTranslation, TranslatedRequest, is_strict, reported};
use super::{LONG_BODY, RequestContext, estimate};
use crate::app::App;
use crate::routing::{Destination, Provider};
use crate::storage::ResponseRecord;
use crate::wire::{ApiError, Call, Response, json_response};

/// Marks a token count as the gateway's own estimate.
pub(crate) const ESTIMATED_HEADER: HeaderName = HeaderName::from_static("x-gatewright-estimated");

/// What later attempts reuse from the first one.
#[derive(Default)]
pub(super) struct RequestCache {
    /// Boxed, since every request carries this cache, and most pass through.
    pub(super) translation: Option<Box<RequestTranslation>>,
    /// The response that the request continues, unless the upstream that stores it has forgotten it.
    pub(super) previous: Option<ResponseRecord>,
    /// Set once the request was checked for upstreams of its protocol: whether for the one that stores the previous
    /// response.
    pub(super) relayed_there: Option<bool>,
    /// The request, if it is no longer the client's bytes.
    pub(super) rewritten: Option<RequestMeta>,
    /// Records a relayed answer.
    pub(super) recorder: Option<ResponseRecorder>,
    /// Whether a request for images, or of a plain operation, is known to keep to the limits of the model.
    pub(super) is_checked: bool,
    /// What the request of a plain operation wants of the answer, if that is read.
    pub(super) form: Option<Arc<dyn AnswerForm>>,
    /// The upstream that rejected the `stream_options` of this request, and may accept it without them.
    pub(super) without_stream_options: Option<Arc<Provider>>,
}

impl RequestCache {
    fn is_without_stream_options(&self, provider: &Arc<Provider>) -> bool {
        self.without_stream_options.as_ref().is_some_and(|refusing| Arc::ptr_eq(refusing, provider))
    }

    /// What the server of an upstream supports of this request.
    pub(super) fn capabilities_of(&self, provider: &Arc<Provider>) -> Capabilities {
        let known = provider.capabilities();
        let stream_options = known.stream_options && !self.is_without_stream_options(provider);
        Capabilities { stream_options, ..known }
    }
}

/// What a request does about `stream_options`, which not every upstream supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamOptionsUse {
    /// They are the client's, or there are none.
    Untouched,
    /// The gateway added them.
    Added,
    /// The gateway omits them, since the upstream has just rejected them.
    TriedWithout,
}

/// The request as one upstream gets it.
pub(super) struct UpstreamRequest {
    pub(super) protocol: Protocol,
    pub(super) body: Bytes,
    /// What the upstream's protocol can't express.
    pub(super) dropped: Option<HeaderValue>,
    /// What a translated answer echoes from the request.
    pub(super) context: Option<Arc<ResponseContext>>,
    /// Adapts the answer to what the client requested.
    pub(super) adapter: Option<Box<AnswerAdapter>>,
    /// Records the answer.
    pub(super) recorder: Option<ResponseRecorder>,
    /// How the client requested a compaction that the gateway performs.
    pub(super) compacts: Option<CompactionTrigger>,
    /// What the client wants of the answer to a plain operation.
    pub(super) form: Option<Arc<dyn AnswerForm>>,
    /// Estimated input tokens, for protocols that report them first while the upstream reports them last.
    pub(super) estimate: Option<u64>,
    /// Whether the upstream must know the previous response, but the gateway could resend the conversation instead.
    pub(super) may_be_forgotten: bool,
    pub(super) stream_options: StreamOptionsUse,
}

impl UpstreamRequest {
    pub(super) fn new(protocol: Protocol, body: Bytes) -> Self {
        let (dropped, context, adapter, recorder, compacts) = (None, None, None, None, None);
        let (form, estimate, may_be_forgotten) = (None, None, false);
        Self {
            protocol,
            body,
            dropped,
            context,
            adapter,
            recorder,
            compacts,
            form,
            estimate,
            may_be_forgotten,
            stream_options: StreamOptionsUse::Untouched,
        }
    }

    /// Whether this failure is about the `stream_options` that the gateway added.
    pub(super) fn stream_options_refused(&self, failure: &AttemptFailure) -> bool {
        self.stream_options == StreamOptionsUse::Added && failure.refuses_stream_options()
    }
}

/// The rules for models that only the configuration knows.
pub(super) fn own_models() -> Rules {
    Rules::default().own_models(true)
}

/// Counts the memory of a body that was made from a request, unless it is `source`, which is counted already.
pub(super) fn charged(app: &App, call: &Call, body: Bytes, source: &Bytes) -> Result<Bytes, ApiError> {
    if body.as_ptr() == source.as_ptr() {
        return Ok(body);
    }
    let mut share = app.share_of(&call.caller);
    share.hold(body.len()).map_err(|why| AttemptFailure::no_room(why, &Redactor::default()).into_error())?;
    Ok(share.attach(body))
}

impl RequestContext {
    /// Estimates the tokens of a request whose upstreams can't count them.
    pub(super) async fn estimate(&self) -> Result<Response, ApiError> {
        let (from, model) = (self.protocol, self.meta.model.clone());
        let count = move |call: &Call| {
            let mut request = call.checked_body_by(own_models())?;
            if let Some(name) = from.binding().counted_request
                && let inner @ Value::Object(_) = request[name].take()
            {
                request = inner;
            }
            Ok(estimate::of(&RequestTranslation::read(call, from, request, &model, false)?))
        };
        let tokens = self.unless_long(count).await?;
        let mut response = json_response(&from.token_count(tokens));
        response.headers_mut().insert(ESTIMATED_HEADER, HeaderValue::from_static("true"));
        Ok(response)
    }

    /// Builds the request for an upstream.
    pub(super) async fn prepare(
        &self,
        cache: &mut RequestCache,
        destination: &Destination,
    ) -> Result<UpstreamRequest, ApiError> {
        let protocol = destination.protocol_for(self.protocol);
        let model = &destination.model;
        if self.action == Action::Image {
            return self.prepare_image(cache, model).await;
        }
        if let Action::Plain(action) = self.action {
            return self.prepare_plain(cache, action, protocol, model).await;
        }
        let is_relayed = protocol == self.protocol;
        let wants_usage = protocol.binding().stream.usage_on_request
            && self.action == Action::Answer { stream: true }
            && !(is_relayed && self.meta.include_usage);
        let stream_options = match &destination.provider {
            provider if !wants_usage || !provider.capabilities().stream_options => {
                StreamOptionsUse::Untouched
            }
            provider if cache.is_without_stream_options(provider) => StreamOptionsUse::TriedWithout,
            _ => StreamOptionsUse::Added,
        };
        let upstream_request = if is_relayed {
            self.relayed(cache, destination).await?
        } else {
            // Boxed: most requests pass through and shouldn't carry the size of a translation.
            Box::pin(self.translated(cache, protocol, destination)).await?
        };
        let source = cache.rewritten.as_ref().unwrap_or(&self.meta);
        let body = charged(&self.app, &self.call, upstream_request.body, &source.body)?;
        Ok(UpstreamRequest { body, stream_options, ..upstream_request })
    }

    /// Translates the request to another protocol.
    async fn translated(
        &self,
        cache: &mut RequestCache,
        protocol: Protocol,
        destination: &Destination,
    ) -> Result<UpstreamRequest, ApiError> {
        let mut translation = match cache.translation.take() {
            Some(translation) => translation,
            None => self.read().await?,
        };
        let (context, recorder, compacts) =
            (Some(translation.context()), translation.recorder(), translation.compacts());
        let (model, capabilities) =
            (Arc::clone(&destination.model), cache.capabilities_of(&destination.provider));
        let counts = self.protocol.binding().stream.begins_with_usage
            && self.action == Action::Answer { stream: true };
        let write = move |_: &Call| {
            let written = translation.request_for(protocol, &model, capabilities)?;
            let estimate = counts.then(|| translation.tokens());
            Ok((translation, written, estimate))
        };
        let (translation, TranslatedRequest { body, dropped, adapter }, estimate) =
            self.unless_long(write).await?;
        cache.translation = Some(translation);
        let adapter = Some(adapter);
        Ok(UpstreamRequest {
            dropped,
            context,
            adapter,
            recorder,
            compacts,
            estimate,
            ..UpstreamRequest::new(protocol, body)
        })
    }

    /// Builds an image request for an upstream. The limits of the catalog apply to every upstream.
    async fn prepare_image(
        &self,
        cache: &mut RequestCache,
        model: &str,
    ) -> Result<UpstreamRequest, ApiError> {
        if !cache.is_checked {
            let limits = self.route.model.limits.clone();
            let check = move |call: &Call| call.checked_body_of(limits.as_deref(), Rules::default());
            self.unless_long(check).await?;
            cache.is_checked = true;
        }
        let body = self.meta.named(Protocol::Chat, model);
        Ok(UpstreamRequest::new(Protocol::Chat, charged(&self.app, &self.call, body, &self.meta.body)?))
    }

    /// Builds the request of a plain operation for an upstream. Errors: its protocol can't express the request.
    async fn prepare_plain(
        &self,
        cache: &mut RequestCache,
        action: PlainAction,
        protocol: Protocol,
        model: &Arc<str>,
    ) -> Result<UpstreamRequest, ApiError> {
        let codec = protocol.embeddings().filter(|_| matches!(action, PlainAction::Embed { .. }));
        let mut written = None;
        if !cache.is_checked || codec.is_some() {
            let (limits, model) = (self.route.model.limits.clone(), Arc::clone(model));
            let body = self.meta.body.clone();
            let check = move |call: &Call| {
                let request = call.checked_body_of(limits.as_deref(), Rules::default())?;
                let written = codec
                    .map(|codec| plain::embeddings::written(protocol, codec, &request, &model))
                    .transpose()?;
                Ok((plain::form_of(action, &request, &body), written))
            };
            let (form, encoded) = self.unless_long(check).await?;
            (cache.form, written, cache.is_checked) = (form, encoded, true);
        }
        let (body, dropped) = match written {
            Some(written) => (
                written.body.to_string().into(),
                reported(&written.dropped, is_strict(&self.call, &self.route))?,
            ),
            None => match &self.call.form {
                Some(form) => (form.named(model), None),
                None => (self.meta.named(Protocol::Chat, model), None),
            },
        };
        let source = self.call.form.as_ref().map_or(&self.meta.body, |form| &form.bytes);
        let body = charged(&self.app, &self.call, body, source)?;
        Ok(UpstreamRequest { dropped, form: cache.form.clone(), ..UpstreamRequest::new(protocol, body) })
    }

    /// Validates the request and reads it into the neutral form.
    async fn read(&self) -> Result<Box<RequestTranslation>, ApiError> {
        let (from, stream) = (self.protocol, self.action == Action::Answer { stream: true });
        let (model, app) = (self.meta.model.clone(), Arc::clone(&self.app));
        let read = move |call: &Call| {
            let mut share = app.share_of(&call.caller);
            let weight = gatewright::json_weight(&call.body);
            share
                .hold(2 * weight)
                .map_err(|why| AttemptFailure::no_room(why, &Redactor::default()).into_error())?;
            let mut request = call.checked_body_by(own_models())?;
            // Only responses answers echo the request, and never its input.
            let (mut whole, request) = if from.binding().stores_responses {
                let whole = conversation_state::whole(&app.storage, call, &request)?;
                request["input"].take();
                (whole, request)
            } else {
                (FullConversation::of(request), Value::Null)
            };
            let conversation = RequestTranslation::read(call, from, whole.request.take(), &model, stream)?;
            if let Some(at) = conversation.only_empty_text() {
                return Err(RequestTranslation::of_nothing(at));
            }
            Ok((conversation, request, share, whole))
        };
        let (conversation, request, share, whole) = self.unless_long(read).await?;
        Ok(Box::new(RequestTranslation::new(self, conversation, request, share).continued(whole)))
    }

    /// Runs work on the request: inline, or on the blocking pool if the request is large or continues a conversation of unknown
    /// length.
    pub(super) async fn unless_long<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Call) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        if self.call.body.len() <= LONG_BODY && self.meta.previous.is_none() {
            return work(&self.call);
        }
        let (call, mut share) = (Arc::clone(&self.call), self.app.share_of(&self.call.caller));
        let work = move |_: &Budget| {
            let weight = gatewright::json_weight(&call.body);
            share
                .hold(weight)
                .map_err(|why| AttemptFailure::no_room(why, &Redactor::default()).into_error())?;
            work(&call)
        };
        Box::pin(self.app.resources.blocking_pool.work(work)).await
    }
}
