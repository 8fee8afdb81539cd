//! The beginning of a stream, while failover is still possible.

use std::time::Instant;

use bytes::Buf as _;

use super::super::event_reader::Malformed;
use super::super::failure::AttemptFailure;
use super::{AfterFlush, Stream, WaitResult};

impl Stream {
    /// Waits for the first event; meanwhile, the caller sends keep-alives to the client. Errors: the upstream failed before its
    /// first event, so failover is possible. An upstream that sends keep-alives itself counts as started after a while: it is
    /// working. Of its keep-alives the client gets the latest, so that they don't pile up.
    pub(crate) async fn begin(&mut self) -> Result<(), AttemptFailure> {
        let started = Instant::now();
        loop {
            let (packet, ended) = match self.wait(self.idle_timeout).await {
                WaitResult::Packet(packet) => (packet, false),
                // A last event may lack its blank line.
                WaitResult::End => {
                    let last = self.reader.last();
                    let broken = |why: Malformed| AttemptFailure::broken(&why.to_string(), &self.redactor);
                    (last.map_err(broken)?.unwrap_or_default(), true)
                }
                WaitResult::Broken => return Err(AttemptFailure::broken("was cut off", &self.redactor)),
                WaitResult::Silence => return Err(AttemptFailure::silent(self.idle_timeout, &self.redactor)),
                WaitResult::Gone => return Ok(()),
            };
            let before = self.out.len();
            let taken = self.take(packet).await;
            if matches!(taken, (false, None)) {
                self.out.advance(before);
            }
            match taken {
                (false, Some(failure)) => return Err(failure),
                (true, Some(failure)) => {
                    self.fail(&failure);
                    return Ok(());
                }
                (has_content, None) if ended => {
                    self.complete = self.events.end(&mut self.out);
                    match (has_content, self.complete) {
                        (_, true) => self.then = AfterFlush::End,
                        (true, false) => self.fail(&AttemptFailure::broken("ended early", &self.redactor)),
                        (false, false) => {
                            return Err(AttemptFailure::broken("ended before it started", &self.redactor));
                        }
                    }
                    return Ok(());
                }
                (true, None) => return Ok(()),
                (false, None) if started.elapsed() >= self.keep_alive => {
                    self.out.extend_from_slice(self.events.framing().keep_alive());
                    return Ok(());
                }
                (false, None) => {}
            }
        }
    }
}
