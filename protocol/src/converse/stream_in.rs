//! Reads streams. Each event has a name. Exceptions, which end a stream, don't reach this reader: the relay reads them with
//! the framing.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value};

use super::citations::{is_whole, read as read_citation};
use super::{media, stop_reason, usage};
use crate::conversation::{Citation, Delta, FinishReason, Located, Media, MediaSource, Protocol};
use crate::pieces::pieces;
use crate::provider_extra::StreamExtra;
use crate::{MalformedDocument, StreamIn, citations};

/// Maximum number of blocks that may be open at the same time, and of tool calls.
const MAX_BLOCKS: usize = 1024;
/// Maximum size of the buffered data of all open blocks: signatures, hidden reasoning, images and blocks of other kinds.
const MAX_BUFFERED_BYTES: usize = 16 * 1024 * 1024;

/// Reads a provider's stream.
pub(crate) fn stream_in() -> Box<dyn StreamIn> {
    Box::new(Events::default())
}

#[derive(Default)]
struct Events {
    has_started: bool,
    has_ended: bool,
    is_over: bool,
    calls: u32,
    thoughts: u32,
    /// The blocks that have started, by their index.
    open: BTreeMap<u64, Block>,
    /// Size of their buffered data.
    buffered: usize,
    /// Characters of the text so far.
    length: usize,
    citations: usize,
    /// Unread data, until the answer ends.
    unread: StreamExtra,
}

/// A block that has started.
enum Block {
    /// With the position where it begins, and its citations.
    Text(usize, Vec<Citation>),
    /// With its index among the thoughts, and the proof so far.
    Thought(u32, String),
    /// The same for a thought whose content is hidden: all of it is the proof.
    Hidden(u32, Vec<u8>),
    /// With its index among the calls, and whether a piece of its input has arrived.
    Call(u32, bool),
    /// With the media type, and the data so far.
    Image(String, Vec<u8>),
    /// A block of another kind: its start, its pieces, and their size.
    Other(Value, Vec<Value>, usize),
}

impl StreamIn for Events {
    fn event(
        &mut self,
        name: Option<&str>,
        data: &str,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), MalformedDocument> {
        if self.is_over || data.trim().is_empty() {
            return Ok(());
        }
        let event: Map<String, Value> = serde_json::from_str(data).map_err(|error| {
            MalformedDocument(format!("an event of the provider is no JSON object: {error}"))
        })?;
        match name.unwrap_or_default() {
            "messageStart" => {
                self.start(deltas);
                // At the place where a whole answer has them.
                self.unread.unread(event, "/output/message", &["role", PADDING]);
            }
            "contentBlockStart" => self.open(event, deltas)?,
            "contentBlockDelta" => self.piece(event, deltas)?,
            "contentBlockStop" => {
                if let Some(block) = self.open.remove(&index(&event)) {
                    self.close(block, deltas);
                }
                self.unread.unread(event, "", &OWN_OF_BLOCK);
            }
            "messageStop" => self.stop(event, deltas),
            "metadata" => self.account(event, deltas),
            // A whole answer, in place of a stream.
            "" if event.contains_key("output") => {
                self.is_over = true;
                deltas.extend(pieces(super::answer::answer_in(event.into())?));
            }
            // Unknown kinds of events carry nothing of the answer.
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, deltas: &mut Vec<Delta>) -> Result<(), MalformedDocument> {
        // The last event, with the token counts, may be missing.
        if self.has_ended && !self.is_over {
            self.finish(deltas);
        }
        if self.is_over {
            return Ok(());
        }
        Err(MalformedDocument("the provider's stream ended before its answer did".to_owned()))
    }

    fn held(&self) -> usize {
        self.buffered
    }
}

impl Block {
    fn held(&self) -> usize {
        match self {
            Self::Text(..) | Self::Call(..) => 0,
            Self::Thought(_, text) => text.len(),
            Self::Hidden(_, bytes) | Self::Image(_, bytes) => bytes.len(),
            Self::Other(_, _, size) => *size,
        }
    }
}

impl Events {
    fn start(&mut self, deltas: &mut Vec<Delta>) {
        if !std::mem::replace(&mut self.has_started, true) {
            deltas.push(Delta::Started { id: None, model: None, created: None, service_tier: None });
        }
    }

