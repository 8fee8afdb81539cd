//! Asks the embedded provider, in this process.

use std::sync::Arc;

use gatewright::operations;
use http::header;

use super::{Journey, Parcel, attempt};
use crate::app::App;
use crate::bounds::budget::Budget;
use crate::conversation::Protocol;
use crate::routing::Claim;
use crate::simulator::protocols::{chat, native, responses};
use crate::upstream::Action;
use crate::wire::{ApiError, Call, Response};

type Handler = fn(&App, &Call, &Budget) -> Result<Response, ApiError>;

/// The answer of the embedded provider, or its error.
pub(super) async fn answer(journey: &Journey<'_>, parcel: Parcel, mut claim: Claim) -> Response {
    let operation = journey.call.operation;
    let call = call_of(journey, &parcel, &claim.destination.model);
    let handler: Handler = match (parcel.protocol, journey.action) {
        (Protocol::Responses, Action::Compact) => responses::compact,
        (Protocol::Responses, _) => responses::create,
        (Protocol::Native, Action::CountTokens) => native::count_tokens,
        (Protocol::Native, Action::Answer { stream: true }) => native::stream,
        (Protocol::Native, _) => native::generate,
        (Protocol::Chat | Protocol::Messages, _) => chat::create,
    };
    let app = Arc::clone(journey.app);
    let worked = journey.app.workshop.work(move |budget| handler(&app, &call, budget)).await;
    let response = match worked {
        Ok(response) => response,
        Err(error) => return error.into_response(operation.error_style),
    };
    claim.succeeded(std::time::Instant::now());
    let (head, body) = response.into_parts();
    let media_type = head.headers.get(header::CONTENT_TYPE).map(http::HeaderValue::as_bytes);
    let is_stream = media_type.is_some_and(|value| value.starts_with(b"text/event-stream"));
    match attempt::passed(journey, &parcel, &claim, body, is_stream).await {
        Ok(answered) => {
            let charge = journey.charge(&claim);
            journey.respond(answered, &parcel, claim, charge)
        }
        Err(fault) => fault.into_error().into_response(operation.error_style),
    }
}

/// The call in the words of the provider.
fn call_of(journey: &Journey<'_>, parcel: &Parcel, model: &str) -> Arc<Call> {
    if parcel.asked.is_none() && journey.asked.model == model {
        return Arc::clone(journey.call);
    }
    let mut call = Call::clone(journey.call);
    call.body = parcel.body.clone();
    if parcel.asked.is_some() {
        call.operation = &operations::CREATE_CHAT_COMPLETION;
        call.path.clear();
    }
    for (_, value) in call.path.iter_mut().filter(|(name, _)| name == "model") {
        model.clone_into(value);
    }
    Arc::new(call)
}
