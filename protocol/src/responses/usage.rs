//! Token counts of the responses protocol.

use serde_json::{Value, json};

use crate::conversation::Usage;
use crate::usage_object::{UsageObject, counts_in};

/// Reads a `usage`. None: it isn't an object.
pub(super) fn read(usage: impl UsageObject) -> Option<Usage> {
    let ([input, output], [read, written]) =
        usage.read(["input_tokens", "output_tokens"], ["input_tokens_details", "output_tokens_details"])?;
    let [cached, cache_write] = counts_in(read, ["cached_tokens", "cache_write_tokens"]);
    let [reasoning] = counts_in(written, ["reasoning_tokens"]);
    Some(Usage { input, output, cached, cache_write, reasoning })
}

/// Writes a `usage`.
pub(super) fn write(usage: Usage) -> Value {
    let or_none = |tokens: Option<u64>| tokens.unwrap_or(0);
    let (input, output) = (or_none(usage.input), or_none(usage.output));
    json!({
        "input_tokens": input,
        "input_tokens_details": {
            "cached_tokens": or_none(usage.cached),
            "cache_write_tokens": or_none(usage.cache_write),
        },
        "output_tokens": output,
        "output_tokens_details": { "reasoning_tokens": or_none(usage.reasoning) },
        "total_tokens": input.saturating_add(output),
    })
}
