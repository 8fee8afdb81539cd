//! One document per line (NDJSON, JSON Lines): splits incremental input or a reader into lines of bounded length.
//! Defines blank lines for every language.

use std::io::{self, BufRead};

/// Byte order mark.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// Whether a line of a file, with or without its line end, contains only JSON white space: space, tab, CR, LF. Empty
/// input is not a line but an empty document.
///
/// ```
/// use gatewright_report::is_blank_line;
///
/// assert!(is_blank_line(b" \t\r\n"));
/// assert!(!is_blank_line(b"{}\n") && !is_blank_line(b""));
/// ```
pub fn is_blank_line(line: &[u8]) -> bool {
    !line.is_empty() && is_blank(line)
}

pub(crate) fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

/// A line, and its number from 1.
///
/// ```
/// use gatewright_report::{Lines, MAX_BYTES};
///
/// let line = Lines::new(&b"\n{}\n"[..], MAX_BYTES).next().unwrap()?;
/// assert_eq!((line.number, line.bytes), (2, b"{}".to_vec()));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// Its number.
    pub number: usize,
    /// Its contents.
    pub bytes: Vec<u8>,
}

/// Splits incremental input into non-blank lines ([`is_blank_line`]), and counts the blank ones too.
///
/// A line ends at `\n`; an `\r` before it is not part of it. Of a line over the limit, only one byte more than the
/// limit is stored, so that the parser rejects it by its size; the rest is skipped without buffering.
///
/// ```
/// use gatewright_report::{MAX_BYTES, Splitter};
///
/// let mut splitter = Splitter::new(MAX_BYTES);
/// let mut packet = &b"{}\r\n{\"kit\""[..];
/// assert_eq!(splitter.next_line(&mut packet).unwrap().bytes, b"{}");
/// assert!(splitter.next_line(&mut packet).is_none());
/// assert_eq!(splitter.finish().unwrap().bytes, b"{\"kit\"");
/// ```
#[derive(Debug)]
pub struct Splitter {
    max_bytes: usize,
    without_mark: bool,
    /// Number of complete lines.
    number: usize,
    /// The received part of the incomplete line.
    started: Vec<u8>,
    /// Whether the received part exceeds the kept part, and whether any of the excess was not white space.
    cut: bool,
    cut_text: bool,
}

impl Splitter {
    /// `max_bytes`: maximum length of a line.
    ///
    /// ```
    /// use gatewright_report::{Splitter, Validator};
    ///
    /// let mut splitter = Splitter::new(Validator::default().max_bytes());
    /// assert!(splitter.finish().is_none());
    /// ```
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, without_mark: false, number: 0, started: Vec::new(), cut: false, cut_text: false }
    }

    /// Drops a byte order mark at the very beginning.
    ///
    /// ```
    /// use gatewright_report::{MAX_BYTES, Splitter};
    ///
    /// let mut splitter = Splitter::new(MAX_BYTES).without_mark();
    /// let line = splitter.next_line(&mut "\u{feff}{}\n".as_bytes());
    /// assert_eq!(line.unwrap().bytes, b"{}");
    /// ```
    #[must_use]
    pub fn without_mark(self) -> Self {
        Self { without_mark: true, ..self }
    }

    /// The next line that ends within `bytes`; advances `bytes` past it. `None` once everything is consumed.
    ///
    /// ```
    /// use gatewright_report::{MAX_BYTES, Splitter};
    ///
    /// let mut splitter = Splitter::new(MAX_BYTES);
    /// for mut packet in [&b"{}\n{\"a\""[..], b":1}\n"] {
    ///     while let Some(line) = splitter.next_line(&mut packet) {
    ///         println!("{}: {} bytes", line.number, line.bytes.len());
    ///     }
    /// }
    /// ```
    pub fn next_line(&mut self, bytes: &mut &[u8]) -> Option<Line> {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end);
            self.hold(line);
            *bytes = &rest[1..];
            if !self.cut && self.started.last() == Some(&b'\r') {
                self.started.pop();
            }
            if let Some(line) = self.end() {
                return Some(line);
            }
        }
        self.hold(bytes);
        *bytes = &[];
        None
    }

    /// The last line, if no `\n` ends it.
    ///
    /// ```
    /// use gatewright_report::{MAX_BYTES, Splitter};
    ///
    /// let mut splitter = Splitter::new(MAX_BYTES);
    /// assert!(splitter.next_line(&mut &b"{}"[..]).is_none());
    /// assert_eq!(splitter.finish().unwrap().bytes, b"{}");
    /// ```
    pub fn finish(&mut self) -> Option<Line> {
        if self.started.is_empty() { None } else { self.end() }
    }

    /// Whether the incomplete line already exceeds the limit.
    ///
    /// ```
    /// use gatewright_report::Splitter;
    ///
    /// let mut splitter = Splitter::new(4);
    /// assert!(splitter.next_line(&mut &b"too long"[..]).is_none());
    /// assert!(splitter.is_over());
    /// ```
    pub fn is_over(&self) -> bool {
        self.started.len() > self.max_bytes
    }

    fn hold(&mut self, part: &[u8]) {
        let room = (self.max_bytes + 1).saturating_sub(self.started.len());
        let (kept, cut) = part.split_at(part.len().min(room));
        self.started.extend_from_slice(kept);
        self.cut |= !cut.is_empty();
        self.cut_text = self.cut_text || !is_blank(cut);
    }

    fn end(&mut self) -> Option<Line> {
        self.number += 1;
        self.cut = false;
        let has_text = std::mem::take(&mut self.cut_text);
        let mut bytes = std::mem::take(&mut self.started);
        if self.without_mark && self.number == 1 && bytes.starts_with(MARK) {
            bytes.drain(..MARK.len());
        }
        (has_text || !is_blank(&bytes)).then_some(Line { number: self.number, bytes })
    }
}

