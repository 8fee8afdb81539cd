//! A JSON value that grows as its text arrives. Every byte is read once, and the value grows in place: the work is linear in
//! the text, times the depth of the value, which is bounded.

use serde_json::{Map, Value};

/// Maximum depth of a value; that of the parser that reads the whole text.
const MAX_DEPTH: usize = 128;
/// Maximum number of values within the value, members and items at every depth included.
const MAX_VALUES: usize = 100_000;
/// Maximum length of the text, in bytes.
const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;

/// The value that the text so far begins. Strings grow; numbers and words appear once the next character shows that
/// they are complete, and members once they have a value. After a syntax error or beyond a bound, there is no value.
#[derive(Debug, Default)]
pub(crate) struct JsonPrefix {
    root: Option<Value>,
    /// The lists, objects and the string that are not closed yet, from the root inwards, by the way to what is open
    /// inside.
    open: Vec<OpenValue>,
    state: ParseState,
    values: usize,
    bytes: usize,
}

#[derive(Debug)]
enum OpenValue {
    List,
    Object {
        /// Of the newest member.
        name: String,
    },
}

/// What comes next.
#[derive(Debug, Default)]
enum ParseState {
    #[default]
    Value,
    /// After `[`: a value, or the end of the list.
    FirstItem,
    /// After `{`: a name, or the end of the object.
    FirstName,
    /// After a comma in an object.
    Name,
    /// More of a member's name, as written.
    InName {
        quoted: String,
        is_escaped: bool,
    },
    Colon,
    /// More of a string.
    InString(Escape),
    /// More of a number or a word.
    InWord(String),
    /// A comma, or an end.
    End,
    /// After the value: white space alone.
    Whole,
    /// There was a mistake.
    Broken,
}

/// How far an escape of a string has come.
#[derive(Debug, Default)]
struct Escape {
    /// From the backslash on.
    text: String,
    /// A high surrogate that waits for its low one.
    high: Option<u16>,
}

/// The text is not JSON, or a bound is reached.
struct Stop;

impl JsonPrefix {
    /// Reads on.
    pub(crate) fn push(&mut self, piece: &str) {
        self.bytes = self.bytes.saturating_add(piece.len());
        if self.bytes > MAX_TEXT_BYTES || self.read(piece).is_err() {
            *self = Self { state: ParseState::Broken, ..Self::default() };
        }
    }

    /// The value so far; none before it begins, and after a mistake.
    pub(crate) fn value(&self) -> Option<&Value> {
        self.root.as_ref()
    }

    /// The value, if the text ends here: none unless all of it is JSON.
    pub(crate) fn whole(&mut self) -> Option<&Value> {
        // White space shows that a number or a word is complete.
        if self.open.is_empty() && matches!(self.state, ParseState::InWord(_)) {
            self.push(" ");
        }
        self.root.as_ref().filter(|_| matches!(self.state, ParseState::Whole))
    }

    fn read(&mut self, mut rest: &str) -> Result<(), Stop> {
        while let Some(next) = rest.chars().next() {
            if let ParseState::InString(escape) = &mut self.state
                && escape.text.is_empty()
            {
                let end = rest.find(['"', '\\']).unwrap_or(rest.len());
                let is_lone = end > 0 && escape.high.take().is_some();
                let (run, after) = rest.split_at(end);
                rest = after;
                if is_lone {
                    self.append(REPLACEMENT)?;
                }
                self.append(run)?;
                match rest.chars().next() {
                    Some('"') => self.close_string()?,
                    Some(_) => self.escape('\\')?,
                    None => return Ok(()),
                }
                rest = &rest[1..];
                continue;
            }
            rest = &rest[next.len_utf8()..];
            self.take(next)?;
        }
        Ok(())
    }

