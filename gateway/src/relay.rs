//! The way of a request through the gateway: to an upstream of its model, to the next one where that fails, and back.
//! Where both sides speak one protocol, bytes pass and an observer reads the usage and the end.
//!
//! Another upstream is asked only before the first byte of an answer has gone to the client. A sign of life is none.

mod asked;
mod attempt;
mod attempted;
mod background;
mod compaction;
mod continued;
mod counted;
#[cfg(any(test, fuzzing))]
pub(crate) mod cut;
mod document;
mod early;
mod embedded;
mod estimate;
mod failure;
mod frames;
mod held;
mod next;
mod observer;
mod packing;
mod passing;
mod pictures;
mod relayed;
mod stream;
mod traced;
mod translating;
mod translation;
mod videos;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use gatewright::ErrorCode;
use gatewright::operations::Operation;
use gatewright::redact::Redactor;
use http::HeaderValue;
use tracing::Span;

use self::asked::Asked;
use self::attempt::Answered;
use self::attempted::Attempted;
use self::background::Background;
pub(crate) use self::failure::{Fault, UPSTREAM_HEADER, Verdict};
pub(crate) use self::held::answer as answer_stored;
pub(crate) use self::packing::ESTIMATED_HEADER;
use self::packing::{Luggage, Parcel};
use self::passing::Framing;
use self::traced::Asking;
pub(crate) use self::translation::DROPPED_HEADER;
pub(crate) use self::videos::{Accepted, Content, Order, Remote, RemoteRecord, submit};
use crate::access::refused;
use crate::app::App;
use crate::config::ModelKind;
use crate::conversation::{Protocol, Usage};
use crate::observe::{Origin, current_span};
use crate::routing::{Claim, Plan, Route};
use crate::store::{Documents, Known};
use crate::upstream::Action;
use crate::usage::{Charge, Consumption};
use crate::wire::{ApiError, Call, Response, held_json};
use crate::{kept, models};

/// Bodies longer than this are checked on a thread of their own: others do not wait for them.
const LONG_BODY: usize = 64 * 1024;

/// A request on its way.
struct Journey {
    app: Arc<App>,
    call: Arc<Call>,
    protocol: Protocol,
    action: Action,
    asked: Asked,
    framing: Framing,
    route: Arc<Route>,
    /// Estimated number of tokens of the request.
    input: u64,
    /// The span of the request, where traces are exported.
    span: Option<Span>,
}

/// Answers a request of a text or image model. Images are asked for in the protocol of chat: the upstreams that speak it
/// draw them, too.
pub(crate) async fn answer(app: &Arc<App>, call: Call, protocol: Protocol) -> Response {
    let operation = call.operation;
    let call = Arc::new(call);
    let answered = match Journey::begin(app, &call, protocol) {
        Ok(Some(journey)) if journey.action == (Action::Answer { stream: true }) => {
            early::answer(journey).await
        }
        // In a box of its own: streams have no room for it.
        Ok(Some(journey)) => Box::pin(journey.travel()).await,
        Ok(None) => Err(refusal(app, &call).await),
        Err(error) => Err(error),
    };
    answered.unwrap_or_else(|error| error.into_response(operation.error_style))
}

/// What is wrong with a request that names no model of this gateway.
async fn refusal(app: &Arc<App>, call: &Arc<Call>) -> ApiError {
    let (call, routes) = (Arc::clone(call), app.routes.load_full());
    let checked = app.workshop.work(move |_| {
        let body = call.checked_body()?;
        Err::<(), _>(models::unserved(&routes, models::named(&call, &body), call.operation))
    });
    match checked.await {
        Err(error) => error,
        Ok(()) => ApiError::new(&ErrorCode::SERVER_ERROR, "the gateway failed"),
    }
}

/// The error where no upstream has answered. `fault`: of the last one that was asked.
fn unanswered(fault: Option<Fault>, plan: &Plan, model: &str, operation: &Operation) -> ApiError {
    match (fault, plan.unavailable()) {
        (Some(fault), _) => fault.into_error(),
        (None, Some(unavailable)) => failure::unavailable(unavailable, model),
        (None, None) => models::elsewhere(model, operation),
    }
}

