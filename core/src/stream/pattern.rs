//! Makes long streams cheap. Nearly every chunk of a chat stream equals the previous one except for its text. Such a
//! chunk is recognized by comparing bytes: it need not be parsed, and only its text has to be kept.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// Number of consecutive mismatches after which no more patterns are learned.
const MAX_MISSES: u32 = 16;

/// The last chunk that was read, if the next one may differ in its text alone.
#[derive(Debug, Default)]
pub(super) struct Pattern {
    /// The chunk as it arrived: the parts before and after the text.
    came: Option<(String, String)>,
    /// The chunk as it was delivered, if that differs.
    handed: Option<(String, String)>,
    /// Whether the text is that of the first choice.
    is_first: bool,
    misses: u32,
}

/// A chunk that matches the previous one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Like<'a> {
    /// The text as JSON.
    pub(super) quoted: &'a str,
    pub(super) text: Cow<'a, str>,
    /// Whether the text is that of the first choice.
    pub(super) is_first: bool,
    /// The chunk as it is to be delivered, if that differs from what arrived.
    pub(super) mended: Option<String>,
}

impl Pattern {
    /// The chunk's text, if the chunk equals the last one except for its text.
    pub(super) fn like<'a>(&mut self, data: &'a str) -> Option<Like<'a>> {
        #[derive(Deserialize)]
        struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

        let (before, after) = self.came.as_ref()?;
        let middle = data.strip_prefix(before.as_str())?.strip_suffix(after.as_str())?;
        let quoted = &data[before.len() - 1..=before.len() + middle.len()];
        let Text(text) = serde_json::from_str(quoted).ok()?;
        let mended = self.handed.as_ref().map(|(before, after)| [before, middle, after].concat());
        self.misses = 0;
        Some(Like { quoted, text, is_first: self.is_first, mended })
    }

    /// Learns from a chunk that did not match the last one: as it arrived and as it was delivered.
    pub(super) fn learn(&mut self, came: &str, handed: &str) {
        self.came = None;
        self.handed = None;
        if self.misses >= MAX_MISSES {
            return;
        }
        self.misses += 1;
        let Some((index, around)) = split(came) else { return };
        if came != handed {
            let Some((_, around)) = split(handed) else { return };
            self.handed = Some(around);
        }
        self.is_first = index == 0;
        self.came = Some(around);
    }

    /// Notes a chunk that the next one cannot be compared with.
    pub(super) fn forget(&mut self) {
        self.came = None;
    }
}

/// A chunk that has one choice with a text, and nothing else that adds up with the next chunk.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: [Choice<'a>; 1],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    delta: Delta<'a>,
    #[serde(default, rename = "finish_reason")]
    _finish_reason: (),
    #[serde(default, rename = "logprobs")]
    _logprobs: (),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Delta<'a> {
    /// Borrowed, and therefore without escapes.
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

/// The index of the choice, and the chunk before and after its text.
fn split(data: &str) -> Option<(u64, (String, String))> {
    let Chunk { choices: [Choice { index, delta, .. }] } = serde_json::from_str(data).ok()?;
    let begin = (delta.content.as_ptr() as usize).checked_sub(data.as_ptr() as usize)?;
    let (before, rest) = data.split_at_checked(begin)?;
    Some((index.unwrap_or(0), (before.to_owned(), rest.strip_prefix(delta.content)?.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learnt(came: &str, handed: &str) -> Pattern {
        let mut pattern = Pattern::default();
        pattern.learn(came, handed);
        pattern
    }

    fn chunk(content: &str) -> String {
        format!(
            r#"{{"id":"c","choices":[{{"index":0,"delta":{{"content":{content}}},"finish_reason":null}}]}}"#
        )
    }

    #[test]
    fn a_chunk_with_another_text_is_like_the_last_one() {
        let mut pattern = learnt(&chunk(r#""a""#), &chunk(r#""a""#));
        for (quoted, text) in
            [(r#""b""#, "b"), (r#""""#, ""), (r#""\n\u00e9\"""#, "\né\""), (r#""é🙂""#, "é🙂")]
        {
            let data = chunk(quoted);
            assert_eq!(
                pattern.like(&data),
                Some(Like { quoted, text: text.into(), is_first: true, mended: None })
            );
        }
    }

    #[test]
    fn a_chunk_that_differs_elsewhere_or_is_no_json_is_not() {
        let mut pattern = learnt(&chunk(r#""a""#), &chunk(r#""a""#));
        let others = [
            chunk("null"),
            chunk(r#""a","role":"x""#),
            chunk(r#""a"b""#),
            chunk(r#""\ud800""#),
            chunk("\"a\nb\""),
            chunk(r#""a\""#),
            chunk(r#""b""#).replace("null", "\"stop\""),
            chunk(r#""b""#).replace("\"c\"", "\"d\""),
            String::new(),
        ];
        for other in others {
            assert_eq!(pattern.like(&other), None, "{other}");
        }
    }

    #[test]
    fn a_chunk_that_was_mended_is_handed_over_mended_again() {
        let mut pattern = learnt(
            r#"{"choices":[{"delta":{"content":"a","tool_calls":null}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#,
        );
        let like = pattern.like(r#"{"choices":[{"delta":{"content":"\n","tool_calls":null}}]}"#);
        assert_eq!(
            like.and_then(|like| like.mended).as_deref(),
            Some(r#"{"choices":[{"index":0,"delta":{"content":"\n"}}]}"#)
        );
    }

    #[test]
    fn chunks_that_add_more_than_a_text_are_no_pattern() {
        for more in [r#""mood":"x""#, r#""reasoning_content":"x""#, r#""tool_calls":[{}]"#] {
            let chunk = format!(r#"{{"choices":[{{"delta":{{"content":"a",{more}}}}}]}}"#);
            assert_eq!(learnt(&chunk, &chunk).like(&chunk), None, "{chunk}");
        }
        for choices in [
            r#"{"delta":{"content":"a"}},{"delta":{}}"#,
            r#"{"delta":{"content":"a"},"finish_reason":"stop"}"#,
            r#"{"delta":{"content":"a"},"logprobs":{"content":[1]}}"#,
            r#"{"delta":{"content":"\n"}}"#,
            r#"{"delta":{}}"#,
        ] {
            let chunk = format!(r#"{{"choices":[{choices}]}}"#);
            assert_eq!(learnt(&chunk, &chunk).like(&chunk), None, "{chunk}");
        }
    }

    #[test]
    fn a_stream_without_patterns_is_not_searched_for_them_for_ever() {
        let mut pattern = Pattern::default();
        for number in 0..=MAX_MISSES {
            let data = chunk(r#""a""#).replace("\"c\"", &number.to_string());
            assert_eq!(pattern.like(&data), None);
            pattern.learn(&data, &data);
        }
        assert!(pattern.came.is_none());
    }
}
