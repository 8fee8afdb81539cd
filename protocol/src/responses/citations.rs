//! Citations in the responses protocol: annotations of a text part, whose positions are relative to that part.

use std::iter::Peekable;
use std::ops::Range;
use std::vec::IntoIter;

use serde_json::Value;

use crate::citations::{KNOWN, has_only, kind, read, write};
use crate::conversation::Citation;
use crate::members::object;

/// Field of a text part.
pub(super) const ANNOTATIONS: &str = "annotations";

/// Reads an annotation of a part that begins at `begin`; `None`: it isn't a citation.
pub(super) fn read_annotation(annotation: &Value, begin: usize) -> Option<Citation> {
    kind(annotation)?;
    read(annotation, begin)
}

/// Whether a citation has only the fields that are read.
pub(super) fn is_whole(annotation: &Value) -> bool {
    has_only(annotation, &[&["type"], &KNOWN[..]].concat())
}

/// Writes an annotation of the part with these characters.
pub(super) fn write_annotation(citation: &Citation, part: &Range<usize>) -> Value {
    let (kind, members) = write(citation, part);
    let mut annotation = object([("type", kind.into())]);
    annotation.extend(members);
    annotation.into()
}

/// The citations of an answer whose parts are written one after the other, ordered by where they end. Each comes with its
/// index in the list.
pub(super) struct ResponsesCitations<'a>(Peekable<IntoIter<(usize, &'a Citation)>>);

impl<'a> ResponsesCitations<'a> {
    pub(super) fn new(citations: &'a [Citation]) -> Self {
        let mut all: Vec<(usize, &Citation)> = citations.iter().enumerate().collect();
        all.sort_by_key(|(_, citation)| end(citation));
        Self(all.into_iter().peekable())
    }

    /// The citations of the next part: those whose span ends in it, and, for the last part (`is_last`), all that remain.
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
