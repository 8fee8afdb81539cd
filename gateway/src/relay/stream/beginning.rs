//! The beginning of a stream, as long as another upstream could still be asked.

use std::time::Instant;

use super::super::failure::Fault;
use super::{Stream, Then, Waited};

impl Stream {
    /// Waits for the first event; whoever waits for this gives the client signs of life. Errors: the upstream failed before
    /// its first event, so that another one can be asked. One that gives signs of life itself has begun after a while: it is at
    /// work, and what it sends must not pile up.
    pub(crate) async fn begin(&mut self) -> Result<(), Fault> {
        let begun = Instant::now();
        loop {
            let (packet, ended) = match self.wait(self.idle_timeout).await {
                Waited::Packet(packet) => (packet, false),
                // A last event may lack its blank line.
                Waited::End => (self.frames.last().unwrap_or_default(), true),
                Waited::Broken => return Err(Fault::broken("broke off", &self.redactor)),
                Waited::Silence => return Err(Fault::silent(self.idle_timeout, &self.redactor)),
                Waited::Gone => return Ok(()),
            };
            match self.take(packet).await {
                (false, Some(fault)) => return Err(fault),
                (true, Some(fault)) => {
                    self.fail(&fault);
                    return Ok(());
                }
                (has_content, None) if ended => {
                    self.complete = self.events.end(&mut self.out);
                    match (has_content, self.complete) {
                        (_, true) => self.then = Then::End,
                        (true, false) => self.fail(&Fault::broken("ended early", &self.redactor)),
                        (false, false) => return Err(Fault::broken("ended before it began", &self.redactor)),
                    }
                    return Ok(());
                }
                (true, None) => return Ok(()),
                (false, None) if begun.elapsed() >= self.keep_alive => {
                    self.out.extend_from_slice(self.events.framing().keep_alive());
                    return Ok(());
                }
                (false, None) => {}
            }
        }
    }
}
