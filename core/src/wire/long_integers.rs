//! Integers of more than 64 bits: JSON has them, but [`Value`] would make them floats.

use indexmap::IndexMap;
use serde::de::Error as _;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::wire::limits::brief;
use crate::wire::repair::words;

/// Members that a caller gives as JSON text. Errors: it is not an object, or a member has a long integer.
pub fn members(json: &[u8]) -> Result<Map<String, Value>, serde_json::Error> {
    let texts: IndexMap<String, &RawValue> = serde_json::from_slice(json)?;
    for (name, text) in texts {
        if let Some(digits) = long_integer(text.get()) {
            let digits = brief(digits);
            let message = format!(
                "{name} has the integer {digits}, of more than 64 bits; write it as text or as a float"
            );
            return Err(serde_json::Error::custom(message));
        }
    }
    serde_json::from_slice(json)
}

/// The first integer of a JSON text that has more than 64 bits.
pub(crate) fn long_integer(json: &str) -> Option<&str> {
    words(json).map(|(_, word)| word).find(|word| {
        let digits = word.strip_prefix('-').unwrap_or(word);
        digits.bytes().all(|byte| byte.is_ascii_digit())
            && word.parse::<i64>().is_err()
            && word.parse::<u64>().is_err()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_integers_outside_strings_are_long() {
        let fits = r#"{"a": [-9223372036854775808, 18446744073709551615, 1e30, -0], "36893488147419103232": "\"36893488147419103232"}"#;
        assert_eq!(long_integer(fits), None);
        assert_eq!(long_integer("[1, {\"a\": 18446744073709551616}]"), Some("18446744073709551616"));
        assert_eq!(long_integer("-9223372036854775809"), Some("-9223372036854775809"));
    }

    #[test]
    fn member_with_a_long_integer_is_named() {
        let error = members(br#"{"a": 1, "seed": [{"b": 1180591620717411303424}]}"#).expect_err("refused");
        assert!(error.to_string().contains("seed has the integer 1180591620717411303424"), "{error}");
        let long = format!("{{\"seed\": {}}}", "9".repeat(1_000_000));
        assert!(members(long.as_bytes()).expect_err("refused").to_string().len() < 1_000);
    }
}
