//! Lone surrogates in JSON text. UTF-16 writes a character beyond the first 65,536 as a surrogate pair; providers that
//! cut text at UTF-16 units send one half in one event and the other in the next, which no strict JSON parser accepts.

/// The replacement character, as JSON.
const REPLACEMENT: &str = "\\ufffd";
/// Length of a four-digit JSON escape, in bytes.
const ESCAPE_BYTES: usize = 6;

/// The text with a replacement for each lone surrogate. `None`: there is none.
pub fn mended(json: &str) -> Option<String> {
    let mut mended: Option<String> = None;
    let (mut from, mut rest) = (0, 0);
    while let Some(at) = memchr::memchr(b'\\', &json.as_bytes()[rest..]).map(|found| rest + found) {
        let (length, is_alone) = match unit(json, at) {
            Some(0xD800..=0xDBFF) => match unit(json, at + ESCAPE_BYTES) {
                Some(0xDC00..=0xDFFF) => (2 * ESCAPE_BYTES, false),
                _ => (ESCAPE_BYTES, true),
            },
            Some(0xDC00..=0xDFFF) => (ESCAPE_BYTES, true),
            Some(_) => (ESCAPE_BYTES, false),
            // A single-character escape, possibly a backslash.
            None => (2, false),
        };
        if is_alone {
            let text = mended.get_or_insert_with(|| String::with_capacity(json.len()));
            text.push_str(&json[from..at]);
            text.push_str(REPLACEMENT);
            from = at + length;
        }
        rest = (at + length).min(json.len());
    }
    mended.map(|mut text| {
        text.push_str(&json[from..]);
        text
    })
}

/// The UTF-16 unit of the escape at this position.
fn unit(json: &str, at: usize) -> Option<u16> {
    let digits = json.as_bytes().get(at..at + ESCAPE_BYTES)?.strip_prefix(b"\\u")?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_retained() {
        assert_eq!(mended(r#"{"a":"b\ud83d"}"#).as_deref(), Some(r#"{"a":"b\ufffd"}"#));
        assert_eq!(
            mended(r#"["\ude00b\uD83D\ude00\ud83d\ud83d\ude00"]"#).as_deref(),
            Some(r#"["\ufffdb\uD83D\ude00\ufffd\ud83d\ude00"]"#)
        );
        for whole in [r#""\ud83d\ude00""#, r#""\\ud83d""#, r#""\n\u00e9""#, "\"\\", r#""\u12"#, "ü\\ü", ""]
        {
            assert_eq!(mended(whole), None, "{whole}");
        }
    }
}
