//! Records what a stream has delivered, for the document that it adds up to. Events are only copied as they pass.
//! They are parsed when the document is requested, or when keeping them would cost more than parsing them.

use bytes::Bytes;
use serde_json::Value;

use super::accumulate::{Accumulator, memory};
use crate::api::operation::Operation;
use crate::wire::error::{Error, ErrorKind};
use crate::wire::repair;

/// Maximum size of unparsed events, in bytes. Beyond it they are merged into the document. A single event may exceed
/// it.
const MAX_UNREAD_BYTES: usize = 1024 * 1024;

/// Maximum memory that an event takes in the document, as a multiple of the parsed event's own memory: repairing adds
/// missing members, and the document keeps extra tables to group related pieces.
const MENDED: usize = 4;
/// A document may exceed its bound by this fraction before that is noticed.
const MEASUREMENTS: usize = 16;

/// Separator of two entries; no JSON document contains it.
const SEPARATOR: char = '\0';

/// The events so far, parsed and unparsed.
#[derive(Debug)]
pub(super) struct Journal {
    operation: &'static Operation,
    /// Data of the unparsed events, each followed by a separator.
    unread: String,
    /// The last event without its text, if it may differ from the last unparsed one elsewhere, too.
    last: String,
    /// None once the document has exceeded its bound and was discarded.
    accumulator: Option<Accumulator>,
    /// Bound on the document's memory, in bytes, and therefore on its text.
    max_bytes: usize,
    /// Memory of the document when it was last measured, and the amount merged since. The document grows by no more
    /// than that, so it need not be measured again until the two together reach the bound.
    measured: usize,
    grown: usize,
    /// Number of events that could not be merged into the document.
    unreadable: u64,
}

impl Journal {
    /// max_bytes: bound on the document; a larger one is discarded.
    pub(super) fn new(operation: &'static Operation, max_bytes: usize) -> Self {
        Self {
            operation,
            unread: String::new(),
            last: String::new(),
            accumulator: Some(Accumulator::new(operation)),
            max_bytes,
            measured: 0,
            grown: 0,
            unreadable: 0,
        }
    }

    /// Keeps the data of a delivered event.
    pub(super) fn keep(&mut self, data: &str) {
        self.keep_last();
        // An entry that begins with a quote is a text.
        self.append(if data.starts_with('"') { " " } else { "" }, data);
    }

    /// Keeps an event that equals the last one except for its text, which is given as JSON. others: what surrounds the
    /// text, if that differs, too, in values of which the document keeps the last.
    pub(super) fn keep_text(&mut self, quoted: &str, others: Option<(&str, &str)>) {
        self.append("", quoted);
        if let Some((before, after)) = others {
            self.last.clear();
            self.last.push_str(before);
            self.last.push_str(after);
        }
    }

    /// Keeps the last event once more, without its text, for its other members.
    fn keep_last(&mut self) {
        if !self.last.is_empty() {
            let last = std::mem::take(&mut self.last);
            self.append("", &last);
        }
    }

    fn append(&mut self, mark: &str, entry: &str) {
        if self.accumulator.is_none() {
            return;
        }
        self.unread.push_str(mark);
        self.unread.push_str(entry);
        self.unread.push(SEPARATOR);
        if self.unread.len() > MAX_UNREAD_BYTES {
            self.read();
        }
    }

    /// The document so far as JSON; none if no event has arrived or the document has exceeded its bound.
    pub(super) fn partial(&mut self) -> Option<Bytes> {
        self.keep_last();
        self.read();
        if !self.fits() {
            return None;
        }
        let document = self.accumulator.as_ref()?.document()?;
        Some(Bytes::from(document.to_string()))
    }

    /// The document of the whole stream as JSON. Errors: Decode if it is not complete.
    pub(super) fn whole(&mut self) -> Result<Bytes, Error> {
        let partial = self.partial();
        let message = match partial {
            Some(document) if self.unreadable == 0 => return Ok(document),
            None if self.accumulator.is_none() => {
                format!("the response is larger than {} bytes: read its events instead", self.max_bytes)
            }
            _ => format!("{} events are nested too deeply to be read into one document", self.unreadable),
        };
        Err(Error::new(ErrorKind::Decode, message).with_operation(self.operation))
    }

