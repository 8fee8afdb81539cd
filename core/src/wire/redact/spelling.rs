//! A text after some rounds of unescaping, with the position of each byte in the original: covers the forms in which
//! a service may write a secret.

use std::ops::Range;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};

/// Shortest run of base64 or hex characters that is taken as part of a secret.
const SHORTEST_ENCODED: usize = 8;

/// Forms of a secret other than its own letters: hex, and the part of its base64 that does not depend on the
/// surrounding text, for each of the three positions in a group of three bytes.
pub(super) fn encodings(secret: &str) -> Vec<Vec<u8>> {
    let digit = |value: u8| char::from_digit(value.into(), 16).expect("four bits are a hex digit");
    let hex: String = secret.bytes().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
    let mut forms = vec![hex.to_ascii_uppercase().into_bytes(), hex.into_bytes()];
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(secret.as_bytes());
        // Each character encodes 6 bits; keep those that lie wholly within the secret's bits.
        let (first, end) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        for encoded in [BASE64_STANDARD_NO_PAD.encode(&bytes), BASE64_URL_SAFE_NO_PAD.encode(&bytes)] {
            let core = encoded.as_bytes()[first..end].to_vec();
            if core.len() >= SHORTEST_ENCODED && !forms.contains(&core) {
                forms.push(core);
            }
        }
    }
    forms
}

/// Includes the character before and those after that share bits with the secret: base64 pads with up to two
/// more.
pub(super) fn widened(bytes: &[u8], start: usize, end: usize) -> (usize, usize) {
    let shares = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(byte);
    let before = usize::from(start > 0 && shares(&bytes[start - 1]));
    let after = bytes[end..].iter().take(3).take_while(|byte| shares(byte)).count();
    (start - before, end + after)
}

/// A text after some rounds of unescaping, with the position of each byte in the original.
pub(super) struct DecodedText {
    pub(super) bytes: Vec<u8>,
    pub(super) lower: Vec<u8>,
    /// Start and end in the original text; none at the first level, where they equal the byte's own position.
    sources: Option<Vec<(u32, u32)>>,
}

impl DecodedText {
    pub(super) fn of(text: &[u8]) -> Self {
        Self { bytes: text.to_vec(), lower: text.to_ascii_lowercase(), sources: None }
    }

    /// The range in the original that a non-empty part of this level comes from.
    pub(super) fn source(&self, start: usize, end: usize) -> Range<usize> {
        match &self.sources {
            None => start..end,
            Some(sources) => sources[start].0 as usize..sources[end - 1].1 as usize,
        }
    }

    /// One round: decodes percent escapes, JSON backslashes and HTML character references, and drops control and
    /// invisible characters. None if nothing changes.
    pub(super) fn unescaped(&self) -> Option<Self> {
        if !self.bytes.iter().any(|byte| may_mean_another(*byte)) {
            return None;
        }
        let (mut bytes, mut sources) = (Vec::new(), Vec::new());
        let mut at = 0;
        while at < self.bytes.len() {
            let (length, decoded) = escape_at(&self.bytes[at..]);
            let Range { start, end } = self.source(at, at + length);
            let source = (offset(start), offset(end));
            let mut utf8 = [0; 4];
            let decoded: &[u8] = match decoded {
                Decoded::Itself => &self.bytes[at..at + length],
                Decoded::Nothing => &[],
                Decoded::Byte(byte) => {
                    utf8[0] = byte;
                    &utf8[..1]
                }
                Decoded::Letter(letter) => letter.encode_utf8(&mut utf8).as_bytes(),
            };
            bytes.extend_from_slice(decoded);
            sources.extend(std::iter::repeat_n(source, decoded.len()));
            at += length;
        }
        if bytes == self.bytes {
            return None;
        }
        Some(Self { lower: bytes.to_ascii_lowercase(), bytes, sources: Some(sources) })
    }
}

/// Offsets are stored in 32 bits: the text examined at once is far smaller.
fn offset(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

enum Decoded {
    Itself,
    Nothing,
    Byte(u8),
    Letter(char),
}

/// Whether an escape that [`escape_at`] knows can begin with this byte.
fn may_mean_another(byte: u8) -> bool {
    byte.is_ascii_control() || matches!(byte, b'%' | b'\\' | b'&' | 0xc2 | 0xe2 | 0xef)
}

/// The escape at the beginning of the bytes: its length and its meaning.
fn escape_at(bytes: &[u8]) -> (usize, Decoded) {
    let hex = |range: Range<usize>| {
        let digits = std::str::from_utf8(bytes.get(range)?).ok()?;
        digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
    };
    let letter = |code: u32| char::from_u32(code).map_or(Decoded::Itself, Decoded::Letter);
    match bytes {
        [b'%', ..] if hex(1..3).is_some() => {
            (3, Decoded::Byte(hex(1..3).and_then(|code| u8::try_from(code).ok()).unwrap_or(b'%')))
        }
        [b'\\', b'u', ..] if hex(2..6).is_some() => (6, hex(2..6).map_or(Decoded::Itself, letter)),
        [b'\\', b'x', ..] if hex(2..4).is_some() => (4, hex(2..4).map_or(Decoded::Itself, letter)),
        [b'\\', b'n' | b'r' | b't' | b'b' | b'f', ..] => (2, Decoded::Nothing),
        [b'\\', escaped @ (b'\\' | b'/' | b'"' | b'\''), ..] => (2, Decoded::Byte(*escaped)),
        [b'&', ..] => reference_at(bytes).unwrap_or((1, Decoded::Itself)),
        [byte, ..] if byte.is_ascii_control() => (1, Decoded::Nothing),
        // U+200B to U+200F, U+2028 to U+202F, U+2060 to U+206F; U+FEFF; U+00AD.
        [0xe2, 0x80, 0x8b..=0x8f | 0xa8..=0xaf, ..]
        | [0xe2, 0x81, 0xa0..=0xaf, ..]
        | [0xef, 0xbb, 0xbf, ..] => (3, Decoded::Nothing),
        [0xc2, 0xad, ..] => (2, Decoded::Nothing),
        _ => (1, Decoded::Itself),
    }
}

/// HTML's `&#45;`, `&#x2d;`, `&amp;` and the like.
fn reference_at(bytes: &[u8]) -> Option<(usize, Decoded)> {
    let end = bytes.iter().take(10).position(|byte| *byte == b';')?;
    let name = std::str::from_utf8(&bytes[1..end]).ok()?;
    let code = match name {
        "amp" => u32::from('&'),
        "lt" => u32::from('<'),
        "gt" => u32::from('>'),
        "quot" => u32::from('"'),
        "apos" => u32::from('\''),
        _ => match name.strip_prefix('#')? {
            digits if digits.starts_with(['x', 'X']) => u32::from_str_radix(&digits[1..], 16).ok()?,
            digits => digits.parse().ok()?,
        },
    };
    Some((end + 1, Decoded::Letter(char::from_u32(code)?)))
}
