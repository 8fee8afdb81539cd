//! The answer so far of a chat stream, event by event. A chunk is taken apart into steps; each step changes the answer and
//! becomes an event, which borrows the answer: no event costs more than its own text, however long the answer is.

mod answer_so_far;

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use self::answer_so_far::{AnswerSoFar, AnswerStep};
use super::{EventStream, RawStream};
use crate::api::types::{ChatCompletion, ChatCompletionChunk, TokenLogprob};
use crate::transport::response::Response;
use crate::wire::error::Error;

/// The value of an answer that is not read as a type: never set.
///
/// ```
/// use gatewright::{ChatEvent, NoValue};
///
/// fn show(event: ChatEvent<'_, NoValue>) {
///     if let ChatEvent::ContentDone { content, parsed: None, .. } = event {
///         println!("{content}");
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum NoValue {}

/// An event of a chat stream, with the answer so far. `T` is the type into which the whole text is parsed.
///
/// ```no_run
/// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
/// use gatewright::ChatEvent;
/// use gatewright::types::{ChatCompletionRequest, ChatMessage};
///
/// let request = ChatCompletionRequest::new("model-sol", vec![ChatMessage::user("Say hello.")]);
/// let mut events = client.chat().completions().stream(&request).await?.events();
/// while let Some(event) = events.try_next().await? {
///     match event {
///         ChatEvent::ContentDelta { delta, snapshot, .. } => println!("{delta} of {snapshot}"),
///         ChatEvent::ToolArgumentsDone { name, arguments, .. } => println!("{name}({arguments})"),
///         _ => {}
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ChatEvent<'e, T = NoValue> {
    /// A chunk as it arrived. The events for its contents follow.
    Chunk(&'e ChatCompletionChunk),
    /// New text.
    ContentDelta {
        /// Index of the choice.
        index: i64,
        /// The new text.
        delta: &'e str,
        /// The text so far.
        snapshot: &'e str,
        /// The JSON so far, if the text is read as a type and there is any: as [`ParsedStream::partial`](crate::ParsedStream::partial).
        parsed: Option<&'e Value>,
    },
    /// The text is complete.
    ContentDone {
        /// Index of the choice.
        index: i64,
        /// The whole text.
        content: &'e str,
        /// Its value, if it is read as a type; none for a text before calls of tools.
        parsed: Option<T>,
    },
    /// New text of a refusal.
    RefusalDelta {
        /// Index of the choice.
        index: i64,
        /// The new text.
        delta: &'e str,
        /// The text so far.
        snapshot: &'e str,
    },
    /// The refusal is complete.
    RefusalDone {
        /// Index of the choice.
        index: i64,
        /// The whole text.
        refusal: &'e str,
    },
    /// Log probabilities of new tokens of the text.
    LogprobsContentDelta {
        /// Index of the choice.
        index: i64,
        /// The new tokens.
        content: &'e [TokenLogprob],
        /// The tokens so far.
        snapshot: &'e [TokenLogprob],
    },
    /// The log probabilities of the text are complete.
    LogprobsContentDone {
        /// Index of the choice.
        index: i64,
        /// All tokens.
        content: &'e [TokenLogprob],
    },
    /// Log probabilities of new tokens of a refusal.
    LogprobsRefusalDelta {
        /// Index of the choice.
        index: i64,
        /// The new tokens.
        refusal: &'e [TokenLogprob],
        /// The tokens so far.
        snapshot: &'e [TokenLogprob],
    },
    /// The log probabilities of a refusal are complete.
    LogprobsRefusalDone {
        /// Index of the choice.
        index: i64,
        /// All tokens.
        refusal: &'e [TokenLogprob],
    },
    /// New text of the arguments of a tool call.
    ToolArgumentsDelta {
        /// Index of the call.
        index: i64,
        /// Name of the tool.
        name: &'e str,
        /// The new text.
        arguments_delta: &'e str,
        /// The text so far.
        arguments: &'e str,
        /// The arguments so far, if there are any.
        parsed_arguments: Option<&'e Value>,
    },
    /// The arguments of a tool call are complete.
    ToolArgumentsDone {
        /// Index of the call.
        index: i64,
        /// Name of the tool.
        name: &'e str,
        /// The whole text.
        arguments: &'e str,
        /// The arguments; none if they are not JSON, or beyond 8 MiB, 128 levels or 100,000 values.
        parsed_arguments: Option<&'e Value>,
    },
}

impl<T> ChatEvent<'_, T> {
    /// The kind of the event, under its name in other languages: `content.delta`.
    ///
    /// ```no_run
    /// # fn example(event: gatewright::ChatEvent<'_>) {
    /// println!("{}", event.type_name());
    /// # }
    /// ```
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Chunk(_) => "chunk",
            Self::ContentDelta { .. } => "content.delta",
            Self::ContentDone { .. } => "content.done",
            Self::RefusalDelta { .. } => "refusal.delta",
            Self::RefusalDone { .. } => "refusal.done",
            Self::LogprobsContentDelta { .. } => "logprobs.content.delta",
            Self::LogprobsContentDone { .. } => "logprobs.content.done",
            Self::LogprobsRefusalDelta { .. } => "logprobs.refusal.delta",
            Self::LogprobsRefusalDone { .. } => "logprobs.refusal.done",
            Self::ToolArgumentsDelta { .. } => "tool_calls.function.arguments.delta",
            Self::ToolArgumentsDone { .. } => "tool_calls.function.arguments.done",
        }
    }
}

