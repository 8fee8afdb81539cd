//! Scanner of JSON that is judged while it is read: one pass over the bytes, nothing is kept and nothing allocated.
//!
//! A method consumes what its name says and returns `None` if the document has something else there, is not JSON, or is
//! written in a rare way that is left to the reader (`read.rs`): names with escapes, numbers such as `3e4`, integers that
//! a double cannot hold. So `None` means "not sure" and never "invalid"; what is returned is certain.
//!
//! Eight bytes are looked at in one step, as one integer whose lowest byte is the first. Marks are the highest bits of
//! its bytes. The lowest mark is exact; those above it may be wrong, and nobody uses them.

#![expect(
    clippy::inline_always,
    reason = "the rest of the document stays in registers, which doubles the speed"
)]

mod formats;
mod members;
mod unique;
mod words;

pub(crate) use self::formats::{begins, date_time, has_length, uri};
pub(crate) use self::members::Members;
pub(crate) use self::unique::{UniqueTexts, UniqueWords};
pub(crate) use self::words::{MAX_WORDS, Words};

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const MARKS: u64 = ONES << 7;
const SPACES: u64 = ONES * b' ' as u64;
const QUOTES: u64 = ONES * b'"' as u64;
const BACKSLASHES: u64 = ONES * b'\\' as u64;

/// Maximum number of digits of an integer; every such integer is below 2^53.
const MAX_DIGITS: usize = 15;

/// The unread rest of a document.
#[derive(Debug)]
pub(crate) struct Scan<'a> {
    rest: &'a [u8],
}

impl<'a> Scan<'a> {
    /// At the beginning of the document.
    pub(crate) fn new(document: &'a [u8]) -> Self {
        Self { rest: document }
    }

    /// The end of the document.
    pub(crate) fn end(mut self) -> Option<()> {
        self.white_space();
        self.rest.is_empty().then_some(())
    }

    /// The number of bytes that are not read.
    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The beginning of an array or object, and whether it has a first item or member.
    #[inline(always)]
    pub(crate) fn open(&mut self, open: u8, close: u8) -> Option<bool> {
        self.next(open)?;
        self.line();
        Some(self.next(close).is_none())
    }

    /// What follows an item or a member: a comma, or the end. Returns whether it is the comma.
    #[inline(always)]
    pub(crate) fn more(&mut self, close: u8) -> Option<bool> {
        if self.byte(b',').is_some() {
            self.line();
            return Some(true);
        }
        self.line();
        if self.next(close).is_some() {
            return Some(false);
        }
        self.byte(b',')?;
        self.line();
        Some(true)
    }

    /// The opening quotation mark of a string. Returns the eight bytes after it; what follows a closing quotation mark
    /// among them, or the end of the document, is 0.
    #[inline(always)]
    pub(crate) fn head(&mut self) -> Option<u64> {
        self.next(b'"')?;
        let word = match self.rest.first_chunk::<8>() {
            Some(word) => u64::from_le_bytes(*word),
            None => last(self.rest),
        };
        let marks = (word ^ QUOTES).wrapping_sub(ONES) & MARKS;
        Some(word & (marks ^ marks.wrapping_sub(1)))
    }

    /// The rest of a string, if it is this, with the closing quotation mark.
    #[inline(always)]
    pub(crate) fn ends(&mut self, end: &[u8]) -> bool {
        let rest = self.rest.strip_prefix(end);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// The colon between the name of a member and its value.
    #[inline(always)]
    pub(crate) fn colon(&mut self) -> Option<()> {
        self.next(b':')?;
        if let [b' ', rest @ ..] = self.rest {
            self.rest = rest;
        }
        if self.rest.first().is_some_and(|byte| *byte <= b' ') {
            self.white_space();
        }
        Some(())
    }

    /// A string up to the next quotation mark, to be compared with known words; it is none of them if it has escapes.
    #[inline(always)]
    pub(crate) fn word(&mut self) -> Option<&'a [u8]> {
        self.next(b'"')?;
        self.string(find(self.rest, |word| (word ^ QUOTES).wrapping_sub(ONES) & !word & MARKS)?)
    }

    /// A string as written, without its quotation marks: UTF-8 with sound escapes.
    #[inline(always)]
    pub(crate) fn text(&mut self) -> Option<&'a [u8]> {
        self.next(b'"')?;
        self.string(text_length(self.rest)?)
    }

    /// So much of a string, and the quotation mark that follows.
    #[inline(always)]
    fn string(&mut self, length: usize) -> Option<&'a [u8]> {
        let (string, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        self.byte(b'"')?;
        Some(string)
    }

    /// An integer from `least` to `most`, written with at most 15 digits.
    #[inline(always)]
    pub(crate) fn integer(&mut self, least: i64, most: i64) -> Option<i64> {
        let (integer, length) = integer(self.rest)?;
        self.rest = self.rest.get(length..)?;
        (least..=most).contains(&integer).then_some(integer)
    }

    /// `true` or `false`.
    #[inline(always)]
    pub(crate) fn boolean(&mut self) -> Option<()> {
        (self.ends(b"true") || self.ends(b"false")).then_some(())
    }

    /// `null`, if it is there.
    #[inline(always)]
    pub(crate) fn null(&mut self) -> bool {
        self.ends(b"null")
    }

    /// This byte, after white space or not.
    #[inline(always)]
    fn next(&mut self, byte: u8) -> Option<()> {
        if self.rest.first() != Some(&byte) {
            self.white_space();
        }
        self.byte(byte)
    }

    #[inline(always)]
    fn byte(&mut self, byte: u8) -> Option<()> {
        let (_, rest) = self.rest.split_first().filter(|(first, _)| **first == byte)?;
        self.rest = rest;
        Some(())
    }

    /// A line break and the spaces of an indented line, if they are there.
    #[inline(always)]
    fn line(&mut self) {
        if let [b'\n', rest @ ..] = self.rest {
            self.rest = after_spaces(rest);
        }
    }

    /// White space of any kind, if there is any.
    #[cold]
    fn white_space(&mut self) {
        while let [b' ' | b'\n' | b'\r' | b'\t', rest @ ..] = self.rest {
            self.rest = after_spaces(rest);
        }
    }
}

