//! Token counts.

use serde_json::{Map, Value};

use crate::conversation::Usage;

/// Fields of a `usage` that are read, or follow from them.
pub(super) const KNOWN: [&str; 7] = [
    "inputTokens",
    "outputTokens",
    "totalTokens",
    "cacheReadInputTokens",
    "cacheWriteInputTokens",
    // Older names of servers.
    "cacheReadInputTokenCount",
    "cacheWriteInputTokenCount",
];

/// Reads a `usage`.
pub(super) fn read(usage: &Map<String, Value>) -> Usage {
    let count = |name: &str| usage.get(name).and_then(Value::as_u64);
    let cached = count("cacheReadInputTokens").or_else(|| count("cacheReadInputTokenCount"));
    let cache_write = count("cacheWriteInputTokens").or_else(|| count("cacheWriteInputTokenCount"));
    let elsewhere = cached.unwrap_or(0).saturating_add(cache_write.unwrap_or(0));
    Usage {
        input: count("inputTokens").map(|input| input.saturating_add(elsewhere)),
        output: count("outputTokens"),
        cached,
        cache_write,
        reasoning: None,
    }
}

/// The tier that served a request, in neutral form.
pub(super) fn tier(document: &Map<String, Value>) -> Option<String> {
    document.get("serviceTier")?["type"].as_str().map(str::to_owned)
}
