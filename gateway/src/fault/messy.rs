//! The fault `messy`: the answer has the same content, but deviates from the specification in ways that real providers do
//! (`deviations.rs` of each protocol).

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use gatewright::operations::Operation;
use gatewright_protocol::conversation::Protocol;

use super::FaultStream;

/// The comment that servers send while a request waits for its first event.
const COMMENT: &[u8] = b": waiting\r\n\r\n";

/// Rewrites the documents of an answer: a whole one, or those of a stream's events.
pub(super) fn mess_up(pieces: FaultStream, streams: bool, operation: &Operation) -> FaultStream {
    let protocol = Protocol::of_operation(operation.protocol);
    let rewrite = move |piece: Result<Bytes, std::io::Error>| {
        let piece = match piece {
            Ok(piece) => piece,
            Err(error) => return vec![Err(error)],
        };
        if streams {
            return event(protocol, &piece).map(Ok).into_iter().collect();
        }
        let Ok(mut document) = serde_json::from_slice(&piece) else { return vec![Ok(piece)] };
        if let Some(protocol) = protocol {
            protocol.deviate(&mut document);
        }
        vec![Ok(document.to_string().into())]
    };
    let messy = pieces.flat_map(move |piece| stream::iter(rewrite(piece)));
    if streams { stream::iter([Ok(Bytes::from_static(COMMENT))]).chain(messy).boxed() } else { messy.boxed() }
}

/// Rewrites an event of a stream; `None` if it is omitted.
fn event(protocol: Option<Protocol>, piece: &[u8]) -> Option<Bytes> {
    let text = str::from_utf8(piece).ok()?;
    let lines: Option<Vec<String>> = text
        .lines()
        .map(|line| match line.strip_prefix("data: ").map(serde_json::from_str) {
            Some(Ok(mut document)) => {
                let is_sent = protocol.is_none_or(|protocol| protocol.deviate_event(&mut document));
                is_sent.then(|| format!("data:{document}"))
            }
            _ => Some(line.to_owned()),
        })
        .collect();
    // Some servers end lines with CRLF.
    lines.map(|lines| lines.iter().flat_map(|line| [line, "\r\n"]).collect::<String>().into())
}
