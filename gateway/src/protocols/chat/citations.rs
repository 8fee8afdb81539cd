//! Citations in the chat protocol: annotations whose members stand under the name of their kind.

use serde_json::{Value, json};

use crate::conversation::Citation;
use crate::protocols::citations::{kind, read, write};

/// Reads an annotation; `None`: it is no citation.
pub(super) fn read_annotation(annotation: &Value) -> Option<Citation> {
    read(&annotation[kind(annotation)?], 0)
}

/// Writes an annotation of a text of this length, in characters.
pub(super) fn write_annotation(citation: &Citation, length: usize) -> Value {
    let (kind, members) = write(citation, &(0..length));
    json!({ "type": kind, kind: members })
}
