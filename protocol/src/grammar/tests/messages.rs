use serde_json::{Value, json};

use super::{clean, every_rule_refuses, stream};
use crate::conversation::Protocol;

fn start() -> Value {
    json!({ "type": "message_start", "message": { "id": "m", "role": "assistant", "content": [], "usage": { "input_tokens": 1 } } })
}

fn begin(index: u64, block: Value) -> Value {
    json!({ "type": "content_block_start", "index": index, "content_block": block })
}

fn text_block(index: u64) -> Value {
    begin(index, json!({ "type": "text", "text": "" }))
}

fn call_block(index: u64, id: &str) -> Value {
    begin(index, json!({ "type": "tool_use", "id": id, "name": "f", "input": {} }))
}

fn delta(index: u64, delta: Value) -> Value {
    json!({ "type": "content_block_delta", "index": index, "delta": delta })
}

fn text(index: u64, text: &str) -> Value {
    delta(index, json!({ "type": "text_delta", "text": text }))
}

fn input(index: u64, text: &str) -> Value {
    delta(index, json!({ "type": "input_json_delta", "partial_json": text }))
}

fn stop(index: u64) -> Value {
    json!({ "type": "content_block_stop", "index": index })
}

fn end(word: &str) -> Value {
    json!({ "type": "message_delta", "delta": { "stop_reason": word }, "usage": { "output_tokens": 1 } })
}

fn last() -> Value {
    json!({ "type": "message_stop" })
}

/// A complete stream with these events between start and end.
fn whole(events: &[Value], word: &str) -> Vec<u8> {
    stream(&[&[start()], events, &[end(word), last()]].concat(), true)
}

#[test]
fn valid_messages_streams_are_accepted() {
    let thought = [
        begin(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
        delta(0, json!({ "type": "thinking_delta", "thinking": "Hm." })),
        delta(0, json!({ "type": "signature_delta", "signature": "s" })),
        stop(0),
    ];
    let rest = [
        json!({ "type": "ping" }),
        text_block(1),
        text(1, "He"),
        text(1, "llo"),
        stop(1),
        call_block(2, "a"),
        input(2, "{\"x\""),
        input(2, ":1}"),
        stop(2),
        call_block(3, "b"),
        stop(3),
    ];
    let read = clean(Protocol::Messages, &whole(&[thought.as_slice(), &rest].concat(), "tool_use"));
    assert_eq!((read.text.as_str(), read.thoughts.as_str()), ("Hello", "Hm."));
    let inputs: Vec<&str> = read.calls.iter().map(|call| call.input.as_str()).collect();
    assert_eq!(inputs, ["{\"x\":1}", "{}"]);
    // A truncated call, and a failed answer.
    clean(Protocol::Messages, &whole(&[call_block(0, "a"), input(0, "{\"x"), stop(0)], "max_tokens"));
    let error = json!({ "type": "error", "error": { "type": "api_error", "message": "broken" } });
    assert!(clean(Protocol::Messages, &stream(&[start(), text_block(0), text(0, "He"), error], true)).failed);
}

#[test]
fn every_messages_rule_rejects_a_violation() {
    let texts = [text_block(0), text(0, "x"), stop(0)];
    let signed = [
        begin(0, json!({ "type": "thinking" })),
        delta(0, json!({ "type": "signature_delta", "signature": "s" })),
        delta(0, json!({ "type": "thinking_delta", "thinking": "Hm." })),
        stop(0),
    ];
    let interleaved = [call_block(0, "a"), call_block(1, "b"), input(0, "{}"), stop(0), stop(1)];
    let no_usage = json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } });
    let cases = [
        ("events_are_json", [whole(&texts, "end_turn"), b"data: {\n\n".to_vec()].concat()),
        ("names_are_types", stream(&[start(), end("end_turn"), last()], false)),
        ("events_are_known", whole(&[json!({ "type": "glimmer" })], "end_turn")),
        ("the_start_is_first", stream(&[end("end_turn"), last()], true)),
        ("the_start_is_first", whole(&[start()], "end_turn")),
        (
            "the_start_has_its_message",
            stream(&[json!({ "type": "message_start", "message": {} }), end("end_turn"), last()], true),
        ),
        ("one_block_is_open", whole(&interleaved, "tool_use")),
        ("one_block_is_open", whole(&[text_block(0)], "end_turn")),
        ("blocks_are_numbered", whole(&[text_block(1), stop(1)], "end_turn")),
        ("deltas_are_of_the_open_block", whole(&[text_block(0), stop(0), text(0, "x")], "end_turn")),
        ("deltas_are_of_the_open_block", whole(&[stop(0)], "end_turn")),
        ("deltas_fit_the_block", whole(&[text_block(0), input(0, "{}"), stop(0)], "end_turn")),
        ("blocks_before_the_end", stream(&[start(), end("end_turn"), text_block(0), stop(0), last()], true)),
        ("a_call_has_its_id_and_name", whole(&[call_block(0, ""), stop(0)], "tool_use")),
        (
            "ids_of_calls_are_unique",
            whole(&[call_block(0, "a"), stop(0), call_block(1, "a"), stop(1)], "tool_use"),
        ),
        ("arguments_are_whole", whole(&[call_block(0, "a"), input(0, "{\"x"), stop(0)], "tool_use")),
        ("thoughts_end_with_their_proof", whole(&signed, "end_turn")),
        ("one_end", whole(&[end("end_turn")], "end_turn")),
        ("the_end_has_its_usage", stream(&[start(), no_usage, last()], true)),
        ("the_end_is_known", whole(&texts, "eos")),
        ("the_end_fits_the_calls", whole(&texts, "tool_use")),
        ("the_end_fits_the_calls", whole(&[call_block(0, "a"), stop(0)], "end_turn")),
        ("stop_is_last", stream(&[start(), end("end_turn")], true)),
        ("nothing_after_stop", [whole(&texts, "end_turn"), stream(&[last()], true)].concat()),
    ];
    every_rule_refuses(Protocol::Messages, &cases);
}
