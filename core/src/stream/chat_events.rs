//! The answer so far of a chat stream, event by event. A chunk is taken apart into steps; each step changes the answer and
//! becomes an event, which borrows the answer: no event costs more than its own text, however long the answer is.

use std::collections::VecDeque;
use std::fmt;

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::Value;

use super::growing_text::GrowingText;
use super::{EventStream, RawStream};
use crate::api::types::{
    ChatChunkChoiceFinishReason, ChatCompletion, ChatCompletionChunk, ChatDelta, ChatToolCallDelta,
};
use crate::transport::response::Response;
use crate::wire::error::Error;
use crate::wire::json_weight;

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
        /// The arguments; none if they are not JSON.
        parsed_arguments: Option<Value>,
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
        let answer = AnswerSoFar { reads_json: value_of.is_some(), ..AnswerSoFar::default() };
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

/// What has arrived, and which events of it are pending.
#[derive(Debug, Default)]
struct AnswerSoFar {
    /// By index, in the order in which they began.
    choices: IndexMap<i64, ChoiceSoFar>,
    steps: VecDeque<AnswerStep>,
    /// Whether texts are read as values.
    reads_json: bool,
}

#[derive(Debug)]
struct ChoiceSoFar {
    content: GrowingText,
    refusal: GrowingText,
    /// By index.
    calls: IndexMap<i64, CallSoFar>,
    // The state after all pending steps.
    has_content: bool,
    has_refusal: bool,
    is_text_done: bool,
    open_call: Option<i64>,
}

#[derive(Debug)]
struct CallSoFar {
    name: String,
    arguments: GrowingText,
    /// Not a custom tool, which takes a text.
    is_function: bool,
}

/// A change of the answer whose event is pending.
#[derive(Debug)]
enum AnswerStep {
    Content {
        choice: i64,
        text: String,
    },
    ContentDone {
        choice: i64,
        /// Whether the answer ends with this text; a text before tool calls is not a value.
        is_value: bool,
    },
    Refusal {
        choice: i64,
        text: String,
    },
    RefusalDone {
        choice: i64,
    },
    Call {
        choice: i64,
        call: i64,
        name: Option<String>,
        arguments: String,
    },
    CallDone {
        choice: i64,
        call: i64,
    },
}

/// Reasons that cut an answer off.
const CUTS: [&str; 2] = [ChatChunkChoiceFinishReason::LENGTH, ChatChunkChoiceFinishReason::CONTENT_FILTER];

impl AnswerSoFar {
    /// Takes a chunk apart. Returns whether the answer can still become a value, if it is read as one.
    fn take(&mut self, chunk: ChatCompletionChunk) -> bool {
        for choice in chunk.choices {
            self.add(choice.index, choice.delta);
            match choice.finish_reason.as_ref().map(|reason| reason.as_str()) {
                None | Some("") => {}
                Some(reason) if self.reads_json && CUTS.contains(&reason) => return false,
                Some(_) => self.end(choice.index, true),
            }
        }
        true
    }

    /// Ends the choices of a stream that has no reasons.
    fn end_all(&mut self) {
        let indices: Vec<i64> = self.choices.keys().copied().collect();
        for choice in indices {
            self.end(choice, true);
        }
    }

    fn add(&mut self, choice: i64, delta: ChatDelta) {
        let reads_json = self.reads_json;
        let state = self.choices.entry(choice).or_insert_with(|| ChoiceSoFar::new(reads_json));
        if let Some(text) = delta.content.filter(|text| !text.is_empty()) {
            state.has_content = true;
            self.steps.push_back(AnswerStep::Content { choice, text });
        }
        if let Some(text) = delta.refusal.filter(|text| !text.is_empty()) {
            state.has_refusal = true;
            self.steps.push_back(AnswerStep::Refusal { choice, text });
        }
        for (position, piece) in (0..).zip(delta.tool_calls) {
            self.add_call(choice, piece.index.unwrap_or(position), piece);
        }
    }

