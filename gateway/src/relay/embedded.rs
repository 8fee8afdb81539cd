//! Asks the embedded provider, in this process.

use std::sync::Arc;

use gatewright::operations;
use http::header;

use super::attempt::Answered;
use super::failure::Fault;
use super::packing::Parcel;
use super::{Journey, attempt};
use crate::app::App;
use crate::bounds::budget::Budget;
use crate::conversation::Protocol;
use crate::routing::Claim;
use crate::simulator::protocols::{chat, images, native, responses};
use crate::store::Storing;
use crate::upstream::Action;
use crate::wire::{ApiError, Call, Response};

type Handler = fn(&App, &Call, &Budget) -> Result<Response, ApiError>;

/// The answer of the embedded provider. Errors: its own, or a budget has no room for the request.
pub(super) async fn answer(
    journey: &Journey,
    parcel: Parcel,
    mut claim: Claim,
) -> Result<Response, ApiError> {
    let charge = journey.charge(&claim)?;
    let mut attempted = journey.attempted(&claim);
    match answered(journey, &parcel, &mut claim).await {
        Ok(answered) => Ok(journey.respond(answered, &parcel, claim, charge, attempted)),
        Err(error) => {
            attempted.refused(error.code().status);
            charge.void();
            Err(error)
        }
    }
}

async fn answered(journey: &Journey, parcel: &Parcel, claim: &mut Claim) -> Result<Answered, ApiError> {
    let call = call_of(journey, parcel, &claim.destination.model);
    let response = match journey.action {
        Action::Image => images::create(&journey.app, &call).await?,
        _ => worked_out(journey, parcel.protocol, call).await?,
    };
    claim.succeeded(std::time::Instant::now());
    if response.extensions().get::<Storing>().is_some() {
        journey.app.history_keeper.written().await;
    }
    let (head, body) = response.into_parts();
    let media_type = head.headers.get(header::CONTENT_TYPE).map(http::HeaderValue::as_bytes);
    let is_stream = media_type.is_some_and(|value| value.starts_with(b"text/event-stream"));
    attempt::passed(journey, parcel, claim, body, is_stream).await.map_err(Fault::into_error)
}

/// The next turn of a conversation, or what is asked about it.
async fn worked_out(journey: &Journey, protocol: Protocol, call: Arc<Call>) -> Result<Response, ApiError> {
    let handler: Handler = match (protocol, journey.action) {
        (Protocol::Responses, Action::Compact) => responses::compact,
        (Protocol::Responses, _) => responses::create,
        (Protocol::Native, Action::CountTokens) => native::count_tokens,
        (Protocol::Native, Action::Answer { stream: true }) => native::stream,
        (Protocol::Native, _) => native::generate,
        (Protocol::Chat | Protocol::Messages, _) => chat::create,
    };
    let app = Arc::clone(&journey.app);
    journey.app.workshop.work(move |budget| handler(&app, &call, budget)).await
}

/// The call in the words of the provider.
fn call_of(journey: &Journey, parcel: &Parcel, model: &str) -> Arc<Call> {
    if parcel.asked.is_none() && journey.asked.model == model {
        return Arc::clone(&journey.call);
    }
    let mut call = Call::clone(&journey.call);
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
