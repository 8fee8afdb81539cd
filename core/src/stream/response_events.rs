//! The events of a response with the texts so far.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde_json::Value;

use super::chat_events::NoValue;
use super::growing_text::GrowingText;
use super::{EventStream, RawStream};
use crate::api::types::{self, ResponseStreamEvent};
use crate::transport::response::Response;
use crate::wire::error::Error;

/// An event of a response, with the text so far. It dereferences to the event as it arrived.
///
/// ```no_run
/// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
/// use gatewright::types::ResponseRequest;
///
/// let request = ResponseRequest::new("model-sol", "Say hello.");
/// let mut events = client.responses().stream(&request).await?.events();
/// while let Some(event) = events.try_next().await? {
///     println!("{}: {}", event.type_, event.snapshot.unwrap_or_default());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ResponseEvent<'e> {
    /// The event as it arrived.
    pub event: &'e ResponseStreamEvent,
    /// Of `response.output_text.delta` and `response.function_call_arguments.delta`: the text so far.
    pub snapshot: Option<&'e str>,
    /// Of `response.output_text.delta`: the JSON so far, if the text is read as a type and there is any.
    pub parsed: Option<&'e Value>,
}

impl Deref for ResponseEvent<'_> {
    type Target = ResponseStreamEvent;

    fn deref(&self) -> &ResponseStreamEvent {
        self.event
    }
}

/// The events of a response with the texts so far; each borrows the texts until the next one is read.
///
/// ```no_run
/// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
/// use gatewright::types::ResponseRequest;
///
/// let request = ResponseRequest::new("model-sol", "Say hello.");
/// let mut events = client.responses().stream(&request).await?.events();
/// while let Some(event) = events.try_next().await? {
///     if let Some(snapshot) = event.snapshot {
///         println!("{snapshot}");
///     }
/// }
/// println!("{}", events.finish().await?.output_text());
/// # Ok(())
/// # }
/// ```
pub struct ResponseEvents<T = NoValue> {
    stream: EventStream<ResponseStreamEvent>,
    event: Option<ResponseStreamEvent>,
    /// By the indices of their item and part.
    texts: HashMap<TextPlace, GrowingText>,
    /// Those of calls.
    arguments: HashMap<TextPlace, GrowingText>,
    /// Whether texts are read as values.
    reads_json: bool,
    value: PhantomData<fn() -> T>,
}

/// The indices of an item and of a part in it.
type TextPlace = (Option<i64>, Option<i64>);

impl EventStream<ResponseStreamEvent> {
    /// The events from here on, with the texts since here.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::types::ResponseRequest;
    ///
    /// let request = ResponseRequest::new("model-sol", "Say hello.");
    /// let events = client.responses().stream(&request).await?.events();
    /// # Ok(())
    /// # }
    /// ```
    pub fn events(self) -> ResponseEvents {
        ResponseEvents::new(self, false)
    }
}

impl<T> ResponseEvents<T> {
    pub(crate) fn new(stream: EventStream<ResponseStreamEvent>, reads_json: bool) -> Self {
        let (texts, arguments) = (HashMap::new(), HashMap::new());
        Self { stream, event: None, texts, arguments, reads_json, value: PhantomData }
    }

    /// The next event; none after the last. Errors: those of [`EventStream::try_next`].
    ///
    /// ```no_run
    /// # async fn example(mut events: gatewright::ResponseEvents) -> Result<(), gatewright::Error> {
    /// while let Some(event) = events.try_next().await? {
    ///     println!("{}", event.type_);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn try_next(&mut self) -> Result<Option<ResponseEvent<'_>>, Error> {
        let Some(event) = self.stream.try_next().await? else { return Ok(None) };
        let event = self.event.insert(event);
        let (texts, reads_json) = match event.type_.as_str() {
            "response.output_text.delta" => (&mut self.texts, self.reads_json),
            "response.function_call_arguments.delta" => (&mut self.arguments, false),
            _ => return Ok(Some(ResponseEvent { event, snapshot: None, parsed: None })),
        };
        let place = (event.output_index, event.content_index);
        let text = texts.entry(place).or_insert_with(|| GrowingText::new(reads_json));
        text.push(event.delta.as_deref().unwrap_or_default());
        Ok(Some(ResponseEvent { event, snapshot: Some(text.text()), parsed: text.value() }))
    }

    /// The stream beneath, with its status, headers and request id.
    ///
    /// ```no_run
    /// # fn example(events: &gatewright::ResponseEvents) {
    /// println!("request {:?}", events.raw().request_id());
    /// # }
    /// ```
    pub fn raw(&self) -> &RawStream {
        self.stream.raw()
    }

    /// Ends the reading event by event.
    pub(crate) fn into_stream(self) -> EventStream<ResponseStreamEvent> {
        self.stream
    }
}

impl ResponseEvents {
    /// Reads to the end and returns the whole response, events read earlier included. Errors: as [`EventStream::finish`].
    ///
    /// ```no_run
    /// # async fn example(events: gatewright::ResponseEvents) -> Result<(), gatewright::Error> {
    /// println!("{}", events.finish().await?.output_text());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn finish(self) -> Result<Response<types::Response>, Error> {
        self.into_stream().finish().await
    }
}

impl<T> fmt::Debug for ResponseEvents<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseEvents").field("stream", &self.stream).finish_non_exhaustive()
    }
}
