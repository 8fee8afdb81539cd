//! One attempt at one upstream: sends the request and reads the response as far as failover is still possible.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::stream;
use gatewright::redact::Redactor;
use gatewright_protocol::conversation::{Protocol, Usage};
use gatewright_protocol::{Action, PlainAction, ResponseContext};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde_json::Value;

use super::conversation_state::ResponseRecorder;
use super::document::Patience;
use super::event_reader::StreamFormat;
use super::failure::AttemptFailure;
use super::passthrough_stream::{EventProcessor, PassthroughStream};
use super::plain::PassedAnswer;
use super::plain_events::{PlainEvents, SoundEvents};
use super::prepare::UpstreamRequest;
use super::sound::{Label, Sound};
use super::stream::Stream;
use super::translate_request::AnswerTranslation;
use super::translate_stream::StreamTranslation;
use super::{
    LONG_BODY, RequestContext, document, error_body, pictures, plain, plain_events, translate_request,
};
use crate::bounds::memory_budget::Reservation;
use crate::routing::UpstreamAttempt;
use crate::upstream::{NoAnswer, Request};
use crate::usage::{MediaUnits, SoundLength};
use crate::wire::content_coding::{self, Unlabelled};
use crate::wire::peeked::{PeekError, peek};
use crate::wire::{Body, BodyError, Presence};
use gatewright_protocol::inspect::StreamInspector;

/// A successful answer.
pub(super) enum SuccessfulAnswer {
    Document {
        document: Bytes,
        usage: Option<Usage>,
        /// What it consumed besides tokens, if the answer shows it.
        media: Option<MediaUnits>,
        /// The memory that it holds.
        share: Reservation,
    },
    Stream(Box<Stream>),
    Sound(Box<Sound>),
}

/// Sends the request to the upstream of an attempt. `trace`: headers that continue the trace.
pub(super) async fn ask(
    request_context: &RequestContext,
    upstream_request: &UpstreamRequest,
    attempt: &UpstreamAttempt,
    trace: Option<&HeaderMap>,
) -> Result<SuccessfulAnswer, AttemptFailure> {
    let destination = &attempt.destination;
    let endpoint = &destination.provider.endpoint;
    let protocol = upstream_request.protocol;
    let request = Request {
        protocol,
        action: request_context.action,
        model: &destination.model,
        body: upstream_request.body.clone(),
        form: request_context.call.form.as_ref().map(|form| &form.media_type),
        client: &request_context.call.headers,
        relayed: upstream_request.context.is_none(),
        id: &request_context.call.request_id,
        trace,
    };
    let answer = endpoint.send(request, attempt.key()).await;
    let (head, body) = opened(answer, protocol, &endpoint.redactor).await?;
    let speaks = request_context.action == Action::Plain(PlainAction::Speak);
    let media_type = head.headers.get(header::CONTENT_TYPE);
    if speaks && (!request_context.streams || media_type.is_some_and(is_sound)) {
        // Boxed: this is rare, and shouldn't grow the future of every request.
        return Box::pin(sound(request_context, upstream_request, attempt, &head.headers, body)).await;
    }
    let media_type = text(&head.headers, &header::CONTENT_TYPE).trim_start().to_ascii_lowercase();
    let streams = request_context.streams;
    let (format, body) = if let Some(format) = StreamFormat::of(&media_type) {
        (Some(format), body)
    } else if streams && !media_type.starts_with("application/json") {
        // Some servers label their streams with another media type, or with none.
        let is_enough = |seen: &[u8]| begins_like_events(seen).is_some();
        let looked = peek(body, endpoint.idle_timeout, is_enough).await;
        let (first, body) = looked.map_err(|why| {
            let why = match why {
                PeekError::Silent => "did not start in time",
                PeekError::Broken => "ended before it started",
            };
            AttemptFailure::broken(why, &endpoint.redactor)
        })?;
        let is_events = begins_like_events(&first) == Some(true);
        (is_events.then_some(StreamFormat::ServerSentEvents), body)
    } else {
        (None, body)
    };
    if speaks && format.is_none() {
        return Box::pin(sound(request_context, upstream_request, attempt, &head.headers, body)).await;
    }
    passed(request_context, upstream_request, attempt, body, format).await
}

