//! What each level delivers of the ready items: chunks, typed values, text or frames. Each item is kept for the merged
//! document.

use std::borrow::Cow;

use bytes::Bytes;

use super::chunk_template::ChunkTemplate;
use super::journal::Journal;
use super::pattern::TemplateMatch;
use super::reading::{ReadChunk, Ready};
use super::shape::{self, RepairLevel};
use super::{classify, document, text};
use crate::api::chunk::Chunk as TypedChunk;
use crate::api::generated::shapes::chunk_shape;
use crate::api::operation::{Operation, Protocol};
use crate::api::shape::Shape;
use crate::wire::error::{Error, ErrorKind, Received};
use crate::wire::repair;
use crate::wire::sse::{Frame, StreamEvent};

/// Delivers items and keeps what it has delivered.
pub(super) struct Levels {
    protocol: Protocol,
    /// The shape of a chunk.
    shape: &'static Shape,
    pub(super) journal: Journal,
    pub(super) received: Received,
}

impl Levels {
    pub(super) fn new(operation: &'static Operation, max_body_bytes: usize) -> Self {
        Self {
            protocol: operation.protocol,
            shape: chunk_shape(operation),
            journal: Journal::new(operation, max_body_bytes),
            received: Received::default(),
        }
    }

    /// As delivered by [`RawStream::next_batch`](super::RawStream::next_batch).
    pub(super) fn chunk(&mut self, ready: Ready) -> Result<Option<StreamEvent>, Error> {
        let Some(ReadChunk { mut event, like }) = ready.into_chunk() else { return Ok(None) };
        if let Some(like) = like {
            self.keep_like(&event.data, &like);
            if let Some(mended) = like.mended(&event.data) {
                event.data = mended;
            }
            return Ok(Some(event));
        }
        self.normalise(&mut event);
        let is_sound = shape::check(self.shape, &event.data).is_ok();
        let mended = if is_sound {
            None
        } else {
            let mended = shape::mend_text(self.shape, &event.data, RepairLevel::Structure);
            Some(mended.map_err(|error| classify::not_json(&event.data, error))?)
        };
        self.keep(&event.data);
        if let Some(mended) = mended {
            event.data = mended;
        }
        Ok(Some(event))
    }

    /// As delivered by [`RawStream::next_rows`](super::RawStream::next_rows): as it arrived, if it is like the last one.
    pub(super) fn alike(&mut self, ready: Ready) -> Result<Option<ReadChunk>, Error> {
        match ready.into_chunk() {
            Some(ReadChunk { event, like: Some(like) }) => {
                self.keep_like(&event.data, &like);
                Ok(Some(ReadChunk { event, like: Some(like) }))
            }
            Some(chunk) => {
                let event = self.chunk(Ready::Chunk(chunk))?;
                Ok(event.map(|event| ReadChunk { event, like: None }))
            }
            None => Ok(None),
        }
    }

    /// As delivered by [`EventStream`](super::EventStream).
    pub(super) fn typed<T: TypedChunk>(
        &mut self,
        ready: Ready,
        copies: &mut ChunkTemplate<T>,
    ) -> Result<Option<T>, Error> {
        let Some(ReadChunk { mut event, like }) = ready.into_chunk() else { return Ok(None) };
        let Some(like) = like else {
            self.normalise(&mut event);
            let value = self.parsed(&event.data)?;
            self.keep(&event.data);
            return Ok(Some(value));
        };
        if let Some(copy) = copies.copy(&event.data, &like) {
            self.keep_like(&event.data, &like);
            return Ok(Some(copy));
        }
        let value = self.parsed(&event.data)?;
        self.keep_like(&event.data, &like);
        copies.learn(&event.data, like, &value);
        Ok(Some(value))
    }

    /// The data of an event as a value, repaired as far as its type requires.
    fn parsed<T: TypedChunk>(&self, data: &str) -> Result<T, Error> {
        serde_json::from_str(data).or_else(|_| {
            let whole = shape::mend_text(self.shape, data, RepairLevel::Whole)
                .map_err(|error| classify::not_json(data, error))?;
            serde_json::from_str(&whole).or_else(|error| {
                let forced = shape::mend_text(self.shape, &whole, RepairLevel::Forced);
                let value = forced.and_then(|forced| serde_json::from_str(&forced));
                value.map_err(|_| of_another_form(data, error))
            })
        })
    }

    /// As delivered by [`RawStream::next_text`](super::RawStream::next_text).
    pub(super) fn text(&mut self, ready: Ready) -> Result<Option<String>, Error> {
        let Some(ReadChunk { mut event, like }) = ready.into_chunk() else { return Ok(None) };
        if let Some(like) = like {
            self.keep_like(&event.data, &like);
            return Ok(like.first_text(&event.data));
        }
        self.normalise(&mut event);
        let text = text::text(self.protocol, &event.data);
        let text = text.map_err(|error| classify::not_json(&event.data, error))?;
        self.keep(&event.data);
        Ok(text)
    }

    /// As delivered by [`RawStream::next_frames`](super::RawStream::next_frames). A chunk that cannot be read is
    /// delivered together with the error that ends the stream.
    pub(super) fn frame(&mut self, ready: Ready) -> (Option<Frame>, Result<(), Error>) {
        let (frame, is_chunk, like) = match ready {
            Ready::Chunk(ReadChunk { event, like }) => (Frame::from(event), true, like),
            Ready::Element(chunk) => return (None, self.chunk(Ready::Chunk(chunk)).map(drop)),
            Ready::Frame { frame, is_chunk, like } => (*frame, is_chunk, like),
        };
        let mut outcome = Ok(());
        match (&frame.data, like) {
            (Some(data), Some(like)) => self.keep_like(data, &like),
            (Some(data), None) if is_chunk => {
                let event = StreamEvent { event: frame.event.clone(), data: data.clone(), id: None };
                outcome = self.chunk(Ready::Chunk(ReadChunk { event, like: None })).map(drop);
            }
            _ => {}
        }
        (Some(frame), outcome)
    }

    /// Keeps a chunk for the document.
    fn keep(&mut self, data: &str) {
        self.received.events += 1;
        self.journal.keep(data);
    }

    /// Keeps a chunk that is like the last one.
    fn keep_like(&mut self, data: &str, like: &TemplateMatch) {
        self.received.events += 1;
        self.journal.keep_text(like.quoted(data), like.others(data));
    }

    /// Repairs everything that can be repaired without parsing, so that the data is the same at every level and in every
    /// language.
    fn normalise(&mut self, event: &mut StreamEvent) {
        if let Cow::Owned(mended) = repair::surrogates(&event.data) {
            event.data = mended;
        }
        match (self.protocol, &event.event) {
            (Protocol::Responses | Protocol::Messages, Some(name)) => {
                if let Cow::Owned(named) = classify::with_type(&event.data, name) {
                    event.data = named;
                }
            }
            // A whole completion is the only event.
            (Protocol::Chat, _) if self.received.events == 0 => {
                if let Some(chunk) = document::chunk_of_completion(&event.data) {
                    event.data = chunk;
                }
            }
            _ => {}
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
