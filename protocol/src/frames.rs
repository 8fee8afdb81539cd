//! Server-sent events as bytes.

use serde::Serialize;

/// Writes an event with a name.
pub(super) fn named(name: &str, document: &impl Serialize, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(b"event: ");
    bytes.extend_from_slice(name.as_bytes());
    bytes.push(b'\n');
    data(document, bytes);
}

/// Writes an event without a name. JSON text has no line breaks, so one data line is enough.
pub(super) fn data(document: &impl Serialize, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(b"data: ");
    serde_json::to_writer(&mut *bytes, document)
        .expect("documents are made of plain values, and memory takes all");
    bytes.extend_from_slice(b"\n\n");
}
