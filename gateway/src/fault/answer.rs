//! Applies faults: before the provider runs, to the response headers, and to the body as it is sent. The body of a
//! stream arrives here event by event (`wire/sse.rs`), so faults in mid-stream are exact.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use gatewright::ErrorCode;
use gatewright::operations::{ErrorStyle, Operation};
use gatewright_config::RETRY_AFTER_S;
use gatewright_protocol::conversation::Protocol;
use http::{HeaderValue, StatusCode, header};
use http_body_util::BodyExt as _;
use serde_json::Value;

use super::{Fault, FaultStream, RequestFaults, messy};
use crate::wire::{ApiError, Body, Response};

/// Size of a piece of a slow response, in bytes.
const DRIP_BYTES: usize = 7;
/// The page of the fault `html`.
const PAGE: &str = "<!DOCTYPE html><html><head><title>Welcome</title></head><body>Not an API.</body></html>";
const MESSAGE: &str = "the simulated provider failed because the request asked for this fault";

/// How a body ends early.
#[derive(Clone, Copy)]
enum Cut {
    Clean,
    Reset,
    Hang,
    Error,
}

impl RequestFaults {
    /// Faults that replace the response, after the delay if there is one. is_new: whether the request has not just failed.
    pub(crate) async fn before(&self, operation: &Operation, is_new: impl Fn() -> bool) -> Option<Response> {
        for fault in &self.0 {
            match fault {
                Fault::Delay(pause) => tokio::time::sleep(*pause).await,
                Fault::Status(status) => return Some(error_of_status(*status, operation.error_style)),
                Fault::RateLimit(seconds) => return Some(rate_limit(*seconds, operation)),
                Fault::FailOnce(status) if is_new() => {
                    let is_limit = *status == StatusCode::TOO_MANY_REQUESTS;
                    return Some(if is_limit {
                        rate_limit(RETRY_AFTER_S, operation)
                    } else {
                        error_of_status(*status, operation.error_style)
                    });
                }
                _ => {}
            }
        }
        None
    }

