//! Reads the body of a stream: turns packets into items that are ready for delivery. stream/levels.rs turns those into
//! what each level delivers.

use std::collections::VecDeque;

use memchr::memrchr2;
use tokio::time::Instant;

use super::classify::{self, EventClass};
use super::document::{self, Elements, Kind};
use super::pattern::{Patterns, TemplateMatch};
use crate::api::operation::Operation;
use crate::wire::error::{Error, ErrorKind};
use crate::wire::json_weight::{self, JsonTooLarge};
use crate::wire::panics::may_panic_on_purpose;
use crate::wire::repair;
use crate::wire::sse::{Decoder, Frame, Item, StreamEvent};

/// Maximum size of JSON between the fields of an event stream, in bytes.
const MAX_STRAY_BYTES: usize = 64 * 1024;

/// Maximum number of lines at which the end of that JSON is looked for.
pub(super) const MAX_STRAY_LOOKS: u32 = 64;
/// Bound on the white space before the first event, in bytes: enough for hours of blank lines as heartbeats.
pub(super) const MAX_PREFIX_BYTES: usize = 64 * 1024;

/// The format that the body is read as.
enum Reading {
    /// Only white space has arrived.
    Undecided {
        prefix: Prefix,
        frames: bool,
    },
    Events(Box<Decoder>),
    Json(Vec<u8>),
    Page(Vec<u8>),
}

impl Default for Reading {
    fn default() -> Self {
        Self::Undecided { prefix: Prefix::default(), frames: false }
    }
}

impl Reading {
    fn set_frames(&mut self, on: bool) {
        match self {
            Self::Undecided { frames, .. } => *frames = on,
            Self::Events(decoder) => decoder.set_frames(on),
            Self::Json(_) | Self::Page(_) => {}
        }
    }
}

/// An item that is ready for delivery.
pub(super) enum Ready {
    Chunk(ReadChunk),
    /// A chunk that arrived in an array with others. At the level of frames, the frame of the whole array has already
    /// been delivered.
    Element(ReadChunk),
    /// Used if frames are requested.
    Frame {
        frame: Box<Frame>,
        is_chunk: bool,
        like: Option<TemplateMatch>,
    },
}

/// A chunk, and how it differs from the last one if it does so only where it may.
pub(super) struct ReadChunk {
    pub(super) event: StreamEvent,
    pub(super) like: Option<TemplateMatch>,
}

/// Reads a body packet by packet.
pub(super) struct PacketReader {
    operation: &'static Operation,
    content_type: Option<String>,
    max_body_bytes: usize,
    reading: Reading,
    /// Emptied at each packet; kept to reuse its allocation.
    items: Vec<Item>,
    /// JSON lines between the fields, which belong to no event (facts: a bare error in the stream).
    stray: String,
    /// How often this JSON was checked for its end.
    pub(super) stray_looks: u32,
    pub(super) ready: VecDeque<Ready>,
    patterns: Patterns,
    /// How the response ends, according to the body.
    end: Option<Result<(), Error>>,
    /// Whether the body has contained a chunk.
    has_started: bool,
    pub(super) complete: bool,
    now: Instant,
    /// When the last event of the response arrived.
    pub(super) last_event: Instant,
}

impl PacketReader {
    /// now: when the response began.
    pub(super) fn new(
        operation: &'static Operation,
        content_type: Option<&str>,
        max_body_bytes: usize,
        now: Instant,
    ) -> Self {
        Self {
            operation,
            content_type: content_type.map(str::to_owned),
            max_body_bytes,
            reading: Reading::default(),
            items: Vec::new(),
            stray: String::new(),
            stray_looks: 0,
            ready: VecDeque::new(),
            patterns: Patterns::new(operation),
            end: None,
            has_started: false,
            complete: false,
            now,
            last_event: now,
        }
    }

    /// Sets whether whole frames are wanted from here on.
    pub(super) fn set_frames(&mut self, on: bool) {
        self.reading.set_frames(on);
    }

    /// Takes a packet that has just arrived. Returns the end of the response if the packet contains it.
    pub(super) fn take_packet(&mut self, packet: &[u8], now: Instant) -> Option<Result<(), Error>> {
        may_panic_on_purpose!(Stream);
        self.now = now;
        match self.read(packet) {
            Ok(()) => self.end.take(),
            Err(error) => Some(Err(error)),
        }
    }

