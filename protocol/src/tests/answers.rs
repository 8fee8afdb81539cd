//! Properties of every answer: each protocol expresses all of it, and its stream says the same as the whole answer,
//! however it is split.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;

use super::{PROTOCOLS, deltas, events, response_context, tries, written};
use crate::conversation::{
    Answer, Choice, Delta, FinishReason, Input, Part, PartKind, Protocol, Thought, ToolCall, Usage,
};

/// Number of answers per protocol.
const ANSWERS: u32 = 100;

/// What an answer conveys, in any protocol.
#[derive(Debug, Clone, Default, PartialEq)]
struct AnswerContent {
    text: String,
    /// Texts of thoughts, and their proofs.
    thoughts: String,
    signatures: Vec<String>,
    /// Id, name and arguments.
    calls: Vec<(String, String, Value)>,
    end: Option<FinishReason>,
    input: Option<u64>,
    output: Option<u64>,
}

impl AnswerContent {
    fn by(answer: &Answer) -> Self {
        let usage = answer.usage.unwrap_or_default();
        let mut content = Self { input: usage.input, output: usage.output, ..Self::default() };
        for choice in &answer.choices {
            content.end.clone_from(&choice.end);
            for part in &choice.parts {
                match &part.kind {
                    PartKind::Text(text) => content.text.push_str(text),
                    PartKind::Thought(thought) => {
                        content.thoughts.push_str(&thought.text.concat());
                        content.signatures.extend(thought.signature.clone());
                    }
                    PartKind::Call(ToolCall { id, name, input: Input::Json(input), .. }) => {
                        let input = serde_json::from_str(input).expect("arguments are JSON");
                        content.calls.push((id.clone(), name.clone(), input));
                    }
                    other => panic!("{other:?} was never written"),
                }
            }
        }
        content
    }

    /// What a stream conveys.
    fn in_pieces(deltas: &[Delta]) -> Self {
        let mut content = Self::default();
        let mut inputs: Vec<String> = Vec::new();
        for delta in deltas {
            match delta {
                Delta::Text { text, .. } => content.text.push_str(text),
                Delta::Thought { text, .. } => content.thoughts.push_str(text),
                Delta::ThoughtSigned { signature, .. } => content.signatures.push(signature.clone()),
                Delta::Call { call, id, name, .. } => {
                    assert_eq!(*call as usize, content.calls.len(), "calls come in order");
                    content.calls.push((id.clone(), name.clone(), Value::Null));
                    inputs.push(String::new());
                }
                Delta::CallInput { call, text, .. } => inputs[*call as usize].push_str(text),
                Delta::Usage(usage) => (content.input, content.output) = (usage.input, usage.output),
                Delta::Ended { end, .. } => content.end = Some(end.clone()),
                Delta::Started { .. } | Delta::Done => {}
                other => panic!("{other:?} was never written"),
            }
        }
        for (call, input) in content.calls.iter_mut().zip(inputs) {
            call.2 = serde_json::from_str(&input).expect("arguments are JSON");
        }
        content
    }

    /// As far as a protocol can express it.
    fn within(mut self, protocol: Protocol) -> Self {
        if protocol == Protocol::Chat {
            self.signatures.clear();
        }
        self
    }
}

fn text() -> impl Strategy<Value = String> {
    // Characters that are special in JSON, events and lines, mixed with any others.
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        select(vec!["\n\n", "\"", "\\", "data: ", "🎈", " "]).prop_map(str::to_owned)
    ];
    prop::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat())
}

fn part(kind: PartKind) -> Part {
    Part { at: "".into(), kind, cache: None }
}

fn thought() -> impl Strategy<Value = PartKind> {
    (text(), "[a-zA-Z0-9]{8}").prop_map(|(text, signature)| {
        PartKind::Thought(Thought { text: vec![text], signature: Some(signature), ..Thought::default() })
    })
}

/// At most one thought, then text, then calls: the order that every protocol can express.
fn answers() -> impl Strategy<Value = Answer> {
    let arguments = prop::collection::btree_map("[a-z]{1,4}", text(), 0..3);
    let calls = prop::collection::vec(("[a-z_]{1,9}", arguments), 0..3);
    let ends = select(vec![FinishReason::Stop, FinishReason::Length]);
    let usage = (0..1_000_000_u64, 0..1_000_000_u64);
    (prop::option::of(thought()), prop::option::of(text()), calls, ends, usage).prop_map(
        |(thought, text, calls, end, (input, output))| {
            let calls: Vec<PartKind> =
                (0..).zip(calls).map(|(place, (name, arguments))| call(place, name, &arguments)).collect();
            let end = if calls.is_empty() { end } else { FinishReason::ToolCalls };
            let parts = thought.into_iter().chain(text.map(PartKind::Text)).chain(calls).map(part).collect();
            let choice = Choice { parts, end: Some(end), ..Choice::default() };
            let usage = Usage { input: Some(input), output: Some(output), ..Usage::default() };
            Answer {
                id: Some("a1".into()),
                model: Some("m".into()),
                created: Some(1),
                choices: vec![choice],
                usage: Some(usage),
                ..Answer::default()
            }
        },
    )
}