impl Journey {
    /// None if the request names no model of this gateway. Errors: it asks for an impossible form of a stream.
    fn begin(app: &Arc<App>, call: &Arc<Call>, protocol: Protocol) -> Result<Option<Self>, ApiError> {
        let action = |stream| match call.operation.id {
            "count_tokens" | "count_message_tokens" => Action::CountTokens,
            "compact_response" => Action::Compact,
            "create_image" => Action::Image,
            "stream_generate_content" => Action::Answer { stream: true },
            _ => Action::Answer { stream },
        };
        let framing = match action(false) {
            Action::Answer { stream: true } => Framing::of(call)?,
            _ => Framing::Events,
        };
        let Some(mut asked) = Asked::read(&call.body) else { return Ok(None) };
        let action = action(asked.stream && protocol != Protocol::Native);
        if protocol == Protocol::Native {
            models::native_id(call).clone_into(&mut asked.model);
        }
        if action == Action::Image && asked.stream {
            let message = "images come whole; leave stream out";
            return Err(ApiError::new(&ErrorCode::INVALID_VALUE, message).param("stream"));
        }
        let kind = if action == Action::Image { ModelKind::Image } else { ModelKind::Text };
        let route = app.routes.load().find_of(kind, &asked.model).map(Arc::clone);
        let Some(route) = route else { return Ok(None) };
        let input = estimate::of_document(&call.body) as u64;
        let (app, call) = (Arc::clone(app), Arc::clone(call));
        let span = current_span();
        Ok(Some(Self { app, call, protocol, action, asked, framing, route, input, span }))
    }

    async fn travel(self) -> Result<Response, ApiError> {
        let responses = self.protocol == Protocol::Responses;
        if responses && !self.route.serves_responses() {
            return Err(models::elsewhere(&self.asked.model, self.call.operation));
        }
        if self.action == Action::CountTokens && !self.route.counts_tokens(self.protocol) {
            return Box::pin(self.estimate()).await;
        }
        let is_bound = responses && !self.route.model.translate_responses;
        let only = (is_bound || self.action == Action::CountTokens).then_some(self.protocol);
        let mut plan = self.route.plan(only);
        if self.action == Action::CountTokens {
            plan = plan.counting_tokens();
        }
        let mut luggage = Luggage { previous: self.previous().await?, ..Luggage::default() };
        let mut share = self.app.share_of(&self.call.caller);
        if let Some(previous) = &luggage.previous {
            continued::lead(previous, &mut plan)?;
            let copy = previous.documents.as_ref().map_or(0, Documents::weight);
            share.hold(copy).map_err(|why| Fault::no_room(why, &Redactor::default()).into_error())?;
        }
        let mut fault: Option<Fault> = None;
        let mut asking = Asking::new(self.span.as_ref(), &self.route, &self.call.body);
        while let Some(claim) = plan.next(Instant::now(), rand::random()) {
            asking.at(&claim.destination);
            let parcel = self.pack(&mut luggage, &claim.destination).await?;
            if claim.destination.provider.is_simulator() {
                return Box::pin(embedded::answer(&self, parcel, claim)).await;
            }
            match self.ask(&mut plan, &parcel, claim).await? {
                Ok(response) => return Ok(response),
                Err(failed) => {
                    if parcel.may_be_forgotten && failed.is_unknown_response() {
                        luggage.previous = None;
                    }
                    fault = Some(failed);
                }
            }
        }
        Err(unanswered(fault, &plan, &self.asked.model, self.call.operation))
    }

    /// What is known of the response that the request continues. Errors: it is none of the caller's.
    async fn previous(&self) -> Result<Option<Known>, ApiError> {
        let id = self.asked.previous.as_ref().filter(|_| self.protocol == Protocol::Responses);
        let Some(id) = id else { return Ok(None) };
        Box::pin(kept::seek(&self.app, &self.call, id)).await?;
        kept::previous(&self.app, &self.call, id).map(Some)
    }

    /// Asks one upstream, with each of its keys if need be. Errors: the request's own.
    async fn ask(
        &self,
        plan: &mut Plan,
        parcel: &Parcel,
        mut claim: Claim,
    ) -> Result<Result<Response, Fault>, ApiError> {
        loop {
            // From here on, the upstream may work: what it read counts, though the client leaves before it answers.
            let charge = self.charge(&claim)?;
            let mut attempted = self.attempted(&claim);
            let trace = attempted.trace(&claim.destination);
            let attempt = attempt::ask(self, parcel, &claim, trace.as_ref());
            let answered = tokio::select! {
                biased;
                answered = attempt => answered,
                () = self.call.presence.ended() => {
                    return Err(ApiError::new(&ErrorCode::REQUEST_TIMEOUT, "the client has left"));
                }
            };
            let fault = match answered {
                Ok(answered) => {
                    // A client that leaves before an answer has begun says nothing of the upstream.
                    if !self.call.presence.has_ended() {
                        claim.succeeded(Instant::now());
                    }
                    return Ok(Ok(self.respond(answered, parcel, claim, charge, attempted)));
                }
                Err(fault) => fault.at(&claim.destination.provider.endpoint.label),
            };
            attempted.failed(&fault);
            drop(attempted);
            match fault.verdict {
                // The upstream has done its work.
                Verdict::Gateway => drop(charge),
                _ => charge.void(),
            }
            let refuses_options = parcel.adds_stream_options && fault.refuses_stream_options();
            if refuses_options {
                claim.destination.provider.refuse_stream_options();
            } else if !parcel.adds_stream_options && fault.verdict == Verdict::Request {
                // Without them it refuses, too: its error may only have quoted the request.
                claim.destination.provider.allow_stream_options();
            }
            if refuses_options || parcel.may_be_forgotten && fault.is_unknown_response() {
                claim.succeeded(Instant::now());
                plan.again(&claim);
                return Ok(Err(fault));
            }
            match next::after(fault, plan, &mut claim, &self.route.id) {
                ControlFlow::Continue(()) => {}
                ControlFlow::Break(outcome) => return outcome.map(Err),
            }
        }
    }

