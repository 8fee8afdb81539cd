//! Citations: their fields in the formats that name them, and their limits.

use std::ops::Range;

use serde_json::{Map, Value, json};

use super::members::object;
use crate::conversation::{Choice, Citation, Part, PartKind};

/// Maximum number of citations of an answer.
pub(super) const MAX_CITATIONS: usize = 500;
/// Maximum length of a text of a citation, in bytes.
const MAX_TEXT_BYTES: usize = 8 * 1024;
/// Kind of a citation with a URL, and of one without.
const OF_URL: &str = "url_citation";
const OF_DOCUMENT: &str = "document_citation";
/// The fields of both.
pub(super) const KNOWN: [&str; 5] = ["start_index", "end_index", "url", "title", "quote"];

/// A text of a citation. Errors: it is too long.
pub(super) fn text(citation: &Value, name: &str) -> Result<Option<String>, ()> {
    match citation[name].as_str() {
        Some(text) if text.len() > MAX_TEXT_BYTES => Err(()),
        text => Ok(text.map(str::to_owned)),
    }
}

/// Reads a list of citations and returns whether all of it was understood. `is_whole`: whether a citation has only the
/// fields that are read.
pub(super) fn list(
    given: &Value,
    read: impl Fn(&Value) -> Option<Citation>,
    is_whole: impl Fn(&Value) -> bool,
) -> (Vec<Citation>, bool) {
    let given = given.as_array().map(Vec::as_slice).unwrap_or_default();
    let read: Vec<Citation> = given.iter().take(MAX_CITATIONS).filter_map(read).collect();
    let is_all = read.len() == given.len() && given.iter().all(is_whole);
    (read, is_all)
}

/// Whether an object has no other fields than these.
pub(super) fn has_only(object: &Value, known: &[&str]) -> bool {
    object.as_object().is_none_or(|members| members.keys().all(|name| known.contains(&name.as_str())))
}

/// Number of characters in the text of some parts.
fn text_length(parts: &[Part]) -> usize {
    let texts = parts.iter().map(|part| match &part.kind {
        PartKind::Text(text) => text.chars().count(),
        _ => 0,
    });
    texts.sum()
}

/// Clamps spans that reach beyond the text to its end: some providers count bytes.
pub(super) fn clamp(choice: &mut Choice) {
    let length = text_length(&choice.parts);
    for span in choice.citations.iter_mut().filter_map(|citation| citation.span.as_mut()) {
        *span = span.start.min(length)..span.end.min(length);
    }
}

/// A span relative to a text that begins at `begin`. `None`: out of range.
pub(super) fn moved(span: &Range<usize>, begin: usize) -> Option<Range<usize>> {
    Some(span.start.checked_add(begin)?..span.end.checked_add(begin)?)
}

/// The kind of an annotation if it is a citation.
pub(super) fn kind(annotation: &Value) -> Option<&str> {
    annotation["type"].as_str().filter(|kind| matches!(*kind, OF_URL | OF_DOCUMENT))
}

/// Reads the fields of an annotation. `base`: where the text begins that its positions count from.
pub(super) fn read(members: &Value, base: usize) -> Option<Citation> {
    let place = |name: &str| members[name].as_u64().and_then(|place| usize::try_from(place).ok());
    let span = match (place("start_index"), place("end_index")) {
        (Some(start), Some(end)) if start <= end => Some(moved(&(start..end), base)?),
        _ => None,
    };
    let text = |name: &str| text(members, name).ok();
    Some(Citation { url: text("url")?, title: text("title")?, quote: text("quote")?, span })
}

/// Writes the kind and fields of an annotation. `text`: the characters of the text that its positions refer to.
pub(super) fn write(citation: &Citation, text: &Range<usize>) -> (&'static str, Map<String, Value>) {
    // Without a span, the citation covers the whole text.
    let span = citation.span.as_ref().unwrap_or(text);
    let place = |place: usize| json!(place.clamp(text.start, text.end) - text.start);
    let mut members = object([("start_index", place(span.start)), ("end_index", place(span.end))]);
    for (name, text) in [("url", &citation.url), ("title", &citation.title), ("quote", &citation.quote)] {
        if let Some(text) = text {
            members.insert(name.to_owned(), json!(text));
        }
    }
    if citation.url.is_none() {
        return (OF_DOCUMENT, members);
    }
    // Clients expect a title next to a URL.
    members.entry("title").or_insert_with(|| json!(citation.url));
    (OF_URL, members)
}