/// Head and body of a successful response, decoded.
pub(super) async fn opened<B>(
    answer: Result<http::Response<B>, NoAnswer>,
    protocol: Protocol,
    redactor: &Redactor,
) -> Result<(http::response::Parts, Body), AttemptFailure>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BodyError>,
{
    let answer = answer.map_err(|why| AttemptFailure::no_answer(&why, redactor))?;
    let (head, body) = answer.into_parts();
    if head.status.is_success() {
        let body = without_codings(&head.headers, body, redactor)?;
        return Ok((head, body));
    }
    let body = error_body::read(readable(&head.headers, body)).await;
    Err(AttemptFailure::of_answer(protocol, head.status.as_u16(), &head.headers, &body, redactor))
}

/// The decoded body of a response. Errors: its content coding is unknown.
pub(super) fn without_codings<B>(
    headers: &HeaderMap,
    body: B,
    redactor: &Redactor,
) -> Result<Body, AttemptFailure>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BodyError>,
{
    match content_coding::codings(headers) {
        Ok(_) => Ok(readable(headers, body)),
        Err(_) => Err(AttemptFailure::broken("has a content encoding that was not requested", redactor)),
    }
}

/// The decoded body, or the raw body if its content coding is unknown.
pub(super) fn readable<B>(headers: &HeaderMap, body: B) -> Body
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BodyError>,
{
    match content_coding::codings(headers) {
        Ok(codings) if !codings.is_empty() => content_coding::decoded(&codings, Body::new(body)),
        _ => Body::new(Unlabelled::new(body)),
    }
}

/// Whether bytes look like the start of server-sent events: a field or a comment. `None`: they are too few to tell.
fn begins_like_events(bytes: &[u8]) -> Option<bool> {
    const STARTS: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];
    let mark = "\u{feff}".as_bytes();
    if bytes.len() < mark.len() && mark.starts_with(bytes) {
        return None;
    }
    let bytes = bytes.strip_prefix(mark).unwrap_or(bytes).trim_ascii_start();
    if STARTS.iter().any(|start| bytes.starts_with(start)) {
        return Some(true);
    }
    let may_become = STARTS.iter().any(|start| start.starts_with(bytes));
    (!may_become).then_some(false)
}

/// A header value as text; empty if the header is missing.
fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Turns a successful response into an answer for the client. `format`: of its events, if it is a stream.
pub(super) async fn passed(
    request_context: &RequestContext,
    upstream_request: &UpstreamRequest,
    attempt: &UpstreamAttempt,
    body: Body,
    format: Option<StreamFormat>,
) -> Result<SuccessfulAnswer, AttemptFailure> {
    let endpoint = &attempt.destination.provider.endpoint;
    let redactor = &endpoint.redactor;
    let streams = request_context.streams;
    let (format, body) = if let Some(format) = format.filter(|_| streams) {
        (format, body)
    } else {
        let mut share = request_context.app.share_of(&request_context.call.caller);
        let most = document::MAX_BYTES;
        let document = document::read(body, most, Patience::of(endpoint), redactor, &mut share).await?;
        if !streams {
            return passed_document(request_context, upstream_request, attempt, document, share).await;
        }
        // Boxed: this is rare, and shouldn't grow the future of every stream.
        let events = Box::pin(async {
            if matches!(request_context.action, Action::Plain(_)) {
                transcript_events(request_context, upstream_request, attempt, document, share).await
            } else {
                as_events(request_context, upstream_request, attempt, document, share).await
            }
        });
        (StreamFormat::ServerSentEvents, events.await?)
    };
    // Clients of the embedded provider may half-close the connection: its answers cost nothing.
    let is_embedded = attempt.destination.provider.is_simulator();
    let presence = if is_embedded { Presence::default() } else { request_context.call.presence.clone() };
    let stores = upstream_request.recorder.is_some();
    let events: Box<dyn EventProcessor> = match &upstream_request.context {
        _ if matches!(request_context.action, Action::Plain(_)) => {
            Box::new(PlainEvents::new(request_context.call.operation.last_events))
        }
        None => {
            let hide_usage = !request_context.meta.include_usage && !is_embedded;
            let inspector =
                StreamInspector::new(upstream_request.protocol, &request_context.meta.model, hide_usage);
            let inspector = if upstream_request.protocol.binding().stream.finishes_each_choice {
                inspector.wanting(request_context.meta.choices)
            } else {
                inspector
            };
            let recorder = recorder(request_context, upstream_request, attempt);
            Box::new(
                PassthroughStream::new(upstream_request.protocol, request_context.framing, inspector)
                    .keeping(recorder),
            )
        }
        Some(context) => {
            let recorder = upstream_request.recorder.clone();
            let (from, to) = (upstream_request.protocol, request_context.protocol);
            let events =
                StreamTranslation::new(from, to, request_context.framing, (**context).clone(), recorder)
                    .adapted_by(upstream_request.adapter.clone());
            let events = match upstream_request.estimate {
                Some(tokens) => events.estimating(tokens),
                None => events,
            };
            let events = if from.binding().stream.finishes_each_choice {
                events.wanting(request_context.meta.choices)
            } else {
                events
            };
            Box::new(if upstream_request.compacts.is_some() { events.compacting() } else { events })
        }
    };
    let share = request_context.app.share_of(&request_context.call.caller);
    let (patience, blocking_pool) =
        (endpoint.idle_timeout, request_context.app.resources.blocking_pool.clone());
    let mut stream = Stream::new(body, events, presence, patience, redactor.clone(), share, blocking_pool)
        .in_format(format);
    if stores {
        stream = stream.storing(&request_context.app.storage.history_keeper);
    }
    if !is_embedded {
        stream.begin().await?;
    }
    Ok(SuccessfulAnswer::Stream(Box::new(stream)))
}

