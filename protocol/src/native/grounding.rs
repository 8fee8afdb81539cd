//! Citations in the native protocol: sources in one list and the cited text ranges in another. Ranges are byte offsets in
//! a part; in the neutral form they are characters of the whole text.

use std::ops::Range;

use serde_json::{Map, Value, json};

use crate::citations::{has_only, text};
use crate::conversation::Citation;
use crate::json::list;
use crate::members::{Members, RemainingFields, object};

/// Maximum size of stream text kept to resolve offsets, in bytes.
const MAX_KEPT: usize = 1024 * 1024;
/// Maximum size of the cited text repeated next to its range, in bytes.
const MAX_REPEATED: usize = 256 * 1024;
/// Distance in bytes between two positions whose character counts are recorded.
const STRIDE: usize = 1024;
/// Kinds of sources.
const SOURCES: [&str; 2] = ["web", "retrievedContext"];
/// Field of a candidate.
pub(super) const GROUNDING: &str = "groundingMetadata";

/// The text of a candidate so far.
#[derive(Debug, Default)]
pub(super) struct CandidateText {
    text: String,
    /// Where each part begins, in bytes; empty for a stream, whose pieces are one text.
    begins: Vec<usize>,
    is_cut: bool,
    /// Number of characters that begin before each recorded position.
    marks: Vec<usize>,
    length: usize,
}

impl CandidateText {
    /// Adds another part of an answer; `None`: it isn't text.
    pub(super) fn part(&mut self, text: Option<&str>) {
        self.begins.push(self.text.len());
        self.push(text.unwrap_or_default());
    }

    /// Adds another piece of a stream.
    pub(super) fn piece(&mut self, text: &str) {
        self.is_cut |= self.text.len().saturating_add(text.len()) > MAX_KEPT;
        if !self.is_cut {
            self.push(text);
        }
    }

    fn push(&mut self, text: &str) {
        for (at, byte) in (self.text.len()..).zip(text.bytes()) {
            if at % STRIDE == 0 {
                self.marks.push(self.length);
            }
            self.length += usize::from(begins_character(byte));
        }
        self.text.push_str(text);
    }

    /// The characters between two byte offsets of a part. `None`: there are no such positions.
    fn characters(&self, place: &Value) -> Option<Range<usize>> {
        let number = |name: &str| place[name].as_u64().and_then(|number| usize::try_from(number).ok());
        let begin = self.begins.get(number("partIndex").unwrap_or_default()).copied().unwrap_or_default();
        let character = |byte: usize| self.character(begin.checked_add(byte)?);
        let range = character(number("startIndex").unwrap_or_default())?..character(number("endIndex")?)?;
        (range.start <= range.end).then_some(range)
    }

    /// The character that begins at a byte. `None`: none does.
    fn character(&self, byte: usize) -> Option<usize> {
        if !self.text.is_char_boundary(byte) {
            return None;
        }
        let mark = byte / STRIDE;
        let Some(before) = self.marks.get(mark) else { return Some(self.length) };
        let since = &self.text.as_bytes()[mark * STRIDE..byte];
        Some(before + since.iter().filter(|byte| begins_character(**byte)).count())
    }

    /// The byte offset of a character.
    fn byte(&self, character: usize) -> usize {
        let mark = self.marks.partition_point(|before| *before <= character).saturating_sub(1);
        let before = self.marks.get(mark).copied().unwrap_or_default();
        let since = self.text.as_bytes().get(mark * STRIDE..).unwrap_or_default();
        let mut begins = (mark * STRIDE..).zip(since).filter(|(_, byte)| begins_character(**byte));
        begins.nth(character.saturating_sub(before)).map_or(self.text.len(), |(byte, _)| byte)
    }
}

/// Whether a byte is the first of a UTF-8 character.
fn begins_character(byte: u8) -> bool {
    byte & 0b1100_0000 != 0b1000_0000
}

/// Takes the citations of a candidate. What isn't fully understood is left in place. `left`: how many more the answer may
/// have.
pub(super) fn read(
    candidate: &mut Members,
    candidate_text: &CandidateText,
    left: &mut usize,
    rest: &mut RemainingFields,
) -> Vec<Citation> {
    let mut all = Vec::new();
    if let Some(metadata) = candidate.members(GROUNDING) {
        let (chunks, supports) = (metadata.peek("groundingChunks"), metadata.peek("groundingSupports"));
        let read = grounded(chunks, supports, candidate_text, *left);
        *left -= read.as_ref().map_or(0, Vec::len);
        let is_whole =
            read.is_some() && list(chunks).all(is_whole_source) && list(supports).all(is_whole_support);
        let own: &[&str] = if is_whole { &["groundingChunks", "groundingSupports"] } else { &[] };
        rest.keep(metadata, own);
        all.extend(read.into_iter().flatten());
    }
    if let Some(metadata) = candidate.members("citationMetadata") {
        let names = ["citationSources", "citations"];
        let sources: Vec<&Value> = names.iter().flat_map(|name| list(metadata.peek(name))).collect();
        let recited = || sources.iter().map(|source| recited(source, candidate_text)).collect();
        let read: Option<Vec<Citation>> = (sources.len() <= *left).then(recited).flatten();
        *left -= read.as_ref().map_or(0, Vec::len);
        let known = ["uri", "title", "startIndex", "endIndex"];
        let is_whole = read.is_some() && sources.iter().all(|source| has_only(source, &known));
        let own: &[&str] = if is_whole { &names } else { &[] };
        rest.keep(metadata, own);
        all.extend(read.into_iter().flatten());
    }
    all
}

