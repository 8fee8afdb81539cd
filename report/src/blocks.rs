//! Reads NDJSON in blocks of whole lines, which threads process.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::ndjson::is_blank;

/// Bytes read at once. A block that fits into the processor's cache is validated faster than it is read again.
const BLOCK_BYTES: usize = 256 << 10;

/// Maximum number of lines in a block: the results for each may be long.
const MAX_LINES: usize = 64;

/// Buffers to reuse: the system need not clear them again.
type SpareBuffers = Arc<Mutex<Vec<Vec<u8>>>>;

/// Whole lines of a file, at most 64.
///
/// ```
/// use gatewright_report::{Blocks, MAX_BYTES};
///
/// let block = Blocks::new(&b"{}\n\n[]\n"[..], MAX_BYTES).next().unwrap()?;
/// let lines: Vec<(usize, &[u8])> = block.lines().collect();
/// assert_eq!(lines, [(1, &b"{}"[..]), (3, &b"[]"[..])]);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Block {
    buffer: Arc<Buffer>,
    range: Range<usize>,
    /// Number of the first line, from 1.
    first: usize,
    /// Maximum length of a line; a longer one keeps one extra byte.
    max_bytes: usize,
    /// The beginning of a single line that is too long, whatever it contains.
    is_cut: bool,
}

/// Data from one read, used by one or more blocks.
#[derive(Debug)]
struct Buffer {
    bytes: Vec<u8>,
    spare: SpareBuffers,
}

impl Block {
    /// Length of its lines, in bytes.
    ///
    /// ```
    /// use gatewright_report::{Blocks, MAX_BYTES};
    ///
    /// let block = Blocks::new(&b"{}\n[]\n"[..], MAX_BYTES).next().unwrap()?;
    /// assert_eq!(block.length(), 6);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn length(&self) -> usize {
        self.range.len()
    }

    fn bytes(&self) -> &[u8] {
        self.buffer.bytes.get(self.range.clone()).unwrap_or_default()
    }

    /// Its lines that are not blank, with their numbers, as [`crate::Lines`] yields them.
    ///
    /// ```
    /// use gatewright_report::{Blocks, MAX_BYTES};
    ///
    /// let block = Blocks::new(&b"{}\n\n[]\n"[..], MAX_BYTES).next().unwrap()?;
    /// let numbers: Vec<usize> = block.lines().map(|(number, _)| number).collect();
    /// assert_eq!(numbers, [1, 3]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn lines(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let mut rest = self.bytes();
        let lines = std::iter::from_fn(move || {
            let end = memchr::memchr(b'\n', rest);
            let (line, after) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
            rest = after;
            Some(line).filter(|line| !line.is_empty())
        });
        (self.first..).zip(lines).filter_map(|(number, line)| {
            if is_blank(line) && !self.is_cut {
                return None;
            }
            let line = match line.strip_suffix(b"\n") {
                Some(line) if line.len() <= self.max_bytes + 1 => line.strip_suffix(b"\r").unwrap_or(line),
                Some(line) => line,
                None => line,
            };
            Some((number, line.get(..=self.max_bytes).unwrap_or(line)))
        })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // The buffer of a long line is not reused.
        if self.bytes.capacity() <= 4 * BLOCK_BYTES {
            let mut bytes = std::mem::take(&mut self.bytes);
            bytes.clear();
            self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
        }
    }
}

/// The blocks of a reader that are not blank.
///
/// ```no_run
/// use std::fs::File;
///
/// use gatewright_report::{Blocks, MAX_BYTES, Validator};
///
/// let validator = Validator::default();
/// for block in Blocks::new(File::open("reports.ndjson")?, MAX_BYTES) {
///     for (number, line) in block?.lines() {
///         println!("{number}: {}", validator.check(line).valid);
///     }
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Blocks<R> {
    reader: R,
    max_bytes: usize,
    /// Bytes read at once.
    at_once: usize,
    /// Number of lines read.
    number: usize,
    /// The beginning of the next line.
    started: Vec<u8>,
    spare: SpareBuffers,
    /// Data that has been read but is not in a block yet: from this offset on.
    rest: Option<(Arc<Buffer>, usize)>,
    ended: bool,
    failed: Option<io::Error>,
}

