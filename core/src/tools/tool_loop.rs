//! The loop, whatever the protocol.

use std::collections::HashSet;
use std::fmt;
use std::future::IntoFuture;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use serde::Serialize;

use super::{Tool, ToolCall, ToolOutput, bounded};
use crate::api::operation::Operation;
use crate::api::types::ChatCompletionRequest;
use crate::client::Client;
use crate::transport::response::Response;
use crate::wire::error::{Error, ErrorKind};

/// Default of [`ToolLoop::max_rounds`].
const DEFAULT_MAX_ROUNDS: usize = 10;

// Codes of errors.
const MAX_ROUNDS: &str = "max_rounds";
const TOOL_FAILED: &str = "tool_failed";

/// A request that a loop sends with a longer conversation each time: what the protocols differ in.
pub trait ToolRequest: Clone + Send + Sync {
    /// A message of the conversation; an item of responses.
    type Message: fmt::Debug + Serialize + Send + Sync;
    /// The answer of the operation.
    type Answer: fmt::Debug + Serialize + Send + Sync;
    /// An event of the answer, if it is streamed.
    type Event<'e>;

    /// Sends it. `model` is for the path, if the body has none.
    fn send<'r>(
        &'r self,
        client: &'r Client,
        model: &'r str,
    ) -> BoxFuture<'r, Result<Response<Self::Answer>, Error>>;
    /// Sends it, and reports the events of the answer.
    fn stream<'r>(
        &'r self,
        client: &'r Client,
        model: &'r str,
        on_event: &'r mut OnEvent<'_, Self>,
    ) -> BoxFuture<'r, Result<Response<Self::Answer>, Error>>;
    /// The operation, and the method that runs the loop.
    fn origin() -> (Operation, &'static str);
    /// Says what the tools are.
    fn describe(&mut self, tools: &[Tool]);
    /// The conversation.
    fn conversation(&mut self) -> &mut Vec<Self::Message>;
    /// Reads an answer.
    fn turn(answer: &Self::Answer) -> Turn<Self::Message>;
    /// The messages with the results of the calls of a round.
    fn results(results: Vec<(ToolCall, ToolOutput)>) -> Vec<Self::Message>;
    /// Lets the model decide whether it calls tools: what forces a call would force one in each round.
    fn force_no_call(&mut self);
}

/// The contents of an answer.
#[derive(Debug)]
pub struct Turn<M> {
    /// The messages that it adds to the conversation.
    pub(super) added: Vec<M>,
    pub(super) calls: Vec<ToolCall>,
    /// Why it ends the loop, whatever it calls.
    pub(super) failed: Option<LoopStop>,
    /// Why its calls cannot be made.
    pub(super) cut_off: Option<LoopStop>,
    /// Whether the model continues if it gets the conversation back unchanged.
    pub(super) is_paused: bool,
}

impl<M> Default for Turn<M> {
    fn default() -> Self {
        Self { added: Vec::new(), calls: Vec::new(), failed: None, cut_off: None, is_paused: false }
    }
}

/// Why a loop ends without an answer: a code for programs, and words.
#[derive(Debug)]
pub(super) struct LoopStop {
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl LoopStop {
    /// An answer that ends within its calls.
    pub(super) fn cut_off(code: &'static str, reason: &str) -> Self {
        Self { code, message: format!("the answer was cut off within its calls of tools (reason: {reason})") }
    }
}

/// What is called with every message that a loop adds.
type OnMessage<'a, M> = Box<dyn FnMut(&M) + Send + 'a>;

/// What is called with every event of the answers.
pub(super) type OnEvent<'a, R> = dyn for<'e> FnMut(<R as ToolRequest>::Event<'e>) + Send + 'a;

/// A loop of tool calls that has not started: set its options, then await it.
///
/// ```no_run
/// # async fn example(client: gatewright::Client, tools: Vec<gatewright::Tool>) -> Result<(), gatewright::Error> {
/// use gatewright::types::{ChatCompletionRequest, ChatMessage};
///
/// let request = ChatCompletionRequest::new("model-sol", vec![ChatMessage::user("What is the weather?")]);
/// let run = client
///     .chat()
///     .completions()
///     .run_tools(&request, &tools)
///     .max_rounds(3)
///     .on_message(|message| println!("{message:?}"))
///     .await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a loop begins when it is awaited"]
pub struct ToolLoop<'a, R: ToolRequest = ChatCompletionRequest> {
    client: &'a Client,
    /// The model for the path, if the body has none.
    model: String,
    request: R,
    tools: &'a [Tool],
    max_rounds: usize,
    raise_errors: bool,
    on_message: OnMessage<'a, R::Message>,
    on_event: Option<Box<OnEvent<'a, R>>>,
}

impl<'a, R: ToolRequest> ToolLoop<'a, R> {
    pub(super) fn new(client: &'a Client, request: R, tools: &'a [Tool]) -> Self {
        Self {
            client,
            model: String::new(),
            request,
            tools,
            max_rounds: DEFAULT_MAX_ROUNDS,
            raise_errors: false,
            on_message: Box::new(|_| {}),
            on_event: None,
        }
    }

