//! The beginning of a stream, as long as another upstream could still be asked.

use std::time::Instant;

use super::super::failure::Fault;
use super::{Stream, Then, Waited};

impl Stream {
    /// Waits for the first event, but no longer than a client waits without a sign of life, which it then gets. Errors: the
    /// upstream failed before its first event, so that another one can be asked.
    pub(crate) async fn begin(&mut self) -> Result<(), Fault> {
        let begun = Instant::now();
        loop {
            let Some(rest) = self.keep_alive.min(self.idle_timeout).checked_sub(begun.elapsed()) else {
                self.show_life();
                return Ok(());
            };
            let (packet, ended) = match self.wait(rest).await {
                Waited::Packet(packet) => (packet, false),
                // A last event may lack its blank line.
                Waited::End => (self.frames.last().unwrap_or_default(), true),
                Waited::Broken => return Err(Fault::broken("broke off", &self.redactor)),
                Waited::Silence if self.idle_timeout < self.keep_alive => {
                    return Err(Fault::silent(self.idle_timeout, &self.redactor));
                }
                Waited::Silence => {
                    self.silent = rest;
                    self.show_life();
                    return Ok(());
                }
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
                (false, None) => {}
            }
        }
    }

    fn show_life(&mut self) {
        self.out.extend_from_slice(self.events.framing().keep_alive());
    }
}
