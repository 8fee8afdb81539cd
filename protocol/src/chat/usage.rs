//! Token counts of the chat protocol.

use serde_json::{Value, json};

use crate::conversation::Usage;
use crate::usage_object::{UsageObject, counts_in};

/// Fields of a `usage` that are read.
pub(super) const KNOWN: [&str; 5] = [
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "prompt_tokens_details",
    "completion_tokens_details",
];

/// Reads a `usage`; `None` if it has no counts.
pub(super) fn read(usage: impl UsageObject) -> Option<Usage> {
    let ([input, output, total], [read, written]) = usage.read(
        ["prompt_tokens", "completion_tokens", "total_tokens"],
        ["prompt_tokens_details", "completion_tokens_details"],
    )?;
    let [cached, cache_write] = counts_in(read, ["cached_tokens", "cache_write_tokens"]);
    let [reasoning] = counts_in(written, ["reasoning_tokens"]);
    let output = with_reasoning(input, output, reasoning, total);
    (input.is_some() || output.is_some()).then_some(Usage { input, output, cached, cache_write, reasoning })
}

/// Some providers count reasoning separately from the completion: only the total reveals it.
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
    let is_separate = total > without && total == without.saturating_add(thought);
    Some(if is_separate { written.saturating_add(thought) } else { written })
}

/// Writes a `usage`.
pub(super) fn write(usage: Usage) -> Value {
    let (input, output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
    let mut value = json!({
        "prompt_tokens": input,
        "completion_tokens": output,
        "total_tokens": input.saturating_add(output),
    });
    let details = [
        ("prompt_tokens_details", "cached_tokens", usage.cached),
        ("prompt_tokens_details", "cache_write_tokens", usage.cache_write),
        ("completion_tokens_details", "reasoning_tokens", usage.reasoning),
    ];
    for (group, name, count) in details {
        if let Some(count) = count {
            value[group][name] = count.into();
        }
    }
    value
}
