//! Strict JSON parser for reports: parses bytes to a tree with byte spans, or returns every reason why they are not
//! JSON.
//!
//! Most parsers accept documents that two parsers can understand differently: duplicate names, a byte order mark, lone
//! surrogates, NaN, numbers that overflow. This one rejects them and reports their positions. It copies only strings
//! with escapes. Its only knowledge of reports: objects that the checker is sure of need no tree; see `validate.rs`.

use std::borrow::Cow;

use crate::fast_path::ValidatedObjects;
use crate::finding::{Finding, NAMED_CHARS, pointer_of, quoted};
use crate::findings::Findings;
use crate::generated::checker::Object;
use crate::scan;
use crate::tree::{Member, Node, Number, Value};

/// Maximum nesting of arrays and objects. A report needs 5 levels.
///
/// ```
/// use gatewright_report::{MAX_DEPTH, validate};
///
/// let deep = MAX_DEPTH + 1;
/// let outcome = validate(format!("{}{}", "[".repeat(deep), "]".repeat(deep)).as_bytes());
/// assert_eq!(outcome.violations[0].rule, "depth");
/// ```
pub const MAX_DEPTH: usize = 128;

/// Objects up to this many members are searched for duplicate names pairwise, larger ones by sorting.
const PAIRWISE_MEMBERS: usize = 32;

/// Maximum length of the written form of one character of a name, in bytes: an escaped surrogate pair.
const MAX_ESCAPE_BYTES: usize = 12;

/// A fatal error: nothing after it can be parsed. The finding is already recorded.
struct Stop;

/// One step of the path from the root to the current location.
#[derive(Clone, Copy)]
enum Step {
    Item(usize),
    /// Span of the raw name, without quotes.
    Member(usize, usize),
}

struct Reader<'a, 'n> {
    text: &'a str,
    /// The length of the document in bytes, which may exceed the text's.
    bytes: usize,
    at: usize,
    path: Vec<Step>,
    /// Members and items of the objects and arrays being read, the innermost last: each gets a list of exact length when
    /// it ends.
    members: Vec<Member<'a>>,
    items: Vec<Node<'a>>,
    findings: Findings,
    /// The input continues after `text`, with bytes that are not UTF-8.
    cut: bool,
    sure: ValidatedObjects<'n>,
}

/// Reads one JSON document of at most `max_bytes`.
///
/// Errors: all findings up to the first fatal one, limited to the capacity of `findings`. Their rules are `size`,
/// `empty`, `encoding`, `syntax`, `number`, `duplicate_key`, `depth` and `trailing`.
pub(crate) fn read(bytes: &[u8], max_bytes: usize, findings: Findings) -> Result<Node<'_>, Findings> {
    read_unsure(bytes, max_bytes, findings, ValidatedObjects::new(None)).map(|(root, _)| root)
}

/// Like [`read`], but builds no tree for objects that the checker is sure of, and returns what the checker knows
/// of them.
pub(crate) fn read_unsure<'a, 'n>(
    bytes: &'a [u8],
    max_bytes: usize,
    mut findings: Findings,
    sure: ValidatedObjects<'n>,
) -> Result<(Node<'a>, ValidatedObjects<'n>), Findings> {
    if bytes.len() > max_bytes {
        let finding = Finding::new(String::new(), "size", format!("the document has {} bytes", bytes.len()));
        findings.push(0, finding.expected(format!("at most {max_bytes} bytes")));
        return Err(findings);
    }
    let (text, cut) = match std::str::from_utf8(bytes) {
        Ok(text) => (text, false),
        Err(error) => {
            let valid = &bytes[..error.valid_up_to()];
            (std::str::from_utf8(valid).expect("valid up to here"), true)
        }
    };
    let mut reader = Reader::new(text, findings, cut, sure);
    reader.bytes = bytes.len();
    match reader.document() {
        Ok(root) if reader.findings.is_empty() => Ok((root, reader.sure)),
        _ => Err(reader.findings),
    }
}

/// Whether a document is in fact the name of its file.
fn is_file_name(text: &str) -> bool {
    const MAX_NAME_BYTES: usize = 4096;
    text.len() <= MAX_NAME_BYTES
        && !text.contains(['{', '[', '"', '\n'])
        && [".json", ".ndjson", ".jsonl"].iter().any(|ending| text.ends_with(ending))
}

