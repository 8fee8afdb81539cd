//! Vector documents with parts of others mixed in: they are translated without a panic, requests
//! round-trip, and members reported as dropped exist. `GATEWRIGHT_MUTATIONS` sets the number of mutations.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{broken_rules, relay, translate};

/// The vector folders, in the order of the protocols' first bytes in fuzz inputs.
const FOLDERS: [&str; 4] = ["chat", "responses", "messages", "native"];
const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors/protocols");
/// Number of mutated documents.
const TRIED: u64 = 3_000;
/// Only one document in this many is checked against the protocols' rules, because that takes longer than a translation.
const HELD: usize = 3;

/// A deterministic pseudorandom generator.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound.max(1)).expect("small")).expect("small")
    }
}

/// A document: its protocol, its kind (request, response or stream), and its text.
struct Document {
    protocol: u8,
    kind: u8,
    value: Value,
}

fn documents() -> Vec<Document> {
    let mut all = Vec::new();
    for (protocol, folder) in (0..).zip(FOLDERS) {
        for (kind, file, member) in
            [(0, "requests", "request"), (1, "answers", "answer"), (3, "streams", "events")]
        {
            let path = format!("{VECTORS}/{folder}/{file}.json");
            let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
            let document: Value =
                serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
            let cases = document["cases"].as_array().expect("cases");
            all.extend(cases.iter().map(|case| Document { protocol, kind, value: case[member].clone() }));
        }
    }
    all
}

/// A random value within a value.
fn within<'a>(value: &'a mut Value, chance: &mut RandomNumbers) -> &'a mut Value {
    let length = value.as_object().map(Map::len).or(value.as_array().map(Vec::len)).unwrap_or_default();
    if length == 0 || chance.below(8) == 0 {
        return value;
    }
    let place = chance.below(length);
    match value {
        Value::Object(members) => within(members.values_mut().nth(place).expect("a member"), chance),
        Value::Array(items) => within(&mut items[place], chance),
        scalar => scalar,
    }
}

fn mutate(value: &mut Value, other: &mut Value, chance: &mut RandomNumbers) {
    let piece = within(other, chance).clone();
    let target = within(value, chance);
    let scalars = [
        json!(null),
        json!(""),
        json!(" "),
        json!("x".repeat(300)),
        json!("\\ud83d"),
        json!("ü©"),
        json!(0),
        json!(-1),
        json!(u64::MAX),
        json!(1e300),
        json!(true),
        json!([]),
        json!({}),
        json!([null]),
        json!("data:;base64,"),
    ];
    match (chance.below(5), target) {
        (0, target) => *target = scalars[chance.below(scalars.len())].clone(),
        (1, Value::Object(members)) if !members.is_empty() => {
            let name = members.keys().nth(chance.below(members.len())).expect("a member").clone();
            members.shift_remove(&name);
        }
        (1, Value::Array(items)) if !items.is_empty() => drop(items.remove(chance.below(items.len()))),
        (2, Value::Array(items)) => items.push(piece),
        (2, Value::Object(members)) => {
            if let Value::Object(others) = piece {
                members.extend(others);
            }
        }
        (3, Value::String(text)) => {
            let end = text.char_indices().nth(chance.below(text.len())).map_or(0, |(at, _)| at);
            text.truncate(end);
        }
        (_, target) => *target = piece,
    }
}

fn text(document: &Document, value: &Value) -> String {
    if document.kind != 3 {
        return value.to_string();
    }
    let line = |event: &Value| {
        let data = event["data"].as_str().map_or_else(|| event["data"].to_string(), str::to_owned);
        event["event"].as_str().map_or_else(|| data.clone(), |name| format!("{name}\t{data}"))
    };
    value.as_array().into_iter().flatten().map(line).collect::<Vec<_>>().join("\n")
}

/// Number of mutated documents.
fn tried() -> u64 {
    let tried = std::env::var("GATEWRIGHT_MUTATIONS").ok().and_then(|count| count.parse().ok());
    tried.unwrap_or(TRIED)
}

/// The generator for a seed.
fn chance(number: u64) -> RandomNumbers {
    RandomNumbers(0x9e37_79b9_7f4a_7c15 ^ (number + 1).wrapping_mul(0xd134_2543_de82_ef95))
}

