//! The intended conversation, before it is written in a protocol.

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

/// A conversation. Its texts have marks, so that each can be found again.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) system: Vec<String>,
    /// Whether there is an instruction in the middle.
    pub(super) late_system: Option<String>,
    pub(super) exchanges: Vec<Exchange>,
    /// The user's last turn, unless it consists of results.
    pub(super) last: Option<Vec<Bit>>,
    pub(super) tools: Vec<Tool>,
    pub(super) settings: Settings,
    /// Choices among equivalent forms.
    pub(super) forms: u64,
}

/// A question, and the model's answer.
#[derive(Debug, Clone)]
pub(super) struct Exchange {
    pub(super) question: Vec<Bit>,
    pub(super) thoughts: Vec<Thought>,
    pub(super) text: Option<String>,
    pub(super) calls: Vec<Call>,
    /// Rotates the results relative to the calls.
    pub(super) rotation: usize,
    /// What the user says along with the results.
    pub(super) comment: Option<Vec<Bit>>,
}

#[derive(Debug, Clone)]
pub(super) struct Thought {
    pub(super) text: String,
    pub(super) proof: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) id: String,
    /// Which of the tools.
    pub(super) tool: usize,
    pub(super) arguments: Map<String, Value>,
    pub(super) result: Vec<Bit>,
    pub(super) failed: bool,
}

/// A piece of someone's turn.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Bit {
    Text(String),
    /// Only whitespace, where the protocol accepts it.
    Blank(String),
    /// Media type and base64 data.
    Picture(&'static str, String),
    PictureAt(String),
    Pdf(String),
}

#[derive(Debug, Clone)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) schema: Value,
    pub(super) strict: bool,
    pub(super) custom: bool,
}

/// All settings; each protocol uses those that it has.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub(super) struct Settings {
    pub(super) temperature: Option<u8>,
    pub(super) top_p: Option<u8>,
    pub(super) top_k: Option<u8>,
    pub(super) penalty: Option<i8>,
    pub(super) seed: Option<i32>,
    pub(super) most: Option<u64>,
    pub(super) stops: Vec<String>,
    pub(super) user: Option<String>,
    pub(super) effort: Option<&'static str>,
    pub(super) budget: Option<u64>,
    pub(super) format: Option<Value>,
    pub(super) is_strict: bool,
    pub(super) choice: u8,
    pub(super) parallel: Option<bool>,
    pub(super) logprobs: Option<u8>,
    pub(super) choices: Option<u8>,
    pub(super) tier: bool,
    pub(super) verbosity: Option<&'static str>,
    pub(super) stream: bool,
    pub(super) metadata: bool,
}

/// Any characters, plus those that are special in the protocols.
fn text() -> impl Strategy<Value = String> {
    let odd = ["\n", "\"", "\\", "🎈", " ", "\u{2028}", "{}", "```", "\u{0}"];
    let piece = prop_oneof![2 => any::<char>().prop_map(String::from), 1 => select(odd.to_vec()).prop_map(str::to_owned)];
    vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn bit() -> impl Strategy<Value = Bit> {
    let kinds = vec!["image/png", "image/jpeg", "image/gif", "image/webp"];
    prop_oneof![
        6 => text().prop_map(Bit::Text),
        1 => select(vec![" ", "\n", "\t \n"]).prop_map(|blank| Bit::Blank(blank.to_owned())),
        1 => select(kinds).prop_map(|kind| Bit::Picture(kind, String::new())),
        1 => Just(Bit::PictureAt(String::new())),
        1 => Just(Bit::Pdf(String::new())),
    ]
}

/// JSON results whose text must not change: a field that has a meaning elsewhere, numbers, a duplicate name.
const JSON_RESULTS: [&str; 4] =
    ["{\"$ref\":\"#/a\",\"n\":1.10}", "[12345678901234567890.5]", "null", "{\"a\":1,\"a\":2}"];

fn result() -> impl Strategy<Value = Vec<Bit>> {
    let json = select(JSON_RESULTS.to_vec());
    let picture = Just(Bit::Picture("image/png", String::new()));
    prop_oneof![
        4 => text().prop_map(|text| vec![Bit::Text(text)]),
        1 => json.prop_map(|json| vec![Bit::Text(json.to_owned())]),
        1 => Just(Vec::new()),
        1 => (text(), picture).prop_map(|(text, picture)| vec![Bit::Text(text), picture]),
    ]
}

fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-zA-Z0-9_-]{1,24}",
        1 => "[a-zA-Z0-9_.:| /-]{1,70}",
        1 => vec(any::<char>(), 1..30).prop_map(String::from_iter),
        // An id that recurs, also in a later turn.
        1 => Just("call_1".to_owned()),
    ]
}

