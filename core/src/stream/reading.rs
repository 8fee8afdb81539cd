//! Reading the body of a stream: packets into what can be handed over, and that into what each level asks for.

use std::borrow::Cow;

use bytes::Bytes;
use memchr::memrchr2;
use serde::de::DeserializeOwned;

use super::document::{self, Elements, Kind};
use super::meaning::{self, Meaning};
use super::shape::{self, Form, Mending};
use super::{RawStream, mend, text};
use crate::error::{Error, ErrorKind};
use crate::json_weight::{self, TooHeavy};
use crate::operation::Protocol;
use crate::panics::may_panic_on_purpose;
use crate::sse::{Decoder, Frame, Item, StreamEvent};

/// Bound on JSON found between the fields of an event stream, in bytes.
const MAX_STRAY_BYTES: usize = 64 * 1024;

/// So many lines of it are looked at for its end.
pub(super) const MAX_STRAY_LOOKS: u32 = 64;
/// Bound on the white space before the first event, in bytes: wide enough for hours of blank lines as a sign of life.
pub(super) const MAX_PREFIX_BYTES: usize = 64 * 1024;

/// How the body is being read.
pub(super) enum Reading {
    /// Nothing but white space has arrived.
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
    /// Whether whole frames are wanted from here on.
    pub(super) fn set_frames(&mut self, wanted: bool) {
        match self {
            Self::Undecided { frames, .. } => *frames = wanted,
            Self::Events(decoder) => decoder.set_frames(wanted),
            Self::Json(_) | Self::Page(_) => {}
        }
    }
}

/// Something to hand over.
pub(super) enum Ready {
    Chunk(StreamEvent),
    /// A chunk that came in an array with others, after the frame of them all: at the level of frames it has been
    /// handed over.
    Element(StreamEvent),
    /// Where frames are asked for.
    Frame {
        frame: Box<Frame>,
        is_chunk: bool,
    },
}

impl RawStream {
    pub(super) fn take_packet(&mut self, packet: &[u8]) -> Result<(), Error> {
        may_panic_on_purpose!(Stream);
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
            Reading::Json(body) => append(body, packet, self.bounds.max_body_bytes),
            Reading::Page(body) => {
                // Of a page only its beginning is of use, and its end may never come.
                append(body, packet, crate::MAX_ERROR_BODY_BYTES).map_err(|_| document::page_error(body))
            }
            Reading::Undecided { prefix, frames } => {
                let Some(begun) = prefix.take(packet)? else { return Ok(()) };
                let kind = document::kind(&begun, self.head.content_type()).unwrap_or(Kind::Events);
                let frames = *frames;
                if kind == Kind::Json {
                    check_length(begun.len(), self.bounds.max_body_bytes)?;
                }
                match kind {
                    Kind::Json => self.reading = Reading::Json(begun),
                    Kind::Page => self.reading = Reading::Page(begun),
                    Kind::Events => {
                        self.reading = Reading::Events(Box::new(Decoder::new().with_frames(frames)));
                        return self.take_packet(&begun);
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
                    None => self.ready.push_back(Ready::Frame { frame: Box::new(frame), is_chunk: false }),
                },
                Item::Unknown(line) => self.take_stray(&line)?,
                Item::Comment(_) | Item::Retry(_) => {}
            }
            if self.end.is_some() {
                // What follows the end is ignored.
                break;
            }
        }
        Ok(())
    }

    /// frame: the event's, without its data, where frames are asked for.
    fn take_event(&mut self, event: StreamEvent, frame: Option<Frame>) -> Result<(), Error> {
        self.take_event_as(Ready::Chunk, event, frame)
    }

    /// ready: what a chunk without a frame is handed over as.
    fn take_event_as(
        &mut self,
        ready: fn(StreamEvent) -> Ready,
        event: StreamEvent,
        frame: Option<Frame>,
    ) -> Result<(), Error> {
        json_weight::check(event.data.as_bytes())
            .map_err(|heavy| too_heavy("an event of the stream", heavy))?;
        let meaning = meaning::meaning(self.operation, &event);
        let is_of_answer = matches!(meaning, Meaning::Chunk | Meaning::Finish | Meaning::Terminal);
        if is_of_answer {
            self.begun = true;
            self.last_event = self.last_byte;
        }
        let is_chunk = is_of_answer || matches!(meaning, Meaning::Aside);
        if matches!(meaning, Meaning::List) {
            return self.take_list(ready, &event, frame);
        }
        match frame {
            Some(frame) => {
                let frame = Box::new(Frame { data: Some(event.data), ..frame });
                self.ready.push_back(Ready::Frame { frame, is_chunk });
            }
            None if is_chunk => self.ready.push_back(ready(event)),
            None => {}
        }
        match meaning {
            Meaning::Chunk | Meaning::Aside | Meaning::List | Meaning::Nothing => {}
            Meaning::Finish => self.complete = true,
            Meaning::Terminal => {
                self.complete = true;
                self.end = Some(Ok(()));
            }
            Meaning::Terminator => {
                self.complete |= meaning::terminator_completes(self.operation);
                self.end = Some(self.outcome());
            }
            Meaning::Error(error) => return Err(error),
        }
        Ok(())
    }

