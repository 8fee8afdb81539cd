//! Properties of every stream as its provider writes it: it amounts to what the whole answer says, it does so again when it
//! is written for its own protocol, and nothing of it is lost in silence for another one.

mod amounts;
mod cutting;

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use self::amounts::Amounts;
use super::answer_documents::{answers, is_said, repeats_a_thought};
use super::documents::answers::Made;
use super::every_member::is_like;
use super::round_trip::marks;
use super::{PROTOCOLS, deltas, events, written};
use crate::conversation::{Delta, Given, Protocol};
use crate::wire::json::list;

/// Number of streams per protocol.
const STREAMS: u32 = 200;

/// A stream, and the answer that it was cut from.
struct Stream {
    source: Protocol,
    folder: &'static str,
    document: Value,
    deltas: Vec<Delta>,
}

/// Runs a test with many streams of each protocol.
fn every_stream(test: impl Fn(&Stream) -> Result<(), TestCaseError>) {
    let mut failures = Vec::new();
    for (source, folder) in PROTOCOLS {
        let config =
            ProptestConfig { cases: STREAMS, failure_persistence: None, ..ProptestConfig::default() };
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
fn any_stream_amounts_to_its_whole_answer() {
    every_stream(|Stream { source, document, deltas, .. }| {
        let answer = source
            .answer_in(document.clone())
            .map_err(|malformed| TestCaseError::fail(malformed.to_string()))?;
        let (mut whole, mut stream) = (Amounts::of_answer(answer), Amounts::of_stream(deltas));
        if *source == Protocol::Native {
            // The places of a stream count in all of its text, those of an answer in a part.
            whole.forget_places();
            stream.forget_places();
        }
        prop_assert_eq!(whole, stream);
        Ok(())
    });
}

#[test]
fn any_stream_comes_back_with_the_same_meaning() {
    every_stream(|Stream { source, deltas: read, .. }| {
        let stream = written(*source, read);
        let again = deltas(*source, &events(&stream))
            .map_err(|malformed| TestCaseError::fail(malformed.to_string()))?;
        let (mut before, mut after) =
            (Amounts::of_stream(read).written(), Amounts::of_stream(&again).written());
        // A citation of a part that has ended, as of a whole item, is told beside the answer.
        let extra = beside(&stream);
        let is_citation = |(at, value): &(&String, &Value)| {
            at.starts_with("/parts/")
                && value["type"].as_str().is_some_and(|kind| kind.ends_with("_citation"))
        };
        let told = extra.as_object().into_iter().flatten().filter(is_citation).count();
        let (cited, still) = (before.take_citations(), after.take_citations());
        prop_assert_eq!(cited.len(), still.len() + told, "{}", stream);
        prop_assert!(still.iter().all(|citation| cited.contains(citation)), "{still:?} of {cited:?}");
        prop_assert_eq!(&before, &after, "{}", stream);
        for delta in read {
            if let Delta::Extra(Given { value, at }) = delta {
                let told = format!("{}:{value}", Value::from(&**at));
                prop_assert!(stream.contains(&told), "{told} is not told: {}", stream);
            }
        }
        Ok(())
    });
}

#[test]
fn nothing_of_a_stream_is_lost_in_silence() {
    every_stream(|Stream { source, folder, document, deltas: read }| {
        // Several answers share the places in their events, of which the last word is told (decision 0048).
        if ["choices", "candidates"].into_iter().any(|name| list(&document[name]).count() > 1) {
            return Ok(());
        }
        for (target, other) in PROTOCOLS.into_iter().filter(|(target, _)| target != source) {
            let stream = written(target, read);
            let again = deltas(target, &events(&stream))
                .map_err(|malformed| TestCaseError::fail(format!("{other}: {malformed}: {stream}")))?;
            // A text is in pieces: what they amount to says it.
            let said = format!("{stream}{:?}", Amounts::of_stream(&again));
            for (at, mark) in marks(document) {
                let way = format!("{folder}>{other} {at}");
                prop_assert!(
                    is_said(&said, &mark)
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

/// Places of the whole answer whose words a stream does not tell to another protocol. Before each is where it is of and
/// where it goes; a star stands for any text.
const SILENT: &[(&str, &str)] = &[
    ("*>messages */logprobs*", "nobody asks for log probabilities in the messages protocol"),
    ("*>native */logprobs*/a~1member of ~0 tomorrow", "a token is a text and a number there"),
    ("native>* */logprobs*/a~1member of ~0 tomorrow", "a token is a text and a number there"),
    (
        "chat>* /choices/*/message/reasoning_details/*/a~1member of ~0 tomorrow",
        "a piece of a thought is a text and a proof",
    ),
    (
        "messages>* /content/*/a~1member of ~0 tomorrow",
        "decision 0048: of a place in the events, the last word is told",
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

/// What a stream tells beside the answer to a client of another protocol.
fn told(source: Protocol, target: Protocol, events: &Value) -> Value {
    beside(&written(target, &deltas(source, events).expect("a good stream")))
}

/// What a stream tells beside the answer.
fn beside(stream: &str) -> Value {
    let mut told = Value::Null;
    for event in list(&events(stream)) {
        for extra in [&event["data"]["provider_extra"], &event["data"]["response"]["provider_extra"]] {
            told = if extra.is_null() { told } else { extra.clone() };
        }
    }
    told
}

#[test]
fn a_stream_tells_the_word_for_its_end_that_another_word_stands_for() {
    let cases = [
        (Protocol::Chat, "finish_reason", "later", "/choices/0/finish_reason"),
        (Protocol::Native, "finishReason", "LATER", "/candidates/0/finishReason"),
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
        };
        for (target, other) in PROTOCOLS.into_iter().filter(|(target, _)| *target != source) {
            assert_eq!(told(source, target, &events)[at], word, "{source:?} to {other}");
        }
    }
}

#[test]
fn a_stream_tells_the_tier_that_served_it_and_members_of_what_was_counted() {
    let usage = json!({ "input_tokens": 1, "output_tokens": 1, "service_tier": "priority" });
    let messages = json!([
        { "data": { "type": "message_start", "message": { "usage": usage } } },
        { "data": { "type": "message_delta", "delta": { "stop_reason": "end_turn" } } },
        { "data": { "type": "message_stop" } },
    ]);
    assert_eq!(told(Protocol::Messages, Protocol::Chat, &messages)["/usage/service_tier"], "priority");
    let usage = json!({ "input_tokens": 1, "output_tokens": 1, "cost": 2 });
    let response = json!({ "status": "completed", "service_tier": "flex", "usage": usage, "output": [] });
    let responses = json!([{ "data": { "type": "response.completed", "response": response } }]);
    let extra = told(Protocol::Responses, Protocol::Messages, &responses);
    assert_eq!(extra, json!({ "/response/service_tier": "flex", "/response/usage/cost": 2 }));
}

#[test]
fn a_stream_of_chat_tells_of_its_tokens_what_is_not_of_the_text() {
    let logprobs = json!({ "content": [{ "token": "x", "logprob": -1 }], "refusal": [{ "token": "no" }] });
    let choice = json!({ "delta": { "content": "x" }, "logprobs": logprobs, "finish_reason": "stop" });
    let events = json!([{ "data": { "choices": [choice] } }]);
    for target in [Protocol::Responses, Protocol::Messages, Protocol::Native] {
        let extra = told(Protocol::Chat, target, &events);
        assert_eq!(extra["/choices/0/logprobs/refusal"], logprobs["refusal"], "{target:?}");
    }
}

#[test]
fn a_citation_of_a_stream_is_carried_and_its_unknown_members_are_told() {
    let annotation = json!({ "type": "url_citation", "url_citation": { "url": "a", "score": 1 } });
    let delta = json!({ "content": "x", "annotations": [annotation] });
    let events = json!([{ "data": { "choices": [{ "delta": delta, "finish_reason": "stop" }] } }]);
    let read = deltas(Protocol::Chat, &events).expect("a good stream");
    assert!(read.iter().any(|delta| matches!(delta, Delta::Citation { .. })), "{read:?}");
    let extra = told(Protocol::Chat, Protocol::Messages, &events);
    assert_eq!(extra["/choices/0/delta/annotations/0"], annotation);
}

/// Some providers send whole items only.
#[test]
fn an_annotation_of_an_unknown_kind_is_told_of_an_item_without_pieces() {
    let annotations = json!([{ "type": "file_citation", "file_id": "f" }]);
    let content = json!([{ "type": "output_text", "text": "x", "annotations": annotations }]);
    let item = json!({ "type": "message", "content": content });
    let response = json!({ "status": "completed", "output": [item] });
    let events = json!([{ "data": { "type": "response.completed", "response": response } }]);
    let extra = told(Protocol::Responses, Protocol::Chat, &events);
    assert_eq!(extra["/output/0/content/0/annotations"], annotations);
}