fn arguments() -> impl Strategy<Value = Map<String, Value>> {
    let value = prop_oneof![
        text().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        text().prop_map(|text| json!([{ "deep": text }])),
    ];
    prop::collection::btree_map("[a-z$]{0,4}", value, 0..3).prop_map(|members| members.into_iter().collect())
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let thought = (text(), of("[a-zA-Z0-9+/]{8}")).prop_map(|(text, proof)| Thought { text, proof });
    let call = (id(), any::<usize>(), arguments(), result(), any::<bool>())
        .prop_map(|(id, tool, arguments, result, failed)| Call { id, tool, arguments, result, failed });
    (vec(bit(), 1..3), vec(thought, 0..3), of(text()), vec(call, 0..4), 0..4_usize, of(vec(bit(), 1..3)))
        .prop_map(|(question, thoughts, text, calls, rotation, comment)| Exchange {
            question,
            thoughts,
            text,
            calls,
            rotation,
            comment,
        })
}

/// Object schemas.
fn schema() -> impl Strategy<Value = Value> {
    let text = json!({ "type": "string" });
    select(vec![
        json!({ "type": "object" }),
        json!({ "type": "object", "properties": {} }),
        json!({ "type": "object", "properties": { "city": text }, "required": ["city"], "additionalProperties": false }),
        // Accepted as strict by messages, but not by chat and responses.
        json!({ "type": "object", "properties": { "city": text, "day": text }, "required": ["city"], "additionalProperties": false }),
        json!({ "type": "object", "properties": { "n": { "type": "integer", "minimum": 1, "maximum": 9 },
            "list": { "type": "array", "minItems": 2, "items": { "type": "string", "maxLength": 4 } } } }),
        json!({ "type": "object", "properties": { "node": { "$ref": "#/$defs/node" } },
            "$defs": { "node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/node" } } } } }),
        json!({ "type": "object", "properties": { "day": { "$ref": "#/$defs/day", "description": "The first one.",
            "title": "Day", "maxLength": 9 } }, "$defs": { "day": text } }),
        json!({ "type": "object", "properties": { "minimum": { "anyOf": [text, { "type": "null" }] },
            "const": { "enum": ["a", "b"] }, "open": { "type": "object", "additionalProperties": text } } }),
    ])
}

fn tool() -> impl Strategy<Value = Tool> {
    let name = prop_oneof![
        4 => "[a-zA-Z_][a-zA-Z0-9_-]{0,20}",
        1 => "[a-zA-Z0-9_.:-]{1,130}",
        1 => select(vec!["ns.tool:x", "0digit", "-dash", "__double"]).prop_map(str::to_owned),
        1 => Just("long".repeat(32)),
    ];
    let custom = prop::bool::weighted(0.1);
    (name, of(text()), schema(), any::<bool>(), custom).prop_map(
        |(name, description, schema, strict, custom)| Tool { name, description, schema, strict, custom },
    )
}