/// Sources and the text ranges they support. A source without ranges covers the whole text. `None`: they aren't
/// understood, or exceed `most`.
fn grounded(
    chunks: &Value,
    supports: &Value,
    candidate_text: &CandidateText,
    most: usize,
) -> Option<Vec<Citation>> {
    if list(chunks).len() > most || list(supports).len() > most {
        return None;
    }
    let sources = list(chunks).map(source).collect::<Option<Vec<Citation>>>()?;
    let (mut all, mut is_used) = (Vec::new(), vec![false; sources.len()]);
    for support in list(supports) {
        let span = candidate_text.characters(&support["segment"]);
        for index in list(&support["groundingChunkIndices"]) {
            let index = usize::try_from(index.as_u64()?).ok()?;
            *is_used.get_mut(index)? = true;
            if all.len() == most {
                return None;
            }
            all.push(Citation { span: span.clone(), ..sources[index].clone() });
        }
    }
    let unused = sources.into_iter().zip(is_used).filter(|(_, is_used)| !is_used);
    all.extend(unused.map(|(source, _)| source));
    (all.len() <= most).then_some(all)
}

/// Whether a source has only the fields that are read.
fn is_whole_source(chunk: &Value) -> bool {
    has_only(chunk, &SOURCES)
        && SOURCES.iter().all(|name| has_only(&chunk[name], &["uri", "title", "text"]))
        && SOURCES.iter().any(|name| chunk[name].is_null())
}

/// The same for a supported range; confidence scores aren't carried over.
fn is_whole_support(support: &Value) -> bool {
    has_only(support, &["segment", "groundingChunkIndices", "confidenceScores"])
        && has_only(&support["segment"], &["partIndex", "startIndex", "endIndex", "text"])
}

fn source(chunk: &Value) -> Option<Citation> {
    let source = SOURCES.map(|name| &chunk[name]).into_iter().find(|it| it.is_object())?;
    let text = |name: &str| text(source, name).ok();
    Some(Citation { url: text("uri")?, title: text("title")?, quote: text("text")?, span: None })
}

/// Text quoted verbatim from a source.
fn recited(source: &Value, candidate_text: &CandidateText) -> Option<Citation> {
    let text = |name: &str| text(source, name).ok();
    Some(Citation {
        url: text("uri")?,
        title: text("title")?,
        quote: None,
        span: candidate_text.characters(source),
    })
}

