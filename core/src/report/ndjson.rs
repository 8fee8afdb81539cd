//! One document per line (NDJSON, JSON Lines): splits a reader into lines of bounded length.

use std::io::{self, BufRead, Read as _};

/// The lines of a reader that are not blank, with their numbers.
///
/// A line ends at `\n`; an `\r` before it is not part of it. Of a line over the bound, one byte more than the bound
/// is kept, so that the validator refuses it by its size; the rest is passed over without being held.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    max_bytes: usize,
    number: usize,
    ended: bool,
}

/// A line, and its number from 1.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// Where it stands.
    pub number: usize,
    /// What it holds.
    pub bytes: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// `max_bytes`: the validator's bound on a document.
    pub fn new(reader: R, max_bytes: usize) -> Self {
        Self { reader, max_bytes, number: 0, ended: false }
    }

    fn read_line(&mut self) -> io::Result<Option<Line>> {
        loop {
            let mut bytes = Vec::new();
            let bound = self.max_bytes as u64 + 1;
            if self.reader.by_ref().take(bound).read_until(b'\n', &mut bytes)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            if bytes.last() == Some(&b'\n') {
                bytes.pop();
                if bytes.last() == Some(&b'\r') {
                    bytes.pop();
                }
            } else if bytes.len() > self.max_bytes {
                self.reader.skip_until(b'\n')?;
            }
            if bytes.iter().any(|byte| !byte.is_ascii_whitespace()) {
                return Ok(Some(Line { number: self.number, bytes }));
            }
        }
    }
}

/// Errors: the reader's; it is the last item then.
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
    fn blank_lines_are_counted_and_left_out() {
        let found = lines(b"\n{}\r\n  \n[1]\n\n{\"a\":\n", 100);
        assert_eq!(found, [(2, "{}".into()), (4, "[1]".into()), (6, "{\"a\":".into())]);
    }

    #[test]
    fn last_line_needs_no_end() {
        assert_eq!(lines(b"{}\n[]", 100), [(1, "{}".into()), (2, "[]".into())]);
        assert_eq!(lines(b"", 100), []);
    }

    #[test]
    fn line_over_the_bound_is_cut_and_the_next_one_is_whole() {
        assert_eq!(lines(b"1234567890\n12345\n", 5), [(1, "123456".into()), (2, "12345".into())]);
        assert_eq!(lines(b"123456\n7\n", 5), [(1, "123456".into()), (2, "7".into())]);
    }
}
