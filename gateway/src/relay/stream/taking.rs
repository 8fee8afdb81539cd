//! Processes a packet from the upstream. A long event is read on the blocking pool, so that it doesn't delay others.

use bytes::{Bytes, BytesMut};

use super::super::LONG_BODY;
use super::super::event_reader::StreamEnd;
use super::super::failure::Fault;
use super::super::passthrough_stream::{Events, Framing, Passed};
use super::super::stream_inspector::Progress;
use super::Stream;
use crate::bounds::room::{NoRoom, Share};
use crate::conversation::{Failure, Usage};
use crate::wire::ApiError;

/// The result of a packet's events.
#[derive(Default)]
struct Taken {
    /// Whether one of them was part of the answer.
    content: bool,
    /// What ends the stream; later events aren't read.
    end: Option<End>,
}

enum End {
    /// The upstream reported an error, or an event can't be parsed.
    Failed(Failure),
    NoRoom(NoRoom),
    Stopping(ApiError),
}

impl Stream {
    /// Processes a packet from the upstream. Returns whether it contained an event of the answer, and what ends the stream: an
    /// error that the upstream reported, or events that can't be parsed.
    pub(super) async fn take(&mut self, packet: Bytes) -> (bool, Option<Fault>) {
        let Self { reader, events, out, share, .. } = self;
        let (mut taken, mut later) = (Taken::default(), Vec::new());
        // Before the buffer grows.
        let memory = reader.memory_with(&packet) + out.capacity() + events.kept();
        if let Err(why) = share.hold(memory) {
            return (false, Some(Fault::no_room(why, &self.redactor)));
        }
        let pushed = reader.push(packet, |block| {
            if block.len() > LONG_BODY || !later.is_empty() {
                later.push(block);
            } else if taken.begin(share, &**events, &block) {
                taken.note(events.block(&block, out));
            }
        });
        if !later.is_empty() {
            // Boxed: few packets complete a long event, so this shouldn't take memory in every stream.
            Box::pin(self.take_long(later, &mut taken)).await;
        }
        self.note_usage();
        let room = self.share.hold(self.memory()).map_err(End::NoRoom);
        let fault = match (taken.end.or(room.err()), pushed) {
            (Some(End::Failed(failure)), _) => Some(Fault::of_event(failure, &self.redactor)),
            (Some(End::NoRoom(why)), _) => Some(Fault::no_room(why, &self.redactor)),
            (Some(End::Stopping(why)), _) => Some(Fault::stopping(&why)),
            (None, Err(StreamEnd::Reported(failure))) => Some(Fault::of_event(failure, &self.redactor)),
            (None, Err(StreamEnd::Malformed(why))) => Some(Fault::broken(&why.to_string(), &self.redactor)),
            (None, Ok(())) => None,
        };
        (taken.content, fault)
    }

    /// Processes a long event and those after it, in order.
    async fn take_long(&mut self, blocks: Vec<Bytes>, taken: &mut Taken) {
        for block in blocks {
            if !taken.begin(&mut self.share, &*self.events, &block) {
                return;
            }
            if block.len() <= LONG_BODY {
                taken.note(self.events.block(&block, &mut self.out));
                continue;
            }
            let away = Away::of(&*self.events);
            let mut events = std::mem::replace(&mut self.events, Box::new(away));
            let mut out = std::mem::take(&mut self.out);
            let read = self.blocking_pool.work(move |_| {
                let passed = events.block(&block, &mut out);
                Ok((events, out, passed))
            });
            match read.await {
                Ok((events, out, passed)) => {
                    (self.events, self.out) = (events, out);
                    taken.note(passed);
                }
                Err(stopping) => taken.end = Some(End::Stopping(stopping)),
            }
        }
    }
}

impl Taken {
    /// Whether to read an event. Its memory is reserved first: reading it takes more than its text.
    fn begin(&mut self, share: &mut Share, events: &dyn Events, block: &Bytes) -> bool {
        if self.end.is_none() {
            let held = share.hold(share.bytes().saturating_add(events.weight(block)));
            self.end = held.err().map(End::NoRoom);
        }
        self.end.is_none()
    }

    fn note(&mut self, passed: Passed) {
        match passed {
            Passed::Content => self.content = true,
            Passed::Life => {}
            Passed::Error(failure) => self.end = Some(End::Failed(failure)),
        }
    }
}

/// Replaces the events of a stream while the blocking pool reads one. If the client disconnects meanwhile, it reports what was
/// known before.
struct Away {
    framing: Framing,
    usage: Option<Usage>,
    pieces: u64,
    kept: usize,
}

impl Away {
    fn of(events: &dyn Events) -> Self {
        let (usage, pieces) = (events.usage(), events.pieces());
        Self { framing: events.framing(), usage, pieces, kept: events.kept() }
    }
}

impl Events for Away {
    fn block(&mut self, _: &Bytes, _: &mut BytesMut) -> Passed {
        Passed::Life
    }

    fn end(&mut self, _: &mut BytesMut) -> bool {
        false
    }

    /// Nothing to write, and nobody to read it: the runtime is shutting down.
    fn fail(&mut self, _: &Failure, _: &mut BytesMut) {}

    fn framing(&self) -> Framing {
        self.framing
    }

    fn progress(&self) -> Progress {
        Progress::Underway
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn pieces(&self) -> u64 {
        self.pieces
    }

    fn kept(&self) -> usize {
        self.kept
    }
}
