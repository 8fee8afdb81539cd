//! Turns text that is nearly JSON into JSON: some servers write text that parsers need not accept. If there is nothing to
//! repair, this costs at most one scan of the text.

use std::borrow::Cow;

use memchr::memchr;
use serde_json::Value;

/// Words that several serializers write for numbers that JSON cannot express; null replaces them.
const NOT_NUMBERS: &[&str] = &["NaN", "-NaN", "Infinity", "-Infinity", "nan", "-nan", "inf", "-inf"];

/// Replaces escapes of lone surrogates with U+FFFD: a string cannot hold half a character.
pub fn surrogates(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut mended = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = memchr(b'\\', &bytes[at..]) {
        at += found;
        match escape(bytes, at) {
            Some(0xD800..=0xDBFF) if matches!(escape(bytes, at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
            Some(0xD800..=0xDFFF) => {
                mended.push_str(&text[copied..at]);
                mended.push('\u{FFFD}');
                at += 6;
                copied = at;
            }
            _ => at = bytes.len().min(at + 2),
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    mended.push_str(&text[copied..]);
    Cow::Owned(mended)
}

/// The code unit of the escape `\uXXXX` at this position.
fn escape(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Replaces numbers that cannot be represented (`NaN`, `-Infinity`, `1e999`) with null. None if there is nothing to
/// replace.
pub(crate) fn numbers(text: &str) -> Option<String> {
    let mut mended = String::new();
    let mut copied = 0;
    for (at, word) in words(text) {
        if NOT_NUMBERS.contains(&word) || word.parse().is_ok_and(f64::is_infinite) {
            mended.push_str(&text[copied..at]);
            mended.push_str("null");
            copied = at + word.len();
        }
    }
    if copied == 0 {
        return None;
    }
    mended.push_str(&text[copied..]);
    Some(mended)
}

/// The numbers and words outside of strings, each with its position.
pub(crate) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(&byte) = bytes.get(at) {
            if byte == b'"' {
                at = string_end(bytes, at);
            } else if byte.is_ascii_alphanumeric() || byte == b'-' {
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
                let begin = at;
                at += bytes[begin..].iter().take_while(|byte| is_part(byte)).count();
                return Some((begin, &text[begin..at]));
            } else {
                at += 1;
            }
        }
        None
    })
}

/// Position just past the string that begins here.
fn string_end(bytes: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// A body that is nearly JSON as JSON. None if there is nothing to repair.
pub(crate) fn body(json: &[u8]) -> Option<String> {
    match text(std::str::from_utf8(json).ok()?) {
        Cow::Owned(mended) => Some(mended),
        Cow::Borrowed(_) => None,
    }
}

/// Repairs everything that can be repaired.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    let mended = surrogates(text);
    match numbers(&mended) {
        Some(mended) => Cow::Owned(mended),
        None => mended,
    }
}

/// Parses a document and repairs it if necessary. Errors: it cannot be repaired; the error describes the original text.
pub(crate) fn value(json: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(json).or_else(|error| serde_json::from_str(&text(json)).map_err(|_| error))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_retained() {
        assert_eq!(surrogates(r#""\ud83d\ude00 \u00e9 \\ud800""#), r#""\ud83d\ude00 \u00e9 \\ud800""#);
        assert_eq!(surrogates(r#""\uD800""#), "\"\u{FFFD}\"");
        assert_eq!(surrogates(r#""a\udc00b\ud800\ud83d\ude00""#), "\"a\u{FFFD}b\u{FFFD}\\ud83d\\ude00\"");
        assert_eq!(surrogates(r#""\ud800\n""#), "\"\u{FFFD}\\n\"");
        assert_eq!(surrogates("\"\\"), "\"\\");
    }

    #[test]
    fn non_json_numbers_become_null_outside_strings() {
        let text = r#"{"a":NaN,"b":[-Infinity,1e999,-1.5e3],"c":"NaN \" Infinity","d":true}"#;
        assert_eq!(
            numbers(text).as_deref(),
            Some(r#"{"a":null,"b":[null,null,-1.5e3],"c":"NaN \" Infinity","d":true}"#)
        );
        assert_eq!(numbers(r#"{"a":1,"b":"NaN"}"#), None);
    }

    #[test]
    fn repairable_document_is_parsed_and_irreparable_one_rejected() {
        assert_eq!(
            value(r#"{"a":NaN,"b":"\ud800"}"#).expect("repaired"),
            json!({"a": null, "b": "\u{FFFD}"})
        );
        assert!(value(r#"{"a":nothing}"#).is_err());
    }

    proptest! {
        #[test]
        fn valid_json_is_unchanged_and_arbitrary_text_does_not_panic(text in r#"[\\ud8Cc0"{}:aN-e9.,é]{0,40}"#) {
            let _ = value(&text);
            let json = Value::from(text).to_string();
            prop_assert_eq!(surrogates(&json), json.as_str());
            prop_assert_eq!(numbers(&json), None);
        }
    }
}
