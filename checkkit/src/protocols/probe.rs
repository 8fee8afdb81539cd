//! The requests of a protocol's checks, and what is asserted of the answers.

use gatewright::ErrorBody;
use gatewright::sse::{Decoder, Item};
use gatewright_protocol::Action;
use gatewright_protocol::grammar::{RuleViolation, Transcript, transcript};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::answer::{ProtocolAnswer, ToolCall, read, usage};
use super::{ProbedProtocol, Question};
use crate::cell::Cell;
use crate::checks::{Context, exchange, json_exchange, prompt};
use crate::exchange::MAX_BODY_BYTES;
use crate::failure::{Category, Failure};
use crate::response_object::{brief, kind};

const FUNCTION: &str = "compat_echo";
/// Limit of an answer in tokens, which messages require: far more than the run's token has.
const MAX_TOKENS: u32 = 1024;
/// Maximum number of broken rules that are recorded of a stream: each event may break some.
const MAX_BROKEN_RULES: usize = 50;

/// A model, called over a protocol.
pub(super) struct Probe<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) protocol: ProbedProtocol,
    pub(super) model: &'a str,
}

impl Probe<'_> {
    pub(super) async fn ask(&self, cell: &mut Cell, question: Question) {
        match question {
            Question::Text => self.document(cell, false).await,
            Question::Tool => self.document(cell, true).await,
            Question::Stream => self.stream(cell, false).await,
            Question::ToolStream => self.stream(cell, true).await,
            Question::Error => self.error(cell).await,
        }
    }

    /// The path below the base path.
    fn path(&self, streams: bool) -> String {
        let model = utf8_percent_encode(self.model, NON_ALPHANUMERIC).to_string();
        let model = model.replace("%2D", "-").replace("%2E", ".").replace("%5F", "_");
        self.protocol.protocol().path(Action::Answer { stream: streams }, &model).into_owned()
    }

    fn body(&self, streams: bool, with_tool: bool) -> Value {
        let token = self.context.token;
        let text = if with_tool {
            format!("Call the function {FUNCTION} with this value: {token}")
        } else {
            prompt(token)
        };
        let model = self.model;
        let parameters = json!({
            "type": "object",
            "properties": { "value": { "type": "string" } },
            "required": ["value"],
        });
        let about = "Gives back the value it is called with.";
        let mut body = match self.protocol {
            ProbedProtocol::Chat => {
                json!({ "model": model, "messages": [{ "role": "user", "content": text }] })
            }
            ProbedProtocol::Messages => json!({
                "model": model,
                "max_tokens": MAX_TOKENS,
                "messages": [{ "role": "user", "content": text }],
            }),
            ProbedProtocol::Native => {
                json!({ "contents": [{ "role": "user", "parts": [{ "text": text }] }] })
            }
        };
        if with_tool {
            let (tools, choice_name, choice) = match self.protocol {
                ProbedProtocol::Chat => (
                    json!([{
                        "type": "function",
                        "function": { "name": FUNCTION, "description": about, "parameters": parameters },
                    }]),
                    "tool_choice",
                    json!({ "type": "function", "function": { "name": FUNCTION } }),
                ),
                ProbedProtocol::Messages => (
                    json!([{ "name": FUNCTION, "description": about, "input_schema": parameters }]),
                    "tool_choice",
                    json!({ "type": "tool", "name": FUNCTION }),
                ),
                ProbedProtocol::Native => (
                    json!([{ "functionDeclarations": [
                        { "name": FUNCTION, "description": about, "parameters": parameters },
                    ] }]),
                    "toolConfig",
                    json!({ "functionCallingConfig": { "mode": "ANY", "allowedFunctionNames": [FUNCTION] } }),
                ),
            };
            body["tools"] = tools;
            body[choice_name] = choice;
        }
        let binding = self.protocol.protocol().binding();
        if streams && !binding.model_in_path {
            body["stream"] = json!(true);
        }
        if streams && binding.stream.usage_on_request {
            body["stream_options"] = json!({ "include_usage": true });
        }
        body
    }

    async fn document(&self, cell: &mut Cell, with_tool: bool) {
        let body = self.body(false, with_tool);
        let Some(value) = json_exchange(self.context, cell, &self.path(false), Some(&body)).await else {
            return;
        };
        let Some(answer) = read(cell, self.protocol, &value) else { return };
        self.judge(cell, &answer, with_tool);
    }

    async fn stream(&self, cell: &mut Cell, with_tool: bool) {
        let body = self.body(true, with_tool);
        let answer = exchange(self.context, cell, &self.path(true), Some(&body), "text/event-stream").await;
        let Some((answer, failure)) = answer else { return };
        if let Some(mut failure) = failure {
            failure.message = format!("the stream was cut off: {}", failure.message);
            cell.fail("end of the stream", "the service ends it", failure.message.clone(), failure);
        }
        let (plain, events) = decoded(&answer.body);
        let read = transcript(self.protocol.protocol(), plain.as_bytes());
        if read.failed {
            let error_body = events.iter().find(|event| !event["error"].is_null());
            let error_body = error_body.map(|event| ErrorBody::of_value(&event["error"])).unwrap_or_default();
            let failure = Failure::reported(Category::Response, "the stream reports an error", error_body);
            cell.fail("failure in the stream", "none", "an error", failure);
        }
        let found = events.len().to_string();
        cell.assert(Category::Protocol, "events of the stream", "at least 1", found, !events.is_empty());
        // Some services end a forced call like any other answer.
        let is_broken = |fault: &&RuleViolation| !(with_tool && fault.rule == "the_end_fits_the_calls");
        for RuleViolation { rule, message } in read.faults.iter().filter(is_broken).take(MAX_BROKEN_RULES) {
            // What a service sends is in the evidence; the rule says what is wrong with it.
            let what = format!("rule \"{}\"", rule.replace('_', " "));
            cell.assert(Category::Protocol, &what, "kept", message.clone(), false);
        }
        let counted = events.iter().any(|event| usage(self.protocol, event).is_some());
        let found = if counted { "counts of tokens" } else { "none" };
        cell.assert(Category::Schema, "usage in the stream", "counts of tokens", found, counted);
        let Transcript { text, calls, .. } = read;
        let calls = calls.into_iter().map(|call| ToolCall {
            name: call.name,
            arguments: serde_json::from_str(&call.input).unwrap_or(Value::String(call.input)),
        });
        self.judge(cell, &ProtocolAnswer { text, calls: calls.collect() }, with_tool);
    }

    /// Whether the answer is the requested one.
    fn judge(&self, cell: &mut Cell, answer: &ProtocolAnswer, with_tool: bool) {
        let token = self.context.token;
        if !with_tool {
            let held = answer.text.contains(token);
            let found = format!("{:?}", answer.text);
            cell.assert(Category::Verification, "text", format!("{token} in it"), found, held);
            return;
        }
        let count = answer.calls.len();
        cell.assert(Category::Verification, "function calls", "exactly 1", count.to_string(), count == 1);
        let Some(first) = answer.calls.first() else { return };
        let held = first.name == FUNCTION;
        let found = format!("{:?}", first.name);
        cell.assert(Category::Verification, "name of the function", format!("{FUNCTION:?}"), found, held);
        let expected = json!({ "value": token });
        let held = first.arguments == expected;
        let found = first.arguments.to_string();
        cell.assert(Category::Verification, "arguments", expected.to_string(), found, held);
    }

    /// A request without its messages is an error, in the protocol's own form.
    async fn error(&self, cell: &mut Cell) {
        let mut body = self.body(false, false);
        for name in ["messages", "contents"] {
            body.as_object_mut().and_then(|body| body.remove(name));
        }
        let path = self.path(false);
        let sent = self.context.service.exchange(&path, Some(&body), "application/json").await;
        let Some(answer) = sent.answer else {
            cell.exchanged(sent.request, String::new());
            let failure =
                sent.failure.unwrap_or_else(|| Failure::new(Category::Internal, "no answer and no failure"));
            cell.fail("answer", "an HTTP answer", failure.message.clone(), failure);
            return;
        };
        cell.exchanged(sent.request, answer.shown());
        cell.check.http_status = (100..=599).contains(&answer.status).then_some(answer.status.into());
        let status = answer.status;
        let held = matches!(status, 400 | 422);
        let category = if status < 400 { Category::Verification } else { Category::of_status(status) };
        let expected = "400 or 422, because the request has no messages";
        if !cell.assert(category, "HTTP status", expected, status.to_string(), held) {
            return;
        }
        let media_type = answer.media_type().unwrap_or_else(|| "none".to_owned());
        let is_json = media_type == "application/json";
        cell.assert(Category::ContentType, "content type", "application/json", media_type, is_json);
        let value: Value = match serde_json::from_slice(&answer.body) {
            Ok(value) => value,
            Err(error) => {
                cell.assert(Category::Protocol, "body", "JSON", format!("none ({error})"), false);
                return;
            }
        };
        self.assert_error(cell, &value, status);
    }

    fn assert_error(&self, cell: &mut Cell, value: &Value, status: u16) {
        let error = &value["error"];
        if !cell.assert(Category::Schema, "error", "an object", kind(error), error.is_object()) {
            return;
        }
        let mut named = |what: &str, value: &Value| {
            let held = value.as_str().is_some_and(|text| !text.is_empty());
            cell.assert(Category::Schema, what, "a string that is not empty", brief(value), held);
        };
        named("error/message", &error["message"]);
        match self.protocol {
            ProbedProtocol::Chat => named("error/type", &error["type"]),
            ProbedProtocol::Messages => {
                named("error/type", &error["type"]);
                let held = value["type"] == "error";
                cell.assert(Category::Schema, "type", "\"error\"", brief(&value["type"]), held);
            }
            ProbedProtocol::Native => {
                named("error/status", &error["status"]);
                let held = error["code"] == status;
                cell.assert(Category::Schema, "error/code", status.to_string(), brief(&error["code"]), held);
            }
        }
    }
}

/// The events of a stream with the line ends and comments taken out that clients accept, and their JSON.
fn decoded(body: &[u8]) -> (String, Vec<Value>) {
    let mut decoder = Decoder::new().with_max_event_bytes(MAX_BODY_BYTES);
    let mut items = Vec::new();
    // The body is within the bound.
    let _ = decoder.feed(body, &mut items);
    let (mut plain, mut events) = (String::new(), Vec::new());
    for item in items {
        match item {
            Item::Event(event) => {
                if let Some(name) = &event.event {
                    plain.extend(["event: ", name, "\n"]);
                }
                for line in event.data.split('\n') {
                    plain.extend(["data: ", line, "\n"]);
                }
                plain.push('\n');
                events.extend(serde_json::from_str::<Value>(&event.data));
            }
            Item::Unknown(line) => plain.extend([&*line, "\n\n"]),
            _ => {}
        }
    }
    if let Some(rest) = decoder.finish() {
        // Without the blank line that ends an event: clients drop it.
        plain.extend(["data: ", &rest.data.replace('\n', " ")]);
    }
    (plain, events)
}