/// Whether a media type is that of a sound.
fn is_sound(media_type: &HeaderValue) -> bool {
    Label::of(media_type) == Label::Sound
}

/// Turns a successful response with a sound into an answer for the client.
pub(super) async fn sound(
    request_context: &RequestContext,
    upstream_request: &UpstreamRequest,
    attempt: &UpstreamAttempt,
    headers: &HeaderMap,
    body: Body,
) -> Result<SuccessfulAnswer, AttemptFailure> {
    let provider = &attempt.destination.provider;
    // As for the streams of the embedded provider.
    let presence =
        if provider.is_simulator() { Presence::default() } else { request_context.call.presence.clone() };
    let share = request_context.app.share_of(&request_context.call.caller);
    let (protocol, endpoint) = (upstream_request.protocol, &provider.endpoint);
    let sound = Sound::begin(headers, body, protocol, endpoint, presence, share).await?;
    if !request_context.streams {
        return Ok(SuccessfulAnswer::Sound(Box::new(sound)));
    }
    let events = SoundEvents::of(sound);
    passed(request_context, upstream_request, attempt, events, Some(StreamFormat::ServerSentEvents)).await
}

/// Events for a client that requested a stream, made from the transcript that the upstream returned as a whole.
async fn transcript_events(
    request_context: &RequestContext,
    upstream_request: &UpstreamRequest,
    attempt: &UpstreamAttempt,
    document: Bytes,
    share: Reservation,
) -> Result<Body, AttemptFailure> {
    let answered = passed_document(request_context, upstream_request, attempt, document, share).await?;
    let redactor = &attempt.destination.provider.endpoint.redactor;
    let SuccessfulAnswer::Document { document, mut share, .. } = answered else {
        return Err(AttemptFailure::broken("is not a transcript", redactor));
    };
    let text = std::str::from_utf8(&document).unwrap_or_default();
    // The text is in two events, and once more while they are written.
    share
        .hold(share.bytes().saturating_add(document.len().saturating_mul(3)))
        .map_err(|why| AttemptFailure::no_room(why, redactor))?;
    let events =
        plain_events::of_transcript(text).ok_or_else(|| AttemptFailure::broken("has no text", redactor))?;
    Ok(held_events(events, share))
}

/// A body of events. `share`: lasts until the stream takes them.
fn held_events(events: Bytes, share: Reservation) -> Body {
    Body::from_stream(stream::once(async move {
        drop(share);
        Ok::<_, Infallible>(events)
    }))
}

/// Events for a client that requested a stream, made from the JSON document that the upstream returned.
async fn as_events(
    request_context: &RequestContext,
    upstream_request: &UpstreamRequest,
    attempt: &UpstreamAttempt,
    document: Bytes,
    mut share: Reservation,
) -> Result<Body, AttemptFailure> {
    let from = upstream_request.protocol;
    let context = ResponseContext {
        include_usage: true,
        ..translate_request::response_context(request_context, from, Value::Null)
    };
    let redactor = attempt.destination.provider.endpoint.redactor.clone();
    let is_long = document.len() > LONG_BODY;
    let write = move || {
        let events = translate_request::streamed(from, &document, context, &redactor, &mut share)?;
        Ok((events, share))
    };
    let written = if is_long {
        let worked = request_context.app.resources.blocking_pool.work(move |_| Ok(write())).await;
        worked.unwrap_or_else(|stopping| Err(AttemptFailure::stopping(&stopping)))
    } else {
        write()
    };
    let (events, share) = written?;
    Ok(held_events(events, share))
}

