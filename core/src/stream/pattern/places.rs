//! Finds what may differ between two chunks of a stream, in each protocol. A chunk with anything else that must be
//! merged with the next one has no such places.

use std::ops::Range;

use memchr::memmem;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::api::operation::Protocol;

/// What may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::stream) enum VaryingField {
    /// The text itself: the inside of a JSON string. Each chunk has one.
    Text,
    /// The inside of a string that is not empty and has no escapes.
    Word,
    /// A natural number.
    Number,
}

/// A part that may differ, and its position in the chunk.
#[derive(Debug)]
pub(super) struct VaryingRange {
    pub(super) range: Range<usize>,
    pub(super) vary: VaryingField,
}

/// Whether the text is that of the first choice, and all places in their order.
pub(super) fn places(protocol: Protocol, data: &str) -> Option<(bool, Vec<VaryingRange>)> {
    let (is_first, text, word) = match protocol {
        Protocol::Chat => {
            let Chat { choices: [choice], obfuscation } = serde_json::from_str(data).ok()?;
            (choice.index.unwrap_or(0) == 0, choice.delta.content, obfuscation)
        }
        Protocol::Responses => {
            let TextDelta { delta, obfuscation, .. } =
                serde_json::from_str(data).ok().filter(|event: &TextDelta<'_>| event.is_text())?;
            (true, delta, obfuscation)
        }
        Protocol::Messages => {
            let piece: MessagesShape<'_> = serde_json::from_str(data).ok()?;
            (true, piece.text()?, None)
        }
        Protocol::Native => {
            let ContentShape { candidates: [candidate] } = serde_json::from_str(data).ok()?;
            let [part] = candidate.content.parts;
            (candidate.index.unwrap_or(0) == 0, part.text, None)
        }
        Protocol::Plain | Protocol::Batch | Protocol::Media | Protocol::Models => return None,
    };
    let mut places = vec![VaryingRange { range: range(data, text)?, vary: VaryingField::Text }];
    if let Some(word) = word.filter(|word| !word.is_empty()) {
        places.push(VaryingRange { range: range(data, word)?, vary: VaryingField::Word });
    }
    match protocol {
        Protocol::Responses => places.extend(numbers(data, "\"sequence_number\":")),
        Protocol::Native => places.extend(numbers(data, "\"usageMetadata\":")),
        Protocol::Chat
        | Protocol::Messages
        | Protocol::Plain
        | Protocol::Batch
        | Protocol::Media
        | Protocol::Models => {}
    }
    places.sort_by_key(|place| place.range.start);
    Some((is_first, places))
}

/// The position of a part within the data.
fn range(data: &str, part: &str) -> Option<Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(data.as_ptr() as usize)?;
    let range = start..start + part.len();
    (data.get(range.clone())? == part).then_some(range)
}

/// The natural numbers of a member: itself, or the members of its objects at any depth. None if more than one member
/// has this name.
fn numbers(data: &str, name: &str) -> Vec<VaryingRange> {
    let mut found = memmem::find_iter(data.as_bytes(), name);
    let (Some(start), None) = (found.next(), found.next()) else { return Vec::new() };
    let bytes = data.as_bytes();
    let (mut places, mut depth, mut in_string) = (Vec::new(), 0_usize, false);
    let mut at = start + name.len();
    let mut after_colon = true;
    while let Some(&byte) = bytes.get(at) {
        let length = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        match byte {
            b'\\' if in_string => at += 1,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'0'..=b'9' => {
                if after_colon && matches!(bytes.get(at + length), Some(b',' | b'}' | b']' | b' ')) {
                    places.push(VaryingRange { range: at..at + length, vary: VaryingField::Number });
                }
                at += length - 1;
            }
            _ => {}
        }
        at += 1;
        if depth == 0 && !in_string && !matches!(byte, b' ') {
            break;
        }
        after_colon = byte == b':' || (after_colon && byte == b' ');
    }
    places
}

/// A chat chunk that has one choice with a text, and nothing else that must be merged with the next chunk. Texts are
/// borrowed, and therefore contain no escapes.
#[derive(Deserialize)]
struct Chat<'a> {
    #[serde(borrow)]
    choices: [ChoiceShape<'a>; 1],
    /// Padding that makes all chunks equally long.
    #[serde(borrow, default)]
    obfuscation: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChoiceShape<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    delta: DeltaShape<'a>,
    #[serde(default, rename = "finish_reason")]
    _finish_reason: (),
    #[serde(default, rename = "logprobs")]
    _logprobs: (),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeltaShape<'a> {
    content: &'a str,
    #[serde(default, rename = "role")]
    _role: IgnoredAny,
    #[serde(default, rename = "refusal")]
    _refusal: (),
    #[serde(default, rename = "reasoning_content")]
    _reasoning_content: (),
    #[serde(default, rename = "reasoning")]
    _reasoning: (),
    #[serde(default, rename = "tool_calls")]
    _tool_calls: (),
    #[serde(default, rename = "function_call")]
    _function_call: (),
}

/// An event of the responses protocol that adds to a text. The response keeps none of its other members.
#[derive(Deserialize)]
struct TextDelta<'a> {
    r#type: &'a str,
    delta: &'a str,
    #[serde(borrow, default)]
    obfuscation: Option<&'a str>,
    #[serde(default, rename = "logprobs")]
    _logprobs: Option<[(); 0]>,
    /// Its presence would make the event one of another kind.
    #[serde(default, rename = "response")]
    _response: (),
}

impl TextDelta<'_> {
    fn is_text(&self) -> bool {
        self.r#type == "response.output_text.delta"
    }
}

/// An event of the messages protocol that adds to a text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MessagesShape<'a> {
    r#type: &'a str,
    #[serde(rename = "index")]
    _index: Option<u64>,
    #[serde(borrow)]
    delta: TextPiece<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextPiece<'a> {
    r#type: &'a str,
    text: &'a str,
}

impl<'a> MessagesShape<'a> {
    fn text(&self) -> Option<&'a str> {
        let is_text = self.r#type == "content_block_delta" && self.delta.r#type == "text_delta";
        is_text.then_some(self.delta.text)
    }
}

/// A native chunk whose one part is a text.
#[derive(Deserialize)]
struct ContentShape<'a> {
    #[serde(borrow)]
    candidates: [CandidateShape<'a>; 1],
}

#[derive(Deserialize)]
struct CandidateShape<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    content: PartsShape<'a>,
}

#[derive(Deserialize)]
struct PartsShape<'a> {
    #[serde(borrow)]
    parts: [PartShape<'a>; 1],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PartShape<'a> {
    text: &'a str,
}
