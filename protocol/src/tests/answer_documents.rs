//! Properties of every answer as its provider writes it: written for its own protocol it is unchanged, and for another
//! one nothing is lost silently.

use std::cell::RefCell;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use super::documents::answers::{self as made, Made, UNKNOWN};
use super::every_member::is_like;
use super::round_trip::marks;
use super::{PROTOCOLS, TARGETS, response_context, tries};
use crate::conversation::{Answer, PartKind, Protocol};
use crate::json::list;
use crate::members::escaped;

/// Number of answers per protocol.
const ANSWERS: u32 = 60;

/// Random answers of a protocol.
pub(super) fn answers(protocol: Protocol, made: Made) -> BoxedStrategy<Value> {
    match protocol {
        Protocol::Chat => made::chat(made),
        Protocol::Responses => made::responses(made),
        Protocol::Messages => made::messages(made),
        Protocol::Native => made::native(made),
        Protocol::Converse => made::converse(made),
        Protocol::External(_) => unreachable!("these are the protocols of this crate"),
    }
}

/// Runs a test with many answers of each of these protocols.
fn every_answer(
    sources: &[(Protocol, &'static str)],
    test: impl Fn(Protocol, &str, &Value, &Answer) -> Result<(), TestCaseError>,
) {
    let mut failures = Vec::new();
    for &(source, folder) in sources {
        let config =
            ProptestConfig { cases: tries(ANSWERS), failure_persistence: None, ..ProptestConfig::default() };
        let last = RefCell::new(Value::Null);
        // The same answers in every run.
        let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let made = prop_oneof![answers(source, Made::Oddly), answers(source, Made::Well)];
        let result = TestRunner::new_with_rng(config, random).run(&made, |document| {
            last.replace(document.clone());
            let answer = source
                .answer_in(document.clone())
                .map_err(|malformed| TestCaseError::fail(malformed.to_string()))?;
            test(source, folder, &document, &answer)
        });
        if let Err(error) = result {
            failures.push(format!("{folder}: {error}\nof {:#}", last.borrow()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn any_answer_round_trips_unchanged() {
    every_answer(&PROTOCOLS, |source, _, document, answer| {
        let mut back = source.answer_out(answer.clone(), &response_context("m"));
        let mut document = document.clone();
        if source == Protocol::Responses {
            prop_assert_eq!(one_list_of_tokens(&mut back), one_list_of_tokens(&mut document));
        }
        prop_assert_eq!(back, document);
        Ok(())
    });
}

/// Moves the log probabilities of a response's parts into one list: the neutral form has one per choice, so those of all
/// parts come back on the first text.
fn one_list_of_tokens(response: &mut Value) -> Vec<Value> {
    let mut all = Vec::new();
    for item in response["output"].as_array_mut().into_iter().flatten() {
        let content = item.get_mut("content").and_then(Value::as_array_mut);
        for part in content.into_iter().flatten().filter(|part| part["text"].is_string()) {
            if let Some(Value::Array(tokens)) = part.get_mut("logprobs").map(Value::take) {
                all.extend(tokens);
            }
            if let Value::Object(part) = part {
                part.shift_remove("logprobs");
            }
        }
    }
    all
}

#[test]
fn no_answer_content_is_lost_silently() {
    every_answer(&TARGETS, |source, folder, document, answer| {
        for (target, other) in PROTOCOLS.into_iter().filter(|(target, _)| *target != source) {
            let written = target.answer_out(answer.clone(), &response_context("m"));
            for (at, value) in written["provider_extra"].as_object().into_iter().flatten() {
                let Some(there) = document.pointer(at) else {
                    return Err(TestCaseError::fail(format!("{other} tells of {at}, which is nowhere")));
                };
                // Media are reported in the same form for all.
                let is_same = there == value || value.get("media_type").is_some();
                prop_assert!(is_same, "{} tells {value} of {at}", other);
            }
            // Citations may split a text into several.
            let texts: String =
                list(&written["content"]).filter_map(|block| block["text"].as_str()).collect();
            let body = format!("{written}{texts}");
            for (at, mark) in marks(document) {
                prop_assert!(
                    is_contained(&body, &mark) || says_nothing(answer, document, (folder, other), &at),
                    "{} loses {at} ({mark}) in silence: {:#}",
                    other,
                    written
                );
            }
            let again = target.answer_in(written.clone());
            let again = again.map_err(|malformed| TestCaseError::fail(format!("{other}: {malformed}")))?;
            let counted =
                |answer: &Answer| answer.usage.and_then(|usage| Some((usage.input?, usage.output?)));
            if let Some(tokens) = counted(answer) {
                prop_assert_eq!(counted(&again), Some(tokens), "{}", other);
            }
        }
        Ok(())
    });
}

/// Whether a document contains a text. Clients of the native protocol get signatures as bytes.
pub(super) fn is_contained(body: &str, mark: &str) -> bool {
    let wrapped = |with: &str| BASE64_STANDARD.encode(format!("{with}{mark}"));
    body.contains(mark)
        || ["gw-signature:", "gw-redacted:"].into_iter().any(|with| body.contains(&wrapped(with)))
}

/// Places that mean nothing to another protocol. Each is preceded by its source and its target; a star stands for any
/// text.
const SILENT: &[(&str, &str)] = &[
    ("*>messages */logprobs*", "nobody asks for log probabilities in the messages protocol"),
    ("chat>* /choices/*/image_url/detail", "how closely an image of the client is looked at"),
];

/// Whether a place means nothing in another protocol. `ways`: the protocols.
fn says_nothing(answer: &Answer, document: &Value, ways: (&str, &str), at: &str) -> bool {
    let (source, target) = ways;
    let way = format!("{source}>{target} {at}");
    // A client of these protocols can't request several answers.
    let is_of_another = matches!(target, "responses" | "messages")
        && ["/choices/", "/candidates/"]
            .into_iter()
            .filter_map(|list| at.strip_prefix(list))
            .any(|rest| !rest.starts_with("0/"));
    // In the native protocol, a token is a text and a number without other fields.
    let is_of_token = at.contains("/logprobs")
        && at.ends_with(&escaped(UNKNOWN))
        && (source == "native" || target == "native");
    let has_text = answer
        .choices
        .first()
        .is_some_and(|choice| choice.parts.iter().any(|part| matches!(part.kind, PartKind::Text(_))));
    // Log probabilities belong to a text.
    let is_of_no_text = at.contains("/logprobs") && !has_text && target == "responses";
    SILENT.iter().any(|(silent, _)| is_like(silent, &way))
        || is_of_another
        || is_of_token
        || is_of_no_text
        || repeats_a_thought(document, at)
}

/// Whether a place in a chat answer shows a thought that is also next to it.
pub(super) fn repeats_a_thought(document: &Value, at: &str) -> bool {
    let Some((message, name)) = at.rsplit_once('/') else { return false };
    let beside = |name: &str| document.pointer(&format!("{message}/{name}")).unwrap_or(&Value::Null);
    let has_details = beside("reasoning_details").as_array().is_some_and(|details| !details.is_empty());
    let is_shown = beside("reasoning_content").as_str().is_some_and(|text| !text.is_empty());
    match name {
        "reasoning_content" => has_details,
        "reasoning" => has_details || is_shown,
        _ => false,
    }
}

#[test]
fn failed_response_is_an_error_with_its_message() {
    let error = json!({ "code": "server_error", "message": "broken" });
    let failed = [
        (Protocol::Responses, json!({ "id": "resp_1", "status": "failed", "error": error, "output": [] })),
        (Protocol::Native, json!({ "error": { "code": 500, "message": "broken", "status": "INTERNAL" } })),
    ];
    for (protocol, document) in failed {
        let malformed = protocol.answer_in(document).expect_err("no answer");
        assert!(malformed.0.ends_with("broken"), "{malformed}");
    }
}

/// The answer that a client of a protocol gets from a provider's.
fn translated(source: Protocol, target: Protocol, document: &Value) -> Value {
    target.answer_out(source.answer_in(document.clone()).expect("an answer"), &response_context("m"))
}

#[test]
fn unknown_members_are_reported_at_any_depth() {
    let text = |annotations: Value| json!({ "choices": [{ "message": { "content": "x", "annotations": annotations } }] });
    let odd = json!({ "type": "output_audio", "logprobs": [{ "token": "x" }] });
    let response = json!({
        "status": "incomplete",
        "incomplete_details": { "reason": "max_output_tokens", "more": 1 },
        "usage": { "input_tokens": 1, "output_tokens": 1, "cost": 2 },
        "output": [{ "type": "message", "content": [odd] }],
    });
    let native = |candidate: Value| json!({ "candidates": [candidate] });
    let sources = json!([{ "uri": "a", "license": "mit" }]);
    let chunks = json!([{ "web": { "uri": "a", "domain": "d" } }]);
    let annotations = json!([{ "type": "url_citation", "url_citation": { "url": "a", "score": 1 } }]);
    let citations = json!([{ "type": "char_location", "cited_text": "x", "score": 1 }]);
    let message = json!({ "content": [{ "type": "text", "text": "x", "citations": citations }] });
    let mut counted = native(json!({ "finishReason": "STOP" }));
    counted["usageMetadata"] = json!({ "promptTokenCount": 1, "trafficType": "x" });
    let cases = [
        (Protocol::Chat, "/choices/0/message/annotations", text(annotations)),
        (Protocol::Responses, "/incomplete_details/more", response.clone()),
        (Protocol::Responses, "/usage/cost", response.clone()),
        (Protocol::Responses, "/output/0/content/0", response),
        (Protocol::Messages, "/content/0/citations", message),
        (
            Protocol::Native,
            "/candidates/0/citationMetadata/citationSources",
            native(json!({ "citationMetadata": { "citationSources": sources } })),
        ),
        (
            Protocol::Native,
            "/candidates/0/groundingMetadata/groundingChunks",
            native(json!({ "groundingMetadata": { "groundingChunks": chunks } })),
        ),
        (Protocol::Native, "/usageMetadata/trafficType", counted),
    ];
    for (source, at, document) in cases {
        for (target, _) in PROTOCOLS.into_iter().filter(|(target, _)| *target != source) {
            let translated = translated(source, target, &document);
            assert_eq!(Some(&translated["provider_extra"][at]), document.pointer(at), "{at}: {translated:#}");
        }
    }
}

#[test]
fn known_citations_survive_next_to_an_unknown_kind() {
    let citations = json!([{ "type": "web_search_result_location", "url": "a" }, { "type": "of_tomorrow" }]);
    let message = json!({ "content": [{ "type": "text", "text": "x", "citations": citations }] });
    let translated = translated(Protocol::Messages, Protocol::Chat, &message);
    assert_eq!(translated["choices"][0]["message"]["annotations"][0]["url_citation"]["url"], "a");
    assert_eq!(translated["provider_extra"]["/content/0/citations"], citations);
}

#[test]
fn citations_without_text_are_reported_as_extra() {
    let annotations = json!([{ "type": "url_citation", "url_citation": { "url": "a" } }]);
    let message = json!({ "content": null, "annotations": annotations });
    let chat = json!({ "choices": [{ "message": message }] });
    for target in [Protocol::Responses, Protocol::Messages] {
        let translated = translated(Protocol::Chat, target, &chat);
        assert_eq!(translated["provider_extra"]["/choices/0/message/annotations"], annotations, "{target:?}");
    }
}

#[test]
fn file_name_unsupported_by_the_target_is_reported() {
    let source = json!({ "type": "base64", "media_type": "application/pdf", "data": "AA==" });
    let message = json!({ "content": [{ "type": "document", "source": source, "title": "Notes" }] });
    let translated = translated(Protocol::Messages, Protocol::Native, &message);
    assert_eq!(translated["candidates"][0]["content"]["parts"][0]["inlineData"]["data"], "AA==");
    assert_eq!(translated["provider_extra"]["/content/0/title"], "Notes");
}

#[test]
fn unknown_finish_reason_is_reported_by_position_not_index() {
    let candidates = json!([{ "index": 1, "finishReason": "ONE" }, { "index": 0, "finishReason": "NONE" }]);
    let document = json!({ "candidates": candidates });
    let extra = translated(Protocol::Native, Protocol::Chat, &document)["provider_extra"].take();
    assert_eq!(extra, json!({ "/candidates/0/finishReason": "ONE", "/candidates/1/finishReason": "NONE" }));
    let mut back = translated(Protocol::Native, Protocol::Native, &document);
    assert_eq!(back["candidates"].take(), candidates);
}