/// The events of a chat stream with the answer so far; each borrows the answer until the next one is read.
///
/// ```no_run
/// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
/// use gatewright::ChatEvent;
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
/// let mut events = client.chat().completions().parse_stream::<City>(&request).await?.events();
/// while let Some(event) = events.try_next().await? {
///     match event {
///         ChatEvent::ContentDelta { parsed: Some(so_far), .. } => println!("{so_far}"),
///         ChatEvent::ContentDone { parsed, .. } => println!("{parsed:?}"),
///         _ => {}
///     }
/// }
/// println!("{:?}", events.finish().await?.into_value());
/// # Ok(())
/// # }
/// ```
pub struct ChatEvents<T = NoValue> {
    stream: EventStream<ChatCompletionChunk>,
    /// The newest chunk, from its event until its steps are taken.
    chunk: Option<ChatCompletionChunk>,
    answer: AnswerSoFar,
    value_of: Option<ValueOfText<T>>,
    /// Set once the answer cannot become a value.
    misfit: Option<ErrorOfAnswer>,
    is_over: bool,
}

/// How texts are read as values of a type.
pub(crate) struct ValueOfText<T> {
    /// The value of a text, if it is one.
    pub(crate) read: fn(&str) -> Option<T>,
    pub(crate) misfit: ErrorOfAnswer,
}

/// Why a whole answer has no value.
type ErrorOfAnswer = fn(Response<ChatCompletion>) -> Error;

impl EventStream<ChatCompletionChunk> {
    /// The events from here on, with the answer since here.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::ChatEvent;
    /// use gatewright::types::{ChatCompletionRequest, ChatMessage};
    ///
    /// let request = ChatCompletionRequest::new("model-sol", vec![ChatMessage::user("Say hello.")]);
    /// let mut events = client.chat().completions().stream(&request).await?.events();
    /// while let Some(event) = events.try_next().await? {
    ///     if let ChatEvent::ContentDelta { snapshot, .. } = event {
    ///         println!("{snapshot}");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn events(self) -> ChatEvents {
        ChatEvents::new(self, None)
    }
}

impl<T> ChatEvents<T> {
    pub(crate) fn new(stream: EventStream<ChatCompletionChunk>, value_of: Option<ValueOfText<T>>) -> Self {
        let answer = AnswerSoFar::new(value_of.is_some());
        Self { stream, chunk: None, answer, value_of, misfit: None, is_over: false }
    }

    /// The next event; none after the last. Errors, each time it is called: those of [`EventStream::try_next`];
    /// StructuredOutput, as from `parse`, if a text was cut off or does not fit the type.
    ///
    /// ```no_run
    /// # async fn example(mut events: gatewright::ChatEvents) -> Result<(), gatewright::Error> {
    /// while let Some(event) = events.try_next().await? {
    ///     println!("{event:?}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn try_next(&mut self) -> Result<Option<ChatEvent<'_, T>>, Error> {
        let step = loop {
            if let Some(step) = self.answer.steps.pop_front() {
                break step;
            }
            if let Some(misfit) = self.misfit {
                return Err(self.whole_error(misfit).await);
            }
            if let Some(chunk) = self.chunk.take() {
                if !self.answer.take(chunk) {
                    self.misfit = self.value_of.as_ref().map(|value_of| value_of.misfit);
                }
            } else if self.is_over {
                return Ok(None);
            } else if let Some(chunk) = self.stream.try_next().await? {
                return Ok(Some(ChatEvent::Chunk(self.chunk.insert(chunk))));
            } else {
                self.is_over = true;
                self.answer.end_all();
            }
        };
        let mut value = None;
        if let (AnswerStep::ContentDone { choice, is_value: true }, Some(value_of)) = (&step, &self.value_of)
            && let Some(text) = self.answer.value_text(*choice)
        {
            value = (value_of.read)(text);
            if value.is_none() {
                let misfit = value_of.misfit;
                self.answer.steps.clear();
                self.misfit = Some(misfit);
                return Err(self.whole_error(misfit).await);
            }
        }
        Ok(Some(self.answer.event(step, value)))
    }

    /// The error of the whole answer, which explains what is wrong with it.
    async fn whole_error(&mut self, misfit: ErrorOfAnswer) -> Error {
        self.stream.whole().await.map_or_else(|error| error, misfit)
    }

    /// The stream beneath, with its status, headers and request id.
    ///
    /// ```no_run
    /// # fn example(events: &gatewright::ChatEvents) {
    /// println!("request {:?}", events.raw().request_id());
    /// # }
    /// ```
    pub fn raw(&self) -> &RawStream {
        self.stream.raw()
    }

    /// Ends the reading event by event.
    pub(crate) fn into_stream(self) -> EventStream<ChatCompletionChunk> {
        self.stream
    }
}

impl ChatEvents {
    /// Reads to the end and returns the whole answer, events read earlier included. Errors: as [`EventStream::finish`].
    ///
    /// ```no_run
    /// # async fn example(events: gatewright::ChatEvents) -> Result<(), gatewright::Error> {
    /// println!("{}", events.finish().await?.text().unwrap_or_default());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn finish(self) -> Result<Response<ChatCompletion>, Error> {
        self.into_stream().finish().await
    }
}

impl<T> fmt::Debug for ChatEvents<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatEvents").field("stream", &self.stream).finish_non_exhaustive()
    }
}
