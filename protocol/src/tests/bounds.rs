//! Answers designed to grow in translation: the output is bounded by the input.

use serde_json::{Value, json};

use super::{PROTOCOLS, deltas, response_context, written};
use crate::citations::MAX_CITATIONS;
use crate::conversation::{Answer, Citation, Delta, Located, PartKind, Protocol};

/// An answer of the native protocol with texts, and as many sources as an answer may cite.
fn sourced(texts: &[&str]) -> Value {
    let parts: Vec<Value> = texts.iter().map(|text| json!({ "text": text })).collect();
    let chunks = vec![json!({ "web": { "uri": "a" } }); MAX_CITATIONS];
    json!({ "candidates": [{ "content": { "parts": parts }, "finishReason": "STOP",
        "groundingMetadata": { "groundingChunks": chunks } }] })
}

/// The same, with sources that cover a text range.
fn quoted(texts: &[&str], start: u64, end: u64) -> Value {
    let mut answer = sourced(texts);
    let place = json!({ "uri": "a", "startIndex": start, "endIndex": end });
    let candidate = &mut answer["candidates"][0];
    candidate["groundingMetadata"].take();
    candidate["citationMetadata"] = json!({ "citationSources": vec![place; MAX_CITATIONS] });
    answer
}

/// How many citations the texts of a client's answer have.
fn cited(protocol: Protocol, answer: Value) -> usize {
    let answer = Protocol::Native.answer_in(answer).expect("an answer");
    let written = protocol.answer_out(answer, &response_context("m"));
    let count = |list: &Value| list.as_array().map_or(0, Vec::len);
    let items = |list: &Value| list.as_array().cloned().unwrap_or_default();
    match protocol {
        Protocol::Messages => {
            items(&written["content"]).iter().map(|block| count(&block["citations"])).sum::<usize>()
        }
        Protocol::Responses => {
            let contents = items(&written["output"]).into_iter().flat_map(|item| items(&item["content"]));
            contents.map(|part| count(&part["annotations"])).sum()
        }
        Protocol::Chat => count(&written["choices"][0]["message"]["annotations"]),
        Protocol::Native => count(&written["candidates"][0]["groundingMetadata"]["groundingChunks"]),
        Protocol::Converse | Protocol::External(_) => unreachable!("no client speaks it"),
    }
}

#[test]
fn citations_across_many_parts_are_bounded() {
    let texts = vec!["a"; 4_000];
    for (protocol, folder) in PROTOCOLS {
        assert!(cited(protocol, sourced(&texts)) <= MAX_CITATIONS, "{folder}");
        assert!(cited(protocol, quoted(&texts, 0, 1)) <= MAX_CITATIONS, "{folder}");
    }
    assert_eq!(cited(Protocol::Messages, sourced(&texts)), MAX_CITATIONS);
    assert_eq!(cited(Protocol::Responses, sourced(&texts)), MAX_CITATIONS);
}

#[test]
fn empty_parts_do_not_repeat_citations() {
    let mut ending = vec![""; 4_000];
    ending[0] = "a";
    let mut beginning = vec![""; 4_000];
    beginning[3_999] = "a";
    for texts in [ending, beginning, vec![""; 4_000]] {
        for answer in [sourced(&texts), quoted(&texts, 0, 0), quoted(&texts, 0, 1)] {
            assert_eq!(cited(Protocol::Responses, answer.clone()), MAX_CITATIONS, "{}", texts[0]);
            assert!(cited(Protocol::Messages, answer) <= MAX_CITATIONS, "{}", texts[0]);
        }
    }
}

#[test]
fn provider_tool_results_are_passed_through_in_any_number() {
    let result = |index: u32| json!({ "type": "tool_result", "tool_use_id": "t", "odd": index });
    let content: Vec<Value> = (0..100_000).map(result).collect();
    let Answer { choices, extra, own, .. } =
        Protocol::Messages.answer_in(json!({ "content": content })).expect("an answer");
    let parts = &choices[0].parts;
    assert_eq!(parts.len(), content.len());
    for (part, block) in parts.iter().zip(&content) {
        assert!(matches!(&part.kind, PartKind::Other(value) if value == block), "{part:?}");
    }
    assert!(extra.iter().chain(&own).all(|given| !given.at.contains("/odd")), "they are reported twice");
}

#[test]
fn unknown_citations_are_not_buffered_until_block_end() {
    let start = json!({ "data": { "type": "content_block_start",
        "content_block": { "type": "text", "citations": [{ "type": "odd", "of": "the start" }] } } });
    let odd = json!({ "data": { "type": "content_block_delta",
        "delta": { "type": "citations_delta", "citation": { "type": "odd" } } } });
    let mut reader = Protocol::Messages.stream_in();
    let (mut read, mut expected) = (Vec::new(), 0);
    for event in std::iter::once(start).chain(vec![odd; MAX_CITATIONS * 2]) {
        reader.event(None, &event["data"].to_string(), &mut read).expect("an event");
        expected = (expected + 1).min(MAX_CITATIONS);
        assert_eq!(read.iter().filter(|delta| matches!(delta, Delta::Extra(_))).count(), expected);
    }
}

