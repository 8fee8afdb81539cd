//! What validation finds: violations and advisories, each with its place in the document.

use std::borrow::Cow;

use serde::Serialize;

use super::rules::Rule;
use crate::visible::visible;

/// Longest text of a report that is kept of many reports, or written once more for each row of what is made of it, in
/// code points.
const BRIEF_CHARS: usize = 1000;

/// Section of the specification that describes the report.
pub(super) const SECTION: &str = "2.12";
/// Section given to rules that the specification does not state.
pub(super) const OURS: &str = "ours";

/// Longest excerpt of the document that a message quotes, in code points.
const QUOTED_CHARS: usize = 64;
/// Longest pointer and longest name that a finding holds, in code points: those of a report are far shorter.
pub(super) const NAMED_CHARS: usize = 256;

/// One thing wrong with a document, and where.
///
/// Serialised, this is the form that the program, Python and Node give out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Violation {
    /// JSON Pointer of the value at fault; of the object, where a property is missing or unknown. One of more than
    /// 256 code points is cut and ends in `…`.
    pub pointer: String,
    /// Line of the value, or of the name of an unknown or repeated property; from 1.
    pub line: usize,
    /// Column there, in code points; from 1.
    pub column: usize,
    /// The JSON Schema keyword that failed. For a document that does not parse: `size`, `empty`,
    /// `encoding`, `syntax`, `number`, `duplicate_key`, `depth` or `trailing`. For an advisory: `tally`,
    /// `layer`, `model_access`, `duplicate_cell`, `userinfo` or `unsafe_integer`.
    pub rule: &'static str,
    /// The property that is missing, unknown or repeated; cut as the pointer is.
    pub property: Option<String>,
    /// What should stand there, in words.
    pub expected: Option<String>,
    /// What stands there: the document's own text, cut to 64 characters.
    pub found: Option<String>,
    /// One line for people: place, what is wrong, section.
    pub message: String,
    /// Section of the specification the rule comes from; `ours` for a rule it does not state.
    pub section: &'static str,
    /// Byte of the document at which it is.
    #[serde(skip)]
    pub(super) offset: usize,
}

/// A violation that has no place yet.
#[derive(Debug)]
pub(super) struct Finding {
    pointer: String,
    rule: &'static str,
    property: Option<String>,
    expected: Option<String>,
    found: Option<String>,
    message: String,
    section: &'static str,
}

impl Finding {
    /// `message` says what is wrong, without place or section; the section is the rule's.
    pub(super) fn new(pointer: String, rule: &'static str, message: String) -> Self {
        let section = Rule::named(rule).map_or(SECTION, |rule| rule.section);
        Self { pointer, rule, property: None, expected: None, found: None, message, section }
    }

    pub(super) fn property(mut self, property: &str) -> Self {
        self.property = Some(cut(property, NAMED_CHARS).into_owned());
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

/// Gives findings, which are in document order, their lines and columns, in one pass over the document.
pub(super) fn place(findings: Vec<(usize, Finding)>, document: &[u8]) -> Vec<Violation> {
    let mut cursor = Cursor { document, offset: 0, line: 1, column: 1 };
    findings
        .into_iter()
        .map(|(offset, finding)| {
            cursor.advance(offset);
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
                offset,
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

/// JSON Pointer made of unescaped steps, cut to what a finding holds. Steps past the cut are not looked at.
pub(super) fn pointer_of<'a>(steps: impl Iterator<Item = Cow<'a, str>>) -> String {
    let mut pointer = String::new();
    let mut room = NAMED_CHARS;
    for step in steps {
        let characters = step.chars().flat_map(|character| match character {
            '~' => ['~', '0'].into_iter().take(2),
            '/' => ['~', '1'].into_iter().take(2),
            other => [other, ' '].into_iter().take(1),
        });
        for character in std::iter::once('/').chain(characters) {
            if room == 0 {
                pointer.push(CUT);
                return pointer;
            }
            pointer.push(character);
            room -= 1;
        }
    }
    pointer
}

/// Stands where text was cut.
pub(super) const CUT: char = '…';

/// The text, or its beginning and a mark if it has more code points than that.
pub(super) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}{CUT}", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// The text, cut to what may be repeated.
pub(super) fn brief(text: &str) -> Cow<'_, str> {
    cut(text, BRIEF_CHARS)
}

/// An excerpt of the document for a message, in double quotes.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", excerpt(text))
}

/// An excerpt of the document for a message: cut to a bearable length, and with nothing in it that a
/// terminal acts on.
pub(super) fn excerpt(text: &str) -> String {
    visible(&cut(text, QUOTED_CHARS)).into_owned()
}
