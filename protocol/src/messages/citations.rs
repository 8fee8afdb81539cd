//! Citations in the messages protocol: a text block lists those that cover its entire text. Citations that other
//! protocols attach to a part of a text split it into several blocks.

use std::ops::Range;

use serde_json::Value;

use crate::citations::{MAX_CITATIONS, has_only, text};
use crate::conversation::Citation;
use crate::members::object;

/// Field of a text block.
pub(super) const CITATIONS: &str = "citations";
/// A web source, a result given by the client, and locations in a client's document.
const OF_WEB: &str = "web_search_result_location";
const OF_RESULT: &str = "search_result_location";
const OF_DOCUMENT: [&str; 3] = ["char_location", "page_location", "content_block_location"];

/// Fields of a citation: those that are read, and locations within the source and the provider's own index of it, which
/// mean nothing to another protocol.
const KNOWN: [&str; 16] = [
    "type",
    "url",
    "source",
    "title",
    "document_title",
    "cited_text",
    "encrypted_index",
    "file_id",
    "document_index",
    "search_result_index",
    "start_char_index",
    "end_char_index",
    "start_page_number",
    "end_page_number",
    "start_block_index",
    "end_block_index",
];

/// Whether a citation has only known fields.
pub(super) fn is_whole(citation: &Value) -> bool {
    has_only(citation, &KNOWN)
}

/// Reads a citation of a text with this span; `None`: it is of another kind.
pub(super) fn read(citation: &Value, span: Range<usize>) -> Option<Citation> {
    let (url, title) = match citation["type"].as_str()? {
        OF_WEB => ("url", "title"),
        OF_RESULT => ("source", "title"),
        kind if OF_DOCUMENT.contains(&kind) => ("", "document_title"),
        _ => return None,
    };
    let text = |name: &str| text(citation, name).ok();
    Some(Citation { url: text(url)?, title: text(title)?, quote: text("cited_text")?, span: Some(span) })
}

/// Writes a citation.
pub(super) fn write(citation: &Citation) -> Value {
    let Citation { url, title, quote, .. } = citation;
    let quote = quote.as_deref().unwrap_or_default();
    let members = match url {
        Some(url) => object([
            ("type", OF_WEB.into()),
            ("cited_text", quote.into()),
            ("url", url.as_str().into()),
            ("title", title.as_deref().into()),
            // Only the provider can create one, and only the provider reads it.
            ("encrypted_index", "".into()),
        ]),
        // The location in the document is unknown.
        None => object([
            ("type", OF_DOCUMENT[0].into()),
            ("cited_text", quote.into()),
            ("document_index", 0.into()),
            ("document_title", title.as_deref().into()),
            ("start_char_index", 0.into()),
            ("end_char_index", quote.chars().count().into()),
        ]),
    };
    members.into()
}

/// The citations of an answer whose texts are written one after the other.
pub(super) struct MessagesCitations<'a> {
    /// Citations for text that is still to come.
    pending: Vec<&'a Citation>,
    /// Where the earliest cited span begins, in characters.
    first: usize,
    /// Where the next text begins.
    begin: usize,
    /// How many more may be written: a citation that covers many blocks is repeated in each, within this limit.
    left: usize,
}

impl<'a> MessagesCitations<'a> {
    pub(super) fn new(citations: &'a [Citation]) -> Self {
        let mut cited = Self { pending: citations.iter().collect(), first: 0, begin: 0, left: MAX_CITATIONS };
        cited.forget_until(0);
        cited
    }

    /// Splits the next text into blocks at the boundaries of the cited spans.
    pub(super) fn blocks(&mut self, text: &str) -> Vec<Value> {
        let begin = self.begin;
        let end = begin + text.chars().count();
        self.begin = end;
        if self.left == 0 || end <= self.first {
            return vec![block(text, Vec::new())];
        }
        let spans = self.pending.iter().filter_map(|citation| citation.span.as_ref());
        let mut cuts: Vec<usize> = spans.flat_map(|span| [span.start, span.end]).collect();
        cuts.retain(|cut| begin < *cut && *cut < end);
        cuts.push(end);
        cuts.sort_unstable();
        cuts.dedup();
        let (mut blocks, mut rest, mut at) = (Vec::with_capacity(cuts.len()), text, begin);
        for cut in cuts {
            let bytes = rest.char_indices().nth(cut - at).map_or(rest.len(), |(byte, _)| byte);
            let (piece, after) = rest.split_at(bytes);
            let of_piece = self.pending.iter().filter(|citation| is_of(citation, &(at..cut)));
            let of_piece: Vec<Value> = of_piece.take(self.left).map(|citation| write(citation)).collect();
            self.left -= of_piece.len();
            blocks.push(block(piece, of_piece));
            (rest, at) = (after, cut);
        }
        self.forget_until(end);
        blocks
    }

    /// Drops citations that cover no text beyond `end`.
    fn forget_until(&mut self, end: usize) {
        let is_pending = |span: &Range<usize>| end == 0 || span.end > end;
        self.pending.retain(|citation| citation.span.as_ref().is_none_or(is_pending));
        let firsts = self.pending.iter().map(|citation| match &citation.span {
            Some(span) if span.is_empty() => span.end.saturating_sub(1),
            Some(span) => span.start,
            None => 0,
        });
        self.first = firsts.min().unwrap_or(usize::MAX);
    }
}

/// Whether a citation covers a piece of the text. One with an empty span belongs to the text before it.
fn is_of(citation: &Citation, piece: &Range<usize>) -> bool {
    match &citation.span {
        Some(span) if span.end == 0 => piece.start == 0,
        Some(span) if span.is_empty() => piece.start < span.end && span.end <= piece.end,
        Some(span) => span.start < piece.end && piece.start < span.end,
        // It covers the entire text.
        None => true,
    }
}

fn block(text: &str, citations: Vec<Value>) -> Value {
    let mut block = object([("type", "text".into()), ("text", text.into())]);
    if !citations.is_empty() {
        block.insert(CITATIONS.to_owned(), citations.into());
    }
    block.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(span: Option<Range<usize>>) -> Citation {
        Citation { url: Some("u".to_owned()), span, ..Citation::default() }
    }

    fn cut(citations: &[Citation]) -> Vec<(String, usize)> {
        let mut cited = MessagesCitations::new(citations);
        cited.begin = 10;
        let blocks = cited.blocks("añb©d").into_iter();
        let count = |block: &Value| block[CITATIONS].as_array().map_or(0, Vec::len);
        blocks.map(|block| (block["text"].as_str().unwrap_or_default().to_owned(), count(&block))).collect()
    }

    #[test]
    fn text_is_split_at_citation_boundaries() {
        let expected = |pieces: &[(&str, usize)]| -> Vec<(String, usize)> {
            pieces.iter().map(|(text, count)| ((*text).to_owned(), *count)).collect()
        };
        assert_eq!(cut(&[]), expected(&[("añb©d", 0)]));
        assert_eq!(cut(&[of(None)]), expected(&[("añb©d", 1)]));
        assert_eq!(cut(&[of(Some(11..13))]), expected(&[("a", 0), ("ñb", 1), ("©d", 0)]));
        let overlapping = [of(Some(0..12)), of(Some(11..99))];
        assert_eq!(cut(&overlapping), expected(&[("a", 1), ("ñ", 2), ("b©d", 1)]));
        assert_eq!(cut(&[of(Some(1..2))]), expected(&[("añb©d", 0)]));
    }
}
