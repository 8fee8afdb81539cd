use serde_json::{Value, json};

use super::{clean, every_rule_refuses, stream};
use crate::conversation::Protocol;

fn chunk(delta: Value, end: Value) -> Value {
    json!({ "id": "c", "object": "chat.completion.chunk", "choices": [{ "index": 0, "delta": delta, "finish_reason": end }] })
}

fn delta(delta: Value) -> Value {
    chunk(delta, Value::Null)
}

fn text(text: &str) -> Value {
    delta(json!({ "content": text }))
}

fn begin(index: u64, id: &str, name: &str) -> Value {
    delta(
        json!({ "tool_calls": [{ "index": index, "id": id, "type": "function", "function": { "name": name, "arguments": "" } }] }),
    )
}

fn piece(index: u64, text: &str) -> Value {
    delta(json!({ "tool_calls": [{ "index": index, "function": { "arguments": text } }] }))
}

fn end(word: &str) -> Value {
    chunk(json!({}), word.into())
}

/// The stream of these chunks, with its end marker.
fn whole(chunks: &[Value]) -> Vec<u8> {
    stream(&[chunks, &[json!("[DONE]")]].concat(), false)
}

#[test]
fn valid_chat_streams_are_accepted() {
    let usage = json!({ "id": "c", "object": "chat.completion.chunk", "choices": [], "usage": { "total_tokens": 1 } });
    let first = delta(json!({ "role": "assistant", "content": "" }));
    let read = clean(Protocol::Chat, &whole(&[first, text("He"), text("llo"), end("stop"), usage]));
    assert_eq!((read.text.as_str(), read.ends), ("Hello", vec!["stop".to_owned()]));
    let calls = [
        begin(0, "a", "f"),
        begin(1, "b", "g"),
        piece(0, "{\"x\""),
        piece(1, "{}"),
        piece(0, ":1}"),
        end("tool_calls"),
    ];
    let read = clean(Protocol::Chat, &whole(&calls));
    let names_and_inputs: Vec<_> =
        read.calls.iter().map(|call| (call.name.as_str(), call.input.as_str())).collect();
    assert_eq!(names_and_inputs, [("f", "{\"x\":1}"), ("g", "{}")]);
    // The last call of a truncated answer, and a failed answer.
    clean(Protocol::Chat, &whole(&[begin(0, "a", "f"), piece(0, "{"), end("length")]));
    let failed =
        clean(Protocol::Chat, &stream(&[text("He"), json!({ "error": { "message": "broken" } })], false));
    assert!(failed.failed);
}

#[test]
fn every_chat_rule_rejects_a_violation() {
    let called = |pieces: &[Value]| whole(&[pieces, &[end("tool_calls")]].concat());
    let mut elsewhere = text("x");
    elsewhere["id"] = "d".into();
    let null = json!({ "id": "c", "object": "chat.completion.chunk", "choices": null });
    let number = delta(json!({ "content": [1] }));
    let nameless =
        delta(json!({ "tool_calls": [{ "index": 0, "id": "a", "function": { "arguments": "{}" } }] }));
    let object = delta(json!({ "tool_calls": [{ "index": 0, "function": { "arguments": {} } }] }));
    let cases = [
        ("events_are_json", b"data: {\n\n".to_vec()),
        ("events_are_json", b"data: {}".to_vec()),
        ("nothing_after_done", stream(&[end("stop"), json!("[DONE]"), text("x")], false)),
        ("nothing_after_done", whole(&[json!({ "error": {} })])),
        ("done_at_the_end", stream(&[text("x"), end("stop")], false)),
        ("chunks_of_one_answer", whole(&[text("x"), elsewhere, end("stop")])),
        ("choices_are_a_list", whole(&[null, end("stop")])),
        ("content_is_text", whole(&[number, end("stop")])),
        ("calls_are_numbered", called(&[begin(1, "a", "f"), piece(1, "{}")])),
        ("a_call_begins_with_id_and_name", called(std::slice::from_ref(&nameless))),
        ("a_call_has_its_id_and_name", called(&[nameless])),
        ("a_call_keeps_id_and_name", called(&[begin(0, "a", "f"), begin(0, "b", "f"), piece(0, "{}")])),
        ("input_is_text", called(&[begin(0, "a", "f"), object])),
        (
            "ids_of_calls_are_unique",
            called(&[begin(0, "a", "f"), piece(0, "{}"), begin(1, "a", "g"), piece(1, "{}")]),
        ),
        ("arguments_are_whole", called(&[begin(0, "a", "f"), piece(0, "{\"x\"")])),
        ("arguments_are_whole", called(&[begin(0, "a", "f")])),
        ("one_end", whole(&[end("stop"), end("stop")])),
        ("nothing_after_the_end", whole(&[end("stop"), text("x")])),
        ("an_end_for_each_choice", whole(&[text("x")])),
        ("the_end_is_known", whole(&[end("eos")])),
        ("the_end_fits_the_calls", whole(&[end("tool_calls")])),
        ("the_end_fits_the_calls", whole(&[begin(0, "a", "f"), piece(0, "{}"), end("stop")])),
    ];
    every_rule_refuses(Protocol::Chat, &cases);
}