/// The events of a stream as an upstream sends them.
fn stream(events: &Value, line_end: &str) -> String {
    let event = |event: &Value| {
        let data = event["data"].as_str().map_or_else(|| event["data"].to_string(), str::to_owned);
        let name = event["event"].as_str().map(|name| format!("event: {name}{line_end}")).unwrap_or_default();
        format!("{name}data: {data}{line_end}{line_end}")
    };
    events.as_array().into_iter().flatten().map(event).collect()
}

#[test]
fn mutated_streams_pass_through_in_packets_of_any_size() {
    let (documents, mut relayed, mut broken) = (documents(), 0, Vec::new());
    let streams: Vec<&Document> = documents.iter().filter(|document| document.kind == 3).collect();
    for number in 0..tried() {
        let mut chance = chance(number);
        let document = streams[chance.below(streams.len())];
        let mut value = document.value.clone();
        for _ in 0..chance.below(4) {
            let mut other = documents[chance.below(documents.len())].value.clone();
            mutate(&mut value, &mut other, &mut chance);
        }
        let mut text = stream(&value, ["\n", "\r\n", "\r"][chance.below(3)]).into_bytes();
        if chance.below(3) == 0 {
            text.truncate(chance.below(text.len() + 1));
        }
        let form = u8::try_from(chance.below(4)).expect("small");
        let size = u8::try_from(chance.below(256)).expect("small");
        let input = [&[document.protocol, form, size], &text[..]].concat();
        let done = std::panic::catch_unwind(|| relay(&input).is_some());
        if done.is_err() {
            broken.push(format!("number {number}: {}", String::from_utf8_lossy(&text)));
        }
        relayed += u64::from(done.is_ok_and(|done| done));
    }
    assert!(
        broken.is_empty(),
        "{} break, the first ones: {:#?}",
        broken.len(),
        &broken[..broken.len().min(9)]
    );
    assert!(relayed > 500, "only {relayed} were relayed");
}

#[test]
fn mutated_documents_translate_without_panic() {
    let (documents, mut translated) = (documents(), 0);
    for number in 0..tried() {
        let mut chance = chance(number);
        let document = &documents[chance.below(documents.len())];
        let mut value = document.value.clone();
        for _ in 0..=chance.below(4) {
            let mut other = documents[chance.below(documents.len())].value.clone();
            mutate(&mut value, &mut other, &mut chance);
        }
        let input = [&[document.protocol, document.kind], text(document, &value).as_bytes()].concat();
        let done = std::panic::catch_unwind(|| translate(&input).is_some());
        assert!(done.is_ok(), "number {number} breaks: {}", String::from_utf8_lossy(&input[2..]));
        translated += u64::from(done.is_ok_and(|done| done));
    }
    assert!(translated > 500, "only {translated} were translated");
}

/// The violated rule, and the protocols involved.
fn class(protocol: u8, broken: &str) -> String {
    let mut words = broken.lines().next().unwrap_or_default().splitn(3, ": ");
    let (target, rule) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    format!("{} to {target}: {rule}", FOLDERS[usize::from(protocol)])
}

#[test]
fn mutated_documents_satisfy_every_protocols_rules() {
    let documents: Vec<Document> = documents().into_iter().filter(|document| document.kind != 1).collect();
    let (mut held, mut faults) = (0_u64, BTreeMap::<String, (u64, String)>::new());
    for number in (0..tried()).step_by(HELD) {
        let mut chance = chance(number);
        let document = &documents[chance.below(documents.len())];
        let mut value = document.value.clone();
        for _ in 0..=chance.below(3) {
            let mut other = documents[chance.below(documents.len())].value.clone();
            mutate(&mut value, &mut other, &mut chance);
        }
        let text = text(document, &value);
        let input = [&[document.protocol, document.kind], text.as_bytes()].concat();
        let broken = match std::panic::catch_unwind(|| broken_rules(&input)) {
            Ok(None) => continue,
            Ok(Some(broken)) => broken,
            Err(_) => vec![format!("a panic\n{text}")],
        };
        held += 1;
        for broken in broken {
            let fault = faults.entry(class(document.protocol, &broken)).or_insert((0, String::new()));
            fault.0 += 1;
            if fault.1.is_empty() || broken.len() < fault.1.len() {
                fault.1 = broken;
            }
        }
    }
    let descriptions =
        faults.iter().map(|(class, (count, first))| format!("{class}, {count} times, such as\n{first}\n"));
    assert!(faults.is_empty(), "{}", descriptions.collect::<String>());
    assert!(held > 150, "only {held} were held against the rules");
}
