//! Loops in the responses protocol.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::tool_loop::{LoopStop, OnEvent, ToolRequest, Turn};
use super::{Tool, ToolCall, ToolLoop, ToolOutput, ToolRun};
use crate::api::operation::Operation;
use crate::api::operations::CREATE_RESPONSE;
use crate::api::types::{
    self, InputItem, InputItemOutput, InputItemRole, OutputItem, ResponseRequest, ResponseRequestInput,
    ResponseRequestToolChoice, ResponseStatus,
};
use crate::client::Client;
use crate::client::resources::Responses;
use crate::stream::ResponseEvent;
use crate::transport::response::Response;
use crate::wire::error::Error;

// Codes of errors.
const FAILED: &str = "failed";
const UNREADABLE: &str = "unreadable_item";

impl<'c> Responses<'c> {
    /// Calls a model repeatedly, and the tools that it requests, until it answers without a call; see `run_tools` of
    /// chat. The conversation consists of items: those of the answers, and the results of calls.
    ///
    /// Errors: as in chat; the [`Error::code`] is `max_rounds`, `length`, `content_filter`, `incomplete`, `failed`,
    /// `unreadable_item` or `tool_failed`.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::Tool;
    /// use gatewright::schemars::{self, JsonSchema};
    /// use gatewright::types::ResponseRequest;
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
    /// let request = ResponseRequest::new("model-sol", "The weather in Oslo?");
    /// let run = client.responses().run_tools(&request, &[weather]).await?;
    /// println!("{} after {} items", run.output_text(), run.messages.len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn run_tools<'a>(&self, body: &ResponseRequest, tools: &'a [Tool]) -> ToolLoop<'a, ResponseRequest>
    where
        'c: 'a,
    {
        ToolLoop::new(self.client, body.clone(), tools)
    }
}

impl ToolRun<ResponseRequest> {
    /// The text of the last answer.
    ///
    /// ```no_run
    /// # use gatewright::{ToolRun, types::ResponseRequest};
    /// # fn example(run: &ToolRun<ResponseRequest>) {
    /// println!("{}", run.output_text());
    /// # }
    /// ```
    pub fn output_text(&self) -> String {
        self.completion.output_text()
    }
}

impl ToolRequest for ResponseRequest {
    type Message = InputItem;
    type Answer = types::Response;
    type Event<'e> = ResponseEvent<'e>;

    fn send<'r>(
        &'r self,
        client: &'r Client,
        _: &'r str,
    ) -> BoxFuture<'r, Result<Response<types::Response>, Error>> {
        async move { client.responses().create(self).await }.boxed()
    }

    fn stream<'r>(
        &'r self,
        client: &'r Client,
        _: &'r str,
        on_event: &'r mut OnEvent<'_, Self>,
    ) -> BoxFuture<'r, Result<Response<types::Response>, Error>> {
        async move {
            let mut events = client.responses().stream(self).await?.events();
            while let Some(event) = events.try_next().await? {
                on_event(event);
            }
            events.finish().await
        }
        .boxed()
    }

    fn origin() -> (Operation, &'static str) {
        (CREATE_RESPONSE, "responses.run_tools")
    }

    fn describe(&mut self, tools: &[Tool]) {
        self.tools.get_or_insert_default().extend(tools.iter().map(Tool::response_tool));
    }

    fn conversation(&mut self) -> &mut Vec<InputItem> {
        if let ResponseRequestInput::String(text) = &self.input {
            let item = InputItem::default().with_role(InputItemRole::User).with_content(text.as_str());
            self.input = vec![item].into();
        }
        match &mut self.input {
            ResponseRequestInput::Array(items) => items,
            ResponseRequestInput::String(_) => unreachable!("a text has become an item"),
        }
    }

    fn turn(answer: &types::Response) -> Turn<InputItem> {
        let (added, unreadable) = match answer.output.iter().map(item_of).collect::<Result<_, _>>() {
            Ok(added) => (added, None),
            Err(error) => {
                let message = format!("an item of the answer cannot be sent back: {error}");
                (Vec::new(), Some(LoopStop { code: UNREADABLE, message }))
            }
        };
        let calls = answer.output.iter().filter(|item| item.type_ == "function_call").map(call_of).collect();
        let status = answer.status.as_ref().map(|status| status.as_str());
        let failed = (status == Some(ResponseStatus::FAILED)).then(|| {
            let cause = answer.error.as_ref().map_or("the gateway does not say why", |error| &error.message);
            LoopStop { code: FAILED, message: format!("the answer failed: {cause}") }
        });
        let cut_off = (status == Some(ResponseStatus::INCOMPLETE)).then(|| cut_of(answer));
        Turn { added, calls, failed: failed.or(unreadable), cut_off, is_paused: false }
    }

    fn results(results: Vec<(ToolCall, ToolOutput)>) -> Vec<InputItem> {
        let item = |(call, output): (ToolCall, ToolOutput)| InputItem {
            type_: Some("function_call_output".to_owned()),
            call_id: Some(call.id),
            output: Some(InputItemOutput::String(output.text)),
            ..InputItem::default()
        };
        results.into_iter().map(item).collect()
    }

    fn force_no_call(&mut self) {
        match &mut self.tool_choice {
            Some(ResponseRequestToolChoice::String(word)) if word == "none" => {}
            Some(choice) => *choice = "auto".into(),
            None => {}
        }
    }
}

fn call_of(item: &OutputItem) -> ToolCall {
    ToolCall {
        id: item.call_id.clone().unwrap_or_default(),
        name: item.name.clone().unwrap_or_default(),
        arguments: item.arguments.clone().unwrap_or_default(),
    }
}

/// Why an answer is not whole.
fn cut_of(answer: &types::Response) -> LoopStop {
    let reason = answer.incomplete_details.as_ref().and_then(|details| details.reason.as_ref());
    match reason.map(|reason| reason.as_str()) {
        Some("max_output_tokens") => LoopStop::cut_off("length", "max_output_tokens"),
        Some("content_filter") => LoopStop::cut_off("content_filter", "content_filter"),
        other => LoopStop::cut_off("incomplete", other.unwrap_or("incomplete")),
    }
}

/// An item of an answer as part of a conversation: the same members.
fn item_of(item: &OutputItem) -> Result<InputItem, serde_json::Error> {
    serde_json::from_value(serde_json::to_value(item)?)
}