/// Writes citations of a text.
pub(super) fn write(citations: &[Citation], candidate_text: &CandidateText) -> Map<String, Value> {
    let (mut chunks, mut supports, mut room) = (Vec::new(), Vec::new(), MAX_REPEATED);
    for citation in citations {
        let Citation { url, title, quote, span } = citation;
        let mut source = Map::new();
        for (name, text) in [("uri", url), ("title", title), ("text", quote)] {
            source.extend(text.as_ref().map(|text| (name.to_owned(), json!(text))));
        }
        // Only a retrieved source has a text, and only a web source doesn't need one.
        let kind = if quote.is_none() && url.is_some() { "web" } else { "retrievedContext" };
        if let Some(span) = span.as_ref().filter(|_| !candidate_text.is_cut) {
            let (start, end) = (candidate_text.byte(span.start), candidate_text.byte(span.end));
            let mut segment = object([("startIndex", start.into()), ("endIndex", end.into())]);
            let words = candidate_text.text.get(start..end).unwrap_or_default();
            // Many may cover the same long text.
            if words.len() <= room {
                room -= words.len();
                segment.insert("text".to_owned(), words.into());
            }
            supports.push(json!({ "segment": segment, "groundingChunkIndices": [chunks.len()] }));
        }
        chunks.push(json!({ kind: source }));
    }
    let mut metadata = object([("groundingChunks", chunks.into())]);
    if !supports.is_empty() {
        metadata.insert("groundingSupports".to_owned(), supports.into());
    }
    metadata
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::citations::MAX_CITATIONS;

    #[test]
    fn byte_offsets_in_parts_convert_to_character_offsets_in_the_text() {
        let mut candidate_text = CandidateText::default();
        for part in [Some("aü"), None, Some("b©d")] {
            candidate_text.part(part);
        }
        let place = |part: u64, start: u64, end: u64| {
            candidate_text.characters(&json!({ "partIndex": part, "startIndex": start, "endIndex": end }))
        };
        assert_eq!(place(0, 0, 3), Some(0..2));
        assert_eq!(place(2, 1, 3), Some(3..4));
        assert_eq!(place(2, 2, 3), None, "in the middle of a character");
        assert_eq!(place(0, 3, 1), None);
        assert_eq!(place(0, 0, 99), None);
        assert_eq!((candidate_text.byte(1), candidate_text.byte(2), candidate_text.byte(99)), (1, 3, 7));
    }

    #[test]
    fn offsets_in_long_text_match_linear_counting() {
        let mut candidate_text = CandidateText::default();
        let text = "aü©🎈".repeat(STRIDE);
        let (first, second) = text.split_at(text.floor_char_boundary(STRIDE * 3 / 2));
        candidate_text.piece(first);
        candidate_text.piece(second);
        let begins: Vec<usize> = text.char_indices().map(|(byte, _)| byte).chain([text.len()]).collect();
        for (character, byte) in begins.iter().copied().enumerate() {
            assert_eq!(
                (candidate_text.character(byte), candidate_text.byte(character)),
                (Some(character), byte)
            );
        }
        assert_eq!(candidate_text.character(text.len() + 1), None);
        assert_eq!((CandidateText::default().character(0), CandidateText::default().byte(7)), (Some(0), 0));
        let mut even = CandidateText::default();
        even.piece(&"a".repeat(STRIDE));
        assert_eq!((even.character(STRIDE), even.byte(STRIDE)), (Some(STRIDE), STRIDE));
    }

    #[test]
    fn repeated_cited_text_is_bounded() {
        let mut candidate_text = CandidateText::default();
        candidate_text.part(Some(&"a".repeat(MAX_REPEATED)));
        let citations = vec![Citation { span: Some(0..MAX_REPEATED), ..Citation::default() }; MAX_CITATIONS];
        let metadata = write(&citations, &candidate_text);
        assert_eq!(list(&metadata["groundingSupports"]).len(), MAX_CITATIONS);
        assert!(Value::from(metadata).to_string().len() < MAX_REPEATED + MAX_CITATIONS * 200);
    }

    #[test]
    fn supports_without_sources_are_bounded() {
        let chunks = json!([{ "web": { "uri": "https://a.example" } }]);
        let supports = |count: usize| json!(vec![json!({ "segment": { "endIndex": 1 } }); count]);
        let candidate_text = CandidateText::default();
        assert_eq!(
            grounded(&chunks, &supports(MAX_CITATIONS), &candidate_text, MAX_CITATIONS).map(|all| all.len()),
            Some(1)
        );
        assert!(grounded(&chunks, &supports(MAX_CITATIONS + 1), &candidate_text, MAX_CITATIONS).is_none());
    }

    #[test]
    fn candidates_share_the_citation_limit() {
        let (mut left, mut count, mut unconverted) = (MAX_CITATIONS, 0, 0);
        for _ in 0..128 {
            let metadata = json!({ "groundingChunks": [{ "web": { "uri": "a" } }],
                "groundingSupports": [{ "segment": {}, "groundingChunkIndices": vec![0; 200] }] });
            let sources = json!({ "citationSources": vec![json!({ "uri": "b" }); 40] });
            let candidate = json!({ GROUNDING: metadata, "citationMetadata": sources });
            let mut candidate = Members::read(candidate, "").expect("an object");
            let mut rest = RemainingFields::default();
            count += read(&mut candidate, &CandidateText::default(), &mut left, &mut rest).len();
            unconverted += rest.into_extra().len();
        }
        assert_eq!((count, left), (480, 20));
        assert_eq!(unconverted, 126 * 2 + 126, "citations over the limit stay");
    }

    #[test]
    fn source_cited_over_the_limit_is_left_unconverted() {
        let chunks = json!([{ "web": { "uri": "https://a.example" } }]);
        let supports = |count: usize| json!([{ "segment": {}, "groundingChunkIndices": vec![0; count] }]);
        let candidate_text = CandidateText::default();
        assert_eq!(
            grounded(&chunks, &supports(MAX_CITATIONS), &candidate_text, MAX_CITATIONS).map(|all| all.len()),
            Some(MAX_CITATIONS)
        );
        assert!(grounded(&chunks, &supports(MAX_CITATIONS + 1), &candidate_text, MAX_CITATIONS).is_none());
        let long = json!([{ "web": { "uri": "x".repeat(10_000) } }]);
        assert!(grounded(&long, &supports(1), &candidate_text, MAX_CITATIONS).is_none());
    }
}
