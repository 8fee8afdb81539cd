//! Findings of validation: violations and advisories, each with its location in the document.

use std::borrow::Cow;

use serde::Serialize;

use crate::rules::{Rule, SECTION};
use gatewright_safe::visible::visible;

/// Maximum length of a report's text that is kept for many reports or repeated in each row of an output, in code
/// points.
const BRIEF_CHARS: usize = 1000;

/// Maximum length of an excerpt of the document in a message, in code points.
const QUOTED_CHARS: usize = 64;
/// Maximum length of a pointer or name in a finding, in code points: those of a report are far shorter.
pub(crate) const NAMED_CHARS: usize = 256;

/// Most pointers are no longer than this, in bytes.
const USUAL_POINTER: usize = 32;

/// A problem in a document, and its location.
///
/// Its serialised form is the one that the program, Python and Node return.
///
/// ```
/// let outcome = gatewright_report::validate(b"{\n  \"kit\": 1,\n  \"kit\": 2\n}");
/// let violation = &outcome.violations[0];
/// assert_eq!((violation.line, violation.column), (3, 3));
/// println!("{}: {}", violation.pointer, violation.message);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Violation {
    /// JSON Pointer of the invalid value; for a missing or unknown property, of its object. A pointer longer than 256
    /// code points is truncated and ends in `…`.
    pub pointer: String,
    /// Line of the value, or of the name of an unknown or repeated property; from 1.
    pub line: usize,
    /// Column there, in code points; from 1.
    pub column: usize,
    /// The JSON Schema keyword that failed. For a document that does not parse: `size`, `empty`,
    /// `encoding`, `syntax`, `number`, `duplicate_key`, `depth` or `trailing`. For an advisory: `tally`,
    /// `layer`, `model_access`, `duplicate_cell`, `userinfo` or `unsafe_integer`.
    pub rule: &'static str,
    /// The property that is missing, unknown or repeated; truncated like the pointer.
    pub property: Option<String>,
    /// The expected value, in words.
    pub expected: Option<String>,
    /// The actual value: the document's own text, truncated to 64 characters.
    pub found: Option<String>,
    /// One line for people: location and problem.
    pub message: String,
    /// Section of the specification the rule comes from; `ours` for a rule it does not state.
    pub section: &'static str,
    /// Byte offset in the document.
    #[serde(skip)]
    pub(crate) offset: usize,
}

/// A violation without a location yet.
#[derive(Debug)]
pub(crate) struct Finding {
    pointer: String,
    rule: &'static str,
    property: Option<String>,
    expected: Option<String>,
    found: Option<String>,
    message: String,
    section: &'static str,
}

impl Finding {
    /// `message` states the problem, without location or section; the section is that of the rule.
    pub(crate) fn new(pointer: String, rule: &'static str, message: String) -> Self {
        let section = Rule::named(rule).map_or(SECTION, |rule| rule.section);
        Self { pointer, rule, property: None, expected: None, found: None, message, section }
    }

    pub(crate) fn property(mut self, property: &str) -> Self {
        self.property = Some(cut(property, NAMED_CHARS).into_owned());
        self
    }

    pub(crate) fn expected(mut self, expected: String) -> Self {
        self.expected = Some(expected);
        self
    }

    pub(crate) fn found(mut self, found: String) -> Self {
        self.found = Some(found);
        self
    }

    pub(crate) fn section(mut self, section: &'static str) -> Self {
        self.section = section;
        self
    }
}