    fn take(&mut self, next: char) -> Result<(), Stop> {
        let is_space = matches!(next, ' ' | '\t' | '\n' | '\r');
        match &mut self.state {
            ParseState::Broken => Err(Stop),
            ParseState::InString(_) => self.escape(next),
            ParseState::InName { quoted, is_escaped } => {
                quoted.push(next);
                let ends = next == '"' && !*is_escaped;
                *is_escaped = next == '\\' && !*is_escaped;
                if ends {
                    let named = serde_json::from_str(quoted).map_err(|_| Stop)?;
                    let Some(OpenValue::Object { name }) = self.open.last_mut() else { return Err(Stop) };
                    *name = named;
                    self.state = ParseState::Colon;
                }
                Ok(())
            }
            ParseState::InWord(word) => {
                if next.is_ascii_alphanumeric() || matches!(next, '.' | '+' | '-') {
                    word.push(next);
                    return if word.len() > MAX_WORD_BYTES { Err(Stop) } else { Ok(()) };
                }
                let value = serde_json::from_str(word).map_err(|_| Stop)?;
                self.place(value)?;
                self.state = self.after_value();
                self.take(next)
            }
            _ if is_space => Ok(()),
            ParseState::Colon if next == ':' => {
                self.state = ParseState::Value;
                Ok(())
            }
            ParseState::FirstItem if next == ']' => {
                self.close();
                Ok(())
            }
            ParseState::FirstName if next == '}' => {
                self.close();
                Ok(())
            }
            ParseState::Name | ParseState::FirstName if next == '"' => {
                self.state = ParseState::InName { quoted: "\"".to_owned(), is_escaped: false };
                Ok(())
            }
            ParseState::Value | ParseState::FirstItem => self.begin(next),
            ParseState::End => match (next, self.open.last()) {
                (',', Some(OpenValue::List)) => {
                    self.state = ParseState::Value;
                    Ok(())
                }
                (',', Some(OpenValue::Object { .. })) => {
                    self.state = ParseState::Name;
                    Ok(())
                }
                (']', Some(OpenValue::List)) | ('}', Some(OpenValue::Object { .. })) => {
                    self.close();
                    Ok(())
                }
                _ => Err(Stop),
            },
            ParseState::Colon | ParseState::Name | ParseState::FirstName | ParseState::Whole => Err(Stop),
        }
    }

    /// Begins a value.
    fn begin(&mut self, first: char) -> Result<(), Stop> {
        match first {
            '{' => {
                self.place(Value::Object(Map::new()))?;
                self.enter(OpenValue::Object { name: String::new() }, ParseState::FirstName)
            }
            '[' => {
                self.place(Value::Array(Vec::new()))?;
                self.enter(OpenValue::List, ParseState::FirstItem)
            }
            '"' => {
                self.place(Value::String(String::new()))?;
                self.state = ParseState::InString(Escape::default());
                Ok(())
            }
            _ if first.is_ascii_alphanumeric() || first == '-' => {
                self.state = ParseState::InWord(first.to_string());
                Ok(())
            }
            _ => Err(Stop),
        }
    }

    fn enter(&mut self, open: OpenValue, state: ParseState) -> Result<(), Stop> {
        if self.open.len() == MAX_DEPTH {
            return Err(Stop);
        }
        self.open.push(open);
        self.state = state;
        Ok(())
    }

    fn close(&mut self) {
        self.open.pop();
        self.state = self.after_value();
    }

    fn after_value(&self) -> ParseState {
        if self.open.is_empty() { ParseState::Whole } else { ParseState::End }
    }