/// The number of spaces at the beginning.
pub(crate) fn spaces(bytes: &[u8]) -> usize {
    bytes.len() - after_spaces(bytes).len()
}

/// The number of bytes at the beginning that a string holds as they are; UTF-8 is not looked at.
pub(crate) fn plain_length(bytes: &[u8]) -> usize {
    find(bytes, |word| special(word) & !word & MARKS).unwrap_or(bytes.len())
}

/// What follows the spaces at the beginning.
#[inline(always)]
fn after_spaces(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while let Some((word, after)) = rest.split_first_chunk::<8>() {
        let others = u64::from_le_bytes(*word) ^ SPACES;
        if others != 0 {
            return rest.get(first(others)..).unwrap_or_default();
        }
        rest = after;
    }
    while let [b' ', after @ ..] = rest {
        rest = after;
    }
    rest
}

/// The length of the string that begins here, after its quotation mark: UTF-8 with sound escapes.
#[inline]
fn text_length(bytes: &[u8]) -> Option<usize> {
    let length = find(bytes, |word| (special(word) | word) & MARKS)?;
    if bytes.get(length) == Some(&b'"') { Some(length) } else { rare_text_length(bytes) }
}

/// The length of a string that may have escapes, and other characters than those of ASCII.
#[cold]
fn rare_text_length(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    loop {
        let found = rest.get(find(rest, |word| special(word) & !word & MARKS)?..)?;
        match found.split_first()? {
            (b'"', _) => {
                let text = bytes.get(..bytes.len() - found.len())?;
                return std::str::from_utf8(text).is_ok().then_some(text.len());
            }
            (b'\\', escape) => rest = escape.get(escape_length(escape)?..)?,
            _ => return None,
        }
    }
}

/// The length of an escape, after its backslash. A surrogate without its other half is none.
fn escape_length(bytes: &[u8]) -> Option<usize> {
    let (kind, rest) = bytes.split_first()?;
    match kind {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(1),
        b'u' => match code_unit(rest)? {
            0xd800..0xdc00 => {
                let second = code_unit(rest.get(4..)?.strip_prefix(b"\\u")?)?;
                (0xdc00..0xe000).contains(&second).then_some(11)
            }
            0xdc00..0xe000 => None,
            _ => Some(5),
        },
        _ => None,
    }
}

/// The value of four hexadecimal digits.
fn code_unit(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.first_chunk::<4>()?;
    digits.iter().try_fold(0, |unit, digit| Some(unit * 16 + char::from(*digit).to_digit(16)?))
}

/// The integer at the beginning, and its length.
#[inline(always)]
fn integer(bytes: &[u8]) -> Option<(i64, usize)> {
    let is_negative = bytes.first() == Some(&b'-');
    let digits = bytes.get(usize::from(is_negative)..)?;
    let mut magnitude = 0_i64;
    let mut length = 0;
    while let Some(digit @ b'0'..=b'9') = digits.get(length)
        && length < MAX_DIGITS
    {
        magnitude = magnitude * 10 + i64::from(digit - b'0');
        length += 1;
    }
    let goes_on = matches!(digits.get(length), Some(b'0'..=b'9' | b'.' | b'e' | b'E'));
    if length == 0 || goes_on || (length > 1 && digits.first() == Some(&b'0')) {
        return None;
    }
    Some((if is_negative { -magnitude } else { magnitude }, length + usize::from(is_negative)))
}

/// The index of the first byte that `marks` marks. Zeros stand for the bytes after the end; if one of them is marked
/// first, or none is, there is no such byte.
#[inline(always)]
fn find(bytes: &[u8], marks: impl Fn(u64) -> u64) -> Option<usize> {
    let mut rest = bytes;
    while let Some((word, after)) = rest.split_first_chunk::<8>() {
        let marks = marks(u64::from_le_bytes(*word));
        if marks != 0 {
            return Some(bytes.len() - rest.len() + first(marks));
        }
        rest = after;
    }
    let at = first(marks(last(rest)));
    (at < rest.len()).then_some(bytes.len() - rest.len() + at)
}

/// Fewer than eight bytes, and zeros after them.
#[cold]
fn last(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| (word << 8) | u64::from(*byte))
}

/// The index of the byte with the lowest bit that is set; 8 if none is.
#[inline(always)]
fn first(marks: u64) -> usize {
    marks.trailing_zeros() as usize / 8
}

/// Marks what a string cannot hold as it is: quotation marks, backslashes, control characters. Other bits, and bytes
/// that are not ASCII, may be marked too.
#[inline(always)]
const fn special(word: u64) -> u64 {
    let quotes = (word ^ QUOTES).wrapping_sub(ONES);
    let backslashes = (word ^ BACKSLASHES).wrapping_sub(ONES);
    quotes | backslashes | word.wrapping_sub(SPACES)
}