    /// An event that holds several: each is taken as if it had come by itself.
    fn take_list(
        &mut self,
        ready: fn(StreamEvent) -> Ready,
        list: &StreamEvent,
        frame: Option<Frame>,
    ) -> Result<(), Error> {
        let ready = if frame.is_some() { Ready::Element } else { ready };
        let mut elements = Elements::of(list.data.trim().strip_prefix('[').unwrap_or_default());
        if let Some(frame) = frame {
            let frame = Box::new(Frame { data: Some(list.data.clone()), ..frame });
            self.ready.push_back(Ready::Frame { frame, is_chunk: false });
        }
        while let Some(element) = elements.next().map_err(|error| meaning::not_json(&list.data, error))? {
            // The name is that of the list: each element has its type.
            let event = StreamEvent { event: None, data: element.to_owned(), id: list.id.clone() };
            self.take_event_as(ready, event, None)?;
            if self.end.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Collects JSON that stands bare between the fields, and tells an error from noise.
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
            if meaning::is_error(&self.stray) {
                return Err(meaning::in_band_error(self.stray.trim_end()));
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
                // Too long a line would have been refused when it was fed.
                let _ = decoder.end_line(&mut items);
                self.take_items(&mut items)?;
                if let Some(event) = decoder.finish() {
                    // The standard drops a block without its blank line; whole ones are too good to lose.
                    let data = event.data.trim();
                    if !data.is_empty() && data != meaning::DONE && mend::value(data).is_err() {
                        return Err(truncated("the stream ended inside an event"));
                    }
                    self.take_event(event, None)?;
                    if let Some(end) = self.end.take() {
                        return end;
                    }
                }
                self.complete |= meaning::may_end_anywhere(self.operation) && self.begun;
                self.outcome()
            }
        }
    }

    fn outcome(&self) -> Result<(), Error> {
        if !self.begun {
            Err(truncated("the stream held no event"))
        } else if self.complete {
            Ok(())
        } else {
            Err(truncated("the stream ended before the answer was complete"))
        }
    }

    /// As [`RawStream::next_batch`] hands over.
    pub(super) fn take_chunk(&mut self, ready: Ready) -> Result<Option<StreamEvent>, Error> {
        let Some(mut event) = ready.into_chunk() else { return Ok(None) };
        if let Some(like) = self.pattern.like(&event.data) {
            self.received.events += 1;
            self.journal.keep_text(like.quoted);
            if let Some(mended) = like.mended {
                event.data = mended;
            }
            return Ok(Some(event));
        }
        self.normalise(&mut event);
        if shape::check(self.form(), &event.data).is_ok() {
            self.keep(&event.data, Some(&event.data));
        } else {
            let mended = shape::mend_text(self.form(), &event.data, Mending::Structure);
            let mended = mended.map_err(|error| meaning::not_json(&event.data, error))?;
            self.keep(&event.data, Some(&mended));
            event.data = mended;
        }
        Ok(Some(event))
    }

    /// As [`EventStream`](super::EventStream) hands over.
    pub(super) fn take_typed<T: DeserializeOwned>(&mut self, ready: Ready) -> Result<Option<T>, Error> {
        let Some(mut event) = ready.into_chunk() else { return Ok(None) };
        self.normalise(&mut event);
        let value = serde_json::from_str(&event.data).or_else(|_| {
            let whole = shape::mend_text(self.form(), &event.data, Mending::Whole)
                .map_err(|error| meaning::not_json(&event.data, error))?;
            serde_json::from_str(&whole).or_else(|error| {
                let forced = shape::mend_text(self.form(), &whole, Mending::Forced);
                let value = forced.and_then(|forced| serde_json::from_str(&forced));
                value.map_err(|_| of_another_form(&event.data, error))
            })
        })?;
        self.keep_unseen(&event.data);
        Ok(Some(value))
    }

    /// As [`RawStream::next_text`] hands over.
    pub(super) fn take_text(&mut self, ready: Ready) -> Result<Option<String>, Error> {
        let Some(mut event) = ready.into_chunk() else { return Ok(None) };
        if let Some(like) = self.pattern.like(&event.data) {
            self.received.events += 1;
            self.journal.keep_text(like.quoted);
            let text = like.is_first.then(|| like.text.into_owned());
            return Ok(text.filter(|text| !text.is_empty()));
        }
        self.normalise(&mut event);
        let text = text::text(self.operation.protocol, &event.data);
        let text = text.map_err(|error| meaning::not_json(&event.data, error))?;
        self.keep_unseen(&event.data);
        Ok(text)
    }

