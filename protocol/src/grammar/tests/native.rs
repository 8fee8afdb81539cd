use serde_json::{Value, json};

use super::{clean, every_rule_refuses, stream};
use crate::conversation::Protocol;

fn parts(parts: Value, end: Value) -> Value {
    json!({ "candidates": [{ "index": 0, "content": { "role": "model", "parts": parts }, "finishReason": end }] })
}

fn text(text: &str) -> Value {
    parts(json!([{ "text": text }]), Value::Null)
}

fn call(members: Value) -> Value {
    parts(json!([{ "functionCall": members }]), Value::Null)
}

fn end() -> Value {
    parts(json!([]), json!("STOP"))
}

fn whole(events: &[Value]) -> Vec<u8> {
    stream(&[events, &[end()]].concat(), false)
}

#[test]
fn valid_native_streams_are_accepted() {
    let thought = parts(
        json!([{ "text": "Hm.", "thought": true }, { "text": "", "thoughtSignature": "AA==" }]),
        Value::Null,
    );
    let calls = [call(json!({ "name": "f", "args": { "x": 1 } })), call(json!({ "name": "f", "id": "b" }))];
    let read = clean(Protocol::Native, &whole(&[&[thought, text("He"), text("llo")][..], &calls].concat()));
    assert_eq!((read.text.as_str(), read.thoughts.as_str(), read.calls.len()), ("Hello", "Hm.", 2));
    let blocked = json!({ "promptFeedback": { "blockReason": "SAFETY" } });
    clean(Protocol::Native, &stream(&[blocked], false));
    let error = json!({ "error": { "code": 503, "message": "broken", "status": "UNAVAILABLE" } });
    assert!(clean(Protocol::Native, &stream(&[text("He"), error], false)).failed);
}

#[test]
fn every_native_rule_rejects_a_violation() {
    let error = json!({ "error": { "message": "broken" } });
    let two = parts(json!([{ "text": "x", "functionCall": { "name": "f" } }]), Value::Null);
    let twice = [call(json!({ "name": "f", "id": "a" })), call(json!({ "name": "g", "id": "a" }))];
    let cases = [
        ("events_are_json", b"data: {\n\n".to_vec()),
        ("events_are_answers", whole(&[json!({})])),
        ("events_are_answers", whole(&[json!("[DONE]")])),
        ("nothing_after_the_error", whole(&[error])),
        ("nothing_after_the_end", whole(&[end(), text("x")])),
        ("one_end", whole(&[end()])),
        ("an_end_for_each_choice", stream(&[text("x")], false)),
        ("parts_say_one_thing", whole(&[two])),
        ("a_call_has_its_id_and_name", whole(&[call(json!({ "args": {} }))])),
        ("ids_of_calls_are_unique", whole(&twice)),
        ("arguments_are_whole", whole(&[call(json!({ "name": "f", "args": "{" }))])),
    ];
    every_rule_refuses(Protocol::Native, &cases);
}
