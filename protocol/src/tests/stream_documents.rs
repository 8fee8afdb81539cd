//! Properties of every stream as its provider writes it: it adds up to the whole answer, it does so again when written
//! for its own protocol, and nothing is lost silently for another one.

mod amounts;
mod cutting;

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use self::amounts::Amounts;
use super::answer_documents::{answers, is_contained, repeats_a_thought};
use super::documents::answers::Made;
use super::every_member::is_like;
use super::round_trip::marks;
use super::{PROTOCOLS, TARGETS, deltas, events, response_context, tries, written};
use crate::MalformedDocument;
use crate::conversation::{Delta, Located, Part, PartKind, Protocol};
use crate::json::list;
use crate::sequence::settle_ends;

/// Number of streams per protocol.
const STREAMS: u32 = 50;

/// A stream, and the answer it was cut from.
struct Stream {
    source: Protocol,
    folder: &'static str,
    document: Value,
    deltas: Vec<Delta>,
}

/// Runs a test with many streams of each of these protocols.
fn every_stream(sources: &[(Protocol, &'static str)], test: impl Fn(&Stream) -> Result<(), TestCaseError>) {
    let mut failures = Vec::new();
    for &(source, folder) in sources {
        let config =
            ProptestConfig { cases: tries(STREAMS), failure_persistence: None, ..ProptestConfig::default() };
        let last = RefCell::new(Value::Null);
        // The same streams in every run.
        let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let made = (answers(source, Made::Well), 1..16_usize);
        let result = TestRunner::new_with_rng(config, random).run(&made, |(document, size)| {
            let document = cutting::tidy(source, document);
            let stream = cutting::events(source, &document, size);
            last.replace(stream.clone());
            let deltas =
                deltas(source, &stream).map_err(|malformed| TestCaseError::fail(malformed.to_string()))?;
            test(&Stream { source, folder, document, deltas })
        });
        if let Err(error) = result {
            let events: Vec<String> =
                last.borrow().as_array().into_iter().flatten().map(Value::to_string).collect();
            failures.push(format!("{folder}: {error}\nof {}", events.join("\n")));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn any_stream_accumulates_to_its_complete_answer() {
    every_stream(&TARGETS, |Stream { source, document, deltas, .. }| {
        let mut answer = source
            .answer_in(document.clone())
            .map_err(|malformed| TestCaseError::fail(malformed.to_string()))?;
        settle_ends(&mut answer);
        let (mut whole, mut stream) = (Amounts::of_answer(answer), Amounts::of_stream(deltas));
        if *source == Protocol::Native {
            // Positions in a stream refer to its entire text, those of an answer to one part.
            whole.forget_places();
            stream.forget_places();
        }
        prop_assert_eq!(whole, stream);
        Ok(())
    });
}

#[test]
fn any_stream_round_trips_with_the_same_meaning() {
    every_stream(&PROTOCOLS, |Stream { source, deltas: read, .. }| {
        let stream = written(*source, read);
        let again = deltas(*source, &events(&stream))
            .map_err(|malformed| TestCaseError::fail(malformed.to_string()))?;
        let (mut before, mut after) =
            (Amounts::of_stream(read).written(), Amounts::of_stream(&again).written());
        // A citation of a part that has ended, such as a whole item, is reported next to the answer.
        let extra = beside(&stream);
        let is_citation = |(at, value): &(&String, &Value)| {
            at.starts_with("/parts/")
                && value["type"].as_str().is_some_and(|kind| kind.ends_with("_citation"))
        };
        let reported = extra.as_object().into_iter().flatten().filter(is_citation).count();
        let (cited, still) = (before.take_citations(), after.take_citations());
        prop_assert_eq!(cited.len(), still.len() + reported, "{}", stream);
        prop_assert!(still.iter().all(|citation| cited.contains(citation)), "{still:?} of {cited:?}");
        prop_assert_eq!(&before, &after, "{}", stream);
        for delta in read {
            if let Delta::Extra(Located { value, at }) = delta {
                let line = format!("{}:{value}", Value::from(&**at));
                prop_assert!(stream.contains(&line), "{line} is not reported: {}", stream);
            }
        }
        Ok(())
    });
}

/// A stream's thoughts reach another protocol like those of the whole answer, each with its proof (decision 0032).
#[test]
fn streamed_thoughts_equal_the_answers_thoughts_in_every_protocol() {
    every_stream(&TARGETS, |Stream { source, document, deltas: read, .. }| {
        let fail = |malformed: MalformedDocument| TestCaseError::fail(malformed.to_string());
        let answer = source.answer_in(document.clone()).map_err(fail)?;
        let parts = answer.choices.first().map_or(&[][..], |choice| &choice.parts);
        let thought = |part: &Part| match &part.kind {
            PartKind::Thought(thought) => Some((thought.summary, thought.signature.is_some())),
            _ => None,
        };
        // Pieces of native thoughts without a proof are indistinguishable.
        let goes_on = |pair: &[Part]| thought(&pair[0]) == Some((true, false)) && thought(&pair[1]).is_some();
        if *source == Protocol::Native && parts.windows(2).any(goes_on) {
            return Ok(());
        }
        for (target, other) in PROTOCOLS.into_iter().filter(|(target, _)| target != source) {
            // A whole chat answer only shows thoughts of which nothing must come back: a stream can't know.
            if target == Protocol::Chat && !parts.iter().any(|part| thought(part).is_some_and(|it| it.1)) {
                continue;
            }
            let whole = target.answer_out(answer.clone(), &response_context("m"));
            let of_whole = Amounts::of_answer(target.answer_in(whole.clone()).map_err(fail)?);
            let stream = written(target, read);
            let of_stream = Amounts::of_stream(&deltas(target, &events(&stream)).map_err(fail)?);
            let (of_whole, of_stream) =
                (of_whole.written().into_thoughts(), of_stream.written().into_thoughts());
            prop_assert_eq!(of_whole, of_stream, "{}: {:#}\n{}", other, whole, stream);
        }
        Ok(())
    });
}

#[test]
fn no_stream_content_is_lost_silently() {
    every_stream(&TARGETS, |Stream { source, folder, document, deltas: read }| {
        // Several answers share places in their events, and the last value is reported (decision 0048).
        if ["choices", "candidates"].into_iter().any(|name| list(&document[name]).count() > 1) {
            return Ok(());
        }
        for (target, other) in PROTOCOLS.into_iter().filter(|(target, _)| target != source) {
            let stream = written(target, read);
            let again = deltas(target, &events(&stream))
                .map_err(|malformed| TestCaseError::fail(format!("{other}: {malformed}: {stream}")))?;
            // Text is in pieces, so compare what they add up to.
            let written = format!("{stream}{:?}", Amounts::of_stream(&again));
            for (at, mark) in marks(document) {
                let way = format!("{folder}>{other} {at}");
                prop_assert!(
                    is_contained(&written, &mark)
                        || repeats_a_thought(document, &at)
                        || SILENT.iter().any(|(silent, _)| is_like(silent, &way)),
                    "{} loses {at} ({mark}) in silence: {}",
                    other,
                    stream
                );
            }
        }
        Ok(())
    });
}

/// Places of the whole answer whose values a stream doesn't report to another protocol. Each is preceded by its source
/// and its target; a star stands for any text.
const SILENT: &[(&str, &str)] = &[
    ("*>messages */logprobs*", "the messages protocol can't request log probabilities"),
    ("*>native */logprobs*/a~1member of ~0 tomorrow", "a token is a text and a number there"),
    ("native>* */logprobs*/a~1member of ~0 tomorrow", "a token is a text and a number there"),
    (
        "messages>* /content/*/a~1member of ~0 tomorrow",
        "decision 0048: of a place in the events, the last value is reported",
    ),
    (
        "converse>* /output/message/content/*a~1member of ~0 tomorrow",
        "decision 0048: of a place in the events, the last value is reported",
    ),
    (
        "native>* /usageMetadata/*",
        "decision 0041: of a stream of this protocol, members of a document and of its parts are not carried",
    ),
    (
        "native>* /a~1member of ~0 tomorrow",
        "decision 0041: of a stream of this protocol, members of a document and of its parts are not carried",
    ),
    (
        "native>* /candidates/*/content/*a~1member of ~0 tomorrow",
        "decision 0041: of a stream of this protocol, members of a document and of its parts are not carried",
    ),
    (
        "native>* /candidates/*/content/parts/*/displayName",
        "decision 0041: of a stream of this protocol, members of a document and of its parts are not carried",
    ),
];

/// What a stream reports next to the answer to a client of another protocol.
fn reported(source: Protocol, target: Protocol, events: &Value) -> Value {
    beside(&written(target, &deltas(source, events).expect("a valid stream")))
}

/// What a stream reports next to the answer.
fn beside(stream: &str) -> Value {
    let mut extras = Value::Null;
    for event in list(&events(stream)) {
        for extra in [&event["data"]["provider_extra"], &event["data"]["response"]["provider_extra"]] {
            extras = if extra.is_null() { extras } else { extra.clone() };
        }
    }
    extras
}

#[test]
fn unknown_finish_reason_is_reported_in_translated_streams() {
    let cases = [
        (Protocol::Chat, "finish_reason", "later", "/choices/0/finish_reason"),
        (Protocol::Native, "finishReason", "LATER", "/candidates/0/finishReason"),
        (Protocol::Converse, "stopReason", "later", "/stopReason"),
        (Protocol::Messages, "stop_reason", "later", "/delta/stop_reason"),
        (Protocol::Responses, "reason", "later", "/response/incomplete_details/reason"),
    ];
    for (source, name, word, at) in cases {
        let events = match source {
            Protocol::Chat => json!([{ "data": { "choices": [{ "delta": {}, name: word }] } }]),
            Protocol::Native => json!([{ "data": { "candidates": [{ name: word }] } }]),
            Protocol::Messages => json!([
                { "data": { "type": "message_delta", "delta": { name: word } } },
                { "data": { "type": "message_stop" } },
            ]),
            Protocol::Responses => {
                let response =
                    json!({ "status": "incomplete", "incomplete_details": { name: word }, "output": [] });
                json!([{ "data": { "type": "response.incomplete", "response": response } }])
            }
            Protocol::Converse => json!([{ "event": "messageStop", "data": { name: word } }]),
            Protocol::External(_) => unreachable!("these are the protocols of this crate"),
        };
        for (target, other) in PROTOCOLS.into_iter().filter(|(target, _)| *target != source) {
            assert_eq!(reported(source, target, &events)[at], word, "{source:?} to {other}");
        }
    }
}

#[test]
fn service_tier_and_unknown_usage_members_are_reported_in_streams() {
    let usage = json!({ "input_tokens": 1, "output_tokens": 1, "service_tier": "priority" });
    let messages = json!([
        { "data": { "type": "message_start", "message": { "usage": usage } } },
        { "data": { "type": "message_delta", "delta": { "stop_reason": "end_turn" } } },
        { "data": { "type": "message_stop" } },
    ]);
    assert_eq!(reported(Protocol::Messages, Protocol::Chat, &messages)["/usage/service_tier"], "priority");
    let usage = json!({ "input_tokens": 1, "output_tokens": 1, "cost": 2 });
    let response = json!({ "status": "completed", "service_tier": "flex", "usage": usage, "output": [] });
    let responses = json!([{ "data": { "type": "response.completed", "response": response } }]);
    let extra = reported(Protocol::Responses, Protocol::Messages, &responses);
    assert_eq!(extra, json!({ "/response/service_tier": "flex", "/response/usage/cost": 2 }));
}

#[test]
fn chat_stream_reports_refusal_logprobs() {
    let logprobs = json!({ "content": [{ "token": "x", "logprob": -1 }], "refusal": [{ "token": "no" }] });
    let choice = json!({ "delta": { "content": "x" }, "logprobs": logprobs, "finish_reason": "stop" });
    let events = json!([{ "data": { "choices": [choice] } }]);
    for target in [Protocol::Responses, Protocol::Messages, Protocol::Native] {
        let extra = reported(Protocol::Chat, target, &events);
        assert_eq!(extra["/choices/0/logprobs/refusal"], logprobs["refusal"], "{target:?}");
    }
}

/// The chunks of a chat stream with these deltas.
fn chat_events(given: &[Value]) -> Value {
    let chunk = |delta: &Value| json!({ "data": { "choices": [{ "delta": delta }] } });
    let end = json!({ "data": { "choices": [{ "delta": {}, "finish_reason": "stop" }] } });
    given.iter().map(chunk).chain([end]).collect()
}

/// The thoughts in a chat stream with these details.
fn of_details(details: &[Value]) -> Vec<Delta> {
    let given: Vec<Value> = details.iter().map(|detail| json!({ "reasoning_details": [detail] })).collect();
    let read = deltas(Protocol::Chat, &chat_events(&given)).expect("a valid stream");
    read.into_iter()
        .filter(|delta| matches!(delta, Delta::Thought { .. } | Delta::ThoughtSigned { .. }))
        .collect()
}

#[test]
fn chat_stream_reports_unknown_reasoning_details() {
    let later = json!({ "type": "reasoning.later", "image": "x" });
    let given = [
        json!({ "reasoning_details": [{ "type": "reasoning.text", "text": "I ", "index": 3, "sure": 1, "a/b": 1 }] }),
        json!({ "reasoning_details": [{ "type": "reasoning.text", "text": "think.", "index": 3, "sure": 2, "format": "f" }] }),
        json!({ "reasoning_details": [later, { "type": "reasoning.summary", "summary": ["y"], "signature": null, "id": 7 }] }),
    ];
    for target in [Protocol::Responses, Protocol::Messages, Protocol::Native] {
        let at = "/choices/0/delta/reasoning_details";
        let all = json!({
            format!("{at}/3/a~1b"): 1, format!("{at}/3/sure"): 2,
            format!("{at}/1/summary"): ["y"], format!("{at}/1/id"): 7, "/parts/0": later,
        });
        assert_eq!(reported(Protocol::Chat, target, &chat_events(&given)), all, "{target:?}");
    }
    let same =
        written(Protocol::Chat, &deltas(Protocol::Chat, &chat_events(&given)).expect("a valid stream"));
    assert!(same.contains(&format!("\"reasoning_details\":[{later}]")), "{same}");
}

#[test]
fn late_proof_of_a_call_is_reported() {
    let call = json!({ "index": 0, "id": "c1", "function": { "name": "now", "arguments": "{}" } });
    let proof = json!({ "type": "reasoning.encrypted", "data": "late", "id": "c1", "index": 2 });
    let given = [json!({ "tool_calls": [call] }), json!({ "reasoning_details": [proof] })];
    let extra = reported(Protocol::Chat, Protocol::Messages, &chat_events(&given));
    assert_eq!(extra, json!({ "/choices/0/delta/reasoning_details/2/data": "late" }));
}

/// Some providers send an empty list of details with each piece of text.
#[test]
fn reasoning_with_empty_details_is_parsed() {
    let given = [json!({ "reasoning": "I think.", "reasoning_details": [] })];
    let read = deltas(Protocol::Chat, &chat_events(&given)).expect("a valid stream");
    assert!(read.iter().any(|delta| matches!(delta, Delta::Thought { text, .. } if text == "I think.")));
}

#[test]
fn reasoning_details_are_joined_by_index_and_id() {
    let (choice, summary) = (0, true);
    let piece = |thought: u32, id: Option<&str>, part: u32, text: &str| {
        let (id, text) = (id.map(str::to_owned), text.to_owned());
        Delta::Thought { choice, thought, id, part, text, summary }
    };
    let proof = |thought: u32, id: Option<&str>, signature: &str, redacted: bool| {
        let (id, signature) = (id.map(str::to_owned), signature.to_owned());
        Delta::ThoughtSigned { choice, thought, id, signature, redacted }
    };
    let summary = |text: &str, index: u32, id: Option<&str>| json!({ "type": "reasoning.summary", "summary": text, "index": index, "id": id });
    let hidden = |data: &str, id: Option<&str>| json!({ "type": "reasoning.encrypted", "data": data, "index": 9, "id": id });
    let read = of_details(&[
        summary("a", 0, Some("r1")),
        summary("b", 0, None),
        summary("c", 1, Some("r1")),
        hidden("s1", Some("r1")),
        summary("d", 1, Some("r1")),
        summary("e", 2, None),
        hidden("h1", Some("r2")),
        hidden("h2", None),
    ]);
    let all = [
        piece(0, Some("r1"), 0, "a"),
        piece(0, None, 0, "b"),
        piece(0, None, 1, "c"),
        proof(0, Some("r1"), "s1", false),
        piece(1, Some("r1"), 0, "d"),
        piece(2, None, 0, "e"),
        proof(3, Some("r2"), "h1", true),
        proof(4, None, "h2", true),
    ];
    assert_eq!(read, all);
}

/// A summary and its proof form one thought, whichever protocols they come from and go to.
#[test]
fn summary_keeps_its_proof_between_all_protocols() {
    let item = |texts: Value, proof: Value| json!({ "type": "reasoning", "id": "rs_1", "summary": texts, "encrypted_content": proof });
    let whole = item(json!([{ "type": "summary_text", "text": "I think." }]), json!("s1"));
    let piece = json!({ "type": "response.reasoning_summary_text.delta", "delta": "I think." });
    let responses = json!([
        { "data": { "type": "response.output_item.added", "item": item(json!([]), json!(null)) } },
        { "data": piece },
        { "data": { "type": "response.output_item.done", "item": whole } },
        { "data": { "type": "response.completed", "response": { "output": [whole] } } },
    ]);
    let chat = chat_events(&[
        json!({ "reasoning_details": [{ "type": "reasoning.summary", "summary": "I think.", "id": "rs_1", "index": 0 }] }),
        json!({ "reasoning_details": [{ "type": "reasoning.encrypted", "data": "s1", "id": "rs_1", "index": 1 }] }),
    ]);
    let parts = |parts: Value, end: Value| json!({ "data": { "candidates": [{ "content": { "parts": parts }, "finishReason": end }] } });
    let native = json!([
        parts(json!([{ "text": "I think.", "thought": true }]), json!(null)),
        parts(json!([{ "text": "", "thought": true, "thoughtSignature": "s1" }]), json!("STOP")),
    ]);
    let event = |kind: &str, name: &str, members: Value| json!({ "data": { "type": kind, name: members } });
    let delta = |members: Value| event("content_block_delta", "delta", members);
    let messages = json!([
        event("content_block_start", "content_block", json!({ "type": "thinking" })),
        delta(json!({ "type": "thinking_delta", "thinking": "I think." })),
        delta(json!({ "type": "signature_delta", "signature": "s1" })),
        event("content_block_stop", "index", json!(0)),
        event("message_delta", "delta", json!({ "stop_reason": "end_turn" })),
        event("message_stop", "index", json!(0)),
    ]);
    let sources = [
        (Protocol::Chat, chat),
        (Protocol::Responses, responses),
        (Protocol::Messages, messages),
        (Protocol::Native, native),
    ];
    for (source, events_in) in sources {
        let read = deltas(source, &events_in).expect("a valid stream");
        for (target, other) in PROTOCOLS {
            let stream = written(target, &read);
            let again = deltas(target, &events(&stream)).expect("a valid stream");
            let thoughts: Vec<&Delta> = again
                .iter()
                .filter(|delta| matches!(delta, Delta::Thought { .. } | Delta::ThoughtSigned { .. }))
                .collect();
            let is_one = matches!(
                thoughts.as_slice(),
                [
                    Delta::Thought { thought: 0, part: 0, text, .. },
                    Delta::ThoughtSigned { thought: 0, signature, redacted: false, .. },
                ] if text == "I think." && signature == "s1"
            );
            assert!(is_one, "{source:?} to {other}: {thoughts:?}: {stream}");
        }
    }
}

/// A reasoning item without text is a thought of its own, even next to one without a proof; so is the proof of a call.
#[test]
fn proof_does_not_move_to_another_thought() {
    let texts = json!([{ "type": "summary_text", "text": "I think." }]);
    let shown = json!({ "type": "reasoning", "id": "rs_1", "summary": texts });
    let hidden = json!({ "type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "s2" });
    let events_in = json!([
        { "data": { "type": "response.completed", "response": { "output": [shown, hidden] } } },
    ]);
    let read = deltas(Protocol::Responses, &events_in).expect("a valid stream");
    let numbers = |read: &[Delta]| -> Vec<u32> {
        let number = |delta: &Delta| match delta {
            Delta::Thought { thought, .. } | Delta::ThoughtSigned { thought, .. } => Some(*thought),
            _ => None,
        };
        read.iter().filter_map(number).collect()
    };
    for (target, other) in PROTOCOLS {
        let stream = written(target, &read);
        let again = deltas(target, &events(&stream)).expect("a valid stream");
        assert_eq!(numbers(&again), [0, 1], "{other}: {stream}");
    }

    let call = json!({ "functionCall": { "name": "now", "args": {} }, "thoughtSignature": "s1" });
    let parts = json!([{ "text": "I think.", "thought": true }, call]);
    let events_in =
        json!([{ "data": { "candidates": [{ "content": { "parts": parts }, "finishReason": "STOP" }] } }]);
    let read = deltas(Protocol::Native, &events_in).expect("a valid stream");
    for target in [Protocol::Messages, Protocol::Responses] {
        let stream = written(target, &read);
        let again = deltas(target, &events(&stream)).expect("a valid stream");
        assert_eq!(numbers(&again), [0, 1], "{target:?}: {stream}");
    }
}

#[test]
fn streamed_citation_is_translated_and_its_unknown_members_reported() {
    let annotation = json!({ "type": "url_citation", "url_citation": { "url": "a", "score": 1 } });
    let delta = json!({ "content": "x", "annotations": [annotation] });
    let events = json!([{ "data": { "choices": [{ "delta": delta, "finish_reason": "stop" }] } }]);
    let read = deltas(Protocol::Chat, &events).expect("a valid stream");
    assert!(read.iter().any(|delta| matches!(delta, Delta::Citation { .. })), "{read:?}");
    let extra = reported(Protocol::Chat, Protocol::Messages, &events);
    assert_eq!(extra["/choices/0/delta/annotations/0"], annotation);
}

/// Some providers send whole items only.
#[test]
fn unknown_annotation_of_a_complete_item_is_reported() {
    let annotations = json!([{ "type": "file_citation", "file_id": "f" }]);
    let content = json!([{ "type": "output_text", "text": "x", "annotations": annotations }]);
    let item = json!({ "type": "message", "content": content });
    let response = json!({ "status": "completed", "output": [item] });
    let events = json!([{ "data": { "type": "response.completed", "response": response } }]);
    let extra = reported(Protocol::Responses, Protocol::Chat, &events);
    assert_eq!(extra["/output/0/content/0/annotations"], annotations);
}