    /// Applies the faults to a successful response.
    pub(crate) fn distort(&self, operation: &'static Operation, response: Response) -> Response {
        if self.0.is_empty() || !response.status().is_success() {
            return response;
        }
        let (mut head, body) = response.into_parts();
        let streams = head
            .headers
            .get(header::CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"));
        // The length and the pieces change.
        head.headers.remove(header::CONTENT_LENGTH);
        if self.has(&Fault::Html) {
            head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
            return Response::from_parts(head, Body::from(PAGE));
        }
        let mut pieces: FaultStream = body.into_data_stream().map_err(std::io::Error::other).boxed();
        if !streams {
            pieces = whole(pieces).boxed();
        }
        for fault in &self.0 {
            pieces = match fault {
                Fault::ContentType(value) => {
                    if let Ok(value) = HeaderValue::try_from(value) {
                        head.headers.insert(header::CONTENT_TYPE, value);
                    }
                    pieces
                }
                Fault::WrongModel(id) => {
                    let id = id.clone();
                    rewritten(pieces, move |document| rename_model(document, &id))
                }
                Fault::BadToolCall => rewritten(pieces, spoil_arguments),
                Fault::BadJson => pieces.map_ok(|piece| without_last_brace(&piece)).boxed(),
                Fault::RepeatTerminal if streams => repeated(pieces).boxed(),
                Fault::NoTerminal if streams => shortened(pieces).boxed(),
                Fault::Truncate(events) => cut(pieces, streams, *events, Cut::Clean, operation),
                Fault::Reset(events) => cut(pieces, streams, *events, Cut::Reset, operation),
                Fault::Hang(events) => cut(pieces, streams, *events, Cut::Hang, operation),
                Fault::StreamError(events) if streams => cut(pieces, true, *events, Cut::Error, operation),
                Fault::Messy => messy::mess_up(pieces, streams, operation),
                Fault::Drip(pause) => dripped(pieces, *pause).boxed(),
                _ => pieces,
            };
        }
        Response::from_parts(head, Body::from_stream(pieces))
    }
}

fn rate_limit(seconds: u64, operation: &Operation) -> Response {
    let mut response = error_of_status(429, operation.error_style);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

/// The error for a status, with the code of that status or, if it has none, of its class.
fn error_of_status(status: u16, style: ErrorStyle) -> Response {
    let code = ErrorCode::ALL.iter().find(|code| code.status == status).unwrap_or(match status {
        500.. => &ErrorCode::SERVER_ERROR,
        _ => &ErrorCode::INVALID_VALUE,
    });
    let mut response = ApiError::new(code, MESSAGE).into_response(style);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

/// A document in one piece.
fn whole(pieces: FaultStream) -> impl futures_util::Stream<Item = Result<Bytes, std::io::Error>> {
    stream::once(async move {
        let parts: Vec<Bytes> = pieces.try_collect().await?;
        Ok(Bytes::from(parts.concat()))
    })
}

/// Changes each JSON document, of the body or of its events.
fn rewritten(pieces: FaultStream, change: impl Fn(&mut Value) + Send + 'static) -> FaultStream {
    pieces
        .map_ok(move |piece| {
            let text = String::from_utf8_lossy(&piece);
            // In an event, the text after `data: `.
            let (before, document) = match text.find("data: ") {
                Some(at) if !text.starts_with('{') => text.split_at(at + "data: ".len()),
                _ => ("", text.as_ref()),
            };
            let Ok(mut value) = serde_json::from_str(document) else { return piece };
            change(&mut value);
            let after = if before.is_empty() { "" } else { "\n\n" };
            Bytes::from(format!("{before}{value}{after}"))
        })
        .boxed()
}

fn rename_model(document: &mut Value, id: &str) {
    for pointer in ["/model", "/response/model", "/message/model", "/modelVersion"] {
        if let Some(member) = document.pointer_mut(pointer) {
            *member = id.into();
        }
    }
}

/// Removes the last character of every `arguments` and of their deltas.
fn spoil_arguments(document: &mut Value) {
    let cut = |value: &mut Value| {
        if let Value::String(text) = value {
            text.pop();
        }
    };
    if document["type"] == "response.function_call_arguments.delta" {
        cut(&mut document["delta"]);
    }
    if let Some(piece) = document.pointer_mut("/delta/partial_json") {
        cut(piece);
    }
    let mut open = vec![document];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => {
                for (name, member) in members {
                    match (name.as_str(), &member) {
                        ("arguments", Value::String(_)) => cut(member),
                        // In the native and the messages protocol, arguments are an object. Text in their place violates
                        // the schema.
                        ("args" | "input", Value::Object(_)) => *member = member.to_string().into(),
                        _ => open.push(member),
                    }
                }
            }
            _ => {}
        }
    }
}

fn without_last_brace(piece: &Bytes) -> Bytes {
    let Some(at) = piece.iter().rposition(|byte| *byte == b'}') else { return piece.clone() };
    [&piece[..at], &piece[at + 1..]].concat().into()
}

/// Repeats the last event.
fn repeated(pieces: FaultStream) -> impl futures_util::Stream<Item = Result<Bytes, std::io::Error>> {
    held_back(pieces).flat_map(|(piece, is_last)| {
        let again = match (&piece, is_last) {
            (Ok(bytes), true) => Some(Ok(bytes.clone())),
            _ => None,
        };
        stream::iter(std::iter::once(piece).chain(again))
    })
}

/// Drops the last event.
fn shortened(pieces: FaultStream) -> impl futures_util::Stream<Item = Result<Bytes, std::io::Error>> {
    held_back(pieces).filter_map(|(piece, is_last)| async move { (!is_last).then_some(piece) })
}

/// Marks the last piece: the last document, also if a terminator follows it.
fn held_back(pieces: FaultStream) -> impl futures_util::Stream<Item = (Result<Bytes, std::io::Error>, bool)> {
    stream::unfold((pieces.fuse(), None), |(mut pieces, held)| async move {
        let piece = match held {
            Some(held) => held,
            None => pieces.next().await?,
        };
        let next = pieces.next().await;
        let terminator = |next: &Result<Bytes, std::io::Error>| {
            next.as_ref().is_ok_and(|bytes| bytes.starts_with(b"data: ["))
        };
        let is_last = next.as_ref().is_none_or(terminator)
            && !piece.as_ref().is_ok_and(|bytes| bytes.starts_with(b"data: ["));
        Some(((piece, is_last), (pieces, next)))
    })
}

/// Ends a stream after this many events, and a document after half its bytes.
fn cut(
    pieces: FaultStream,
    streams: bool,
    events: usize,
    how: Cut,
    operation: &'static Operation,
) -> FaultStream {
    let started = if streams {
        pieces.take(events).boxed()
    } else {
        pieces.map_ok(|piece| piece.slice(..piece.len() / 2)).boxed()
    };
    let end = stream::once(async move {
        match how {
            Cut::Clean => None,
            Cut::Reset => {
                // Flushes the output before the connection is reset.
                tokio::time::sleep(Duration::from_millis(20)).await;
                Some(Err(std::io::Error::other(
                    "the connection was reset because the request asked for this fault",
                )))
            }
            Cut::Hang => std::future::pending().await,
            Cut::Error => error_event(operation, events).map(Ok),
        }
    });
    started.chain(end.filter_map(|piece| async { piece })).boxed()
}

/// An error in the stream, in the format of the protocol. `None`: the operation is of no text protocol.
fn error_event(operation: &Operation, number: usize) -> Option<Bytes> {
    let event = Protocol::of_operation(operation.protocol)?.server_error_event(MESSAGE, number)?;
    Some(event.into())
}

/// Sends small pieces with pauses between them.
fn dripped(
    pieces: FaultStream,
    pause: Duration,
) -> impl futures_util::Stream<Item = Result<Bytes, std::io::Error>> {
    pieces
        .map_ok(|piece| {
            let drops: Vec<_> = piece.chunks(DRIP_BYTES).map(Bytes::copy_from_slice).collect();
            stream::iter(drops.into_iter().map(Ok::<_, std::io::Error>))
        })
        .try_flatten()
        .then(move |drop| async move {
            tokio::time::sleep(pause).await;
            drop
        })
}
