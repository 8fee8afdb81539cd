//! One attempt at one upstream: sends the request and judges the answer, as far as another upstream could still be asked.

use std::convert::Infallible;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use gatewright::redact::Redactor;
use http::{HeaderMap, HeaderName, header};
use http_body_util::{BodyExt as _, Limited};
use serde_json::Value;

use super::continued::Keeper;
use super::failure::Fault;
use super::observer::Observer;
use super::packing::Parcel;
use super::passing::{Events, Passing};
use super::stream::Stream;
use super::translating::Translating;
use super::translation::Answering;
use super::{Journey, LONG_BODY, document, pictures, translation};
use crate::bounds::room::Share;
use crate::conversation::{Protocol, Usage};
use crate::protocols;
use crate::routing::Claim;
use crate::upstream::{Action, NoAnswer, Request};
use crate::wire::Presence;
use crate::wire::content_coding::{self, Unlabelled};
use crate::wire::peeked::peek;

/// Maximum size of an error that is read.
const MOST_ERROR_BYTES: usize = 64 * 1024;
/// How long the body of an error may take.
const ERROR_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// An answer that the client gets.
pub(super) enum Answered {
    Document {
        document: Bytes,
        usage: Option<Usage>,
        /// The number of images that the model made.
        images: u64,
        /// The memory that it takes.
        share: Share,
    },
    Stream(Box<Stream>),
}

/// Asks the upstream of a claim. `trace`: headers by which it continues the trace.
pub(super) async fn ask(
    journey: &Journey,
    parcel: &Parcel,
    claim: &Claim,
    trace: Option<&HeaderMap>,
) -> Result<Answered, Fault> {
    let destination = &claim.destination;
    let endpoint = &destination.provider.endpoint;
    let protocol = parcel.protocol;
    let request = Request {
        protocol,
        action: journey.action,
        model: &destination.model,
        body: parcel.body.clone(),
        client: &journey.call.headers,
        relayed: parcel.asked.is_none(),
        id: &journey.call.request_id,
        trace,
    };
    let answer = endpoint.send(request, claim.key()).await;
    let (head, body) = opened(answer, protocol, &endpoint.redactor).await?;
    let media_type = text(&head.headers, &header::CONTENT_TYPE).trim_start().to_ascii_lowercase();
    let streams = journey.action == Action::Answer { stream: true };
    let (is_stream, body) = if media_type.starts_with("text/event-stream") {
        (true, body)
    } else if streams && !media_type.starts_with("application/json") {
        // Some servers give their streams another type, or none.
        let looked = tokio::time::timeout(endpoint.idle_timeout, peek(body)).await;
        let looked = looked.map_err(|_| Fault::broken("did not begin in time", &endpoint.redactor))?;
        let (first, body) = looked.map_err(|_| Fault::broken("ended before it began", &endpoint.redactor))?;
        (begins_like_events(&first), body)
    } else {
        (false, body)
    };
    passed(journey, parcel, claim, body, is_stream).await
}

/// Head and body of a successful answer, without its content codings.
pub(super) async fn opened<B>(
    answer: Result<http::Response<B>, NoAnswer>,
    protocol: Protocol,
    redactor: &Redactor,
) -> Result<(http::response::Parts, Body), Fault>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<axum::BoxError>,
{
    let answer = answer.map_err(|why| Fault::no_answer(&why, redactor))?;
    let (head, body) = answer.into_parts();
    if head.status.is_success() {
        let body = without_codings(&head.headers, body, redactor)?;
        return Ok((head, body));
    }
    let body = error_body(readable(&head.headers, body)).await;
    Err(Fault::of_answer(protocol, head.status.as_u16(), &head.headers, &body, redactor))
}

/// The body of an answer without its content codings. Errors: nobody can undo them.
pub(super) fn without_codings<B>(headers: &HeaderMap, body: B, redactor: &Redactor) -> Result<Body, Fault>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<axum::BoxError>,
{
    match content_coding::codings(headers) {
        Ok(_) => Ok(readable(headers, body)),
        Err(_) => Err(Fault::broken("is in a content coding that nobody asked for", redactor)),
    }
}