    fn read(&mut self, packet: &[u8]) -> Result<(), Error> {
        match &mut self.reading {
            Reading::Events(decoder) => {
                let mut items = std::mem::take(&mut self.items);
                let fed = decoder.feed(packet, &mut items);
                let taken = self.take_items(&mut items);
                items.clear();
                self.items = items;
                taken?;
                fed.map_err(|error| Error::new(ErrorKind::Decode, error.to_string()).caused_by(error))
            }
            Reading::Json(body) => append(body, packet, self.max_body_bytes),
            Reading::Page(body) => {
                // Only the beginning of a page is of use, and its end may never arrive.
                append(body, packet, crate::MAX_ERROR_BODY_BYTES).map_err(|_| document::page_error(body))
            }
            Reading::Undecided { prefix, frames } => {
                let Some(bytes) = prefix.take(packet)? else { return Ok(()) };
                let kind = document::kind(&bytes, self.content_type.as_deref()).unwrap_or(Kind::Events);
                let frames = *frames;
                if kind == Kind::Json {
                    check_length(bytes.len(), self.max_body_bytes)?;
                }
                match kind {
                    Kind::Json => self.reading = Reading::Json(bytes),
                    Kind::Page => self.reading = Reading::Page(bytes),
                    Kind::Events => {
                        self.reading = Reading::Events(Box::new(Decoder::new().with_frames(frames)));
                        return self.read(&bytes);
                    }
                }
                Ok(())
            }
        }
    }

    fn take_items(&mut self, items: &mut Vec<Item>) -> Result<(), Error> {
        for item in items.drain(..) {
            match item {
                Item::Event(event) => self.take_event(event, None)?,
                Item::Frame(mut frame) => match frame.data.take() {
                    Some(data) => {
                        let event = StreamEvent { event: frame.event.clone(), data, id: frame.id.clone() };
                        self.take_event(event, Some(frame))?;
                    }
                    None => self.take_frame(frame, false, None),
                },
                Item::Unknown(line) => self.take_stray(&line)?,
            }
            if self.end.is_some() {
                // Data after the end is ignored.
                break;
            }
        }
        Ok(())
    }

    /// frame: the event's frame without its data, if frames are requested.
    fn take_event(&mut self, event: StreamEvent, frame: Option<Frame>) -> Result<(), Error> {
        self.take_event_as(Ready::Chunk, event, frame)
    }

    /// ready: how a chunk without a frame is delivered.
    fn take_event_as(
        &mut self,
        ready: fn(ReadChunk) -> Ready,
        event: StreamEvent,
        frame: Option<Frame>,
    ) -> Result<(), Error> {
        json_weight::check(event.data.as_bytes())
            .map_err(|heavy| too_heavy("an event of the stream", heavy))?;
        if let Some(like) = self.patterns.like(&event) {
            self.last_event = self.now;
            self.push(ready, event, frame, Some(like));
            return Ok(());
        }
        let class = classify::event_class(self.operation, &event);
        let is_of_answer = matches!(class, EventClass::Chunk | EventClass::Finish | EventClass::Terminal);
        if is_of_answer {
            self.has_started = true;
            self.last_event = self.now;
        }
        let is_chunk = is_of_answer || matches!(class, EventClass::Aside);
        if matches!(class, EventClass::List) {
            return self.take_list(ready, &event, frame);
        }
        if matches!(class, EventClass::Chunk) {
            self.patterns.learn(&event);
        } else if is_chunk {
            self.patterns.forget();
        }
        match frame {
            Some(frame) if !is_chunk => {
                self.take_frame(Frame { data: Some(event.data), ..frame }, false, None);
            }
            frame if is_chunk => self.push(ready, event, frame, None),
            _ => {}
        }
        match class {
            EventClass::Chunk | EventClass::Aside | EventClass::List | EventClass::Nothing => {}
            EventClass::Finish => self.complete = true,
            EventClass::Terminal => {
                self.complete = true;
                self.end = Some(Ok(()));
            }
            EventClass::Terminator => {
                self.complete |= classify::terminator_completes(self.operation);
                self.end = Some(self.outcome());
            }
            EventClass::Error(error) => return Err(error),
        }
        Ok(())
    }

    /// Makes a chunk ready. frame: its frame without its data, if frames are requested.
    fn push(
        &mut self,
        ready: fn(ReadChunk) -> Ready,
        event: StreamEvent,
        frame: Option<Frame>,
        like: Option<TemplateMatch>,
    ) {
        match frame {
            Some(frame) => self.take_frame(Frame { data: Some(event.data), ..frame }, true, like),
            None => self.ready.push_back(ready(ReadChunk { event, like })),
        }
    }

    fn take_frame(&mut self, frame: Frame, is_chunk: bool, like: Option<TemplateMatch>) {
        self.ready.push_back(Ready::Frame { frame: Box::new(frame), is_chunk, like });
    }

