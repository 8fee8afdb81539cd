//! Takes secrets out of texts before anybody sees them: the key in every form a service may echo it in, and what
//! looks like somebody else's. Texts are redacted first and cut afterwards, so that no cut leaves half a secret.

use std::ops::Range;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use memchr::memmem;
use regex::{Captures, Regex};

/// What stands in place of a secret.
pub(crate) const REDACTED: &str = "[redacted]";

/// Most code points of a text in a report (2.12 has it for messages).
const MAX_FIELD_CHARS: usize = 2000;
/// What is left of a longer one.
const KEPT_FIELD_CHARS: usize = 1984;
const CUT: &str = "… [truncated]";
/// Largest part of a text that is looked at for a field of the report; the rest is behind the cut in any case.
const FIELD_BYTES: usize = 64 << 10;
/// A message for a check that failed without saying anything.
const NOTHING_SAID: &str = "unknown error";

/// Secrets shorter than this are ordinary words as likely as not: they are taken out where they stand alone.
pub(crate) const SHORTEST_DISTINCT: usize = 6;
/// How often a text is unescaped: JSON in JSON in a URL is three levels deep.
const LEVELS: usize = 3;
/// Shortest run of base64 or hex characters that is taken for a secret's.
const SHORTEST_ENCODED: usize = 8;
/// Shortest beginning of a secret that is taken out at the end of a text that was cut off.
const SHORTEST_BEGINNING: usize = 6;

/// Values of `Bearer` and `Basic`, unless they are plain short words: "Bearer token is missing" says no secret.
static AUTHORIZATION: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?i)\b(bearer|basic)(\s+|%20|\+)([a-z0-9._~+/=-]{4,})"));
/// Keys and tokens as widely used services make them.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"\bsk-[A-Za-z0-9_-]{6,}",
        r"|\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?",
        r"|\bAIza[A-Za-z0-9_-]{20,}",
    ))
});
/// Query parameters that carry keys.
static PARAMETER: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?i)([?&;](?:api[-_]?key|key|access[-_]?token|token|auth|authorization|secret|password|sig|signature)=)[^&;\s"'<>#\\]+"#,
    )
});
/// User name and password of a URL.
static USERINFO: LazyLock<Regex> = LazyLock::new(|| regex(r#"(://)[^/\s@"'<>]+@"#));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a literal pattern compiles")
}

/// Knows the secrets of a run.
#[derive(Clone)]
pub(crate) struct Redactor {
    secrets: Vec<Secret>,
}

#[derive(Clone)]
struct Secret {
    /// In lower case: a service may change the case of what it echoes.
    plain: Vec<u8>,
    /// What its base64 and hex forms hold whatever stands around it; none of a short secret.
    encoded: Vec<Vec<u8>>,
}

impl Redactor {
    /// Knows these secrets; empty ones are none.
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let secrets = secrets.into_iter().filter(|secret| !secret.trim().is_empty()).map(Secret::new);
        Self { secrets: secrets.collect() }
    }

    /// Whether a text holds one of the run's own secrets in some form.
    pub(crate) fn finds(&self, text: &str) -> bool {
        !self.spans(text).is_empty()
    }

    /// A text for a field of the report: redacted, on one line, at most 2000 code points.
    pub(crate) fn field(&self, text: &str) -> String {
        let (text, _) = self.bounded(text, FIELD_BYTES);
        let line: String = text.chars().map(|letter| if steers(letter) { ' ' } else { letter }).collect();
        let line = line.trim();
        if line.chars().count() <= MAX_FIELD_CHARS {
            return line.to_owned();
        }
        line.chars().take(KEPT_FIELD_CHARS).chain(CUT.chars()).collect()
    }

    /// As [`Self::field`], never empty.
    pub(crate) fn message(&self, text: &str) -> String {
        let message = self.field(text);
        if message.is_empty() { NOTHING_SAID.to_owned() } else { message }
    }

    /// A text for evidence: redacted, lines kept, at most about `max_bytes`.
    pub(crate) fn text(&self, text: &str, max_bytes: usize) -> String {
        // Twice as much is looked at, so that what the redaction shortens does not move the end of it into sight.
        let (redacted, mut cut) = self.bounded(text, max_bytes * 2);
        let mut shown: String = redacted
            .chars()
            .map(|letter| if steers(letter) && !matches!(letter, '\n' | '\t') { ' ' } else { letter })
            .collect();
        if shown.len() > max_bytes {
            shown.truncate(floor_boundary(&shown, max_bytes));
            cut = true;
        }
        if cut {
            shown.push_str(CUT);
        }
        shown
    }

    /// The first `max_bytes` of a text, redacted, and whether there was more.
    fn bounded(&self, text: &str, max_bytes: usize) -> (String, bool) {
        let end = floor_boundary(text, max_bytes);
        (self.redact(&text[..end]), end < text.len())
    }

    /// The text with every secret replaced.
    pub(crate) fn redact(&self, text: &str) -> String {
        let mut redacted = String::with_capacity(text.len());
        let mut from = 0;
        for Range { start, end } in self.spans(text) {
            redacted.push_str(&text[from..start]);
            redacted.push_str(REDACTED);
            from = end;
        }
        redacted.push_str(&text[from..]);
        let redacted = AUTHORIZATION.replace_all(&redacted, |found: &Captures<'_>| {
            if is_word(&found[3]) {
                found[0].to_owned()
            } else {
                format!("{}{}{REDACTED}", &found[1], &found[2])
            }
        });
        let redacted = TOKEN.replace_all(&redacted, REDACTED);
        let redacted = PARAMETER.replace_all(&redacted, format!("${{1}}{REDACTED}"));
        USERINFO.replace_all(&redacted, format!("${{1}}{REDACTED}@")).into_owned()
    }

    /// Where the run's own secrets stand, in order, without overlaps, at character boundaries.
    fn spans(&self, text: &str) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        let mut level = Level::of(text);
        for depth in 0..=LEVELS {
            for secret in &self.secrets {
                secret.find(&level, &mut spans);
            }
            match level.unescaped() {
                Some(next) if depth < LEVELS => level = next,
                _ => break,
            }
        }
        spans.extend(self.secrets.iter().filter_map(|secret| secret.beginning_at_end_of(text)));
        spans.sort_by_key(|span| span.start);
        let mut merged: Vec<Range<usize>> = Vec::new();
        for span in spans {
            let span = floor_boundary(text, span.start)..ceil_boundary(text, span.end);
            match merged.last_mut() {
                Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
                _ => merged.push(span),
            }
        }
        merged
    }
}

