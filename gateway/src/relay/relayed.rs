//! The request to an upstream that speaks the client's protocol: its bytes, but for what only this gateway knows.

use std::sync::Arc;

use super::Journey;
use super::asked::Asked;
use super::continued::{self, Relayed};
use super::packing::{Luggage, Parcel, own_models};
use crate::conversation::Protocol;
use crate::routing::Destination;
use crate::wire::{ApiError, Call};

impl Journey {
    /// Errors: the request breaks the rules, or continues a response that the caller does not have.
    pub(super) async fn relayed(
        &self,
        luggage: &mut Luggage,
        destination: &Destination,
    ) -> Result<Parcel, ApiError> {
        let (protocol, model) = (self.protocol, &destination.model);
        let parcel = |body, keeper| Parcel { keeper, ..Parcel::new(protocol, body) };
        if destination.provider.is_simulator() {
            // It checks the request itself, and tells its usage unasked.
            return Ok(parcel(self.asked.named(protocol, model), None));
        }
        let upstream = &destination.provider.endpoint.name;
        let holder = luggage.previous.as_ref().and_then(|previous| previous.holder.as_ref());
        let is_there = holder.is_some_and(|holder| holder.upstream == *upstream);
        if luggage.relayed_there != Some(is_there) {
            let app = Arc::clone(&self.app);
            let check = move |call: &Call| match protocol {
                Protocol::Responses => {
                    let request = call.checked_prompt_by(own_models())?;
                    continued::relayed(&app, call, request, is_there)
                }
                _ => call.checked_body_by(own_models()).map(|_| Relayed::default()),
            };
            let Relayed { body, keeper } = self.unless_long(check).await?;
            luggage.rewritten = body.and_then(|body| Asked::read(&body));
            luggage.keeper = keeper;
            luggage.relayed_there = Some(is_there);
        }
        let asked = luggage.rewritten.as_ref().unwrap_or(&self.asked);
        let parcel = parcel(
            asked.body_for(protocol, model, destination.provider.capabilities()),
            luggage.keeper.clone(),
        );
        let has_copy = luggage.previous.as_ref().is_some_and(|previous| previous.documents.is_some());
        Ok(Parcel { may_be_forgotten: is_there && has_copy, ..parcel })
    }
}
