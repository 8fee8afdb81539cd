//! Entry points for the fuzz targets. Not part of the API; they change without notice.

mod documents;
#[cfg(test)]
mod mutated;
mod relayed;

pub use self::documents::{configure, film};
pub use self::relayed::relay;

use std::collections::BTreeMap;

use gatewright::limits::{self, Rules, integer};
use gatewright::{Operation, operations};
use gatewright_protocol::conversation::{
    Conversation, Delta, Format, JsonPointer, Located, Part, PartKind, Protocol, Role, Tool, ToolChoice,
    ToolKind, Turn,
};
use gatewright_protocol::judge::judge;
use gatewright_protocol::{Defaults, ResponseContext, grammar};
use gatewright_simulator::budget::{Budget, BudgetExceeded};
use gatewright_simulator::{Refusal, SimulatedAnswer};
use serde_json::{Map, Value};

pub use crate::batches::lines::fuzzing::read_batch;
pub use crate::server::http1::fuzzing::received_requests;
pub use crate::wire::form::fuzzing::read_form;

/// The cost of an answer.
#[derive(Debug, Clone, Copy)]
pub struct AnswerCost {
    /// Steps spent, at most those allowed.
    pub steps: usize,
    /// Bytes produced, at most those allowed.
    pub bytes: usize,
    /// Bytes of the texts and arguments of the answers; `None` if the budget was too small.
    pub answered: Option<usize>,
}

/// Makes the simulator answer in the form of a client's schema, and call a tool with that schema, `choices` times with
/// this budget each. Returns `None` if the schema exceeds the limits.
pub fn answer_by_schema(
    schema: &Value,
    question: &str,
    choices: usize,
    (steps, bytes): (usize, usize),
) -> Option<[AnswerCost; 2]> {
    let nowhere = JsonPointer::default;
    let question = Part { at: nowhere(), kind: PartKind::Text(question.to_owned()), cache: None };
    let conversation = Conversation {
        turns: vec![Turn { at: nowhere(), role: Role::User, name: None, parts: vec![question] }],
        choices: u64::try_from(choices).ok().map(|choices| Located::new(choices, "")),
        ..Conversation::default()
    };
    let format = Format::JsonSchema {
        name: None,
        description: None,
        schema: schema.clone(),
        schema_at: nowhere(),
        strict: None,
    };
    let in_form = Conversation { format: Some(Located::new(format, "")), ..conversation.clone() };
    let kind = ToolKind::Function {
        name: "tool".to_owned(),
        description: None,
        parameters: Some(schema.clone()),
        strict: None,
    };
    let calling = Conversation {
        tools: vec![Tool { at: nowhere(), kind, schema_at: nowhere(), cache: None }],
        tool_choice: Some(Located::new(ToolChoice::Required, "")),
        ..conversation
    };
    let cost = |conversation| {
        let budget = Budget::of(steps, bytes);
        let answered = match gatewright_simulator::answer(conversation, &budget) {
            Ok(answer) => Some(length(answer)),
            Err(Refusal::Budget(BudgetExceeded::Steps(_) | BudgetExceeded::Bytes(_))) => None,
            Err(Refusal::Schema(_)) => return None,
            Err(refusal) => unreachable!("{refusal}"),
        };
        Some(AnswerCost { steps: budget.worked(), bytes: budget.made(), answered })
    };
    Some([cost(in_form)?, cost(calling)?])
}

/// The wire protocols, as the first byte of an input of [`translate`] names them.
const PROTOCOLS: [Protocol; 4] = Protocol::OF_CLIENTS;

/// Translates a document of a protocol to every protocol. The first byte names the protocol, the second whether a request,
/// an answer, an error or a stream (one event per line) follows. Returns the number of bytes written; `None`: the document
/// doesn't belong to the protocol.
///
/// # Panics
/// If a request written for its own protocol differs from the original, if one is reported to lose something it doesn't
/// have, or if anything follows the end of a stream.
pub fn translate(input: &[u8]) -> Option<usize> {
    let (&[protocol, kind], text) = input.split_first_chunk()?;
    let source = PROTOCOLS[usize::from(protocol) % PROTOCOLS.len()];
    let text = str::from_utf8(text).ok()?;
    let context = ResponseContext {
        model: "m".to_owned(),
        request: Value::Object(Map::new()),
        include_usage: true,
        id: "id".to_owned(),
        created: 1,
        ..ResponseContext::default()
    };
    match kind % 4 {
        0 => translate_request(source, &serde_json::from_str(text).ok()?),
        1 => {
            let answer = source.answer_in(serde_json::from_str(text).ok()?).ok()?;
            let written =
                PROTOCOLS.map(|target| target.answer_out(answer.clone(), &context).to_string().len());
            Some(written.iter().sum())
        }
        2 => Some(source.failure_in(500, text.as_bytes()).message.len()),
        _ => {
            let deltas = read_stream(source, text)?;
            let written = PROTOCOLS.map(|target| {
                let (mut writer, mut bytes) = (target.stream_out(context.clone()), Vec::new());
                for delta in &deltas {
                    writer.delta(delta.clone(), &mut bytes);
                }
                bytes.len()
            });
            Some(written.iter().sum())
        }
    }
}