    fn attempted(&self, claim: &Claim) -> Attempted {
        let streams = self.action == Action::Answer { stream: true };
        Attempted::at(claim, &self.app.metrics, self.span.as_ref(), self.call.operation, streams)
    }

    /// The response to the client. From here on, no other upstream is asked.
    fn respond(
        &self,
        answered: Answered,
        parcel: &Parcel,
        claim: Claim,
        mut charge: Charge,
        mut attempted: Attempted,
    ) -> Response {
        let endpoint = &claim.destination.provider.endpoint;
        let origin = Origin::new(Arc::clone(&self.route.id), Arc::clone(&endpoint.name));
        let label = endpoint.label.clone();
        let is_own = !claim.destination.provider.is_simulator();
        let input = self.input;
        let mut response = match answered {
            Answered::Document { document, usage, images, share } => {
                attempted.answered();
                attempted.told(usage.as_ref());
                if let Some(usage) = usage {
                    charge.told(usage);
                }
                charge.set_images(images);
                if matches!(self.action, Action::Answer { .. } | Action::Compact) {
                    let output = Some(estimate::of_document(&document) as u64);
                    charge.estimated(Usage { input: Some(input), output, ..Usage::default() });
                }
                charge.complete();
                match self.in_background(&document, &claim) {
                    Some(background) => background.follow(&self.app, charge),
                    None => drop(charge),
                }
                held_json(document, share)
            }
            Answered::Stream(stream) => {
                // Else the client has left before it began.
                if !self.call.presence.has_ended() {
                    attempted.answered();
                }
                stream.respond(stream::Account::new(claim, charge, input, attempted))
            }
        };
        if is_own {
            response.headers_mut().insert(UPSTREAM_HEADER, label);
        }
        if parcel.estimate.is_some() {
            response.headers_mut().insert(ESTIMATED_HEADER, HeaderValue::from_static("true"));
        }
        if let Some(dropped) = &parcel.dropped {
            response.headers_mut().insert(translation::DROPPED_HEADER, dropped.clone());
        }
        response.extensions_mut().insert(origin);
        response
    }

    /// The response that an answer promises, if its upstream makes it in the background.
    fn in_background(&self, document: &[u8], claim: &Claim) -> Option<Background> {
        if !self.asked.background || self.protocol != Protocol::Responses {
            return None;
        }
        let provider = &claim.destination.provider;
        Some(Background {
            key: claim.key().and_then(|key| provider.endpoint.mark_of(key)),
            id: background::id_under_way(document)?,
            model: Arc::clone(&self.route.id),
            caller: self.call.caller.clone(),
            provider: Arc::clone(provider),
        })
    }

    /// The account of an attempt that has begun, with an estimate of what the upstream reads. Errors: a budget of the key
    /// has no room for it.
    fn charge(&self, claim: &Claim) -> Result<Charge, ApiError> {
        let upstream = Arc::clone(&claim.destination.provider.endpoint.name);
        let charge = Charge::new(self.call.caller.clone(), Arc::clone(&self.route.id), upstream);
        let charge = charge.priced(claim.destination.rates.clone());
        if self.action == Action::CountTokens {
            // It takes no tokens: that is known, not estimated.
            let mut charge = charge;
            charge.told(Usage::default());
            return Ok(charge);
        }
        let refused = |exceeded| refused(exceeded, &self.call.caller);
        if self.action == Action::Image {
            // Nobody can estimate the tokens of an image: those with a price of their own are reserved.
            let images = self.asked.choices.into();
            return charge.reserve(Consumption { images, ..Consumption::default() }).map_err(refused);
        }
        let input = Some(self.input);
        let output = self.asked.most_tokens.unwrap_or(self.route.model.default_max_tokens);
        let output = Some(output.saturating_mul(self.asked.choices.into()));
        let expected = Consumption::of_tokens(Usage { input, output, ..Usage::default() });
        let mut charge = charge.reserve(expected).map_err(refused)?;
        charge.estimated(Usage { input, output: Some(0), ..Usage::default() });
        Ok(charge)
    }
}
