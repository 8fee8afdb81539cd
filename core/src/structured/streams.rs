//! Streams whose text is read as a value while it arrives.

use std::fmt;
use std::marker::PhantomData;

use schemars_1::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Parsed;
use super::calls::{chat_request, response_request};
use super::reading;
use super::schema::name_of;
use crate::api::chunk::Chunk;
use crate::api::operations::CREATE_CHAT_COMPLETION;
use crate::api::types::{
    self, ChatCompletion, ChatCompletionChunk, ChatCompletionRequest, ResponseRequest, ResponseStreamEvent,
};
use crate::client::resources::{ChatCompletions, Responses};
use crate::stream::chat_events::ValueOfText;
use crate::stream::json_prefix::JsonPrefix;
use crate::stream::{ChatEvents, EventStream, RawStream, ResponseEvents};
use crate::transport::response::Response;
use crate::wire::error::{Error, ErrorKind};

/// A stream of events whose text is JSON of a type: its value can be read while it grows.
///
/// ```no_run
/// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
/// use gatewright::schemars::{self, JsonSchema};
/// use gatewright::types::{ChatCompletionRequest, ChatMessage};
/// use serde::Deserialize;
///
/// #[derive(Debug, Deserialize, JsonSchema)]
/// struct City {
///     name: String,
///     sights: Vec<String>,
/// }
///
/// let request = ChatCompletionRequest::new("model-sol", vec![ChatMessage::user("The capital of Norway?")]);
/// let mut stream = client.chat().completions().parse_stream::<City>(&request).await?;
/// while stream.try_next().await?.is_some() {
///     if let Some(city) = stream.partial() {
///         println!("{}: {}", city["name"], city["sights"]);
///     }
/// }
/// println!("{:?}", stream.finish().await?.value());
/// # Ok(())
/// # }
/// ```
pub struct ParsedStream<C, T> {
    events: EventStream<C>,
    partial: JsonPrefix,
    value: PhantomData<fn() -> T>,
}

/// An event of a stream whose text can be read as a value.
pub trait ParsedChunk: Chunk {
    /// Whether what follows is the text of another message.
    fn begins_message(&self) -> bool;
    /// The new text of the first choice.
    fn new_text(&self) -> Option<&str>;
    /// Reads the whole answer.
    fn parsed<T: JsonSchema + DeserializeOwned>(
        whole: Response<Self::Whole>,
    ) -> Result<Parsed<Self::Whole, T>, Error>;
}

impl ParsedChunk for ChatCompletionChunk {
    fn begins_message(&self) -> bool {
        false
    }

    fn new_text(&self) -> Option<&str> {
        self.text()
    }

    fn parsed<T: JsonSchema + DeserializeOwned>(
        whole: Response<Self::Whole>,
    ) -> Result<Parsed<Self::Whole, T>, Error> {
        reading::read(whole)
    }
}

impl ParsedChunk for ResponseStreamEvent {
    fn begins_message(&self) -> bool {
        self.type_ == "response.output_item.added"
            && self.item.as_ref().is_some_and(|item| item.type_ == "message")
    }

    fn new_text(&self) -> Option<&str> {
        self.text_delta()
    }

    fn parsed<T: JsonSchema + DeserializeOwned>(
        whole: Response<Self::Whole>,
    ) -> Result<Parsed<Self::Whole, T>, Error> {
        reading::read(whole)
    }
}

impl<C: ParsedChunk, T: JsonSchema + DeserializeOwned> ParsedStream<C, T> {
    fn new(events: EventStream<C>) -> Self {
        Self { events, partial: JsonPrefix::default(), value: PhantomData }
    }

    /// The next event, as it comes; none once the stream is complete. Errors: as [`EventStream::try_next`].
    ///
    /// ```no_run
    /// # use gatewright::{Error, ParsedStream, types::ChatCompletionChunk};
    /// # async fn example(mut stream: ParsedStream<ChatCompletionChunk, String>) -> Result<(), Error> {
    /// while let Some(chunk) = stream.try_next().await? {
    ///     print!("{}", chunk.text().unwrap_or_default());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn try_next(&mut self) -> Result<Option<C>, Error> {
        let event = self.events.try_next().await?;
        if let Some(event) = &event {
            if event.begins_message() {
                self.partial = JsonPrefix::default();
            }
            if let Some(text) = event.new_text() {
                self.partial.push(text);
            }
        }
        Ok(event)
    }

    /// The value so far of the first choice; none before it begins. Strings grow; numbers, `true`, `false` and `null` appear
    /// once what follows shows that they are whole, and members with their values. Each event costs as much as its own
    /// text. None also after text that is not JSON, and for a value with more than 128 levels, 100,000 values or 8 MiB
    /// of text.
    ///
    /// ```no_run
    /// # use gatewright::{Error, ParsedStream, types::ChatCompletionChunk};
    /// # async fn example(mut stream: ParsedStream<ChatCompletionChunk, String>) -> Result<(), Error> {
    /// while stream.try_next().await?.is_some() {
    ///     println!("{:?}", stream.partial());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn partial(&self) -> Option<&Value> {
        self.partial.value()
    }

    /// The stream beneath, with its status, headers and request id.
    ///
    /// ```no_run
    /// # use gatewright::{ParsedStream, types::ChatCompletionChunk};
    /// # fn example(stream: &ParsedStream<ChatCompletionChunk, String>) {
    /// println!("request {:?}", stream.raw().request_id());
    /// # }
    /// ```
    pub fn raw(&self) -> &RawStream {
        self.events.raw()
    }

    /// Reads to the end and returns the whole answer with its values, events read earlier included. Errors: as
    /// [`EventStream::finish`] and [`ChatCompletions::parse`].
    ///
    /// ```no_run
    /// # use gatewright::{Error, ParsedStream, types::ChatCompletionChunk};
    /// # async fn example(stream: ParsedStream<ChatCompletionChunk, String>) -> Result<(), Error> {
    /// println!("{:?}", stream.finish().await?.value());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn finish(self) -> Result<Parsed<C::Whole, T>, Error> {
        C::parsed(self.events.finish().await?)
    }
}

