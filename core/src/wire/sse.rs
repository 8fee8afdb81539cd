//! Incremental decoder of Server-Sent Events: bytes in, events out. Does no I/O and parses no JSON; see stream.rs.
//!
//! Follows the WHATWG HTML standard, section "Server-sent events". The work is linear in the number of bytes fed,
//! regardless of packet boundaries, and an event that lies within one packet is copied once.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use memchr::{memchr, memchr2};

/// Bound on one event and on one line, in bytes, unless [`Decoder::with_max_event_bytes`] sets another. Large enough
/// for an image of some tens of megapixels in base64.
///
/// ```
/// use gatewright::sse::{DEFAULT_MAX_EVENT_BYTES, Decoder};
///
/// assert_eq!(DEFAULT_MAX_EVENT_BYTES, 64 << 20);
/// let decoder = Decoder::new().with_max_event_bytes(2 * DEFAULT_MAX_EVENT_BYTES);
/// ```
pub const DEFAULT_MAX_EVENT_BYTES: usize = 64 * 1024 * 1024;

/// Longer ids are ignored, as are ids with a NUL. The current id is part of every event that follows.
///
/// ```
/// use gatewright::sse::{Decoder, Item, MAX_ID_BYTES};
///
/// let mut items = Vec::new();
/// let event = format!("id: {}\ndata: {{}}\n\n", "7".repeat(MAX_ID_BYTES + 1));
/// Decoder::new().feed(event.as_bytes(), &mut items)?;
/// assert!(matches!(items.as_slice(), [Item::Event(event)] if event.id.is_none()));
/// # Ok::<(), gatewright::sse::TooLarge>(())
/// ```
pub const MAX_ID_BYTES: usize = 4096;

/// A line buffer that has grown past this size is released once its line has been handled.
const KEPT_LINE_CAPACITY: usize = 64 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One dispatched event.
///
/// ```
/// use gatewright::sse::{Decoder, Item};
///
/// let mut items = Vec::new();
/// Decoder::new().feed(b"event: ping\nid: 7\ndata: {}\n\n", &mut items)?;
/// let [Item::Event(event)] = items.as_slice() else { panic!("one event") };
/// assert_eq!((event.event.as_deref(), event.id.as_deref()), (Some("ping"), Some("7")));
/// # Ok::<(), gatewright::sse::TooLarge>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamEvent {
    /// The `event` field; none if it is missing or empty.
    pub event: Option<String>,
    /// The `data` fields, joined with line feeds. Malformed UTF-8 is replaced with U+FFFD.
    pub data: String,
    /// The current id: it persists from the event that set it, and all events until the next id share it. None if it
    /// was never set or was set to an empty value.
    pub id: Option<Arc<str>>,
}

/// One block of the stream as it arrived, whether or not the standard dispatches it: a comment, a `retry` or an `id`
/// alone makes a frame too.
///
/// ```
/// use gatewright::sse::{Decoder, Item};
///
/// let mut items = Vec::new();
/// Decoder::new().with_frames(true).feed(b": still there\n\n", &mut items)?;
/// let [Item::Frame(frame)] = items.as_slice() else { panic!("one frame") };
/// assert_eq!((frame.comments.len(), frame.data.as_deref()), (1, None));
/// # Ok::<(), gatewright::sse::TooLarge>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frame {
    /// The `event` field; none if it is missing or empty.
    pub event: Option<String>,
    /// The `data` fields, joined with line feeds; none if the block has none.
    pub data: Option<String>,
    /// The current id, as in [`StreamEvent::id`].
    pub id: Option<Arc<str>>,
    /// The `retry` field: the reconnection time that the server requests.
    pub retry: Option<Duration>,
    /// Comments within the block, without their colon and the space after it.
    pub comments: Vec<String>,
}

impl From<StreamEvent> for Frame {
    fn from(StreamEvent { event, data, id }: StreamEvent) -> Self {
        Self { event, data: Some(data), id, retry: None, comments: Vec::new() }
    }
}

