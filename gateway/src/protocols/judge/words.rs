//! Readings of a request that the rules of all protocols share.

use serde_json::Value;

use super::Findings;

/// The items of a list with their numbers; none if it is no list.
pub(super) fn items(value: &Value) -> impl Iterator<Item = (usize, &Value)> {
    value.as_array().into_iter().flatten().enumerate()
}

/// A member that is text; empty if it is not.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// Calls a function with every value within a document, and where it is.
pub(super) fn walk<'a>(value: &'a Value, at: &str, visit: &mut impl FnMut(&str, &'a Value)) {
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

/// Whether a text within a value has a word, in capital letters or not.
pub(super) fn has_word(value: &Value, word: &str) -> bool {
    let mut is_there = false;
    walk(value, "", &mut |_, value| {
        is_there |= value.as_str().is_some_and(|text| text.to_ascii_lowercase().contains(word));
    });
    is_there
}

/// Whether a text is a JSON object.
pub(super) fn is_json_object(text: &str) -> bool {
    matches!(serde_json::from_str(text), Ok(Value::Object(_)))
}

/// Whether a text has up to so many ASCII letters, digits, underscores, hyphens, and nothing else but `more`.
pub(super) fn is_name(text: &str, longest: usize, more: &str) -> bool {
    let is_right = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c) || more.contains(c);
    !text.is_empty() && text.len() <= longest && text.chars().all(is_right)
}

/// Whether a text is base64, in the usual alphabet or the one for addresses, without line breaks.
pub(super) fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let is_digit = |c: char| c.is_ascii_alphanumeric() || "+/-_".contains(c);
    !digits.is_empty()
        && digits.len() % 4 != 1
        && text.len() - digits.len() < 3
        && digits.chars().all(is_digit)
}

/// The media type and the data of a `data:` address in base64 without parameters.
pub(super) fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// Whether a provider fetches an address.
pub(super) fn is_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// Whether a picture is at an address, or in a `data:` address, as the public schemas of images demand.
pub(super) fn is_picture(url: &str) -> bool {
    is_web(url) || data_url(url).is_some_and(|(kind, data)| PICTURES.contains(&kind) && is_base64(data))
}

/// Media types of pictures that every provider takes.
pub(super) const PICTURES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Says which members of an object are not known.
pub(super) fn unknown(object: &Value, at: &str, known: &[&str], findings: &mut Findings) {
    for name in object.as_object().into_iter().flatten().map(|(name, _)| name) {
        if !known.contains(&name.as_str()) {
            findings.say(format!("{at}/{name}"), "unknown member");
        }
    }
}

/// Says that a number is not within its bounds.
pub(super) fn range(body: &Value, at: &str, least: f64, most: f64, findings: &mut Findings) {
    let value = body.pointer(at).unwrap_or(&Value::Null);
    if !value.is_null() && value.as_f64().is_none_or(|number| number < least || number > most) {
        let bounds = if most < f64::MAX { format!("{least} to {most}") } else { format!("{least} at least") };
        findings.say(at, format!("{value}, where {bounds} is right"));
    }
}

/// Says that a text is longer than so many characters.
pub(super) fn longest(body: &Value, at: &str, most: usize, findings: &mut Findings) {
    let length = body.pointer(at).and_then(Value::as_str).map_or(0, |text| text.chars().count());
    if length > most {
        findings.say(at, format!("{length} characters, {most} at most"));
    }
}

/// Says that a word is none of those that are known.
pub(super) fn one_of(body: &Value, at: &str, words: &[&str], findings: &mut Findings) {
    let value = body.pointer(at).unwrap_or(&Value::Null);
    if !value.is_null() && value.as_str().is_none_or(|word| !words.contains(&word)) {
        findings.say(at, format!("{value} is none of {words:?}"));
    }
}

/// Words for how much a model thinks, at providers of chat and responses.
pub(super) const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh"];

/// Metadata that chat and responses take: 16 pairs, names of 64 characters, texts of 512. Source: `Metadata` in the public
/// schema, github.com/openai/openai-openapi.
pub(super) fn metadata(body: &Value, findings: &mut Findings) {
    let Some(members) = body["metadata"].as_object() else { return };
    if members.len() > 16 {
        findings.say("/metadata", format!("{} pairs, 16 at most", members.len()));
    }
    for (name, value) in members {
        let is_right = value.as_str().is_some_and(|text| text.chars().count() <= 512);
        if !is_right || name.chars().count() > 64 {
            findings.say(format!("/metadata/{name}"), "a name of 64 and a text of 512 characters at most");
        }
    }
}
