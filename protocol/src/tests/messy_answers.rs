//! Nonstandard answers that real providers send: what clients of the other protocols get from them.

use serde_json::{Value, json};

use super::{deltas, events, response_context, written};
use crate::conversation::{Delta, FinishReason, Protocol};
use crate::failure_of;

const CLIENTS: [Protocol; 3] = [Protocol::Messages, Protocol::Responses, Protocol::Native];

/// What a client reads.
#[derive(Debug, Default, PartialEq)]
struct Read {
    text: String,
    thoughts: String,
    calls: Vec<(String, Value)>,
    ids: Vec<String>,
    end: Option<FinishReason>,
    failed: bool,
}

impl Read {
    fn by(deltas: Vec<Delta>) -> Self {
        let (mut read, mut inputs) = (Self::default(), Vec::<String>::new());
        for delta in deltas {
            match delta {
                Delta::Text { text, .. } => read.text.push_str(&text),
                Delta::Thought { text, .. } => read.thoughts.push_str(&text),
                Delta::Call { id, name, .. } => {
                    read.calls.push((name, Value::Null));
                    read.ids.push(id);
                    inputs.push(String::new());
                }
                Delta::CallInput { call, text, .. } => inputs[call as usize].push_str(&text),
                Delta::Ended { end, .. } => read.end = Some(end),
                Delta::Failed(_) => read.failed = true,
                _ => {}
            }
        }
        for (call, input) in read.calls.iter_mut().zip(inputs) {
            call.1 = serde_json::from_str(&input).unwrap_or_else(|_| panic!("{input} is not JSON"));
        }
        read
    }

    /// What each kind of client reads from a chat stream of these pieces, whose last one has the finish reason.
    fn of_chat(pieces: &[Value]) -> Vec<Self> {
        let mut chunks: Vec<Value> =
            pieces.iter().map(|choice| json!({ "data": { "id": "c", "choices": [choice] } })).collect();
        chunks.push(json!({ "data": "[DONE]" }));
        let deltas_read = deltas(Protocol::Chat, &chunks.into()).expect("a stream");
        CLIENTS
            .into_iter()
            .map(|client| {
                let stream = written(client, &deltas_read);
                Self::by(deltas(client, &events(&stream)).unwrap_or_else(|error| panic!("{error}: {stream}")))
            })
            .collect()
    }

    fn calls(&self) -> Vec<(&str, &Value)> {
        self.calls.iter().map(|(name, input)| (&**name, input)).collect()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "tables of cases read better")]
fn delta(delta: Value) -> Value {
    json!({ "index": 0, "delta": delta })
}

fn end(word: &str) -> Value {
    json!({ "index": 0, "delta": {}, "finish_reason": word })
}

fn piece(index: impl Into<Value>, id: &str, name: &str, arguments: impl Into<Value>) -> Value {
    let function = json!({ "name": name, "arguments": arguments.into() });
    delta(json!({ "tool_calls": [{ "index": index.into(), "id": id, "function": function }] }))
}

#[test]
fn interleaved_calls_reach_every_client_complete() {
    let pieces = [
        piece(0, "a", "f", ""),
        piece(1, "b", "g", ""),
        piece(1, "", "", "{\"y\""),
        piece(0, "", "", "{\"x\":"),
        delta(json!({ "content": "Hm." })),
        piece(0, "", "", "1}"),
        piece(1, "", "", ":2}"),
        end("tool_calls"),
    ];
    for read in Read::of_chat(&pieces) {
        assert_eq!(read.calls(), [("f", &json!({ "x": 1 })), ("g", &json!({ "y": 2 }))]);
        assert_eq!((read.text.as_str(), read.end), ("Hm.", Some(FinishReason::ToolCalls)));
    }
}

#[test]
fn late_call_name_is_awaited_and_nameless_call_is_dropped() {
    let late = [piece(0, "a", "", "{}"), piece(0, "", "f", ""), end("tool_calls")];
    for read in Read::of_chat(&late) {
        assert_eq!(read.calls(), [("f", &json!({}))]);
    }
    let never = [delta(json!({ "content": "Hi." })), piece(0, "a", "", "{}"), end("tool_calls")];
    for read in Read::of_chat(&never) {
        assert_eq!((read.text.as_str(), read.calls.len(), read.end), ("Hi.", 0, Some(FinishReason::Stop)));
    }
}

#[test]
fn arguments_may_be_an_object_or_null() {
    let none = json!({ "index": 1, "id": "b", "function": null });
    let pieces = [
        piece(0, "a", "f", json!({ "x": [1] })),
        piece(1, "b", "g", Value::Null),
        delta(json!({ "tool_calls": [none, null] })),
        end("tool_calls"),
    ];
    for read in Read::of_chat(&pieces) {
        assert_eq!(read.calls(), [("f", &json!({ "x": [1] })), ("g", &json!({}))]);
    }
}

