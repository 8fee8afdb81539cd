//! Token counts of the chat protocol.

use serde_json::{Value, json};

use crate::conversation::Usage;

/// Fields of a `usage` that are read.
pub(super) const KNOWN: [&str; 5] = [
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "prompt_tokens_details",
    "completion_tokens_details",
];

/// Reads a `usage`; `None`: it counts nothing.
pub(super) fn read(usage: &Value) -> Option<Usage> {
    let count = |value: &Value| value.as_u64();
    let input = count(&usage["prompt_tokens"]);
    let mut output = count(&usage["completion_tokens"]);
    let reasoning = count(&usage["completion_tokens_details"]["reasoning_tokens"]);
    // Some providers count reasoning separately from the completion: only the total reveals it.
    if let (Some(input), Some(written), Some(reasoning), Some(total)) =
        (input, output, reasoning, count(&usage["total_tokens"]))
        && total > input.saturating_add(written)
        && total == input.saturating_add(written).saturating_add(reasoning)
    {
        output = Some(written.saturating_add(reasoning));
    }
    let details = &usage["prompt_tokens_details"];
    (input.is_some() || output.is_some()).then(|| Usage {
        input,
        output,
        cached: count(&details["cached_tokens"]),
        cache_write: count(&details["cache_write_tokens"]),
        reasoning,
    })
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
