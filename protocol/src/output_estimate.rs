//! How much a model has written, for streams whose usage nobody reports: bytes of text, read from JSON without building a tree or
//! copying.

use memchr::{memchr, memchr2};
use serde_json::value::RawValue;

/// Bytes of text per token, roughly, in most languages.
const TEXT_PER_TOKEN: u64 = 4;
/// Members of content that only label it.
const LABELS: [&str; 4] = ["id", "index", "role", "type"];

/// Estimated tokens of a stream's output. `pieces`: its events with content, each of which has at least one token. `bytes`: their
/// text.
pub fn estimated_output(pieces: u64, bytes: u64) -> u64 {
    pieces.max(bytes / TEXT_PER_TOKEN)
}

/// Bytes of the thought that this proof or encrypted text stands for. It is base64, of about the same length as the thought.
pub(crate) fn hidden(opaque: usize) -> usize {
    opaque / 4 * 3
}

/// The same for a value of JSON.
pub(crate) fn hidden_in(opaque: &RawValue) -> usize {
    hidden(text(opaque))
}

/// Bytes of a string, or of another value as it is written.
pub(crate) fn text(value: &RawValue) -> usize {
    match value.get() {
        "null" => 0,
        value => value.strip_prefix('"').map_or(value.len(), |rest| string(rest).0),
    }
}

/// Bytes of all strings in a value, without the names and values of labels.
pub(crate) fn texts(value: &RawValue) -> usize {
    let (mut rest, mut bytes, mut is_label) = (value.get(), 0, false);
    while let Some(start) = memchr(b'"', rest.as_bytes()) {
        let inside = &rest[start + 1..];
        let (length, end) = string(inside);
        rest = inside.get(end + 1..).unwrap_or_default();
        if rest.trim_ascii_start().starts_with(':') {
            is_label = LABELS.contains(&&inside[..end]);
        } else if !is_label {
            bytes += length;
        }
    }
    bytes
}

/// The length in UTF-8, about, of a string that this JSON begins with; and where its quotation mark is.
fn string(inside: &str) -> (usize, usize) {
    let (mut at, mut length) = (0, 0);
    while let Some(next) = memchr2(b'"', b'\\', &inside.as_bytes()[at..]) {
        length += next;
        at += next;
        match inside.as_bytes()[at..] {
            [b'\\', b'u', ..] => (at, length) = (at + 6, length + 3),
            [b'\\', ..] => (at, length) = (at + 2, length + 1),
            _ => return (length, at),
        }
        at = at.min(inside.len());
    }
    (length + inside.len() - at, inside.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> &RawValue {
        serde_json::from_str(json).expect("JSON")
    }

    #[test]
    fn text_is_counted_without_escapes_names_and_labels() {
        for (json, expected) in [
            ("null", 0),
            (r#""""#, 0),
            (r#""four""#, 4),
            (r#""a\"b\\c\n""#, 6),
            (r#""\u4e2d\u6587""#, "中文".len()),
            (r#""中文""#, "中文".len()),
            (r#"{"a":[1,2]}"#, 11),
        ] {
            assert_eq!(text(raw(json)), expected, "{json}");
        }
        for (json, expected) in [
            ("[]", 0),
            (r#"["ab", "c\"d"]"#, 5),
            (
                r#"[{"index":0,"id":"call_1","type" : "function","function":{"name":"fn","arguments":"{\"a\":1}"}}]"#,
                9,
            ),
            (r#"[{"type":"thinking","thinking":[{"type":"text","text":"abc"}]}]"#, 3),
        ] {
            assert_eq!(texts(raw(json)), expected, "{json}");
        }
    }

    #[test]
    fn output_has_a_token_per_event_and_per_four_bytes() {
        assert_eq!([estimated_output(3, 8), estimated_output(1, 4000)], [3, 1000]);
    }
}
