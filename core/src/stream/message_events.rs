//! The events of a message with the texts of its blocks so far.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;

use serde_json::Value;

use super::growing_text::GrowingText;
use super::{EventStream, RawStream};
use crate::api::types::{Message, MessageStreamEvent};
use crate::transport::response::Response;
use crate::wire::error::Error;

/// An event of a message, with the text of its block so far. It dereferences to the event as it arrived.
///
/// ```no_run
/// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
/// use gatewright::types::{MessageRequest, MessageTurn};
///
/// let request = MessageRequest::new("model-breeze", 100, vec![MessageTurn::user("Say hello.")]);
/// let mut events = client.messages().stream(&request).await?.events();
/// while let Some(event) = events.try_next().await? {
///     println!("{}: {}", event.type_, event.snapshot.unwrap_or_default());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct MessageEvent<'e> {
    /// The event as it arrived.
    pub event: &'e MessageStreamEvent,
    /// Of a piece of text, of thinking, or of the input of a tool call: this text of the block so far.
    pub snapshot: Option<&'e str>,
    /// Of a piece of the input of a tool call: the input so far, if it has begun.
    pub input: Option<&'e Value>,
}

impl Deref for MessageEvent<'_> {
    type Target = MessageStreamEvent;

    fn deref(&self) -> &MessageStreamEvent {
        self.event
    }
}

/// The events of a message with the texts of its blocks so far; each borrows the texts until the next one is read.
///
/// ```no_run
/// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
/// use gatewright::types::{MessageRequest, MessageTurn};
///
/// let request = MessageRequest::new("model-breeze", 100, vec![MessageTurn::user("Say hello.")]);
/// let mut events = client.messages().stream(&request).await?.events();
/// while let Some(event) = events.try_next().await? {
///     if let (Some(_), Some(snapshot)) = (event.text_delta(), event.snapshot) {
///         println!("{snapshot}");
///     }
/// }
/// println!("{:?}", events.finish().await?.usage);
/// # Ok(())
/// # }
/// ```
pub struct MessageEvents {
    stream: EventStream<MessageStreamEvent>,
    event: Option<MessageStreamEvent>,
    /// By the index of their block.
    blocks: HashMap<i64, GrowingText>,
    /// The index of the block that began last. Some servers omit indexes.
    last: i64,
}

impl EventStream<MessageStreamEvent> {
    /// The events from here on, with the texts since here.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::types::{MessageRequest, MessageTurn};
    ///
    /// let request = MessageRequest::new("model-breeze", 100, vec![MessageTurn::user("Say hello.")]);
    /// let events = client.messages().stream(&request).await?.events();
    /// # Ok(())
    /// # }
    /// ```
    pub fn events(self) -> MessageEvents {
        MessageEvents { stream: self, event: None, blocks: HashMap::new(), last: -1 }
    }
}

impl MessageEvents {
    /// The next event; none after the last. Errors: those of [`EventStream::try_next`].
    ///
    /// ```no_run
    /// # async fn example(mut events: gatewright::MessageEvents) -> Result<(), gatewright::Error> {
    /// while let Some(event) = events.try_next().await? {
    ///     println!("{}", event.type_);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn try_next(&mut self) -> Result<Option<MessageEvent<'_>>, Error> {
        let Some(event) = self.stream.try_next().await? else { return Ok(None) };
        let event: &MessageStreamEvent = self.event.insert(event);
        if event.type_ == "content_block_start" {
            self.last = event.index.unwrap_or(self.last.saturating_add(1));
            self.blocks.remove(&self.last);
            if let Some(begun) = begun_text(event) {
                self.blocks.entry(self.last).or_insert_with(|| GrowingText::new(false)).push(begun);
            }
        }
        let Some((piece, is_input)) = piece_of(event) else {
            return Ok(Some(MessageEvent { event, snapshot: None, input: None }));
        };
        let index = event.index.unwrap_or(self.last);
        let text = self.blocks.entry(index).or_insert_with(|| GrowingText::new(is_input));
        text.push(piece);
        Ok(Some(MessageEvent { event, snapshot: Some(text.text()), input: text.value() }))
    }

    /// The underlying stream, with its status, headers and request id.
    ///
    /// ```no_run
    /// # fn example(events: &gatewright::MessageEvents) {
    /// println!("request {:?}", events.raw().request_id());
    /// # }
    /// ```
    pub fn raw(&self) -> &RawStream {
        self.stream.raw()
    }

    /// Reads to the end and returns the whole message, events read earlier included. Errors: as [`EventStream::finish`].
    ///
    /// ```no_run
    /// # async fn example(events: gatewright::MessageEvents) -> Result<(), gatewright::Error> {
    /// println!("{:?}", events.finish().await?.content);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn finish(self) -> Result<Response<Message>, Error> {
        self.stream.finish().await
    }
}

/// The text with which a block begins, if there is any.
fn begun_text(event: &MessageStreamEvent) -> Option<&str> {
    let block = event.content_block.as_ref()?;
    block.text.as_deref().or(block.thinking.as_deref()).filter(|text| !text.is_empty())
}

/// The text that an event adds to its block, and whether that is the input of a tool call.
fn piece_of(event: &MessageStreamEvent) -> Option<(&str, bool)> {
    let delta = event.delta.as_ref().filter(|_| event.type_ == "content_block_delta")?;
    match delta.type_.as_deref()? {
        "text_delta" => Some((delta.text.as_deref()?, false)),
        "thinking_delta" => Some((delta.thinking.as_deref()?, false)),
        "input_json_delta" => Some((delta.partial_json.as_deref()?, true)),
        _ => None,
    }
}

impl fmt::Debug for MessageEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageEvents").field("stream", &self.stream).finish_non_exhaustive()
    }
}
