//! Splits a stream of server-sent events into blocks without changing a byte. `gatewright::sse` decodes events; the relay passes
//! them through.

use std::borrow::Cow;
use std::ops::Range;

use bytes::{Buf as _, Bytes, BytesMut};
use memchr::memchr2;
use serde::de::IgnoredAny;

use crate::bounds::gathering::capacity_with;

/// Maximum size of an event: enough for a base64 image of some tens of megapixels.
pub(crate) const MAX_EVENT_BYTES: usize = 64 * 1024 * 1024;

/// The blocks of a stream.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// The beginning of a block whose end has not arrived.
    started: BytesMut,
    /// How much of it is known not to contain an end.
    searched: usize,
    /// Whether the stream is past the position of a byte order mark.
    has_started: bool,
}

/// May precede the first event, but isn't part of it (WHATWG HTML, 9.2.5).
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// An event is longer than [`MAX_EVENT_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventTooLong;

/// The fields of a block that matter to a relay.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Fields<'a> {
    pub(crate) name: Option<&'a str>,
    /// The data, and its range in the block if it is a single line.
    pub(crate) data: Option<(Cow<'a, str>, Option<Range<usize>>)>,
}

impl Frames {
    /// Takes a packet and emits the blocks that it completes, each with its terminating blank line.
    pub(crate) fn push(
        &mut self,
        mut packet: Bytes,
        mut on_block: impl FnMut(Bytes),
    ) -> Result<(), EventTooLong> {
        if !self.has_started {
            if !self.started.is_empty() {
                self.started.extend_from_slice(&packet);
                packet = std::mem::take(&mut self.started).freeze();
            }
            if packet.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(&packet) {
                self.started.extend_from_slice(&packet);
                return Ok(());
            }
            if packet.starts_with(BYTE_ORDER_MARK) {
                packet.advance(BYTE_ORDER_MARK.len());
            }
            self.has_started = true;
        }
        if !self.started.is_empty() {
            self.started.extend_from_slice(&packet);
            match end_of_block(&self.started, self.searched) {
                Ok(end) => {
                    // The block takes ownership of the buffer. The rest gets a new buffer of the size that it needs.
                    packet = std::mem::take(&mut self.started).freeze();
                    on_block(packet.split_to(end));
                }
                Err(searched) => {
                    self.searched = searched;
                    return self.bounded();
                }
            }
        }
        // Blocks within one packet aren't copied.
        loop {
            let blank = leading_line_ends(&packet);
            packet.advance(blank);
            match end_of_block(&packet, 0) {
                Ok(end) => on_block(packet.split_to(end)),
                Err(searched) => {
                    self.started.extend_from_slice(&packet);
                    self.searched = searched;
                    return self.bounded();
                }
            }
        }
    }

    /// A last block that lacks only its blank line: its data is complete. Returned with the blank line.
    pub(crate) fn last(&mut self) -> Option<Bytes> {
        self.searched = 0;
        let mut rest = std::mem::take(&mut self.started);
        let (data, _) = Fields::read(&rest).data?;
        let whole = data == "[DONE]" || serde_json::from_str::<IgnoredAny>(&data).is_ok();
        whole.then(|| {
            rest.extend_from_slice(b"\n\n");
            rest.freeze()
        })
    }

    /// The memory of what has been received of an incomplete event, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.started.capacity()
    }

    /// The same at most with a packet.
    pub(crate) fn memory_with(&self, packet: &[u8]) -> usize {
        capacity_with(&self.started, packet.len())
    }

    fn bounded(&self) -> Result<(), EventTooLong> {
        if self.started.len() > MAX_EVENT_BYTES { Err(EventTooLong) } else { Ok(()) }
    }
}

/// The blocks of a complete text of any length.
pub(crate) fn blocks(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        text = &text[leading_line_ends(text)..];
        let (block, rest) = text.split_at(end_of_block(text, 0).unwrap_or(text.len()));
        text = rest;
        (!block.is_empty()).then_some(block)
    })
}

/// Line ends between blocks are ignored.
fn leading_line_ends(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count()
}

/// The end of the first block. Errors: how far the search got.
fn end_of_block(bytes: &[u8], from: usize) -> Result<usize, usize> {
    let mut at = from;
    while let Some(found) = memchr2(b'\n', b'\r', &bytes[at..]) {
        let line_end = at + found;
        let next = match &bytes[line_end..] {
            [b'\r', b'\n', rest @ ..] => (line_end + 2, rest.first()),
            [b'\r'] => return Err(line_end),
            [_, rest @ ..] => (line_end + 1, rest.first()),
            [] => break,
        };
        match next {
            (after, Some(b'\n')) => return Ok(after + 1),
            (after, Some(b'\r')) => {
                return Ok(after + 1 + usize::from(bytes.get(after + 1) == Some(&b'\n')));
            }
            (_, None) => return Err(line_end),
            (after, Some(_)) => at = after,
        }
    }
    Err(bytes.len())
}

impl<'a> Fields<'a> {
    /// Parses a block. Lines that aren't UTF-8 are omitted.
    pub(crate) fn read(block: &'a [u8]) -> Self {
        let mut fields = Self::default();
        let mut at = 0;
        while at < block.len() {
            let end = memchr2(b'\n', b'\r', &block[at..]).map_or(block.len(), |end| at + end);
            let line = &block[at..end];
            if let Some(range) = value(line, b"data:", at) {
                fields.add(block, range);
            } else if let Some(range) = value(line, b"event:", at) {
                fields.name = std::str::from_utf8(&block[range]).ok();
            }
            at = end + 1;
        }
        fields
    }

