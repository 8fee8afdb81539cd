use serde_json::{Value, json};

use super::{clean, every_rule_refuses, stream};
use crate::conversation::Protocol;

fn event(kind: &str, mut members: Value) -> Value {
    members["type"] = format!("response.{kind}").into();
    members
}

fn created() -> Value {
    event("created", json!({ "response": { "status": "in_progress" } }))
}

fn added(index: u64, item: &Value) -> Value {
    event("output_item.added", json!({ "output_index": index, "item": item }))
}

fn done(index: u64, item: &Value) -> Value {
    event("output_item.done", json!({ "output_index": index, "item": item }))
}

fn message(text: &str) -> Value {
    json!({ "id": "msg_0", "type": "message", "status": "completed", "content": [{ "type": "output_text", "text": text }] })
}

fn call(index: u64, id: &str, arguments: &str) -> Value {
    json!({ "id": format!("fc_{index}"), "type": "function_call", "status": "completed", "call_id": id, "name": "f",
        "arguments": arguments })
}

/// An event of the only part of the first item.
fn of_part(kind: &str, mut members: Value) -> Value {
    for (name, value) in
        [("output_index", json!(0)), ("content_index", json!(0)), ("item_id", json!("msg_0"))]
    {
        members[name] = value;
    }
    event(kind, members)
}

/// All events of a text, with the text that `done` states.
fn text(deltas: &[&str], text: &str) -> Vec<Value> {
    let mut events = vec![
        added(0, &json!({ "id": "msg_0", "type": "message" })),
        of_part("content_part.added", json!({})),
    ];
    events.extend(deltas.iter().map(|delta| of_part("output_text.delta", json!({ "delta": delta }))));
    events.push(of_part("output_text.done", json!({ "text": text })));
    events.push(of_part("content_part.done", json!({ "part": { "text": text } })));
    events.push(done(0, &message(text)));
    events
}

/// All events of a call.
fn called(index: u64, id: &str, deltas: &[&str], arguments: &str) -> Vec<Value> {
    let of = |kind: &str, mut members: Value| {
        (members["output_index"], members["item_id"]) = (index.into(), format!("fc_{index}").into());
        event(kind, members)
    };
    let mut events = vec![added(index, &call(index, id, ""))];
    events.extend(deltas.iter().map(|delta| of("function_call_arguments.delta", json!({ "delta": delta }))));
    events.push(of("function_call_arguments.done", json!({ "arguments": arguments })));
    events.push(done(index, &call(index, id, arguments)));
    events
}

fn end(output: &[Value]) -> Value {
    event("completed", json!({ "response": { "status": "completed", "output": output } }))
}

/// The events with their sequence numbers.
fn numbered(events: &[Value]) -> Vec<u8> {
    let events: Vec<Value> = events
        .iter()
        .enumerate()
        .map(|(number, event)| {
            let mut event = event.clone();
            event["sequence_number"] = number.into();
            event
        })
        .collect();
    stream(&events, true)
}

/// A stream of these events that completes with this output.
fn whole(events: &[Value], output: &[Value]) -> Vec<u8> {
    numbered(&[&[created()], events, &[end(output)]].concat())
}

#[test]
fn valid_responses_streams_are_accepted() {
    let events = [text(&["He", "llo"], "Hello"), called(1, "a", &["{\"x\"", ":1}"], "{\"x\":1}")].concat();
    let read = clean(Protocol::Responses, &whole(&events, &[message("Hello"), call(1, "a", "{\"x\":1}")]));
    assert_eq!((read.text.as_str(), read.calls[0].input.as_str()), ("Hello", "{\"x\":1}"));
    // Two items open at the same time, a truncated call, and a failed answer.
    let (first, second) = (called(0, "a", &["{}"], "{}"), called(1, "b", &["{}"], "{}"));
    let mixed: Vec<Value> =
        first.iter().zip(&second).flat_map(|(first, second)| [first.clone(), second.clone()]).collect();
    clean(Protocol::Responses, &whole(&mixed, &[call(0, "a", "{}"), call(1, "b", "{}")]));
    let mut cut = call(0, "a", "{\"x");
    cut["status"] = "incomplete".into();
    let incomplete = event("incomplete", json!({ "response": { "status": "incomplete", "output": [cut] } }));
    let delta = event("function_call_arguments.delta", json!({ "output_index": 0, "delta": "{\"x" }));
    let read = clean(
        Protocol::Responses,
        &numbered(&[created(), added(0, &call(0, "a", "")), delta, done(0, &cut), incomplete]),
    );
    assert!(read.calls.is_empty());
    let failed =
        event("failed", json!({ "response": { "status": "failed", "error": { "message": "broken" } } }));
    assert!(clean(Protocol::Responses, &numbered(&[created(), failed])).failed);
}