impl Secret {
    fn new(secret: &str) -> Self {
        let plain = secret.trim().to_ascii_lowercase().into_bytes();
        let encoded = if plain.len() < SHORTEST_DISTINCT { Vec::new() } else { encodings(secret.trim()) };
        Self { plain, encoded }
    }

    fn find(&self, level: &Level, spans: &mut Vec<Range<usize>>) {
        for at in memmem::find_iter(&level.lower, &self.plain) {
            let end = at + self.plain.len();
            let alone = |index: Option<usize>| {
                !index.and_then(|index| level.bytes.get(index)).is_some_and(u8::is_ascii_alphanumeric)
            };
            if self.plain.len() >= SHORTEST_DISTINCT || (alone(at.checked_sub(1)) && alone(Some(end))) {
                spans.push(level.source(at, end));
            }
        }
        for encoded in &self.encoded {
            for at in memmem::find_iter(&level.bytes, encoded) {
                let (start, end) = widened(&level.bytes, at, at + encoded.len());
                spans.push(level.source(start, end));
            }
        }
    }

    /// A text that was cut off may end with half a secret.
    fn beginning_at_end_of(&self, text: &str) -> Option<Range<usize>> {
        let longest = self.plain.len().saturating_sub(1).min(text.len());
        (SHORTEST_BEGINNING..=longest).rev().find_map(|length| {
            let start = text.len() - length;
            text.as_bytes()[start..].eq_ignore_ascii_case(&self.plain[..length]).then_some(start..text.len())
        })
    }
}

