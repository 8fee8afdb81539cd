//! `responses_stream`: the same as an event stream: framing, the order of events, one completed event at the end,
//! deltas that add up to the final text, and finished items that match the final response.

use std::collections::BTreeMap;

use gatewright::ErrorBody;
use gatewright::sse::{Decoder, Item, StreamEvent};
use serde_json::{Value, json};

use super::context::{Context, exchange, prompt};
use crate::cell::Cell;
use crate::done_items::DoneItems;
use crate::exchange::MAX_BODY_BYTES;
use crate::failure::{Category, Failure};
use crate::response_object::{brief, examine};

const DONE: &str = "[DONE]";

pub(super) async fn check(context: &Context<'_>, cell: &mut Cell, model: &str) {
    let body = json!({ "model": model, "input": prompt(context.token), "stream": true });
    let answer = exchange(context, cell, "/responses", Some(&body), "text/event-stream").await;
    let Some((answer, failure)) = answer else { return };
    let whole = failure.is_none();
    assert_utf8(cell, &answer.body, whole);
    let mut stream = Stream::default();
    for event in decode(cell, &answer.body, whole, &mut stream) {
        stream.take(cell, &event);
    }
    if let Some(mut failure) = failure {
        if failure.category == Category::Timeout && stream.completed.is_some() {
            failure.message.push_str(", although its completed event had arrived");
        } else if stream.completed.is_none() {
            failure.message = format!("the stream was cut off: {}; {}", failure.message, stream.progress());
        }
        cell.fail("end of the stream", "the service ends it", failure.message.clone(), failure);
    }
    stream.judge(context, cell, model);
}

fn assert_utf8(cell: &mut Cell, body: &[u8], whole: bool) {
    let error = std::str::from_utf8(body).err();
    // If a stream was cut off, its last character may be incomplete.
    let error = error.filter(|error| whole || error.error_len().is_some());
    let found =
        error.map_or_else(|| "UTF-8".to_owned(), |error| format!("a bad byte at {}", error.valid_up_to()));
    cell.assert(Category::Protocol, "encoding", "UTF-8", found, error.is_none());
}

/// The events of the body, in order. Records framing errors that clients fail on.
fn decode(cell: &mut Cell, body: &[u8], whole: bool, stream: &mut Stream) -> Vec<StreamEvent> {
    // A single event may be as long as the body.
    let mut decoder = Decoder::new().with_max_event_bytes(MAX_BODY_BYTES);
    let mut items = Vec::new();
    let fits = decoder.feed(body, &mut items).is_ok();
    cell.assert(
        Category::Protocol,
        "events",
        "within bounds",
        if fits { "within bounds" } else { "too long" },
        fits,
    );
    let mut events = Vec::new();
    for item in items {
        match item {
            Item::Event(event) => events.push(event),
            // The standard ignores unknown fields, but a bare JSON document was probably intended as data.
            Item::Unknown(line) if line.trim_start().starts_with(['{', '[']) => {
                let error_body =
                    serde_json::from_str(&line).map(|value| ErrorBody::of_value(&value)).unwrap_or_default();
                let failure = Failure::reported(
                    Category::Protocol,
                    "the stream contains JSON outside its events",
                    error_body,
                );
                cell.fail("framing", "fields of an event stream", line, failure);
            }
            _ => {}
        }
    }
    if let Some(rest) = decoder.finish() {
        stream.unterminated = true;
        stream.rest = whole.then_some(rest.data);
    }
    events
}

/// The state after the events so far.
#[derive(Default)]
struct Stream {
    /// JSON events that have a type.
    events: u64,
    delta_events: u64,
    /// Texts of the deltas, by position in the output.
    deltas: BTreeMap<(u64, u64), String>,
    done_items: DoneItems,
    /// Type of the last event.
    last: Option<String>,
    last_sequence: Option<f64>,
    completed_events: u64,
    /// The response of the first completed event.
    completed: Option<Value>,
    /// The response of the first event, for streams that never complete.
    created: Option<Value>,
    /// Something other than a comment or the terminator followed a completed event.
    followed: bool,
    done: bool,
    unterminated: bool,
    /// Text that no blank line terminated, if the stream ended by itself.
    rest: Option<String>,
}