impl<T: JsonSchema + DeserializeOwned> ParsedStream<ChatCompletionChunk, T> {
    /// The events from here on, with the answer since here: as [`EventStream::events`], and with the value of each text.
    ///
    /// ```no_run
    /// # use gatewright::{ChatEvent, Error, ParsedStream, types::ChatCompletionChunk};
    /// # async fn example(stream: ParsedStream<ChatCompletionChunk, String>) -> Result<(), Error> {
    /// let mut events = stream.events();
    /// while let Some(event) = events.try_next().await? {
    ///     if let ChatEvent::ContentDone { parsed, .. } = event {
    ///         println!("{parsed:?}");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn events(self) -> ChatEvents<T> {
        let read = |text: &str| reading::fit(text).ok();
        let misfit = |whole: Response<ChatCompletion>| match reading::read::<_, T>(whole) {
            Err(error) => error,
            // The answer has gone on after a text that was complete, and has become another one.
            Ok(whole) => whole.describe(
                Error::new(
                    ErrorKind::StructuredOutput,
                    format!("a text that was complete is no {}", name_of::<T>()),
                ),
                &CREATE_CHAT_COMPLETION,
            ),
        };
        ChatEvents::new(self.events, Some(ValueOfText { read, misfit }))
    }
}

impl<T: JsonSchema + DeserializeOwned> ChatEvents<T> {
    /// Reads to the end and returns the whole answer with its values, events read earlier included. Errors: as
    /// [`ParsedStream::finish`].
    ///
    /// ```no_run
    /// # async fn example(events: gatewright::ChatEvents<String>) -> Result<(), gatewright::Error> {
    /// println!("{:?}", events.finish().await?.into_value());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn finish(self) -> Result<Parsed<ChatCompletion, T>, Error> {
        reading::read(self.into_stream().finish().await?)
    }
}

impl<T: JsonSchema + DeserializeOwned> ParsedStream<ResponseStreamEvent, T> {
    /// The events from here on, with the texts since here: as [`EventStream::events`], and with the JSON so far.
    ///
    /// ```no_run
    /// # use gatewright::{Error, ParsedStream, types::ResponseStreamEvent};
    /// # async fn example(stream: ParsedStream<ResponseStreamEvent, String>) -> Result<(), Error> {
    /// let mut events = stream.events();
    /// while let Some(event) = events.try_next().await? {
    ///     println!("{:?}", event.parsed);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn events(self) -> ResponseEvents<T> {
        ResponseEvents::new(self.events, true)
    }
}

impl<T: JsonSchema + DeserializeOwned> ResponseEvents<T> {
    /// Reads to the end and returns the whole response with its value, events read earlier included. Errors: as
    /// [`ParsedStream::finish`].
    ///
    /// ```no_run
    /// # async fn example(events: gatewright::ResponseEvents<String>) -> Result<(), gatewright::Error> {
    /// println!("{:?}", events.finish().await?.into_value());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn finish(self) -> Result<Parsed<types::Response, T>, Error> {
        reading::read(self.into_stream().finish().await?)
    }
}

impl<C, T> fmt::Debug for ParsedStream<C, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParsedStream").field("events", &self.events).finish_non_exhaustive()
    }
}

impl ChatCompletions<'_> {
    /// As [`ChatCompletions::parse`], while the answer is streamed. Errors: those of `stream`, and InvalidRequest as in
    /// `parse`.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::schemars::{self, JsonSchema};
    /// use gatewright::types::{ChatCompletionRequest, ChatMessage};
    /// use serde::Deserialize;
    ///
    /// #[derive(Debug, Deserialize, JsonSchema)]
    /// struct City {
    ///     name: String,
    /// }
    ///
    /// let request = ChatCompletionRequest::new("model-sol", vec![ChatMessage::user("The capital of Norway?")]);
    /// let stream = client.chat().completions().parse_stream::<City>(&request).await?;
    /// println!("{:?}", stream.finish().await?.value());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn parse_stream<T: JsonSchema + DeserializeOwned>(
        &self,
        body: &ChatCompletionRequest,
    ) -> Result<ParsedStream<ChatCompletionChunk, T>, Error> {
        Ok(ParsedStream::new(self.stream(&chat_request::<T>(body)?).await?))
    }
}

impl Responses<'_> {
    /// As [`Responses::parse`], while the answer is streamed. Errors: those of `stream`, and InvalidRequest as in `parse`.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::schemars::{self, JsonSchema};
    /// use gatewright::types::ResponseRequest;
    /// use serde::Deserialize;
    ///
    /// #[derive(Debug, Deserialize, JsonSchema)]
    /// struct City {
    ///     name: String,
    /// }
    ///
    /// let request = ResponseRequest::new("model-sol", "The capital of Norway?");
    /// let mut stream = client.responses().parse_stream::<City>(&request).await?;
    /// while let Some(event) = stream.try_next().await? {
    ///     println!("{}: {:?}", event.type_, stream.partial());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn parse_stream<T: JsonSchema + DeserializeOwned>(
        &self,
        body: &ResponseRequest,
    ) -> Result<ParsedStream<ResponseStreamEvent, T>, Error> {
        Ok(ParsedStream::new(self.stream(&response_request::<T>(body)?).await?))
    }
}