    /// As [`RawStream::next_frames`] hands over. A chunk that cannot be read is handed over and then ends the
    /// stream.
    #[expect(clippy::unnecessary_wraps, reason = "every level is taken alike")]
    pub(super) fn take_frame(&mut self, ready: Ready) -> Result<Option<Frame>, Error> {
        let (frame, is_chunk) = match ready {
            Ready::Chunk(event) => (Frame::from(event), true),
            Ready::Element(event) => {
                if let Err(error) = self.take_chunk(Ready::Chunk(event)) {
                    self.fail(error);
                }
                return Ok(None);
            }
            Ready::Frame { frame, is_chunk } => (*frame, is_chunk),
        };
        if is_chunk && let Some(data) = &frame.data {
            let event = StreamEvent { event: frame.event.clone(), data: data.clone(), id: None };
            if let Err(error) = self.take_chunk(Ready::Chunk(event)) {
                self.fail(error);
            }
        }
        Ok(Some(frame))
    }

    fn form(&self) -> &'static Form {
        shape::chunk_form(self.operation.protocol)
    }

    /// Keeps a chunk for the document. handed: the chunk as it was handed over, where that is known.
    fn keep(&mut self, data: &str, handed: Option<&str>) {
        self.received.events += 1;
        self.journal.keep(data);
        match handed {
            Some(handed) if self.operation.protocol == Protocol::Chat => self.pattern.learn(data, handed),
            _ => self.pattern.forget(),
        }
    }

    /// Keeps a chunk that a level has read in its own way, for which it needs no mending.
    fn keep_unseen(&mut self, data: &str) {
        if let Some(like) = self.pattern.like(data) {
            self.received.events += 1;
            self.journal.keep_text(like.quoted);
        } else {
            let is_as_handed = shape::check(self.form(), data).is_ok();
            self.keep(data, is_as_handed.then_some(data));
        }
    }

    /// Mends what can be told without parsing: at every level, in every language, the data is the same.
    fn normalise(&mut self, event: &mut StreamEvent) {
        if let Cow::Owned(mended) = mend::surrogates(&event.data) {
            event.data = mended;
        }
        match (self.operation.protocol, &event.event) {
            (Protocol::Responses, Some(name)) => {
                if let Cow::Owned(named) = meaning::with_type(&event.data, name) {
                    event.data = named;
                }
            }
            // A whole completion comes alone.
            (Protocol::Chat, _) if self.received.events == 0 => {
                if let Some(chunk) = document::chunk_of_completion(&event.data) {
                    event.data = chunk;
                }
            }
            _ => {}
        }
    }
}

impl Ready {
    fn into_chunk(self) -> Option<StreamEvent> {
        match self {
            Self::Chunk(event) | Self::Element(event) => Some(event),
            Self::Frame { frame, is_chunk } => {
                let Frame { event, data, id, .. } = *frame;
                data.filter(|_| is_chunk).map(|data| StreamEvent { event, data, id })
            }
        }
    }
}

fn of_another_form(data: &str, error: serde_json::Error) -> Error {
    let body = Bytes::copy_from_slice(data.as_bytes());
    Error::new(ErrorKind::Decode, "an event of the stream is not of the form the operation streams")
        .quoting(&error)
        .caused_by(error)
        .with_body(body)
}

fn truncated(message: &str) -> Error {
    Error::new(ErrorKind::StreamTruncated, message)
}

fn too_heavy(what: &str, heavy: TooHeavy) -> Error {
    Error::new(ErrorKind::Decode, format!("{what} cannot be read: {heavy}")).with_source(heavy)
}

/// What comes before the first event: white space, and a byte order mark at the very beginning.
#[derive(Debug, Default)]
pub(super) struct Prefix {
    /// All of it, in bytes.
    length: usize,
    /// What of it the first line may need: a mark, the blanks of the line that has begun, the break before it.
    kept: Vec<u8>,
}

impl Prefix {
    /// Takes the next packet. Gives the first line as far as it has come, once there is one; each byte is looked at
    /// once. Errors: there is more white space than any server sends.
    fn take(&mut self, packet: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let may_be_mark = self.length == self.kept.len() && document::may_be_mark(&self.kept);
        let known = if may_be_mark { 0 } else { self.kept.len() };
        self.kept.extend_from_slice(packet);
        let blank = document::blank(&self.kept, known);
        let is_over = blank < self.kept.len() && !(may_be_mark && document::may_be_mark(&self.kept));
        if self.length + packet.len() - (self.kept.len() - blank) > MAX_PREFIX_BYTES {
            let message =
                format!("more than {MAX_PREFIX_BYTES} bytes of white space came before the first event");
            return Err(Error::new(ErrorKind::Decode, message));
        }
        if is_over {
            return Ok(Some(std::mem::take(&mut self.kept)));
        }
        self.length += packet.len();
        if let Some(line_break) = memrchr2(b'\n', b'\r', &self.kept[known..]) {
            self.kept.drain(..known + line_break);
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
        return Err(Error::new(ErrorKind::Decode, format!("the body is longer than {limit} bytes")));
    }
    Ok(())
}
