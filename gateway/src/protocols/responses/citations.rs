//! Citations in the responses protocol: annotations of a part of text, whose places count in this part.

use std::iter::Peekable;
use std::ops::Range;
use std::vec::IntoIter;

use serde_json::Value;

use crate::conversation::Citation;
use crate::protocols::citations::{KNOWN, has_only, kind, read, write};
use crate::protocols::members::object;

/// Member of a part of text.
pub(super) const ANNOTATIONS: &str = "annotations";

/// Reads an annotation of a part that begins at a place; `None`: it is no citation.
pub(super) fn read_annotation(annotation: &Value, begin: usize) -> Option<Citation> {
    kind(annotation)?;
    read(annotation, begin)
}

/// Whether a citation has no other members than those that are read.
pub(super) fn is_whole(annotation: &Value) -> bool {
    has_only(annotation, &[&["type"], &KNOWN[..]].concat())
}

/// Writes an annotation of a part with these characters.
pub(super) fn write_annotation(citation: &Citation, part: &Range<usize>) -> Value {
    let (kind, members) = write(citation, part);
    let mut annotation = object([("type", kind.into())]);
    annotation.extend(members);
    annotation.into()
}

/// The citations of an answer whose parts are written one after the other, by where they end.
/// Beside each is its place in the list.
pub(super) struct Cited<'a>(Peekable<IntoIter<(usize, &'a Citation)>>);

impl<'a> Cited<'a> {
    pub(super) fn new(citations: &'a [Citation]) -> Self {
        let mut all: Vec<(usize, &Citation)> = citations.iter().enumerate().collect();
        all.sort_by_key(|(_, citation)| end(citation));
        Self(all.into_iter().peekable())
    }

    /// Those of the next part: what they are of ends in it, or follows on it as far as anyone knows.
    /// `is_last`: of the parts.
    pub(super) fn of_part(&mut self, part: &Range<usize>, is_last: bool) -> Vec<Value> {
        let next = || self.0.next_if(|(_, citation)| is_last || end(citation) <= part.end);
        let mut all: Vec<(usize, &Citation)> = std::iter::from_fn(next).collect();
        all.sort_by_key(|(index, _)| *index);
        all.into_iter().map(|(_, citation)| write_annotation(citation, part)).collect()
    }
}

fn end(citation: &Citation) -> usize {
    citation.span.as_ref().map_or(usize::MAX, |span| span.end)
}
