//! Forwards a whole answer: reads it to the end before sending the first byte, so that a truncated answer is never mistaken for a
//! complete one.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use gatewright::redact::Redactor;
use http_body_util::BodyExt as _;

use super::failure::Fault;
use super::stream_inspector::StreamInspector;
use crate::bounds::room::Share;
use crate::wire::lazy_json::spliced;

/// Maximum size of an answer: enough for base64 images.
pub(crate) const MOST_BYTES: usize = 128 * 1024 * 1024;

/// Reads a body to its end. `most`: its maximum size in bytes. `share`: holds the memory that it takes, as it arrives.
pub(crate) async fn read(
    body: Body,
    most: usize,
    idle_timeout: Duration,
    redactor: &Redactor,
    share: &mut Share,
) -> Result<Bytes, Fault> {
    let no_room = |why| Fault::no_room(why, redactor);
    let mut body = body;
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    loop {
        let frame = match tokio::time::timeout(idle_timeout, body.frame()).await {
            Err(_) => return Err(Fault::silent(idle_timeout, redactor)),
            Ok(None) => break,
            Ok(Some(Err(_))) => return Err(Fault::broken("broke off", redactor)),
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(packet) = frame.into_data() else { continue };
        // Most answers are a single packet, which isn't copied.
        if first.is_empty() && rest.is_empty() {
            share.hold(packet.len()).map_err(no_room)?;
            first = packet;
            continue;
        }
        let length = first.len().max(rest.len()) + packet.len();
        if length > most {
            return Err(Fault::broken(&format!("is longer than {most} bytes"), redactor));
        }
        if length > rest.capacity() {
            let capacity = length.max(2 * rest.capacity());
            share.hold(first.len() + capacity).map_err(no_room)?;
            rest.reserve(capacity - rest.len());
        }
        if rest.is_empty() {
            rest.extend_from_slice(&first);
        }
        rest.extend_from_slice(&packet);
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

/// The answer for the client: with the client's name for the model.
pub(crate) fn passed(
    document: &Bytes,
    inspector: &mut StreamInspector,
    redactor: &Redactor,
    share: &mut Share,
) -> Result<Bytes, Fault> {
    // For the copy with the other name.
    share.hold(2 * document.len()).map_err(|why| Fault::no_room(why, redactor))?;
    let text = std::str::from_utf8(document).map_err(|_| Fault::broken("is not text", redactor))?;
    match inspector.document(text) {
        Ok(None) => Ok(document.clone()),
        Ok(Some(at)) => Ok(spliced(document, &[(at, inspector.model())])),
        Err(Some(failure)) => Err(Fault::of_event(failure, redactor)),
        Err(None) => Err(Fault::broken("is not a JSON object", redactor)),
    }
}
