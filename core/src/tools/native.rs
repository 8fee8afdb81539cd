//! Loops in the native protocol.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use super::tool_loop::{LoopStop, OnEvent, ToolRequest, Turn};
use super::{Tool, ToolCall, ToolLoop, ToolOutput, ToolRun};
use crate::api::operation::Operation;
use crate::api::operations::GENERATE_CONTENT;
use crate::api::types::{
    GenerateContentRequest, GenerateContentResponse, NativeContent, NativeContentRole, NativeFunctionCall,
    NativeFunctionCallingConfigMode, NativeFunctionResponse, NativePart, NativeTool,
};
use crate::client::Client;
use crate::client::resources::Native;
use crate::structured::reading::FILTERS;
use crate::transport::response::Response;
use crate::wire::error::Error;

/// Code of an error.
const NO_CANDIDATES: &str = "no_candidates";

impl<'c> Native<'c> {
    /// Calls a model repeatedly, and the tools that it requests, until it answers without a call; see `run_tools` of
    /// chat. The first candidate counts. The results of a round form one user content.
    ///
    /// Errors: as in chat; the [`Error::code`] is `max_rounds`, `length`, `content_filter`, `no_candidates` or
    /// `tool_failed`.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::Tool;
    /// use gatewright::schemars::{self, JsonSchema};
    /// use gatewright::types::GenerateContentRequest;
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
    /// let request = GenerateContentRequest::new("The weather in Oslo?");
    /// let run = client.native().run_tools("model-terra", &request, &[weather]).await?;
    /// println!("{} after {} contents", run.text(), run.messages.len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn run_tools<'a>(
        &self,
        model: &str,
        body: &GenerateContentRequest,
        tools: &'a [Tool],
    ) -> ToolLoop<'a, GenerateContentRequest>
    where
        'c: 'a,
    {
        ToolLoop::new(self.client, body.clone(), tools).of_model(model)
    }
}

impl ToolRun<GenerateContentRequest> {
    /// The text of the last answer, without thoughts.
    ///
    /// ```no_run
    /// # use gatewright::{ToolRun, types::GenerateContentRequest};
    /// # fn example(run: &ToolRun<GenerateContentRequest>) {
    /// println!("{}", run.text());
    /// # }
    /// ```
    pub fn text(&self) -> String {
        self.completion.text()
    }
}

impl ToolRequest for GenerateContentRequest {
    type Message = NativeContent;
    type Answer = GenerateContentResponse;
    type Event<'e> = &'e GenerateContentResponse;

    fn send<'r>(
        &'r self,
        client: &'r Client,
        model: &'r str,
    ) -> BoxFuture<'r, Result<Response<GenerateContentResponse>, Error>> {
        async move { client.native().generate_content(model, self).await }.boxed()
    }

    fn stream<'r>(
        &'r self,
        client: &'r Client,
        model: &'r str,
        on_event: &'r mut OnEvent<'_, Self>,
    ) -> BoxFuture<'r, Result<Response<GenerateContentResponse>, Error>> {
        async move {
            let mut events = client.native().stream_generate_content(model, self).await?;
            while let Some(event) = events.try_next().await? {
                on_event(&event);
            }
            events.finish().await
        }
        .boxed()
    }

    fn origin() -> (Operation, &'static str) {
        (GENERATE_CONTENT, "native.run_tools")
    }

    fn describe(&mut self, tools: &[Tool]) {
        let declarations: Vec<_> = tools.iter().map(Tool::declaration).collect();
        if !declarations.is_empty() {
            let tool = NativeTool { function_declarations: Some(declarations), ..NativeTool::default() };
            self.tools.get_or_insert_default().push(tool);
        }
    }

    fn conversation(&mut self) -> &mut Vec<NativeContent> {
        &mut self.contents
    }

    fn turn(answer: &GenerateContentResponse) -> Turn<NativeContent> {
        let Some(candidate) = answer.candidates.first() else {
            let failed = LoopStop { code: NO_CANDIDATES, message: "the answer has no candidates".to_owned() };
            return Turn { failed: Some(failed), ..Turn::default() };
        };
        let content = candidate.content.clone().filter(|content| !content.parts.is_empty());
        let parts = content.as_ref().map_or(&[][..], |content| &content.parts);
        let calls = parts.iter().filter_map(|part| part.function_call.as_ref()).map(call_of).collect();
        let content = content.map(|content| NativeContent {
            role: Some(content.role.unwrap_or(NativeContentRole::from(NativeContentRole::MODEL))),
            ..content
        });
        let reason = candidate.finish_reason.as_ref().map(|reason| reason.as_str());
        Turn {
            added: content.into_iter().collect(),
            calls,
            cut_off: reason.and_then(cut_of),
            ..Turn::default()
        }
    }

    fn results(results: Vec<(ToolCall, ToolOutput)>) -> Vec<NativeContent> {
        // The protocol wants as many results in the next content as there were calls.
        let parts: Vec<NativePart> = results.into_iter().map(result_of).collect();
        if parts.is_empty() {
            return Vec::new();
        }
        vec![NativeContent::new(parts).with_role(NativeContentRole::USER)]
    }

    fn force_no_call(&mut self) {
        let config = self.tool_config.as_mut().and_then(|config| config.function_calling_config.as_mut());
        if let Some(config) = config
            && config.mode.as_ref().is_some_and(|mode| mode.as_str() == NativeFunctionCallingConfigMode::ANY)
        {
            config.mode = Some(NativeFunctionCallingConfigMode::AUTO.into());
            config.allowed_function_names = None;
        }
    }
}

/// Many servers give calls no ids: results then follow their order.
fn call_of(call: &NativeFunctionCall) -> ToolCall {
    ToolCall {
        id: call.id.clone().unwrap_or_default(),
        name: call.name.clone(),
        arguments: Value::Object(call.args.clone().unwrap_or_default()).to_string(),
    }
}

fn result_of((call, output): (ToolCall, ToolOutput)) -> NativePart {
    // Text alone, as a member: an object's numbers would change, and some names of members are refused.
    let member = if output.is_error { "error" } else { "output" };
    let response = Map::from_iter([(member.to_owned(), output.text.into())]);
    let mut result = NativeFunctionResponse::new(call.name, response);
    result.id = Some(call.id).filter(|id| !id.is_empty());
    NativePart { function_response: Some(result), ..NativePart::default() }
}

/// Why an answer is not whole.
fn cut_of(reason: &str) -> Option<LoopStop> {
    match reason {
        "MAX_TOKENS" => Some(LoopStop::cut_off("length", reason)),
        reason if FILTERS.contains(&reason) => Some(LoopStop::cut_off("content_filter", reason)),
        _ => None,
    }
}