    /// Handles an event that contains several: each is treated as if it had arrived by itself.
    fn take_list(
        &mut self,
        ready: fn(ReadChunk) -> Ready,
        list: &StreamEvent,
        frame: Option<Frame>,
    ) -> Result<(), Error> {
        let ready = if frame.is_some() { Ready::Element } else { ready };
        let mut elements = Elements::of(list.data.trim().strip_prefix('[').unwrap_or_default());
        if let Some(frame) = frame {
            self.take_frame(Frame { data: Some(list.data.clone()), ..frame }, false, None);
        }
        while let Some(element) = elements.next().map_err(|error| classify::not_json(&list.data, error))? {
            // The name belongs to the list; each element has its own type.
            let event = StreamEvent { event: None, data: element.to_owned(), id: list.id.clone() };
            self.take_event_as(ready, event, None)?;
            if self.end.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Collects bare JSON between the fields and distinguishes an error from noise.
    fn take_stray(&mut self, line: &str) -> Result<(), Error> {
        if (self.stray.is_empty() && !line.starts_with('{'))
            || self.stray.len() + line.len() > MAX_STRAY_BYTES
        {
            return Ok(());
        }
        self.stray.push_str(line);
        self.stray.push('\n');
        if line.trim_end().ends_with('}') && self.stray_looks < MAX_STRAY_LOOKS {
            self.stray_looks += 1;
            if classify::is_error(&self.stray) {
                return Err(classify::in_band_error(self.stray.trim_end()));
            }
        }
        Ok(())
    }

    /// The body has ended cleanly.
    pub(super) fn take_body_end(&mut self) -> Result<(), Error> {
        match std::mem::take(&mut self.reading) {
            Reading::Undecided { .. } => Err(truncated("the body was empty")),
            Reading::Page(body) => Err(document::page_error(&body)),
            Reading::Json(body) => {
                json_weight::check(&body).map_err(|heavy| too_heavy("the answer", heavy))?;
                document::events(self.operation, &body, |event| self.take_event(event, None))?;
                self.complete = true;
                self.outcome()
            }
            Reading::Events(mut decoder) => {
                let mut items = Vec::new();
                // A line that is too long would have been refused when it was fed.
                let _ = decoder.end_line(&mut items);
                self.take_items(&mut items)?;
                if let Some(event) = decoder.finish() {
                    // The standard drops a block without its blank line; a complete one is worth keeping.
                    let data = event.data.trim();
                    if !data.is_empty() && data != classify::DONE && repair::value(data).is_err() {
                        return Err(truncated("the stream ended inside an event"));
                    }
                    self.take_event(event, None)?;
                    if let Some(end) = self.end.take() {
                        return end;
                    }
                }
                self.complete |= classify::may_end_anywhere(self.operation) && self.has_started;
                self.outcome()
            }
        }
    }

    fn outcome(&self) -> Result<(), Error> {
        if !self.has_started {
            Err(truncated("the stream had no events"))
        } else if self.complete {
            Ok(())
        } else {
            Err(truncated("the stream ended before the answer was complete"))
        }
    }
}

impl Ready {
    pub(super) fn into_chunk(self) -> Option<ReadChunk> {
        match self {
            Self::Chunk(chunk) | Self::Element(chunk) => Some(chunk),
            Self::Frame { frame, is_chunk, like } => {
                let Frame { event, data, id, .. } = *frame;
                data.filter(|_| is_chunk)
                    .map(|data| ReadChunk { event: StreamEvent { event, data, id }, like })
            }
        }
    }
}

fn truncated(message: &str) -> Error {
    Error::new(ErrorKind::StreamTruncated, message)
}

fn too_heavy(what: &str, heavy: JsonTooLarge) -> Error {
    Error::new(ErrorKind::Decode, format!("{what} cannot be read: {heavy}")).with_source(heavy)
}

/// The data before the first event: white space, with a byte order mark at the very beginning.
#[derive(Debug, Default)]
pub(super) struct Prefix {
    /// Total length in bytes.
    length: usize,
    /// The part that the first line may need: a mark, the blanks of the current line, and the line break before it.
    prefix: Vec<u8>,
}

impl Prefix {
    /// Takes the next packet. Returns the part of the first line that has arrived, once there is one; each byte is
    /// examined once. Errors: there is more white space than any server sends.
    fn take(&mut self, packet: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let may_be_mark = self.length == self.prefix.len() && document::may_be_mark(&self.prefix);
        let known = if may_be_mark { 0 } else { self.prefix.len() };
        self.prefix.extend_from_slice(packet);
        let blank = document::blank(&self.prefix, known);
        let is_over = blank < self.prefix.len() && !(may_be_mark && document::may_be_mark(&self.prefix));
        if self.length + packet.len() - (self.prefix.len() - blank) > MAX_PREFIX_BYTES {
            let message =
                format!("more than {MAX_PREFIX_BYTES} bytes of white space preceded the first event");
            return Err(Error::new(ErrorKind::Decode, message));
        }
        if is_over {
            return Ok(Some(std::mem::take(&mut self.prefix)));
        }
        self.length += packet.len();
        if let Some(line_break) = memrchr2(b'\n', b'\r', &self.prefix[known..]) {
            self.prefix.drain(..known + line_break);
        }
        Ok(None)
    }
}

fn append(body: &mut Vec<u8>, packet: &[u8], limit: usize) -> Result<(), Error> {
    check_length(body.len() + packet.len(), limit)?;
    body.extend_from_slice(packet);
    Ok(())
}

fn check_length(length: usize, limit: usize) -> Result<(), Error> {
    if length > limit {
        return Err(Error::new(ErrorKind::Decode, format!("the body is larger than {limit} bytes")));
    }
    Ok(())
}
