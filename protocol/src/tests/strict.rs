//! What the codecs write in the other tests is accepted by strict providers and parsed by strict clients.

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;

use super::super::{grammar, judge};
use super::{
    DEFAULTS, PROTOCOLS, TARGETS, answers, cases, deltas, documents, response_context, streams, tries,
    written,
};
use crate::conversation::{Delta, Failure, FailureKind, Protocol};

/// Number of random requests per protocol.
const REQUESTS: u32 = 100;

/// What strict providers of the other protocols reject in the translations of a legal request. `None`: the request isn't
/// legal.
fn refused(source: Protocol, name: &str, request: &Value) -> Option<Vec<String>> {
    if !judge::judge(source, request).is_empty() {
        return None;
    }
    let conversation = source.request_in(request.clone(), "m", streams(request)).expect(name);
    let others = TARGETS.into_iter().filter(|(target, _)| *target != source);
    let found = others.flat_map(|(target, other)| {
        let outgoing = target.request_out(&conversation, DEFAULTS);
        let found = judge::judge(target, &outgoing.body);
        found.into_iter().map(move |finding| format!("{source:?} to {other}: {name}: {finding}"))
    });
    Some(found.collect())
}

#[test]
fn legal_vector_requests_are_legal_in_every_protocol() {
    let mut all = Vec::new();
    for (source, folder) in PROTOCOLS {
        let mut count = 0;
        for case in cases(folder, "requests") {
            let name = case["name"].as_str().expect("a name");
            if let Some(found) = refused(source, name, &case["request"]) {
                count += 1;
                all.extend(found);
            }
        }
        assert!(count >= 2, "only {count} vectors of {folder} are legal");
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn random_legal_requests_are_legal_in_every_protocol() {
    let sources = [
        (Protocol::Chat, documents::chat()),
        (Protocol::Responses, documents::responses()),
        (Protocol::Messages, documents::messages()),
        (Protocol::Native, documents::native()),
    ];
    let mut all = Vec::new();
    for (source, requests) in sources {
        let config =
            ProptestConfig { cases: tries(REQUESTS), failure_persistence: None, ..ProptestConfig::default() };
        let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let result = TestRunner::new_with_rng(config, random).run(&requests, |request| {
            let found = refused(source, "at random", &request).unwrap_or_default();
            prop_assert!(found.is_empty(), "{}\nof {}", found[0], request);
            Ok(())
        });
        all.extend(result.err().map(|error| error.to_string()));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

/// Faults of a written stream.
fn faults(target: Protocol, name: &str, stream: &str) -> Vec<String> {
    let transcript = grammar::transcript(target, stream.as_bytes());
    transcript.faults.into_iter().map(|fault| format!("{name} to {target:?}: {fault}")).collect()
}

#[test]
fn vector_streams_follow_the_grammar_of_every_protocol() {
    let mut all = Vec::new();
    for (source, folder) in PROTOCOLS {
        for case in cases(folder, "streams") {
            let name = case["name"].as_str().expect("a name");
            let read = deltas(source, &case["events"]).expect(name);
            for (target, _) in PROTOCOLS.into_iter().filter(|(target, _)| *target != source) {
                all.extend(faults(target, &format!("{folder}: {name}"), &written(target, &read)));
            }
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn any_split_answer_follows_the_grammar_of_every_protocol() {
    answers::every_answer(|protocol, answer, size| {
        let stream = written(protocol, &answers::cut(&answer, size));
        let found = faults(protocol, "an answer", &stream);
        prop_assert!(found.is_empty(), "{}\n{}", found[0], stream);
        Ok(())
    });
}

#[test]
fn answer_failing_anywhere_follows_the_grammar_and_reports_failure() {
    let failure = Failure::new(FailureKind::Server, "broken");
    answers::every_answer(|protocol, answer, size| {
        let deltas = answers::cut(&answer, size);
        let before = deltas.len() * size / 10;
        let mut writer = protocol.stream_out(response_context("m"));
        let mut bytes = Vec::new();
        for delta in deltas.into_iter().take(before).filter(|delta| !matches!(delta, Delta::Done)) {
            writer.delta(delta, &mut bytes);
        }
        writer.fail(&failure, &mut bytes);
        let transcript = grammar::transcript(protocol, &bytes);
        prop_assert!(
            transcript.faults.is_empty(),
            "{}\n{}",
            transcript.faults[0],
            String::from_utf8_lossy(&bytes)
        );
        prop_assert!(transcript.failed, "{}", String::from_utf8_lossy(&bytes));
        Ok(())
    });
}
