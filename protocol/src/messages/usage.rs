//! Token counts of the messages protocol.

use serde_json::{Value, json};

use crate::conversation::Usage;
use crate::usage_object::{UsageObject, counts_in};

/// Fields of a `usage` that are read.
pub(super) const KNOWN: [&str; 6] = [
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens_details",
    "service_tier",
];

/// Reads a `usage`. Counts it lacks keep their previous value: in streams the input comes first and the output last. None: it
/// isn't an object.
pub(super) fn read(usage: impl UsageObject, before: Usage) -> Option<Usage> {
    let names = ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
    let ([input, output, cached, cache_write], [written]) = usage.read(names, ["output_tokens_details"])?;
    let [reasoning] = counts_in(written, ["thinking_tokens"]);
    // The protocol counts cached tokens separately.
    let elsewhere = |cached: Option<u64>, cache_write: Option<u64>| {
        cached.unwrap_or(0).saturating_add(cache_write.unwrap_or(0))
    };
    let known = before.input.map(|input| input.saturating_sub(elsewhere(before.cached, before.cache_write)));
    let (cached, cache_write) = (cached.or(before.cached), cache_write.or(before.cache_write));
    Some(Usage {
        input: input.or(known).map(|input| input.saturating_add(elsewhere(cached, cache_write))),
        output: output.or(before.output),
        cached,
        cache_write,
        reasoning: reasoning.or(before.reasoning),
    })
}

/// Writes a `usage`.
pub(super) fn write(usage: Usage) -> Value {
    let elsewhere = usage.cached.unwrap_or(0).saturating_add(usage.cache_write.unwrap_or(0));
    let mut value = json!({
        "input_tokens": usage.input.unwrap_or(0).saturating_sub(elsewhere),
        "cache_creation_input_tokens": usage.cache_write.unwrap_or(0),
        "cache_read_input_tokens": usage.cached.unwrap_or(0),
        "output_tokens": usage.output.unwrap_or(0),
    });
    if let Some(reasoning) = usage.reasoning {
        value["output_tokens_details"] = json!({ "thinking_tokens": reasoning });
    }
    value
}

/// The service tier of a `usage`, in neutral form.
pub(super) fn tier(usage: &Value) -> Option<String> {
    let word = usage["service_tier"].as_str()?;
    Some(if word == "standard" { "default" } else { word }.to_owned())
}

/// A service tier as this protocol names it.
pub(super) fn tier_word(tier: &str) -> &str {
    if tier == "default" { "standard" } else { tier }
}
