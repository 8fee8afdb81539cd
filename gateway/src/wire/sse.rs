//! Server-sent events as a response. Events are produced when the connection takes them: a client that disconnects stops
//! the generation, and nothing is buffered for a slow client.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, header};
use serde_json::Value;

use super::response::Response;

/// One event.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    name: Option<String>,
    data: String,
}

impl Event {
    /// A JSON document without a name (chat, native).
    pub(crate) fn data(document: &Value) -> Self {
        Self { name: None, data: document.to_string() }
    }

    /// A JSON document named after its `type` (responses).
    pub(crate) fn named(document: &Value) -> Self {
        Self { name: document["type"].as_str().map(str::to_owned), data: document.to_string() }
    }

    /// The end marker of a stream.
    pub(crate) fn terminator(word: &str) -> Self {
        Self { name: None, data: word.to_owned() }
    }

    fn into_bytes(self) -> Bytes {
        // Our JSON text has no line breaks, so one data line is enough.
        let name = self.name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        format!("{name}data: {}\n\n", self.data).into()
    }
}

/// A body produced piece by piece. `delay`: pause before each.
pub(crate) fn paced(pieces: impl Iterator<Item = Bytes> + Send + 'static, delay: Duration) -> Body {
    Body::from_stream(stream::unfold(pieces, move |mut pieces| async move {
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        pieces.next().map(|piece| (Ok::<_, Infallible>(piece), pieces))
    }))
}

/// Responds with a stream of events. `delay`: pause before each.
pub(crate) fn respond(events: impl Iterator<Item = Event> + Send + 'static, delay: Duration) -> Response {
    let mut response = Response::new(paced(events.map(Event::into_bytes), delay));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