fn translate_request(source: Protocol, body: &Value) -> Option<usize> {
    let stream = body["stream"] == true;
    let body = &limits::canonical(operation_of(source), body).unwrap_or_else(|| body.clone());
    let conversation = source.request_in(body.clone(), "m", stream).ok()?;
    let defaults = Defaults { max_tokens: 4096, ..Defaults::default() };
    let written = PROTOCOLS.map(|target| {
        let outgoing = target.request_out(&conversation, defaults);
        if target == source {
            assert!(outgoing.dropped.is_empty(), "{source:?} loses {:?} of its own", outgoing.dropped);
            assert!(is_same(body, &outgoing.body), "{body}\n  comes back as\n{}", outgoing.body);
        }
        for at in &outgoing.dropped {
            assert!(body.pointer(at).is_some(), "{target:?} reports {at}, which is nowhere");
        }
        outgoing.body.to_string().len()
    });
    Some(written.iter().sum())
}

/// Whether a request equals the original, except for the model, which is the target's, and for whole numbers, which may be
/// written as 4 or as 4.0.
fn is_same(body: &Value, back: &Value) -> bool {
    fn is_equal(one: &Value, other: &Value) -> bool {
        match (one, other) {
            (Value::Object(one), Value::Object(other)) => is_within(one, other, &[]),
            (Value::Array(one), Value::Array(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_equal(one, other))
            }
            (Value::Number(_), Value::Number(_)) => {
                one == other || integer(one).is_some() && integer(one) == integer(other)
            }
            _ => one == other,
        }
    }
    fn is_within(one: &Map<String, Value>, other: &Map<String, Value>, but_for: &[&str]) -> bool {
        let counted = |members: &Map<String, Value>| {
            members.keys().filter(|name| !but_for.contains(&name.as_str())).count()
        };
        counted(one) == counted(other)
            && one
                .iter()
                .filter(|(name, _)| !but_for.contains(&name.as_str()))
                .all(|(name, value)| other.get(name).is_some_and(|other| is_equal(value, other)))
    }
    match (body, back) {
        (Value::Object(body), Value::Object(back)) => is_within(body, back, &["model"]),
        _ => false,
    }
}

/// Translates a request or a stream of a protocol to every protocol, like [`translate`]: the first byte names the protocol,
/// the second what follows. Returns the number of documents checked against their rules; `None`: it is not a valid document,
/// it is a request that the gateway or strict providers of its own protocol reject, or it is a stream with arguments that
/// are not a JSON object, which are passed to the client as the model wrote them.
///
/// # Panics
/// If a written request is one that strict providers reject, or if a stream violates what its clients rely on.
pub fn hold(input: &[u8]) -> Option<usize> {
    let broken = broken_rules(input)?;
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    Some(PROTOCOLS.len() - 1)
}

/// The operation of a protocol, whose rules a request follows before it is translated.
fn operation_of(protocol: Protocol) -> &'static Operation {
    // The first one generates the next turn of a conversation.
    let found = operations::ALL.iter().find(|known| Protocol::of_operation(known.protocol) == Some(protocol));
    found.expect("clients speak the protocol")
}

/// The rules that the translations of an input of [`hold`] violate.
fn broken_rules(input: &[u8]) -> Option<Vec<String>> {
    let (&[protocol, kind], text) = input.split_first_chunk()?;
    let source = PROTOCOLS[usize::from(protocol) % PROTOCOLS.len()];
    let text = str::from_utf8(text).ok()?;
    match kind % 4 {
        0 => broken_by_request(source, &serde_json::from_str(text).ok()?),
        3 => broken_by_stream(source, &read_stream(source, text)?),
        _ => None,
    }
}

fn broken_by_request(source: Protocol, body: &Value) -> Option<Vec<String>> {
    if !judge(source, body).is_empty() {
        return None;
    }
    let operation = operation_of(source);
    let rules = Rules::default().own_models(true);
    if !limits::check_with(operation, body, rules).is_empty() {
        return None;
    }
    let body = limits::canonical(operation, body).unwrap_or_else(|| body.clone());
    let conversation = source.request_in(body.clone(), "m", body["stream"] == true).ok()?;
    let defaults = Defaults { max_tokens: 4096, ..Defaults::default() };
    let body = &body;
    let others = PROTOCOLS.into_iter().filter(|target| *target != source);
    let broken = others.flat_map(|target| {
        let outgoing = target.request_out(&conversation, defaults).body;
        let found = judge(target, &outgoing);
        found.into_iter().map(move |finding| format!("{target:?}: {finding}\n{body}\n  becomes\n{outgoing}"))
    });
    Some(broken.collect())
}