impl Stream {
    fn take(&mut self, cell: &mut Cell, event: &StreamEvent) {
        let data = event.data.trim();
        if data == DONE {
            self.done = true;
            return;
        }
        self.followed |= self.completed_events > 0;
        if self.done {
            // The event itself is in the evidence.
            let message = format!("after [DONE]: expected nothing, found another event{}", of_type(data));
            cell.fail("after [DONE]", "nothing", data, Failure::new(Category::Protocol, message));
        }
        let number = self.events + 1;
        let value: Value = match serde_json::from_str(data) {
            Ok(value) => value,
            Err(error) => {
                let what = format!("event {number}");
                // The event itself is in the evidence.
                let message = if error.is_eof() && !data.is_empty() {
                    format!("{what} was cut off after {} bytes, in the middle of its JSON", data.len())
                } else {
                    format!("{what}: expected JSON, found something else ({error})")
                };
                let failure = Failure::new(Category::Protocol, message);
                cell.fail(&what, "JSON", format!("{data:?} ({error})"), failure);
                return;
            }
        };
        let Some(kind) = value["type"].as_str().map(str::to_owned) else {
            untyped(cell, number, &value);
            return;
        };
        self.events = number;
        self.assert_place(cell, event, number, &kind, &value);
        match kind.as_str() {
            "response.created" if self.created.is_none() => self.created = Some(value["response"].clone()),
            "response.output_text.delta" => self.delta(cell, number, &value),
            "response.output_item.done" => self.done_items.take(&value),
            "response.completed" => {
                self.completed_events += 1;
                self.completed.get_or_insert_with(|| value["response"].clone());
            }
            "error" | "response.failed" | "response.incomplete" => refuse(cell, &kind, &value),
            _ => {}
        }
        self.last = Some(kind);
    }

    /// The state that the stream reached.
    fn progress(&self) -> String {
        match &self.last {
            None => "no events had arrived".to_owned(),
            Some(last) => format!("{} events had arrived, the last a {last}", self.events),
        }
    }

    /// The stream ended early by itself: the cause of everything else that is missing.
    fn assert_completed(&self, cell: &mut Cell) {
        if self.completed_events == 0 {
            let message = format!("the stream ended early, without response.completed: {}", self.progress());
            let failure = Failure::new(Category::Protocol, message);
            cell.fail("end of the stream", "after response.completed", self.progress(), failure);
        }
    }