#[test]
fn calls_with_repeated_or_invalid_indices_and_ids_are_distinguished() {
    let expected = [("f", &json!({ "x": 1 })), ("g", &json!({ "y": 2 }))];
    for (first, second) in [
        // Same index, no ids.
        ((json!(0), "", "f"), (json!(0), "", "g")),
        // Same index and same id.
        ((json!(0), "a", "f"), (json!(0), "a", "g")),
        // Same index.
        ((json!(0), "a", "f"), (json!(0), "b", "g")),
        // Invalid indices.
        ((json!(-1), "a", "f"), (json!("0"), "b", "g")),
        ((json!(null), "a", "f"), (json!(null), "b", "g")),
    ] {
        let pieces = [
            piece(first.0, first.1, first.2, "{\"x\":1}"),
            piece(second.0, second.1, second.2, "{\"y\":2}"),
            end("tool_calls"),
        ];
        for read in Read::of_chat(&pieces) {
            assert_eq!(read.calls(), expected, "{pieces:?}");
            assert!(read.ids[0] != read.ids[1] && read.ids.iter().all(|id| !id.is_empty()), "{read:?}");
        }
    }
    // Two calls of the same function, and a provider that repeats name and id in every piece.
    let again = [piece(0, "", "f", "{\"x\":1}"), piece(0, "", "f", "{\"x\":2}"), end("stop")];
    for read in Read::of_chat(&again) {
        assert_eq!(read.calls(), [("f", &json!({ "x": 1 })), ("f", &json!({ "x": 2 }))]);
        assert_eq!(read.end, Some(FinishReason::ToolCalls));
    }
    let repeated =
        [piece(0, "a", "f", "{\"x\""), piece(0, "a", "f", ":1}"), piece(0, "a", "f", ""), end("stop")];
    for read in Read::of_chat(&repeated) {
        assert_eq!(read.calls(), [("f", &json!({ "x": 1 }))]);
    }
}

#[test]
fn deltas_after_finish_reason_are_part_of_the_answer() {
    let pieces = [
        json!({ "index": 0, "delta": { "content": "Hel" }, "finish_reason": "stop" }),
        delta(json!({ "content": "lo." })),
        piece(0, "a", "f", "{}"),
        end("tool_calls"),
    ];
    for read in Read::of_chat(&pieces) {
        assert_eq!((read.text.as_str(), read.calls()), ("Hello.", vec![("f", &json!({}))]));
        assert_eq!(read.end, Some(FinishReason::ToolCalls));
    }
}

#[test]
fn listed_thoughts_and_legacy_function_calls_are_parsed() {
    let thought = json!([{ "type": "thinking", "thinking": [{ "type": "text", "text": "hm" }] }]);
    let pieces = [
        delta(json!({ "content": thought })),
        delta(json!({ "content": "Yes." })),
        delta(json!({ "function_call": { "name": "f", "arguments": "{\"x\"" } })),
        delta(json!({ "function_call": { "arguments": ":1}" } })),
        end("function_call"),
    ];
    for read in Read::of_chat(&pieces) {
        assert_eq!((read.thoughts.as_str(), read.text.as_str()), ("hm", "Yes."));
        assert_eq!(read.calls(), [("f", &json!({ "x": 1 }))]);
    }
}