fn call(place: u32, name: String, arguments: &std::collections::BTreeMap<String, String>) -> PartKind {
    let input = Input::Json(serde_json::to_string(arguments).expect("texts are JSON"));
    PartKind::Call(ToolCall { id: format!("call_{place}"), name, input, signature: None })
}

/// The deltas of an answer, with its texts split into pieces of `size` characters.
pub(super) fn cut(answer: &Answer, size: usize) -> Vec<Delta> {
    let pieces = |text: &str| -> Vec<String> {
        text.chars().collect::<Vec<_>>().chunks(size).map(String::from_iter).collect()
    };
    let (id, model) = (answer.id.clone(), answer.model.clone());
    let mut deltas = vec![Delta::Started { id, model, created: answer.created, service_tier: None }];
    let choice = 0;
    for part in &answer.choices[0].parts {
        match &part.kind {
            PartKind::Text(text) => {
                deltas.extend(pieces(text).into_iter().map(|text| Delta::Text {
                    choice,
                    text,
                    logprobs: None,
                }));
            }
            PartKind::Thought(thought) => {
                let texts = pieces(&thought.text.concat()).into_iter();
                let (thoughts, summary, redacted) = (0, false, false);
                deltas.extend(texts.map(|text| Delta::Thought {
                    choice,
                    thought: thoughts,
                    id: None,
                    part: 0,
                    text,
                    summary,
                }));
                let signature = thought.signature.clone().expect("a proof");
                deltas.push(Delta::ThoughtSigned {
                    choice,
                    thought: thoughts,
                    id: None,
                    signature,
                    redacted,
                });
            }
            PartKind::Call(ToolCall { id, name, input: Input::Json(input), .. }) => {
                let before = deltas.iter().filter(|delta| matches!(delta, Delta::Call { .. })).count();
                let call = u32::try_from(before).expect("few");
                let (id, name) = (id.clone(), name.clone());
                deltas.push(Delta::Call { choice, call, id, name, custom: false, signature: None });
                deltas.extend(pieces(input).into_iter().map(|text| Delta::CallInput { choice, call, text }));
            }
            other => panic!("{other:?} is not made"),
        }
    }
    deltas.push(Delta::Usage(answer.usage.expect("a usage")));
    deltas.push(Delta::Ended { choice, end: answer.choices[0].end.clone().expect("an end") });
    deltas.push(Delta::Done);
    deltas
}

/// Runs a test for each protocol with many answers and piece sizes.
pub(super) fn every_answer(test: impl Fn(Protocol, Answer, usize) -> Result<(), TestCaseError>) {
    for (protocol, folder) in PROTOCOLS {
        let config =
            ProptestConfig { cases: tries(ANSWERS), failure_persistence: None, ..ProptestConfig::default() };
        // The same answers in every run: the fuzz target looks for others.
        let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let made = (answers(), 1..9_usize);
        let result = TestRunner::new_with_rng(config, random)
            .run(&made, |(answer, size)| test(protocol, answer, size));
        if let Err(error) = result {
            panic!("{folder}: {error}");
        }
    }
}

#[test]
fn any_answer_is_equivalent_in_every_protocol() {
    every_answer(|protocol, answer, _| {
        let content = AnswerContent::by(&answer).within(protocol);
        let document = protocol.answer_out(answer, &response_context("m"));
        let back = protocol.answer_in(document.clone());
        let back = back.map_err(|malformed| TestCaseError::fail(format!("{malformed}: {document}")))?;
        prop_assert_eq!(AnswerContent::by(&back).within(protocol), content, "{:#}", document);
        Ok(())
    });
}

#[test]
fn stream_is_equivalent_to_the_answer_however_it_is_split() {
    every_answer(|protocol, answer, size| {
        let content = AnswerContent::by(&answer).within(protocol);
        let stream = written(protocol, &cut(&answer, size));
        let back = deltas(protocol, &events(&stream));
        let back = back.map_err(|malformed| TestCaseError::fail(format!("{malformed}: {stream}")))?;
        prop_assert_eq!(AnswerContent::in_pieces(&back).within(protocol), content, "{}", stream);
        Ok(())
    });
}

/// Servers that front others report errors in the chat format, whatever the protocol of the stream.
#[test]
fn untyped_error_ends_streams_of_every_protocol() {
    let events = serde_json::json!([{ "data": { "error": { "message": "broken" } } }]);
    for (protocol, _) in PROTOCOLS {
        let deltas = deltas(protocol, &events).expect("an end");
        let [Delta::Failed(failure)] = deltas.as_slice() else { panic!("{protocol:?}: {deltas:?}") };
        assert_eq!(failure.message, "broken", "{protocol:?}");
    }
}