    fn open(
        &mut self,
        mut event: Map<String, Value>,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), MalformedDocument> {
        self.start(deltas);
        let (at, start) = (index(&event), event.shift_remove("start"));
        self.unread.unread(event, "", &OWN_OF_BLOCK);
        let mut start = match start {
            Some(Value::Object(start)) if !start.is_empty() => start,
            // Its pieces determine its kind.
            _ => return Ok(()),
        };
        let image_type =
            start.get("image").and_then(|image| image["format"].as_str()).and_then(media::image_type);
        if let Some(media_type) = image_type {
            return self.insert(at, Block::Image(media_type.to_owned(), Vec::new()), deltas);
        }
        let is_call = start.get("toolUse").is_some_and(|call| call.is_object() && call["type"].is_null());
        if let Some(Value::Object(mut call)) = start.get_mut("toolUse").filter(|_| is_call).map(Value::take) {
            if self.calls as usize >= MAX_BLOCKS {
                return Err(MalformedDocument(format!(
                    "an answer of the provider has more than {MAX_BLOCKS} calls"
                )));
            }
            // The sequencer generates an id, and drops calls without a name.
            let id = take_text(&mut call, "toolUseId").unwrap_or_default();
            let name = take_text(&mut call, "name").unwrap_or_default();
            self.unread.unread(call, "/start/toolUse", &[]);
            let number = self.calls;
            self.calls += 1;
            self.insert(at, Block::Call(number, false), deltas)?;
            deltas.push(Delta::Call { choice: 0, call: number, id, name, custom: false, signature: None });
            return Ok(());
        }
        let start = Value::Object(start);
        let size = start.to_string().len();
        self.reserve(size)?;
        self.insert(at, Block::Other(start, Vec::new(), size), deltas)
    }

    fn insert(&mut self, at: u64, block: Block, deltas: &mut Vec<Delta>) -> Result<(), MalformedDocument> {
        if let Some(earlier) = self.open.insert(at, block) {
            self.close(earlier, deltas);
        }
        if self.open.len() > MAX_BLOCKS {
            return Err(MalformedDocument(format!(
                "the provider began more than {MAX_BLOCKS} blocks at once"
            )));
        }
        Ok(())
    }

    fn piece(
        &mut self,
        mut event: Map<String, Value>,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), MalformedDocument> {
        self.start(deltas);
        let (at, delta) = (index(&event), event.shift_remove("delta"));
        self.unread.unread(event, "", &OWN_OF_BLOCK);
        let Some(Value::Object(delta)) = delta else { return Ok(()) };
        if let Some(Block::Other(_, pieces, size)) = self.open.get_mut(&at) {
            let delta = Value::Object(delta);
            let length = delta.to_string().len();
            *size += length;
            pieces.push(delta);
            return self.reserve(length);
        }
        for (name, value) in delta {
            match (name.as_str(), value) {
                ("text", Value::String(text)) => self.text(at, text, deltas)?,
                ("toolUse", Value::Object(call)) => self.input(at, call, deltas)?,
                ("reasoningContent", Value::Object(reasoning)) => self.think(at, reasoning, deltas)?,
                ("citation", citation @ Value::Object(_)) => self.cite(at, citation, deltas),
                ("image", Value::Object(image)) => self.image(at, image)?,
                (_, value) => self.unread.unread(Map::from_iter([(name, value)]), "/delta", &[]),
            }
        }
        Ok(())
    }

    fn text(&mut self, at: u64, text: String, deltas: &mut Vec<Delta>) -> Result<(), MalformedDocument> {
        if !matches!(self.open.get(&at), Some(Block::Text(..))) {
            self.insert(at, Block::Text(self.length, Vec::new()), deltas)?;
        }
        self.length = self.length.saturating_add(text.chars().count());
        if !text.is_empty() {
            deltas.push(Delta::Text { choice: 0, text, logprobs: None });
        }
        Ok(())
    }

