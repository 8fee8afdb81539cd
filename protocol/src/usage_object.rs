//! A usage object, as a tree or as raw text: each protocol reads both with the same code.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::lazy_json::members;

/// The counts of an object, and its groups of further counts.
type CountsAndGroups<O, const COUNTS: usize, const GROUPS: usize> =
    ([Option<u64>; COUNTS], [Option<O>; GROUPS]);

/// See the module.
pub(crate) trait UsageObject: Copy {
    /// The counts and groups with these names. An invalid count doesn't invalidate the others. None: it isn't an object.
    fn read<const COUNTS: usize, const GROUPS: usize>(
        self,
        counts: [&str; COUNTS],
        groups: [&str; GROUPS],
    ) -> Option<CountsAndGroups<Self, COUNTS, GROUPS>>;
}

impl UsageObject for &Value {
    fn read<const COUNTS: usize, const GROUPS: usize>(
        self,
        counts: [&str; COUNTS],
        groups: [&str; GROUPS],
    ) -> Option<CountsAndGroups<Self, COUNTS, GROUPS>> {
        let object = self.as_object()?;
        Some((counts.map(|name| object.get(name)?.as_u64()), groups.map(|name| object.get(name))))
    }
}

impl UsageObject for &RawValue {
    fn read<const COUNTS: usize, const GROUPS: usize>(
        self,
        counts: [&str; COUNTS],
        groups: [&str; GROUPS],
    ) -> Option<CountsAndGroups<Self, COUNTS, GROUPS>> {
        let (mut counted, mut grouped) = ([None; COUNTS], [None; GROUPS]);
        members(self.get(), |name, value| {
            if let Some(at) = counts.iter().position(|known| *known == name) {
                counted[at] = value.get().parse().ok();
            } else if let Some(at) = groups.iter().position(|known| *known == name) {
                grouped[at] = Some(value);
            }
        })
        .ok()?;
        Some((counted, grouped))
    }
}

/// The counts of a group, which may be missing.
pub(crate) fn counts_in<const COUNTS: usize>(
    group: Option<impl UsageObject>,
    names: [&str; COUNTS],
) -> [Option<u64>; COUNTS] {
    group.and_then(|group| group.read(names, [])).map_or([None; COUNTS], |(counts, [])| counts)
}

/// The sum of counts that may be missing. None: both are.
pub(crate) fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
    }
}

#[cfg(test)]
mod tests {
    use crate::conversation::{Protocol, Usage};

    fn usage(protocol: Protocol, object: &str, before: Usage) -> Option<Usage> {
        protocol.usage_in(serde_json::from_str(object).expect("JSON"), before)
    }

    #[test]
    fn usage_is_read_from_each_protocol() {
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
    fn invalid_usage_is_ignored() {
        for object in ["null", "[1]", "7", r#"{"prompt_tokens":"many"}"#] {
            assert_eq!(
                usage(Protocol::Chat, object, Usage::default()).unwrap_or_default(),
                Usage::default(),
                "{object}"
            );
        }
    }

    #[test]
    fn invalid_count_does_not_invalidate_the_others() {
        let object = r#"{"prompt_tokens":{},"completion_tokens":7,"completion_tokens_details":[],
            "prompt_tokens_details":{"cached_tokens":"x","cache_write_tokens":3}}"#;
        let expected = Usage { output: Some(7), cache_write: Some(3), ..Usage::default() };
        assert_eq!(usage(Protocol::Chat, object, Usage::default()), Some(expected));
    }

    #[test]
    fn reasoning_counted_beside_the_completion_is_added_to_the_output() {
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
    fn cached_tokens_stay_in_the_input_when_a_later_event_omits_them() {
        let started = r#"{"input_tokens":15,"cache_read_input_tokens":10,"output_tokens":1}"#;
        let before = usage(Protocol::Messages, started, Usage::default()).expect("counts");
        let further = usage(Protocol::Messages, r#"{"input_tokens":15,"output_tokens":7}"#, before);
        let usage = further.expect("counts").or(before);
        assert_eq!((usage.input, usage.cached, usage.output), (Some(25), Some(10), Some(7)));
    }
}