    fn add(&mut self, block: &'a [u8], range: Range<usize>) {
        let Ok(line) = std::str::from_utf8(&block[range.clone()]) else { return };
        self.data = Some(match self.data.take() {
            None => (Cow::Borrowed(line), Some(range)),
            Some((before, _)) => {
                let mut joined = before.into_owned();
                joined.push('\n');
                joined.push_str(line);
                (Cow::Owned(joined), None)
            }
        });
    }
}

/// The value of a line with this field, without the leading space.
fn value(line: &[u8], field: &[u8], at: usize) -> Option<Range<usize>> {
    let value = line.strip_prefix(field)?;
    let space = usize::from(value.first() == Some(&b' '));
    Some(at + field.len() + space..at + line.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The blocks of a stream that arrives in packets of this size, and the rest.
    fn blocks(stream: &str, size: usize) -> (Vec<String>, String) {
        let (mut frames, mut blocks) = (Frames::default(), Vec::new());
        for packet in stream.as_bytes().chunks(size) {
            let on_block = |block: Bytes| blocks.push(String::from_utf8_lossy(&block).into_owned());
            frames.push(Bytes::copy_from_slice(packet), on_block).expect("short");
        }
        (blocks, String::from_utf8_lossy(&frames.started).into_owned())
    }

    #[test]
    fn blocks_are_split_at_every_kind_of_blank_line() {
        let stream = "data: a\n\n: c\r\n\r\nevent: x\rdata: b\r\rdata: d\n\r\n\n\ndata: e\ndata: f\n\nrest";
        for size in 1..=stream.len() {
            let (blocks, rest) = blocks(stream, size);
            let lines: Vec<Vec<&str>> = blocks
                .iter()
                .map(|block| block.split(['\r', '\n']).filter(|line| !line.is_empty()).collect())
                .collect();
            let expected: [&[&str]; 5] =
                [&["data: a"], &[": c"], &["event: x", "data: b"], &["data: d"], &["data: e", "data: f"]];
            assert_eq!(lines, expected, "packets of {size} bytes");
            assert_eq!(rest, "rest");
        }
    }

    #[test]
    fn leading_byte_order_mark_is_skipped() {
        let stream = "\u{feff}data: a\n\ndata: \u{feff}b\n\n";
        for size in 1..=stream.len() {
            let mut frames = Frames::default();
            let mut data = Vec::new();
            for packet in stream.as_bytes().chunks(size) {
                let on_block =
                    |block: Bytes| data.push(Fields::read(&block).data.expect("data").0.into_owned());
                frames.push(Bytes::copy_from_slice(packet), on_block).expect("short");
            }
            assert_eq!(data, ["a", "\u{feff}b"], "packets of {size} bytes");
        }
    }

    #[test]
    fn long_event_in_small_packets_is_scanned_once() {
        let mut frames = Frames::default();
        for _ in 0..1000 {
            frames.push(Bytes::from_static(&[b'x'; 1000]), |_| panic!("no end")).expect("short");
            assert_eq!(frames.searched, frames.started.len());
        }
        let mut found = 0;
        frames.push(Bytes::from_static(b"\n\n"), |block| found = block.len()).expect("short");
        assert_eq!(found, 1_000_002);
    }

    #[test]
    fn buffer_of_a_long_event_is_released() {
        let packet = Bytes::from_static(&[b'x'; 10_000]);
        for rest in ["", "data: rest"] {
            let mut frames = Frames::default();
            for _ in 0..100 {
                let foreseen = frames.memory_with(&packet);
                frames.push(packet.clone(), |_| panic!("no end")).expect("short");
                assert!((frames.started.len()..=foreseen).contains(&frames.memory()));
            }
            let mut found = Vec::new();
            frames.push(format!("\n\n{rest}").into(), |block| found.push(block)).expect("short");
            assert_eq!(found.iter().map(Bytes::len).collect::<Vec<_>>(), [1_000_002]);
            drop(found);
            // Neither now nor after further packets.
            for _ in 0..10 {
                assert!(frames.memory() < 1_000, "{}", frames.memory());
                frames.push(Bytes::from_static(b"data: x\n\n"), |_| ()).expect("short");
            }
        }
    }

    #[test]
    fn last_block_counts_if_its_data_is_complete() {
        for (rest, whole) in [
            ("data: [DONE]", true),
            ("data: {\"a\":1}\n", true),
            ("data: {\"a\":1", false),
            ("data: [DO", false),
            ("da", false),
            (": comment", false),
            ("", false),
        ] {
            let mut frames = Frames::default();
            frames.push(Bytes::from(rest), |_| panic!("no end")).expect("short");
            assert_eq!(frames.last().is_some_and(|block| block.ends_with(b"\n\n")), whole, "{rest}");
        }
    }

    #[test]
    fn fields_are_read_in_place() {
        let block = b": c\nevent: name\ndata: {\"a\":1}\nid: 7\n\n";
        let fields = Fields::read(block);
        assert_eq!(fields.name, Some("name"));
        let (data, place) = fields.data.expect("data");
        assert_eq!(data, "{\"a\":1}");
        assert_eq!(&block[place.expect("one line")], b"{\"a\":1}");
        let fields = Fields::read(b"data:a\r\ndata\r\ndata: b\r\n\r\n");
        assert_eq!(fields.data, Some((Cow::Owned("a\nb".to_owned()), None)));
        assert_eq!(Fields::read(b": ping\n\n"), Fields::default());
    }

    #[test]
    fn many_data_lines_take_linear_time() {
        let lines = 2_000_000;
        let block = "data:x\n".repeat(lines);
        let data = Fields::read(block.as_bytes()).data.map(|(data, _)| data.len());
        assert_eq!(data, Some(2 * lines - 1));
    }
}