    fn input(
        &mut self,
        at: u64,
        mut piece: Map<String, Value>,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), MalformedDocument> {
        let text = match piece.shift_remove("input") {
            Some(Value::String(text)) => text,
            Some(Value::Null) | None => String::new(),
            // Some servers write the object itself.
            Some(input) => input.to_string(),
        };
        self.unread.unread(piece, "/delta/toolUse", &[]);
        let Some(Block::Call(call, has_input)) = self.open.get_mut(&at) else {
            return Err(MalformedDocument("the provider sent the input of no tool call".to_owned()));
        };
        if !text.is_empty() {
            *has_input = true;
            deltas.push(Delta::CallInput { choice: 0, call: *call, text });
        }
        Ok(())
    }

    fn image(&mut self, at: u64, mut piece: Map<String, Value>) -> Result<(), MalformedDocument> {
        if let Some(Block::Image(_, data)) = self.open.get_mut(&at)
            && let Some(Value::Object(source)) = piece.get_mut("source")
            && let Some(more) = take_text(source, "bytes")
        {
            append_base64(data, &more)?;
            if source.is_empty() {
                piece.shift_remove("source");
            }
            self.reserve(more.len())?;
        }
        self.unread.unread(piece, "/delta/image", &[]);
        Ok(())
    }

    fn think(
        &mut self,
        at: u64,
        mut piece: Map<String, Value>,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), MalformedDocument> {
        if let Some(more) = take_text(&mut piece, "redactedContent") {
            if !matches!(self.open.get(&at), Some(Block::Hidden(..))) {
                let thought = self.next_thought();
                self.insert(at, Block::Hidden(thought, Vec::new()), deltas)?;
            }
            if let Some(Block::Hidden(_, data)) = self.open.get_mut(&at) {
                append_base64(data, &more)?;
                self.reserve(more.len())?;
            }
            self.unread.unread(piece, "/delta/reasoningContent", &[]);
            return Ok(());
        }
        if !matches!(self.open.get(&at), Some(Block::Thought(..))) {
            let thought = self.next_thought();
            self.insert(at, Block::Thought(thought, String::new()), deltas)?;
        }
        let Some(Block::Thought(thought, signature)) = self.open.get_mut(&at) else { return Ok(()) };
        if let Some(text) = take_text(&mut piece, "text").filter(|text| !text.is_empty()) {
            let thought = *thought;
            deltas.push(Delta::Thought { choice: 0, thought, id: None, part: 0, text, summary: false });
        }
        if let Some(more) = take_text(&mut piece, "signature") {
            signature.push_str(&more);
            self.reserve(more.len())?;
        }
        self.unread.unread(piece, "/delta/reasoningContent", &[]);
        Ok(())
    }

    /// The index of a thought that begins.
    fn next_thought(&mut self) -> u32 {
        let thought = self.thoughts;
        self.thoughts = self.thoughts.saturating_add(1);
        thought
    }

    /// Buffers a citation until its text is complete. One that isn't understood is emitted immediately.
    fn cite(&mut self, at: u64, citation: Value, deltas: &mut Vec<Delta>) {
        let number = self.citations;
        self.citations += 1;
        if number >= citations::MAX_CITATIONS {
            return;
        }
        let (begin, known) = match self.open.entry(at).or_insert_with(|| Block::Text(self.length, Vec::new()))
        {
            Block::Text(begin, known) => (*begin, Some(known)),
            _ => (self.length, None),
        };
        let read = read_citation(&citation, begin..begin);
        if read.is_none() || known.is_none() || !is_whole(&citation) {
            let place = format!("/contentBlockDelta/citation/{number}");
            deltas.push(Delta::Extra(Located::new(citation, place)));
        }
        if let Some(known) = known {
            known.extend(read);
        }
    }

    /// Counts the buffered bytes.
    fn reserve(&mut self, bytes: usize) -> Result<(), MalformedDocument> {
        self.buffered = self.buffered.saturating_add(bytes);
        if self.buffered <= MAX_BUFFERED_BYTES {
            return Ok(());
        }
        Err(MalformedDocument(format!(
            "the provider's open blocks are larger than {MAX_BUFFERED_BYTES} bytes"
        )))
    }

