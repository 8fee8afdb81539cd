//! Loops in the messages protocol.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use super::tool_loop::{LoopStop, OnEvent, ToolRequest, Turn};
use super::{Tool, ToolCall, ToolLoop, ToolOutput, ToolRun};
use crate::api::operation::Operation;
use crate::api::operations::CREATE_MESSAGE;
use crate::api::types::{
    Message, MessageBlock, MessageRequest, MessageStopReason, MessageStreamEvent, MessageTurn,
};
use crate::client::Client;
use crate::client::resources::Messages;
use crate::structured::reading::CONTEXT_WINDOW;
use crate::transport::response::Response;
use crate::wire::error::Error;

/// The kind of a block that calls a tool.
const TOOL_USE: &str = "tool_use";

impl<'c> Messages<'c> {
    /// Calls a model repeatedly, and the tools that it requests, until it answers without a call; see `run_tools` of
    /// chat. The results of a round form one user turn. A turn that the model paused is sent back so that it
    /// continues; that is a round, too.
    ///
    /// Errors: as in chat; the [`Error::code`] is `max_rounds`, `length`, `content_filter` or `tool_failed`.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::Tool;
    /// use gatewright::schemars::{self, JsonSchema};
    /// use gatewright::types::{MessageRequest, MessageTurn};
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
    /// let request = MessageRequest::new("model-breeze", 256, vec![MessageTurn::user("The weather in Oslo?")]);
    /// let run = client.messages().run_tools(&request, &[weather]).await?;
    /// println!("{} after {} turns", run.text(), run.messages.len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn run_tools<'a>(&self, body: &MessageRequest, tools: &'a [Tool]) -> ToolLoop<'a, MessageRequest>
    where
        'c: 'a,
    {
        ToolLoop::new(self.client, body.clone(), tools)
    }
}

impl ToolRun<MessageRequest> {
    /// The text of the last answer: that of all text blocks.
    ///
    /// ```no_run
    /// # use gatewright::{ToolRun, types::MessageRequest};
    /// # fn example(run: &ToolRun<MessageRequest>) {
    /// println!("{}", run.text());
    /// # }
    /// ```
    pub fn text(&self) -> String {
        self.completion.text()
    }
}

impl ToolRequest for MessageRequest {
    type Message = MessageTurn;
    type Answer = Message;
    type Event<'e> = &'e MessageStreamEvent;

    fn send<'r>(&'r self, client: &'r Client, _: &'r str) -> BoxFuture<'r, Result<Response<Message>, Error>> {
        async move { client.messages().create(self).await }.boxed()
    }

    fn stream<'r>(
        &'r self,
        client: &'r Client,
        _: &'r str,
        on_event: &'r mut OnEvent<'_, Self>,
    ) -> BoxFuture<'r, Result<Response<Message>, Error>> {
        async move {
            let mut events = client.messages().stream(self).await?;
            while let Some(event) = events.try_next().await? {
                on_event(&event);
            }
            events.finish().await
        }
        .boxed()
    }

    fn origin() -> (Operation, &'static str) {
        (CREATE_MESSAGE, "messages.run_tools")
    }

    fn describe(&mut self, tools: &[Tool]) {
        self.tools.get_or_insert_default().extend(tools.iter().map(Tool::message_tool));
    }

    fn conversation(&mut self) -> &mut Vec<MessageTurn> {
        &mut self.messages
    }

    fn turn(answer: &Message) -> Turn<MessageTurn> {
        let blocks: Vec<MessageBlock> = answer.content.iter().map(block_of).collect();
        let reason = answer.stop_reason.as_ref().map(|reason| reason.as_str());
        Turn {
            calls: blocks.iter().filter(|block| block.type_ == TOOL_USE).map(call_of).collect(),
            // A turn without content cannot be sent.
            added: if blocks.is_empty() { Vec::new() } else { vec![MessageTurn::assistant(blocks)] },
            cut_off: reason.and_then(cut_of),
            is_paused: reason == Some(MessageStopReason::PAUSE_TURN),
            ..Turn::default()
        }
    }

    fn results(results: Vec<(ToolCall, ToolOutput)>) -> Vec<MessageTurn> {
        // The protocol wants all results of a turn in the next one.
        let blocks: Vec<MessageBlock> = results.into_iter().map(result_of).collect();
        if blocks.is_empty() { Vec::new() } else { vec![MessageTurn::user(blocks)] }
    }

    fn force_no_call(&mut self) {
        if let Some(choice) = &mut self.tool_choice
            && choice.type_ != "none"
        {
            "auto".clone_into(&mut choice.type_);
            choice.name = None;
        }
    }
}

/// A block of an answer as part of a conversation.
fn block_of(block: &MessageBlock) -> MessageBlock {
    let mut block = block.clone();
    if block.type_ == TOOL_USE && block.input.is_empty() {
        // A call has an input, also if that is empty; the type leaves empty members out.
        block.extra.insert("input".to_owned(), Map::new().into());
    }
    block
}

fn call_of(block: &MessageBlock) -> ToolCall {
    ToolCall {
        id: block.id.clone().unwrap_or_default(),
        name: block.name.clone().unwrap_or_default(),
        arguments: Value::Object(block.input.clone()).to_string(),
    }
}

fn result_of((call, output): (ToolCall, ToolOutput)) -> MessageBlock {
    let mut block = MessageBlock::new("tool_result").with_tool_use_id(call.id).with_content(output.text);
    block.is_error = output.is_error.then_some(true);
    block
}

/// Why an answer is not whole.
fn cut_of(reason: &str) -> Option<LoopStop> {
    match reason {
        MessageStopReason::MAX_TOKENS | CONTEXT_WINDOW => Some(LoopStop::cut_off("length", reason)),
        MessageStopReason::REFUSAL => Some(LoopStop::cut_off("content_filter", reason)),
        _ => None,
    }
}
