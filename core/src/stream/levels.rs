//! What each level delivers of the ready items: chunks, typed values, text or frames. Each item is kept for the merged
//! document.

use std::borrow::Cow;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::journal::Journal;
use super::pattern::Pattern;
use super::reading::Ready;
use super::shape::{self, Mending};
use super::{document, meaning, mend, text};
use crate::api::form::Form;
use crate::api::generated::forms::chunk_form;
use crate::api::operation::{Operation, Protocol};
use crate::wire::error::{Error, ErrorKind, Received};
use crate::wire::sse::{Frame, StreamEvent};

/// Delivers items and keeps what it has delivered.
pub(super) struct Levels {
    protocol: Protocol,
    /// The form of a chunk.
    form: &'static Form,
    pub(super) journal: Journal,
    /// The pattern of the last chunk that was read.
    pattern: Pattern,
    pub(super) received: Received,
}

impl Levels {
    pub(super) fn new(operation: &'static Operation, max_body_bytes: usize) -> Self {
        Self {
            protocol: operation.protocol,
            form: chunk_form(operation),
            journal: Journal::new(operation, max_body_bytes),
            pattern: Pattern::default(),
            received: Received::default(),
        }
    }

    /// As delivered by [`RawStream::next_batch`](super::RawStream::next_batch).
    pub(super) fn chunk(&mut self, ready: Ready) -> Result<Option<StreamEvent>, Error> {
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
        if shape::check(self.form, &event.data).is_ok() {
            self.keep(&event.data, Some(&event.data));
        } else {
            let mended = shape::mend_text(self.form, &event.data, Mending::Structure);
            let mended = mended.map_err(|error| meaning::not_json(&event.data, error))?;
            self.keep(&event.data, Some(&mended));
            event.data = mended;
        }
        Ok(Some(event))
    }

    /// As delivered by [`EventStream`](super::EventStream).
    pub(super) fn typed<T: DeserializeOwned>(&mut self, ready: Ready) -> Result<Option<T>, Error> {
        let Some(mut event) = ready.into_chunk() else { return Ok(None) };
        self.normalise(&mut event);
        let value = serde_json::from_str(&event.data).or_else(|_| {
            let whole = shape::mend_text(self.form, &event.data, Mending::Whole)
                .map_err(|error| meaning::not_json(&event.data, error))?;
            serde_json::from_str(&whole).or_else(|error| {
                let forced = shape::mend_text(self.form, &whole, Mending::Forced);
                let value = forced.and_then(|forced| serde_json::from_str(&forced));
                value.map_err(|_| of_another_form(&event.data, error))
            })
        })?;
        self.keep_unseen(&event.data);
        Ok(Some(value))
    }

    /// As delivered by [`RawStream::next_text`](super::RawStream::next_text).
    pub(super) fn text(&mut self, ready: Ready) -> Result<Option<String>, Error> {
        let Some(mut event) = ready.into_chunk() else { return Ok(None) };
        if let Some(like) = self.pattern.like(&event.data) {
            self.received.events += 1;
            self.journal.keep_text(like.quoted);
            let text = like.is_first.then(|| like.text.into_owned());
            return Ok(text.filter(|text| !text.is_empty()));
        }
        self.normalise(&mut event);
        let text = text::text(self.protocol, &event.data);
        let text = text.map_err(|error| meaning::not_json(&event.data, error))?;
        self.keep_unseen(&event.data);
        Ok(text)
    }

    /// As delivered by [`RawStream::next_frames`](super::RawStream::next_frames). A chunk that cannot be read is
    /// delivered together with the error that ends the stream.
    pub(super) fn frame(&mut self, ready: Ready) -> (Option<Frame>, Result<(), Error>) {
        let (frame, is_chunk) = match ready {
            Ready::Chunk(event) => (Frame::from(event), true),
            Ready::Element(event) => return (None, self.chunk(Ready::Chunk(event)).map(drop)),
            Ready::Frame { frame, is_chunk } => (*frame, is_chunk),
        };
        let mut kept = Ok(());
        if is_chunk && let Some(data) = &frame.data {
            let event = StreamEvent { event: frame.event.clone(), data: data.clone(), id: None };
            kept = self.chunk(Ready::Chunk(event)).map(drop);
        }
        (Some(frame), kept)
    }

    /// Keeps a chunk for the document. handed: the chunk as delivered, if that is known.
    fn keep(&mut self, data: &str, handed: Option<&str>) {
        self.received.events += 1;
        self.journal.keep(data);
        match handed {
            Some(handed) if self.protocol == Protocol::Chat => self.pattern.learn(data, handed),
            _ => self.pattern.forget(),
        }
    }

    /// Keeps a chunk that a level has read in its own way and that needs no mending for it.
    fn keep_unseen(&mut self, data: &str) {
        if let Some(like) = self.pattern.like(data) {
            self.received.events += 1;
            self.journal.keep_text(like.quoted);
        } else {
            let is_as_handed = shape::check(self.form, data).is_ok();
            self.keep(data, is_as_handed.then_some(data));
        }
    }

    /// Mends what needs no parsing, so that the data is the same at every level and in every language.
    fn normalise(&mut self, event: &mut StreamEvent) {
        if let Cow::Owned(mended) = mend::surrogates(&event.data) {
            event.data = mended;
        }
        match (self.protocol, &event.event) {
            (Protocol::Responses | Protocol::Messages, Some(name)) => {
                if let Cow::Owned(named) = meaning::with_type(&event.data, name) {
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