/// The same as far as it can be done.
pub(super) fn readable<B>(headers: &HeaderMap, body: B) -> Body
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<axum::BoxError>,
{
    match content_coding::codings(headers) {
        Ok(codings) if !codings.is_empty() => content_coding::decoded(&codings, Body::new(body)),
        _ => Body::new(Unlabelled::new(body)),
    }
}

/// Whether bytes are the beginning of a stream of events: a field or a comment.
fn begins_like_events(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes).trim_ascii_start();
    ["data:", "event:", "id:", "retry:", ":"].iter().any(|field| bytes.starts_with(field.as_bytes()))
}

/// A header as text; empty if there is none.
fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The body of an error, as far as it is read.
pub(super) async fn error_body<B>(body: B) -> Bytes
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<axum::BoxError>,
{
    let reading = Limited::new(body, MOST_ERROR_BYTES).collect();
    match tokio::time::timeout(ERROR_TIMEOUT, reading).await {
        Ok(Ok(body)) => body.to_bytes(),
        _ => Bytes::new(),
    }
}

/// What the client gets of a successful answer.
pub(super) async fn passed(
    journey: &Journey,
    parcel: &Parcel,
    claim: &Claim,
    body: Body,
    is_stream: bool,
) -> Result<Answered, Fault> {
    let endpoint = &claim.destination.provider.endpoint;
    let redactor = &endpoint.redactor;
    let streams = journey.action == Action::Answer { stream: true };
    let body = if is_stream && streams {
        body
    } else {
        let mut share = journey.app.share_of(&journey.call.caller);
        let most = document::MOST_BYTES;
        let document = document::read(body, most, endpoint.idle_timeout, redactor, &mut share).await?;
        if !streams {
            return passed_document(journey, parcel, claim, document, share).await;
        }
        // Few upstreams answer so: what it takes has no place in every stream.
        Box::pin(as_events(journey, parcel, claim, document, share)).await?
    };
    // A client of the embedded provider may stop sending: its answer costs nothing.
    let is_embedded = claim.destination.provider.is_simulator();
    let presence = if is_embedded { Presence::default() } else { journey.call.presence.clone() };
    let stores = parcel.keeper.is_some();
    let events: Box<dyn Events> = match &parcel.asked {
        None => {
            let hide_usage = !journey.asked.include_usage && !is_embedded;
            let observer = Observer::new(parcel.protocol, &journey.asked.model, hide_usage);
            let observer = match parcel.protocol {
                Protocol::Chat => observer.wanting(journey.asked.choices),
                _ => observer,
            };
            let keeper = keeper(journey, parcel, claim);
            Box::new(Passing::new(parcel.protocol, journey.framing, observer).keeping(keeper))
        }
        Some(asked) => {
            let keeper = parcel.keeper.clone();
            let (from, to) = (parcel.protocol, journey.protocol);
            let events = Translating::new(from, to, journey.framing, (**asked).clone(), keeper)
                .adapted_by(parcel.adapter.clone());
            let events = match parcel.estimate {
                Some(tokens) => events.estimating(tokens),
                None => events,
            };
            let events = match from {
                Protocol::Chat => events.wanting(journey.asked.choices),
                _ => events,
            };
            Box::new(if parcel.compacts.is_some() { events.compacting() } else { events })
        }
    };
    let share = journey.app.share_of(&journey.call.caller);
    let (patience, workshop) = (endpoint.idle_timeout, journey.app.workshop.clone());
    let mut stream = Stream::new(body, events, presence, patience, redactor.clone(), share, workshop);
    if stores {
        stream = stream.storing(&journey.app.history_keeper);
    }
    if !is_embedded {
        stream.begin().await?;
    }
    Ok(Answered::Stream(Box::new(stream)))
}