    fn add_call(&mut self, choice: i64, call: i64, piece: ChatToolCallDelta) {
        if self.choices[&choice].open_call != Some(call) {
            self.end(choice, false);
        }
        let state = &mut self.choices[&choice];
        state.open_call = Some(call);
        let known = state.calls.entry(call).or_insert_with(CallSoFar::new);
        match piece.function {
            Some(function) => {
                let arguments = function.arguments.unwrap_or_default();
                self.steps.push_back(AnswerStep::Call { choice, call, name: function.name, arguments });
            }
            None => known.is_function &= piece.custom.is_none(),
        }
    }

    /// Completes what is open: the text before tool calls, which is not a value; a call before the next one.
    fn end(&mut self, choice: i64, is_value: bool) {
        let state = &mut self.choices[&choice];
        if !std::mem::replace(&mut state.is_text_done, true) {
            if state.has_content {
                self.steps.push_back(AnswerStep::ContentDone { choice, is_value });
            }
            if state.has_refusal {
                self.steps.push_back(AnswerStep::RefusalDone { choice });
            }
        }
        if let Some(call) = state.open_call.take()
            && state.calls[&call].is_function
        {
            self.steps.push_back(AnswerStep::CallDone { choice, call });
        }
    }

    /// The text of a choice, if it is read as a value: not beside a refusal.
    fn value_text(&self, choice: i64) -> Option<&str> {
        let state = &self.choices[&choice];
        state.refusal.text().is_empty().then(|| state.content.text())
    }

    /// Takes a step; returns its event.
    fn event<T>(&mut self, step: AnswerStep, value: Option<T>) -> ChatEvent<'_, T> {
        match step {
            AnswerStep::Content { choice: index, text } => {
                let content = &mut self.choices[&index].content;
                content.push(&text);
                let (delta, snapshot, parsed) = (content.newest(), content.text(), content.value());
                ChatEvent::ContentDelta { index, delta, snapshot, parsed }
            }
            AnswerStep::ContentDone { choice: index, .. } => {
                ChatEvent::ContentDone { index, content: self.choices[&index].content.text(), parsed: value }
            }
            AnswerStep::Refusal { choice: index, text } => {
                let refusal = &mut self.choices[&index].refusal;
                refusal.push(&text);
                ChatEvent::RefusalDelta { index, delta: refusal.newest(), snapshot: refusal.text() }
            }
            AnswerStep::RefusalDone { choice: index } => {
                ChatEvent::RefusalDone { index, refusal: self.choices[&index].refusal.text() }
            }
            AnswerStep::Call { choice, call, name, arguments } => {
                let known = &mut self.choices[&choice].calls[&call];
                if known.name.is_empty() {
                    known.name = name.unwrap_or_default();
                }
                known.arguments.push(&arguments);
                ChatEvent::ToolArgumentsDelta {
                    index: call,
                    name: &known.name,
                    arguments_delta: known.arguments.newest(),
                    arguments: known.arguments.text(),
                    parsed_arguments: known.arguments.value(),
                }
            }
            AnswerStep::CallDone { choice, call } => {
                let known = &self.choices[&choice].calls[&call];
                let arguments = known.arguments.text();
                ChatEvent::ToolArgumentsDone {
                    index: call,
                    name: &known.name,
                    arguments,
                    parsed_arguments: value_of(arguments),
                }
            }
        }
    }
}

/// The value of a JSON text, if it is one of a bounded size.
fn value_of(text: &str) -> Option<Value> {
    json_weight::check(text.as_bytes()).ok()?;
    serde_json::from_str(text).ok()
}

impl ChoiceSoFar {
    fn new(reads_json: bool) -> Self {
        Self {
            content: GrowingText::new(reads_json),
            refusal: GrowingText::new(false),
            calls: IndexMap::new(),
            has_content: false,
            has_refusal: false,
            is_text_done: false,
            open_call: None,
        }
    }
}

impl CallSoFar {
    fn new() -> Self {
        Self { name: String::new(), arguments: GrowingText::new(true), is_function: true }
    }
}