impl<'a, 'n> Reader<'a, 'n> {
    fn new(text: &'a str, findings: Findings, cut: bool, sure: ValidatedObjects<'n>) -> Self {
        let (path, members, items) = (Vec::new(), Vec::new(), Vec::new());
        Self { text, bytes: text.len(), at: 0, path, members, items, findings, cut, sure }
    }

    fn document(&mut self) -> Result<Node<'a>, Stop> {
        if self.text.starts_with('\u{feff}') {
            self.note(0, "encoding", || "the document starts with a byte order mark".to_owned());
            self.at = '\u{feff}'.len_utf8();
        }
        self.skip_space();
        if self.at == self.text.len() && !self.cut {
            return Err(self.stop(self.at, "empty", "the document is empty"));
        }
        let root = self.value()?;
        self.skip_space();
        if self.at < self.text.len() {
            return Err(self.stop(self.at, "trailing", "there is more after the end of the document"));
        }
        if self.cut {
            return Err(self.ended(""));
        }
        Ok(root)
    }

    fn value(&mut self) -> Result<Node<'a>, Stop> {
        let start = self.at;
        let value = match self.peek() {
            Some(b'{') => self.object()?,
            Some(b'[') => self.array()?,
            Some(b'"') => Value::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.literal("true", Value::Bool(true))?,
            Some(b'f') => self.literal("false", Value::Bool(false))?,
            Some(b'n') => self.literal("null", Value::Null)?,
            Some(b'N') if self.rest().starts_with("NaN") => self.not_a_number("NaN"),
            Some(b'I') if self.rest().starts_with("Infinity") => self.not_a_number("Infinity"),
            Some(_) => return Err(self.unexpected("a value")),
            None => return Err(self.ended("a value")),
        };
        Ok(Node::new(value, start, self.at))
    }

    fn object(&mut self) -> Result<Value<'a>, Stop> {
        self.enter()?;
        if let Some(value) = self.sure_object() {
            return Ok(value);
        }
        self.at += 1;
        let outer = self.members.len();
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(Vec::new()));
        }
        loop {
            let name_start = self.at;
            match self.peek() {
                Some(b'"') => {}
                Some(_) => return Err(self.unexpected("a name in double quotes")),
                None => return Err(self.ended("a name in double quotes")),
            }
            let name = self.string()?;
            self.path.push(Step::Member(name_start + 1, self.at - 1));
            self.skip_space();
            self.expect(b':', "`:`")?;
            self.skip_space();
            let node = self.value()?;
            self.path.pop();
            self.members.push(Member::new(name, name_start, node));
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                Some(_) => return Err(self.unexpected("`,` or `}`")),
                None => return Err(self.ended("`,` or `}`")),
            }
            self.skip_space();
        }
        self.at += 1;
        let members: Vec<Member<'a>> = self.members.drain(outer..).collect();
        self.find_duplicates(&members);
        Ok(Value::Object(members))
    }

    /// An object that the checker is sure of, if there is one here.
    fn sure_object(&mut self) -> Option<Value<'a>> {
        let object = match *self.path.as_slice() {
            [Step::Member(start, end)] => match self.text.get(start..end)? {
                "kit" => Object::Kit,
                "configuration" => Object::Configuration,
                "environment" => Object::Environment,
                _ => return None,
            },
            [Step::Member(start, end), Step::Item(_)] if self.text.get(start..end)? == "checks" => {
                Object::Check
            }
            _ => return None,
        };
        let (rest, left) = (self.text.as_bytes().get(self.at..)?, self.bytes - self.at);
        let (length, cell) = self.sure.read(object, rest, left)?;
        self.at += length;
        Some(Value::Sound(cell))
    }

    fn array(&mut self) -> Result<Value<'a>, Stop> {
        self.enter()?;
        self.at += 1;
        let outer = self.items.len();
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(Vec::new()));
        }
        loop {
            self.path.push(Step::Item(self.items.len() - outer));
            let item = self.value()?;
            self.items.push(item);
            self.path.pop();
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                Some(_) => return Err(self.unexpected("`,` or `]`")),
                None => return Err(self.ended("`,` or `]`")),
            }
            self.skip_space();
        }
        self.at += 1;
        Ok(Value::Array(self.items.drain(outer..).collect()))
    }

    fn enter(&mut self) -> Result<(), Stop> {
        if self.path.len() < MAX_DEPTH {
            return Ok(());
        }
        let message = format!("arrays and objects are nested more than {MAX_DEPTH} deep");
        Err(self.stop(self.at, "depth", message))
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Stop> {
        let text = self.text;
        let opening = self.at;
        self.at += 1;
        let mut from = self.at;
        let mut decoded = String::new();
        loop {
            match self.peek() {
                Some(b'"') => {
                    let tail = &text[from..self.at];
                    self.at += 1;
                    if from == opening + 1 {
                        return Ok(Cow::Borrowed(tail));
                    }
                    decoded.push_str(tail);
                    return Ok(Cow::Owned(decoded));
                }
                Some(b'\\') => {
                    decoded.push_str(&text[from..self.at]);
                    decoded.push(self.escape()?);
                    from = self.at;
                }
                Some(0..=0x1f) => {
                    return Err(self.stop(
                        self.at,
                        "syntax",
                        "a control character in a string is not escaped",
                    ));
                }
                Some(_) => self.at += scan::plain_length(&text.as_bytes()[self.at..]),
                None if self.cut => return Err(self.ended("")),
                None => return Err(self.ended("the closing `\"`")),
            }
        }
    }

    /// Parses one escape. A lone surrogate is recorded and becomes U+FFFD, so that parsing can continue.
    fn escape(&mut self) -> Result<char, Stop> {
        let start = self.at;
        let escaped = self.text.as_bytes().get(start + 1).copied();
        self.at += 2;
        Ok(match escaped {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.hex(start)?;
                if !(0xd800..0xe000).contains(&first) {
                    return Ok(char::from_u32(first).expect("four digits, no surrogate"));
                }
                if first < 0xdc00 && self.rest().starts_with("\\u") {
                    let second_start = self.at;
                    self.at += 2;
                    let second = self.hex(second_start)?;
                    if (0xdc00..0xe000).contains(&second) {
                        let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                        return Ok(char::from_u32(code).expect("a pair of surrogates is a character"));
                    }
                    self.at = second_start;
                }
                let written = &self.text[start..start + 6];
                self.note(start, "encoding", || format!("the escape {written} is a lone surrogate"));
                char::REPLACEMENT_CHARACTER
            }
            Some(_) => return Err(self.stop(start, "syntax", "`\\` starts no known escape")),
            None => {
                self.at = self.text.len();
                return Err(self.ended("an escape"));
            }
        })
    }

    /// Four hexadecimal digits at the current position, of an escape that starts at `start`.
    fn hex(&mut self, start: usize) -> Result<u32, Stop> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let code = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit)).map(|digits| {
            digits.iter().fold(0, |code, digit| {
                code * 16 + char::from(*digit).to_digit(16).expect("a hexadecimal digit")
            })
        });
        match code {
            Some(code) => {
                self.at += 4;
                Ok(code)
            }
            None => Err(self.stop(start, "syntax", "`\\u` needs four hexadecimal digits")),
        }
    }

    fn number(&mut self) -> Result<Value<'a>, Stop> {
        let text = self.text;
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
            if self.rest().starts_with("Infinity") {
                return Ok(self.not_a_number("Infinity"));
            }
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            Some(_) => return Err(self.unexpected("a digit")),
            None => return Err(self.ended("a digit")),
        }
        if matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.stop(start, "syntax", "a number starts with a needless 0"));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.some_digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits()?;
        }
        let number = Number::new(&text[start..self.at]);
        if !number.is_finite() {
            self.note(start, "number", || format!("the number {} is out of range", quoted(number.text())));
        }
        Ok(Value::Number(number))
    }

    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self) -> Result<(), Stop> {
        match self.peek() {
            Some(b'0'..=b'9') => {
                self.digits();
                Ok(())
            }
            Some(_) => Err(self.unexpected("a digit")),
            None => Err(self.ended("a digit")),
        }
    }

    /// NaN and the infinities, which some serialisers write: recorded, and replaced by null.
    fn not_a_number(&mut self, word: &'static str) -> Value<'a> {
        self.note(self.at, "number", || format!("{word} is not a JSON number"));
        self.at += word.len();
        Value::Null
    }

    fn literal(&mut self, word: &'static str, value: Value<'a>) -> Result<Value<'a>, Stop> {
        if self.rest().starts_with(word) {
            self.at += word.len();
            return Ok(value);
        }
        Err(self.unexpected("a value"))
    }

    /// Records every member with the name of an earlier one; names are compared unescaped.
    fn find_duplicates(&mut self, members: &[Member<'a>]) {
        let mut repeated: Vec<&Member<'a>> = Vec::new();
        if members.len() <= PAIRWISE_MEMBERS {
            for (index, member) in members.iter().enumerate() {
                if members[..index].iter().any(|earlier| earlier.name == member.name) {
                    repeated.push(member);
                }
            }
        } else {
            let mut sorted: Vec<&Member<'a>> = members.iter().collect();
            sorted.sort_by(|left, right| left.name.cmp(&right.name));
            for pair in sorted.windows(2) {
                if pair[0].name == pair[1].name {
                    repeated.push(pair[1]);
                }
            }
        }
        for member in repeated {
            if self.findings.wants(member.name_start()) {
                let message = format!("the name {} appears more than once", quoted(&member.name));
                let finding = Finding::new(self.pointer(), "duplicate_key", message);
                self.findings.push(member.name_start(), finding.property(&member.name));
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The text from here on. Call only at the start of a character.
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
            self.at += scan::spaces(&self.text.as_bytes()[self.at..]);
        }
    }

    fn expect(&mut self, byte: u8, name: &str) -> Result<(), Stop> {
        match self.peek() {
            Some(found) if found == byte => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(self.unexpected(name)),
            None => Err(self.ended(name)),
        }
    }

    fn unexpected(&mut self, expected: &str) -> Stop {
        let found = self.rest().chars().next().map(|found| quoted(found.encode_utf8(&mut [0; 4])));
        let found = found.unwrap_or_default();
        let hint = if is_file_name(self.text) {
            "; this is the name of a file: give its path as a path, or its content"
        } else {
            ""
        };
        let message = format!("found {found} where {expected} should be{hint}");
        let finding = Finding::new(self.pointer(), "syntax", message);
        self.put(self.at, finding.expected(expected.to_owned()).found(found));
        Stop
    }

    /// The text ended too early: at the end of the document, or of its valid UTF-8.
    fn ended(&mut self, expected: &str) -> Stop {
        if self.cut {
            return self.stop(self.text.len(), "encoding", "the document is not UTF-8 from here on");
        }
        let message = format!("the document ends where {expected} should be");
        let finding = Finding::new(self.pointer(), "syntax", message);
        self.put(self.text.len(), finding.expected(expected.to_owned()));
        Stop
    }

    fn stop(&mut self, offset: usize, rule: &'static str, message: impl Into<String>) -> Stop {
        self.put(offset, Finding::new(self.pointer(), rule, message.into()));
        Stop
    }

    /// Records a non-fatal finding, of which there may be any number.
    fn note(&mut self, offset: usize, rule: &'static str, message: impl FnOnce() -> String) {
        if self.findings.wants(offset) {
            let finding = Finding::new(self.pointer(), rule, message());
            self.findings.push(offset, finding);
        }
    }

    fn put(&mut self, offset: usize, finding: Finding) {
        if self.findings.wants(offset) {
            self.findings.push(offset, finding);
        }
    }

    /// JSON Pointer of the current location.
    fn pointer(&self) -> String {
        pointer_of(self.path.iter().map(|step| match *step {
            Step::Item(index) => Cow::Owned(index.to_string()),
            Step::Member(start, end) => self.name(start, end),
        }))
    }

    /// The beginning of the name with this raw span, up to the maximum length of a pointer. The name was already parsed
    /// once without a fatal error.
    fn name(&self, start: usize, end: usize) -> Cow<'a, str> {
        let end = end.min(self.text.floor_char_boundary(start + NAMED_CHARS * MAX_ESCAPE_BYTES));
        let raw = &self.text[start..end];
        if !raw.contains('\\') {
            return Cow::Borrowed(raw);
        }
        let mut again = Reader::new(&self.text[..end], Findings::new(1), false, ValidatedObjects::new(None));
        again.at = start;
        let mut name = String::new();
        while let Some(character) = again.rest().chars().next() {
            if character != '\\' {
                again.at += character.len_utf8();
                name.push(character);
            } else if let Ok(character) = again.escape() {
                name.push(character);
            } else {
                // The last escape is truncated.
                break;
            }
        }
        Cow::Owned(name)
    }
}