    /// Of an operation that has the model in its path.
    pub(super) fn of_model(self, model: &str) -> Self {
        Self { model: model.to_owned(), ..self }
    }

    /// How often the model may call tools, one or more at a time, or pause: at least 1; by default 10.
    ///
    /// ```no_run
    /// # fn example(run: gatewright::ToolLoop<'_>) {
    /// let run = run.max_rounds(3);
    /// # }
    /// ```
    pub fn max_rounds(mut self, max_rounds: usize) -> Self {
        self.max_rounds = max_rounds;
        self
    }

    /// Whether the error of a tool, or arguments that do not fit, end the loop, as the source of an error of the kind
    /// ToolLoop, instead of being sent to the model.
    ///
    /// ```no_run
    /// # async fn example(run: gatewright::ToolLoop<'_>) {
    /// use std::error::Error as _;
    ///
    /// if let Err(error) = run.raise_errors(true).await {
    ///     println!("{error}: {:?}", error.source());
    /// }
    /// # }
    /// ```
    pub fn raise_errors(mut self, raise_errors: bool) -> Self {
        self.raise_errors = raise_errors;
        self
    }

    /// A function to call with every message that the loop adds: those of the model and the results of tools.
    ///
    /// ```no_run
    /// # fn example(run: gatewright::ToolLoop<'_>) {
    /// let run = run.on_message(|message| println!("{}", message.role.as_str()));
    /// # }
    /// ```
    pub fn on_message(mut self, on_message: impl FnMut(&R::Message) + Send + 'a) -> Self {
        self.on_message = Box::new(on_message);
        self
    }

    /// A function to call with every event of the answers, which are then streamed: in chat with a
    /// [`ChatEvent`](crate::ChatEvent), in responses with a [`ResponseEvent`](crate::ResponseEvent), in messages and native
    /// with a reference to the event as it arrived. Errors of the loop are then also those of `stream`.
    ///
    /// ```no_run
    /// # fn example(run: gatewright::ToolLoop<'_>) {
    /// use gatewright::ChatEvent;
    ///
    /// let run = run.on_event(|event| match event {
    ///     ChatEvent::ContentDelta { delta, .. } => print!("{delta}"),
    ///     ChatEvent::ToolArgumentsDone { name, arguments, .. } => println!("{name}({arguments})"),
    ///     _ => {}
    /// });
    /// # }
    /// ```
    pub fn on_event(mut self, on_event: impl for<'e> FnMut(R::Event<'e>) + Send + 'a) -> Self {
        self.on_event = Some(Box::new(on_event));
        self
    }