impl<R: Read> Blocks<R> {
    /// `max_bytes`: the validator's maximum size of a document. The reader needs no buffer.
    ///
    /// ```
    /// use gatewright_report::{Blocks, Validator};
    ///
    /// let mut blocks = Blocks::new(std::io::empty(), Validator::default().max_bytes());
    /// assert!(blocks.next().is_none());
    /// ```
    pub fn new(reader: R, max_bytes: usize) -> Self {
        Self {
            reader,
            max_bytes,
            at_once: BLOCK_BYTES,
            number: 0,
            started: Vec::new(),
            spare: SpareBuffers::default(),
            rest: None,
            ended: false,
            failed: None,
        }
    }

    fn read_block(&mut self) -> Option<Block> {
        if let Some(block) = self.next_lines() {
            return Some(block);
        }
        loop {
            let mut bytes = self.buffer();
            bytes.append(&mut self.started);
            let mut searched = 0;
            let block = loop {
                let unsearched = bytes.get(searched..).unwrap_or_default();
                if let Some(end) = memchr::memrchr(b'\n', unsearched) {
                    self.started.extend_from_slice(unsearched.get(end + 1..).unwrap_or_default());
                    bytes.truncate(searched + end + 1);
                    break self.block(bytes, false);
                }
                if bytes.len() > self.max_bytes + 1 {
                    break self.cut(bytes);
                }
                if self.ended {
                    // Data before a read error does not count as a line.
                    return if self.failed.is_some() { None } else { self.block(bytes, false) };
                }
                searched = bytes.len();
                self.read_more(&mut bytes);
            };
            if block.is_some() {
                return block;
            }
        }
    }

    /// A line that is too long; its rest is read and discarded. `None` if it is blank.
    fn cut(&mut self, mut line: Vec<u8>) -> Option<Block> {
        let mut is_text = !is_blank(&line);
        line.truncate(self.max_bytes + 1);
        let mut more = Vec::new();
        while !self.ended {
            more.clear();
            self.read_more(&mut more);
            let end = memchr::memchr(b'\n', &more);
            let (rest, next) = more.split_at(end.map_or(more.len(), |end| end + 1));
            is_text |= !is_blank(rest);
            if end.is_some() {
                self.started.extend_from_slice(next);
                break;
            }
        }
        if is_text && self.failed.is_none() {
            return self.block(line, true);
        }
        self.number += 1;
        None
    }

