//! The way of a request through the gateway: to an upstream of its model, to the next one where that fails, and back.
//! Where both sides speak one protocol, bytes pass and an observer reads the usage and the end.
//!
//! Another upstream is asked only before the first byte of an answer has gone to the client.

mod asked;
mod attempt;
mod compaction;
mod continued;
mod counted;
mod document;
mod embedded;
mod estimate;
mod failure;
mod frames;
mod held;
mod next;
mod observer;
mod passing;
mod peek;
mod pictures;
mod relayed;
mod stream;
mod translating;
mod translation;
mod videos;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use gatewright::ErrorCode;
use gatewright::limits::Rules;
use gatewright::operations::Operation;
use gatewright::redact::Redactor;
use http::HeaderValue;
use serde_json::{Value, json};

use self::asked::Asked;
use self::attempt::Answered;
use self::compaction::Form;
use self::continued::{Keeper, Whole};
pub(crate) use self::failure::{Fault, UPSTREAM_HEADER, Verdict};
pub(crate) use self::held::answer as answer_stored;
use self::passing::Framing;
pub(crate) use self::translation::DROPPED_HEADER;
use self::translation::{Translated, Translation};
pub(crate) use self::videos::{Accepted, Content, Order, Remote, submit};
use crate::access::refused;
use crate::app::App;
use crate::bounds::budget::Budget;
use crate::bounds::room::NoRoom;
use crate::config::ModelKind;
use crate::conversation::{Protocol, Usage};
use crate::observe::Origin;
use crate::routing::{Claim, Destination, Plan, Route};
use crate::store::{Documents, Known};
use crate::upstream::Action;
use crate::usage::Charge;
use crate::wire::{ApiError, Call, Response, held_json, json_response};
use crate::{kept, models, protocols};

/// Bodies longer than this are checked on a thread of their own: others do not wait for them.
const LONG_BODY: usize = 64 * 1024;

/// A request on its way.
struct Journey<'a> {
    app: &'a Arc<App>,
    call: &'a Arc<Call>,
    protocol: Protocol,
    action: Action,
    asked: Asked,
    framing: Framing,
    route: Arc<Route>,
    /// Estimated number of tokens of the request.
    input: u64,
}

/// What is known of the request after the first attempt.
#[derive(Default)]
struct Luggage {
    translation: Option<Translation>,
    /// The response that the request continues, unless the upstream that stores it has forgotten it.
    previous: Option<Known>,
    /// Set where the request was checked for upstreams of its protocol: whether for the one that stores the previous
    /// response.
    relayed_there: Option<bool>,
    /// The request in other bytes than the client's.
    rewritten: Option<Asked>,
    /// Stores an answer that is relayed.
    keeper: Option<Keeper>,
    /// Whether a request for images keeps to the limits of the model.
    pictures_checked: bool,
}

/// The request in the words of one upstream.
struct Parcel {
    protocol: Protocol,
    body: Bytes,
    /// What its protocol has no words for.
    dropped: Option<HeaderValue>,
    /// What a translated answer repeats of the request.
    asked: Option<Arc<protocols::Asked>>,
    /// Stores the answer.
    keeper: Option<Keeper>,
    /// How the client asks for a compaction that the gateway makes.
    compacts: Option<Form>,
    /// Whether the upstream has to know the response that the request continues, and could do without.
    may_be_forgotten: bool,
}

impl Parcel {
    fn new(protocol: Protocol, body: Bytes) -> Self {
        let (dropped, asked, keeper, compacts) = (None, None, None, None);
        Self { protocol, body, dropped, asked, keeper, compacts, may_be_forgotten: false }
    }
}

/// The rules for models that the configuration names: the catalog says nothing about them.
fn own_models() -> Rules {
    Rules::default().own_models(true)
}

