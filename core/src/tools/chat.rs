//! Loops in the chat protocol.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::tool_loop::{LoopStop, OnEvent, ToolRequest, Turn};
use super::{Tool, ToolCall, ToolLoop, ToolOutput, ToolRun};
use crate::api::operation::Operation;
use crate::api::operations::CREATE_CHAT_COMPLETION;
use crate::api::types::{
    ChatChoiceFinishReason, ChatCompletion, ChatCompletionMessage, ChatCompletionRequest,
    ChatCompletionRequestToolChoice, ChatMessage, ChatMessageRole, ChatToolCall,
};
use crate::client::Client;
use crate::client::resources::ChatCompletions;
use crate::stream::ChatEvent;
use crate::transport::response::Response;
use crate::wire::error::Error;

/// Code of an error.
const NO_CHOICES: &str = "no_choices";

impl<'c> ChatCompletions<'c> {
    /// Calls a model repeatedly, and the tools that it requests, until it answers without a call.
    /// Await the [`ToolLoop`], after setting its options. The tools are added to those of the request; a `tool_choice`
    /// that forces a call applies to the first round only.
    ///
    /// The calls of one round run side by side. The model gets the error of a tool, arguments that do not fit, or the
    /// name of an unknown tool as `error: …`.
    ///
    /// Errors: those of `create`; ToolLoop if the model has not answered after [`ToolLoop::max_rounds`], or an answer
    /// was cut off in its calls. That error has the conversation ([`Error::messages`]), the last answer
    /// ([`Error::answer`]), and as [`Error::code`] `max_rounds`, `length`, `content_filter`, `no_choices` or
    /// `tool_failed`.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::Tool;
    /// use gatewright::schemars::{self, JsonSchema};
    /// use gatewright::types::{ChatCompletionRequest, ChatMessage};
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Place {
    ///     city: String,
    /// }
    ///
    /// let weather = Tool::new("get_weather", "The weather in a city.", async |place: Place| {
    ///     if place.city.is_empty() { Err("which city?") } else { Ok(format!("sunny in {}", place.city)) }
    /// });
    /// let request = ChatCompletionRequest::new("model-sol", vec![ChatMessage::user("The weather in Oslo?")]);
    /// let run = client.chat().completions().run_tools(&request, &[weather]).await?;
    /// println!("{} after {} messages", run.text().unwrap_or_default(), run.messages.len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn run_tools<'a>(&self, body: &ChatCompletionRequest, tools: &'a [Tool]) -> ToolLoop<'a>
    where
        'c: 'a,
    {
        ToolLoop::new(self.client, body.clone(), tools)
    }
}

impl ToolRun {
    /// The text of the last answer.
    ///
    /// ```no_run
    /// # fn example(run: &gatewright::ToolRun) {
    /// println!("{}", run.text().unwrap_or("(no text)"));
    /// # }
    /// ```
    pub fn text(&self) -> Option<&str> {
        self.completion.text()
    }
}

impl ToolRequest for ChatCompletionRequest {
    type Message = ChatMessage;
    type Answer = ChatCompletion;
    type Event<'e> = ChatEvent<'e>;

    fn send<'r>(
        &'r self,
        client: &'r Client,
        _: &'r str,
    ) -> BoxFuture<'r, Result<Response<ChatCompletion>, Error>> {
        async move { client.chat().completions().create(self).await }.boxed()
    }

    fn stream<'r>(
        &'r self,
        client: &'r Client,
        _: &'r str,
        on_event: &'r mut OnEvent<'_, Self>,
    ) -> BoxFuture<'r, Result<Response<ChatCompletion>, Error>> {
        async move {
            let mut events = client.chat().completions().stream(self).await?.events();
            while let Some(event) = events.try_next().await? {
                on_event(event);
            }
            events.finish().await
        }
        .boxed()
    }

    fn origin() -> (Operation, &'static str) {
        (CREATE_CHAT_COMPLETION, "chat.completions.run_tools")
    }

    fn describe(&mut self, tools: &[Tool]) {
        self.tools.get_or_insert_default().extend(tools.iter().map(Tool::definition));
    }

    fn conversation(&mut self) -> &mut Vec<ChatMessage> {
        &mut self.messages
    }

    fn turn(answer: &ChatCompletion) -> Turn<ChatMessage> {
        let Some(choice) = answer.choices.first() else {
            let failed = LoopStop { code: NO_CHOICES, message: "the answer has no choices".to_owned() };
            return Turn { failed: Some(failed), ..Turn::default() };
        };
        Turn {
            added: vec![message_of(&choice.message)],
            calls: choice.message.tool_calls.iter().map(call_of).collect(),
            cut_off: cut_of(&choice.finish_reason).map(|reason| LoopStop::cut_off(reason, reason)),
            ..Turn::default()
        }
    }

    fn results(results: Vec<(ToolCall, ToolOutput)>) -> Vec<ChatMessage> {
        let message = |(call, output): (ToolCall, ToolOutput)| {
            ChatMessage::new(ChatMessageRole::Tool, output.text).with_tool_call_id(call.id)
        };
        results.into_iter().map(message).collect()
    }

    fn force_no_call(&mut self) {
        match &mut self.tool_choice {
            Some(ChatCompletionRequestToolChoice::String(word)) if word == "none" => {}
            Some(choice) => *choice = "auto".into(),
            None => {}
        }
    }
}

/// What a call is of; a custom tool takes a text instead of arguments.
fn call_of(call: &ChatToolCall) -> ToolCall {
    let (name, arguments) = match (&call.function, &call.custom) {
        (Some(function), _) => (function.name.clone(), function.arguments.clone()),
        (None, Some(custom)) => (custom.name.clone(), custom.input.clone()),
        (None, None) => (String::new(), String::new()),
    };
    ToolCall { id: call.id.clone(), name, arguments }
}

/// Why an answer is not whole.
fn cut_of(finish_reason: &ChatChoiceFinishReason) -> Option<&'static str> {
    let cuts = [ChatChoiceFinishReason::LENGTH, ChatChoiceFinishReason::CONTENT_FILTER];
    cuts.into_iter().find(|cut| finish_reason.as_str() == *cut)
}

/// The model's message as part of a conversation.
fn message_of(message: &ChatCompletionMessage) -> ChatMessage {
    let ChatCompletionMessage {
        content, refusal, reasoning_content, tool_calls, function_call, extra, ..
    } = message.clone();
    let mut message_sent = ChatMessage::required(ChatMessageRole::Assistant);
    message_sent.content = content.map(Into::into);
    message_sent.tool_calls = Some(tool_calls).filter(|calls| !calls.is_empty());
    message_sent.function_call = function_call;
    message_sent.extra = extra;
    for (name, text) in [("refusal", refusal), ("reasoning_content", reasoning_content)] {
        message_sent.extra.extend(text.map(|text| (name.to_owned(), text.into())));
    }
    message_sent
}