/// With the character before and those after that share bits with the secret: base64 pads with up to two more.
fn widened(bytes: &[u8], start: usize, end: usize) -> (usize, usize) {
    let shares = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(byte);
    let before = usize::from(start > 0 && shares(&bytes[start - 1]));
    let after = bytes[end..].iter().take(3).take_while(|byte| shares(byte)).count();
    (start - before, end + after)
}

/// Forms of a secret other than its own letters: hex, and the part of its base64 that does not depend on what
/// stands before and after it, for each of the three places it can have in a group of three bytes.
fn encodings(secret: &str) -> Vec<Vec<u8>> {
    let digit = |value: u8| char::from_digit(value.into(), 16).expect("four bits are a hex digit");
    let hex: String = secret.bytes().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
    let mut forms = vec![hex.to_ascii_uppercase().into_bytes(), hex.into_bytes()];
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(secret.as_bytes());
        // Characters are 6 bits: those that lie wholly within the secret's bits.
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

/// A text after some rounds of unescaping, and where in the original each byte of it comes from.
struct Level {
    bytes: Vec<u8>,
    lower: Vec<u8>,
    /// Start and end in the original text; none at the first level, where they are the byte's own.
    sources: Option<Vec<(u32, u32)>>,
}

impl Level {
    fn of(text: &str) -> Self {
        Self { bytes: text.as_bytes().to_vec(), lower: text.as_bytes().to_ascii_lowercase(), sources: None }
    }

    fn source(&self, start: usize, end: usize) -> Range<usize> {
        match &self.sources {
            None => start..end,
            Some(sources) => sources[start].0 as usize..sources[end - 1].1 as usize,
        }
    }

    /// One round: percent escapes, JSON's backslashes, HTML's character references; control characters and those
    /// that are not seen go. None where nothing changes.
    fn unescaped(&self) -> Option<Self> {
        let (mut bytes, mut sources) = (Vec::new(), Vec::new());
        let mut at = 0;
        while at < self.bytes.len() {
            let (length, meant) = escape_at(&self.bytes[at..]);
            let Range { start, end } = self.source(at, at + length);
            let source = (offset(start), offset(end));
            let mut utf8 = [0; 4];
            let meant: &[u8] = match meant {
                Meant::Itself => &self.bytes[at..at + length],
                Meant::Nothing => &[],
                Meant::Byte(byte) => {
                    utf8[0] = byte;
                    &utf8[..1]
                }
                Meant::Letter(letter) => letter.encode_utf8(&mut utf8).as_bytes(),
            };
            bytes.extend_from_slice(meant);
            sources.extend(std::iter::repeat_n(source, meant.len()));
            at += length;
        }
        if bytes == self.bytes {
            return None;
        }
        Some(Self { lower: bytes.to_ascii_lowercase(), bytes, sources: Some(sources) })
    }
}

/// Offsets are kept in 32 bits: texts are bounded far below that.
fn offset(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

enum Meant {
    Itself,
    Nothing,
    Byte(u8),
    Letter(char),
}

/// What the bytes begin with: how many of them belong together, and what they mean.
fn escape_at(bytes: &[u8]) -> (usize, Meant) {
    let hex = |range: Range<usize>| {
        let digits = std::str::from_utf8(bytes.get(range)?).ok()?;
        digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
    };
    let letter = |code: u32| char::from_u32(code).map_or(Meant::Itself, Meant::Letter);
    match bytes {
        [b'%', ..] if hex(1..3).is_some() => {
            (3, Meant::Byte(hex(1..3).and_then(|code| u8::try_from(code).ok()).unwrap_or(b'%')))
        }
        [b'\\', b'u', ..] if hex(2..6).is_some() => (6, hex(2..6).map_or(Meant::Itself, letter)),
        [b'\\', b'x', ..] if hex(2..4).is_some() => (4, hex(2..4).map_or(Meant::Itself, letter)),
        [b'\\', b'n' | b'r' | b't' | b'b' | b'f', ..] => (2, Meant::Nothing),
        [b'\\', escaped @ (b'\\' | b'/' | b'"' | b'\''), ..] => (2, Meant::Byte(*escaped)),
        [b'&', ..] => reference_at(bytes).unwrap_or((1, Meant::Itself)),
        [byte, ..] if byte.is_ascii_control() => (1, Meant::Nothing),
        // U+200B to U+200F, U+2028 to U+202F, U+2060 to U+206F; U+FEFF; U+00AD.
        [0xe2, 0x80, 0x8b..=0x8f | 0xa8..=0xaf, ..]
        | [0xe2, 0x81, 0xa0..=0xaf, ..]
        | [0xef, 0xbb, 0xbf, ..] => (3, Meant::Nothing),
        [0xc2, 0xad, ..] => (2, Meant::Nothing),
        _ => (1, Meant::Itself),
    }
}

/// HTML's `&#45;`, `&#x2d;`, `&amp;` and the like.
fn reference_at(bytes: &[u8]) -> Option<(usize, Meant)> {
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
    Some((end + 1, Meant::Letter(char::from_u32(code)?)))
}

/// A short word of small letters, no secret.
fn is_word(value: &str) -> bool {
    let letters = value.trim_end_matches(['.', '-']);
    let tail = letters.get(1..).unwrap_or_default();
    letters.len() < 16
        && letters.starts_with(|first: char| first.is_ascii_alphabetic())
        && tail.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// A character that acts on a terminal, or reorders or hides text.
fn steers(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn floor_boundary(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at)
}

fn ceil_boundary(text: &str, at: usize) -> usize {
    text.ceil_char_boundary(at)
}

#[cfg(test)]
mod tests {
    use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE};
    use proptest::prelude::*;

    use super::*;

    const KEY: &str = "gw_Canary/4+7f=x9";

    fn redactor() -> Redactor {
        Redactor::new([KEY])
    }

    fn spelled(text: &str, form: impl Fn(char) -> String) -> String {
        let letters: Vec<String> = text.chars().map(form).collect();
        letters.concat()
    }

    fn json_escaped(text: &str) -> String {
        spelled(text, |letter| format!("\\u{:04X}", u32::from(letter)))
    }

    fn percent(text: &str) -> String {
        spelled(text, |letter| format!("%{:02x}", u32::from(letter)))
    }

    fn forms() -> Vec<(&'static str, String)> {
        let spread = |between: &str| spelled(KEY, |letter| format!("{letter}{between}"));
        vec![
            ("plain", KEY.to_owned()),
            ("upper case", KEY.to_uppercase()),
            ("lower case", KEY.to_lowercase()),
            ("slashes escaped", KEY.replace('/', "\\/")),
            ("as JSON code points", json_escaped(KEY)),
            ("JSON in JSON", json_escaped(KEY).replace('\\', "\\\\")),
            ("in a URL", percent(KEY)),
            ("special characters in a URL", KEY.replace('/', "%2F").replace('+', "%2B").replace('=', "%3D")),
            ("twice in a URL", percent(KEY).replace('%', "%25")),
            ("HTML", spelled(KEY, |letter| format!("&#{};", u32::from(letter)))),
            ("HTML in hex", spelled(KEY, |letter| format!("&#x{:X};", u32::from(letter)))),
            ("base64", BASE64_STANDARD.encode(KEY)),
            ("base64 for URLs", BASE64_URL_SAFE.encode(KEY)),
            ("Basic", BASE64_STANDARD.encode(format!("user:{KEY}"))),
            ("base64, shifted", BASE64_STANDARD.encode(format!("u:{KEY}!"))),
            ("hex", spelled(KEY, |letter| format!("{:02x}", u32::from(letter)))),
            ("HEX", spelled(KEY, |letter| format!("{:02X}", u32::from(letter)))),
            ("with zeros between", spread("\0")),
            ("with zero width between", spread("\u{200b}")),
            ("with line breaks between", spread("\n")),
        ]
    }

    #[test]
    fn key_is_taken_out_in_every_form() {
        for (name, form) in forms() {
            for (before, after) in [("", ""), ("{\"message\":\"bad key ", "\"}"), ("ü", "é end")] {
                let redacted = redactor().redact(&format!("{before}{form}{after}"));
                assert!(redacted.contains(REDACTED), "{name}: {redacted}");
                assert!(redacted.starts_with(before), "{name}: {redacted}");
                assert!(redacted.ends_with(after), "{name}: {redacted}");
                // Of a longer text in base64, what stands before the secret is left.
                assert!(
                    redacted.len() <= before.len() + after.len() + REDACTED.len() + 8,
                    "{name}: {redacted}"
                );
                assert!(redactor().finds(&form), "{name}");
            }
        }
    }

    #[test]
    fn beginning_of_a_key_at_the_end_of_what_was_cut_off_is_taken_out() {
        assert_eq!(redactor().redact("{\"echo\":\"gw_Canary/"), "{\"echo\":\"[redacted]");
        assert_eq!(redactor().redact("end of gw_C"), "end of gw_C");
        for max_bytes in 10..100 {
            let text = redactor().text(&KEY.repeat(100), max_bytes);
            assert!(!text.contains(&KEY[..SHORTEST_BEGINNING]), "{text}");
        }
    }

    #[test]
    fn credentials_of_others_are_taken_out() {
        for (text, expected) in [
            ("Authorization: Bearer abc123def", "Authorization: Bearer [redacted]"),
            ("authorization: basic dXNlcjpwYXNz", "authorization: basic [redacted]"),
            ("Incorrect key sk-proj-abcd1234.", "Incorrect key [redacted]."),
            ("jwt eyJhbGciOi.eyJzdWIi.sig_-x ok", "jwt [redacted] ok"),
            ("GET /v1?key=abc&x=1", "GET /v1?key=[redacted]&x=1"),
            ("see https://u:p@host/x?api_key=1#f", "see https://[redacted]@host/x?api_key=[redacted]#f"),
            ("http://h/?a=1&access_token=q\"", "http://h/?a=1&access_token=[redacted]\""),
        ] {
            assert_eq!(redactor().redact(text), expected);
        }
    }

    #[test]
    fn ordinary_words_stay() {
        for text in [
            "Bearer token is missing",
            "Bearer authentication required",
            "Basic realm",
            "desk-top",
            "task-abcdefgh",
            "COMPAT-0123456789abcdef",
            "resp_0123456789abcdef",
            "monkey=1",
        ] {
            assert_eq!(redactor().redact(text), text);
        }
    }

    #[test]
    fn short_secrets_are_taken_out_where_they_stand_alone() {
        let redactor = Redactor::new(["key", " "]);
        assert_eq!(
            redactor.redact("wrong key: key, monkey, keys"),
            "wrong [redacted]: [redacted], monkey, keys"
        );
    }

    #[test]
    fn fields_are_one_line_of_at_most_2000_code_points() {
        let redactor = redactor();
        assert_eq!(redactor.field("a\r\nb\u{202e}c\u{1b}[31m"), "a  b c [31m");
        assert_eq!(redactor.field(&"🙂".repeat(2000)), "🙂".repeat(2000));
        let cut = redactor.field(&"🙂".repeat(2001));
        assert_eq!(cut, format!("{}… [truncated]", "🙂".repeat(1984)));
        assert_eq!(redactor.message(" \n"), "unknown error");
        // Redacted first, then cut: a key across the cut is gone whole.
        let across = redactor.field(&format!("{}{KEY}{}", "x".repeat(1980), "y".repeat(100)));
        assert!(across.starts_with(&format!("{}[red", "x".repeat(1980))), "{across}");
    }

    #[test]
    fn evidence_keeps_its_lines() {
        assert_eq!(redactor().text("a\n\tb\u{7}c", 100), "a\n\tb c");
        assert_eq!(redactor().text(&"é".repeat(100), 9), "éééé… [truncated]");
    }

    proptest! {
        #[test]
        fn any_text_is_survived_and_holds_no_key(
            before in ".{0,30}",
            form in 0..20usize,
            after in ".{0,30}",
        ) {
            let forms = forms();
            let (name, form) = &forms[form];
            let redacted = redactor().redact(&format!("{before}{form}{after}"));
            prop_assert!(!redacted.contains(form.as_str()), "{}: {}", name, redacted);
            prop_assert!(!redactor().finds(&redacted), "{}: {}", name, redacted);
        }
    }
}