#[test]
fn every_responses_rule_rejects_a_violation() {
    let hello = text(&["Hello"], "Hello");
    let output = [message("Hello")];
    let without = |place: usize| {
        let mut events = hello.clone();
        events.remove(place);
        whole(&events, &output)
    };
    let with = |place: usize, event: Value| {
        let mut events = hello.clone();
        events.insert(place, event);
        whole(&events, &output)
    };
    let gap = stream(
        &[created(), end(&[])].map(|mut event| {
            event["sequence_number"] = 3.into();
            event
        }),
        true,
    );
    let late = of_part("output_text.delta", json!({ "delta": "x" }));
    let mut elsewhere = of_part("output_text.delta", json!({ "delta": "" }));
    elsewhere["item_id"] = "msg_9".into();
    let failed = event("completed", json!({ "response": { "status": "failed", "output": [] } }));
    let nameless = {
        let mut call = call(0, "a", "{}");
        call["name"] = "".into();
        let delta = event("function_call_arguments.delta", json!({ "output_index": 0, "delta": "{}" }));
        let whole_input =
            event("function_call_arguments.done", json!({ "output_index": 0, "arguments": "{}" }));
        whole(&[added(0, &call), delta, whole_input, done(0, &call)], &[call])
    };
    let twice = [called(0, "a", &["{}"], "{}"), called(1, "a", &["{}"], "{}")].concat();
    let half = called(0, "a", &["{"], "{");
    let cases = [
        ("events_are_json", b"data: {\n\n".to_vec()),
        ("names_are_types", stream(&[created()], false)),
        ("numbers_have_no_gap", gap),
        ("created_is_first", numbered(&[end(&[])])),
        ("created_is_first", whole(&[created()], &[])),
        ("items_are_numbered", whole(&called(1, "a", &["{}"], "{}"), &[])),
        ("events_are_of_an_open_item", with(6, late.clone())),
        ("events_are_of_an_open_item", without(0)),
        ("parts_are_numbered", with(2, of_part("content_part.added", json!({})))),
        ("deltas_are_of_an_open_part", without(1)),
        ("deltas_are_of_an_open_part", with(4, late)),
        ("done_is_the_sum_of_its_deltas", whole(&text(&["Hell"], "Hello"), &output)),
        ("done_is_the_sum_of_its_deltas", whole(&called(0, "a", &["{"], "{}"), &[call(0, "a", "{}")])),
        ("parts_are_closed", without(4)),
        ("parts_are_closed", without(3)),
        ("an_item_stays_itself", with(2, elsewhere)),
        ("completed_items_are_whole", whole(&half, &[call(0, "a", "{")])),
        ("completed_items_are_whole", whole(&called(0, "a", &[], ""), &[call(0, "a", "")])),
        ("arguments_are_whole", whole(&half, &[call(0, "a", "{")])),
        ("a_call_has_its_id_and_name", nameless),
        ("ids_of_calls_are_unique", whole(&twice, &[call(0, "a", "{}"), call(1, "a", "{}")])),
        ("items_are_done", without(5)),
        ("the_end_has_its_status", numbered(&[created(), failed])),
        ("the_output_is_the_items", whole(&hello, &[])),
        ("the_end_is_last", numbered(&[created()])),
        ("the_end_is_last", numbered(&[created(), end(&[]), end(&[])])),
    ];
    every_rule_refuses(Protocol::Responses, &cases);
}