/// What the decoder can return for the bytes it is fed.
///
/// ```
/// use gatewright::sse::{Decoder, Item};
///
/// let mut items = Vec::new();
/// Decoder::new().feed(b"{\"error\": 1}\n", &mut items)?;
/// assert_eq!(items, [Item::Unknown("{\"error\": 1}".to_owned())]);
/// # Ok::<(), gatewright::sse::TooLarge>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Item {
    /// A blank line ended a block that had data.
    Event(StreamEvent),
    /// A blank line ended a block of any kind. Only with [`Decoder::with_frames`]; frames then replace events.
    Frame(Frame),
    /// A whole line whose field name the standard does not define. It is not part of any event; some servers write a
    /// bare JSON error into an event stream, and stream.rs looks for it here.
    Unknown(String),
}

/// An event or a line is longer than the decoder's bound. The rest of the stream cannot be read.
///
/// ```
/// use gatewright::sse::{Decoder, TooLarge};
///
/// let mut decoder = Decoder::new().with_max_event_bytes(8);
/// let result = decoder.feed(b"data: more than that", &mut Vec::new());
/// assert_eq!(result, Err(TooLarge { limit: 8 }));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge {
    /// The bound, in bytes.
    pub limit: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an event of the stream is larger than {} bytes", self.limit)
    }
}

impl std::error::Error for TooLarge {}

/// The decoder. Feed it packets in order, then call [`Decoder::finish`] for the unterminated rest.
///
/// ```
/// use gatewright::sse::{Decoder, Item};
///
/// let mut decoder = Decoder::new();
/// let mut items = Vec::new();
/// decoder.feed(b"data: hel", &mut items)?;
/// decoder.feed(b"lo\n\n", &mut items)?;
/// let [Item::Event(event)] = items.as_slice() else { panic!("one event") };
/// assert_eq!(event.data, "hello");
/// # Ok::<(), gatewright::sse::TooLarge>(())
/// ```
#[derive(Debug)]
pub struct Decoder {
    max_event_bytes: usize,
    /// Whether whole blocks are returned instead of the events that the standard dispatches.
    frames: bool,
    /// Number of bytes of a leading byte order mark seen so far; None once the start of the stream is past.
    mark_bytes_seen: Option<usize>,
    /// The last packet ended a line with CR: an LF that comes next belongs to the same line end.
    skip_line_feed: bool,
    /// The beginning of a line whose end has not arrived.
    line: Vec<u8>,
    event: String,
    data: Vec<u8>,
    has_data: bool,
    /// An `id` field of the block being read; committed by the blank line.
    pending_id: Option<String>,
    /// None if it is empty.
    last_event_id: Option<Arc<str>>,
    /// The rest of the current block, if frames are requested.
    block: EventBlock,
}

#[derive(Debug, Default)]
struct EventBlock {
    retry: Option<Duration>,
    comments: Vec<String>,
    comment_bytes: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            max_event_bytes: DEFAULT_MAX_EVENT_BYTES,
            frames: false,
            mark_bytes_seen: Some(0),
            skip_line_feed: false,
            line: Vec::new(),
            event: String::new(),
            data: Vec::new(),
            has_data: false,
            pending_id: None,
            last_event_id: None,
            block: EventBlock::default(),
        }
    }
}

impl Decoder {
    /// A decoder at the start of a stream, with the default bound.
    ///
    /// ```
    /// use gatewright::sse::Decoder;
    ///
    /// let decoder = Decoder::new();
    /// assert_eq!(decoder.finish(), None);
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the bound on one event and on one line, in bytes.
    ///
    /// ```
    /// use gatewright::sse::Decoder;
    ///
    /// let mut decoder = Decoder::new().with_max_event_bytes(8);
    /// assert!(decoder.feed(b"data: more than that\n\n", &mut Vec::new()).is_err());
    /// ```
    #[must_use]
    pub fn with_max_event_bytes(mut self, bytes: usize) -> Self {
        self.max_event_bytes = bytes;
        self
    }

    /// Whether whole blocks are returned as [`Item::Frame`] instead of the events that the standard dispatches. Frames
    /// include comments and reconnection times, which are otherwise dropped.
    ///
    /// ```
    /// use gatewright::sse::{Decoder, Item};
    ///
    /// let mut items = Vec::new();
    /// Decoder::new().with_frames(true).feed(b": still there\n\n", &mut items)?;
    /// assert!(matches!(items.as_slice(), [Item::Frame(frame)] if frame.comments == ["still there"]));
    /// # Ok::<(), gatewright::sse::TooLarge>(())
    /// ```
    #[must_use]
    pub fn with_frames(mut self, frames: bool) -> Self {
        self.set_frames(frames);
        self
    }