#[test]
fn partial_call_before_done_is_a_truncated_stream() {
    let stream = |arguments: &str, finish: Value| {
        let function = json!({ "name": "f", "arguments": arguments });
        let delta = json!({ "tool_calls": [{ "index": 0, "id": "c1", "function": function }] });
        let chunk = json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] });
        deltas(Protocol::Chat, &json!([{ "data": chunk }, { "data": "[DONE]" }]))
    };
    let cut = stream(r#"{"city":"Par"#, Value::Null).expect_err("a partial call");
    assert!(cut.to_string().contains("before its answer was complete"), "{cut}");
    for arguments in ["", "{}", r#"{"city":"Paris"}"#] {
        stream(arguments, Value::Null).expect(arguments);
    }
    // The limit of tokens cut it off.
    let limited = stream(r#"{"city":"Par"#, "length".into()).expect("an answer");
    let is_limit = |delta: &Delta| matches!(delta, Delta::Ended { end: FinishReason::Length, .. });
    assert!(limited.iter().any(is_limit), "{limited:?}");
}

#[test]
fn lone_surrogate_in_a_stream_is_replaced() {
    let chunk = |text: &str| {
        let data = format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#);
        json!({ "data": data })
    };
    let stream = json!([chunk("a\\ud83d"), chunk("\\ude00b\\ud83d\\ude00"), { "data": "[DONE]" }]);
    let read = Read::by(deltas(Protocol::Chat, &stream).expect("a stream"));
    assert_eq!(read.text, "a\u{fffd}\u{fffd}b😀");
}

#[test]
fn provider_failure_is_not_a_normal_finish() {
    for (protocol, stream) in [
        (
            Protocol::Chat,
            json!({ "choices": [{ "index": 0, "delta": { "content": "Hel" }, "finish_reason": "error" }] }),
        ),
        (
            Protocol::Native,
            json!({ "candidates": [{ "content": { "parts": [] }, "finishReason": "MALFORMED_FUNCTION_CALL" }] }),
        ),
    ] {
        let read = Read::by(deltas(protocol, &json!([{ "data": stream }])).unwrap_or_default());
        assert!(read.failed && read.end.is_none(), "{read:?}");
    }
    let document = json!({ "candidates": [{ "content": {}, "finishReason": "UNEXPECTED_TOOL_CALL" }] });
    let answer = Protocol::Native.answer_in(document).expect("an answer");
    assert!(failure_of(&answer).is_some_and(|failure| failure.message.contains("UNEXPECTED_TOOL_CALL")));
    let language = json!({ "candidates": [{ "content": {}, "finishReason": "LANGUAGE" }] });
    let answer = Protocol::Native.answer_in(language).expect("an answer");
    assert_eq!(answer.choices[0].end, Some(FinishReason::Filtered));
}

#[test]
fn finish_reason_of_a_complete_answer_matches_its_calls() {
    let answer = |stop_reason: Value, calls: bool| {
        let mut content = vec![json!({ "type": "text", "text": "Done." })];
        content.extend(calls.then(|| json!({ "type": "tool_use", "id": "a", "name": "f", "input": {} })));
        let document = json!({ "type": "message", "content": content, "stop_reason": stop_reason });
        let answer = Protocol::Messages.answer_in(document).expect("an answer");
        let written = Protocol::Chat.answer_out(answer, &response_context("m"));
        written["choices"][0]["finish_reason"].clone()
    };
    assert_eq!(answer("tool_use".into(), false), "stop");
    assert_eq!(answer("end_turn".into(), true), "tool_calls");
    assert_eq!(answer(Value::Null, false), "stop");
    assert_eq!(answer(Value::Null, true), "tool_calls");
    assert_eq!(answer("model_context_window_exceeded".into(), false), "length");
}

#[test]
fn streamed_image_becomes_an_image_generation_item() {
    let parts = json!([{ "text": "Here:" }, { "inlineData": { "mimeType": "image/png", "data": "AAAA" } }]);
    let stream =
        json!([{ "data": { "candidates": [{ "content": { "parts": parts }, "finishReason": "STOP" }] } }]);
    let deltas_read = deltas(Protocol::Native, &stream).expect("a stream");
    let items = events(&written(Protocol::Responses, &deltas_read));
    let last = &items.as_array().and_then(|events| events.last()).expect("events")["data"]["response"];
    assert_eq!(last["output"][1]["type"], "image_generation_call");
    assert_eq!(last["output"][1]["result"], "AAAA");
    let again = events(&written(Protocol::Native, &deltas_read));
    assert_eq!(again[1]["data"]["candidates"][0]["content"]["parts"][0], parts[1]);
}

#[test]
fn unstarted_first_choice_is_finished_for_chat_clients() {
    let candidate = json!({ "index": 1, "content": { "parts": [{ "text": "Hi" }] }, "finishReason": "STOP" });
    let deltas_read =
        deltas(Protocol::Native, &json!([{ "data": { "candidates": [candidate] } }])).expect("a stream");
    let stream = events(&written(Protocol::Chat, &deltas_read));
    let choices = stream.as_array().into_iter().flatten().filter_map(|event| event["data"]["choices"].get(0));
    let mut ended: Vec<u64> = choices
        .filter(|choice| choice["finish_reason"] == "stop")
        .filter_map(|choice| choice["index"].as_u64())
        .collect();
    ended.sort_unstable();
    assert_eq!(ended, [0, 1], "{stream}");
}

#[test]
fn late_provider_id_does_not_change_the_chunk_id() {
    let deltas_read = [
        Delta::Text { choice: 0, text: "Hi".to_owned(), logprobs: None },
        Delta::Started { id: Some("theirs".to_owned()), model: None, created: Some(9), service_tier: None },
        Delta::Ended { choice: 0, end: FinishReason::Stop },
        Delta::Done,
    ];
    let stream = events(&written(Protocol::Chat, &deltas_read));
    let ids = stream.as_array().into_iter().flatten().filter_map(|event| event["data"]["id"].as_str());
    assert!(ids.eq(["id_1"; 4]), "{stream}");
}

#[test]
fn calls_before_a_stop_sequence_finish_with_tool_calls() {
    let deltas_read = [
        Delta::Call {
            choice: 0,
            call: 0,
            id: "c1".to_owned(),
            name: "now".to_owned(),
            custom: false,
            signature: None,
        },
        Delta::CallInput { choice: 0, call: 0, text: "{}".to_owned() },
        Delta::Ended { choice: 0, end: FinishReason::StopSequence(Some("END".to_owned())) },
        Delta::Done,
    ];
    let stream = written(Protocol::Chat, &deltas_read);
    assert!(stream.contains(r#""finish_reason":"tool_calls""#), "{stream}");
}
