//! The events of a responses stream: names, order and numbers. Made one by one as the connection takes them.

use serde_json::{Value, json};

use super::{Item, Made, Progress, Record, message, text_part, told};
use crate::chat::text;
use crate::logprobs::Logprobs;
use crate::simulator::tokens;

type Events = Box<dyn Iterator<Item = Value> + Send>;

/// All events of a response, from `response.created` to the terminal one, numbered from 0.
pub(super) fn of(record: &Record, made: Made) -> impl Iterator<Item = Value> + Send + use<> {
    let begun = record.json(&Progress::Begun);
    let ended = record.json(&Progress::Ended(&made));
    let terminal = format!("response.{}", text(&ended["status"]));
    let first = [
        json!({ "type": "response.created", "response": begun }),
        json!({ "type": "response.in_progress", "response": begun }),
    ];
    let last = json!({ "type": terminal, "response": ended });
    let status = made.item_status();
    let items =
        made.items.into_iter().enumerate().flat_map(move |(index, item)| item_events(index, item, status));
    first.into_iter().chain(items).chain(std::iter::once(last)).enumerate().map(|(number, mut event)| {
        event["sequence_number"] = json!(number);
        event
    })
}

fn item_events(index: usize, item: Item, status: &'static str) -> Events {
    let done =
        json!({ "type": "response.output_item.done", "output_index": index, "item": item.json(status) });
    let added =
        |item: Value| json!({ "type": "response.output_item.added", "output_index": index, "item": item });
    match item {
        Item::Message { id, text, logprobs } => {
            let added = added(message(&id, "in_progress", &[]));
            Box::new(
                std::iter::once(added)
                    .chain(text_events(index, id, text, logprobs))
                    .chain(std::iter::once(done)),
            )
        }
        Item::FunctionCall { id, call_id, name, arguments } => {
            let begun =
                Item::FunctionCall { id: id.clone(), call_id, name: name.clone(), arguments: String::new() };
            let added = added(begun.json("in_progress"));
            Box::new(
                std::iter::once(added)
                    .chain(call_events(index, id, &name, arguments))
                    .chain(std::iter::once(done)),
            )
        }
        // A compaction is opaque: it has no parts to stream.
        Item::Compaction { .. } => Box::new([added(item.json(status)), done].into_iter()),
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

fn call_events(
    index: usize,
    id: String,
    name: &str,
    arguments: String,
) -> impl Iterator<Item = Value> + Send + use<> {
    let done = json!({
        "type": "response.function_call_arguments.done",
        "item_id": id,
        "output_index": index,
        "name": name,
        "arguments": arguments,
    });
    let deltas = tokens::owned_pieces(arguments).map(move |piece| {
        json!({
            "type": "response.function_call_arguments.delta",
            "item_id": id,
            "output_index": index,
            "delta": piece,
        })
    });
    deltas.chain(std::iter::once(done))
}