/// The non-blank lines of a reader, with their numbers, as a [`Splitter`] yields them.
///
/// ```
/// use gatewright_report::{Lines, MAX_BYTES, validate};
///
/// let file = &b"{}\n\n[]\n"[..];
/// for line in Lines::new(file, MAX_BYTES) {
///     let line = line?;
///     println!("{}: {}", line.number, validate(&line.bytes).valid);
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    splitter: Splitter,
    ended: bool,
}

impl<R: BufRead> Lines<R> {
    /// `max_bytes`: the validator's maximum size of a document.
    ///
    /// ```no_run
    /// use std::fs::File;
    /// use std::io::BufReader;
    ///
    /// use gatewright_report::{Lines, MAX_BYTES};
    ///
    /// let lines = Lines::new(BufReader::new(File::open("reports.ndjson")?), MAX_BYTES);
    /// println!("{} documents", lines.count());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new(reader: R, max_bytes: usize) -> Self {
        Self { reader, splitter: Splitter::new(max_bytes), ended: false }
    }

    fn read_line(&mut self) -> io::Result<Option<Line>> {
        loop {
            let mut bytes = match self.reader.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if bytes.is_empty() {
                return Ok(self.splitter.finish());
            }
            let length = bytes.len();
            let line = self.splitter.next_line(&mut bytes);
            let taken = length - bytes.len();
            self.reader.consume(taken);
            if line.is_some() {
                return Ok(line);
            }
        }
    }
}

/// Errors: those of the reader; an error is the last item.
impl<R: BufRead> Iterator for Lines<R> {
    type Item = io::Result<Line>;

    fn next(&mut self) -> Option<io::Result<Line>> {
        if self.ended {
            return None;
        }
        let line = self.read_line().transpose();
        self.ended = !matches!(line, Some(Ok(_)));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], max_bytes: usize) -> Vec<(usize, String)> {
        let line = |line: io::Result<Line>| line.map(|line| (line.number, String::from_utf8(line.bytes)));
        let lines = Lines::new(text, max_bytes).map(line);
        lines.map(|line| line.expect("reads")).map(|(number, text)| (number, text.expect("UTF-8"))).collect()
    }

    #[test]
    fn blank_lines_are_counted_and_skipped() {
        let found = lines(b"\n{}\r\n  \n[1]\n\n{\"a\":\n", 100);
        assert_eq!(found, [(2, "{}".into()), (4, "[1]".into()), (6, "{\"a\":".into())]);
    }

    #[test]
    fn last_line_needs_no_line_break() {
        assert_eq!(lines(b"{}\n[]", 100), [(1, "{}".into()), (2, "[]".into())]);
        assert_eq!(lines(b"", 100), []);
    }

    #[test]
    fn line_over_the_limit_is_truncated_and_the_next_is_complete() {
        assert_eq!(lines(b"1234567890\n12345\n", 5), [(1, "123456".into()), (2, "12345".into())]);
        assert_eq!(lines(b"123456\n7\n", 5), [(1, "123456".into()), (2, "7".into())]);
    }

    #[test]
    fn long_line_starting_with_white_space_is_not_blank() {
        assert_eq!(lines(b"       1\n        \n2\n", 5), [(1, "      ".into()), (3, "2".into())]);
    }

    #[test]
    fn cr_before_the_line_break_does_not_count_toward_the_limit() {
        assert_eq!(lines(b"12345\r\n123456\r\n", 5), [(1, "12345".into()), (2, "123456".into())]);
    }

    #[test]
    fn chunk_boundaries_do_not_change_lines() {
        let text = b"\n{}\r\n  \n[1]\r\n\n123456789\n1";
        for size in 1..text.len() {
            let mut splitter = Splitter::new(5);
            let mut found = Vec::new();
            for mut chunk in text.chunks(size) {
                while let Some(line) = splitter.next_line(&mut chunk) {
                    found.push(line);
                }
            }
            found.extend(splitter.finish());
            let whole: Vec<_> = Lines::new(&text[..], 5).map(|line| line.expect("reads")).collect();
            assert_eq!(found, whole, "cut at {size}");
        }
    }

    #[test]
    fn unterminated_line_over_the_limit_is_detected() {
        let mut splitter = Splitter::new(3);
        assert!(splitter.next_line(&mut &b"1\n123"[..]).is_some());
        assert!(splitter.next_line(&mut &b"123"[..]).is_none() && !splitter.is_over());
        assert!(splitter.next_line(&mut &b"4"[..]).is_none() && splitter.is_over());
    }

    #[test]
    fn byte_order_mark_is_dropped_on_request() {
        let mut splitter = Splitter::new(9).without_mark();
        let mut bytes = "\u{feff}1\n\u{feff}2\n".as_bytes();
        assert_eq!(splitter.next_line(&mut bytes).expect("a line").bytes, b"1");
        assert_eq!(splitter.next_line(&mut bytes).expect("a line").bytes, "\u{feff}2".as_bytes());
    }
}