    /// As [`Decoder::with_frames`], in the middle of a stream.
    pub(crate) fn set_frames(&mut self, frames: bool) {
        self.frames = frames;
    }

    /// Takes the next packet and appends the items it completes to `items`.
    ///
    /// Errors: an event or a line is longer than the bound; the items before it are in `items`.
    ///
    /// ```
    /// use gatewright::sse::Decoder;
    ///
    /// let (mut decoder, mut items) = (Decoder::new(), Vec::new());
    /// for packet in [&b"data: 1\n\nda"[..], b"ta: 2\n\n"] {
    ///     decoder.feed(packet, &mut items)?;
    /// }
    /// assert_eq!(items.len(), 2);
    /// # Ok::<(), gatewright::sse::TooLarge>(())
    /// ```
    pub fn feed(&mut self, packet: &[u8], items: &mut Vec<Item>) -> Result<(), TooLarge> {
        let mut rest = self.strip_byte_order_mark(packet);
        if self.skip_line_feed && !rest.is_empty() {
            self.skip_line_feed = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = memchr2(b'\n', b'\r', rest) {
            let after = &rest[end + 1..];
            if self.line.is_empty() {
                self.take_line(&rest[..end], items)?;
            } else {
                self.extend_line(&rest[..end])?;
                let mut line = std::mem::take(&mut self.line);
                let taken = self.take_line(&line, items);
                line.clear();
                if line.capacity() <= KEPT_LINE_CAPACITY {
                    self.line = line;
                }
                taken?;
            }
            rest = match (rest[end], after.first()) {
                (b'\r', Some(b'\n')) => &after[1..],
                (b'\r', None) => {
                    self.skip_line_feed = true;
                    after
                }
                _ => after,
            };
        }
        self.extend_line(rest)
    }

    /// Ends a line that the end of the stream left open, and appends its item to `items`.
    pub(crate) fn end_line(&mut self, items: &mut Vec<Item>) -> Result<(), TooLarge> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() { Ok(()) } else { self.take_line(&line, items) }
    }

    /// Ends the stream and returns the block that no blank line ended, if it has data. The standard discards it;
    /// stream.rs keeps it if it is complete.
    ///
    /// ```
    /// use gatewright::sse::Decoder;
    ///
    /// let mut decoder = Decoder::new();
    /// decoder.feed(b"data: the end", &mut Vec::new())?;
    /// assert_eq!(decoder.finish().unwrap().data, "the end");
    /// # Ok::<(), gatewright::sse::TooLarge>(())
    /// ```
    pub fn finish(mut self) -> Option<StreamEvent> {
        self.end_line(&mut Vec::new()).ok()?;
        self.dispatch()
    }

