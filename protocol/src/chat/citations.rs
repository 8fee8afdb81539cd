//! Citations in the chat protocol: annotations whose fields are nested under their kind.

use serde_json::{Value, json};

use crate::citations::{KNOWN, has_only, kind, read, write};
use crate::conversation::Citation;

/// Reads an annotation; `None`: it isn't a citation.
pub(super) fn read_annotation(annotation: &Value) -> Option<Citation> {
    read(&annotation[kind(annotation)?], 0)
}

/// Whether a citation has only the fields that are read.
pub(super) fn is_whole(annotation: &Value) -> bool {
    kind(annotation)
        .is_some_and(|kind| has_only(annotation, &["type", kind]) && has_only(&annotation[kind], &KNOWN))
}

/// Writes an annotation for a text of this length, in characters.
pub(super) fn write_annotation(citation: &Citation, length: usize) -> Value {
    let (kind, members) = write(citation, &(0..length));
    json!({ "type": kind, kind: members })
}
