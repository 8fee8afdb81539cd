//! The canonical form of a report: equal reports become equal bytes.
//!
//! Members are in schema order, followed by unknown members in document order. Indentation is two spaces per level,
//! with one newline at the end. Strings have only the escapes that JSON requires, and integers are written as digits.
//! Arrays keep their order and other numbers their spelling, so no information is lost.

use std::fmt::Write as _;

use serde_json::Value as Json;

use crate::tree::{Member, Node, Number, Value};

/// Maximum number of digits to write out for an integer; a larger one stays as written.
const MAX_DIGITS: usize = 30;

/// Writes a document in canonical form; returns nothing if that exceeds `most` bytes. `schema` determines the order of
/// members.
pub(crate) fn canonical(root: &Node<'_>, schema: &Json, most: usize) -> Option<String> {
    let mut writer = Writer { text: String::new(), schema, most };
    writer.value(root, schema, 0);
    writer.text.push('\n');
    (!writer.is_full()).then_some(writer.text)
}

struct Writer<'a> {
    text: String,
    schema: &'a Json,
    most: usize,
}

impl<'a> Writer<'a> {
    /// `place`: the part of the schema that describes the value; null if there is none.
    fn value(&mut self, node: &Node<'_>, place: &'a Json, level: usize) {
        if self.is_full() {
            return;
        }
        let place = self.resolved(place);
        match &node.value {
            Value::Null => self.text.push_str("null"),
            Value::Bool(boolean) => self.text.push_str(if *boolean { "true" } else { "false" }),
            Value::Number(number) => self.number(*number),
            Value::String(string) => self.string(string),
            // Never occurs: a document to be written is read into a complete tree.
            Value::Sound(_) => {}
            Value::Array(items) if items.is_empty() => self.text.push_str("[]"),
            Value::Array(items) => {
                self.text.push('[');
                for (index, item) in items.iter().enumerate() {
                    self.next_line(index, level + 1);
                    self.value(item, &place["items"], level + 1);
                }
                self.next_line(0, level);
                self.text.push(']');
            }
            Value::Object(members) if members.is_empty() => self.text.push_str("{}"),
            Value::Object(members) => {
                let known = place["properties"].as_object();
                let rank = |member: &Member<'_>| {
                    let position = known.and_then(|known| known.keys().position(|name| *name == member.name));
                    position.unwrap_or(usize::MAX)
                };
                let mut sorted: Vec<&Member<'_>> = members.iter().collect();
                // A stable sort: unknown members keep the order of the document.
                sorted.sort_by_cached_key(|member| rank(member));
                self.text.push('{');
                for (index, member) in sorted.into_iter().enumerate() {
                    self.next_line(index, level + 1);
                    self.string(&member.name);
                    self.text.push_str(": ");
                    self.value(&member.node, &place["properties"][&*member.name], level + 1);
                }
                self.next_line(0, level);
                self.text.push('}');
            }
        }
    }

    /// Whether the output already exceeds the limit, so that writing stops.
    fn is_full(&self) -> bool {
        self.text.len() > self.most
    }

    /// The target of a `$ref`.
    fn resolved(&self, place: &'a Json) -> &'a Json {
        match place["$ref"].as_str().and_then(|reference| self.schema.pointer(reference.strip_prefix('#')?)) {
            Some(target) => target,
            None => place,
        }
    }

    fn next_line(&mut self, index: usize, level: usize) {
        if self.is_full() {
            return;
        }
        self.text.push_str(if index > 0 { ",\n" } else { "\n" });
        self.text.push_str(&"  ".repeat(level));
    }

    fn number(&mut self, number: Number<'_>) {
        match number.as_integer() {
            Some(integer) if integer.to_string().len() <= MAX_DIGITS => {
                write!(self.text, "{integer}").expect("writing to a string succeeds");
            }
            _ => self.text.push_str(number.text()),
        }
    }

    fn string(&mut self, string: &str) {
        self.text.push_str(&serde_json::to_string(string).expect("strings serialize"));
    }
}