/// Answers a request of a text or image model. Images are asked for in the protocol of chat: the upstreams that speak it
/// draw them, too.
pub(crate) async fn answer(app: &Arc<App>, call: Call, protocol: Protocol) -> Response {
    let operation = call.operation;
    let call = Arc::new(call);
    let answered = match Journey::begin(app, &call, protocol) {
        Ok(Some(journey)) => journey.travel().await,
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

impl<'a> Journey<'a> {
    /// None if the request names no model of this gateway. Errors: it asks for an impossible form of a stream.
    fn begin(app: &'a Arc<App>, call: &'a Arc<Call>, protocol: Protocol) -> Result<Option<Self>, ApiError> {
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
        Ok(Some(Self { app, call, protocol, action, asked, framing, route, input }))
    }

    async fn travel(self) -> Result<Response, ApiError> {
        let responses = self.protocol == Protocol::Responses;
        if responses && !self.route.serves_responses() && !self.route.is_embedded() {
            return Err(models::elsewhere(&self.asked.model, self.call.operation));
        }
        if self.action == Action::CountTokens && !self.route.speaks(self.protocol) {
            return self.estimate().await;
        }
        let is_bound = responses && !self.route.model.translate_responses;
        let only = (is_bound || self.action == Action::CountTokens).then_some(self.protocol);
        let mut plan = self.route.plan(only);
        let mut luggage = Luggage { previous: self.previous()?, ..Luggage::default() };
        let mut share = self.app.room.share();
        if let Some(previous) = &luggage.previous {
            continued::lead(previous, &mut plan)?;
            let copy = previous.documents.as_ref().map_or(0, Documents::weight);
            share.hold(copy).map_err(|NoRoom| Fault::no_room(&Redactor::default()).into_error())?;
        }
        let mut fault: Option<Fault> = None;
        while let Some(claim) = plan.next(Instant::now(), rand::random()) {
            let parcel = self.pack(&mut luggage, &claim.destination).await?;
            if claim.destination.provider.is_simulator() {
                return embedded::answer(&self, parcel, claim).await;
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
    fn previous(&self) -> Result<Option<Known>, ApiError> {
        let id = self.asked.previous.as_ref().filter(|_| self.protocol == Protocol::Responses);
        id.map(|id| kept::previous(self.app, self.call, id)).transpose()
    }

    /// Counts the tokens of a request whose upstreams do not.
    async fn estimate(&self) -> Result<Response, ApiError> {
        let (from, model) = (self.protocol, self.asked.model.clone());
        let count = move |call: &Call| {
            let mut request = call.checked_body_by(own_models())?;
            if let inner @ Value::Object(_) = request["generateContentRequest"].take() {
                request = inner;
            }
            Ok(estimate::of(&Translation::read(call, from, request, &model, false)?))
        };
        let tokens = self.unless_long(count).await?;
        Ok(json_response(&match from {
            Protocol::Native => json!({ "totalTokens": tokens }),
            _ => json!({ "input_tokens": tokens }),
        }))
    }

    /// The request in the words of an upstream.
    async fn pack(&self, luggage: &mut Luggage, destination: &Destination) -> Result<Parcel, ApiError> {
        let protocol = destination.protocol_for(self.protocol);
        let model = &destination.model;
        if self.action == Action::Image {
            return self.pack_for_pictures(luggage, model).await;
        }
        if protocol == self.protocol {
            return self.relayed(luggage, destination).await;
        }
        let mut translation = match luggage.translation.take() {
            Some(translation) => translation,
            None => self.read().await?,
        };
        let (asked, keeper, compacts) =
            (Some(translation.asked()), translation.keeper(), translation.compacts());
        let model = Arc::clone(model);
        let write = move |_: &Call| {
            let written = translation.request_for(protocol, &model)?;
            Ok((translation, written))
        };
        let (translation, Translated { body, dropped }) = self.unless_long(write).await?;
        luggage.translation = Some(translation);
        Ok(Parcel { dropped, asked, keeper, compacts, ..Parcel::new(protocol, body) })
    }

    /// The request for images in the words of an upstream. The limits of the catalog hold whoever draws them.
    async fn pack_for_pictures(&self, luggage: &mut Luggage, model: &str) -> Result<Parcel, ApiError> {
        if !luggage.pictures_checked {
            let limits = self.route.model.limits.clone();
            let check = move |call: &Call| call.checked_body_of(limits.as_deref(), Rules::default());
            self.unless_long(check).await?;
            luggage.pictures_checked = true;
        }
        Ok(Parcel::new(Protocol::Chat, self.asked.named(Protocol::Chat, model)))
    }

    /// Checks the request, and reads it into the neutral form.
    async fn read(&self) -> Result<Translation, ApiError> {
        let (from, stream) = (self.protocol, self.action == Action::Answer { stream: true });
        let (model, app) = (self.asked.model.clone(), Arc::clone(self.app));
        let read = move |call: &Call| {
            let mut share = app.room.share();
            let weight = gatewright::json_weight(&call.body);
            share.hold(2 * weight).map_err(|NoRoom| Fault::no_room(&Redactor::default()).into_error())?;
            let mut request = call.checked_body_by(own_models())?;
            // Answers of no other protocol repeat the request, and none its input.
            let (mut whole, request) = match from {
                Protocol::Responses => {
                    let whole = continued::whole(&app, call, &request)?;
                    request["input"].take();
                    (whole, request)
                }
                _ => (Whole::of(request), Value::Null),
            };
            let conversation = Translation::read(call, from, whole.request.take(), &model, stream)?;
            Ok((conversation, request, share, whole))
        };
        let (conversation, request, share, whole) = self.unless_long(read).await?;
        Ok(Translation::new(self, conversation, request, share).continued(whole))
    }

    /// Works on the request: here, or for one that is long, or that continues one of any length, on a thread of its own,
    /// so that others do not wait for it.
    async fn unless_long<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Call) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        if self.call.body.len() <= LONG_BODY && self.asked.previous.is_none() {
            return work(self.call);
        }
        let (call, mut share) = (Arc::clone(self.call), self.app.room.share());
        let work = move |_: &Budget| {
            let weight = gatewright::json_weight(&call.body);
            share.hold(weight).map_err(|NoRoom| Fault::no_room(&Redactor::default()).into_error())?;
            work(&call)
        };
        self.app.workshop.work(work).await
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
            let attempt = attempt::ask(self, parcel, &claim);
            let answered = tokio::select! {
                biased;
                answered = attempt => answered,
                () = self.call.presence.ended() => {
                    return Err(ApiError::new(&ErrorCode::REQUEST_TIMEOUT, "the client has left"));
                }
            };
            let fault = match answered {
                Ok(answered) => {
                    claim.succeeded(Instant::now());
                    return Ok(Ok(self.respond(answered, parcel, claim, charge)));
                }
                Err(fault) => fault.at(&claim.destination.provider.endpoint.label),
            };
            match fault.verdict {
                // The upstream has done its work.
                Verdict::Gateway => drop(charge),
                _ => charge.void(),
            }
            if parcel.may_be_forgotten && fault.is_unknown_response() {
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

    /// The response to the client. From here on, no other upstream is asked.
    fn respond(&self, answered: Answered, parcel: &Parcel, claim: Claim, mut charge: Charge) -> Response {
        let endpoint = &claim.destination.provider.endpoint;
        let origin = Origin { model: Arc::clone(&self.route.id), upstream: Arc::clone(&endpoint.name) };
        let label = endpoint.label.clone();
        let is_own = !claim.destination.provider.is_simulator();
        let input = self.input;
        let mut response = match answered {
            Answered::Document { document, usage, share } => {
                if let Some(usage) = usage {
                    charge.told(usage);
                }
                if matches!(self.action, Action::Answer { .. } | Action::Compact) {
                    let output = Some(estimate::of_document(&document) as u64);
                    charge.estimated(Usage { input: Some(input), output, ..Usage::default() });
                }
                charge.complete();
                held_json(document, share)
            }
            Answered::Stream(stream) => stream.respond(stream::Account { claim, charge, input }),
        };
        if is_own {
            response.headers_mut().insert(UPSTREAM_HEADER, label);
        }
        if let Some(dropped) = &parcel.dropped {
            response.headers_mut().insert(translation::DROPPED_HEADER, dropped.clone());
        }
        response.extensions_mut().insert(origin);
        response
    }

    /// The account of an attempt that has begun, with an estimate of what the upstream reads. Errors: a budget of the key
    /// has no room for it.
    fn charge(&self, claim: &Claim) -> Result<Charge, ApiError> {
        let upstream = Arc::clone(&claim.destination.provider.endpoint.name);
        let charge = Charge::new(self.call.caller.clone(), Arc::clone(&self.route.id), upstream);
        let charge = charge.priced(claim.destination.price);
        if self.action == Action::CountTokens {
            return Ok(charge);
        }
        let refused = |exceeded| refused(exceeded, &self.call.caller);
        if self.action == Action::Image {
            // Nobody can estimate what a picture takes: only whether something is left is asked.
            return charge.reserve(Usage::default()).map_err(refused);
        }
        let input = Some(self.input);
        let output = self.asked.most_tokens.unwrap_or(self.route.model.default_max_tokens);
        let output = Some(output.saturating_mul(self.asked.choices.into()));
        let mut charge = charge.reserve(Usage { input, output, ..Usage::default() }).map_err(refused)?;
        charge.estimated(Usage { input, output: Some(0), ..Usage::default() });
        Ok(charge)
    }
}
