//! What validation finds: violations and advisories, each with its place in the document.

use std::borrow::Cow;

use serde::Serialize;

use crate::visible::visible;

/// Section of the specification that describes the report.
pub(super) const SECTION: &str = "2.12";
/// Section given to rules that the specification does not state.
pub(super) const OURS: &str = "ours";

/// Longest excerpt of the document that a message quotes, in code points.
const QUOTED_CHARS: usize = 64;

/// One thing wrong with a document, and where.
///
/// Serialised, this is the form that the program, Python and Node give out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Violation {
    /// JSON Pointer of the value at fault; of the object, where a property is missing or unknown.
    pub pointer: String,
    /// Line of the value, or of the name of an unknown or repeated property; from 1.
    pub line: usize,
    /// Column there, in code points; from 1.
    pub column: usize,
    /// The JSON Schema keyword that failed. For a document that does not parse: `size`, `empty`,
    /// `encoding`, `syntax`, `number`, `duplicate_key`, `depth` or `trailing`. For an advisory: `tally`,
    /// `layer`, `model_access`, `duplicate_cell`, `userinfo` or `unsafe_integer`.
    pub rule: &'static str,
    /// The property that is missing, unknown or repeated.
    pub property: Option<String>,
    /// What should stand there, in words.
    pub expected: Option<String>,
    /// What stands there: the document's own text, cut to 64 characters.
    pub found: Option<String>,
    /// One line for people: place, what is wrong, section.
    pub message: String,
    /// Section of the specification the rule comes from; `ours` for a rule it does not state.
    pub section: &'static str,
}

/// A violation that still has its byte offset and not its line and column.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) offset: usize,
    pointer: String,
    rule: &'static str,
    property: Option<String>,
    expected: Option<String>,
    found: Option<String>,
    message: String,
    section: &'static str,
}

impl Finding {
    /// `message` says what is wrong, without place or section.
    pub(super) fn new(offset: usize, pointer: String, rule: &'static str, message: String) -> Self {
        Self { offset, pointer, rule, property: None, expected: None, found: None, message, section: SECTION }
    }

    pub(super) fn property(mut self, property: String) -> Self {
        self.property = Some(property);
        self
    }

    pub(super) fn expected(mut self, expected: String) -> Self {
        self.expected = Some(expected);
        self
    }

    pub(super) fn found(mut self, found: String) -> Self {
        self.found = Some(found);
        self
    }

    pub(super) fn section(mut self, section: &'static str) -> Self {
        self.section = section;
        self
    }
}

/// Sorts findings into document order and gives them lines and columns, in one pass over the document.
pub(super) fn place(mut findings: Vec<Finding>, document: &[u8]) -> Vec<Violation> {
    findings.sort_by_key(|finding| finding.offset);
    let mut cursor = Cursor { document, offset: 0, line: 1, column: 1 };
    findings
        .into_iter()
        .map(|finding| {
            cursor.advance(finding.offset);
            let place = match finding.pointer.as_str() {
                "" => String::new(),
                pointer => format!("{}: ", visible(pointer)),
            };
            Violation {
                message: format!("{place}{} ({})", finding.message, finding.section),
                pointer: finding.pointer,
                line: cursor.line,
                column: cursor.column,
                rule: finding.rule,
                property: finding.property,
                expected: finding.expected,
                found: finding.found,
                section: finding.section,
            }
        })
        .collect()
}

struct Cursor<'a> {
    document: &'a [u8],
    offset: usize,
    line: usize,
    column: usize,
}

impl Cursor<'_> {
    /// Moves on to `offset`. A line ends at `\n`, `\r\n` or `\r`.
    fn advance(&mut self, offset: usize) {
        for at in self.offset..offset.min(self.document.len()) {
            match self.document[at] {
                b'\n' => (self.line, self.column) = (self.line + 1, 1),
                b'\r' if self.document.get(at + 1) != Some(&b'\n') => {
                    (self.line, self.column) = (self.line + 1, 1);
                }
                // The bytes of a character after its first do not count.
                0x80..=0xbf => {}
                _ => self.column += 1,
            }
        }
        self.offset = self.offset.max(offset);
    }
}

/// JSON Pointer made of unescaped steps.
pub(super) fn pointer_of<'a>(steps: impl Iterator<Item = Cow<'a, str>>) -> String {
    let mut pointer = String::new();
    for step in steps {
        pointer.push('/');
        pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
    }
    pointer
}

/// An excerpt of the document for a message, in double quotes.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", excerpt(text))
}

/// An excerpt of the document for a message: cut to a bearable length, and with nothing in it that a
/// terminal acts on.
pub(super) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", visible(&text[..end])),
        None => visible(text).into_owned(),
    }
}
