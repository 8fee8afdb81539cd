//! Broken or malicious provider streams: no panic, no more memory than was sent, and no false success.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{PROTOCOLS, cases, deltas, written};
use crate::conversation::{Delta, FinishReason, Protocol};

/// The events of all vectors of a protocol.
fn known_events(folder: &str) -> Vec<Value> {
    let cases = cases(folder, "streams");
    cases.iter().flat_map(|case| case["events"].as_array().cloned().unwrap_or_default()).collect()
}

fn is_complete(deltas: &[Delta]) -> bool {
    deltas.iter().any(|delta| matches!(delta, Delta::Done))
}

#[test]
fn truncated_stream_is_malformed() {
    for (protocol, folder) in PROTOCOLS {
        for case in cases(folder, "streams") {
            let events = case["events"].as_array().expect("events");
            let whole = deltas(protocol, &case["events"]).expect("a valid stream");
            if !is_complete(&whole) {
                continue;
            }
            for length in 0..events.len() {
                let cut = Value::from(events[..length].to_vec());
                let Ok(read) = deltas(protocol, &cut) else { continue };
                let ends = |delta: &&Delta| matches!(delta, Delta::Ended { .. });
                let all = whole.iter().filter(ends).count();
                assert_eq!(
                    read.iter().filter(ends).count(),
                    all,
                    "{folder}: {} after {length}",
                    case["name"]
                );
            }
        }
    }
}

#[test]
fn events_after_the_end_of_a_stream_are_ignored() {
    for (protocol, folder) in PROTOCOLS {
        for case in cases(folder, "streams") {
            let events = case["events"].as_array().expect("events");
            let twice = Value::from([events.clone(), events.clone()].concat());
            let once = deltas(protocol, &case["events"]).expect("a valid stream");
            if case["name"] != "a_provider_that_is_careless" && case["name"] != "a_tool_of_the_provider" {
                assert_eq!(
                    deltas(protocol, &twice).expect("a valid stream"),
                    once,
                    "{folder}: {}",
                    case["name"]
                );
            }
        }
    }
}

#[test]
fn invalid_events_are_malformed_or_ignored() {
    let odd =
        ["{", "null", "7", "[]", "\"x\"", "{\"choices\": 1}", "{\"type\": 7}", "\u{0}", "{\"type\":\"x\"}"];
    for (protocol, folder) in PROTOCOLS {
        for data in odd {
            let mut read = Vec::new();
            let mut reader = protocol.stream_in();
            let taken = reader.event(None, data, &mut read);
            assert!(taken.is_err() || !is_complete(&read), "{folder}: {data}");
            assert!(reader.end(&mut read).is_err() || data.is_empty(), "{folder}: {data}");
        }
    }
}

#[test]
fn too_many_calls_or_choices_are_rejected() {
    let chat: Vec<Value> = (0..5_000)
        .map(|index| {
            let call = json!({ "index": index, "id": format!("c{index}"), "function": { "name": "f" } });
            json!({ "data": { "choices": [{ "delta": { "tool_calls": [call] } }] } })
        })
        .collect();
    assert!(deltas(Protocol::Chat, &chat.into()).is_err());
    let block = json!({ "type": "content_block_start", "content_block": { "type": "tool_use", "id": "i", "name": "f" } });
    let messages = vec![json!({ "data": block }); 5_000];
    assert!(deltas(Protocol::Messages, &messages.into()).is_err());
    let choices: Vec<Value> =
        (0..500).map(|index| json!({ "index": index, "delta": { "content": "x" } })).collect();
    assert!(deltas(Protocol::Chat, &json!([{ "data": { "choices": choices } }])).is_err());
}

/// A packet may be up to 64 MiB: comparing all of its proofs with all of its calls would take hours.
#[test]
fn too_many_proofs_and_calls_in_one_packet_are_rejected() {
    let proof =
        |number: u32| json!({ "type": "reasoning.encrypted", "id": format!("p{number}"), "data": "d" });
    let call =
        |number: u32| json!({ "index": number, "id": format!("c{number}"), "function": { "name": "f" } });
    let delta = json!({
        "reasoning_details": (0..20_000).map(proof).collect::<Vec<_>>(),
        "tool_calls": (0..20_000).map(call).collect::<Vec<_>>(),
    });
    let chunk = json!({ "id": "c", "model": "m", "choices": [{ "index": 0, "delta": delta }] });
    assert!(deltas(Protocol::Chat, &json!([{ "data": chunk }])).is_err());
}

#[test]
fn too_many_items_or_candidates_are_rejected() {
    let items: Vec<Value> = (0..20_000)
        .map(|index| json!({ "data": { "type": "response.output_item.added", "output_index": index, "item": {} } }))
        .collect();
    assert!(deltas(Protocol::Responses, &items.into()).is_err());
    let candidates: Vec<Value> = (0..500).map(|index| json!({ "index": index })).collect();
    assert!(deltas(Protocol::Native, &json!([{ "data": { "candidates": candidates } }])).is_err());
}

#[test]
fn interleaved_calls_fail_where_the_protocol_cannot_express_them() {
    let call = |call| Delta::Call {
        choice: 0,
        call,
        id: format!("c{call}"),
        name: "f".to_owned(),
        custom: false,
        signature: None,
    };
    let input = |call| Delta::CallInput { choice: 0, call, text: "{}".to_owned() };
    let mixed = [
        call(0),
        input(0),
        call(1),
        input(0),
        input(1),
        Delta::Ended { choice: 0, end: FinishReason::ToolCalls },
        Delta::Done,
    ];
    for (protocol, failed, complete) in [
        (Protocol::Responses, "response.failed", "response.completed"),
        (Protocol::Native, "\"error\"", "finishReason"),
    ] {
        let stream = written(protocol, &mixed);
        assert!(stream.contains(failed) && !stream.contains(complete), "{stream}");
    }
}

#[test]
fn oversized_block_is_rejected() {
    let start = json!({ "data": { "type": "content_block_start", "content_block": { "type": "thinking" } } });
    let piece = json!({ "data": { "type": "content_block_delta",
        "delta": { "type": "signature_delta", "signature": "x".repeat(100_000) } } });
    let events: Vec<Value> = std::iter::once(start).chain(vec![piece; 20]).collect();
    assert!(deltas(Protocol::Messages, &events.into()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn events_in_any_order_are_translated_without_a_panic(
        picks in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..30),
    ) {
        for (protocol, folder) in PROTOCOLS {
            let known = known_events(folder);
            if known.is_empty() {
                continue;
            }
            let mut reader = protocol.stream_in();
            let mut read = Vec::new();
            for (pick, named) in &picks {
                let event = pick.get(&known);
                let name = event["event"].as_str().filter(|_| *named);
                let data = event["data"].as_str().map_or_else(|| event["data"].to_string(), str::to_owned);
                if reader.event(name, &data, &mut read).is_err() {
                    break;
                }
            }
            let _ = reader.end(&mut read);
            for (target, _) in PROTOCOLS {
                let _ = written(target, &read);
            }
        }
    }
}