/// Sets the lines and columns of findings, which are in document order, in one pass over the document.
pub(crate) fn place(findings: Vec<(usize, Finding)>, document: &[u8]) -> Vec<Violation> {
    let mut cursor = Cursor { document, offset: 0, line: 1, column: 1 };
    findings
        .into_iter()
        .map(|(offset, finding)| {
            cursor.advance(offset);
            let place = match visible(&finding.pointer) {
                Cow::Borrowed("") => Cow::Borrowed(""),
                pointer => pointer + ": ",
            };
            Violation {
                message: [&*place, &*finding.message].concat(),
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

/// The lines of offsets in ascending order.
pub(crate) fn lines(document: &[u8], offsets: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut cursor = Cursor { document, offset: 0, line: 1, column: 1 };
    let line = |offset| {
        cursor.advance(offset);
        cursor.line
    };
    offsets.map(line).collect()
}

struct Cursor<'a> {
    document: &'a [u8],
    offset: usize,
    line: usize,
    column: usize,
}

impl Cursor<'_> {
    /// Advances to `offset`. A line ends at `\n`, `\r\n` or `\r`.
    fn advance(&mut self, offset: usize) {
        let end = offset.min(self.document.len());
        let Some(passed) = self.document.get(self.offset..end) else { return };
        let mut start = self.offset;
        if memchr::memchr(b'\r', passed).is_none() {
            if let Some(last) = memchr::memrchr(b'\n', passed) {
                self.line += memchr::memchr_iter(b'\n', passed).count();
                (self.column, start) = (1, start + last + 1);
            }
        } else {
            for at in memchr::memchr2_iter(b'\n', b'\r', passed).map(|at| self.offset + at) {
                if self.document[at] == b'\n' || self.document.get(at + 1) != Some(&b'\n') {
                    (self.line, self.column, start) = (self.line + 1, 1, at + 1);
                }
            }
        }
        // Continuation bytes of a character do not count.
        let begins = |byte: &&u8| !(0x80..=0xbf).contains(*byte);
        self.column += self.document[start..end].iter().filter(begins).count();
        self.offset = end;
    }
}

/// JSON Pointer from unescaped steps, truncated to the maximum length of a finding. Ignores steps after that.
pub(crate) fn pointer_of<'a>(steps: impl Iterator<Item = Cow<'a, str>>) -> String {
    let mut pointer = String::with_capacity(USUAL_POINTER);
    let mut room = NAMED_CHARS;
    for step in steps {
        // A long name is not looked at to its end.
        let fits = step.len() < room;
        if fits && step.is_ascii() && !step.contains(['~', '/']) {
            pointer.push('/');
            pointer.push_str(&step);
            room -= 1 + step.len();
            continue;
        }
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

/// Marks truncated text.
pub(crate) const CUT: char = '…';

/// The text, or its beginning and a mark if it has more code points than the limit.
pub(crate) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}{CUT}", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// The text, truncated to the length that may be repeated.
pub(crate) fn brief(text: &str) -> Cow<'_, str> {
    cut(text, BRIEF_CHARS)
}

/// `1 report`, `2 reports`, `2 addresses`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let ending = match (count, noun.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{count} {noun}{ending}")
}

/// An excerpt of the document for a message, in double quotes.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", excerpt(text))
}

/// An excerpt of the document for a message: truncated, and without terminal control characters.
pub(crate) fn excerpt(text: &str) -> String {
    visible(&cut(text, QUOTED_CHARS)).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Line and column of an offset, one byte after the other.
    fn counted(document: &[u8], offset: usize) -> (usize, usize) {
        let (mut line, mut column) = (1, 1);
        for at in 0..offset.min(document.len()) {
            match document[at] {
                b'\n' => (line, column) = (line + 1, 1),
                b'\r' if document.get(at + 1) != Some(&b'\n') => (line, column) = (line + 1, 1),
                0x80..=0xbf => {}
                _ => column += 1,
            }
        }
        (line, column)
    }

    #[test]
    fn counts_use_singular_or_plural() {
        let counts = [(1, "report"), (0, "report"), (1, "address"), (2, "address")];
        let counts = counts.map(|(count, noun)| super::counted(count, noun));
        assert_eq!(counts, ["1 report", "0 reports", "1 address", "2 addresses"]);
    }

    proptest! {
        #[test]
        fn incremental_positions_match_recounting(text in "[a\r\né😀]{0,20}", mut offsets in prop::collection::vec(0..90_usize, 1..4)) {
            offsets.sort_unstable();
            let mut cursor = Cursor { document: text.as_bytes(), offset: 0, line: 1, column: 1 };
            for offset in offsets {
                cursor.advance(offset);
                prop_assert_eq!((cursor.line, cursor.column), counted(text.as_bytes(), offset));
            }
        }
    }
}
