//! The way of a request through the gateway: to an upstream of its model, to the next one where that fails, and back.
//! Where both sides speak one protocol, bytes pass and an observer reads the usage and the end.
//!
//! Another upstream is asked only before the first byte of an answer has gone to the client.

mod asked;
mod attempt;
mod continued;
mod counted;
mod document;
mod embedded;
mod estimate;
mod failure;
mod frames;
mod observer;
mod passing;
mod peek;
mod stream;
mod translation;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gatewright::ErrorCode;
use gatewright::limits::Rules;
use http::HeaderValue;
use serde_json::{Value, json};

use self::asked::Asked;
use self::attempt::Answered;
use self::continued::{Keeper, Whole};
use self::failure::{Fault, Verdict};
use self::passing::Framing;
use self::translation::{Translated, Translation};
use crate::app::App;
use crate::conversation::{Protocol, Usage};
use crate::observe::Origin;
use crate::routing::{Claim, Destination, Plan, Route};
use crate::upstream::Action;
use crate::usage::Charge;
use crate::wire::{ApiError, Call, Response, json_bytes, json_response};
use crate::{models, protocols};

/// Tells which upstream answered.
const UPSTREAM_HEADER: http::HeaderName = http::HeaderName::from_static("x-gatewright-upstream");
/// Bodies longer than this are checked on a thread of their own: others do not wait for them.
const LONG_BODY: usize = 64 * 1024;
/// How long a key of several is left alone after a 429 without a time.
const RATE_PAUSE: Duration = Duration::from_secs(5);
/// How long a key of several is left alone that the upstream refused.
const REFUSED_PAUSE: Duration = Duration::from_mins(1);

/// A request on its way.
struct Journey<'a> {
    app: &'a Arc<App>,
    call: &'a Arc<Call>,
    protocol: Protocol,
    action: Action,
    asked: Asked,
    framing: Framing,
    route: Arc<Route>,
}

/// What is known of the request after the first attempt.
#[derive(Default)]
struct Luggage {
    /// Whether the request keeps to the specification.
    checked: bool,
    translation: Option<Translation>,
    /// The request with the items of the response that it continues.
    whole: Option<Asked>,
}

/// The request in the words of one upstream.
struct Parcel {
    protocol: Protocol,
    body: Bytes,
    /// What its protocol has no words for.
    dropped: Option<HeaderValue>,
    /// What a translated answer repeats of the request.
    asked: Option<protocols::Asked>,
    /// Stores the answer.
    keeper: Option<Keeper>,
}

/// The rules for models that the configuration names: the catalog says nothing about them.
fn own_models() -> Rules {
    Rules::default().own_models(true)
}

/// Answers a request of a text model.
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
    let call = Arc::clone(call);
    let checked = app.workshop.work(move |_| {
        let body = call.checked_body()?;
        Err::<(), _>(models::missing(models::named(&call, &body), call.operation))
    });
    match checked.await {
        Err(error) => error,
        Ok(()) => ApiError::new(&ErrorCode::SERVER_ERROR, "the gateway failed"),
    }
}