fn broken_by_stream(source: Protocol, deltas: &[Delta]) -> Option<Vec<String>> {
    if !are_calls_whole(deltas) {
        return None;
    }
    let broken = PROTOCOLS.into_iter().filter(|target| *target != source).flat_map(|target| {
        let context = ResponseContext {
            model: "m".to_owned(),
            request: Value::Object(Map::new()),
            include_usage: true,
            id: "id".to_owned(),
            created: 1,
            ..ResponseContext::default()
        };
        let (mut writer, mut bytes) = (target.stream_out(context), Vec::new());
        for delta in deltas {
            writer.delta(delta.clone(), &mut bytes);
        }
        let faults = grammar::transcript(target, &bytes).faults;
        faults
            .into_iter()
            .map(move |fault| format!("{target:?}: {fault}\n{}", String::from_utf8_lossy(&bytes)))
    });
    Some(broken.collect())
}

/// Whether the arguments of all functions are JSON objects. Other arguments of a model stay unchanged, so that the client
/// can tell the model.
fn are_calls_whole(deltas: &[Delta]) -> bool {
    let mut inputs: BTreeMap<(u32, u32), String> = BTreeMap::new();
    for delta in deltas {
        match delta {
            Delta::Call { choice, call, custom: false, .. } => {
                inputs.insert((*choice, *call), String::new());
            }
            Delta::CallInput { choice, call, text } => {
                if let Some(input) = inputs.get_mut(&(*choice, *call)) {
                    input.push_str(text);
                }
            }
            _ => {}
        }
    }
    inputs.values().all(|input| matches!(serde_json::from_str(input), Ok(Value::Object(_))))
}

fn read_stream(source: Protocol, text: &str) -> Option<Vec<Delta>> {
    let (mut reader, mut deltas) = (source.stream_in(), Vec::new());
    for line in text.lines() {
        let (name, data) = line.split_once('\t').map_or((None, line), |(name, data)| (Some(name), data));
        reader.event(name, data, &mut deltas).ok()?;
    }
    reader.end(&mut deltas).ok()?;
    let end = deltas.iter().position(|delta| matches!(delta, Delta::Done | Delta::Failed(_)));
    assert_eq!(end, deltas.len().checked_sub(1), "a stream ends once, with its last word");
    Some(deltas)
}

/// Bytes of the texts and arguments of an answer.
fn length(answer: SimulatedAnswer) -> usize {
    let bytes = |delta| match delta {
        Delta::Text { text, .. } | Delta::CallInput { text, .. } => text.len(),
        _ => 0,
    };
    answer.deltas().map(bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuzz_translate_accepts_documents_of_every_kind() {
        let request = r#"{"messages":[{"role":"user","content":"x"}],"input":"x","contents":[{"parts":[{"text":"x"}]}]}"#;
        for protocol in 0..4 {
            assert!(translate(&[&[protocol, 0], request.as_bytes()].concat()).is_some(), "{protocol}");
            assert!(translate(&[&[protocol, 2], &b"{"[..]].concat()).is_some(), "{protocol}");
        }
        let chunk = r#"{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}"#;
        assert!(translate(&[&[0, 3], chunk.as_bytes()].concat()).is_some());
        assert!(translate(&[&[0, 3], &b"{}"[..]].concat()).is_none());
    }

    #[test]
    fn fuzz_hold_checks_requests_and_streams_against_their_rules() {
        let request = r#"{"model":"m","max_tokens":64,"messages":[{"role":"user","content":"x"}]}"#;
        assert_eq!(hold(&[&[2, 0], request.as_bytes()].concat()), Some(3));
        assert_eq!(hold(&[&[2, 0], &b"{}"[..]].concat()), None);
        assert_eq!(hold(&[&[2, 1], &b"{}"[..]].concat()), None);
        let chunk = r#"{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}"#;
        assert_eq!(hold(&[&[0, 3], chunk.as_bytes()].concat()), Some(3));
    }

    #[test]
    fn worst_schemas_stay_within_the_budget() {
        let vectors = include_str!("../../tests/vectors/simulator/schemas.json");
        let vectors: Value = serde_json::from_str(vectors).expect("JSON");
        for case in vectors["cases"].as_array().expect("cases") {
            let question = case["question"].as_str().expect("a question");
            let limits = (5_000_000, 1_600_000);
            let spent = answer_by_schema(&case["schema"], question, 2, limits).expect("within the bounds");
            for spent in spent {
                assert!(spent.steps <= limits.0 && spent.bytes <= limits.1, "{}: {spent:?}", case["name"]);
                assert!(spent.answered.unwrap_or(0) <= 6 * spent.bytes, "{}: {spent:?}", case["name"]);
            }
        }
    }
}