/// The events in place of a document with which the upstream answers a request for a stream.
async fn as_events(
    journey: &Journey,
    parcel: &Parcel,
    claim: &Claim,
    document: Bytes,
    mut share: Share,
) -> Result<Body, Fault> {
    let from = parcel.protocol;
    let asked = protocols::Asked { include_usage: true, ..translation::asked_of(journey, from, Value::Null) };
    let redactor = claim.destination.provider.endpoint.redactor.clone();
    let is_long = document.len() > LONG_BODY;
    let write = move || {
        let events = translation::streamed(from, &document, asked, &redactor, &mut share)?;
        Ok((events, share))
    };
    let written = if is_long {
        let worked = journey.app.workshop.work(move |_| Ok(write())).await;
        worked.unwrap_or_else(|stopping| Err(Fault::stopping(&stopping)))
    } else {
        write()
    };
    let (events, share) = written?;
    // The memory is held until the stream takes the events.
    Ok(Body::from_stream(stream::once(async move {
        drop(share);
        Ok::<_, Infallible>(events)
    })))
}

/// Stores an answer that is relayed.
fn keeper(journey: &Journey, parcel: &Parcel, claim: &Claim) -> Option<Keeper> {
    parcel.keeper.clone().map(|keeper| keeper.held(claim, &journey.asked.model))
}

/// Stores a whole answer that is relayed.
fn keep(keeper: Option<&Keeper>, document: &Bytes) {
    if let Some(keeper) = keeper {
        // What was passed is text.
        keeper.keep_relayed(std::str::from_utf8(document).unwrap_or_default());
    }
}

/// What the client gets of a whole answer. A long one is read on a thread of its own, so that others do not wait for it.
async fn passed_document(
    journey: &Journey,
    parcel: &Parcel,
    claim: &Claim,
    document: Bytes,
    mut share: Share,
) -> Result<Answered, Fault> {
    let (from, to, model) = (parcel.protocol, journey.protocol, journey.asked.model.clone());
    let redactor = claim.destination.provider.endpoint.redactor.clone();
    let (asked, adapter, compacts) = (parcel.asked.clone(), parcel.adapter.clone(), parcel.compacts);
    let keeper = match &asked {
        Some(_) => parcel.keeper.clone(),
        None => keeper(journey, parcel, claim),
    };
    let (is_long, stores) = (document.len() > LONG_BODY, keeper.is_some());
    let draws = journey.action == Action::Image;
    let pass = move || {
        if draws {
            let (usage, images) = pictures::usage(&document, &redactor)?;
            return Ok(Answered::Document { document, usage: Some(usage), images, share });
        }
        let (document, usage) = if let Some(asked) = asked {
            let keeper = keeper.as_ref();
            let answering = Answering { from, to, asked: &asked, adapter, keeper, compacts };
            translation::document(answering, &document, &redactor, &mut share)?
        } else {
            let mut observer = Observer::new(from, &model, false);
            let (taken, came) = (share.bytes(), document.as_ptr());
            let document = document::passed(&document, &mut observer, &redactor, &mut share)?;
            if document.as_ptr() == came {
                // With the room that it was read into.
                share.hold(taken).map_err(|why| Fault::no_room(why, &redactor))?;
                keep(keeper.as_ref(), &document);
                return Ok(Answered::Document { document, usage: observer.usage, images: 0, share });
            }
            keep(keeper.as_ref(), &document);
            (document, observer.usage)
        };
        // What it was made of is gone.
        share.hold(document.len()).map_err(|why| Fault::no_room(why, &redactor))?;
        Ok(Answered::Document { document, usage, images: 0, share })
    };
    let passed = if is_long {
        let worked = journey.app.workshop.work(move |_| Ok(pass())).await;
        worked.unwrap_or_else(|stopping| Err(Fault::stopping(&stopping)))
    } else {
        pass()
    };
    if stores && passed.is_ok() {
        journey.app.history_keeper.written().await;
    }
    passed
}
