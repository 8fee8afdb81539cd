//! Makes long streams cheap. Nearly every chunk equals the previous one except for its text and, in some protocols, a
//! number or a word. Such a chunk is recognized by comparing bytes: its meaning is known, it need not be parsed, and
//! only its text has to be kept.

pub(super) mod paths;
mod places;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use memchr::memchr2;
use serde::Deserialize;

pub(super) use self::places::VaryingField;
use self::places::{VaryingRange, places};
use super::shape::{self, RepairLevel};
use crate::api::generated::shapes::chunk_shape;
use crate::api::operation::{Operation, Protocol};
use crate::api::shape::Shape;
use crate::wire::repair;
use crate::wire::sse::StreamEvent;

/// Number of consecutive mismatches after which no more patterns are learned.
const MAX_MISSES: u32 = 16;
/// Maximum digits of a number that may differ: all such numbers are integers in every language.
const MAX_DIGITS: usize = 15;

/// Recognizes chunks that equal the last one except for the parts that may differ.
#[derive(Debug)]
pub(super) struct Patterns {
    protocol: Protocol,
    /// The shape of a chunk.
    shape: &'static Shape,
    /// The last chunk, if the next one may match it.
    last: Option<Arc<ChunkPattern>>,
    misses: u32,
}

/// A chunk without the parts that may differ.
#[derive(Debug)]
pub(super) struct ChunkPattern {
    /// The name of the event.
    name: Option<String>,
    /// As it arrived.
    came: ChunkParts,
    /// As delivered, if that differs.
    handed: Option<ChunkParts>,
    /// Whether the text is that of the first choice.
    is_first: bool,
}

/// The constant parts of a chunk.
#[derive(Debug)]
struct ChunkParts {
    /// Each is followed by a part that may differ.
    before: Vec<(String, VaryingField)>,
    end: String,
}

/// How a chunk differs from the pattern that it matches.
#[derive(Debug)]
pub(super) struct TemplateMatch {
    pattern: Arc<ChunkPattern>,
    /// The text within its quotes.
    text: Range<usize>,
    /// Whether the text has no escapes.
    is_plain: bool,
}

impl Patterns {
    pub(super) fn new(operation: &Operation) -> Self {
        Self { protocol: operation.protocol, shape: chunk_shape(operation), last: None, misses: 0 }
    }

    /// How the chunk differs from the last one, if it differs only where it may.
    pub(super) fn like(&mut self, event: &StreamEvent) -> Option<TemplateMatch> {
        let pattern = self.last.as_ref().filter(|pattern| pattern.name == event.event)?;
        let text = pattern.came.text_of(&event.data)?;
        let is_plain = is_plain(&event.data[text.clone()]);
        if !is_plain {
            // A malformed string is left for others to report or repair.
            parsed(&event.data, &text)?;
        }
        self.misses = 0;
        Some(TemplateMatch { pattern: Arc::clone(pattern), text, is_plain })
    }

    /// Learns from a chunk that did not match the last one.
    pub(super) fn learn(&mut self, event: &StreamEvent) {
        self.last = None;
        if self.misses < MAX_MISSES {
            self.misses += 1;
            self.last = ChunkPattern::of(self.protocol, self.shape, event).map(Arc::new);
        }
    }

    /// Records an event that the next one can't be compared with.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }
}

impl ChunkPattern {
    fn of(protocol: Protocol, shape: &'static Shape, event: &StreamEvent) -> Option<Self> {
        let data = &event.data;
        if matches!(repair::surrogates(data), Cow::Owned(_)) {
            return None;
        }
        let (is_first, found) = places(protocol, data)?;
        let came = ChunkParts::of(data, &found);
        let handed = if shape::check(shape, data).is_ok() {
            None
        } else {
            let mended = shape::mend_text(shape, data, RepairLevel::Structure).ok()?;
            let (_, found) = places(protocol, &mended)?;
            Some(ChunkParts::of(&mended, &found)).filter(|handed| handed.varies_as(&came)).map(Some)?
        };
        Some(Self { name: event.event.clone(), came, handed, is_first })
    }
}

impl ChunkParts {
    fn of(data: &str, places: &[VaryingRange]) -> Self {
        let mut copied = 0;
        let mut before = Vec::with_capacity(places.len());
        for VaryingRange { range, vary } in places {
            before.push((data[copied..range.start].to_owned(), *vary));
            copied = range.end;
        }
        Self { before, end: data[copied..].to_owned() }
    }

    fn varies_as(&self, other: &Self) -> bool {
        self.before.iter().map(|(_, vary)| vary).eq(other.before.iter().map(|(_, vary)| vary))
    }

    /// The text of a chunk that differs only where it may.
    fn text_of(&self, data: &str) -> Option<Range<usize>> {
        let mut text = None;
        let rest = self.split(data, |range, vary| {
            if vary == VaryingField::Text {
                text = Some(range);
            }
        })?;
        text.filter(|_| rest == self.end)
    }

