//! Compiler-style diagnostics: location, message, source line, caret.

use std::fmt::Write as _;

use crate::finding::{CUT, Violation};
use crate::validate::Outcome;
use gatewright_safe::visible::visible;

/// Code points of a source line to show on either side of the location.
const CONTEXT_CHARS: usize = 48;
/// Bytes on either side that always contain more code points than are shown.
const CONTEXT_BYTES: usize = 4 * (CONTEXT_CHARS + 2);

const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[1;33m";
const BLUE: &str = "\x1b[1;34m";
const BOLD: &str = "\x1b[1m";
const RESET: &str = "\x1b[0m";

impl Outcome {
    /// The findings as text, each with its source line, and a last line for findings that are only counted; empty if
    /// there are none.
    ///
    /// name: the name of the document; document: the bytes that were validated; colour: whether to add terminal
    /// escapes. The text contains no other control characters, whatever the document contains.
    ///
    /// ```
    /// let document = b"{\n  \"schema_version\": 1\n}";
    /// let text = gatewright_report::validate(document).to_text("report.json", document, false);
    /// assert!(text.contains("report.json:2:21"));
    /// ```
    pub fn to_text(&self, name: &str, document: &[u8], colour: bool) -> String {
        let mut text = String::new();
        let errors = self.violations.iter().map(|violation| (violation, "error", RED));
        let mut advice = self.advisories.iter().map(|advisory| (advisory, "advice", YELLOW)).peekable();
        // Both lists are in document order.
        for error in errors {
            while let Some(earlier) = advice.next_if(|(advisory, ..)| advisory.offset < error.0.offset) {
                write_finding(&mut text, earlier, name, document, colour);
            }
            write_finding(&mut text, error, name, document, colour);
        }
        for rest in advice {
            write_finding(&mut text, rest, name, document, colour);
        }
        if let Some(more) = self.more() {
            writeln!(text, "{}: {more}", visible(name)).expect(WRITES);
        }
        text
    }
}

const WRITES: &str = "writing to a string succeeds";

fn write_finding(
    text: &mut String,
    (violation, level, level_colour): (&Violation, &str, &str),
    name: &str,
    document: &[u8],
    colour: bool,
) {
    let paint = |code: &'static str| if colour { code } else { "" };
    let (bold, blue, reset) = (paint(BOLD), paint(BLUE), paint(RESET));
    let level_colour = if colour { level_colour } else { "" };
    let Violation { line, column, message, rule, .. } = violation;
    let (excerpt, caret) = around(document, violation.offset);
    let gutter = line.to_string();
    let blank = " ".repeat(gutter.len());
    writeln!(
        text,
        "{bold}{}:{line}:{column}:{reset} {level_colour}{level}[{rule}]{reset}{bold}: {message}{reset}",
        visible(name),
    )
    .expect(WRITES);
    writeln!(text, " {blue}{gutter} |{reset} {excerpt}").expect(WRITES);
    writeln!(text, " {blue}{blank} |{reset} {}{level_colour}^{reset}", " ".repeat(caret)).expect(WRITES);
}

/// The part of a line around a byte of the document, safe for a terminal, and the offset of the byte in it. Does not
/// look at the rest of the line, however long it is.
fn around(document: &[u8], offset: usize) -> (String, usize) {
    let at = offset.min(document.len());
    let before = &document[at.saturating_sub(CONTEXT_BYTES)..at];
    let before = before.rsplit(is_line_end).next().unwrap_or_default();
    let after = &document[at..document.len().min(at + CONTEXT_BYTES)];
    let after = after.split(is_line_end).next().unwrap_or_default();
    // The bytes may begin and end within a character.
    let before: Vec<char> = String::from_utf8_lossy(before).chars().collect();
    let after: Vec<char> = String::from_utf8_lossy(after).chars().collect();
    let mut shown = String::new();
    if before.len() > CONTEXT_CHARS {
        shown.push(CUT);
    }
    push(&mut shown, &before[before.len().saturating_sub(CONTEXT_CHARS)..]);
    let caret = shown.chars().count();
    push(&mut shown, &after[..after.len().min(CONTEXT_CHARS)]);
    if after.len() > CONTEXT_CHARS {
        shown.push(CUT);
    }
    (shown.trim_end().to_owned(), caret)
}

fn push(shown: &mut String, characters: &[char]) {
    for character in characters {
        match character {
            '\t' => shown.push(' '),
            _ => shown.push_str(&visible(character.encode_utf8(&mut [0; 4]))),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that splitting a slice asks for")]
fn is_line_end(byte: &u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}