    fn close(&mut self, block: Block, deltas: &mut Vec<Delta>) {
        self.buffered = self.open.values().map(Block::held).sum();
        match block {
            Block::Text(begin, citations) => {
                let span = begin..self.length;
                deltas.extend(citations.into_iter().map(|citation| Delta::Citation {
                    choice: 0,
                    citation: Citation { span: Some(span.clone()), ..citation },
                }));
            }
            Block::Thought(_, signature) if signature.is_empty() => {}
            Block::Thought(thought, signature) => {
                let (id, redacted) = (None, false);
                deltas.push(Delta::ThoughtSigned { choice: 0, thought, id, signature, redacted });
            }
            Block::Hidden(thought, data) => {
                let (id, signature, redacted) = (None, BASE64_STANDARD.encode(data), true);
                deltas.push(Delta::ThoughtSigned { choice: 0, thought, id, signature, redacted });
            }
            Block::Call(call, has_input) => {
                if !has_input {
                    deltas.push(Delta::CallInput { choice: 0, call, text: "{}".to_owned() });
                }
                deltas.push(Delta::CallDone { choice: 0, call });
            }
            Block::Image(media_type, data) => {
                let source = MediaSource::Inline(BASE64_STANDARD.encode(data));
                let image = Media { source, media_type: Some(media_type), name: None, detail: None };
                deltas.push(Delta::Image { choice: 0, image });
            }
            Block::Other(mut value, pieces, _) => {
                if let (Value::Object(members), false) = (&mut value, pieces.is_empty()) {
                    members.insert("deltas".to_owned(), pieces.into());
                }
                deltas.push(Delta::Other { choice: 0, source: Protocol::Converse, value });
            }
        }
    }

    fn stop(&mut self, mut event: Map<String, Value>, deltas: &mut Vec<Delta>) {
        self.start(deltas);
        for block in std::mem::take(&mut self.open).into_values() {
            self.close(block, deltas);
        }
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let end = stop_reason::end(&event).unwrap_or(FinishReason::Stop);
        if let Some(Value::Object(additional)) = event.shift_remove(stop_reason::ADDITIONAL) {
            let at = format!("/{}", stop_reason::ADDITIONAL);
            self.unread.unread(additional, &at, &[stop_reason::STOP_SEQUENCE]);
        }
        self.unread.unread(event, "", &["stopReason", PADDING]);
        deltas.push(Delta::Ended { choice: 0, end });
    }

    fn account(&mut self, mut event: Map<String, Value>, deltas: &mut Vec<Delta>) {
        self.start(deltas);
        // The default tier isn't worth reporting.
        if let Some(tier) = usage::tier(&event).filter(|tier| tier != "default") {
            self.unread.extra(Located::new(tier.into(), "/serviceTier/type"));
        }
        if let Some(usage) = event.get("usage").and_then(usage::read) {
            deltas.push(Delta::Usage(usage));
        }
        if let Some(Value::Object(counted)) = event.shift_remove("usage") {
            self.unread.unread(counted, "/usage", &usage::KNOWN);
        }
        self.unread.unread(event, "", &["metrics", "performanceConfig", "serviceTier", PADDING]);
        if self.has_ended {
            self.finish(deltas);
        }
    }

    fn finish(&mut self, deltas: &mut Vec<Delta>) {
        self.is_over = true;
        deltas.extend(self.unread.take().map(Delta::Extra));
        deltas.push(Delta::Done);
    }
}

/// Random letters that hide the length of an event.
const PADDING: &str = "p";

/// Fields of an event of a block that mean nothing to another protocol.
const OWN_OF_BLOCK: [&str; 2] = ["contentBlockIndex", PADDING];

fn index(event: &Map<String, Value>) -> u64 {
    event.get("contentBlockIndex").and_then(Value::as_u64).unwrap_or_default()
}

/// Takes a text. A value of another type is left in place.
fn take_text(object: &mut Map<String, Value>, name: &str) -> Option<String> {
    if !object.get(name)?.is_string() {
        return None;
    }
    match object.shift_remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// Appends bytes. Each piece of a stream is base64 of its own.
fn append_base64(known: &mut Vec<u8>, more: &str) -> Result<(), MalformedDocument> {
    let decoded = BASE64_STANDARD.decode_vec(more, known);
    decoded.map_err(|error| MalformedDocument(format!("a block of the provider is no base64: {error}")))
}
