//! One attempt at one upstream: sends the request and judges the answer, as far as another upstream could still be asked.

use axum::body::Body;
use bytes::Bytes;
use gatewright::redact::Redactor;
use http::header;
use http_body_util::{BodyExt as _, Limited};

use super::failure::Fault;
use super::observer::Observer;
use super::passing::{Events, Passing};
use super::stream::Stream;
use super::translation::Translating;
use super::{Journey, Parcel, document, translation};
use crate::conversation::Usage;
use crate::routing::Claim;
use crate::upstream::{Action, Request};
use crate::wire::Presence;

/// Maximum size of an error that is read.
const MOST_ERROR_BYTES: usize = 64 * 1024;
/// How long the body of an error may take.
const ERROR_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// An answer that the client gets.
pub(super) enum Answered {
    Document { document: Bytes, usage: Option<Usage> },
    Stream(Box<Stream>),
}

/// Asks the upstream of a claim.
pub(super) async fn ask(journey: &Journey<'_>, parcel: &Parcel, claim: &Claim) -> Result<Answered, Fault> {
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
    };
    let answer = endpoint
        .send(request, claim.key())
        .await
        .map_err(|why| Fault::no_answer(&why, &endpoint.redactor))?;
    let (head, body) = answer.into_parts();
    if !head.status.is_success() {
        let reading = Limited::new(body, MOST_ERROR_BYTES).collect();
        let body = match tokio::time::timeout(ERROR_TIMEOUT, reading).await {
            Ok(Ok(body)) => body.to_bytes(),
            _ => Bytes::new(),
        };
        let status = head.status.as_u16();
        return Err(Fault::of_answer(protocol, status, &head.headers, &body, &endpoint.redactor));
    }
    let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !matches!(text(header::CONTENT_ENCODING), "" | "identity") {
        return Err(Fault::broken("is compressed, which nobody asked for", &endpoint.redactor));
    }
    let is_stream = text(header::CONTENT_TYPE).trim_start().starts_with("text/event-stream");
    passed(journey, parcel, claim, Body::new(body), is_stream).await
}

/// What the client gets of a successful answer.
pub(super) async fn passed(
    journey: &Journey<'_>,
    parcel: &Parcel,
    claim: &Claim,
    body: Body,
    is_stream: bool,
) -> Result<Answered, Fault> {
    let endpoint = &claim.destination.provider.endpoint;
    let redactor = &endpoint.redactor;
    let streams = journey.action == Action::Answer { stream: true };
    if !(is_stream && streams) {
        let document = document::read(body, endpoint.idle_timeout, redactor).await?;
        let passed = passed_document(journey, parcel, &document, redactor);
        // What it says in place of a stream is told, if it is an error.
        return match passed {
            Ok(_) if streams => Err(Fault::broken("is no stream", redactor)),
            passed => passed,
        };
    }
    // A client of the embedded provider may stop sending: its answer costs nothing.
    let is_embedded = claim.destination.provider.is_simulator();
    let presence = if is_embedded { Presence::default() } else { journey.call.presence.clone() };
    let events: Box<dyn Events> = match &parcel.asked {
        None => {
            let hide_usage = !journey.asked.include_usage && !is_embedded;
            let observer = Observer::new(parcel.protocol, &journey.asked.model, hide_usage);
            Box::new(Passing::new(parcel.protocol, journey.framing, observer))
        }
        Some(asked) => {
            let keeper = parcel.keeper.clone();
            let (from, to) = (parcel.protocol, journey.protocol);
            Box::new(Translating::new(from, to, journey.framing, asked.clone(), keeper))
        }
    };
    let mut stream = Stream::new(body, events, presence, endpoint.idle_timeout, redactor.clone());
    if !is_embedded {
        stream.begin().await?;
    }
    Ok(Answered::Stream(Box::new(stream)))
}

fn passed_document(
    journey: &Journey<'_>,
    parcel: &Parcel,
    document: &Bytes,
    redactor: &Redactor,
) -> Result<Answered, Fault> {
    if let Some(asked) = &parcel.asked {
        let (from, to) = (parcel.protocol, journey.protocol);
        let (document, usage) =
            translation::document(from, to, document, asked, parcel.keeper.as_ref(), redactor)?;
        return Ok(Answered::Document { document, usage });
    }
    let mut observer = Observer::new(parcel.protocol, &journey.asked.model, false);
    let document = document::passed(document, &mut observer, redactor)?;
    Ok(Answered::Document { document, usage: observer.usage })
}