/// Records a relayed answer.
fn recorder(
    request_context: &RequestContext,
    upstream_request: &UpstreamRequest,
    attempt: &UpstreamAttempt,
) -> Option<ResponseRecorder> {
    upstream_request.recorder.clone().map(|recorder| recorder.held(attempt, &request_context.meta.model))
}

/// Records a relayed answer that is not a stream.
fn keep(recorder: Option<&ResponseRecorder>, document: &Bytes) {
    if let Some(recorder) = recorder {
        // A document that was passed through is UTF-8.
        recorder.keep_relayed(std::str::from_utf8(document).unwrap_or_default());
    }
}

/// Reads an answer that is not a stream. Large ones are parsed on the blocking pool.
async fn passed_document(
    request_context: &RequestContext,
    upstream_request: &UpstreamRequest,
    attempt: &UpstreamAttempt,
    document: Bytes,
    mut share: Reservation,
) -> Result<SuccessfulAnswer, AttemptFailure> {
    let (from, to, model) =
        (upstream_request.protocol, request_context.protocol, request_context.meta.model.clone());
    let redactor = attempt.destination.provider.endpoint.redactor.clone();
    let (context, adapter, compacts) =
        (upstream_request.context.clone(), upstream_request.adapter.clone(), upstream_request.compacts);
    let recorder = match &context {
        Some(_) => upstream_request.recorder.clone(),
        None => recorder(request_context, upstream_request, attempt),
    };
    let (is_long, stores) = (document.len() > LONG_BODY, recorder.is_some());
    let draws = request_context.action == Action::Image;
    let (form, input) = (upstream_request.form.clone(), request_context.input);
    let id = request_context.call.request_id.clone();
    let pass = move || {
        if draws {
            let (usage, images) = pictures::usage(&document, &redactor)?;
            let media = Some(MediaUnits { images, ..MediaUnits::default() });
            return Ok(SuccessfulAnswer::Document { document, usage: Some(usage), media, share });
        }
        if let Some(form) = form {
            let answered = plain::Answered { from, form: &*form, model: &model, input, id: &id };
            let PassedAnswer { document, usage, sound_millis } =
                answered.by(&document, &redactor, &mut share)?;
            let media = sound_millis
                .map(|millis| MediaUnits { sound: SoundLength::Millis(millis), ..MediaUnits::default() });
            return Ok(SuccessfulAnswer::Document { document, usage, media, share });
        }
        let (document, usage) = if let Some(context) = context {
            let recorder = recorder.as_ref();
            let answering = AnswerTranslation { from, to, context: &context, adapter, recorder, compacts };
            translate_request::document(answering, &document, &redactor, &mut share)?
        } else {
            let mut inspector = StreamInspector::new(from, &model, false);
            let (taken, came) = (share.bytes(), document.as_ptr());
            let document = document::passed(&document, &mut inspector, &redactor, &mut share)?;
            if document.as_ptr() == came {
                // With the room that it was read into.
                share.hold(taken).map_err(|why| AttemptFailure::no_room(why, &redactor))?;
                keep(recorder.as_ref(), &document);
                let (usage, media) = (inspector.usage, None);
                return Ok(SuccessfulAnswer::Document { document, usage, media, share });
            }
            keep(recorder.as_ref(), &document);
            (document, inspector.usage)
        };
        // The source of the document has been dropped.
        share.hold(document.len()).map_err(|why| AttemptFailure::no_room(why, &redactor))?;
        Ok(SuccessfulAnswer::Document { document, usage, media: None, share })
    };
    let passed = if is_long {
        let worked = request_context.app.resources.blocking_pool.work(move |_| Ok(pass())).await;
        worked.unwrap_or_else(|stopping| Err(AttemptFailure::stopping(&stopping)))
    } else {
        pass()
    };
    if stores && passed.is_ok() {
        request_context.app.storage.history_keeper.written().await;
    }
    passed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_streams_are_detected_by_their_first_bytes() {
        for events in ["data: {}", "event: x", "id: 1", "retry: 9", ": ping", "\u{feff}data: {}", "\n data:"]
        {
            let bytes = events.as_bytes();
            let verdicts = (0..=bytes.len()).map(|length| begins_like_events(&bytes[..length]));
            let verdicts: Vec<_> = verdicts.skip_while(Option::is_none).collect();
            assert!(
                !verdicts.is_empty() && verdicts.iter().all(|verdict| *verdict == Some(true)),
                "{events:?}: {verdicts:?}"
            );
        }
        for other in ["{\"id\":1}", "<html>", "\u{feff}{}", "dato", "[DONE]"] {
            assert_eq!(begins_like_events(other.as_bytes()), Some(false), "{other:?}");
        }
    }
}