    /// Drops one leading byte order mark, which may arrive in pieces.
    fn strip_byte_order_mark<'a>(&mut self, packet: &'a [u8]) -> &'a [u8] {
        let Some(mut seen) = self.mark_bytes_seen else { return packet };
        let mut rest = packet;
        while let Some((&first, after)) = rest.split_first() {
            if first != BYTE_ORDER_MARK[seen] {
                // It was not a mark: the bytes seen so far begin the first line.
                self.line.extend_from_slice(&BYTE_ORDER_MARK[..seen]);
                self.mark_bytes_seen = None;
                return rest;
            }
            rest = after;
            seen += 1;
            if seen == BYTE_ORDER_MARK.len() {
                self.mark_bytes_seen = None;
                return rest;
            }
        }
        self.mark_bytes_seen = Some(seen);
        rest
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        self.check_size(self.line.len() + bytes.len())?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn check_size(&self, bytes: usize) -> Result<(), TooLarge> {
        if bytes > self.max_event_bytes { Err(TooLarge { limit: self.max_event_bytes }) } else { Ok(()) }
    }

    fn take_line(&mut self, line: &[u8], items: &mut Vec<Item>) -> Result<(), TooLarge> {
        if line.is_empty() {
            if self.frames {
                items.extend(self.end_frame().map(Item::Frame));
            } else {
                items.extend(self.dispatch().map(Item::Event));
            }
            return Ok(());
        }
        let (field, value) = match memchr(b':', line) {
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &[][..]),
        };
        match field {
            b"data" => {
                self.check_size(self.data.len() + value.len() + 1)?;
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.has_data = true;
            }
            b"event" => {
                self.event.clear();
                self.event.push_str(&String::from_utf8_lossy(value));
            }
            b"id" if value.len() <= MAX_ID_BYTES && !value.contains(&0) => {
                self.pending_id = Some(text(value.to_vec()));
            }
            b"retry" if self.frames => {
                self.block.retry = digits(value).map(Duration::from_millis).or(self.block.retry);
            }
            // An empty name before the colon: a comment.
            b"" if self.frames => {
                // An empty comment counts too.
                let bytes = self.block.comment_bytes + line.len() + size_of::<String>();
                self.check_size(bytes)?;
                self.block.comment_bytes = bytes;
                self.block.comments.push(text(value.to_vec()));
            }
            b"id" | b"retry" | b"" => {}
            _ => items.push(Item::Unknown(text(line.to_vec()))),
        }
        Ok(())
    }

    /// Ends a block: commits the id, resets the name, and returns the event unless the block had no data.
    fn dispatch(&mut self) -> Option<StreamEvent> {
        if let Some(id) = self.pending_id.take() {
            self.last_event_id = (!id.is_empty()).then(|| id.into());
        }
        let event = (!self.event.is_empty()).then(|| std::mem::take(&mut self.event));
        if !std::mem::take(&mut self.has_data) {
            return None;
        }
        let id = self.last_event_id.clone();
        Some(StreamEvent { event, data: text(std::mem::take(&mut self.data)), id })
    }

    /// Ends a block as [`Decoder::dispatch`] does, and returns the whole block unless it is empty.
    fn end_frame(&mut self) -> Option<Frame> {
        let EventBlock { retry, comments, .. } = std::mem::take(&mut self.block);
        let (named, identified) = (!self.event.is_empty(), self.pending_id.is_some());
        let event = named.then(|| self.event.clone());
        let mut frame = match self.dispatch() {
            Some(event) => Frame::from(event),
            None if named || identified || retry.is_some() || !comments.is_empty() => {
                Frame { event, id: self.last_event_id.clone(), ..Frame::default() }
            }
            None => return None,
        };
        frame.retry = retry;
        frame.comments = comments;
        Some(frame)
    }
}

