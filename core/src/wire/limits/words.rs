//! The wording of violations: describes a value in few words, however large it is.

use std::fmt::{self, Write};

use serde_json::Value;

use super::schema::Type;
use gatewright_safe::visible::visible;

/// Longest part of a request that a message repeats, in bytes.
const MAX_ECHOED_BYTES: usize = 100;

/// Accepts text up to the limit and refuses the rest, so that a large value is not written out only to be truncated.
struct Cut {
    text: String,
}

impl Write for Cut {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MAX_ECHOED_BYTES - self.text.len();
        if text.len() <= room {
            self.text.push_str(text);
            return Ok(());
        }
        self.text.push_str(&text[..text.floor_char_boundary(room)]);
        Err(fmt::Error)
    }
}

/// A part of a request as a message may repeat it: whole if it is short (100 bytes), otherwise its beginning followed
/// by `…`. Characters that a terminal would act on are escaped.
///
/// ```
/// use gatewright::limits::brief;
///
/// assert_eq!(brief("short"), "short");
/// assert!(brief("long ".repeat(100)).ends_with('…'));
/// ```
pub fn brief(value: impl fmt::Display) -> String {
    let mut cut = Cut { text: String::new() };
    if write!(cut, "{value}").is_err() {
        cut.text.push('…');
    }
    visible(&cut.text).into_owned()
}

/// The type of a value, for a message that expects another type.
pub(super) fn type_of(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "a boolean".to_owned(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// `a string or an array`; null comes last.
pub(super) fn types(types: &[Type]) -> String {
    let name = |kind: &Type| match kind {
        Type::Null => "null",
        Type::Boolean => "a boolean",
        Type::Integer => "an integer",
        Type::Number => "a number",
        Type::String => "a string",
        Type::Array => "an array",
        Type::Object => "an object",
    };
    let (null, others): (Vec<&Type>, Vec<&Type>) = types.iter().partition(|kind| **kind == Type::Null);
    others.into_iter().chain(null).map(name).collect::<Vec<_>>().join(" or ")
}

/// The size of a value.
pub(super) fn size_of(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{} characters", text.chars().count()),
        Value::Array(items) => format!("{} items", items.len()),
        Value::Object(members) => format!("{} members", members.len()),
        other => brief(other),
    }
}

/// An option of an enum; a string is shown without quotes.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn large_echoed_value_is_truncated() {
        assert_eq!(brief(json!("short")), "\"short\"");
        let long = brief(json!("é".repeat(1_000_000)));
        assert!(long.len() <= MAX_ECHOED_BYTES + '…'.len_utf8() && long.ends_with("é…"), "{long}");
        assert!(brief(json!(vec![0; 1_000_000])).ends_with('…'));
        assert_eq!(brief(json!("a\u{202e}b")), "\"a\\u{202e}b\"");
    }
}