#[test]
fn overflowing_citation_offset_is_dropped() {
    let delta = |item: u32, text: &str| json!({ "data": { "type": "response.output_text.delta", "output_index": item, "delta": text } });
    let annotation = json!({ "type": "url_citation", "url": "u", "start_index": 0, "end_index": u64::MAX });
    let content = json!([{ "type": "output_text", "text": "x", "annotations": [annotation] }]);
    let done = json!({ "data": { "type": "response.output_item.done", "output_index": 1,
        "item": { "type": "message", "content": content } } });
    let completed = json!({ "data": { "type": "response.completed", "response": {} } });
    let events = json!([delta(0, "hello"), delta(1, "x"), done, completed]);
    let read = deltas(Protocol::Responses, &events).expect("a stream");
    let citation = Citation { url: Some("u".to_owned()), ..Citation::default() };
    assert!(read.contains(&Delta::Citation { choice: 0, citation }), "{read:?}");
    for (protocol, _) in PROTOCOLS {
        written(protocol, &read);
    }
}

#[test]
fn provider_function_results_are_passed_through_in_streams() {
    let result = json!({ "functionResponse": { "name": "f", "response": { "value": 7 } } });
    let document = json!({ "candidates": [{ "content": { "parts": [result] }, "finishReason": "STOP" }] });
    let read = deltas(Protocol::Native, &json!([{ "data": document }])).expect("a stream");
    let other = Delta::Other { choice: 0, source: Protocol::Native, value: result };
    assert!(read.contains(&other), "{read:?}");
    for (protocol, folder) in PROTOCOLS {
        assert!(written(protocol, &read).contains(r#""functionResponse":{"name":"f""#), "{folder}");
    }
}

#[test]
fn unknown_event_members_are_reported_at_stream_end() {
    let chat = json!([
        { "data": { "id": "c", "future": "F1", "choices": [{ "index": 0, "odd": "F2",
            "delta": { "role": "assistant", "content": "x", "future": { "a/b": "F3" } } }] } },
        { "data": { "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] } },
        { "data": { "choices": [], "usage": { "prompt_tokens": 1, "completion_tokens": 1, "future": "F4" } } },
        { "data": "[DONE]" },
    ]);
    let messages = json!([
        { "data": { "type": "message_start", "message": { "id": "m", "future": "F1", "usage": { "input_tokens": 1 } } } },
        { "data": { "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "", "odd": "F2" } } },
        { "data": { "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "x", "future": "F3" } } },
        { "data": { "type": "content_block_stop", "index": 0 } },
        { "data": { "type": "message_delta", "delta": { "stop_reason": "end_turn", "more": "F4" }, "usage": { "output_tokens": 1 } } },
        { "data": { "type": "message_stop" } },
    ]);
    let item = json!({ "type": "message", "future": "F3", "content": [{ "type": "output_text", "text": "x", "odd": "F2" }] });
    let responses = json!([
        { "data": { "type": "response.created", "sequence_number": 0, "response": { "id": "r" } } },
        { "data": { "type": "response.output_text.delta", "output_index": 0, "delta": "x", "obfuscation": "zzz", "future": "F1" } },
        { "data": { "type": "response.output_item.done", "output_index": 0, "item": item } },
        { "data": { "type": "response.completed", "response": { "store": true, "future": "F4", "output": [item] } } },
    ]);
    for (source, events) in
        [(Protocol::Chat, chat), (Protocol::Messages, messages), (Protocol::Responses, responses)]
    {
        let read = deltas(source, &events).expect("a stream");
        for (target, folder) in PROTOCOLS.into_iter().filter(|(target, _)| *target != source) {
            let written = written(target, &read);
            assert_eq!(written.matches("\"provider_extra\"").count(), 1, "{source:?} to {folder}: {written}");
            for mark in ["F1", "F2", "F3", "F4"] {
                assert!(written.contains(mark), "{mark} of {source:?} to {folder}: {written}");
            }
            assert!(!written.contains("zzz") && !written.contains("/response/store"), "{folder}: {written}");
        }
    }
}

#[test]
fn unknown_event_members_are_bounded() {
    let chunk = |number: u32| {
        json!({ "data": { "same": number, format!("odd-{number}"): "x".repeat(100_000),
            "choices": [{ "index": 0, "delta": { "content": "x" } }] } })
    };
    let mut events: Vec<Value> = (0..300).map(chunk).collect();
    events.push(json!({ "data": { "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] } }));
    events.push(json!({ "data": "[DONE]" }));
    let read = deltas(Protocol::Chat, &events.into()).expect("a stream");
    let extras: Vec<&Located<Value>> = read
        .iter()
        .filter_map(|delta| if let Delta::Extra(given) = delta { Some(given) } else { None })
        .collect();
    assert_eq!(extras.len(), 100);
    assert!(extras.iter().map(|given| given.value.to_string().len()).sum::<usize>() <= 1024 * 1024);
}