/// Converts bytes that should be UTF-8 to text, without a copy if they are valid.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn digits(value: &[u8]) -> Option<u64> {
    // str::parse would accept a leading plus sign.
    if !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    //! tests/vectors/sse covers the rules of the standard, and core/tests/client/framing.rs runs it; these tests cover
    //! what a vector cannot express.

    use proptest::prelude::*;

    use super::*;

    fn decode(packets: &[&[u8]]) -> (Vec<Item>, Option<StreamEvent>) {
        let mut decoder = Decoder::new();
        let mut items = Vec::new();
        for packet in packets {
            decoder.feed(packet, &mut items).expect("within the bound");
        }
        (items, decoder.finish())
    }

    fn event(data: &str) -> Item {
        Item::Event(StreamEvent { data: data.to_owned(), ..StreamEvent::default() })
    }

    #[test]
    fn carriage_return_ending_a_packet_dispatches_immediately_and_once() {
        let mut decoder = Decoder::new();
        let mut items = Vec::new();
        decoder.feed(b"data: a\r\r", &mut items).expect("within the bound");
        assert_eq!(items, [event("a")]);
        decoder.feed(b"\ndata: b\r\n\r", &mut items).expect("within the bound");
        assert_eq!(items, [event("a"), event("b")]);
        decoder.feed(b"\n\r\n", &mut items).expect("within the bound");
        assert_eq!(items, [event("a"), event("b")]);
    }

    #[test]
    fn oversized_event_is_rejected_in_one_line_or_many() {
        let mut items = Vec::new();
        let one_line = Decoder::new().with_max_event_bytes(16).feed(&[b'x'; 17], &mut items);
        assert_eq!(one_line, Err(TooLarge { limit: 16 }));
        let mut decoder = Decoder::new().with_max_event_bytes(16);
        decoder.feed(b"data: 12345678\n", &mut items).expect("within the bound");
        assert_eq!(decoder.feed(b"data: 12345678\n", &mut items), Err(TooLarge { limit: 16 }));
        assert_eq!(items, []);
    }

    #[test]
    fn id_over_the_limit_is_ignored() {
        for (length, is_kept) in [(MAX_ID_BYTES, true), (MAX_ID_BYTES + 1, false)] {
            let id = "x".repeat(length);
            let (items, _) = decode(&[format!("id: {id}\ndata: a\n\n").as_bytes()]);
            let [Item::Event(event)] = items.as_slice() else { panic!("one event") };
            assert_eq!(event.id.as_deref(), is_kept.then_some(id.as_str()));
        }
    }

    #[test]
    fn id_applies_from_the_end_of_its_block() {
        let (items, rest) = decode(&[b"id: 7\n", b"\n", b"data: a\n\n", b"id: 8\n", b"data: b\n"]);
        let [Item::Event(event)] = items.as_slice() else { panic!("one event") };
        assert_eq!(event.id.as_deref(), Some("7"));
        assert_eq!(rest.and_then(|event| event.id).as_deref(), Some("8"));
    }

    #[test]
    fn four_megabyte_line_in_small_packets_is_read_in_linear_time() {
        // Quadratic work would be some 10^11 byte steps here, minutes instead of milliseconds.
        let mut body = b"data: ".to_vec();
        body.resize(4 * 1024 * 1024, b'x');
        body.extend_from_slice(b"\n\n");
        let packets: Vec<&[u8]> = body.chunks(61).collect();
        let started = std::time::Instant::now();
        let (items, rest) = decode(&packets);
        assert!(started.elapsed() < std::time::Duration::from_secs(10), "took {:?}", started.elapsed());
        assert_eq!(rest, None);
        assert!(matches!(items.as_slice(), [Item::Event(event)] if event.data.len() == 4 * 1024 * 1024 - 6));
    }

    /// Bytes that often contain characters with a meaning in the grammar.
    fn stream_bytes() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(&b"data: "[..]),
            Just(&b"data:"[..]),
            Just(&b"data"[..]),
            Just(&b"event: ping"[..]),
            Just(&b"id: 1"[..]),
            Just(&b"id: \0"[..]),
            Just(&b"retry: 10"[..]),
            Just(&b": comment"[..]),
            Just(&b"{\"error\":1}"[..]),
            Just(&b"\n"[..]),
            Just(&b"\r"[..]),
            Just(&b"\r\n"[..]),
            Just(&b"\n\n"[..]),
            Just(&b"\xEF\xBB\xBF"[..]),
            Just(&b"\xEF\xBB"[..]),
            Just("é🙂\u{2028}".as_bytes()),
            Just(&b"\xF0\x9F"[..]),
            Just(&b"\0"[..]),
            Just(&b"x"[..]),
        ];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn packet_boundaries_do_not_change_events(
            bytes in stream_bytes(),
            cuts in prop::collection::vec(0usize..400, 0..12),
        ) {
            let mut bounds: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            bounds.extend([0, bytes.len()]);
            bounds.sort_unstable();
            let packets: Vec<&[u8]> = bounds.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let whole = decode(&[&bytes]);
            prop_assert_eq!(&whole, &decode(&packets));
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(&whole, &decode(&single));
        }

        #[test]
        fn frames_contain_the_dispatched_events(bytes in stream_bytes()) {
            let (items, _) = decode(&[&bytes]);
            let mut decoder = Decoder::new().with_frames(true);
            let mut framed = Vec::new();
            decoder.feed(&bytes, &mut framed).expect("within the bound");
            let frames: Vec<Frame> = framed.into_iter().filter_map(|item| match item {
                Item::Frame(frame) => Some(frame),
                Item::Unknown(_) => None,
                other => panic!("{other:?} beside frames"),
            }).collect();
            let events: Vec<Frame> = items.iter().filter_map(|item| match item {
                Item::Event(event) => Some(Frame::from(event.clone())),
                _ => None,
            }).collect();
            let with_data: Vec<Frame> = frames.iter().filter(|frame| frame.data.is_some()).cloned()
                .map(|frame| Frame { retry: None, comments: Vec::new(), ..frame }).collect();
            prop_assert_eq!(events, with_data);
        }

        #[test]
        fn arbitrary_bytes_are_decoded_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let (items, _) = decode(&[&bytes]);
            prop_assert!(items.len() <= bytes.len());
        }
    }
}