    /// Appends bytes, and checks whether more follow.
    fn read_more(&mut self, bytes: &mut Vec<u8>) {
        let length = bytes.len();
        bytes.resize(length + self.at_once, 0);
        // One read only: a pipe returns what has been written, and waiting for more may take long.
        let read = loop {
            match self.reader.read(bytes.get_mut(length..).unwrap_or_default()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        bytes.truncate(length + read.as_ref().map_or(0, |read| *read));
        match read {
            Ok(read) => self.ended = read == 0,
            Err(error) => {
                self.ended = true;
                self.failed = Some(error);
            }
        }
    }

    fn buffer(&mut self) -> Vec<u8> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// The first non-blank lines of these; the others are stored.
    fn block(&mut self, bytes: Vec<u8>, is_cut: bool) -> Option<Block> {
        let buffer = Arc::new(Buffer { bytes, spare: Arc::clone(&self.spare) });
        if !is_cut {
            self.rest = Some((buffer, 0));
            return self.next_lines();
        }
        self.number += 1;
        let range = 0..buffer.bytes.len();
        Some(Block { buffer, range, first: self.number, max_bytes: self.max_bytes, is_cut })
    }

    /// The next non-blank lines of the data.
    fn next_lines(&mut self) -> Option<Block> {
        while let Some((buffer, start)) = self.rest.take() {
            let unread = buffer.bytes.get(start..).unwrap_or_default();
            let mut ends = memchr::memchr_iter(b'\n', unread).take(MAX_LINES);
            let (mut count, mut length) = (0, 0);
            for end in &mut ends {
                (count, length) = (count + 1, end + 1);
            }
            // The last line of a file may lack a line break.
            if count < MAX_LINES {
                length = unread.len();
            }
            let first = self.number + 1;
            self.number += count;
            let (range, is_last) = (start..start + length, length == unread.len());
            let block =
                Block { buffer: Arc::clone(&buffer), range, first, max_bytes: self.max_bytes, is_cut: false };
            if !is_last {
                self.rest = Some((buffer, block.range.end));
            }
            if !is_blank(block.bytes()) {
                return Some(block);
            }
        }
        None
    }
}

/// Errors: those of the reader; an error is the last item.
impl<R: Read> Iterator for Blocks<R> {
    type Item = io::Result<Block>;

    fn next(&mut self) -> Option<io::Result<Block>> {
        self.read_block().map(Ok).or_else(|| self.failed.take().map(Err))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ndjson::Lines;

    fn of_lines(text: &[u8], max_bytes: usize) -> Vec<(usize, Vec<u8>)> {
        let lines = Lines::new(text, max_bytes).map(|line| line.expect("reads"));
        lines.map(|line| (line.number, line.bytes)).collect()
    }

    fn of_blocks(text: &[u8], max_bytes: usize, at_once: usize) -> Vec<(usize, Vec<u8>)> {
        let blocks = Blocks { at_once, ..Blocks::new(text, max_bytes) };
        let blocks = blocks.map(|block| block.expect("reads"));
        blocks
            .flat_map(|block| block.lines().map(|(number, line)| (number, line.to_vec())).collect::<Vec<_>>())
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn blocks_yield_the_same_lines_as_the_line_reader(
            text in "[a \\t\r\n\n]{0,40}", max_bytes in 1..8_usize, at_once in 1..12_usize
        ) {
            let text = text.as_bytes();
            prop_assert_eq!(of_blocks(text, max_bytes, at_once), of_lines(text, max_bytes));
        }
    }

    #[test]
    fn lines_per_block_are_bounded() {
        let text = "{}\n".repeat(1000) + "[]";
        let blocks: Vec<Block> =
            Blocks::new(text.as_bytes(), 100).map(|block| block.expect("reads")).collect();
        assert!(blocks.iter().all(|block| block.lines().count() <= MAX_LINES));
        let numbers: Vec<usize> =
            blocks.iter().flat_map(|block| block.lines().map(|(number, _)| number)).collect();
        assert_eq!(numbers, (1..=1001).collect::<Vec<_>>());
    }

    #[test]
    fn available_lines_are_returned_without_waiting_for_more() {
        let reader = (&b"{}\n"[..]).chain(Failing);
        let mut blocks = Blocks::new(reader, 100);
        assert_eq!(blocks.next().expect("a block").expect("reads").lines().count(), 1);
        assert!(!blocks.ended);
    }

    #[test]
    fn lines_before_a_read_error_are_returned() {
        let reader = (&b"{}\n[]\n1"[..]).chain(Failing);
        let mut blocks = Blocks::new(reader, 100);
        let lines: Vec<usize> =
            blocks.next().expect("a block").expect("reads").lines().map(|(number, _)| number).collect();
        assert_eq!(lines, [1, 2]);
        assert!(blocks.next().expect("an error").is_err());
        assert!(blocks.next().is_none());
    }

    struct Failing;

    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }

    #[test]
    fn buffers_are_reused() {
        let mut blocks = Blocks { at_once: 4, ..Blocks::new(&b"1\n2\n3\n4\n"[..], 100) };
        let first = blocks.next().expect("a block").expect("reads").bytes().as_ptr();
        assert_eq!(blocks.next().expect("a block").expect("reads").bytes().as_ptr(), first);
    }
}