fn settings() -> impl Strategy<Value = Settings> {
    let most = prop_oneof![1..20_u64, 1..5000_u64];
    let numbers = (of(0..=20_u8), of(0..=10_u8), of(1..=50_u8), of(-20..=20_i8), of(any::<i32>()), of(most));
    let stop = prop_oneof![3 => "[a-z]{1,3}", 1 => Just(" \n".to_owned())];
    let texts = (vec(stop, 0..6), of("[a-z_{}\"]{1,256}"));
    let thinking = (of(select(vec!["none", "minimal", "low", "medium", "high"])), of(0..40_000_u64));
    let forms = (of(schema()), any::<bool>(), any::<u8>(), of(any::<bool>()), of(0..=5_u8), of(1..=2_u8));
    let words = (any::<bool>(), of(select(vec!["low", "medium", "high"])), any::<bool>(), any::<bool>());
    (numbers, texts, thinking, forms, words).prop_map(|(numbers, texts, thinking, forms, words)| Settings {
        temperature: numbers.0,
        top_p: numbers.1,
        top_k: numbers.2,
        penalty: numbers.3,
        seed: numbers.4,
        most: numbers.5,
        stops: texts.0,
        user: texts.1,
        effort: thinking.0,
        budget: thinking.1,
        format: forms.0,
        is_strict: forms.1,
        choice: forms.2,
        parallel: forms.3,
        logprobs: forms.4,
        choices: forms.5,
        tier: words.0,
        verbosity: words.1,
        stream: words.2,
        metadata: words.3,
    })
}

/// Conversations of every kind.
pub(super) fn plans() -> impl Strategy<Value = Plan> {
    let system = (vec(text(), 0..3), of(text()));
    (system, vec(exchange(), 0..4), of(vec(bit(), 1..3)), vec(tool(), 0..4), settings(), any::<u64>())
        .prop_map(|((system, late_system), exchanges, last, tools, settings, forms)| {
            let mut plan = Plan { system, late_system, exchanges, last, tools, settings, forms };
            plan.mark();
            plan
        })
}

impl Plan {
    /// Numbers each text, image and call.
    fn mark(&mut self) {
        let mut count = 0;
        let mut number = || {
            count += 1;
            count
        };
        let mark_text = |text: &mut String, number: u32| *text = format!("<{number}>{text}");
        let mark_bits = |bits: &mut Vec<Bit>, number: &mut dyn FnMut() -> u32| {
            for bit in bits {
                match bit {
                    // A JSON result stays JSON: its call identifies it.
                    Bit::Text(text) if JSON_RESULTS.contains(&text.as_str()) => {}
                    Bit::Text(text) => mark_text(text, number()),
                    Bit::Blank(_) => {}
                    Bit::Picture(_, data) | Bit::Pdf(data) => *data = format!("{:08}", number()),
                    Bit::PictureAt(url) => *url = format!("https://a.example/{}.png", number()),
                }
            }
        };
        self.system.iter_mut().chain(&mut self.late_system).for_each(|text| mark_text(text, number()));
        for exchange in &mut self.exchanges {
            mark_bits(&mut exchange.question, &mut number);
            exchange.text.iter_mut().for_each(|text| mark_text(text, number()));
            for call in &mut exchange.calls {
                mark_bits(&mut call.result, &mut number);
                call.arguments.insert("number".to_owned(), number().into());
            }
            exchange.comment.iter_mut().for_each(|bits| mark_bits(bits, &mut number));
        }
        self.last.iter_mut().for_each(|bits| mark_bits(bits, &mut number));
        // Whitespace alone makes a conversation only in its own protocol.
        let first = self.exchanges.first_mut().map(|exchange| &mut exchange.question).or(self.last.as_mut());
        if let Some(bits) = first.filter(|bits| bits.iter().all(|bit| matches!(bit, Bit::Blank(_)))) {
            bits.push(Bit::Text("<0>".to_owned()));
        }
        // Without a question there is no conversation.
        if self.exchanges.is_empty() && self.last.is_none() {
            self.last = Some(vec![Bit::Text("<0>".to_owned())]);
        }
    }

    /// Whether the conversation opens with a call by the model, where the protocol allows that.
    pub(super) fn opens_with_call(&self) -> bool {
        let has_call = self.exchanges.first().is_some_and(|exchange| !exchange.calls.is_empty());
        has_call && !self.tools.is_empty() && self.other_form(50) && self.other_form(51)
    }

    /// Whether choice `number` picks the alternative form.
    pub(super) fn other_form(&self, number: u32) -> bool {
        self.forms >> (number % 64) & 1 == 1
    }
}