    /// Whether the document is within its bound; discards it if not.
    fn fits(&mut self) -> bool {
        let Some(accumulator) = &self.accumulator else { return false };
        if self.measured.saturating_add(self.grown) > self.max_bytes {
            (self.measured, self.grown) = (accumulator.memory(), 0);
        }
        if self.measured > self.max_bytes {
            self.accumulator = None;
            self.unread = String::new();
            self.last = String::new();
        }
        self.accumulator.is_some()
    }

    fn read(&mut self) {
        let unread = std::mem::take(&mut self.unread);
        for entry in unread.split_terminator(SEPARATOR) {
            let Some(accumulator) = &mut self.accumulator else { return };
            match repair::value(entry) {
                Ok(Value::String(text)) if entry.starts_with('"') => {
                    self.grown = self.grown.saturating_add(text.len());
                    accumulator.push_text(&text);
                }
                Ok(value) => {
                    self.grown = self.grown.saturating_add(MENDED * memory(&value));
                    accumulator.push(value);
                }
                Err(_) => self.unreadable += 1,
            }
            // Measure as seldom as the growth allows: the cost of measuring is proportional to the size of the
            // document.
            if self.grown >= self.max_bytes / MEASUREMENTS && !self.fits() {
                return;
            }
        }
        self.unread = unread;
        self.unread.clear();
        self.unread.shrink_to(2 * MAX_UNREAD_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::operations::CREATE_CHAT_COMPLETION;

    fn chunk(content: &str) -> String {
        format!(r#"{{"id":"c","choices":[{{"index":0,"delta":{{"content":"{content}"}}}}]}}"#)
    }

    fn content(document: &[u8]) -> String {
        let value: Value = serde_json::from_slice(document).expect("JSON");
        value["choices"][0]["message"]["content"].as_str().expect("a text").to_owned()
    }

    #[test]
    fn journal_of_many_events_retains_only_their_text() {
        let mut journal = Journal::new(&CREATE_CHAT_COMPLETION, usize::MAX);
        let chunk = chunk("a");
        for _ in 0..50_000 {
            journal.keep(&chunk);
            assert!(journal.unread.len() <= MAX_UNREAD_BYTES);
        }
        assert_eq!(content(&journal.whole().expect("whole")).len(), 50_000);
    }

    #[test]
    fn bare_text_is_appended_to_the_last_events_text() {
        let mut journal = Journal::new(&CREATE_CHAT_COMPLETION, usize::MAX);
        journal.keep(&chunk("a"));
        journal.keep_text(r#""\n""#, None);
        journal.keep(r#""no chunk""#);
        journal.keep_text(r#""b""#, None);
        assert_eq!(content(&journal.whole().expect("whole")), "a\nb");
    }

    #[test]
    fn document_over_the_limit_is_dropped_with_an_error() {
        let mut journal = Journal::new(&CREATE_CHAT_COMPLETION, 2 * MAX_UNREAD_BYTES);
        let long = chunk(&"x".repeat(MAX_UNREAD_BYTES));
        journal.keep(&long);
        assert!(journal.partial().is_some());
        journal.keep(&long);
        journal.keep(&long);
        assert_eq!((journal.partial(), journal.unread.capacity()), (None, 0));
        let error = journal.whole().expect_err("too long");
        assert_eq!(error.kind(), ErrorKind::Decode);
        assert!(error.message().contains("larger than"), "{error}");
    }

    #[test]
    fn only_accumulated_text_counts_toward_the_limit() {
        let mut journal = Journal::new(&CREATE_CHAT_COMPLETION, MAX_UNREAD_BYTES);
        let chunk = format!(r#"{{"padding":"{}","choices":[]}}"#, "x".repeat(MAX_UNREAD_BYTES / 2));
        for _ in 0..20 {
            journal.keep(&chunk);
        }
        assert!(journal.whole().is_ok());
    }

    #[test]
    fn unparsable_event_fails_the_whole_but_not_the_partial_document() {
        let mut journal = Journal::new(&CREATE_CHAT_COMPLETION, usize::MAX);
        journal.keep(&chunk("a"));
        journal.keep(&format!("{}{}", "[".repeat(1000), "]".repeat(1000)));
        assert_eq!(content(&journal.partial().expect("a document")), "a");
        assert_eq!(journal.whole().expect_err("incomplete").kind(), ErrorKind::Decode);
    }
}
