//! Writes conversations in each protocol, as its strict providers accept them.

mod chat;
mod messages;
mod native;
mod responses;

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::plan::{Bit, Plan};
use crate::conversation::Protocol;

/// A request, and what it says.
#[derive(Debug, Clone)]
pub(super) struct Legal {
    pub(super) body: Value,
    pub(super) content: RequestContent,
}

/// What a request says, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestContent {
    pub(super) system: Vec<String>,
    /// By the user and the model.
    pub(super) texts: Vec<String>,
    pub(super) calls: Vec<ExpectedCall>,
    /// Data and URLs of images.
    pub(super) pictures: Vec<String>,
    /// Data of other media.
    pub(super) files: Vec<String>,
    pub(super) tools: Vec<String>,
}

#[derive(Debug, Clone)]
pub(super) struct ExpectedCall {
    pub(super) name: String,
    /// The text, for a custom tool.
    pub(super) input: Value,
    /// Texts that the result contains.
    pub(super) result: Vec<String>,
}

/// Writes a conversation.
pub(super) fn write(protocol: Protocol, plan: &Plan) -> Legal {
    let mut writer = Writer::new(protocol, plan);
    let body = match protocol {
        Protocol::Chat => chat::write(plan, &mut writer),
        Protocol::Responses => responses::write(plan, &mut writer),
        Protocol::Messages => messages::write(plan, &mut writer),
        Protocol::Native => native::write(plan, &mut writer),
        Protocol::Converse | Protocol::External(_) => unreachable!("no client speaks it"),
    };
    Legal { body, content: writer.content }
}

/// What all protocols need in order to write a conversation.
struct Writer {
    protocol: Protocol,
    /// Tool names as the protocol accepts them.
    names: Vec<String>,
    ids: HashSet<String>,
    content: RequestContent,
}

impl Writer {
    fn new(protocol: Protocol, plan: &Plan) -> Self {
        let mut names: Vec<String> = Vec::new();
        for (index, tool) in plan.tools.iter().enumerate() {
            let mut name = legal_name(protocol, &tool.name);
            while names.contains(&name) {
                name = legal_name(protocol, &format!("n{index}{name}"));
            }
            names.push(name);
        }
        let content = RequestContent { tools: names.clone(), ..RequestContent::default() };
        Self { protocol, names, ids: HashSet::new(), content }
    }

    /// An id that the protocol accepts: unique where required.
    fn id(&mut self, raw: &str) -> String {
        let (longest, is_unique) = match self.protocol {
            Protocol::Chat => (40, false),
            Protocol::Responses => (64, true),
            Protocol::Messages => (100, true),
            Protocol::Native | Protocol::Converse | Protocol::External(_) => (100, false),
        };
        let is_right =
            |c: &char| self.protocol != Protocol::Messages || c.is_ascii_alphanumeric() || "_-".contains(*c);
        let mut id: String = raw.chars().filter(is_right).take(longest).collect();
        let mut number = 0;
        while id.is_empty() || (is_unique && self.ids.contains(&id)) {
            number += 1;
            id = format!("call_{number}");
        }
        self.ids.insert(id.clone());
        id
    }

    fn text(&mut self, text: &str) -> Value {
        self.content.texts.push(text.to_owned());
        text.into()
    }

    /// Records what the user's pieces say.
    fn note_content(&mut self, bits: &[Bit]) {
        for bit in bits {
            match bit {
                Bit::Text(text) => self.content.texts.push(text.clone()),
                Bit::Blank(_) => {}
                other => self.say_medium(other),
            }
        }
    }

    fn say_medium(&mut self, bit: &Bit) {
        match bit {
            Bit::Picture(_, data) => self.content.pictures.push(data.clone()),
            Bit::PictureAt(url) => self.content.pictures.push(url.clone()),
            Bit::Pdf(data) => self.content.files.push(data.clone()),
            Bit::Text(_) | Bit::Blank(_) => {}
        }
    }

    /// Records a call with its result.
    fn call(&mut self, tool: usize, input: Value, result: &[Bit]) {
        let texts = result.iter().filter_map(|bit| match bit {
            Bit::Text(text) => Some(text.clone()),
            _ => None,
        });
        let call = ExpectedCall { name: self.names[tool].clone(), input, result: texts.collect() };
        self.content.calls.push(call);
        for bit in result {
            self.say_medium(bit);
        }
    }
}

/// A name that the protocol accepts.
fn legal_name(protocol: Protocol, raw: &str) -> String {
    let (longest, more) = match protocol {
        Protocol::Chat => (64, ""),
        Protocol::Responses | Protocol::Messages => (128, ""),
        Protocol::Native | Protocol::Converse | Protocol::External(_) => (64, ".:"),
    };
    let is_right = |c: &char| c.is_ascii_alphanumeric() || "_-".contains(*c) || more.contains(*c);
    let mut name: String = raw.chars().filter(is_right).take(longest).collect();
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    if name.is_empty() || (protocol == Protocol::Native && !name.starts_with(is_first)) {
        name = format!("_{name}").chars().take(longest).collect();
    }
    name
}

/// An object of the fields that have a value.
fn object<const COUNT: usize>(members: [(&str, Option<Value>); COUNT]) -> Map<String, Value> {
    let there = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    there.collect()
}

/// A tenth of a number, in decimal.
fn tenths(number: u8) -> Value {
    (f64::from(number) / 10.0).into()
}

/// A schema whose objects have properties, as chat and responses require at the top level.
fn with_properties(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if schema["properties"].is_null() {
        schema["properties"] = Value::Object(Map::new());
    }
    schema
}

/// Whether a schema may be strict in messages.
fn is_closed(schema: &Value) -> bool {
    schema["additionalProperties"] == false
}

/// Whether a schema may be strict in chat and responses.
fn is_complete(schema: &Value) -> bool {
    let count = |value: &Value| value.as_object().map_or(0, Map::len);
    is_closed(schema) && schema["required"].as_array().map_or(0, Vec::len) == count(&schema["properties"])
}

/// A schema whose references have only a description beside them, as native requires.
fn with_bare_references(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let is_reference = members.contains_key("$ref");
            let stays = |name: &str| !is_reference || matches!(name, "$ref" | "description");
            let kept = members.iter().filter(|(name, _)| stays(name));
            kept.map(|(name, value)| (name.clone(), with_bare_references(value))).collect()
        }
        Value::Array(items) => items.iter().map(with_bare_references).collect(),
        other => other.clone(),
    }
}
