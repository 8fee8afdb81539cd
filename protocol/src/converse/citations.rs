//! Citations.

use std::ops::Range;

use serde_json::Value;

use crate::citations::{has_only, text};
use crate::conversation::Citation;

/// Reads a citation of a text with this span; `None`: one of its texts is too long.
pub(super) fn read(citation: &Value, span: Range<usize>) -> Option<Citation> {
    let quotes = citation["sourceContent"].as_array().into_iter().flatten();
    let quotes: Vec<String> = quotes
        .map(|quote| text(quote, "text"))
        .collect::<Result<Vec<_>, _>>()
        .ok()?
        .into_iter()
        .flatten()
        .collect();
    Some(Citation {
        url: text(&citation["location"]["web"], "url").ok()?,
        title: text(citation, "title").ok()?,
        quote: (!quotes.is_empty()).then(|| quotes.join("\n")),
        span: Some(span),
    })
}

/// Whether a citation has only the fields that are read, and locations in documents of the request, which mean nothing to
/// another protocol.
pub(super) fn is_whole(citation: &Value) -> bool {
    let quotes = citation["sourceContent"].as_array().into_iter().flatten();
    has_only(citation, &["title", "sourceContent", "location"])
        && quotes.into_iter().all(|quote| has_only(quote, &["text"]))
}
