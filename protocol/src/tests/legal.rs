//! Legal in, legal out: a request that strict providers of the client's protocol accept is written as one that strict
//! providers of the target's accept, and says the same. And whatever a careless provider streams, the client's stream
//! follows its grammar, with the same text and complete calls.
//!
//! `PROPTEST_CASES` sets how many cases of each pair are tried.

mod comparison;
mod converse;
mod plan;
mod providers;
mod requests;
mod streams;

use std::cell::RefCell;
use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};
use serde_json::Value;

use self::requests::Legal;
use super::super::{EncodedRequest, MalformedDocument, grammar, judge};
use super::{DEFAULTS, PROTOCOLS, TARGETS, response_context, tries};
use crate::conversation::{Conversation, Protocol};

/// Default number of cases per pair.
const CASES: u32 = 64;

/// Runs a test for each pair of a source and a target. The test returns everything that is wrong with a case; for each kind of
/// failure, the smallest case is reported.
fn every_pair<T: std::fmt::Debug>(
    sources: &[(Protocol, &str)],
    targets: &[(Protocol, &str)],
    strategy: &impl Strategy<Value = T>,
    test: impl Fn(Protocol, Protocol, T) -> Wrong,
) {
    let cases = tries(CASES);
    let run = |test: &dyn Fn(T) -> Result<(), TestCaseError>| {
        let config = ProptestConfig {
            cases,
            failure_persistence: None,
            max_shrink_iters: 4 * cases.max(1024),
            ..ProptestConfig::default()
        };
        // The same cases in every run.
        let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        TestRunner::new_with_rng(config, random).run(strategy, test)
    };
    let mut failed = Vec::new();
    for &(source, from) in sources {
        for &(target, to) in targets.iter().filter(|(target, _)| *target != source) {
            let kinds = RefCell::new(BTreeSet::new());
            let tried = run(&|value| {
                let wrong = test(source, target, value);
                kinds.borrow_mut().extend(wrong.reasons.iter().map(|reason| kind_of(reason)));
                Ok(())
            });
            failed.extend(tried.err().map(|aborted| format!("{from} to {to}: {aborted}")));
            for kind in kinds.into_inner() {
                let smallest = run(&|value| {
                    let Wrong { reasons, about } = test(source, target, value);
                    let reason = reasons.iter().find(|reason| kind_of(reason) == kind);
                    reason.map_or(Ok(()), |reason| {
                        Err(TestCaseError::Fail(format!("{reason}\n{about}").into()))
                    })
                });
                if let Err(TestError::Fail(reason, _)) = smallest {
                    failed.push(format!("{from} to {to}: {reason}"));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{} ways to fail\n{}", failed.len(), failed.join("\n\n"));
}

/// What is wrong with a case.
#[derive(Debug, Default)]
struct Wrong {
    reasons: Vec<String>,
    /// The case, in wire format.
    about: String,
}

/// The part of a failure message before anything specific to the case.
fn kind_of(reason: &str) -> String {
    let end = reason.find([':', '"', '(']).unwrap_or(reason.len());
    reason[..end].chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// Writes a request as the gateway does.
fn outgoing(target: Protocol, conversation: &Conversation) -> EncodedRequest {
    target.request_out(conversation, DEFAULTS)
}

/// Writes a request of one protocol as a request of another.
fn translated(source: Protocol, target: Protocol, model: &str, legal: &Legal) -> Wrong {
    let about = format!("source: {}", legal.body);
    let mut reasons: Vec<String> = judge::judge(source, &legal.body)
        .into_iter()
        .map(|found| format!("the test writes no legal request: {found}"))
        .collect();
    let stream = legal.body["stream"] == true;
    let conversation = match source.request_in(legal.body.clone(), model, stream) {
        Ok(conversation) => Conversation { model: model.to_owned(), ..conversation },
        Err(malformed) => {
            reasons.push(malformed.to_string());
            return Wrong { reasons, about };
        }
    };
    let outgoing = outgoing(target, &conversation);
    let about = format!("{about}\ntarget: {}\ndropped: {:?}", outgoing.body, outgoing.dropped);
    let counts = |rule: &judge::Rule| {
        !rule.of_provider
            || (target == Protocol::Converse && converse::refuses(model, rule))
            // Which models accept system turns is unknown, so none gets them.
            || rule.name == "no_system_turns"
    };
    reasons.extend(judge::judge_by(target, &outgoing.body, counts).iter().map(ToString::to_string));
    let back = match target {
        Protocol::Converse => Ok(converse::read_back(&outgoing.body)),
        _ => target.request_in(outgoing.body.clone(), model, stream),
    };
    match back {
        Ok(back) => reasons.extend(comparison::differences(legal, &outgoing, &back)),
        Err(malformed) => reasons.push(malformed.to_string()),
    }
    Wrong { reasons, about }
}

#[test]
fn legal_requests_stay_legal_and_equivalent_in_every_protocol() {
    every_pair(&PROTOCOLS, &TARGETS, &plan::plans(), |source, target, plan| {
        translated(source, target, "m", &requests::write(source, &plan))
    });
}

#[test]
fn legal_requests_stay_legal_for_feature_rich_converse_models() {
    for model in ["us.anthropic.claude-sonnet-4-20250514-v1:0", "amazon.nova-pro-v1:0"] {
        every_pair(&PROTOCOLS, &TARGETS[4..], &plan::plans(), |source, target, plan| {
            translated(source, target, model, &requests::write(source, &plan))
        });
    }
}

/// What a client of a protocol gets from a provider's events.
fn streamed(
    source: Protocol,
    target: Protocol,
    events: &[streams::Event],
) -> Result<Vec<u8>, MalformedDocument> {
    let (mut reader, mut deltas) = (source.stream_in(), Vec::new());
    for (name, data) in events {
        reader.event(*name, data, &mut deltas)?;
    }
    reader.end(&mut deltas)?;
    let (mut writer, mut bytes) = (target.stream_out(response_context("m")), Vec::new());
    for delta in deltas {
        writer.delta(delta, &mut bytes);
    }
    Ok(bytes)
}

/// Translates a careless stream.
fn translate_stream(source: Protocol, target: Protocol, answer: &streams::Answer) -> Wrong {
    let events = streams::write(source, answer);
    let lines = events.iter().map(|(name, data)| format!("  {} {data}\n", name.unwrap_or("-")));
    let about = format!("source:\n{}", lines.collect::<String>());
    let bytes = match streamed(source, target, &events) {
        Ok(bytes) => bytes,
        Err(malformed) => {
            return Wrong { reasons: vec![format!("the stream is refused ({malformed})")], about };
        }
    };
    let about = format!("{about}target:\n{}", String::from_utf8_lossy(&bytes));
    let transcript = grammar::transcript(target, &bytes);
    let mut reasons: Vec<String> = transcript.faults.iter().map(ToString::to_string).collect();
    if transcript.failed {
        reasons.push("the stream fails".to_owned());
    }
    let (text, mut calls) = answer.expected(source);
    if transcript.text != text {
        reasons.push(format!("the text is another one: {:?} became {:?}", text, transcript.text));
    }
    // The last call of a truncated answer may be partial.
    if !answer.is_cut() {
        let parsed = |call: &grammar::ReceivedCall| serde_json::from_str(&call.input).unwrap_or(Value::Null);
        let mut got: Vec<(String, Value)> =
            transcript.calls.iter().map(|call| (call.name.clone(), parsed(call))).collect();
        let key = |call: &(String, Value)| (call.0.clone(), call.1.to_string());
        got.sort_by_key(key);
        calls.sort_by_key(key);
        if got != calls {
            reasons.push(format!("the calls are others: {calls:?} became {got:?}"));
        }
    }
    Wrong { reasons, about }
}

#[test]
fn sloppy_streams_are_complete_and_ordered_in_every_protocol() {
    every_pair(&TARGETS, &PROTOCOLS, &streams::answers(), |source, target, answer| {
        translate_stream(source, target, &answer)
    });
}