    /// Reports each part that may differ, and returns what follows the last of them.
    fn split<'a>(&self, data: &'a str, mut visit: impl FnMut(Range<usize>, VaryingField)) -> Option<&'a str> {
        let mut at = 0;
        for (before, vary) in &self.before {
            let rest = data[at..].strip_prefix(before.as_str())?;
            at += before.len();
            let length = vary.length(rest)?;
            visit(at..at + length, *vary);
            at += length;
        }
        Some(&data[at..])
    }
}

impl VaryingField {
    /// Whether it is the inside of a string.
    fn is_string(self) -> bool {
        self != Self::Number
    }

    /// The length of such a part at the beginning of a text; none if there is none.
    fn length(self, text: &str) -> Option<usize> {
        let bytes = text.as_bytes();
        match self {
            Self::Text => {
                let mut at = 0;
                loop {
                    at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
                    if bytes[at] == b'"' {
                        return Some(at);
                    }
                    at += 2;
                }
            }
            Self::Word => {
                let length = memchr2(b'"', b'\\', bytes)?;
                (length > 0 && is_plain(&text[..length])).then_some(length)
            }
            Self::Number => {
                let length = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let is_number = length == 1 || (length <= MAX_DIGITS && bytes.first() != Some(&b'0'));
                (length > 0 && is_number).then_some(length)
            }
        }
    }
}

impl TemplateMatch {
    /// Whether both chunks differ from the same one.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.pattern, &other.pattern)
    }

    /// The text before, between and after the variable values of the delivered chunk: strings include their quotes.
    pub(super) fn parts(&self) -> Vec<&str> {
        let ChunkParts { before, end } = self.pattern.handed.as_ref().unwrap_or(&self.pattern.came);
        let mut is_string = false;
        let mut parts = Vec::with_capacity(before.len() + 1);
        for (part, vary) in before {
            let part = part.get(usize::from(is_string)..).unwrap_or_default();
            is_string = vary.is_string();
            parts.push(part.get(..part.len() - usize::from(is_string)).unwrap_or_default());
        }
        parts.push(end.get(usize::from(is_string)..).unwrap_or_default());
        parts
    }

    /// Reports the values that may differ, as JSON. None if the chunk does not match the last one.
    pub(super) fn each_value<'a>(&self, data: &'a str, mut visit: impl FnMut(&'a str)) -> Option<()> {
        let rest = self.pattern.came.split(data, |range, vary| {
            let quote = usize::from(vary.is_string());
            visit(data.get(range.start - quote..range.end + quote).unwrap_or_default());
        })?;
        (rest == self.pattern.came.end).then_some(())
    }

    /// Reports each part that may differ: a number, or the inside of a string.
    pub(super) fn each_part(&self, data: &str, visit: impl FnMut(Range<usize>, VaryingField)) {
        self.pattern.came.split(data, visit);
    }

    /// The text as JSON.
    pub(super) fn quoted<'a>(&self, data: &'a str) -> &'a str {
        &data[self.text.start - 1..=self.text.end]
    }

    /// The new text of the first choice, if it is not empty.
    pub(super) fn first_text(&self, data: &str) -> Option<String> {
        if !self.pattern.is_first || self.text.is_empty() {
            return None;
        }
        if self.is_plain {
            return Some(data[self.text.clone()].to_owned());
        }
        parsed(data, &self.text).map(Cow::into_owned)
    }

    /// The chunk before and after its text, if more than the text may differ.
    pub(super) fn others<'a>(&self, data: &'a str) -> Option<(&'a str, &'a str)> {
        let has_others = self.pattern.came.before.len() > 1;
        has_others.then(|| (&data[..self.text.start], &data[self.text.end..]))
    }

    /// The chunk as it should be delivered, if that differs from what arrived.
    pub(super) fn mended(&self, data: &str) -> Option<String> {
        let handed = self.pattern.handed.as_ref()?;
        let mut mended = String::with_capacity(data.len());
        let mut constant = handed.before.iter();
        self.pattern.came.split(data, |range, _| {
            mended.extend(constant.next().map(|(before, _)| before.as_str()));
            mended.push_str(&data[range]);
        })?;
        mended.push_str(&handed.end);
        Some(mended)
    }
}

/// Whether the inside of a JSON string contains no escapes.
fn is_plain(text: &str) -> bool {
    // Counts to the end, so that the compiler can compare many bytes at once.
    text.bytes().filter(|byte| *byte < b' ' || *byte == b'\\').count() == 0
}

fn parsed<'a>(data: &'a str, text: &Range<usize>) -> Option<Cow<'a, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

    let Text(text) = serde_json::from_str(&data[text.start - 1..=text.end]).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests;