    /// Puts a value where the next one belongs.
    fn place(&mut self, value: Value) -> Result<(), Stop> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(Stop);
        }
        let Some((newest, outer)) = self.open.split_last() else {
            self.root = Some(value);
            return Ok(());
        };
        match (newest, inside(&mut self.root, outer)) {
            (OpenValue::List, Some(Value::Array(items))) => items.push(value),
            (OpenValue::Object { name }, Some(Value::Object(members))) => {
                members.insert(name.clone(), value);
            }
            _ => return Err(Stop),
        }
        Ok(())
    }

    /// Adds to the string that is open.
    fn append(&mut self, text: &str) -> Result<(), Stop> {
        match inside(&mut self.root, &self.open) {
            Some(Value::String(string)) => {
                string.push_str(text);
                Ok(())
            }
            _ => Err(Stop),
        }
    }

    fn close_string(&mut self) -> Result<(), Stop> {
        let ParseState::InString(escape) = &mut self.state else { return Err(Stop) };
        if escape.high.take().is_some() {
            self.append(REPLACEMENT)?;
        }
        self.state = self.after_value();
        Ok(())
    }

    /// Takes a character of an escape.
    fn escape(&mut self, next: char) -> Result<(), Stop> {
        let ParseState::InString(Escape { text, high }) = &mut self.state else { return Err(Stop) };
        text.push(next);
        let unit = match text.as_bytes() {
            [_] | [_, b'u'] | [_, b'u', _] | [_, b'u', _, _] | [_, b'u', _, _, _] => return Ok(()),
            [_, b'u', ..] => Some(u16::from_str_radix(&text[2..], 16).map_err(|_| Stop)?),
            _ => None,
        };
        let decoded = match unit {
            None => serde_json::from_str(&format!("\"{text}\"")).map_err(|_| Stop)?,
            Some(low) if high.is_some() && is_low(low) => {
                String::from_utf16_lossy(&[high.take().unwrap_or_default(), low])
            }
            Some(unit) if is_high(unit) => String::new(),
            Some(unit) => String::from_utf16_lossy(&[unit]),
        };
        text.clear();
        // A high surrogate that no low one has followed.
        let lone = high.take().is_some();
        *high = unit.filter(|unit| is_high(*unit));
        if lone {
            self.append(REPLACEMENT)?;
        }
        self.append(&decoded)
    }
}

/// Maximum length of a number or a word, in bytes.
const MAX_WORD_BYTES: usize = 1024;
/// What stands for half of a character.
const REPLACEMENT: &str = "\u{FFFD}";

fn is_high(unit: u16) -> bool {
    (0xD800..0xDC00).contains(&unit)
}

fn is_low(unit: u16) -> bool {
    (0xDC00..0xE000).contains(&unit)
}

