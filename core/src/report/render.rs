//! Diagnostics for people, in the manner of a compiler: place, message, the line itself, a caret.

use std::fmt::Write as _;

use super::finding::Violation;
use super::validate::Outcome;
use crate::visible::visible;

/// Code points of a source line that are shown on either side of the place.
const CONTEXT_CHARS: usize = 48;

const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[1;33m";
const BLUE: &str = "\x1b[1;34m";
const BOLD: &str = "\x1b[1m";
const RESET: &str = "\x1b[0m";

impl Outcome {
    /// The findings as text, each with its source line; empty if there are none.
    ///
    /// name: what to call the document; document: the bytes that were validated; colour: whether to add
    /// the escapes of a terminal. Whatever the document holds, nothing else in the text acts on a terminal.
    pub fn to_text(&self, name: &str, document: &[u8], colour: bool) -> String {
        let mut text = String::new();
        let mut lines = Lines { document, start: 0, line: self.first_line };
        let errors = self.violations.iter().map(|violation| (violation, "error", RED));
        let mut advice = self.advisories.iter().map(|advisory| (advisory, "advice", YELLOW)).peekable();
        // Both lists are in document order: merged, so that the source is walked once.
        for error in errors {
            while let Some(earlier) = advice.next_if(|(advisory, ..)| before(advisory, error.0)) {
                write_finding(&mut text, earlier, name, &mut lines, colour);
            }
            write_finding(&mut text, error, name, &mut lines, colour);
        }
        for rest in advice {
            write_finding(&mut text, rest, name, &mut lines, colour);
        }
        text
    }
}

fn before(left: &Violation, right: &Violation) -> bool {
    (left.line, left.column) < (right.line, right.column)
}

fn write_finding(
    text: &mut String,
    (violation, level, level_colour): (&Violation, &str, &str),
    name: &str,
    lines: &mut Lines<'_>,
    colour: bool,
) {
    let paint = |code: &'static str| if colour { code } else { "" };
    let (bold, blue, reset) = (paint(BOLD), paint(BLUE), paint(RESET));
    let level_colour = if colour { level_colour } else { "" };
    let Violation { line, column, message, rule, .. } = violation;
    let (excerpt, caret) = around(&String::from_utf8_lossy(lines.line(*line)), *column);
    let gutter = line.to_string();
    let blank = " ".repeat(gutter.len());
    writeln!(
        text,
        "{bold}{}:{line}:{column}:{reset} {level_colour}{level}[{rule}]{reset}{bold}: {message}{reset}",
        visible(name),
    )
    .expect("writing to a string succeeds");
    writeln!(text, " {blue}{gutter} |{reset} {excerpt}").expect("writing to a string succeeds");
    writeln!(text, " {blue}{blank} |{reset} {}{level_colour}^{reset}", " ".repeat(caret))
        .expect("writing to a string succeeds");
}

/// The part of a line around a column, fit for a terminal, and how far into it the column is.
fn around(line: &str, column: usize) -> (String, usize) {
    let at = column - 1;
    let from = at.saturating_sub(CONTEXT_CHARS);
    let mut shown = String::new();
    if from > 0 {
        shown.push('…');
    }
    let mut caret = shown.chars().count();
    let mut rest = line.chars().skip(from);
    for (index, character) in rest.by_ref().take(at - from + CONTEXT_CHARS).enumerate() {
        if index == at - from {
            caret = shown.chars().count();
        }
        match character {
            '\t' => shown.push(' '),
            _ => shown.push_str(&visible(character.encode_utf8(&mut [0; 4]))),
        }
    }
    if line.chars().count() <= at {
        caret = shown.chars().count();
    }
    if rest.next().is_some() {
        shown.push('…');
    }
    (shown.trim_end().to_owned(), caret)
}

/// The lines of a document, asked for in ascending order.
struct Lines<'a> {
    document: &'a [u8],
    start: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    fn line(&mut self, number: usize) -> &'a [u8] {
        while self.line < number {
            let Some(end) = self.end() else { return &[] };
            let crlf = self.document[end..].starts_with(b"\r\n");
            self.start = end + if crlf { 2 } else { 1 };
            self.line += 1;
        }
        let end = self.end().unwrap_or(self.document.len());
        &self.document[self.start..end]
    }

    fn end(&self) -> Option<usize> {
        let rest = &self.document[self.start..];
        rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).map(|at| self.start + at)
    }
}
