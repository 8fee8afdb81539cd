//! Typed chunks that differ from the last one only in their text, or also in a number or a word: they are copies of
//! one chunk, each with its own text, which is cheaper than parsing them.

use std::ops::Range;

use serde_json::Value;

use super::pattern::{TemplateMatch, VaryingField};
use crate::api::chunk::Chunk;

/// The chunk that others are copied from.
pub(super) struct ChunkTemplate<T> {
    /// How it differed from the chunk before it.
    like: Option<TemplateMatch>,
    /// None if values of the type also differ elsewhere, so that such chunks must be parsed.
    original: Option<Box<T>>,
}

impl<T> Default for ChunkTemplate<T> {
    fn default() -> Self {
        Self { like: None, original: None }
    }
}

impl<T: Chunk> ChunkTemplate<T> {
    /// The chunk as a copy, if it matches the original.
    pub(super) fn copy(&self, data: &str, like: &TemplateMatch) -> Option<T> {
        copy(self.original.as_deref().filter(|_| self.knows(like))?, data, like)
    }

    /// Learns from a parsed chunk, if it can be copied.
    pub(super) fn learn(&mut self, data: &str, like: TemplateMatch, parsed: &T) {
        if !self.knows(&like) {
            let is_original = copies_are_what_is_parsed(parsed, data, &like);
            self.original = is_original.then(|| Box::new(parsed.clone()));
            self.like = Some(like);
        }
    }

    fn knows(&self, like: &TemplateMatch) -> bool {
        self.like.as_ref().is_some_and(|known| known.is_like(like))
    }
}

/// A copy with the parts in which a chunk differs; none if the type has no place for them.
fn copy<T: Chunk>(original: &T, data: &str, like: &TemplateMatch) -> Option<T> {
    let mut copy = original.clone();
    let mut is_whole = true;
    like.each_part(data, |range, vary| is_whole &= set(&mut copy, vary, &data[range]).is_some());
    is_whole.then_some(copy)
}

fn set<T: Chunk>(chunk: &mut T, vary: VaryingField, part: &str) -> Option<()> {
    match vary {
        VaryingField::Text => *chunk.text_mut()? = string(part)?,
        VaryingField::Word => *chunk.word_mut()? = Value::String(part.to_owned()),
        VaryingField::Number => *chunk.number_mut()? = part.parse().ok()?,
    }
    Some(())
}

/// The string whose JSON inside (between the quotes) this is.
fn string(inside: &str) -> Option<String> {
    if inside.bytes().any(|byte| byte == b'\\') {
        return serde_json::from_str(&format!("\"{inside}\"")).ok();
    }
    Some(inside.to_owned())
}

/// Whether copying gives the same result as parsing for a chunk that differs in every place where it may. If so, this holds
/// for all chunks like it, since no text, word or number changes how the others are read.
fn copies_are_what_is_parsed<T: Chunk>(original: &T, data: &str, like: &TemplateMatch) -> bool {
    let mut other = String::with_capacity(data.len());
    let mut copied = 0;
    like.each_part(data, |Range { start, .. }, vary| {
        other.push_str(&data[copied..start]);
        other.push(if vary == VaryingField::Number { '1' } else { 'x' });
        copied = start;
    });
    other.push_str(&data[copied..]);
    let copy = copy(original, &other, like);
    copy.is_some() && copy == serde_json::from_str(&other).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::api::operation::Operation;
    use crate::api::operations::{
        CREATE_CHAT_COMPLETION, CREATE_MESSAGE, CREATE_RESPONSE, STREAM_GENERATE_CONTENT,
    };
    use crate::api::types::{
        ChatCompletionChunk, GenerateContentResponse, MessageStreamEvent, ResponseStreamEvent,
    };
    use crate::stream::pattern::Patterns;
    use crate::wire::sse::StreamEvent;

    /// Reads a row of chunks that are like the first one, each together with the parsed form. Returns how many of them were
    /// copied.
    fn read<T: Chunk + std::fmt::Debug>(
        operation: &Operation,
        row: impl IntoIterator<Item = Value>,
    ) -> usize {
        let mut patterns = Patterns::new(operation);
        let mut copies = ChunkTemplate::<T>::default();
        let mut count = 0;
        for data in row {
            let event = StreamEvent { data: data.to_string(), ..StreamEvent::default() };
            let Some(like) = patterns.like(&event) else {
                patterns.learn(&event);
                continue;
            };
            let parsed: T = serde_json::from_value(data).expect("it has this form");
            if let Some(copy) = copies.copy(&event.data, &like) {
                assert_eq!(copy, parsed, "{}", event.data);
                count += 1;
            }
            copies.learn(&event.data, like, &parsed);
        }
        count
    }

    fn chat(text: &str, padding: &str) -> Value {
        let choice = json!({"index": 0, "delta": {"content": text}, "finish_reason": null});
        json!({"id": "c", "object": "o", "choices": [choice], "new": {"a": null}, "obfuscation": padding})
    }

    fn response(text: &str, number: u64) -> Value {
        let kind = "response.output_text.delta";
        json!({"type": kind, "item_id": "i", "delta": text, "sequence_number": number, "obfuscation": "x"})
    }

    fn message(text: &str) -> Value {
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})
    }

    fn native(text: &str, usage: &Value) -> Value {
        let candidate = json!({"content": {"parts": [{"text": text}], "role": "model"}, "index": 0});
        json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m"})
    }

    proptest! {
        #[test]
        fn copied_chunk_equals_parsed_chunk(texts in prop::collection::vec(".*", 6)) {
            // A first chunk with escapes can't serve as the original.
            let texts: Vec<&str> = ["first"].into_iter().chain(texts.iter().map(String::as_str)).collect();
            let all = texts.len() - 2;
            let row = texts.iter().map(|text| chat(text, "padding"));
            prop_assert_eq!(read::<ChatCompletionChunk>(&CREATE_CHAT_COMPLETION, row), all);
            let row = texts.iter().zip(998..).map(|(text, number)| response(text, number));
            prop_assert_eq!(read::<ResponseStreamEvent>(&CREATE_RESPONSE, row), all);
            let row = texts.iter().map(|text| message(text));
            prop_assert_eq!(read::<MessageStreamEvent>(&CREATE_MESSAGE, row), all);
            let row = texts.iter().map(|text| native(text, &Value::Null));
            prop_assert_eq!(read::<GenerateContentResponse>(&STREAM_GENERATE_CONTENT, row), all);
        }
    }

    #[test]
    fn chunks_differing_outside_copyable_fields_are_parsed() {
        let row = (1..5).map(|count| native("a", &json!({"promptTokenCount": 3, "totalTokenCount": count})));
        assert_eq!(read::<GenerateContentResponse>(&STREAM_GENERATE_CONTENT, row), 0);
    }

    #[test]
    fn each_row_has_its_own_template() {
        let row = |id: &str| {
            let id = id.to_owned();
            ["a", "b", "c", "d"].into_iter().map(move |text| {
                let mut chunk = chat(text, "padding");
                chunk["id"] = id.clone().into();
                chunk
            })
        };
        assert_eq!(read::<ChatCompletionChunk>(&CREATE_CHAT_COMPLETION, row("1").chain(row("2"))), 4);
    }

    #[test]
    fn chunks_with_long_numbers_are_parsed_unchanged() {
        let row = (999_999_999_999_990..999_999_999_999_999).map(|number| response("a", number));
        assert_eq!(read::<ResponseStreamEvent>(&CREATE_RESPONSE, row), 0);
    }
}
