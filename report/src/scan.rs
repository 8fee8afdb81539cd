//! Scanner for JSON that is validated while it is read: one pass over the bytes, without storing or allocating
//! anything.
//!
//! A method consumes what its name says and returns `None` if the document has something else there, is not JSON, or is
//! written in a rare way that is left to the reader (`read.rs`): names with escapes, numbers such as `3e4`, integers that
//! a double can't represent. So `None` means "not sure", never "invalid"; any other result is certain.
//!
//! Strings are examined sixteen bytes at a time, in a vector. White space, which is mostly an indentation of a few
//! spaces, is examined eight bytes at a time, as one integer whose lowest byte is the first: vectors are slower there.

#![expect(
    clippy::inline_always,
    reason = "the rest of the document stays in registers, which doubles the speed"
)]

use wide::u8x16;

mod formats;
mod members;
#[cfg(test)]
mod tests;
mod unique;
mod words;

pub(crate) use self::formats::{begins, date_time, has_length, uri};
pub(crate) use self::members::Members;
pub(crate) use self::unique::{UniqueTexts, UniqueWords};
pub(crate) use self::words::{MAX_WORDS, WordSet};

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const MARKS: u64 = ONES << 7;
const SPACES: u64 = ONES * b' ' as u64;
const QUOTES: u64 = ONES * b'"' as u64;

/// Maximum number of digits of an integer; every such integer is below 2^53.
const MAX_DIGITS: usize = 15;

/// The unread part of a document.
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

    /// The number of unread bytes.
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

    /// Consumes the comma after an item or a member, or the end of the list. Returns whether it is the comma.
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

    /// The opening quotation mark of a string. Returns the eight bytes after it; bytes after the closing quotation
    /// mark or the end of the document are 0.
    #[inline(always)]
    pub(crate) fn head(&mut self) -> Option<u64> {
        self.next(b'"')?;
        let word = match self.rest.first_chunk::<8>() {
            Some(word) => u64::from_le_bytes(*word),
            None => u64::from_le_bytes(last(self.rest)),
        };
        let marks = (word ^ QUOTES).wrapping_sub(ONES) & MARKS;
        Some(word & (marks ^ marks.wrapping_sub(1)))
    }

    /// The rest of a string, if it equals `end`, with the closing quotation mark.
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

    /// A string up to the next quotation mark, for comparison with known words; it never equals one if it has
    /// escapes.
    #[inline(always)]
    pub(crate) fn word(&mut self) -> Option<&'a [u8]> {
        self.next(b'"')?;
        self.string(find(self.rest, |bytes| bytes.simd_eq(all(b'"')))?)
    }

    /// A string as written, without its quotation marks: UTF-8 with valid escapes.
    #[inline(always)]
    pub(crate) fn text(&mut self) -> Option<&'a [u8]> {
        self.next(b'"')?;
        self.string(text_length(self.rest)?)
    }

    /// This many bytes of a string, and the quotation mark after them.
    #[inline(always)]
    fn string(&mut self, length: usize) -> Option<&'a [u8]> {
        let (string, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        self.byte(b'"')?;
        Some(string)
    }

    /// An integer from `least` to `most`, written with at most 15 digits, and no fraction except zeros.
    #[inline(always)]
    pub(crate) fn integer(&mut self, least: i64, most: i64) -> Option<i64> {
        let (integer, length) = integer(self.rest).or_else(|| rare_integer(self.rest))?;
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

    /// This byte, possibly after white space.
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

/// The number of leading spaces.
pub(crate) fn spaces(bytes: &[u8]) -> usize {
    bytes.len() - after_spaces(bytes).len()
}

/// The number of leading bytes that a string contains unescaped; UTF-8 is not checked.
pub(crate) fn plain_length(bytes: &[u8]) -> usize {
    find(bytes, not_plain).unwrap_or(bytes.len())
}

/// The text after the leading spaces.
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

/// The length of the string that begins here, after its quotation mark: UTF-8 with valid escapes.
#[inline]
fn text_length(bytes: &[u8]) -> Option<usize> {
    // As signed integers, non-ASCII bytes are below those of control characters.
    let rare = |bytes: u8x16| bytes.cast_signed().simd_lt(all(b' ').cast_signed()).cast_unsigned();
    let length = find(bytes, |bytes| ends_or_escapes(bytes) | rare(bytes))?;
    if bytes.get(length) == Some(&b'"') { Some(length) } else { rare_text_length(bytes) }
}

/// The length of a string that may contain escapes and non-ASCII characters.
#[cold]
fn rare_text_length(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    loop {
        let found = rest.get(find(rest, not_plain)?..)?;
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

/// The length of an escape, after its backslash. A lone surrogate is invalid.
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

/// The value of four hex digits.
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

/// The leading integer with a fraction of zeros, which makes it still an integer, and the length of both.
#[cold]
fn rare_integer(bytes: &[u8]) -> Option<(i64, usize)> {
    let point = bytes.iter().take(MAX_DIGITS + 2).position(|byte| *byte == b'.')?;
    let (whole, fraction) = (bytes.get(..point)?, bytes.get(point + 1..)?);
    let (integer, length) = integer(whole)?;
    let zeros = fraction.iter().take_while(|byte| **byte == b'0').count();
    let goes_on = matches!(fraction.get(zeros), Some(b'1'..=b'9' | b'e' | b'E'));
    (length == point && zeros > 0 && !goes_on).then_some((integer, point + 1 + zeros))
}

/// The index of the first byte that `marks` marks with ones. Bytes after the end count as zeros; if one of them is
/// marked first, or none is, there is no such byte.
#[inline(always)]
fn find(bytes: &[u8], marks: impl Fn(u8x16) -> u8x16) -> Option<usize> {
    let mut rest = bytes;
    while let Some((chunk, after)) = rest.split_first_chunk::<16>() {
        let marks = marks(u8x16::new(*chunk)).to_bitmask();
        if marks != 0 {
            return Some(bytes.len() - rest.len() + marks.trailing_zeros() as usize);
        }
        rest = after;
    }
    Some(bytes.len() - rest.len() + find_in_last(rest, marks)?)
}

/// The same for fewer than sixteen bytes.
#[cold]
#[inline(never)]
fn find_in_last(bytes: &[u8], marks: impl Fn(u8x16) -> u8x16) -> Option<usize> {
    let at = marks(u8x16::new(last(bytes))).to_bitmask().trailing_zeros() as usize;
    (at < bytes.len()).then_some(at)
}

/// The remaining bytes, padded with zeros.
#[cold]
fn last<const BYTES: usize>(bytes: &[u8]) -> [u8; BYTES] {
    let mut all = [0; BYTES];
    all.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    all
}

/// The index of the byte with the lowest bit that is set; 8 if none is.
#[inline(always)]
fn first(marks: u64) -> usize {
    marks.trailing_zeros() as usize / 8
}

/// Marks bytes that a string can't contain unescaped: quotation marks, backslashes, control characters.
#[inline(always)]
fn not_plain(bytes: u8x16) -> u8x16 {
    ends_or_escapes(bytes) | bytes.simd_lt(all(b' '))
}

#[inline(always)]
fn ends_or_escapes(bytes: u8x16) -> u8x16 {
    bytes.simd_eq(all(b'"')) | bytes.simd_eq(all(b'\\'))
}

#[inline(always)]
fn all(byte: u8) -> u8x16 {
    u8x16::splat(byte)
}
