//! The vector documents: each comes back from the neutral form unchanged, and a snapshot pins the form it takes in every
//! other protocol.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::{DEFAULTS, PROTOCOLS, cases, deltas, events, response_context, streams, written};
use crate::conversation::Delta;

#[test]
fn requests_round_trip_and_translate_as_recorded() {
    for (source, folder) in PROTOCOLS {
        for case in cases(folder, "requests") {
            let (name, request) = (case["name"].as_str().expect("a name"), &case["request"]);
            let model = request["model"].as_str().unwrap_or("m");
            let conversation = source.request_in(request.clone(), model, streams(request)).expect(name);
            let back = source.request_out(&conversation, DEFAULTS);
            assert_eq!((&back.body, back.dropped.as_slice()), (request, &[][..]), "{folder}: {name}");
            let mut others = Map::new();
            for (target, other) in PROTOCOLS.into_iter().filter(|(target, _)| *target != source) {
                let outgoing = target.request_out(&conversation, DEFAULTS);
                others
                    .insert(other.to_owned(), json!({ "body": outgoing.body, "dropped": outgoing.dropped }));
            }
            insta::assert_json_snapshot!(format!("request_{folder}_{name}"), Value::Object(others));
        }
    }
}

#[test]
fn answers_round_trip_and_translate_as_recorded() {
    for (source, folder) in PROTOCOLS {
        for case in cases(folder, "answers") {
            let name = case["name"].as_str().expect("a name");
            let answer = source.answer_in(case["answer"].clone()).expect(name);
            assert_eq!(
                source.answer_out(answer.clone(), &response_context("m")),
                case["answer"],
                "{folder}: {name}"
            );
            let mut others = Map::new();
            for (target, other) in PROTOCOLS.into_iter().filter(|(target, _)| *target != source) {
                others.insert(other.to_owned(), target.answer_out(answer.clone(), &response_context("m")));
            }
            insta::assert_json_snapshot!(format!("answer_{folder}_{name}"), Value::Object(others));
        }
    }
}

/// Whether a usage counts nothing.
fn is_nothing(delta: &Delta) -> bool {
    matches!(delta, Delta::Usage(usage) if usage.input.unwrap_or(0) + usage.output.unwrap_or(0) == 0)
}

/// What a stream says about the answer: id and model are the gateway's, the last usage counts, and what other protocols
/// can't express stays in this one's bytes.
fn meaning(deltas: &[Delta]) -> Vec<&Delta> {
    let usage = deltas.iter().rev().find(|delta| matches!(delta, Delta::Usage(_)));
    let others = deltas
        .iter()
        .filter(|delta| !{ matches!(delta, Delta::Usage(_) | Delta::Started { .. } | Delta::Extra(_)) });
    others.chain(usage.filter(|delta| !is_nothing(delta))).collect()
}

#[test]
fn streams_round_trip_and_translate_as_recorded() {
    for (source, folder) in PROTOCOLS {
        for case in cases(folder, "streams") {
            let name = case["name"].as_str().expect("a name");
            let read = deltas(source, &case["events"]).expect(name);
            let mut text = read.iter().fold(String::new(), |mut text, delta| {
                writeln!(text, "{delta:?}").expect("writing to memory succeeds");
                text
            });
            for (target, other) in PROTOCOLS {
                let stream = written(target, &read);
                if target == source {
                    let again = deltas(source, &events(&stream)).expect(name);
                    assert_eq!(meaning(&again), meaning(&read), "{folder}: {name}");
                }
                write!(text, "\n--- {other}\n{stream}").expect("writing to memory succeeds");
            }
            insta::assert_snapshot!(format!("stream_{folder}_{name}"), text);
        }
    }
}
