//! The events of a responses stream: names, order and sequence numbers. Each is produced when the connection takes it.

use gatewright_protocol::json::text;
use serde_json::{Value, json};

use super::record::{
    ResponseProgress, SimulatedItem, SimulatedResponse, TurnResult, message, text_part, told,
};
use crate::simulator::protocols::logprobs::Logprobs;
use crate::simulator::protocols::tools::ToolInvocation;
use crate::simulator::tokens;

type EventIterator = Box<dyn Iterator<Item = Value> + Send>;

/// All events of a response, from `response.created` to the terminal one, numbered from 0.
pub(super) fn of(record: &SimulatedResponse, made: TurnResult) -> impl Iterator<Item = Value> + Send + use<> {
    let begun = record.json(&ResponseProgress::Begun);
    let ended = record.json(&ResponseProgress::Ended(&made));
    let terminal = format!("response.{}", text(&ended["status"]));
    let first = [of_response("response.created", begun.clone()), of_response("response.in_progress", begun)];
    let last = of_response(&terminal, ended);
    let status = made.item_status();
    let items =
        made.items.into_iter().enumerate().flat_map(move |(index, item)| item_events(index, item, status));
    first.into_iter().chain(items).chain(std::iter::once(last)).enumerate().map(|(number, mut event)| {
        event["sequence_number"] = json!(number);
        event
    })
}

/// An event with the response, which isn't copied.
fn of_response(kind: &str, response: Value) -> Value {
    let mut event = json!({ "type": kind, "response": null });
    event["response"] = response;
    event
}

fn item_events(index: usize, item: SimulatedItem, status: &'static str) -> EventIterator {
    let done =
        json!({ "type": "response.output_item.done", "output_index": index, "item": item.json(status) });
    let added =
        |item: Value| json!({ "type": "response.output_item.added", "output_index": index, "item": item });
    match item {
        SimulatedItem::Message { id, text, logprobs } => {
            let added = added(message(&id, "in_progress", &[]));
            Box::new(
                std::iter::once(added)
                    .chain(text_events(index, id, text, logprobs))
                    .chain(std::iter::once(done)),
            )
        }
        SimulatedItem::Call { id, call_id, called } => {
            let begun = SimulatedItem::Call { id: id.clone(), call_id, called: called.begun() };
            let added = added(begun.json("in_progress"));
            Box::new(
                std::iter::once(added).chain(call_events(index, id, called)).chain(std::iter::once(done)),
            )
        }
        // A compaction is opaque: it has no parts to stream.
        SimulatedItem::Compaction { .. } => Box::new([added(item.json(status)), done].into_iter()),
    }
}

fn text_events(
    index: usize,
    id: String,
    text: String,
    logprobs: Option<Logprobs>,
) -> impl Iterator<Item = Value> + Send {
    let event = move |kind: &str, field: &str, value: Value| json!({ "type": kind, "item_id": id, "output_index": index, "content_index": 0, field: value });
    let with_logprobs = |mut event: Value, logprobs: Value| {
        event["logprobs"] = logprobs;
        event
    };
    let before = event("response.content_part.added", "part", text_part("", None));
    let after = [
        with_logprobs(event("response.output_text.done", "text", json!(text)), told(logprobs, &text)),
        event("response.content_part.done", "part", text_part(&text, logprobs)),
    ];
    let deltas = tokens::owned_pieces(text).enumerate().map(move |(place, piece)| {
        let told = logprobs.map_or_else(|| json!([]), |logprobs| json!([logprobs.token(place, &piece)]));
        with_logprobs(event("response.output_text.delta", "delta", json!(piece)), told)
    });
    std::iter::once(before).chain(deltas).chain(after)
}

fn call_events(index: usize, id: String, called: ToolInvocation) -> impl Iterator<Item = Value> + Send {
    let mut whole = json!({ "item_id": id, "output_index": index });
    let (kind, text) = match called {
        ToolInvocation::Function { name, arguments } => {
            whole["name"] = json!(name);
            whole["arguments"] = json!(arguments);
            ("function_call_arguments", arguments)
        }
        ToolInvocation::Custom { input, .. } => {
            whole["input"] = json!(input);
            ("custom_tool_call_input", input)
        }
    };
    whole["type"] = json!(format!("response.{kind}.done"));
    let deltas = tokens::owned_pieces(text).map(move |piece| {
        json!({ "type": format!("response.{kind}.delta"), "item_id": id, "output_index": index, "delta": piece })
    });
    deltas.chain(std::iter::once(whole))
}