    fn assert_place(&mut self, cell: &mut Cell, event: &StreamEvent, number: u64, kind: &str, value: &Value) {
        if let Some(name) = event.event.as_deref()
            && name != kind
        {
            let what = format!("name of event {number}");
            cell.assert(Category::Protocol, &what, format!("{kind:?}, its type"), format!("{name:?}"), false);
        }
        if number == 1 {
            let held = kind == "response.created";
            cell.assert(Category::Protocol, "first event", "response.created", kind, held);
        }
        let sequence = &value["sequence_number"];
        if sequence.is_null() {
            return;
        }
        let rises = match (sequence.as_f64(), self.last_sequence) {
            (Some(this), Some(last)) => this > last,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if !rises {
            let what = format!("sequence_number of event {number}");
            let expected =
                self.last_sequence.map_or_else(|| "a number".to_owned(), |last| format!("more than {last}"));
            cell.assert(Category::Protocol, &what, expected, brief(sequence), false);
        }
        self.last_sequence = sequence.as_f64().or(self.last_sequence);
    }

    fn delta(&mut self, cell: &mut Cell, number: u64, value: &Value) {
        self.delta_events += 1;
        let Some(text) = value["delta"].as_str() else {
            let what = format!("delta of event {number}");
            cell.assert(Category::Schema, &what, "a string", brief(&value["delta"]), false);
            return;
        };
        let index = |name: &str| value[name].as_u64().unwrap_or(0);
        let place = (index("output_index"), index("content_index"));
        self.deltas.entry(place).or_default().push_str(text);
    }

    /// Asserts the rules for the whole stream.
    fn judge(self, context: &Context<'_>, cell: &mut Cell, model: &str) {
        cell.check.event_count = Some(self.events);
        cell.check.delta_event_count = Some(self.delta_events);
        let completed = self.completed_events > 0;
        let terminal = self.completed_events == 1 && !self.followed && !self.unterminated;
        cell.check.completed_event = Some(completed);
        cell.check.terminal_completed_event = Some(terminal);
        self.assert_completed(cell);
        if let Some(rest) = self.rest {
            let (what, expected) = ("framing", "a blank line after the last event");
            let message = format!("{what}: expected {expected}, found {} unterminated bytes", rest.len());
            cell.fail(what, expected, rest, Failure::new(Category::Protocol, message));
        }
        let deltas = self.delta_events;
        cell.assert(Category::Protocol, "text deltas", "at least 1", deltas.to_string(), deltas > 0);
        let found = match (self.completed_events, terminal) {
            (0, _) => "none".to_owned(),
            (1, true) => "one, at the end".to_owned(),
            (1, false) => "one, and more after it".to_owned(),
            (many, _) => format!("{many}"),
        };
        cell.assert(
            Category::Protocol,
            "response.completed",
            "exactly one, as the last event",
            found,
            terminal,
        );
        let text: String = self.deltas.into_values().collect();
        let verified = text.contains(context.token);
        cell.check.output_verified = Some(false);
        if let Some(mut response) = self.completed {
            // Some services omit from the last event what earlier events contained.
            if response["output"].as_array().is_some_and(Vec::is_empty) {
                response["output"] = Value::Array(self.done_items.items());
            }
            if let Some(last) = examine(cell, &response, model) {
                let expected = format!("{} in them", context.token);
                cell.assert(Category::Verification, "deltas", expected, format!("{text:?}"), verified);
                let (expected, shown) = (format!("{text:?}, the deltas"), format!("{:?}", last.text));
                let agree = text == last.text;
                cell.assert(Category::Verification, "final text", expected, shown, agree);
                cell.check.output_verified = Some(verified && agree);
                self.done_items.judge(cell, &response["output"]);
            }
        } else if let Some(started) = self.created.filter(Value::is_object) {
            // The id and the model that an incomplete stream reports.
            cell.check.response_id = Some(started["id"].as_str().map(str::to_owned));
            cell.check.reported_model = Some(started["model"].as_str().map(str::to_owned));
        }
        if context.redactor.finds(&text) {
            cell.withhold_response("the events contain the API key in pieces");
        }
    }
}

/// An event without a type, which may only report that something failed.
fn untyped(cell: &mut Cell, number: u64, value: &Value) {
    let what = format!("event {number}");
    if value["error"].is_null() {
        cell.assert(Category::Schema, &what, "a type", brief(value), false);
    } else {
        let error_body = ErrorBody::of_value(value);
        let failure = Failure::reported(Category::Response, "the stream contains an error", error_body);
        cell.fail(&what, "no error", value.to_string(), failure);
    }
}

/// `, response.failed`: the type of an event, from its data; nothing if it has none.
fn of_type(data: &str) -> String {
    let value: Value = serde_json::from_str(data).unwrap_or_default();
    value["type"].as_str().map_or_else(String::new, |kind| format!(", {kind}"))
}

/// A failure reported in the stream.
fn refuse(cell: &mut Cell, kind: &str, value: &Value) {
    let error_body = match kind {
        // {"type":"error","code":…,"message":…,"param":…}, or the same one level down; its `type` is not an error
        // type.
        "error" if value["error"].is_null() => {
            let mut error_body = ErrorBody::of_value(value);
            error_body.error_type = None;
            error_body
        }
        "error" => ErrorBody::of_value(&value["error"]),
        _ => ErrorBody::of_value(&value["response"]["error"]),
    };
    let mut failure =
        Failure::reported(Category::Response, &format!("the stream contains {kind}"), error_body);
    if let Some(reason) = value["response"]["incomplete_details"]["reason"].as_str() {
        failure.message.push_str(": ");
        failure.message.push_str(reason);
    }
    cell.fail("failure in the stream", "none", kind, failure);
}
