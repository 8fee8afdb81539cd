//! Compares the vectorized steps with byte-by-byte ones.

use super::{Scan, plain_length, spaces};

/// Characters that a string may contain unescaped, and some before which a step must stop, or not.
const BYTES: &[u8] = b"\x00\x01\t\n\x1f !\"#[\\]a\x7f\x80\xa2\xc3\xff";

/// Texts of each length up to 64 with each byte at each position, alone and with a quotation mark at each position
/// after it.
fn texts(mut judge: impl FnMut(&[u8])) {
    for length in 0..=64 {
        for fill in *b"a " {
            judge(&vec![fill; length]);
            for place in 0..length {
                for byte in BYTES {
                    let mut text = vec![fill; length];
                    text[place] = *byte;
                    judge(&text);
                    text[length - 1] = b'"';
                    judge(&text);
                }
            }
        }
    }
}

#[test]
fn plain_length_stops_at_the_first_special_byte_at_any_offset() {
    texts(|text| {
        let special = |byte: &u8| matches!(byte, ..b' ' | b'"' | b'\\');
        assert_eq!(plain_length(text), text.iter().position(special).unwrap_or(text.len()), "{text:?}");
    });
}

#[test]
fn word_ends_at_the_first_quotation_mark_at_any_offset() {
    texts(|text| {
        let document = [b"\"", text].concat();
        let end = text.iter().position(|byte| *byte == b'"');
        assert_eq!(Scan::new(&document).word(), end.map(|end| &text[..end]), "{text:?}");
    });
}

#[test]
fn strings_match_another_parser() {
    let mut sound = 0;
    texts(|text| {
        let document = [b"\"", text].concat();
        let mut values = serde_json::Deserializer::from_slice(&document).into_iter::<String>();
        let end = values.next().and_then(Result::ok).map(|_| values.byte_offset());
        let mut scan = Scan::new(&document);
        let length = scan.text().map(<[u8]>::len);
        assert_eq!(length, end.map(|end| end - 2), "{text:?}");
        sound += usize::from(end.is_some());
        if let Some(end) = end {
            assert_eq!(scan.remaining(), document.len() - end, "{text:?}");
        }
    });
    assert!(sound > 10_000, "only {sound} texts are strings");
}

#[test]
fn leading_spaces_are_counted_at_any_offset() {
    texts(|text| {
        assert_eq!(spaces(text), text.iter().take_while(|byte| **byte == b' ').count(), "{text:?}");
    });
}

/// A fraction of zeros keeps the value an integer; a floating-point parser agrees.
#[test]
fn integers_may_have_only_a_zero_fraction() {
    let written = ["1.0", "0.0", "-0.0", "-2.00", "300.000000000000000000", "7"];
    let integers = [1, 0, 0, -2, 300, 7];
    for (text, integer) in written.iter().zip(integers) {
        for after in ["", ",", " ", "}", "]"] {
            let document = format!("{text}{after}");
            let mut scan = Scan::new(document.as_bytes());
            assert_eq!(scan.integer(i64::MIN, i64::MAX), Some(integer), "{document}");
            assert_eq!(scan.remaining(), after.len(), "{document}");
        }
    }
    for text in
        ["1.", "1.,", "1.5", "1.05", "1.0e1", "1.0E-1", "00.0", "-.0", ".0", "01.0", "1.00001", "1e2", "-"]
    {
        assert_eq!(Scan::new(text.as_bytes()).integer(i64::MIN, i64::MAX), None, "{text}");
    }
    assert_eq!(Scan::new(b"5.0").integer(0, 4), None);
}
