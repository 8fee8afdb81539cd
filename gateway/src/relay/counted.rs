//! The usage that an answer tells, in the words of each protocol.

use serde::Deserialize;

use crate::conversation::{Protocol, Usage};

#[derive(Deserialize, Default)]
#[serde(default)]
struct Chat {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
    completion_tokens_details: Option<Details>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Responses {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<Details>,
    output_tokens_details: Option<Details>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
#[expect(clippy::struct_field_names, reason = "the names of the wire")]
struct Details {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    reasoning_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
#[expect(clippy::struct_field_names, reason = "the names of the wire")]
struct Messages {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names of the wire")]
struct Native {
    prompt_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
}

/// Reads a usage object. None if it is not one.
pub(crate) fn usage(protocol: Protocol, object: &str) -> Option<Usage> {
    if !object.starts_with('{') {
        return None;
    }
    Some(match protocol {
        Protocol::Chat => {
            let Chat { prompt_tokens, completion_tokens, prompt_tokens_details, completion_tokens_details } =
                serde_json::from_str(object).ok()?;
            let read = prompt_tokens_details.unwrap_or_default();
            Usage {
                input: prompt_tokens,
                output: completion_tokens,
                cached: read.cached_tokens,
                cache_write: read.cache_write_tokens,
                reasoning: completion_tokens_details.unwrap_or_default().reasoning_tokens,
            }
        }
        Protocol::Responses => {
            let Responses { input_tokens, output_tokens, input_tokens_details, output_tokens_details } =
                serde_json::from_str(object).ok()?;
            let read = input_tokens_details.unwrap_or_default();
            Usage {
                input: input_tokens,
                output: output_tokens,
                cached: read.cached_tokens,
                cache_write: read.cache_write_tokens,
                reasoning: output_tokens_details.unwrap_or_default().reasoning_tokens,
            }
        }
        Protocol::Messages => {
            let Messages {
                input_tokens,
                output_tokens,
                cache_creation_input_tokens,
                cache_read_input_tokens,
            } = serde_json::from_str(object).ok()?;
            // The protocol counts cached tokens beside the others.
            let cached = [cache_creation_input_tokens, cache_read_input_tokens];
            let cached = cached.iter().flatten().fold(0_u64, |sum, count| sum.saturating_add(*count));
            Usage {
                input: input_tokens.map(|input| input.saturating_add(cached)),
                output: output_tokens,
                cached: cache_read_input_tokens,
                cache_write: cache_creation_input_tokens,
                reasoning: None,
            }
        }
        Protocol::Native => {
            let native: Native = serde_json::from_str(object).ok()?;
            let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
                (None, None) => None,
                (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
            };
            Usage {
                input: sum(native.prompt_token_count, native.tool_use_prompt_token_count),
                output: sum(native.candidates_token_count, native.thoughts_token_count),
                cached: native.cached_content_token_count,
                cache_write: None,
                reasoning: native.thoughts_token_count,
            }
        }
    })
}

/// What is known after a further object of the same stream: its counts, and those before that it does not tell.
pub(crate) fn merged(before: Usage, further: Usage) -> Usage {
    Usage {
        input: further.input.or(before.input),
        output: further.output.or(before.output),
        cached: further.cached.or(before.cached),
        cache_write: further.cache_write.or(before.cache_write),
        reasoning: further.reasoning.or(before.reasoning),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_protocol_tells_its_usage() {
        let expected = Usage {
            input: Some(30),
            output: Some(7),
            cached: Some(10),
            cache_write: None,
            reasoning: Some(2),
        };
        for (protocol, object) in [
            (
                Protocol::Chat,
                r#"{"prompt_tokens":30,"completion_tokens":7,"total_tokens":37,"prompt_tokens_details":
                {"cached_tokens":10},"completion_tokens_details":{"reasoning_tokens":2,"x":null}}"#,
            ),
            (
                Protocol::Responses,
                r#"{"input_tokens":30,"output_tokens":7,"input_tokens_details":{"cached_tokens":10},
                "output_tokens_details":{"reasoning_tokens":2}}"#,
            ),
            (
                Protocol::Native,
                r#"{"promptTokenCount":30,"candidatesTokenCount":5,"thoughtsTokenCount":2,
                "cachedContentTokenCount":10}"#,
            ),
        ] {
            assert_eq!(usage(protocol, object), Some(expected), "{protocol:?}");
        }
        let object = r#"{"input_tokens":15,"output_tokens":7,"cache_read_input_tokens":10,
            "cache_creation_input_tokens":5}"#;
        let messages = Usage { cache_write: Some(5), reasoning: None, ..expected };
        assert_eq!(usage(Protocol::Messages, object), Some(messages));
    }

    #[test]
    fn what_is_no_usage_is_none() {
        for object in ["null", "[1]", "7", r#"{"prompt_tokens":"many"}"#] {
            assert_eq!(usage(Protocol::Chat, object).unwrap_or_default(), Usage::default(), "{object}");
        }
    }
}
