//! Helpers to read requests, shared by the rules of all protocols.

use serde_json::Value;

use super::Findings;

/// The items of a list with their indices; none if it isn't a list.
pub(crate) fn items(value: &Value) -> impl Iterator<Item = (usize, &Value)> {
    value.as_array().into_iter().flatten().enumerate()
}

/// A text field; empty if it isn't text.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// Calls a function with every nested value and its place.
pub(crate) fn walk<'a>(value: &'a Value, at: &str, visit: &mut impl FnMut(&str, &'a Value)) {
    visit(at, value);
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                walk(value, &format!("{at}/{name}"), visit);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                walk(value, &format!("{at}/{index}"), visit);
            }
        }
        _ => {}
    }
}

/// Whether any text within a value contains a word, ignoring case.
pub(crate) fn has_word(value: &Value, word: &str) -> bool {
    let mut is_there = false;
    walk(value, "", &mut |_, value| {
        is_there |= value.as_str().is_some_and(|text| text.to_ascii_lowercase().contains(word));
    });
    is_there
}

/// Whether a text is a JSON object.
pub(crate) fn is_json_object(text: &str) -> bool {
    matches!(serde_json::from_str(text), Ok(Value::Object(_)))
}

/// Whether a text has at most `longest` ASCII letters, digits, underscores, hyphens, and characters of `more`.
pub(crate) fn is_name(text: &str, longest: usize, more: &str) -> bool {
    let is_right = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c) || more.contains(c);
    !text.is_empty() && text.len() <= longest && text.chars().all(is_right)
}

/// Whether a text is base64, in the standard or the URL-safe alphabet, without line breaks.
pub(crate) fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let is_digit = |c: char| c.is_ascii_alphanumeric() || "+/-_".contains(c);
    !digits.is_empty()
        && digits.len() % 4 != 1
        && text.len() - digits.len() < 3
        && digits.chars().all(is_digit)
}

/// The media type and data of a base64 `data:` URL without parameters.
pub(crate) fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// Whether a provider fetches a URL.
pub(crate) fn is_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// Whether an image has a web or `data:` URL, as the public image schemas require.
pub(crate) fn is_picture(url: &str) -> bool {
    is_web(url) || data_url(url).is_some_and(|(kind, data)| PICTURES.contains(&kind) && is_base64(data))
}

/// Image media types that every provider accepts.
pub(crate) const PICTURES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Reports the unknown fields of an object.
pub(crate) fn unknown(object: &Value, at: &str, known: &[&str], findings: &mut Findings) {
    for name in object.as_object().into_iter().flatten().map(|(name, _)| name) {
        if !known.contains(&name.as_str()) {
            findings.report(format!("{at}/{name}"), "unknown member");
        }
    }
}

/// Reports a number that is out of range.
pub(crate) fn range(body: &Value, at: &str, least: f64, most: f64, findings: &mut Findings) {
    let value = body.pointer(at).unwrap_or(&Value::Null);
    if !value.is_null() && value.as_f64().is_none_or(|number| number < least || number > most) {
        let bounds = if most < f64::MAX { format!("{least} to {most}") } else { format!("{least} at least") };
        findings.report(at, format!("{value}, where {bounds} is right"));
    }
}

/// Reports a text that is too long, in characters.
pub(crate) fn longest(body: &Value, at: &str, most: usize, findings: &mut Findings) {
    let length = body.pointer(at).and_then(Value::as_str).map_or(0, |text| text.chars().count());
    if length > most {
        findings.report(at, format!("{length} characters, {most} at most"));
    }
}

/// Reports a value that isn't among the known ones.
pub(crate) fn one_of(body: &Value, at: &str, words: &[&str], findings: &mut Findings) {
    let value = body.pointer(at).unwrap_or(&Value::Null);
    if !value.is_null() && value.as_str().is_none_or(|word| !words.contains(&word)) {
        findings.report(at, format!("{value} is none of {words:?}"));
    }
}

/// Effort levels of chat and responses providers.
pub(crate) const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh"];

/// Metadata that chat and responses accept: 16 pairs, names of 64 characters, texts of 512. Source: `Metadata` in the
/// public schema, github.com/openai/openai-openapi.
pub(crate) fn metadata(body: &Value, findings: &mut Findings) {
    let Some(members) = body["metadata"].as_object() else { return };
    if members.len() > 16 {
        findings.report("/metadata", format!("{} pairs, 16 at most", members.len()));
    }
    for (name, value) in members {
        let is_right = value.as_str().is_some_and(|text| text.chars().count() <= 512);
        if !is_right || name.chars().count() > 64 {
            findings.report(format!("/metadata/{name}"), "a name of 64 and a text of 512 characters at most");
        }
    }
}
