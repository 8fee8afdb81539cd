//! Builds the request to an upstream that speaks the client's protocol: its bytes, except for what only this gateway knows.

use std::sync::Arc;

use super::RequestContext;
use super::conversation_state::{self, PassthroughBody};
use super::prepare::{RequestCache, UpstreamRequest, charged, own_models};
use super::request_meta::RequestMeta;
use crate::routing::Destination;
use crate::wire::{ApiError, Call};

impl RequestContext {
    /// Errors: the request is invalid, or continues a response that the caller doesn't have.
    pub(super) async fn relayed(
        &self,
        cache: &mut RequestCache,
        destination: &Destination,
    ) -> Result<UpstreamRequest, ApiError> {
        let (protocol, model) = (self.protocol, &destination.model);
        let upstream_request =
            |body, recorder| UpstreamRequest { recorder, ..UpstreamRequest::new(protocol, body) };
        if destination.provider.is_simulator() {
            // It validates the request itself and always reports its usage.
            return Ok(upstream_request(self.meta.named(protocol, model), None));
        }
        let upstream = &destination.provider.endpoint.name;
        let holder = cache.previous.as_ref().and_then(|previous| previous.holder.as_ref());
        let is_there = holder.is_some_and(|holder| holder.upstream == *upstream);
        if cache.relayed_there != Some(is_there) {
            let app = Arc::clone(&self.app);
            let check = move |call: &Call| {
                if !protocol.binding().stores_responses {
                    return call.checked_body_by(own_models()).map(|_| PassthroughBody::default());
                }
                let request = call.checked_prompt_by(own_models())?;
                conversation_state::relayed(&app.storage, call, request, is_there)
            };
            let PassthroughBody { body, recorder } = self.unless_long(check).await?;
            let charge = |body| charged(&self.app, &self.call, body, &self.call.body);
            cache.rewritten =
                body.map(charge).transpose()?.and_then(|body| RequestMeta::read(&body, protocol));
            cache.recorder = recorder;
            cache.relayed_there = Some(is_there);
        }
        let meta = cache.rewritten.as_ref().unwrap_or(&self.meta);
        let upstream_request = upstream_request(
            meta.body_for(protocol, model, cache.capabilities_of(&destination.provider)),
            cache.recorder.clone(),
        );
        let has_copy = cache.previous.as_ref().is_some_and(|previous| previous.documents.is_some());
        Ok(UpstreamRequest { may_be_forgotten: is_there && has_copy, ..upstream_request })
    }
}
