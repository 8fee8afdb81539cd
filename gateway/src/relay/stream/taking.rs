//! Processes a packet from the upstream. A long event is read on the blocking pool, so that it doesn't delay others.

use bytes::{Bytes, BytesMut};
use gatewright_protocol::conversation::{Failure, Usage};

use super::super::LONG_BODY;
use super::super::event_reader::StreamEnd;
use super::super::failure::AttemptFailure;
use super::super::passthrough_stream::{EventKind, EventProcessor, Framing};
use super::Stream;
use crate::bounds::memory_budget::{Reservation, ReservationError};
use crate::wire::ApiError;
use gatewright_protocol::inspect::StreamProgress;

/// The result of a packet's events.
#[derive(Default)]
struct PacketResult {
    /// Whether one of them was part of the answer.
    content: bool,
    /// What ends the stream; later events aren't read.
    end: Option<StreamInterruption>,
}

enum StreamInterruption {
    /// The upstream reported an error, or an event can't be parsed.
    Failed(Failure),
    NoRoom(ReservationError),
    Stopping(ApiError),
}

impl Stream {
    /// Processes a packet from the upstream. Returns whether it contained an event of the answer, and what ends the stream: an
    /// error that the upstream reported, or events that can't be parsed.
    pub(super) async fn take(&mut self, packet: Bytes) -> (bool, Option<AttemptFailure>) {
        let Self { reader, events, out, share, .. } = self;
        let (mut taken, mut later) = (PacketResult::default(), Vec::new());
        // Before the buffer grows.
        let memory = reader.memory_with(&packet) + out.capacity() + events.retained_bytes();
        if let Err(why) = share.hold(memory) {
            return (false, Some(AttemptFailure::no_room(why, &self.redactor)));
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
        let room = self.share.hold(self.memory()).map_err(StreamInterruption::NoRoom);
        let failure = match (taken.end.or(room.err()), pushed) {
            (Some(StreamInterruption::Failed(failure)), _) | (None, Err(StreamEnd::Reported(failure))) => {
                Some(AttemptFailure::of_event(failure, &self.redactor))
            }
            (Some(StreamInterruption::NoRoom(why)), _) => Some(AttemptFailure::no_room(why, &self.redactor)),
            (Some(StreamInterruption::Stopping(why)), _) => Some(AttemptFailure::stopping(&why)),
            (None, Err(StreamEnd::Malformed(why))) => {
                Some(AttemptFailure::broken(&why.to_string(), &self.redactor))
            }
            (None, Ok(())) => None,
        };
        (taken.content, failure)
    }

    /// Processes a long event and those after it, in order.
    async fn take_long(&mut self, blocks: Vec<Bytes>, taken: &mut PacketResult) {
        for block in blocks {
            if !taken.begin(&mut self.share, &*self.events, &block) {
                return;
            }
            if block.len() <= LONG_BODY {
                taken.note(self.events.block(&block, &mut self.out));
                continue;
            }
            let away = OffloadedEvents::of(&*self.events);
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
                Err(stopping) => taken.end = Some(StreamInterruption::Stopping(stopping)),
            }
        }
    }
}

impl PacketResult {
    /// Whether to read an event. Its memory is reserved first: reading it takes more than its text.
    fn begin(&mut self, share: &mut Reservation, events: &dyn EventProcessor, block: &Bytes) -> bool {
        if self.end.is_none() {
            let held = share.hold(share.bytes().saturating_add(events.weight(block)));
            self.end = held.err().map(StreamInterruption::NoRoom);
        }
        self.end.is_none()
    }

    fn note(&mut self, passed: EventKind) {
        match passed {
            EventKind::Content => self.content = true,
            EventKind::Life => {}
            EventKind::Error(failure) => self.end = Some(StreamInterruption::Failed(failure)),
        }
    }
}

/// Replaces the events of a stream while the blocking pool reads one. If the client disconnects meanwhile, it reports what was
/// known before.
struct OffloadedEvents {
    framing: Framing,
    usage: Option<Usage>,
    output: u64,
    retained_bytes: usize,
}

impl OffloadedEvents {
    fn of(events: &dyn EventProcessor) -> Self {
        let (usage, output) = (events.usage(), events.output());
        Self { framing: events.framing(), usage, output, retained_bytes: events.retained_bytes() }
    }
}

impl EventProcessor for OffloadedEvents {
    fn block(&mut self, _: &Bytes, _: &mut BytesMut) -> EventKind {
        EventKind::Life
    }

    fn end(&mut self, _: &mut BytesMut) -> bool {
        false
    }

    /// Nothing to write, and no reader: the runtime is shutting down.
    fn fail(&mut self, _: &Failure, _: &mut BytesMut) {}

    fn framing(&self) -> Framing {
        self.framing
    }

    fn progress(&self) -> StreamProgress {
        StreamProgress::Underway
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn output(&self) -> u64 {
        self.output
    }

    fn retained_bytes(&self) -> usize {
        self.retained_bytes
    }
}