impl<'a> Journey<'a> {
    /// None if the request names no model of this gateway. Errors: it asks for an impossible form of a stream.
    fn begin(app: &'a Arc<App>, call: &'a Arc<Call>, protocol: Protocol) -> Result<Option<Self>, ApiError> {
        let action = |stream| match call.operation.id {
            "count_tokens" | "count_message_tokens" => Action::CountTokens,
            "compact_response" => Action::Compact,
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
        let route = app.routes.load().find(&asked.model).map(Arc::clone);
        Ok(route.map(|route| Self { app, call, protocol, action, asked, framing, route }))
    }

    async fn travel(self) -> Result<Response, ApiError> {
        let responses = self.protocol == Protocol::Responses;
        if responses && !self.route.serves_responses() && !self.route.is_embedded() {
            return Err(models::elsewhere(&self.asked.model, self.call.operation));
        }
        if self.action == Action::CountTokens && !self.route.speaks(self.protocol) {
            return self.estimate().await;
        }
        let only = match self.action {
            Action::Answer { .. } if !responses || self.route.model.translate_responses => None,
            _ => Some(self.protocol),
        };
        let mut plan = self.route.plan(only);
        let mut luggage = Luggage::default();
        let mut fault: Option<Fault> = None;
        while let Some(claim) = plan.next(Instant::now(), rand::random()) {
            let parcel = self.pack(&mut luggage, &claim.destination).await?;
            if claim.destination.provider.is_simulator() {
                return Ok(embedded::answer(&self, parcel, claim).await);
            }
            match self.ask(&mut plan, &parcel, claim).await? {
                Ok(response) => return Ok(response),
                Err(failed) => fault = Some(failed),
            }
        }
        Err(match (fault, plan.unavailable()) {
            (Some(fault), _) => fault.into_error(),
            (None, Some(unavailable)) => failure::unavailable(unavailable, &self.asked.model),
            (None, None) => models::elsewhere(&self.asked.model, self.call.operation),
        })
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
        if protocol == self.protocol {
            let body = if destination.provider.is_simulator() {
                // It checks the request itself, and tells its usage unasked.
                self.asked.named(protocol, model)
            } else {
                let continues = protocol == Protocol::Responses && self.asked.continues;
                if !luggage.checked || continues && luggage.whole.is_none() {
                    let app = Arc::clone(self.app);
                    let check = move |call: &Call| {
                        let request = call.checked_body_by(own_models())?;
                        if continues { continued::body(&app, call, &request) } else { Ok(None) }
                    };
                    let whole = self.unless_long(check).await?;
                    luggage.whole = whole.and_then(|body| Asked::read(&body));
                    luggage.checked = true;
                }
                luggage.whole.as_ref().unwrap_or(&self.asked).body_for(protocol, model)
            };
            return Ok(Parcel { protocol, body, dropped: None, asked: None, keeper: None });
        }
        let translation = match &mut luggage.translation {
            Some(translation) => translation,
            none => {
                let (from, stream) = (self.protocol, self.action == Action::Answer { stream: true });
                let (model, app) = (self.asked.model.clone(), Arc::clone(self.app));
                let read = move |call: &Call| {
                    let request = call.checked_body_by(own_models())?;
                    let Whole { request: whole, keeper, origin } = match from {
                        Protocol::Responses => continued::whole(&app, call, &request)?,
                        _ => Whole { request: request.clone(), keeper: None, origin: None },
                    };
                    let conversation = Translation::read(call, from, whole, &model, stream)?;
                    Ok((conversation, request, keeper, origin))
                };
                let (conversation, request, keeper, origin) = self.unless_long(read).await?;
                luggage.checked = true;
                let translation = Translation::new(self, conversation, request);
                none.insert(translation.continued(keeper, origin))
            }
        };
        let Translated { body, dropped } = translation.request_for(protocol, model)?;
        let (asked, keeper) = (Some(translation.asked(self)), translation.keeper());
        Ok(Parcel { protocol, body, dropped, asked, keeper })
    }

    /// Works on the request: here, or for one that is long, or that continues one of any length, on a thread of its own,
    /// so that others do not wait for it.
    async fn unless_long<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Call) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        if self.call.body.len() <= LONG_BODY && !self.asked.continues {
            return work(self.call);
        }
        let call = Arc::clone(self.call);
        self.app.workshop.work(move |_| work(&call)).await
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
            let charge = self.charge(&claim);
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
                Err(fault) => fault,
            };
            charge.void();
            let now = Instant::now();
            if fault.verdict != Verdict::Request {
                // Without the upstream's words, which may hold anything.
                let upstream = &*claim.destination.provider.endpoint.name;
                tracing::warn!(upstream, model = &*self.route.id, reason = ?fault.verdict, "an attempt failed");
            }
            match fault.verdict {
                Verdict::Request => {
                    claim.succeeded(now);
                    return Err(fault.into_error());
                }
                Verdict::Upstream => {
                    claim.failed(now);
                    return Ok(Err(fault));
                }
                Verdict::Permission => {
                    if plan.further_key(&mut claim, now) {
                        continue;
                    }
                    return Ok(Err(fault));
                }
                Verdict::Key | Verdict::RateLimit => {
                    let pause = match (claim.has_one_key(), fault.verdict, fault.retry_after) {
                        (_, Verdict::RateLimit, Some(told)) => Some(told),
                        (true, ..) => None,
                        (false, Verdict::RateLimit, None) => Some(RATE_PAUSE),
                        (false, _, told) => Some(told.unwrap_or_default().max(REFUSED_PAUSE)),
                    };
                    if let Some(pause) = pause {
                        claim.key_waits(pause, now);
                    }
                    if pause.is_some() && plan.next_key(&mut claim, now) {
                        continue;
                    }
                    if fault.verdict == Verdict::RateLimit {
                        claim.failed(now);
                    }
                    return Ok(Err(fault));
                }
            }
        }
    }

    /// The response to the client. From here on, no other upstream is asked.
    fn respond(&self, answered: Answered, parcel: &Parcel, claim: Claim, mut charge: Charge) -> Response {
        let endpoint = &claim.destination.provider.endpoint;
        let origin = Origin { model: Arc::clone(&self.route.id), upstream: Arc::clone(&endpoint.name) };
        let label = endpoint.label.clone();
        let is_own = !claim.destination.provider.is_simulator();
        let input = tokens(self.call.body.len());
        let mut response = match answered {
            Answered::Document { document, usage } => {
                if let Some(usage) = usage {
                    charge.told(usage);
                }
                if let Action::Answer { .. } = self.action {
                    let output = Some(tokens(document.len()));
                    charge.estimated(Usage { input: Some(input), output, ..Usage::default() });
                }
                charge.complete();
                json_bytes(document)
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

    /// The account of an attempt that has begun, with an estimate of what the upstream reads.
    fn charge(&self, claim: &Claim) -> Charge {
        let upstream = Arc::clone(&claim.destination.provider.endpoint.name);
        let charge = Charge::new(self.call.caller.clone(), Arc::clone(&self.route.id), upstream);
        let mut charge = charge.priced(claim.destination.price);
        if let Action::Answer { .. } = self.action {
            let input = Some(tokens(self.call.body.len()));
            charge.estimated(Usage { input, output: Some(0), ..Usage::default() });
        }
        charge
    }
}

/// An estimate of the tokens of a text: four bytes are about one.
fn tokens(bytes: usize) -> u64 {
    bytes as u64 / 4
}
