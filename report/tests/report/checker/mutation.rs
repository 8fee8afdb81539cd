//! Reports, changed and written in other ways.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

/// Choices derived from a seed.
pub(crate) struct Choices(u64);

impl Choices {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).expect("31 bits") % limit.max(1)
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}

/// The document with up to three changes, written with different white space and escapes, and sometimes a broken byte.
pub(crate) fn written(document: &[u8], choices: &mut Choices) -> Vec<u8> {
    let mut value: Value = serde_json::from_slice(document).expect("a valid report is JSON");
    for _ in 0..choices.below(4) {
        change(&mut value, choices);
    }
    let mut writer = Writer { text: String::new(), spaced: choices.below(4), odd: choices.one_in(8) };
    writer.value(&value, 0, choices);
    let mut bytes = writer.text.into_bytes();
    if choices.one_in(4) {
        damage(&mut bytes, choices);
    }
    bytes
}

/// Changes something somewhere in the value.
fn change(value: &mut Value, choices: &mut Choices) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let name = choices.of(&members.keys().cloned().collect::<Vec<_>>());
            match choices.below(12) {
                0 => drop(members.shift_remove(&name)),
                1 => *members = shuffled(members, choices),
                2 => drop(members.insert(choices.of(NAMES).to_owned(), other(choices))),
                3 => members[&name] = other(choices),
                _ => change(&mut members[&name], choices),
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let index = choices.below(items.len());
            match choices.below(6) {
                0 => drop(items.remove(index)),
                1 => items.push(items[index].clone()),
                2 => items.swap(0, index),
                _ => change(&mut items[index], choices),
            }
        }
        _ => *value = other(choices),
    }
}

const NAMES: &[&str] =
    &["reason", "error", "usage", "model", "status", "signal", "", "id ", "checks", "timed_out", "layer"];

/// A value that fits somewhere, or nowhere.
fn other(choices: &mut Choices) -> Value {
    let long = "é".repeat(2001);
    choices.of(&[
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(-1),
        json!(1),
        json!(599),
        json!(600),
        json!(5000),
        json!(1.5),
        json!(9_007_199_254_740_993_u64),
        json!(""),
        json!("pass"),
        json!("fail"),
        json!("skip"),
        json!("api"),
        json!("agent"),
        json!("model-sol"),
        json!("model-luna"),
        json!("model_access"),
        json!("agent_cli_smoke"),
        json!("/"),
        json!("v1"),
        json!("one-model"),
        json!("2024-02-29T23:59:59.5+01:00"),
        json!("2023-02-29T23:59:60Z"),
        json!("http://h:80/x"),
        json!("http://u@h"),
        json!("a \"quoted\" \u{1f600} text\nof lines"),
        json!(long),
        json!([]),
        json!({}),
        json!(["a", "b", "a"]),
        json!({"category": "c", "code": null, "message": "m", "param": null, "type": "t"}),
        json!({"x-request-id": "r"}),
    ])
}

fn shuffled(members: &Map<String, Value>, choices: &mut Choices) -> Map<String, Value> {
    let mut all: Vec<_> = members.clone().into_iter().collect();
    for index in (1..all.len()).rev() {
        all.swap(index, choices.below(index + 1));
    }
    all.into_iter().collect()
}

/// Writes JSON.
struct Writer {
    text: String,
    /// How much white space is written.
    spaced: usize,
    /// Whether to write repeated names, escapes in names, and numbers such as `1e0`.
    odd: bool,
}

impl Writer {
    fn value(&mut self, value: &Value, depth: usize, choices: &mut Choices) {
        match value {
            Value::Object(members) => {
                self.text.push('{');
                for (index, (name, value)) in members.iter().enumerate() {
                    self.separate(index, depth + 1, choices);
                    self.string(name, self.odd && choices.one_in(32), choices);
                    self.space(choices);
                    self.text.push(':');
                    self.space(choices);
                    self.value(value, depth + 1, choices);
                    if self.odd && choices.one_in(64) {
                        self.text.push(',');
                        self.string(name, choices.one_in(2), choices);
                        self.text.push(':');
                        self.value(value, depth + 1, choices);
                    }
                }
                self.line(depth, choices);
                self.text.push('}');
            }
            Value::Array(items) => {
                self.text.push('[');
                for (index, item) in items.iter().enumerate() {
                    self.separate(index, depth + 1, choices);
                    self.value(item, depth + 1, choices);
                }
                self.line(depth, choices);
                self.text.push(']');
            }
            Value::String(string) => self.string(string, choices.one_in(64), choices),
            Value::Number(number) => {
                self.text.push_str(&number.to_string());
                if self.odd && choices.one_in(16) {
                    self.text.push_str(choices.of(&[".0", "e0", "E+0", "e1"]));
                }
            }
            Value::Bool(_) | Value::Null => self.text.push_str(&value.to_string()),
        }
    }

    fn separate(&mut self, index: usize, depth: usize, choices: &mut Choices) {
        if index > 0 {
            self.space(choices);
            self.text.push(',');
        }
        self.line(depth, choices);
    }

    fn line(&mut self, depth: usize, choices: &mut Choices) {
        match self.spaced {
            0 => {}
            1 => self.space(choices),
            2 => {
                self.text.push('\n');
                self.text.push_str(&"  ".repeat(depth));
            }
            _ => {
                self.text.push_str("\r\n");
                self.text.push_str(&"\t".repeat(depth));
            }
        }
    }

    fn space(&mut self, choices: &mut Choices) {
        match self.spaced {
            0 => {}
            1 => self.text.push_str(choices.of(&["", " ", "\n\n", "\t ", "                 "])),
            _ => self.text.push_str(choices.of(&["", " "])),
        }
    }

    /// A string. With `escaped`, one of its characters is written as an unnecessary escape.
    fn string(&mut self, string: &str, escaped: bool, choices: &mut Choices) {
        let at = choices.below(string.chars().count());
        self.text.push('"');
        for (index, character) in string.chars().enumerate() {
            let whole = Value::from(character.to_string()).to_string();
            if escaped && index == at {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(self.text, "\\u{unit:04x}").expect("writing to a string succeeds");
                }
            } else {
                self.text.push_str(&whole[1..whole.len() - 1]);
            }
        }
        self.text.push('"');
    }
}

/// Flips, inserts, removes or truncates bytes.
fn damage(bytes: &mut Vec<u8>, choices: &mut Choices) {
    let at = choices.below(bytes.len());
    match choices.below(5) {
        0 => bytes[at] ^= 1 << choices.below(8),
        1 => bytes.insert(at, choices.of(b"\"\\{}[]:, 0-e\n\x0c\xff\x00")),
        2 => drop(bytes.remove(at)),
        3 => bytes.truncate(at),
        _ => bytes.push(choices.of(b" \n\x0c}x\x00")),
    }
}
