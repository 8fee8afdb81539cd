//! Reads the usage that an answer reports, in the format of each protocol.

use gatewright_protocol::conversation::{Protocol, Usage};
use serde_json::value::RawValue;

use crate::wire::lazy_json::members;

/// Reads a usage object as its protocol's codec does: an invalid count doesn't invalidate the others. None if it isn't an object,
/// or counts nothing (chat). `before`: what the answer reported earlier, because one event may count cached tokens separately and
/// the next may omit them (messages).
pub(crate) fn usage(protocol: Protocol, object: &str, before: Usage) -> Option<Usage> {
    if !object.starts_with('{') {
        return None;
    }
    Some(match protocol {
        Protocol::Chat => {
            let ([input, output, total], [read, written]) = counts(
                object,
                ["prompt_tokens", "completion_tokens", "total_tokens"],
                ["prompt_tokens_details", "completion_tokens_details"],
            )?;
            let [cached, cache_write] = within(read, ["cached_tokens", "cache_write_tokens"]);
            let [reasoning] = within(written, ["reasoning_tokens"]);
            if input.is_none() && output.is_none() {
                return None;
            }
            Usage {
                input,
                output: with_reasoning(input, output, reasoning, total),
                cached,
                cache_write,
                reasoning,
            }
        }
        Protocol::Responses => {
            let ([input, output], [read, written]) = counts(
                object,
                ["input_tokens", "output_tokens"],
                ["input_tokens_details", "output_tokens_details"],
            )?;
            let [cached, cache_write] = within(read, ["cached_tokens", "cache_write_tokens"]);
            let [reasoning] = within(written, ["reasoning_tokens"]);
            Usage { input, output, cached, cache_write, reasoning }
        }
        Protocol::Messages => {
            let names =
                ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
            let ([input, output, cached, cache_write], [written]) =
                counts(object, names, ["output_tokens_details"])?;
            let [reasoning] = within(written, ["thinking_tokens"]);
            // The protocol counts cached tokens separately.
            let beside = |cached: Option<u64>, cache_write: Option<u64>| {
                cached.unwrap_or(0).saturating_add(cache_write.unwrap_or(0))
            };
            let known =
                before.input.map(|input| input.saturating_sub(beside(before.cached, before.cache_write)));
            let (cached, cache_write) = (cached.or(before.cached), cache_write.or(before.cache_write));
            let input = input.or(known).map(|input| input.saturating_add(beside(cached, cache_write)));
            Usage { input, output, cached, cache_write, reasoning }
        }
        Protocol::Converse => {
            let names = ["inputTokens", "outputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"];
            let ([input, output, cached, cache_write], []) = counts(object, names, [])?;
            // The protocol counts cached tokens separately.
            let elsewhere = cached.unwrap_or(0).saturating_add(cache_write.unwrap_or(0));
            let input = input.map(|input| input.saturating_add(elsewhere));
            Usage { input, output, cached, cache_write, reasoning: None }
        }
        Protocol::Native => {
            let names = [
                "promptTokenCount",
                "toolUsePromptTokenCount",
                "candidatesTokenCount",
                "thoughtsTokenCount",
                "cachedContentTokenCount",
            ];
            let ([prompt, tools, candidates, thoughts, cached], []) = counts(object, names, [])?;
            let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
                (None, None) => None,
                (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
            };
            Usage {
                input: sum(prompt, tools),
                output: sum(candidates, thoughts),
                cached,
                cache_write: None,
                reasoning: thoughts,
            }
        }
    })
}

/// Some providers don't count reasoning as part of the completion; only the total shows it (chat).
fn with_reasoning(
    input: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
    total: Option<u64>,
) -> Option<u64> {
    let (Some(read), Some(written), Some(thought), Some(total)) = (input, output, reasoning, total) else {
        return output;
    };
    let without = read.saturating_add(written);
    let is_beside = total > without && total == without.saturating_add(thought);
    Some(if is_beside { written.saturating_add(thought) } else { written })
}

/// The counts of an object, and its groups.
type CountsAndGroups<'a, const COUNTS: usize, const GROUPS: usize> =
    ([Option<u64>; COUNTS], [Option<&'a RawValue>; GROUPS]);

/// The counts and groups with these names. None if the text isn't an object.
fn counts<'a, const COUNTS: usize, const GROUPS: usize>(
    object: &'a str,
    names: [&str; COUNTS],
    groups: [&str; GROUPS],
) -> Option<CountsAndGroups<'a, COUNTS, GROUPS>> {
    let (mut counted, mut grouped) = ([None; COUNTS], [None; GROUPS]);
    members(object, |name, value| {
        if let Some(at) = names.iter().position(|known| *known == name) {
            counted[at] = value.get().parse().ok();
        } else if let Some(at) = groups.iter().position(|known| *known == name) {
            grouped[at] = Some(value);
        }
    })
    .ok()?;
    Some((counted, grouped))
}

/// The counts in a group.
fn within<const COUNTS: usize>(group: Option<&RawValue>, names: [&str; COUNTS]) -> [Option<u64>; COUNTS] {
    group.and_then(|group| counts(group.get(), names, [])).map_or([None; COUNTS], |(counted, [])| counted)
}

/// Merges a later usage object of the same stream: its counts, and the earlier ones that it omits.
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
            assert_eq!(usage(protocol, object, Usage::default()), Some(expected), "{protocol:?}");
        }
        let object = r#"{"input_tokens":15,"output_tokens":7,"cache_read_input_tokens":10,
            "cache_creation_input_tokens":5,"output_tokens_details":{"thinking_tokens":2}}"#;
        let messages = Usage { cache_write: Some(5), ..expected };
        assert_eq!(usage(Protocol::Messages, object, Usage::default()), Some(messages));
    }

    #[test]
    fn what_is_no_usage_is_none() {
        for object in ["null", "[1]", "7", r#"{"prompt_tokens":"many"}"#] {
            assert_eq!(
                usage(Protocol::Chat, object, Usage::default()).unwrap_or_default(),
                Usage::default(),
                "{object}"
            );
        }
    }

    #[test]
    fn a_count_that_is_none_does_not_take_the_others_along() {
        let object = r#"{"prompt_tokens":{},"completion_tokens":7,"completion_tokens_details":[],
            "prompt_tokens_details":{"cached_tokens":"x","cache_write_tokens":3}}"#;
        let expected = Usage { output: Some(7), cache_write: Some(3), ..Usage::default() };
        assert_eq!(usage(Protocol::Chat, object, Usage::default()), Some(expected));
    }

    #[test]
    fn reasoning_that_is_counted_beside_the_completion_is_part_of_the_output() {
        let output = |total: u64| {
            let object = format!(
                r#"{{"prompt_tokens":30,"completion_tokens":7,"total_tokens":{total},
                "completion_tokens_details":{{"reasoning_tokens":5}}}}"#
            );
            usage(Protocol::Chat, &object, Usage::default()).and_then(|usage| usage.output)
        };
        assert_eq!([output(42), output(37), output(99)], [12, 7, 7].map(Some));
    }

    #[test]
    fn cached_tokens_stay_in_the_input_when_a_later_event_repeats_it_without_them() {
        let begun = r#"{"input_tokens":15,"cache_read_input_tokens":10,"output_tokens":1}"#;
        let before = usage(Protocol::Messages, begun, Usage::default()).expect("counts");
        let further = usage(Protocol::Messages, r#"{"input_tokens":15,"output_tokens":7}"#, before);
        let usage = merged(before, further.expect("counts"));
        assert_eq!((usage.input, usage.cached, usage.output), (Some(25), Some(10), Some(7)));
    }
}
