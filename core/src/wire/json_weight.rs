//! Estimates how much memory a JSON text needs once it is parsed, by one scan that builds no values. A few bytes can
//! need hundreds (`{},` does), so a bound on bytes alone is not enough. Text written by people and models needs less
//! than [`LIGHT`] times its length.

use std::fmt;

use memchr::memchr2;

/// Memory that any text may need, in bytes.
const FREE: usize = 8 * 1024 * 1024;
/// Additional memory that a text may need, as a multiple of its length. A list of log probabilities, the heaviest
/// genuine response, needs about half of it.
const LIGHT: usize = 64;
/// Maximum memory per byte of text: that of a byte that begins an object.
const HEAVIEST: usize = OBJECT + 1;

/// A table for a few members, and the members that a repair may add to an object that has none.
const OBJECT: usize = 512;
/// Room for the first elements.
const ARRAY: usize = 288;
/// One more value, including the reserve that its list keeps for it.
const ELEMENT: usize = 144;
/// As [`ELEMENT`], plus its name.
const MEMBER: usize = 208;

/// A JSON text that needs too much memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JsonTooLarge {
    /// Length of the text, in bytes.
    length: usize,
}

impl fmt::Display for JsonTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "its {} bytes hold far more lists and objects than any answer has", self.length)
    }
}

impl std::error::Error for JsonTooLarge {}

/// Checks that a text can be parsed within the memory allowed. Errors: it cannot.
pub(crate) fn check(json: &[u8]) -> Result<(), JsonTooLarge> {
    if json.len() <= FREE / HEAVIEST || weight(json) <= FREE + LIGHT * json.len() {
        return Ok(());
    }
    Err(JsonTooLarge { length: json.len() })
}

/// Whether a text can be parsed into values of any language at an acceptable cost, for front ends that parse the bodies
/// carried by errors.
///
/// ```
/// assert!(gatewright::is_light(br#"{"error": "no such model"}"#));
/// assert!(!gatewright::is_light("[".repeat(1_000_000).as_bytes()));
/// ```
pub fn is_light(json: &[u8]) -> bool {
    check(json).is_ok()
}

/// About how many bytes the values of a JSON text take, for programs that bound them. Text that is not JSON has some weight
/// too.
///
/// ```
/// use gatewright::json_weight;
///
/// assert!(json_weight(b"[[[[[[[[]]]]]]]]") > json_weight(br#""sixteen letters""#));
/// ```
pub fn weight(json: &[u8]) -> usize {
    let (mut weight, mut at) = (json.len(), 0);
    // One bit per level: whether it is an object. The outer levels of a deeper text are forgotten; no parser accepts
    // such a text.
    let mut objects = 0_u128;
    while let Some(&byte) = json.get(at) {
        at += 1;
        match byte {
            b'"' => at = string_end(json, at),
            b'{' | b'[' => {
                let is_object = byte == b'{';
                objects = objects << 1 | u128::from(is_object);
                weight += if is_object { OBJECT } else { ARRAY };
            }
            b'}' | b']' => objects >>= 1,
            b',' => weight += if objects & 1 == 1 { MEMBER } else { ELEMENT },
            _ => {}
        }
    }
    weight
}

/// Position just past the string whose opening quote is before this position.
fn string_end(json: &[u8], mut at: usize) -> usize {
    while let Some(found) = json.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found + 1;
        if json[at - 1] == b'"' {
            return at;
        }
        at += 1;
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_that_multiplies_in_memory_is_rejected() {
        for piece in ["{},", "[],", r#"{"":0},"#, "[[],[]],", "0,", r#""",{},"#] {
            let text = format!("[{}0]", piece.repeat(2 * 1024 * 1024 / piece.len()));
            assert!(check(text.as_bytes()).is_err(), "{piece}");
        }
        let deep = format!("{}{}", r#"{"":["#.repeat(200_000), "]}".repeat(200_000));
        assert!(check(deep.as_bytes()).is_err());
    }

    #[test]
    fn realistic_responses_of_any_length_are_accepted() {
        let token = r#"{"token":"the","logprob":-0.0123,"bytes":[116,104,101],"top_logprobs":[]},"#;
        let text = format!(r#"{{"type":"text","text":"{}"}},"#, "word {[,]} ".repeat(5));
        for piece in [token, text.as_str(), "-0.012345678,", r#""a \" , [ { text","#] {
            let text = format!("[{}0]", piece.repeat(2 * 1024 * 1024 / piece.len()));
            assert_eq!(check(text.as_bytes()), Ok(()), "{piece}");
        }
        assert_eq!(check(format!("\"{}\"", "[".repeat(4 << 20)).as_bytes()), Ok(()));
    }

    #[test]
    fn heaviest_json_stays_within_the_assumed_maximum() {
        for piece in ["{},", "[],", "{", "[", ",", "[{},", r#"{"":[],"#] {
            let text = piece.repeat(1000);
            assert!(weight(text.as_bytes()) <= HEAVIEST * text.len(), "{piece}");
        }
    }
}