/// The newest value within the newest values of these.
fn inside<'v>(root: &'v mut Option<Value>, open: &[OpenValue]) -> Option<&'v mut Value> {
    open.iter().try_fold(root.as_mut()?, |value, step| match (step, value) {
        (OpenValue::List, Value::Array(items)) => items.last_mut(),
        (OpenValue::Object { name }, Value::Object(members)) => members.get_mut(name),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// The value after these pieces.
    fn after(pieces: &[&str]) -> Option<Value> {
        let mut prefix = JsonPrefix::default();
        for piece in pieces {
            prefix.push(piece);
        }
        prefix.value().cloned()
    }

    #[test]
    fn whole_value_is_that_of_a_text_that_is_json() {
        for text in ["{\"a\": [1, true]} ", "12", "\"x\"", "null"] {
            let mut prefix = JsonPrefix::default();
            prefix.push(text);
            assert_eq!(prefix.whole(), Some(&serde_json::from_str(text).expect("JSON")), "{text}");
        }
        for text in ["", " ", "{\"a\": 1", "\"x", "{}{", "tru", "[1,]"] {
            let mut prefix = JsonPrefix::default();
            prefix.push(text);
            assert_eq!(prefix.whole(), None, "{text}");
        }
    }

    #[test]
    fn partial_value_shows_what_has_arrived() {
        let steps = [
            (" \n", None),
            ("{", Some(json!({}))),
            ("\"na", Some(json!({}))),
            ("me\": ", Some(json!({}))),
            ("\"Os", Some(json!({"name": "Os"}))),
            ("lo\", \"size\": 71", Some(json!({"name": "Oslo"}))),
            ("7.5, \"old\": tr", Some(json!({"name": "Oslo", "size": 717.5}))),
            (
                "ue, \"rivers\": [{\"a\": [null,",
                Some(json!({"name": "Oslo", "size": 717.5, "old": true, "rivers": [{"a": [null]}]})),
            ),
            (
                "[]]}, \"x\"]",
                Some(json!({"name": "Oslo", "size": 717.5, "old": true, "rivers": [{"a": [null, []]}, "x"]})),
            ),
            (
                "}",
                Some(json!({"name": "Oslo", "size": 717.5, "old": true, "rivers": [{"a": [null, []]}, "x"]})),
            ),
        ];
        let mut prefix = JsonPrefix::default();
        for (piece, expected) in steps {
            prefix.push(piece);
            assert_eq!(prefix.value(), expected.as_ref(), "after {piece}");
        }
    }

    #[test]
    fn escape_appears_once_complete() {
        for (pieces, expected) in [
            (&["\"a\\", "n", "b\""][..], "a\nb"),
            (&["\"\\u00", "e9\""], "é"),
            (&["\"\\ud83d", "\\ude00\""], "😀"),
            (&["\"\\ud83d", "x\""], "\u{FFFD}x"),
            (&["\"\\ud83d\\n\""], "\u{FFFD}\n"),
            (&["\"\\ud83d\\ud83d\\ude00\""], "\u{FFFD}😀"),
            (&["\"\\ude00\""], "\u{FFFD}"),
            (&["\"\\ud83d\""], "\u{FFFD}"),
        ] {
            assert_eq!(after(pieces), Some(json!(expected)), "{pieces:?}");
        }
        assert_eq!(after(&["\"a\\u00"]), Some(json!("a")));
    }

    #[test]
    fn there_is_no_value_after_a_mistake() {
        for text in [
            "[1, x y",
            "[1, ]",
            "[1}",
            "[1 2",
            "[1, 01,",
            "[1, \"\\x",
            "[\"\\u00zz",
            "{name",
            "{\"a\" 1",
            "12 13",
            "[1] 2",
        ] {
            assert_eq!(after(&[text]), None, "{text}");
            assert_eq!(after(&[text, ", [3]"]), None, "{text}");
        }
        assert_eq!(after(&["12 "]), Some(json!(12)));
    }

    #[test]
    fn json_prefix_has_the_vector_value_in_any_chunking() {
        let path = format!("{}/../tests/vectors/structured/prefixes.json", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let vectors: Value = serde_json::from_str(&text).expect("a file of vectors");
        for case in vectors["cases"].as_array().expect("cases") {
            let text = case["text"].as_str().expect("a text");
            let expected = Some(&case["value"]).filter(|value| !value.is_null());
            assert_eq!(after(&[text]).as_ref(), expected, "{}", case["name"]);
            let mut prefix = JsonPrefix::default();
            for character in text.chars() {
                prefix.push(character.encode_utf8(&mut [0; 4]));
            }
            assert_eq!(prefix.value(), expected, "{}, character by character", case["name"]);
        }
    }

    #[test]
    fn depth_values_and_length_are_bounded() {
        assert!(after(&["[".repeat(MAX_DEPTH).as_str()]).is_some());
        assert_eq!(after(&["[".repeat(MAX_DEPTH + 1).as_str()]), None);
        let list = |items: usize| after(&[format!("[{}", "0,".repeat(items)).as_str()]);
        assert!(list(MAX_VALUES - 1).is_some());
        assert_eq!(list(MAX_VALUES), None);
        let mut long = JsonPrefix::default();
        long.push("\"");
        long.push(&"x".repeat(MAX_TEXT_BYTES - 1));
        assert!(long.value().is_some());
        long.push("x");
        assert_eq!(long.value(), None);
    }

    #[test]
    fn duplicate_member_has_its_latest_value() {
        let pieces = ["{\"a\": {\"b\": 1}, \"c\": 2, \"a\": {\"d\":", " \"e\"", "}}"];
        assert_eq!(after(&pieces), Some(json!({"a": {"d": "e"}, "c": 2})));
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,4}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_chunking_of_a_list_or_an_object_ends_in_its_value(value in values(), step in 1_usize..7) {
            let value = json!([value]);
            let text: Vec<char> = value.to_string().chars().collect();
            let mut prefix = JsonPrefix::default();
            for piece in text.chunks(step) {
                prefix.push(&piece.iter().collect::<String>());
            }
            prop_assert_eq!(prefix.value(), Some(&value));
        }
    }
}