    async fn run(mut self) -> Result<ToolRun<R>, Error> {
        if self.max_rounds == 0 {
            return Err(Error::new(ErrorKind::InvalidRequest, "max_rounds must be at least 1"));
        }
        let mut names = HashSet::new();
        if let Some(tool) = self.tools.iter().find(|tool| !names.insert(tool.name())) {
            let message = format!("two tools are called {}", tool.name());
            return Err(Error::new(ErrorKind::InvalidRequest, message));
        }
        self.request.describe(self.tools);
        let mut rounds = 0;
        loop {
            let client = self.client.for_round(rounds);
            let completion = match &mut self.on_event {
                Some(on_event) => self.request.stream(&client, &self.model, &mut **on_event).await?,
                None => self.request.send(&client, &self.model).await?,
            };
            let Turn { added, calls, failed, cut_off, is_paused } = R::turn(&completion);
            for message in added {
                self.add(message);
            }
            if let Some(stop) = failed {
                return Err(self.failed(&completion, &stop));
            }
            if calls.is_empty() && !is_paused {
                let messages = std::mem::take(self.request.conversation());
                return Ok(ToolRun { messages, completion, rounds });
            }
            if let Some(stop) = cut_off {
                return Err(self.failed(&completion, &stop));
            }
            if rounds == self.max_rounds {
                let message = format!(
                    "the model has not answered after {rounds} rounds; raise max_rounds, or look at what the tools \
                     answer: the error has the messages"
                );
                return Err(self.failed(&completion, &LoopStop { code: MAX_ROUNDS, message }));
            }
            rounds += 1;
            if calls.is_empty() {
                continue;
            }
            let outcomes = join_all(calls.iter().map(|call| call.run(self.tools, self.raise_errors))).await;
            let mut results = Vec::with_capacity(outcomes.len());
            let mut failure = None;
            for (call, outcome) in calls.into_iter().zip(outcomes) {
                match outcome {
                    Ok(output) => results.push((call, output)),
                    Err(error) => {
                        failure = Some((call, error));
                        break;
                    }
                }
            }
            for message in R::results(results) {
                self.add(message);
            }
            if let Some((call, error)) = failure {
                let message = format!("the tool {} failed: {}", call.name, bounded(&error.to_string()));
                let stop = LoopStop { code: TOOL_FAILED, message };
                return Err(self.failed(&completion, &stop).with_source(error));
            }
            self.request.force_no_call();
        }
    }

    fn add(&mut self, message: R::Message) {
        (self.on_message)(&message);
        self.request.conversation().push(message);
    }

    /// An error that ends the loop after an answer.
    fn failed(&mut self, answer: &Response<R::Answer>, stop: &LoopStop) -> Error {
        let (operation, method) = R::origin();
        let error = Error::new(ErrorKind::ToolLoop, stop.message.clone())
            .with_code(stop.code)
            .with_answer(serde_json::to_vec(&**answer).ok().map(Into::into))
            .with_messages(serde_json::to_vec(self.request.conversation()).ok().map(Into::into));
        answer.describe(error, &operation).with_method(method)
    }
}

impl<'a, R: ToolRequest + 'a> IntoFuture for ToolLoop<'a, R> {
    type Output = Result<ToolRun<R>, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.run().boxed()
    }
}

impl<R: ToolRequest> fmt::Debug for ToolLoop<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolLoop")
            .field("tools", &self.tools)
            .field("max_rounds", &self.max_rounds)
            .field("raise_errors", &self.raise_errors)
            .finish_non_exhaustive()
    }
}

/// A loop of tool calls that has ended with an answer.
///
/// ```no_run
/// # async fn example(client: gatewright::Client, tools: Vec<gatewright::Tool>) -> Result<(), gatewright::Error> {
/// use gatewright::types::{ChatCompletionRequest, ChatMessage};
///
/// let mut request = ChatCompletionRequest::new("model-sol", vec![ChatMessage::user("What is the weather?")]);
/// let run = client.chat().completions().run_tools(&request, &tools).await?;
/// request.messages = run.messages;
/// request.messages.push(ChatMessage::user("And tomorrow?"));
/// # Ok(())
/// # }
/// ```
#[non_exhaustive]
pub struct ToolRun<R: ToolRequest = ChatCompletionRequest> {
    /// The whole conversation, from the request's messages to the answer; the next request may begin with it. Of responses:
    /// items; of messages: turns; of native: contents.
    pub messages: Vec<R::Message>,
    /// The last answer, which calls no tools.
    pub completion: Response<R::Answer>,
    /// How often the model called tools, one or more at a time, or paused.
    pub rounds: usize,
}

impl<R: ToolRequest> fmt::Debug for ToolRun<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolRun")
            .field("messages", &self.messages)
            .field("completion", &self.completion)
            .field("rounds", &self.rounds)
            .finish()
    }
}
