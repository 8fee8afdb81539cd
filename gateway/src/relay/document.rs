//! Forwards a whole answer: reads it to the end before sending the first byte, so that a truncated answer is never mistaken for a
//! complete one.

use std::time::Duration;

use bytes::Bytes;
use gatewright::redact::Redactor;
use http_body_util::BodyExt as _;
use tokio::time::Instant;

use super::failure::AttemptFailure;
use crate::bounds::gathering::Gathering;
use crate::bounds::memory_budget::Reservation;
use crate::bounds::pace::Pace;
use crate::upstream::Endpoint;
use crate::wire::Body;
use gatewright_protocol::inspect::StreamInspector;
use gatewright_protocol::lazy_json::spliced;

/// Maximum size of an answer: enough for base64 images.
pub(crate) const MAX_BYTES: usize = 128 * 1024 * 1024;

/// How long an upstream may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// For the first byte of the document. Some servers send white space while they work.
    pub(super) begin: Duration,
    /// Between two bytes.
    pub(super) idle: Duration,
}

impl Patience {
    pub(super) fn of(endpoint: &Endpoint) -> Self {
        Self { begin: endpoint.timeout, idle: endpoint.idle_timeout }
    }
}

/// Reads a body to its end, if it comes at the [minimum rate](Pace). `most`: its maximum size in bytes. `share`: holds the memory
/// that it takes, as it arrives.
pub(super) async fn read(
    body: Body,
    most: usize,
    patience: Patience,
    redactor: &Redactor,
    share: &mut Reservation,
) -> Result<Bytes, AttemptFailure> {
    let mut body = body;
    let mut gathering = Gathering::new(share, most);
    let (mut pace, latest_begin) = (Pace::new(patience.idle), Instant::now() + patience.begin);
    loop {
        pace.wait();
        let frame = match tokio::time::timeout(patience.idle, body.frame()).await {
            Err(_) => return Err(AttemptFailure::silent(patience.idle, redactor)),
            Ok(None) => break,
            Ok(Some(Err(_))) => return Err(AttemptFailure::broken("was cut off", redactor)),
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(packet) = frame.into_data() else { continue };
        if gathering.len() == 0 && packet.trim_ascii_start().is_empty() {
            if Instant::now() >= latest_begin {
                return Err(AttemptFailure::broken("did not begin in time", redactor));
            }
            continue;
        }
        if pace.is_slow(packet.len()) {
            return Err(AttemptFailure::broken("comes too slowly", redactor));
        }
        if gathering.len() + packet.len() > most {
            return Err(AttemptFailure::broken(&format!("is larger than {most} bytes"), redactor));
        }
        gathering.push(packet).map_err(|why| AttemptFailure::no_room(why, redactor))?;
    }
    Ok(gathering.finish())
}

/// The answer for the client: with the client's name for the model.
pub(crate) fn passed(
    document: &Bytes,
    inspector: &mut StreamInspector,
    redactor: &Redactor,
    share: &mut Reservation,
) -> Result<Bytes, AttemptFailure> {
    // For the copy with the other name.
    share.hold(2 * document.len()).map_err(|why| AttemptFailure::no_room(why, redactor))?;
    let text = std::str::from_utf8(document).map_err(|_| AttemptFailure::broken("is not text", redactor))?;
    match inspector.document(text) {
        Ok(None) => Ok(document.clone()),
        Ok(Some(at)) => Ok(spliced(document, &[(at, inspector.model())])),
        Err(Some(failure)) => Err(AttemptFailure::of_event(failure, redactor)),
        Err(None) => Err(AttemptFailure::broken("is not a JSON object", redactor)),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;

    use super::*;
    use crate::bounds::memory_budget::MemoryBudget;
    use crate::bounds::pace::MIN_RATE;

    const PATIENCE: Patience = Patience { begin: Duration::from_mins(10), idle: Duration::from_mins(5) };

    /// Reads a document of `count` packets, one each second, and returns how long that took.
    async fn read_packets(
        count: usize,
        packet: impl Fn(usize) -> Bytes + Send + 'static,
    ) -> (Result<usize, AttemptFailure>, Duration) {
        let packets = stream::unfold((0, packet), move |(sent, packet)| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            (sent < count).then(|| (Ok::<_, Infallible>(packet(sent)), (sent + 1, packet)))
        });
        let mut share = MemoryBudget::new(MAX_BYTES).share();
        let started = Instant::now();
        let body = Body::from_stream(packets);
        let read = read(body, MAX_BYTES, PATIENCE, &Redactor::default(), &mut share).await;
        (read.map(|document| document.len()), started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn dripping_response_is_abandoned() {
        let (read, time) = read_packets(usize::MAX, |_| Bytes::from_static(b"12345")).await;
        let failure = read.expect_err("it drips");
        assert!(format!("{failure:?}").contains("comes too slowly"), "{failure:?}");
        assert!(time <= PATIENCE.idle + Duration::from_secs(1), "{time:?}");
        let (read, _) = read_packets(1_000, |_| Bytes::from(vec![b'x'; MIN_RATE])).await;
        assert_eq!(read.ok(), Some(1_000 * MIN_RATE));
    }

    #[tokio::test(start_paused = true)]
    async fn leading_whitespace_is_accepted_until_the_begin_timeout() {
        let after =
            |spaces: usize| move |sent: usize| Bytes::from_static(if sent < spaces { b"\n" } else { b"{}" });
        let (read, _) = read_packets(590, after(589)).await;
        assert_eq!(read.ok(), Some(2), "leading whitespace is not stored");
        let (read, time) = read_packets(usize::MAX, after(usize::MAX)).await;
        let failure = read.expect_err("it never begins");
        assert!(format!("{failure:?}").contains("did not begin in time"), "{failure:?}");
        assert_eq!(time, PATIENCE.begin);
    }
}
